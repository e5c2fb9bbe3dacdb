"""Comparison rows: what they reach on a cell, what they need, and the catalogue that names them all."""

import warnings

import numpy as np
import pytest

from jointset.catalogue import ROWS
from jointset.datasets import generate_grssf
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import run_row
from jointset.methods import METHODS, parse, predictor_for, row
from jointset.panel import Panel
from jointset.paper_rows import CATALOGUE, entry


@pytest.fixture(scope="module")
def panel():
    made = generate_grssf("B", n=8, seed=3, length=1500).panel
    return Panel(made.values, made.sensors, timestamps=900 * np.arange(1500), adjacency=made.adjacency)


def refusal(call, *args, **options):
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", [*ROWS, "group+agaci", "per-group-factor+aci", "kalman", "kalman-tuned"])
@pytest.mark.parametrize("protocol", ["text", "table"])
def test_a_row_runs_through_a_cell(name, protocol):
    run = run_row(name, cell("grssf-a-30", protocol))
    assert 0.82 <= run.joint <= 1.0  # plug-in: 30 sensors, 751 scores
    assert np.isfinite(run.log_volume).all()
    assert run.log_volume.mean() <= np.log(2.0 * run.width.mean())


@pytest.mark.parametrize("name", ["static", "ewma", "rolling", "time-of-day", "local"])
def test_boxes_are_narrower_and_ellipsoids_smaller(name, panel):
    """On correlated residuals: the projection of an ellipsoid pays for all sensors, the box for its corners."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(3000, 1)) + 0.3 * rng.normal(size=(3000, 6))
    made = Panel(common, list("abcdef"), timestamps=600 * np.arange(3000))
    runs = [
        predictor_for(one).fit(made[:1800]).calibrate(made[1800:2600]).run(made[2600:], regions=False)
        for one in (name, f"{name}:box")
    ]
    assert runs[1].width.mean() < runs[0].width.mean()
    assert runs[0].log_volume.mean() < runs[1].log_volume.mean()


# ---------------------------------------------------------------------- what a row needs


@pytest.mark.parametrize("name", ["group", "spectral", "per-group-factor"])
def test_rows_of_the_graph_refuse_a_panel_without_one(name, panel):
    message = refusal(predictor_for(name).fit, panel.with_graph(None)[:700])
    assert name in message and "graph" in message


def test_time_of_day_refuses_a_panel_without_times(panel):
    bare = Panel(panel.values, panel.sensors)
    assert "time-of-day needs time stamps" in refusal(predictor_for("time-of-day").fit, bare)
    fitted = predictor_for("time-of-day").fit(panel[:700])
    assert "time-of-day needs time stamps" in refusal(fitted.calibrate, bare)


def test_rows_refuse_too_few_rows(panel):
    assert "local needs at least k = 50" in refusal(predictor_for("local").fit, panel[:40])
    assert "rolling" in refusal(predictor_for("rolling").fit, panel[:100])
    assert "static" in refusal(predictor_for("static").fit, panel[:9])
    message = refusal(predictor_for("factor", alpha=0.05).fit(panel[:700]).calibrate, panel[700:780])
    assert "factor" in message and "at least 39" in message


def test_unknown_names_are_refused():
    assert "did you mean 'static'" in refusal(predictor_for, "statik")
    assert "geometry 'ball'" in refusal(predictor_for, "static:ball")
    assert "wrap 'acid'" in refusal(predictor_for, "static+acid")
    assert "no box form" in refusal(predictor_for, "factor:box")
    assert "leave the geometry out" in refusal(predictor_for, "copula:ellipsoid+aci")


@pytest.mark.parametrize("name", ["static", "factor", "group", "ewma", "rolling", "local"])
def test_duplicate_sensors_get_a_ridge(name, panel):
    values = np.concatenate([panel.values, panel.values[:, :1]], axis=1)
    adjacency = np.ones((9, 9)) - np.eye(9)
    twice = Panel(values, [*panel.sensors, "copy"], adjacency=adjacency)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        predictor = predictor_for(name, alpha=0.2).fit(twice[:700])
    run = predictor.calibrate(twice[700:1200]).run(twice[1200:], regions=False)
    assert 0.7 < run.joint < 0.9
    assert np.isfinite(run.log_volume).all()
    if name in ("static", "group"):
        assert any("ridge" in str(one.message) and name in str(one.message) for one in told)


# ---------------------------------------------------------------------- catalogue


def test_the_catalogue_has_every_method_once():
    assert sorted({one.name.partition("+")[0] for one in CATALOGUE}) == sorted(METHODS)
    assert len({one.name for one in CATALOGUE}) == len(CATALOGUE)
    assert entry("per-group-factor+aci").paper == "ACI-PerGroupFactorCGIF"
    for one in CATALOGUE:
        assert parse(one.name).method in METHODS
        assert one.paper and one.mean and one.covariance and one.reference


def test_a_backbone_can_be_swapped(panel):
    from jointset.backbones import GPVARBackbone

    strong = (
        row("static", backbone=GPVARBackbone(ridge=1e6), standardize=False).fit(panel[:700]).calibrate(panel[700:1200])
    )
    assert strong.filter.backbone.ridge == 1e6
    assert strong.run(panel[1200:]).joint > 0.8
