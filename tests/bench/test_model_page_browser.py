"""The page of a fitted model in a real browser: time by keyboard, the right sensors lit, a phone's width."""

from browser import browser, needed
from jointset import generate_grssf
from jointset.methods import predictor_for
from jointset.report.model_page import write_model_page

pytestmark = needed

HOME, RIGHT, SHIFT = "\ue011", "\ue014", "\ue008"
SLIDER, MAP = "document.querySelector('.scores canvas')", "document.querySelector('.map canvas')"


def test_an_incident_lights_its_sensors_and_a_phone_needs_no_sideways_scroll(tmp_path):
    panel = generate_grssf("A", n=12, seed=4, length=2400).panel
    values = panel.values[2000:].copy()
    values[150:250, [0, 1, 2]] -= 6.0
    values[-80:, 9] = 1.25
    predictor = predictor_for("kalman").fit(panel[:1400]).calibrate(panel[1400:2000])
    page = tmp_path / "page.html"
    write_model_page(page, "<b>odd</b>", predictor, panel[2000:].with_values(values))
    with browser(tmp_path) as window:
        window.open(page)
        window.settled(f"{MAP}.getAttribute('aria-label')")
        assert "s009" in window.run("return document.querySelector('.incidents').textContent")
        window.keys(".scores canvas", HOME + RIGHT * 20)
        window.settled(f"{SLIDER}.getAttribute('aria-valuenow') === '21'")
        window.keys(".scores canvas", SHIFT + RIGHT * 15 + SHIFT)  # ten rows each: into the incident
        window.settled(f"{SLIDER}.getAttribute('aria-valuenow') === '171'")
        window.settled(f"/score: s00[012] /.test({MAP}.getAttribute('aria-label'))")
        assert window.run("return document.querySelector('h1').textContent") == "<b>odd</b>"
        assert window.console() == []
        window.open(page, width=390, height=844)
        assert window.run("return document.documentElement.scrollWidth") <= 390
        assert window.console() == []
