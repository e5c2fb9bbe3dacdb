"""What the set of every row, geometry and wrap must keep: a reading is inside when its score is at most the radius."""

import numpy as np
import pytest

from jointset import Panel
from jointset.baselines.rows import run_row
from jointset.calibration import RULES
from jointset.datasets import generate_grssf
from jointset.datasets.cells import cell
from jointset.methods import METHODS, PUBLISHED, predictor_for

WRAPS = ("split", *(name for name in RULES if name != "split"))
SLOW = ("gnf", "gnf-node", "diag-gru", "gcn-rank0")  # trained, shortly
BOXES = ("static:box", "ewma:box", "kalman:box", "time-of-day:box")
NAMES = [name for name in (*METHODS, *BOXES) if name not in ("spci", "hopcpt", "kalman-tuned", "rolling", "local")]


@pytest.fixture(scope="module")
def blocks():
    """A network whose noise jumps inside the test block; hourly rows, some cells of the test block empty."""
    made = generate_grssf("E", n=8, seed=3, length=2400).panel
    values = made.values.copy()
    values[1800:] *= np.where(np.arange(600) > 300, 4.0, 1.0)[:, None]
    rng = np.random.default_rng(0)
    gaps = rng.random(values.shape) < 0.1 * (np.arange(2400) >= 1800)[:, None]
    values[gaps] = np.nan
    panel = Panel(values, made.sensors, timestamps=3600 * np.arange(2400), adjacency=made.adjacency)
    return panel[:1200], panel[1200:1800], panel[1800:]


@pytest.mark.parametrize("name", NAMES)
def test_inside_is_score_at_most_radius(name, blocks):
    """At every step, for the set that was emitted, also past every calibration score, with gaps, and rule by rule."""
    train, calibration, test = blocks
    training = {"training": {"steps": 5}} if name in SLOW else {}
    for wrap in WRAPS:
        if name in PUBLISHED and wrap == "split":
            continue  # without a wrap, below
        predictor = predictor_for(f"{name}+{wrap}", **training).fit(train).calibrate(calibration)
        run = predictor.run(test)
        scored = ~np.isnan(run.score)
        np.testing.assert_array_equal(run.inside[scored], (run.score <= run.radius)[scored], err_msg=f"{name}+{wrap}")
        np.testing.assert_array_equal(run.regions.contains(test.values)[scored], run.inside[scored])


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("multidim-spci")])
def test_the_middle_of_a_set_is_inside_whatever_is_missing(name, blocks):
    """Unless the set is empty; multidim-spci without a wrap has a hole there by design, for complete rows."""
    train, calibration, test = blocks
    training = {"training": {"steps": 5}} if name in SLOW else {}
    rng = np.random.default_rng(1)
    for wrap in ("", "+agaci", "+pid"):
        predictor = predictor_for(name + wrap, **training).fit(train).calibrate(calibration)
        for y in test.values[290:320]:
            region = predictor.predict()
            middle = np.array(region.center)
            middle[rng.permutation(len(middle))[: rng.integers(0, len(middle))]] = np.nan
            assert region.contains(middle) or not np.all(region.half_width > 0), f"{name}{wrap}"
            predictor.update(y)


def test_a_rule_past_every_calibration_score_believes_in_the_set_it_emits():
    """AgACI on a set with several radii: after a jump of the noise it grows beyond the pools."""
    run = run_row("group+agaci", cell("grssf-e-30"))
    assert run.radius.max() > 1.0
    assert run.joint == (run.score <= run.radius).mean() > 0.85
