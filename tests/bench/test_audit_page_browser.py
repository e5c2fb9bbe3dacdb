"""The page of audits in a real browser: nothing to scroll sideways on a phone, no word from the console."""

from browser import browser, needed
from jointset import GraphLGSSM, JointPredictor, generate_grssf
from jointset.audits.collect import audit
from jointset.audits.page import write_page

pytestmark = needed


def test_the_page_fits_a_phone_and_shows_the_light_first(tmp_path):
    train, _, calibration, test = generate_grssf("A", n=8, seed=0, length=6000).panel.split()
    predictor = JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration)
    page = tmp_path / "audits.html"
    write_page(page, {"a model on 600 rows of later-readings-of-the-whole-network.csv": audit(predictor, test)})
    with browser(tmp_path) as window:
        window.open(page, width=390, height=844)
        assert window.run("return document.documentElement.scrollWidth") <= 390
        first = window.run(
            "const b = document.querySelector('.light').getBoundingClientRect(); return b.top + b.height"
        )
        assert first < 844
        small = window.run(
            "return Math.min(...[...document.querySelectorAll('p, li, h3, summary')]"
            ".map((one) => parseFloat(getComputedStyle(one).fontSize)))"
        )
        assert small >= 14 and window.console() == []
