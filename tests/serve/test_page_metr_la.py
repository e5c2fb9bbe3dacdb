"""Real traffic through the live page in a real browser: 24 detectors of METR-LA, a neighbourhood slowed by a fifth."""

import numpy as np
import pytest
from test_page_browser import LIT, ROWS, Service

from browser import browser, needed
from jointset import Panel
from jointset.methods import predictor_for

pytest.importorskip("fastapi")
pytestmark = [needed, pytest.mark.slow]
DAY = 288
FIRST, CALM = 16 * DAY, 130  # the first row that is sent, and how many are as they were
SLOWED = 6  # rows with the incident


@pytest.fixture(scope="module")
def roads(real_data):
    """24 detectors near each other, gaps as gaps, in their first weeks."""
    file = np.load(real_data("metr-la.npz"))
    names, place = file["sensors"].astype(str), file["coordinates"]
    here = np.argsort(((place - place[names == "717510"]) ** 2).sum(axis=1), kind="stable")[:24]
    values = file["values"][: FIRST + CALM + SLOWED][:, here]
    graph = (file["adjacency"] + file["adjacency"].T)[np.ix_(here, here)] / 2.0
    np.fill_diagonal(graph, 0.0)
    return Panel(
        np.where(values == 0.0, np.nan, values), names[here].tolist(), timestamps=file["timestamps"][: len(values)],
        adjacency=graph, coordinates=place[here],
    )  # fmt: skip


@pytest.fixture(scope="module")
def service(roads, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roads")
    predictor_for("ewma").fit(roads[: 4 * DAY]).calibrate(roads[4 * DAY : FIRST]).save(folder / "model")
    running = Service(folder)
    yield running
    running.stop()


def test_an_incident_on_real_roads_raises_the_alarm_and_lights_its_detectors(roads, service, tmp_path):
    centre = roads.sensors.index("772168")
    near = np.flatnonzero((roads.adjacency[centre] > 0) | (np.arange(24) == centre))
    slowed = {roads.sensors[i] for i in near}
    rows = roads.values[FIRST:].copy()
    rows[CALM:, near] *= 0.8
    service.ready()
    service.send(rows[:CALM], FIRST, roads)
    with browser(tmp_path) as window:
        window.open(f"{service.address}/")
        window.settled("document.querySelector('#status').textContent === 'live'")
        window.settled(f"{ROWS} === {CALM}")
        assert "Sustained" not in window.run("return document.querySelector('.incidents').textContent")
        service.send(rows[CALM:], FIRST + CALM, roads)
        window.settled("/Sustained change *now/.test(document.querySelector('.incidents').textContent)")
        window.settled(f"{LIT}.match(/7\\d{{5}}/g).length === 3")
        lit = window.run(f"return {LIT}.match(/7\\d{{5}}/g)")
        named = window.run("return document.querySelector('.incident').textContent.match(/7\\d{5}/g)")
        assert len(slowed.intersection(lit)) >= 2 and slowed.issuperset(named), (lit, named, slowed)
        assert window.console() == []
