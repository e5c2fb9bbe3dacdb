"""Gaps filled: the conditional law, intervals that hold as often as they say, and the doors to both."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import GraphLGSSM, JointPredictor, Panel, load
from jointset.cli import app
from jointset.errors import InputError
from jointset.methods import predictor_for
from jointset.predicting.imputation import AGES, HIDDEN, _hidden, _quantiles, impute_rows, start_filling
from jointset.streaming import Stream

METHODS = ("static", "ewma+aci", "kalman", "factor", "copula", "multidim-spci-empirical")


def river(rows, n=10, seed=0):
    """Sensors on a line: a slow wave that all follow, neighbours most alike."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
    h, out = np.zeros(n), []
    for _ in range(rows):
        h = 0.95 * h + root @ rng.normal(size=n)
        out.append(20.0 + 3.0 * h + 0.5 * rng.normal(size=n))
    A = (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1).astype(float)
    return Panel(np.array(out), [f"g{i}" for i in range(n)], 600 * np.arange(rows), A)


PANEL = river(1600)


def with_gaps(values, seed=1, share=0.2):
    hidden = np.random.default_rng(seed).random(values.shape) < share
    return np.where(hidden, np.nan, values), hidden


@pytest.fixture(scope="module")
def predictors():
    made = {}

    def make(name):
        if name not in made:
            made[name] = predictor_for(name).fit(PANEL[:800]).calibrate(PANEL[800:1200])
            made[name].learn_to_fill(PANEL[800 if name == "ewma+aci" else 1100 : 1200])
        return made[name].copy()

    return make


def test_a_gap_is_filled_with_its_mean_given_what_was_read(predictors):
    predictor, y = predictors("static"), PANEL.values[1200].copy()
    y[[2, 7]] = np.nan
    law, rest = predictor.predict().law, [0, 1, 3, 4, 5, 6, 8, 9]
    S = law.covariance.matrix
    gain = S[np.ix_([2, 7], rest)] @ np.linalg.inv(S[np.ix_(rest, rest)])
    filled = predictor.impute(y)
    np.testing.assert_allclose(filled.values[[2, 7]], law.mean[[2, 7]] + gain @ (y - law.mean)[rest])
    np.testing.assert_array_equal(filled.values[rest], y[rest])
    np.testing.assert_array_equal(filled.lower[rest], y[rest])
    assert (filled.lower < filled.values)[[2, 7]].all() and (filled.values < filled.upper)[[2, 7]].all()


@pytest.mark.parametrize("name", METHODS)
def test_every_kind_of_method_fills_and_its_sets_stay(name, predictors):
    predictor, plain = predictors(name), predictors(name)
    values, _ = with_gaps(PANEL.values[1200:1215])
    values[4] = np.nan
    for y in values:
        filled = predictor.impute(y)
        assert np.isfinite(filled.values).all() and np.isfinite(filled.lower).all() and np.isfinite(filled.upper).all()
        np.testing.assert_array_equal(predictor.predict().bounds, plain.predict().bounds)
        assert predictor.update(y).score == pytest.approx(plain.update(y).score, nan_ok=True)


def test_intervals_hold_as_often_as_they_say_and_fills_beat_the_last_value(predictors):
    test = PANEL[1200:]
    values, hidden = with_gaps(test.values)
    found = impute_rows(predictors("ewma+aci"), test.with_values(values))
    inside = ((found.lower <= test.values) & (test.values <= found.upper))[hidden]
    assert 0.86 <= inside.mean() <= 0.94, f"{len(inside)} hidden readings"
    last = values.copy()
    for t in range(len(last)):
        before = PANEL.values[1199] if t == 0 else last[t - 1]
        last[t] = np.where(np.isnan(last[t]), before, last[t])

    def rmse(guess):
        return np.sqrt(np.mean((test.values - guess)[hidden] ** 2))

    assert rmse(found.values) < 0.9 * rmse(last)


def test_a_silent_sensor_stays_near_its_neighbours(predictors):
    """In a long gap the mean is told from filled rows, not from the last value."""
    test = PANEL[1200:1300]
    values = test.values.copy()
    values[5:, 4] = np.nan
    found = impute_rows(predictors("ewma+aci"), test.with_values(values))
    off = np.abs(found.values[50:, 4] - test.values[50:, 4]).mean()
    stale = np.abs(test.values[4, 4] - test.values[50:, 4]).mean()
    assert off < 0.5 * stale


def test_intervals_adapt_where_the_rule_does(predictors):
    """The noise of all sensors grows threefold: those under ACI follow, those under the split rule do not."""
    rng, test = np.random.default_rng(3), PANEL[1200:1450]
    wild = test.values + 3.0 * rng.normal(size=test.values.shape)
    values, hidden = with_gaps(wild)
    hidden[:100] = False
    shares = {}
    for name in ("ewma+aci", "static"):
        found = impute_rows(predictors(name), test.with_values(values))
        shares[name] = ((found.lower <= wild) & (wild <= found.upper))[hidden].mean()
    assert shares["static"] < 0.75 < 0.85 < shares["ewma+aci"]


def test_nobody_has_been_silent_when_filling_starts(predictors):
    assert start_filling(predictors("static")).silent.tolist() == [0] * PANEL.n_sensors


def test_a_share_of_the_readings_is_hidden_for_every_length_of_silence():
    hidden = _hidden((4000, 5), np.random.default_rng(0))
    assert hidden.mean() == pytest.approx(HIDDEN, abs=0.04)
    runs = np.diff(np.flatnonzero(np.diff(np.r_[0, hidden[:, 0].astype(int), 0])))[::2]
    assert runs.min() == 1 and runs.max() >= AGES[-1]


def test_a_sensor_that_errs_twice_as_much_has_intervals_twice_as_wide():
    rng = np.random.default_rng(0)
    read, hidden = np.abs(rng.normal(size=(2, 2000, 1))) * np.array([1.0, 2.0])
    found = _quantiles(hidden, np.zeros(hidden.shape, int), read, 0.1)
    assert found.sensors[1] == pytest.approx(2.0 * found.sensors[0])
    np.testing.assert_allclose(found.ages[0] * found.sensors, 1.645 * np.array([1.0, 2.0]), rtol=0.05)


def test_the_first_call_learns_from_the_calibration_rows():
    predictor = JointPredictor(GraphLGSSM()).fit(PANEL[:300]).calibrate(PANEL[300:460])
    y = PANEL.values[460].copy()
    y[0] = np.nan
    first = predictor.impute(y)
    again = JointPredictor(GraphLGSSM()).fit(PANEL[:300]).calibrate(PANEL[300:460]).learn_to_fill(PANEL[300:460])
    np.testing.assert_array_equal(first, again.impute(y))
    assert predictor.calibrate(PANEL[300:460]).fill_quantiles is None


def test_a_saved_model_goes_on_filling(predictors, tmp_path):
    predictor, (values, _) = predictors("ewma+aci"), with_gaps(PANEL.values[1200:1230])
    for y in values[:20]:
        predictor.impute(y)
        predictor.update(y)
    predictor.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for y in values[20:]:
        np.testing.assert_array_equal(loaded.impute(y), predictor.impute(y))
        loaded.update(y), predictor.update(y)
    bare = JointPredictor(GraphLGSSM()).fit(PANEL[:300]).calibrate(PANEL[300:460])
    bare.save(tmp_path / "bare")
    with pytest.raises(InputError, match="fit it with --impute"):
        load(tmp_path / "bare").impute(values[0])


# ---------------------------------------------------------------------- doors


def test_a_stream_says_what_fills_the_gaps_as_a_past_file_does(predictors):
    test, predictor = PANEL[1200:1210], predictors("ewma+aci")
    values, _ = with_gaps(test.values)
    expected = impute_rows(predictor, test.with_values(values))
    lines = [json.dumps([None if np.isnan(v) else v for v in row]) for row in values.tolist()]
    answers = list(Stream(predictor.copy(), impute=True).answers(lines))
    for t, answer in enumerate(answers):
        gaps = np.flatnonzero(np.isnan(values[t]))
        assert list(answer.get("imputed", {})) == [PANEL.sensors[i] for i in gaps]
        for i in gaps:
            cell = answer["imputed"][PANEL.sensors[i]]
            assert cell["value"] == pytest.approx(expected.values[t, i])
            assert cell["upper"] == pytest.approx(expected.upper[t, i])
    assert "imputed" not in next(iter(Stream(predictor.copy()).answers(lines)))


def test_the_command_fills_a_file(tmp_path):
    def jointset(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    history, rows, model = tmp_path / "history.csv", tmp_path / "rows.csv", tmp_path / "model"
    PANEL[:400].to_pandas().to_csv(history)
    values, hidden = with_gaps(PANEL.values[400:420])
    PANEL[400:420].with_values(values).to_pandas().to_csv(rows)
    fitted = jointset("fit", history, "--method", "kalman", "--impute", "--out", model)
    assert fitted.exit_code in (0, 3), fitted.output
    gaps, filled = tmp_path / "gaps.csv", tmp_path / "filled.csv"
    done = jointset("impute", model, rows, "--out", gaps, "--filled", filled, "--min", 0)
    assert done.exit_code == 0, done.output
    assert f"{hidden.sum()} gaps of 200 readings filled" in done.output
    table, whole = gaps.read_text().splitlines(), Panel.read(filled)
    assert table[0] == "time,sensor,value,lower,upper" and len(table) == 1 + hidden.sum()
    assert whole.mask.all()
    np.testing.assert_allclose(whole.values[~hidden], values[~hidden])
    assert min(float(line.split(",")[3]) for line in table[1:]) >= 0.0
    beside = tmp_path / "beside.csv"
    both = jointset("predict", model, rows, "--impute", beside, "--min", 0)
    assert both.exit_code == 0 and f"{hidden.sum()} gaps filled" in both.output, both.output
    assert beside.read_text() == gaps.read_text()
    refused = jointset("predict", model, "--impute", tmp_path / "none.csv")
    assert refused.exit_code == 2 and "--impute" in refused.output and not (tmp_path / "none.csv").exists()
    refused = jointset("impute", model, rows)
    assert refused.exit_code == 2 and "--out" in refused.output
    refused = jointset("impute", model, rows, "--out", tmp_path / "gaps.txt")
    assert refused.exit_code == 2 and not (tmp_path / "gaps.txt").exists()
