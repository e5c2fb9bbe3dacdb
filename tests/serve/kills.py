"""A service that is killed under load, again and again, and the one that never was: both must stand at the same place.

A sender posts rows until the service is gone, and after its restart sends what was not answered again, as real ones do.
"""

import json
import multiprocessing
import random
import socket
import time
from typing import NamedTuple

import httpx
import numpy as np

from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network


class Killed(NamedTuple):
    """What came of a run."""

    kills: int
    acknowledged: int
    lost: int
    doubled: int
    unknown: int  # rows that nobody had sent
    answers_changed: int  # rows whose answer after the restart is not the one that was acknowledged
    same_region: bool
    same_alarms: bool


def serve_child(model, store, port, every):
    """The service, in a process of its own."""
    import uvicorn

    from jointset.live.app import make_app

    network = open_network("city", model, store, AS_USUAL._replace(every=every))
    uvicorn.run(make_app({"city": network}), host="127.0.0.1", port=port, log_level="error", lifespan="on")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def simulated(sensors, rng, first, count):
    """Rows that go on for ever; now and then one that is partial, and a shift that alarms shall see."""
    rows = []
    for i in range(first, first + count):
        values = rng.standard_normal(len(sensors)) + (8.0 if i % 400 > 360 else 0.0)
        values[rng.random(len(sensors)) < 0.05] = np.nan
        cells = {name: None if np.isnan(x) else float(x) for name, x in zip(sensors, values, strict=True)}
        rows.append({"time": 1_700_000_000 + 300 * i, "values": cells})
    return rows


def killed_under_load(model, folder, sensors, kills, seed=0, every=50, longest=0.25):
    """Kill the service so many times, then hold it against one that took the same rows without a stop."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["jointset.live.app", "jointset.live.opening", "uvicorn", "jointset.methods"])
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    known, sent, waiting, told = {}, set(), [], 0
    for _ in range(kills + 1):
        port = free_port()
        child = context.Process(target=serve_child, args=(model, folder / "killed", port, every), daemon=True)
        child.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, verify=False) as client:
            wait_until_ready(client)
            end = time.monotonic() + chance.uniform(0.01, longest)
            while time.monotonic() < end:
                if not waiting:
                    waiting = simulated(sensors, rng, told, chance.choice([1, 1, 5, 20]))
                    told += len(waiting)
                    sent |= {row["time"] for row in waiting}
                answered = client.post("/city/observations", json=waiting)
                assert answered.status_code == 200, answered.text
                known |= {one["time"]: plain(one) for one in answered.json()}
                waiting = []
            last = waiting or simulated(sensors, rng, told, 20)
            told, waiting = told + 20 * (last is not waiting), last
            sent |= {row["time"] for row in waiting}
            with start_post(port, waiting):
                time.sleep(chance.uniform(0.0, 0.01))
                child.kill()
        child.join()
    return compared(model, folder, sensors, kills, known, sent)


def start_post(port, rows):
    """A request that is on its way when the service is killed; nobody reads its answer."""
    line = socket.create_connection(("127.0.0.1", port), timeout=5)
    body = json.dumps(rows).encode()
    head = "POST /city/observations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return line


def wait_until_ready(client, patience=30.0):
    end = time.monotonic() + patience
    while True:
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < end, "the service did not come up"
        time.sleep(0.01)


def plain(answer):
    return {key: value for key, value in answer.items() if key != "repeated"}


def compared(model, folder, sensors, kills, known, sent):
    """The store that was killed against one that took the same rows in the same order."""
    from jointset.live.answers import alarms, answer_of, region

    again = open_network("city", model, folder / "killed")
    rows = list(again.store.entries())
    times = [entry.time for entry in rows]
    whole = open_network("city", model, folder / "whole")
    for start in range(0, len(rows), 100):
        body = [
            {"time": entry.time, "values": [None if np.isnan(x) else x for x in entry.values.tolist()]}
            for entry in rows[start : start + 100]
        ]
        whole.post(json.dumps(body).encode(), "json").result(30)
    kept = {entry.time: answer_of(entry, sensors) for entry in rows}
    found = Killed(
        kills,
        len(known),
        len(set(known) - set(times)),
        len(times) - len(set(times)),
        len(set(times) - sent),
        sum(kept.get(when) != answer for when, answer in known.items()),
        region(again, again.standing) == region(whole, whole.standing),
        alarms(again, 0, -1) == alarms(whole, 0, -1),
    )
    again.close()
    whole.close()
    return found
