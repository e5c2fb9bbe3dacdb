"""Readings no sensor gives: a word about every absurd one, and none of those whose squares are no numbers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf
from jointset.cli import app
from jointset.inputs.outliers import absurd_readings, warn_absurd, warn_codes
from jointset.methods import predictor_for
from jointset.writing import write_panel

PANEL = generate_grssf("A", n=8, seed=3, length=900).panel
CALM = PANEL.with_values(60.0 + 7.0 * PANEL.values)


def spoiled(value: float, row: int = 17, sensor: int = 3) -> Panel:
    values = CALM.values.copy()
    values[row, sensor] = value
    return CALM.with_values(values)


@pytest.mark.parametrize("value", [1e30, -1e30, 1e9, -9.99e8])
@pytest.mark.parametrize("method", ["kalman", "ewma", "copula"])
def test_an_absurd_reading_in_training_is_named(method: str, value: float) -> None:
    with pytest.warns(UserWarning, match="is absurd") as caught:
        predictor_for(method).fit(spoiled(value)[:500])
    (text,) = [str(one.message) for one in caught if "absurd" in str(one.message)]
    assert f"{value:g}" in text and "'s003'" in text and "row 17 (from 0), 1970-01-01T01:25:00Z" in text
    assert "training rows" in text and "cell empty" in text and "\n" not in text


def test_an_absurd_reading_in_calibration_is_named() -> None:
    fitted = JointPredictor(GraphLGSSM()).fit(CALM[:500])
    with pytest.warns(UserWarning, match=r"'s003'.*row 17 .*calibration rows.*1e\+30"):
        fitted.calibrate(spoiled(1e30, row=517)[500:])


def test_the_worst_of_several_is_named_and_the_others_counted() -> None:
    values = spoiled(1e20).values.copy()
    values[40, 5], values[41, 5], values[42, 3] = 1e30, 1e15, 1e15
    with pytest.warns(UserWarning, match=r"'s005'.*row 40 .*and 3 more"):
        warn_absurd(CALM.with_values(values), "training")


@pytest.mark.parametrize("value", [1e101, -1e308, 1e155])
def test_readings_whose_squares_are_no_numbers_are_refused(value: float) -> None:
    place = r"sensor 's003', row 17 \(from 0\), 1970-01-01T01:25:00Z"
    fitted = JointPredictor(GraphLGSSM()).fit(CALM[:500])
    calibrated = JointPredictor(GraphLGSSM()).fit(CALM[:500]).calibrate(CALM[500:])
    for call in (
        lambda: JointPredictor(GraphLGSSM()).fit(spoiled(value)),
        lambda: predictor_for("copula").fit(spoiled(value)),
        lambda: fitted.calibrate(spoiled(value)),
        lambda: calibrated.run(spoiled(value)),
        lambda: predictor_for("spci").fit(CALM[:500]).calibrate(spoiled(value)),
    ):
        with pytest.raises(InputError, match=place) as caught:
            call()
        assert "too large" in str(caught.value) and "\n" not in str(caught.value)


def test_an_update_that_would_swamp_the_filter_is_refused() -> None:
    predictor = JointPredictor(GraphLGSSM()).fit(CALM[:500]).calibrate(CALM[500:])
    center = predictor.predict().center
    with pytest.raises(InputError, match=r"sensor 's002': -1e\+200 is too large to be scored"):
        predictor.update(np.r_[1.0, 2.0, -1e200, np.full(5, np.nan)])
    np.testing.assert_array_equal(predictor.predict().center, center)


def sparse(share: float, size: float) -> Any:
    """Mostly zero, with bursts: rain, or traffic on a line."""
    rng = np.random.default_rng(1)
    return np.where(rng.random(5000) < share, size * rng.lognormal(0, 1.5, 5000), 0.0)


USUAL = {
    "normal": np.random.default_rng(0).normal(5, 2, 5000),
    "heavy tails": np.random.default_rng(0).standard_t(1.5, 5000),
    "rain": sparse(0.05, 2.0),
    "bursts of bytes": sparse(0.01, 1e8),
    "large units": 1e20 * np.random.default_rng(0).lognormal(0, 1, 5000),
    "small units": 1e-20 * np.random.default_rng(0).lognormal(0, 1, 5000),
    "a switch": np.repeat([0.0, 1.0], 2500),
    "a switch thrown once": np.r_[np.zeros(4999), 1.0],
    "a level that jumps": np.r_[np.random.default_rng(0).normal(5, 0.01, 2500), np.full(2500, 900.0)],
    "mostly gaps": np.where(np.arange(5000) % 700, np.nan, np.arange(5000.0)),
    "a count": np.arange(5000.0) * 1e9,
}


@pytest.mark.parametrize("kind", USUAL)
def test_usual_readings_get_no_word(kind: str) -> None:
    values = np.column_stack([USUAL[kind], USUAL["normal"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(absurd_readings(values)) == 0


@pytest.mark.parametrize("kind", [kind for kind in USUAL if kind != "large units"])
def test_an_absurd_one_among_usual_readings_is_found(kind: str) -> None:
    values = np.column_stack([USUAL["normal"], USUAL[kind]])
    values[4321, 1] = -1e30
    assert absurd_readings(values).tolist() == [[4321, 1]]


def test_the_command_line_says_it_and_still_writes_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_panel(spoiled(1e30), "readings.csv")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = CliRunner().invoke(app, ["fit", "readings.csv", "--out", "model", "--method", "kalman-tuned"])
    assert done.exit_code in (0, 3) and (tmp_path / "model" / "model.json").exists()
    assert any("'s003'" in str(one.message) and "1e+30" in str(one.message) for one in caught)
    write_panel(spoiled(1e308), "readings.csv")
    done = CliRunner().invoke(app, ["fit", "readings.csv", "--out", "other", "--method", "kalman-tuned"])
    assert done.exit_code == 2 and "too large" in done.stderr and not (tmp_path / "other").exists()


def test_a_model_that_is_not_finite_is_never_saved(tmp_path: Path) -> None:
    predictor = JointPredictor(GraphLGSSM()).fit(CALM[:500]).calibrate(CALM[500:])
    predictor.save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    for name, value, said in (
        ("filter_state", predictor.filter_state._replace(mean=np.full(8, np.nan)), "filter_state.mean|centre"),
        ("scale", np.full(8, np.inf), "scale"),
        ("calibration_state", predictor.calibration_state._replace(radius=np.nan), "radius|bounds"),
        ("calibration_scores", np.full(predictor.n_calibration, np.nan), "calibration_scores"),
    ):
        broken = predictor.copy()
        setattr(broken, name, value)
        broken._pending = None
        with pytest.raises(InputError, match=f"model is not written: .*({said})") as caught:
            broken.save(tmp_path / "model")
        assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before


def test_a_code_for_missing_among_the_readings_is_told() -> None:
    values = CALM.values.copy()
    values[::7, 2] = -9999.0
    told = r"sensor '.*' reads -9999 in .* of the .* training rows.* leave these cells"
    with pytest.warns(UserWarning, match=told) as alone:
        warn_codes(CALM.with_values(values), "training")
    assert "more sensor" not in str(alone[0].message)
    values[:, 4] = 50.0 + np.where(np.arange(len(values)) % 9, np.sin(values[:, 4]), -149.0)
    with pytest.warns(UserWarning, match=r"\(and so does 1 more sensor\)"):
        warn_codes(CALM.with_values(values), "training")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_codes(CALM, "training")
        values = CALM.values.copy()
        values[:, 2] = np.linspace(0.0, 99.0, len(values))  # a percentage may well reach 99
        warn_codes(CALM.with_values(values), "training")


def test_a_moving_covariance_goes_on_after_rows_no_sensor_gives() -> None:
    """Its run did not, from 1e9 standard deviations on: a matrix that was not positive definite."""
    fitted = predictor_for("ewma+aci").fit(CALM[:500]).calibrate(CALM[500:700])
    for spoiled_sensors in (slice(2, 3), slice(None)):
        values = CALM.values[700:].copy()
        values[20, spoiled_sensors] = 1e14
        run, live = fitted.copy().run(CALM[700:].with_values(values)), fitted.copy()
        steps = [live.update(row) for row in values]
        np.testing.assert_allclose([step.score for step in steps], run.score, rtol=1e-3)
        assert [step.inside for step in steps] == run.inside.tolist()
        assert not run.inside[20] and run.inside[30:].mean() > 0.8


def test_an_absurd_reading_of_later_rows_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model ends after them, and `predict --save` goes on from there."""
    monkeypatch.chdir(tmp_path)
    write_panel(spoiled(1e12, row=880), "readings.csv")
    write_panel(CALM, "calm.csv")
    for command in (
        ["fit", "readings.csv", "--out", "model", "--method", "ewma"],
        ["predict", "model", "readings.csv"],
    ):
        with pytest.warns(UserWarning, match=r"'s003', row \d+ .* of the (test|new) rows: 1e\+12 is absurd"):
            done = CliRunner().invoke(app, command)
        assert done.exit_code in (0, 3), done.output
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        done = CliRunner().invoke(app, ["predict", "model", "calm.csv"])
    assert done.exit_code == 0 and "absurd" not in done.output
