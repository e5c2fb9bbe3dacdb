"""`jointset demo --live`: a simulated city as a service, with a page to watch and an incident every minute."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import typer

from jointset.datasets.city import CADENCE, DAY, START, Fault, Incident, simulate_city, with_trouble
from jointset.errors import InputError, require
from jointset.filters.telling import Told
from jointset.live.replaying import Target, pauses, replay, rows_of
from jointset.panel import Panel
from jointset.terminal import note, phases, stepped

METHOD, NAME = "quick", "city"
TRAIN, CALIBRATION, PAST = 7 * DAY, 3 * DAY, DAY  # rows
SPEED = 1440.0  # a day a minute, and an incident a day


def live_demo(out: Path, seed: int, alpha: float, port: int) -> None:
    """Fit a city, serve it, send it a day a minute, until Ctrl-C."""
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError:
        raise InputError("the service needs FastAPI and uvicorn: pip install 'jointset[serve]'") from None
    from threadpoolctl import threadpool_limits

    from jointset.live.app import make_app
    from jointset.live.listening import listening
    from jointset.live.opening import open_network
    from jointset.writing import new_folder

    taken = listening("127.0.0.1", port)
    address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    folder = new_folder(out) / f"live-{time.strftime('%Y%m%d-%H%M%S')}"
    with threadpool_limits(1):
        with phases(1) as started:
            _fit(folder / "model", seed, alpha, stepped(started, "fitting a simulated city"))
        network = open_network(NAME, folder / "model", folder / "store")
        threading.Thread(target=_send, args=(f"{address}/{NAME}", seed), daemon=True).start()
        typer.echo(f"Open {address}/ in a browser. A day passes in a minute, with an incident in it; Ctrl-C stops.")
        try:
            server = uvicorn.Server(uvicorn.Config(make_app({NAME: network}), log_level="warning", access_log=False))
            server.run(sockets=[taken])
        finally:
            network.close()
    note(f"what was read is kept in {folder}")


def _fit(folder: Path, seed: int, alpha: float, told: Told) -> None:
    from jointset.methods import predictor_for

    require(seed >= 0, f"the seed must be a whole number >= 0, got {seed}")
    rows = simulate_city(TRAIN + CALIBRATION, seed)
    predictor = predictor_for(METHOD, alpha=alpha)
    told(0, 1, float("nan"))
    predictor.fit(rows[:TRAIN], progress=told).calibrate(rows[TRAIN:]).save(folder)


def _send(url: str, seed: int) -> None:
    """Send days without end: the first at once, so that there is a past to look at."""
    target = Target(url)
    for day, panel in enumerate(days(seed)):
        waits = pauses(panel, SPEED if day else 0.0)
        replay(target, rows_of(panel), waits)


def days(seed: int) -> Iterator[Panel]:
    """Days that follow those of the fit: from the second on each has an incident, and every third a broken sensor."""
    rng = np.random.default_rng(seed + 1)
    first = (TRAIN + CALIBRATION) // DAY
    city = simulate_city(TRAIN + CALIBRATION + 60 * DAY, seed)
    for day in itertools.count(first):
        place = day * DAY % len(city)
        times = START + 86_400 * day + CADENCE * np.arange(DAY)
        panel = replace(city[place : place + DAY], timestamps=times)
        where, what = (str(name) for name in rng.choice(panel.sensors, 2, replace=False))
        incident = Incident(int(rng.integers(60, 200)), int(rng.integers(20, 36)), where)
        fault = Fault(int(rng.integers(10, 40)), 60, what, "stuck" if day % 2 else "silent")
        yield with_trouble(panel, [incident] * (day > first), [fault] * (day > first and day % 3 == 0))
