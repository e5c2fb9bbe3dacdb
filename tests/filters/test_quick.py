"""The pool of instant experts: by name, without torch, on any panel; its own rule of the radius."""

import subprocess
import sys

import numpy as np
import pytest

from jointset import Panel, generate_grssf
from jointset.bench.names import methods_named
from jointset.calibration import ACI, Auto, Split
from jointset.datasets.cells import cell
from jointset.experiments.rows import run_rows
from jointset.filters.quick import quick
from jointset.methods import predictor_for


def test_the_radius_adapts_unless_another_rule_is_named():
    assert isinstance(predictor_for("quick").calibration.rule, Auto)
    assert isinstance(predictor_for("quick+aci").calibration, ACI)
    assert isinstance(predictor_for("quick:box+split").calibration, Split)
    assert type(predictor_for("quick+dtaci").calibration).__name__ == "DtACI"
    assert isinstance(predictor_for("var").calibration, Split)


def test_the_grid_has_every_rule_once():
    assert methods_named("grid:quick")[:3] == ["quick+split", "quick+aci", "quick+agaci"]
    assert methods_named("quick+auto,quick:ellipsoid,quick+split") == ["quick", "quick+split"]


def test_a_benchmark_gives_the_rule_of_the_name():
    runs = {name: run for name, _, run, _ in run_rows(["quick", "quick+split"], cell("grssf-a-8"))}
    assert np.ptp(runs["quick"].radius) > 0 == np.ptp(runs["quick+split"].radius)
    assert runs["quick"].joint == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(("n", "rows"), [(2, 300), (8, 300), (8, 2000)])
def test_any_panel_will_do(n, rows):
    panel = generate_grssf("A", n=8, seed=1, length=rows + 700).panel.select(range(n))
    bare = Panel(panel.values, panel.sensors)
    run = predictor_for("quick").fit(bare[:rows]).calibrate(bare[rows : rows + 400]).run(bare[rows + 400 :])
    assert np.isfinite(run.log_volume).all() and 0.84 < run.joint < 0.96


def test_no_torch_is_imported():
    program = """
import sys
from jointset import generate_grssf
from jointset.methods import predictor_for
panel = generate_grssf("A", n=8, length=900).panel
predictor_for("quick").fit(panel[:500]).calibrate(panel[500:]).predict()
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_an_outage_over_all_held_out_rows_leaves_weights_equal():
    panel = generate_grssf("A", n=8, length=900).panel
    values = panel.values.copy()
    values[-160:] = np.nan
    pool = quick().fit(panel.with_values(values))
    np.testing.assert_allclose(pool.weights, 1.0 / len(pool.members))
