"""What the service sustains here: durable rows a second, latency, memory, disk, kills, requests at random.

    python benchmarks/serve.py [--rows 20000] [--model FOLDER ROWS.csv] [--kills 200] [--requests 10000] [--soak 50000]

All on loopback, against `jointset serve` in a process of its own; the ratio is to `jointset stream` on the same rows in
this process, which keeps nothing on the disk. A model of 20 simulated sensors is made and sent the test rows of its
network over and over; --model adds others with rows of theirs.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "serve"))

import psutil

from jointset import GraphLGSSM, JointPredictor, Panel, generate_grssf
from jointset.methods import load_predictor
from jointset.streaming import Stream

BATCH = 50
LONGEST = 150.0  # seconds of any one measurement
ASKED = ("region", "history", "trust", "alarms", "columns?detail=true", "announced")  # while it soaks


class Model(NamedTuple):
    """A model folder, its sensors, and rows that it is sent, None = missing."""

    folder: Path
    sensors: tuple[str, ...]
    readings: list[list[float | None]]


class Service:
    """`jointset serve` of one model on a free port, with a connection to it."""

    def __init__(self, model: Path, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        given = [f"city={model}", "--store", str(folder), "--port", str(self.port), "--rate", "1000000"]
        command = [sys.executable, "-c", "from jointset.cli import main; main()", "serve", *given]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.place, self.used = folder / "city", 0.0
        end = time.monotonic() + 60
        while True:
            try:
                if self.ask("GET", "/ready")[0] == 200:
                    break
            except OSError:
                pass
            if time.monotonic() > end:
                raise SystemExit("the service did not come up")
            time.sleep(0.1)

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def memory(self) -> float:
        """Resident MiB."""
        return psutil.Process(self.process.pid).memory_info().rss / 2**20

    def cpu(self, readings: int) -> float:
        """Milliseconds of CPU a reading that the service used since this was asked last."""
        times = psutil.Process(self.process.pid).cpu_times()
        used, self.used = times.user + times.system - self.used, times.user + times.system
        return 1e3 * used / readings

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.place.glob("readings.db*"))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def bodies(model: Model, count: int, batch: int, first: int = 0):
    """Bodies of so many rows, a batch each: the readings of the model over and over, missing ones null."""
    for start in range(first, first + count, batch):
        rows = [
            {"time": 1_700_000_000 + 300 * i, "values": dict(zip(model.sensors, row, strict=True))}
            for i, row in ((i, model.readings[i % len(model.readings)]) for i in range(start, start + batch))
        ]
        yield json.dumps(rows if batch > 1 else rows[0]).encode()


def sent(port: int, texts) -> np.ndarray:
    """Post bodies one after another on one connection; the seconds that each took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    seconds, end = [], time.monotonic() + LONGEST
    for text in texts:
        began = time.perf_counter()
        connection.request("POST", "/city/observations", text, {"content-type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {body[:300]!r}")
        seconds.append(time.perf_counter() - began)
        if time.monotonic() > end:
            break
    connection.close()
    return np.array(seconds)


def streamed(predictor, texts) -> float:
    """Rows a second of `stream` in this process."""
    lines = [json.dumps(row) for text in texts for row in json.loads(text)]
    stream = Stream(predictor)
    began = time.perf_counter()
    for answer in stream.answers(lines):
        json.dumps(answer)
    return len(lines) / (time.perf_counter() - began)


def measured(model: Model, rows: int, folder: Path) -> None:
    """Throughput, latency and size for one model."""
    name, predictor = model.folder.name, load_predictor(model.folder)
    service = Service(model.folder, folder / name)
    try:
        sent(service.port, bodies(model, 500, BATCH))  # warm
        batches = list(bodies(model, rows, BATCH, 10_000))
        service.cpu(1)
        began = time.perf_counter()
        took = sent(service.port, batches)
        batched = BATCH * len(took) / (time.perf_counter() - began)
        done = BATCH * len(took)
        cost = f"{service.cpu(done):.2f} ms of CPU each"
        tell(name, "batches of 50", f"{batched:,.0f} rows/s, median batch {1e3 * np.median(took):.1f} ms, {cost}")
        tell(name, "ratio to stream without a disk", f"{batched / streamed(predictor, batches[:20]):.2f}")
        singles = list(bodies(model, min(rows // 10, 3_000), 1, 10_000_000))
        service.cpu(1)
        began = time.perf_counter()
        took = sent(service.port, singles)
        rate = len(took) / (time.perf_counter() - began)
        median, p99, worst = 1e3 * np.quantile(took, (0.5, 0.99, 1.0))
        times = f"median {median:.1f}, p99 {p99:.1f}, worst {worst:.1f} ms"
        tell(name, "singly, one sender", f"{rate:,.0f} rows/s, {times}, {service.cpu(len(took)):.2f} ms of CPU each")
        rate = together(service.port, model, 8, len(singles) // 8)
        tell(name, "singly, eight senders", f"{rate:,.0f} rows/s")
        total = done + len(singles) * 2 + 500
        tell(name, "disk", f"{service.size() / total:,.0f} bytes a row with its answer")
        tell(name, "memory", f"{service.memory():.0f} MiB")
    finally:
        service.stop()


def together(port: int, model: Model, senders: int, each: int) -> float:
    """Rows a second of several senders at once; what comes late is kept all the same."""
    texts = [list(bodies(model, each, 1, 20_000_000 + 100_000 * k)) for k in range(senders)]
    threads = [threading.Thread(target=sent, args=(port, mine)) for mine in texts]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return senders * each / (time.perf_counter() - began)


def soaked(model: Model, rows: int, seconds: float, folder: Path) -> None:
    """Memory of the service in tenths of the rows, or of the seconds where these end first; readers ask as well."""
    service, marks, done, began = Service(model.folder, folder / "soak"), [], 0, time.monotonic()
    try:
        while done < rows and time.monotonic() < began + seconds:
            done += BATCH * len(sent(service.port, bodies(model, 10 * BATCH, BATCH, done)))
            for path in ASKED:
                service.ask("GET", f"/city/{path}")
            if max(done / rows, (time.monotonic() - began) / seconds) >= (len(marks) + 1) / 10:
                marks.append(service.memory())
                tell("soak", f"{done:,} rows, {done * len(model.sensors):,} readings", f"{marks[-1]:.1f} MiB")
        drift = max(marks[1:]) / min(marks[1:]) - 1
        tell("soak", "largest over smallest after the first tenth", f"{100 * drift:.1f} %")
        tell("soak", f"in {time.monotonic() - began:,.0f} s", f"{service.size() / done:,.0f} bytes a row on the disk")
    finally:
        service.stop()


def killed(model: Path, kills: int, folder: Path, seed: int) -> None:
    from kills import killed_under_load

    found = killed_under_load(model, folder, load_predictor(model).sensors, kills, seed)
    tell("kill -9", f"{found.kills} times, {found.acknowledged:,} rows acknowledged", str(found._asdict()))


def fuzzed(model: Path, count: int, folder: Path, seed: int) -> None:
    from conftest import client_of
    from nasty import chances, request, sent as asked

    from jointset.live.opening import open_network

    network = open_network("city", model, folder / "fuzz")
    crashed = changed = 0
    with client_of({"city": network}) as client:
        document, chance = client.get("/openapi.json").json(), chances(seed)
        for _ in range(count):
            before = network.standing, network.held
            answer = asked(client, request(chance, document, "city", network.sensors))
            crashed += answer.status_code >= 500 or b"Traceback" in answer.content
            changed += answer.status_code >= 400 and (network.standing, network.held) != before
    network.close()
    found = f"{crashed} of 5xx or with a trace, {changed} refused that changed something"
    tell("requests at random", f"{count:,}", found)


def synced(folder: Path) -> float:
    """Milliseconds, in the median, until 4 kB are on the disk: what no single post can be faster than."""
    took = []
    with (folder / "synced").open("wb") as file:
        for _ in range(100):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return 1e3 * float(np.median(took))


def tell(*cells: str) -> None:
    print("  ".join([f"{cells[0]:20s}", f"{cells[1]:44s}", *cells[2:]]), flush=True)


def simulated(folder: Path) -> Model:
    train, _, calibration, test = generate_grssf("A", n=20, length=3_000, seed=0).panel.split()
    JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration).save(folder / "kalman-20")
    return Model(folder / "kalman-20", test.sensors, cells(test))


def given(folder: str, rows: str) -> Model:
    sensors = load_predictor(Path(folder)).sensors
    return Model(Path(folder), sensors, cells(Panel.read(rows).select(sensors)))


def cells(panel: Panel) -> list[list[float | None]]:
    return [[None if x != x else x for x in row] for row in panel.values.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("rows", 20_000), ("kills", 0), ("requests", 0), ("soak", 0), ("seconds", 240), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--model", nargs=2, action="append", default=[], metavar=("FOLDER", "ROWS.csv"))
    asked = parser.parse_args()
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(f"{os.cpu_count()} cores, load {load}, {synced(folder):.1f} ms until 4 kB are on the disk")
        small = simulated(folder)
        if asked.rows:
            for model in (small, *(given(*one) for one in asked.model)):
                measured(model, asked.rows, folder / "speed")
        if asked.soak:
            soaked(small, asked.soak, asked.seconds, folder)
        if asked.kills:
            killed(small.folder, asked.kills, folder, asked.seed)
        if asked.requests:
            fuzzed(small.folder, asked.requests, folder, asked.seed)


if __name__ == "__main__":
    main()
