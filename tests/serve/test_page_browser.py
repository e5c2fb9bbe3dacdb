"""The live page in a real browser: rows as they come, an incident, a service that dies and comes back, the past."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from browser import OPENER, browser, needed
from jointset import Panel, generate_grssf
from jointset.inputs.times import iso
from jointset.methods import predictor_for

pytest.importorskip("fastapi")
pytestmark = [needed, pytest.mark.slow]
PANEL = generate_grssf("A", n=20, seed=6, length=4000).panel
FIRST = 2000  # the first row that is sent
NEAR = [0, 1, 2, 3, 4]  # one community
ROWS = "Number(document.querySelector('.scores canvas').getAttribute('aria-valuemax'))"
LIT = "document.querySelector('.map canvas').getAttribute('aria-label')"


class Service:
    """`jointset serve` in a process of its own, always on the same port."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder, self.address = folder, f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        model, store = f"city={self.folder / 'model'}", str(self.folder / "store")
        command = [sys.executable, "-c", "from jointset.cli import main; main()", "serve", model, "--store", store]
        with (self.folder / "serve.log").open("a") as log:
            self.process = subprocess.Popen([*command, "--port", str(self.port)], stderr=log)

    def stop(self, how=signal.SIGTERM):
        os.kill(self.process.pid, how)
        self.process.wait(timeout=20)

    def send(self, values, start, panel=PANEL):
        """Post rows that begin at a row of the panel; NaN is no reading."""
        rows = [
            {
                "time": iso(int(panel.timestamps[start + t])),
                "values": {name: x if x == x else None for name, x in zip(panel.sensors, row, strict=True)},
            }
            for t, row in enumerate(values.tolist())
        ]
        request = urllib.request.Request(
            f"{self.address}/city/observations", json.dumps(rows).encode(), {"Content-Type": "application/json"}
        )
        with OPENER.open(request, timeout=30) as answer:
            return json.load(answer)

    def ready(self):
        """Wait until it takes readings."""
        for _ in range(400):
            try:
                with OPENER.open(f"{self.address}/ready", timeout=5):
                    return
            except OSError:
                assert self.process.poll() is None, (self.folder / "serve.log").read_text()
                time.sleep(0.1)
        raise AssertionError("the service never came")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    predictor_for("kalman").fit(PANEL[:1400]).calibrate(PANEL[1400:FIRST]).save(folder / "model")
    running = Service(folder)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_the_page_follows_finds_the_incident_and_survives_the_service(service, window):
    calm, later = PANEL.values[FIRST : FIRST + 320], PANEL.values[FIRST + 320 :].copy()
    later[:25, NEAR] -= 6.0
    service.ready()
    service.send(calm, FIRST)
    window.open(f"{service.address}/")
    window.settled("document.querySelector('#status').textContent === 'live'")
    window.settled(f"{ROWS} === 320")
    assert window.run("return document.querySelector('.incidents').textContent").startswith("Incidents")
    assert "Sustained" not in window.run("return document.querySelector('.incidents').textContent")

    service.send(later[:20], FIRST + 320)
    window.settled("/Sustained change *now/.test(document.querySelector('.incidents').textContent)")
    window.settled("document.querySelector('.verdict').classList.contains('red')")
    window.settled(f"{LIT}.split('Named')[0].match(/s0\\d\\d/g).filter((name) => name <= 's004').length === 3")
    assert "alarm" in window.run("return document.querySelector('[role=status].unseen').textContent").lower()

    window.run("document.querySelector('.actions button').click()")
    window.settled("document.querySelector('.actions button').textContent === 'Seen'")

    service.stop(signal.SIGKILL)
    window.settled("document.querySelector('#status').classList.contains('lost')")
    service.start()
    service.ready()
    service.send(later[20:60], FIRST + 340)
    window.settled("document.querySelector('#status').textContent === 'live'")
    window.settled(f"{ROWS} === 380")
    quiet = [text for text in window.console() if "WebSocket" not in text and "net::ERR_" not in text]
    assert quiet == []


def test_time_travel_asks_for_readings_that_are_not_held_and_a_phone_needs_no_sideways_scroll(service, window):
    service.ready()
    values = PANEL.values[FIRST:].copy()
    for start in range(0, 1900, 100):  # known rows are not counted again
        service.send(values[start : start + 100], FIRST + start)
    window.open(f"{service.address}/#city", width=390, height=844)
    window.settled("document.querySelector('#status').textContent === 'live'")
    assert window.run("return document.documentElement.scrollWidth") <= 390
    window.settled(f"{ROWS} === 1900")
    window.run("[...document.querySelectorAll('.ranges button')].at(-1).click()")  # all rows
    window.settled(f"{ROWS} === 1900")
    window.keys(".scores canvas", "\ue011")  # Home: the oldest row
    window.settled("document.querySelector('.scores canvas').getAttribute('aria-valuenow') === '1'")
    window.settled("/reads/.test(document.querySelector('.sensor .readout').textContent)")
    first = dict(zip(PANEL.sensors, PANEL.values[FIRST], strict=True))
    shown = window.run("return document.querySelector('.sensor .readout').textContent").split()
    assert float(shown[3].replace("−", "-")) == pytest.approx(first[shown[0]], rel=0.01)
    window.keys(".scores canvas", "\ue00c")  # Escape: back to now
    window.settled("document.querySelector('.back').hidden")
    assert window.console() == []


def test_a_sensor_that_stands_still_is_told_in_the_table_though_no_row_follows(service, window):
    service.ready()
    values = PANEL.values[-1] + 0.1 * np.random.default_rng(0).normal(size=(60, PANEL.n_sensors))
    values[:, 5] = values[0, 5]
    times = PANEL.timestamps[-1] + np.diff(PANEL.timestamps[-2:]) * np.arange(1, 61)
    service.send(values, 0, Panel(values, PANEL.sensors, times))
    window.open(f"{service.address}/#city")
    window.settled("/s005▲ stuck/.test(document.querySelector('table.health')?.textContent)")
    window.settled("/Sensor stuck *now/.test(document.querySelector('.incidents')?.textContent)")
    service.stop()
    with sqlite3.connect(service.folder / "store" / "city" / "readings.db") as store:
        store.execute("DELETE FROM changes")  # as the store does with what is older than it keeps
    service.start()
    service.ready()
    window.open("about:blank")
    window.open(f"{service.address}/#city")
    window.settled("document.querySelector('.scores canvas') !== null")
    window.settled("/Sensor stuck *now/.test(document.querySelector('.incidents')?.textContent)")
    window.settled("document.querySelector('.verdict')?.textContent.includes('s005')")
