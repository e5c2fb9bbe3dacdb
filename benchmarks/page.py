"""The live page with a long past: seconds to its first paint and to its whole past, frames while rows come.

A store of so many rows of so many sensors is written, `jointset serve` opens it, and a headless Chromium opens the
page; then rows are posted one by one. What drawing costs by itself is measured too, as frames depend on what else the
machine does. Run on a quiet machine: python benchmarks/page.py [--rows 100000] [--sensors 207]
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser import OPENER, browser
from jointset import generate_grssf
from jointset.live.standing import Clock
from jointset.live.opening import open_network
from jointset.storage import to_bytes
from jointset.live.standing import parts_of
from jointset.live.store import FILE, ROW, Entry, Store, cells_of
from jointset.methods import predictor_for
from jointset.inputs.times import iso

CADENCE = 300
DRAW = """
const [what, span] = arguments;
shown.board.span(span === 0 ? Infinity : span);
const times = [];
for (let k = 0; k < 40; k++) {
  shown.board.asked = true;
  const begun = performance.now();
  shown.board.told = what === "draw" ? begun : -1e9;
  shown.board.stale = shown.board.urgent = true;
  shown.board.draw(begun);
  times.push(performance.now() - begun);
}
return times;
"""
FEED = """
const done = arguments[arguments.length - 1];
const { station } = shown;
const texts = Array.from({ length: 60 }, () => ["values", "bounds", "shares"].map((what) => {
  const one = () => ({ values: 50 + 3 * Math.random(), bounds: [41, 59], shares: Math.random() / 100 })[what];
  return `"${what}":${JSON.stringify(Object.fromEntries(station.sensors.map((name) => [name, one()])))}`;
}).join());
shown.line.close();
let [number, time] = [shown.last, station.times[station.last]];
const times = [];
const until = performance.now() + arguments[0] * 1000;
const step = (now) => {
  times.push(now);
  if (now >= until) return done(times);
  number += 1;
  time += 300;
  const score = station.radii[station.last] * (0.6 + 0.4 * Math.random());
  const facts = `"row":${number},"time":${time},"score":${score},"radius":${station.radii[station.last]},"inside":true`;
  shown.hear(JSON.parse(`{"type":"row",${facts},${texts[number % 60]}}`));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""
FRAMES = """
const done = arguments[arguments.length - 1];
const times = [];
const until = performance.now() + arguments[0] * 1000;
const step = (now) => { times.push(now); if (now < until) requestAnimationFrame(step); else done(times); };
requestAnimationFrame(step);
"""


def fill(folder, model, rows, sensors):
    """A store of rows that look like those of a network, and the snapshot after the last."""
    network = open_network("city", model, folder)
    standing = network.standing
    network.close()
    store = Store(folder / "city" / FILE)
    rng, start = np.random.default_rng(0), int(standing.predictor.last_time)
    mean, half = rng.normal(50, 5, sensors), np.full(sensors, 9.0)
    for first in range(0, rows, 2000):
        with store.writing():
            store.append(
                cells_of(entry(rng, number, start, mean, half))
                for number in range(first + 1, min(first + 2000, rows) + 1)
            )
    moved = standing._replace(number=rows, clock=Clock(start + CADENCE * rows))
    with store.writing():
        store.put_snapshot(rows, to_bytes(parts_of(moved)), rows)
    store.close()
    return start + CADENCE * rows, (folder / "city" / FILE).stat().st_size


def entry(rng, number, start, mean, half):
    score = float(rng.chisquare(len(mean)))
    values, shares = rng.normal(mean, 3), rng.dirichlet(np.ones(len(mean))).astype(np.float32)
    seconds, radius = start + CADENCE * number, 1.15 * len(mean)
    answer = {"score": score, "radius": radius, "inside": score <= radius, "observed": len(mean), "top": []}
    return Entry(number, ROW, seconds, iso(seconds), values, answer, np.stack([mean - half, mean + half]), shares)


def post(address, start, sensors, seconds, rate):
    """Post rows one by one at a rate; how many were answered."""
    rng, sent, begun = np.random.default_rng(1), 0, time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        if sent > now * rate:
            time.sleep(0.001)
            continue
        sent += 1
        row = {
            "time": iso(start + CADENCE * sent),
            "values": dict(zip(sensors, rng.normal(0, 1, len(sensors)), strict=True)),
        }
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}/city/observations", json.dumps(row).encode(), headers)
        OPENER.open(request, timeout=30).read()
    return sent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sensors", type=int, default=207)
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        panel = generate_grssf("A", n=asked.sensors, seed=0, length=2000).panel
        predictor_for("kalman").fit(panel[:1200]).calibrate(panel[1200:]).save(folder / "model")
        last, size = fill(folder / "store", folder / "model", asked.rows, asked.sensors)
        print(f"{asked.rows:,} rows of {asked.sensors} sensors: {size / asked.rows:,.0f} bytes a row in the store")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-c", "from jointset.cli import main; main()", "serve", f"city={folder / 'model'}"]
        command += ["--store", str(folder / "store"), "--port", str(port), "--keep", str(2 * asked.rows)]
        service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            measure(f"http://127.0.0.1:{port}", folder, asked, last, panel.sensors)
        finally:
            service.terminate()
            service.wait()


def measure(address, folder, asked, last, sensors):
    ready = False
    while not ready:
        try:
            ready = OPENER.open(f"{address}/ready", timeout=5).status == 200
        except OSError:
            time.sleep(0.2)
    with browser(folder) as window:
        window.open(f"{address}/docs")  # the browser itself is warm
        found = []
        for _ in range(5):
            window.open(f"{address}/")
            window.settled("performance.getEntriesByName('whole').length", 60)
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            marks = "...['drawn', 'whole'].map((name) => performance.getEntriesByName(name)[0].startTime)"
            found.append(window.run(f"return [{paint}, {marks}]"))
        first, drawn, whole = np.median(found, axis=0) / 1000
        print(f"median of 5 visits: first paint {first:.2f} s, last rows drawn {drawn:.2f} s, all {whole:.2f} s")
        for what, span in (("draw", 288), ("draw", 0), ("tell", 288)):
            took = np.median(window.run(DRAW, what, span))
            name = {"draw": "charts and map", "tell": "with text and tables"}[what]
            print(f"{name}, {'all rows' if span == 0 else f'{span} rows'}: {took:.1f} ms")
        rows = "Number(document.querySelector('.scores canvas').getAttribute('aria-valuemax'))"
        before, counts = window.run(f"return {rows}"), []
        sending = threading.Thread(target=lambda: counts.append(post(address, last, sensors, asked.seconds, 60)))
        window.send("goog/cdp/execute", {"cmd": "Performance.enable", "params": {"timeDomain": "threadTicks"}})
        busy = processor_seconds(window)
        sending.start()
        times = window.send("execute/async", {"script": FRAMES, "args": [asked.seconds]})
        busy = processor_seconds(window) - busy
        sending.join()
        time.sleep(1.0)
        seen = window.run(f"return {rows}") - before
        print(f"{counts[0] / asked.seconds:.0f} rows a second posted, {seen:.0f} of {counts[0]} on the page")
        tell_frames("rows of the service", times, busy, asked.seconds)
        busy = processor_seconds(window)
        times = window.send("execute/async", {"script": FEED, "args": [asked.seconds]})
        tell_frames("a row in every frame, without the service", times, processor_seconds(window) - busy, asked.seconds)


def tell_frames(what, times, busy, seconds):
    """How many frames there were, how late they came, and what the page's main thread took for one."""
    steps = np.diff(times)
    print(
        f"{what}: {len(times) / seconds:.0f} frames a second, median {np.median(steps):.1f} ms, "
        f"{100 * np.mean(steps > 25):.1f} % later than 25 ms, longest {steps.max():.0f} ms; "
        f"{1000 * busy / len(times):.1f} ms of processor time a frame (60 a second leave 16.7)"
    )


def processor_seconds(window):
    """Processor time that the page's main thread has taken, however busy the machine is."""
    found = window.send("goog/cdp/execute", {"cmd": "Performance.getMetrics", "params": {}})["metrics"]
    return next(one["value"] for one in found if one["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
