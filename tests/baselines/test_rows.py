"""What every comparison row must keep: it steps as it runs, sees no future, survives storage, says what it needs."""

import warnings

import numpy as np
import pytest

from jointset.baselines.catalogue import CATALOGUE, NAMES, entry
from jointset.baselines.rows import ROWS, parse, row, run_row
from jointset.datasets import generate_grssf
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.methods import METHODS, load_predictor, predictor_for
from jointset.panel import Panel

COMPONENTS = ("factor", "group", "spectral", "per-group-factor")
CHECKED = [*ROWS, "kalman", "ewma:box", "local:box", "factor+aci", "group+agaci", "spectral+dtaci", "factor+pid"]


@pytest.fixture(scope="module")
def panel():
    made = generate_grssf("B", n=8, seed=3, length=1500).panel
    return Panel(made.values, made.sensors, timestamps=900 * np.arange(1500), adjacency=made.adjacency)


def calibrated(name, panel, **options):
    return predictor_for(name, alpha=0.2, **options).fit(panel[:700]).calibrate(panel[700:1200])


def refusal(call, *args, **options):
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
@pytest.mark.parametrize("name", CHECKED)
def test_a_run_is_its_steps(name, gaps, panel):
    test = panel[1200:1300]
    if gaps:
        values = test.values.copy()
        values[np.random.default_rng(0).random(values.shape) < 0.05] = np.nan
        values[7] = np.nan
        test = test.with_values(values)
    predictor = calibrated(name, panel)
    run = predictor.copy().run(test)
    for t, y in enumerate(test.values):
        region = predictor.predict()
        outcome = predictor.update(y)
        assert outcome.inside == run.inside[t]
        if outcome.observed == len(y):
            assert outcome.inside == bool(region.contains(y)) == bool(run.regions[t].contains(y))
        np.testing.assert_allclose(region.bounds[0], run.lower[t], atol=1e-8)
        np.testing.assert_allclose(region.bounds[1], run.upper[t], atol=1e-8)
        np.testing.assert_allclose(region.log_volume, run.log_volume[t], atol=1e-8)
        np.testing.assert_allclose(outcome.score, run.score[t], rtol=1e-7)


@pytest.mark.parametrize("name", CHECKED)
def test_no_set_sees_its_own_reading_or_a_later_one(name, panel):
    changed = panel.values.copy()
    changed[1230:] = np.random.default_rng(1).normal(size=changed[1230:].shape) * 50
    run = calibrated(name, panel).run(panel[1200:1300])
    other = calibrated(name, panel).run(panel.with_values(changed)[1200:1300])
    for part in ("lower", "upper", "log_volume", "radius"):
        np.testing.assert_array_equal(getattr(run, part)[:31], getattr(other, part)[:31])
    assert not np.array_equal(run.lower[32:], other.lower[32:])


@pytest.mark.parametrize("name", CHECKED)
def test_a_saved_row_goes_on_where_it_was(name, panel, tmp_path):
    predictor = calibrated(name, panel)
    predictor.run(panel[1200:1250], regions=False)
    predictor.save(tmp_path / "model")
    back = load_predictor(tmp_path / "model")
    assert type(back) is type(predictor)
    first, second = (one.run(panel[1250:1300], regions=False) for one in (predictor, back))
    np.testing.assert_array_equal(first.lower, second.lower)
    np.testing.assert_array_equal(first.inside, second.inside)


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
    assert sorted(NAMES) == sorted(METHODS)
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
