"""A reading is inside when its score is at most the radius, for every method under every rule."""

from dataclasses import replace

import numpy as np
import pytest

from jointset import Panel
from jointset.calibration import RULES, calibration
from jointset.calibration.shared_level import SharedLevel
from jointset.checks import calibrated
from jointset.checks.blocks import block_with_gaps
from jointset.datasets import generate_grssf
from jointset.datasets.cells import cell
from jointset.experiments.rows import run_row
from jointset.methods import METHODS, predictor_for

WRAPS = ("split", *(name for name in RULES if name != "split"), "clock-aci")
KINDS = ("ewma:box", "per-group-factor", "copula")  # of sets


@pytest.fixture(scope="module")
def blocks():
    """A network whose noise jumps inside the test block; hourly rows, some cells of the test block empty."""
    made = generate_grssf("E", n=8, seed=3, length=1920).panel
    values = made.values.copy()
    values[1800:] *= np.where(np.arange(120) > 60, 4.0, 1.0)[:, None]
    rng = np.random.default_rng(0)
    gaps = rng.random(values.shape) < 0.1 * (np.arange(1920) >= 1800)[:, None]
    values[gaps] = np.nan
    panel = Panel(values, made.sensors, timestamps=3600 * np.arange(1920), adjacency=made.adjacency)
    return panel[:1200], panel[1200:1800], panel[1800:]


@pytest.mark.parametrize("name", KINDS)
def test_inside_is_score_at_most_radius(name, blocks):
    """At every step, for the set that was emitted, also past every calibration score, with gaps, and rule by rule."""
    train, before, test = blocks
    check_rules(predictor_for(f"{name}+split").fit(train).calibrate(before), test)


@pytest.mark.parametrize("name", METHODS)
def test_inside_is_score_at_most_radius_for_every_method_and_rule(name):
    """The readings jump to four times their size, and have gaps."""
    check_rules(calibrated(f"{name}+split"), block_with_gaps(60, jump=4.0))


def check_rules(predictor, panel):
    """All rules on one fit."""
    rules = [calibration(wrap, alpha=0.1) for wrap in WRAPS[1:]]
    if isinstance(predictor.calibration, SharedLevel):
        rules = [replace(predictor.calibration, rule=rule) for rule in rules]
    runs = predictor.run_with([predictor.rewrapped(rule) for rule in rules], panel)
    for wrap, (run, _) in zip(WRAPS, runs, strict=True):
        scored = ~np.isnan(run.score)
        np.testing.assert_array_equal(run.inside[scored], (run.score <= run.radius)[scored], err_msg=wrap)
        np.testing.assert_array_equal(run.regions.contains(panel.values)[scored], run.inside[scored])


def test_a_rule_past_every_calibration_score_believes_in_the_set_it_emits():
    """AgACI on a set with several radii: after a jump of the noise it grows beyond the pools."""
    run = run_row("group+agaci", cell("grssf-e-30"))
    assert run.radius.max() > 1.0
    assert run.joint == (run.score <= run.radius).mean() > 0.85
