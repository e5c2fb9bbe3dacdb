"""Real traffic through the live page in a real browser: the 207 detectors of METR-LA, a neighbourhood slowed."""

import numpy as np
import pytest
from test_page_browser import LIT, ROWS, Service

from browser import browser, needed
from jointset import Panel
from jointset.methods import predictor_for

pytest.importorskip("fastapi")
pytestmark = [needed, pytest.mark.slow]
DAY = 288
FIRST, CALM = 12 * DAY + 120, 20  # the first row that is sent, and how many are as they were
SLOWED = 6  # rows with the incident


@pytest.fixture(scope="module")
def roads(real_data):
    """All detectors in their first weeks, gaps as gaps."""
    file = np.load(real_data("metr-la.npz"))
    values = file["values"][: FIRST + CALM + SLOWED]
    graph = (file["adjacency"] + file["adjacency"].T) / 2.0
    np.fill_diagonal(graph, 0.0)
    return Panel(
        np.where(values == 0.0, np.nan, values), file["sensors"].astype(str).tolist(),
        timestamps=file["timestamps"][: len(values)], adjacency=graph, coordinates=file["coordinates"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def service(roads, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roads")
    predictor_for("ewma").fit(roads[: 4 * DAY]).calibrate(roads[4 * DAY : FIRST]).save(folder / "model")
    running = Service(folder)
    yield running
    running.stop()


def test_an_incident_on_real_roads_raises_the_alarm_and_lights_its_detectors(roads, service, tmp_path):
    centre = roads.sensors.index("773062")
    near = np.flatnonzero((roads.adjacency[centre] > 0) | (np.arange(roads.n_sensors) == centre))
    slowed = {roads.sensors[i] for i in near}
    assert len(slowed) == 13
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
        window.settled(f"/Named by an alarm/.test({LIT})")
        lit = window.run(f"return {LIT}.split('Named by an alarm')[1].match(/7\\d{{5}}/g)")
        named = window.run("return document.querySelector('.incident').textContent.match(/7\\d{5}/g)")
        assert len(lit) >= 3 and slowed.issuperset(lit) and slowed.issuperset(named), (lit, named, slowed)
        assert window.console() == []
        bright = window.run(BRIGHT, [roads.sensors.index(name) for name in lit])
        assert min(bright) > 0.5 > max(window.run(BRIGHT, far_from(roads, near))), bright


BRIGHT = """
const { map, places } = shown.board, alarm = rgb(colours().alarm);
return arguments[0].map((i) => {
  const reach = places.dot * 1.7 + 3;
  const around = [0, 1, 2, 3, 4, 5, 6, 7].map((k) => [Math.cos((k * Math.PI) / 4), Math.sin((k * Math.PI) / 4)]);
  const alike = around.filter((way) => {
    const at = way.map((part, axis) => Math.floor((places.places[i][axis] + reach * part) * devicePixelRatio));
    const pixel = map.pen.getImageData(...at, 1, 1).data;
    return alarm.reduce((sum, channel, c) => sum + Math.abs(channel - pixel[c]), 0) < 120;
  });
  return alike.length / 8;
});
"""  # share of the ring around each of these sensors that has the colour of alarms


def far_from(roads, near):
    """Ten detectors far from these."""
    place = np.asarray(roads.coordinates)
    away = np.sqrt(((place[:, None] - place[near][None]) ** 2).sum(axis=-1)).min(axis=1)
    return np.argsort(-away)[:10].tolist()
