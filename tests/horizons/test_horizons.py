"""Sets for the next H steps: of every kind of method, step by step and at once, through files, with gaps."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from jointset import GraphLGSSM, InputError, JointPredictor, Panel, StaticFilter, generate_grssf
from jointset.algebra.lean import Lean
from jointset.algebra.partial import GapScale
from jointset.horizons.calibrating_ahead import _laws
from jointset.horizons.direct import RIDGES, _judged, _modes, _root_mean_squares, _slopes
from jointset.horizons.passes_ahead import AheadPass
from jointset.horizons.sets_ahead import sets_ahead
from jointset.laws import DenseLaw
from jointset.methods import load_predictor, predictor_for
from jointset.scores import MaxStudentised

H = 5
PANEL = generate_grssf("B", n=8, seed=3, length=1400).panel
TRAIN, CALIBRATION, TEST = PANEL[:800], PANEL[800:1200], PANEL[1200:]


def fitted(method="static+aci", horizon=H, panel=PANEL, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = predictor_for(method, **options).fit(panel[:800])
        return predictor.calibrate(panel[800:1200], horizon=horizon)


def with_gaps(panel, share=0.15):
    values = panel.values.copy()
    values[np.random.default_rng(0).random(values.shape) < share] = np.nan
    values[1250:1253] = np.nan
    return panel.with_values(values)


METHODS = ("kalman+aci", "static+aci", "static", "ewma:box+aci", "factor+aci", "group+agaci", "var+aci", "copula+aci")


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_method_has_sets_ahead_that_hold_what_they_promise(method):
    predictor = fitted(method)
    sets = predictor.predict(horizon=H)
    lower, upper = sets.bounds
    wide_lower, wide_upper = sets.bounds_together
    assert sets.mean.shape == lower.shape == wide_lower.shape == (H, 8)
    assert (lower < sets.mean).all() and (wide_lower < lower).all() and (wide_upper > upper).all()
    assert sets.steps.contains(sets.mean).all() and sets.together.contains(sets.mean)
    ahead = predictor.run(TEST, regions=False).ahead
    assert ahead.score.shape == (200, H + 1)
    assert np.isnan(ahead.score[200 - H + 1 :, -1]).all() and not np.isnan(ahead.score[: 200 - H + 1]).any()
    assert (np.abs(ahead.coverage - 0.9) < 0.07).all()
    if "box" not in method:  # steps have much in common
        assert ahead.log_volume[:, -1].mean() < ahead.log_volume[:, :H].mean()


@pytest.mark.parametrize("method", ["kalman+aci", "static+aci", "ewma:box+aci"])
@pytest.mark.parametrize("panel", [PANEL, with_gaps(PANEL)], ids=["complete", "gaps"])
def test_a_run_equals_one_row_after_the_other(method, panel):
    whole = fitted(method, panel=panel)
    single, run = whole.copy(), whole.run(panel[1200:1260], regions=False).ahead
    for t, y in enumerate(panel.values[1200:1260]):
        sets = single.predict(horizon=H)
        np.testing.assert_allclose(sets.together.radius, run.radius[t, -1], rtol=1e-9)
        np.testing.assert_allclose(sets.together.log_volume, run.log_volume[t, -1], rtol=1e-9)
        rows = panel.values[1200 + t : 1200 + t + H]
        if t < 60 - H:
            assert sets.together.contains(rows) == (run.score[t, -1] <= run.radius[t, -1])
            assert sets.together.contains(rows.reshape(-1)) == sets.together.contains(rows)
            np.testing.assert_array_equal(sets.steps.contains(rows), run.score[t, :-1] <= run.radius[t, :-1])
            seen = ~np.isnan(rows).all(axis=1)
            errors = np.sqrt(np.nanmean((rows[seen] - sets.mean[seen]) ** 2, axis=1))
            np.testing.assert_allclose(run.error[t, seen], errors)
            assert np.isnan(run.error[t, ~seen]).all()
        single.update(y)
    np.testing.assert_allclose(single.horizon.levels, whole.horizon.levels)
    np.testing.assert_allclose(single.predict(horizon=H).bounds, whole.predict(horizon=H).bounds, rtol=1e-9)


def test_the_next_set_does_not_know_of_the_horizon():
    plain, ahead = fitted(horizon=1), fitted(horizon=H)
    assert plain.horizon is None
    for one in (plain, ahead):
        one.run(TEST[:50], regions=False)
    for y in TEST.values[50:60]:
        np.testing.assert_array_equal(plain.predict().bounds, ahead.predict().bounds)
        assert plain.update(y) == ahead.update(y)
    one = plain.predict(horizon=1)
    np.testing.assert_array_equal(np.squeeze(one.bounds), plain.predict().bounds)
    np.testing.assert_array_equal(one.together.bounds, plain.predict().bounds)


def test_ends_of_boxes_that_lean_and_of_windows_with_gaps_are_those_of_their_parts():
    law, lean = DenseLaw(np.zeros(3), np.eye(3)), Lean(np.array([[-1.0], [0.0], [1.0]]), np.array([0.4, 0.2, 0.0]))
    part = MaxStudentised(GapScale(0.9, 2.0), lean=lean).region(law, 3.0)
    sets, window = sets_ahead((part, part), tuple("abc")), np.array([[0.1, np.nan, 0.3]])
    for found in (sets.bounds, sets.bounds_together):
        np.testing.assert_array_equal(np.squeeze(found), part.bounds)
    for found in (sets.steps.bounds_for(window), sets.together.bounds_for(window)):
        np.testing.assert_array_equal(np.squeeze(found), part.bounds_for(window[0]))


@pytest.mark.parametrize("method", ["kalman+aci", "static+aci"])
def test_a_saved_model_goes_on_bit_by_bit_also_in_the_middle_of_windows(method, tmp_path):
    panel = with_gaps(PANEL)
    predictor = fitted(method, panel=panel)
    predictor.run(panel[1200:1252], regions=False)
    predictor.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    for y in panel.values[1252:1262]:
        np.testing.assert_array_equal(loaded.update(y), predictor.update(y))
        np.testing.assert_array_equal(loaded.predict(horizon=H).bounds, predictor.predict(horizon=H).bounds)
        np.testing.assert_array_equal(loaded.horizon.levels, predictor.horizon.levels)


def test_a_folder_of_an_older_version_has_no_horizon(tmp_path):
    predictor = fitted(horizon=1)
    predictor.save(tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    header = json.loads(place.read_text())
    assert header["parts"].pop("horizon") is None
    place.write_text(json.dumps(header))
    loaded = load_predictor(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict().bounds, predictor.predict().bounds)
    with pytest.raises(InputError, match=r"calibrated without a horizon: .* jointset fit --horizon 5"):
        loaded.predict(horizon=5)


def test_a_loaded_model_learns_ahead_from_the_first_half_of_what_it_is_calibrated_on(tmp_path):
    fitted(horizon=1).save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model").calibrate(PANEL[800:1200], horizon=H)
    assert abs(loaded.run(TEST, regions=False).ahead.coverage[-1] - 0.9) < 0.07


def test_what_cannot_be_promised_is_refused():
    with pytest.raises(InputError, match="a horizon must be 1 to 1000 steps, got 0"):
        fitted(horizon=0)
    with pytest.raises(InputError, match=r"calibration windows of 3 steps .* at least 27 are needed"):
        JointPredictor(GraphLGSSM()).fit(TRAIN).calibrate(PANEL[800:875], horizon=30)
    with pytest.raises(InputError, match=r"learned from windows of training rows: \d+ are too few"):
        JointPredictor(StaticFilter()).fit(PANEL[:100]).calibrate(CALIBRATION, horizon=20)
    with pytest.raises(InputError, match="calibrated for a horizon of 5, not 7: calibrate"):
        fitted().predict(horizon=7)
    with pytest.raises(InputError, match=r"readings have shape \(3, 8\), expected \(5, 8\) or \(40,\)"):
        fitted().predict(horizon=H).together.contains(np.zeros((3, 8)))


def test_the_clock_moves_the_mean_ahead():
    """A daily wave that no reading of the last hours shows: only the calendar knows when it turns."""
    rng, times = np.random.default_rng(0), 3600 * np.arange(24 * 90)
    wave = np.sin(2 * np.pi * times / 86_400)[:, None] * np.array([3.0, -2.0])
    panel = Panel(wave + rng.normal(size=wave.shape), ["a", "b"], timestamps=times)
    predictor = predictor_for("static+aci").fit(panel[:1400]).calibrate(panel[1400:1900], horizon=12)
    error = predictor.run(panel[1900:], regions=False).ahead.error
    assert np.sqrt(np.nanmean(error[:, 11] ** 2)) < 1.1  # the noise has sd 1, the wave 1.8
    mean = predictor.predict(horizon=12).mean
    predictor.expect(int(times[-1]) + 3600 * 13)  # half a day later than it would come
    assert np.abs(predictor.predict(horizon=12).mean - mean).max() > 1.0


def test_the_note_says_what_overlapping_windows_are_worth():
    predictor = fitted("kalman")
    assert predictor.horizon.note.startswith("sets for 5 steps ahead: calibration of 347 windows that overlap is worth")
    table = predictor.predict(horizon=H).to_pandas()
    assert list(table.index[0]) == [1, "s000"] and len(table) == H * 8
    ends = ["lower", "mean", "upper", "together_lower", "together_upper", "own_lower", "own_upper"]
    assert list(table.columns) == ends


def test_bands_of_single_sensors_hold_one_reading_as_often_as_sets_hold_all():
    predictor, inside = fitted("kalman"), []
    for t in range(150):
        lower, upper = predictor.predict(horizon=H).own_bounds
        rows = TEST.values[t : t + H]
        inside.append((lower <= rows) & (rows <= upper))
        predictor.update(TEST.values[t])
    assert abs(np.mean(inside) - 0.9) < 0.02
    assert (np.abs(np.mean(inside, axis=(0, 2)) - 0.9) < 0.04).all()  # at every step


def test_a_law_that_looks_at_near_sensors_is_the_whole_one_where_all_are_near():
    law = fitted("static").horizon.model
    n = law.level.shape[1]
    near = replace(law, near=np.tile(np.arange(n), (n, 1)))
    rows = TEST.values[:40]
    given = rows[2:], None, np.stack([rows[1:-1], rows[:-2]], axis=1), TEST.timestamps[2:40]
    whole = law.law(*given)
    np.testing.assert_allclose(near.law(*given).center, whole.center, rtol=1e-12, atol=1e-12)


def test_bands_of_single_sensors_are_calibrated_on_every_window_that_the_rows_hold():
    predictor = fitted("kalman")
    walk = AheadPass(predictor, predictor.horizon, CALIBRATION.values, CALIBRATION.timestamps, calibrating=True)
    for law in _laws(predictor, CALIBRATION):
        walk.see(law)
    known = np.isfinite(walk.ratios).all(axis=2).sum(axis=0)
    assert known.tolist() == [len(CALIBRATION) - h for h in range(H)]


def test_few_windows_leave_no_direction_without_variance():
    """Of 60 sensors 40 windows know at most 40 directions: the others must not count as certain."""
    covariances = _modes(np.random.default_rng(0).normal(size=(40, 3, 60)), 40 / 3)[1]
    variances = np.einsum("ihh->ih", covariances)
    assert variances.min() > 0.5 and np.allclose(variances.mean(axis=0), 1.0)
    assert np.linalg.eigvalsh(covariances).min() > 1e-3


def test_many_windows_give_the_directions_of_the_first_step_and_their_covariances():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 20_000, 4))
    root = np.linalg.cholesky(
        np.array([[1.0, 0.6, 0.2, 0.1], [0.6, 1, 0.3, 0.2], [0.2, 0.3, 1, 0.4], [0.1, 0.2, 0.4, 1]])
    )
    z = np.stack([one, 0.8 * one + 0.6 * two], axis=1) @ root.T  # correlation 0.8 from step to step in all directions
    basis, K = _modes(z, 1e9)
    variances = basis.T @ root @ root.T @ basis
    first = basis.T @ z[:, 0].T @ z[:, 0] @ basis / len(z)
    np.testing.assert_allclose(first, np.diag(first.diagonal()), atol=1e-9)
    np.testing.assert_allclose(K[:, 0, 0], variances.diagonal(), atol=0.05)
    np.testing.assert_allclose(K[:, 0, 1] / np.sqrt(K[:, 0, 0] * K[:, 1, 1]), 0.8, atol=0.02)


def test_a_sensor_that_was_never_read_errs_as_the_others_do():
    errors = np.tile([[[3.0, 1.0, np.nan], [3.0, 5.0, 5.0]]], (4, 1, 1))  # (windows, steps, sensors)
    errors[0, 1, 2] = np.nan
    np.testing.assert_allclose(_root_mean_squares(errors), [[3.0, 1.0, 3.0], [3.0, 5.0, 5.0]])
    assert (_root_mean_squares(np.full((4, 2, 3), np.nan)) == 1.0).all()
    assert (_root_mean_squares(np.zeros((4, 2, 3))) > 0.0).all()


def test_errors_grow_with_the_variance_of_the_law_as_they_did():
    rng = np.random.default_rng(0)
    logs, truth = rng.normal(size=(4000, 3)), np.array([0.9, 0.4])
    errors = np.exp(0.5 * truth[:, None] * logs[:, None, :]) * rng.normal(size=(4000, 2, 3))
    slope, usual = _slopes(errors, np.exp(logs + np.array([0.0, 5.0, -5.0])))
    np.testing.assert_allclose(slope, truth, atol=0.05)
    np.testing.assert_allclose(usual, [0.0, 5.0, -5.0], atol=0.1)
    np.testing.assert_array_equal(
        _slopes(errors, np.full((4000, 3), 2.0))[0], 0.0
    )  # one that stands still says nothing
    assert (_slopes(1.0 / errors, np.exp(logs))[0] == 0.0).all()  # nor does one that goes the wrong way
    np.testing.assert_array_equal(_slopes(errors, None)[0], 0.0)


@pytest.mark.parametrize("near", [False, True])
def test_the_ridge_is_the_one_that_errs_least_on_later_windows(near):
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(400, 6)), 2
    told = X[:, :4] @ rng.normal(size=(4, 4)) + 3.0
    columns = np.tile(np.arange(6), (n, 1)) if near else None
    clear, errors = _judged(X, told + 0.01 * rng.normal(size=told.shape), columns, 300, 290)
    assert clear == min(RIDGES) and errors.shape == (100, 4) and np.abs(errors).max() < 0.1
    noise = rng.normal(size=(60, 4))
    assert _judged(rng.normal(size=(60, 6)), noise, columns, 40, 30)[0] == max(RIDGES)


@pytest.mark.parametrize("order", [("static", "factor"), ("factor", "static")])
def test_models_with_and_without_variances_step_in_one_process(order):
    panel = generate_grssf("A", n=8, seed=1, length=1200).panel
    for name in order:
        predictor = predictor_for(name).fit(panel[:600]).calibrate(panel[600:1000], horizon=3)
        live, run = predictor.copy(), predictor.run(panel[1000:1030], regions=False)
        for t in range(20):
            sets = live.predict(horizon=3)
            np.testing.assert_allclose(sets.together.log_volume, run.ahead.log_volume[t, -1], rtol=1e-9)
            live.update(panel.values[1000 + t])


def test_sets_ahead_go_by_labels():
    predictor = fitted("static")
    sets, rows = predictor.predict(horizon=H), PANEL[-H:]
    turned = rows.to_pandas().iloc[:, ::-1]
    np.testing.assert_array_equal(sets.steps.contains(turned), sets.steps.contains(rows.values))
    for shift in (0.0, 1e3):
        assert sets.together.contains(turned + shift) == sets.together.contains(rows.values + shift)
    assert tuple(sets.steps[1].to_pandas().index) == PANEL.sensors == sets.steps[:2].sensors


def test_sets_ahead_are_shown_in_short():
    sets = fitted("static+aci").predict(horizon=H)
    for part in (sets, sets.steps, sets.together):
        shown = repr(part)
        assert shown.startswith(f"{type(part).__name__}(steps {H}, sensors 8 (s000, ") and len(shown) < 200, shown
