"""What an alarm says of one sensor: what the others let expect, and the band of the sensor by itself."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from jointset.algebra.law_rows import others
from jointset.calibration import ACI
from jointset.calibration.own_bands import own_quantiles
from jointset.calibration.quantiles import score_quantile
from jointset.cli import app
from jointset.errors import InputError
from jointset.laws import DenseLaw, LowRankLaw
from jointset.methods import load_predictor, predictor_for
from jointset.panel import Panel
from jointset.predicting.limits import Limits, limits_asked
from jointset.streaming import Stream
from jointset.writing import write_panel

N = 6
SENSORS = tuple(f"s{i}" for i in range(N))


def laws() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(N, N))
    return {
        "dense": DenseLaw(rng.normal(size=N), root @ root.T + np.eye(N)),
        "low rank": LowRankLaw(rng.normal(size=N), rng.uniform(0.5, 2, N), rng.normal(size=(N, 2))),
        "diagonal": LowRankLaw(rng.normal(size=N), rng.uniform(0.5, 2, N), np.empty((N, 0))),
    }


@pytest.mark.parametrize("kind", laws())
@pytest.mark.parametrize("missing", [(), (1,), (0, 4, 5)])
def test_given_others_is_the_conditional_law_of_each_sensor(kind: str, missing: tuple[int, ...]) -> None:
    law = laws()[kind]
    y = np.random.default_rng(1).normal(size=N)
    y[list(missing)] = np.nan
    mean, sd = law.given_others(y)
    assert np.isnan(mean[list(missing)]).all() and np.isnan(sd[list(missing)]).all()
    for i in np.flatnonzero(~np.isnan(y)):
        rest = others(np.array([i, *missing]), N)
        alone = law.select([*rest, i]).condition(np.arange(len(rest)), y[rest])
        assert mean[i] == pytest.approx(alone.mean[0], rel=1e-9)
        assert sd[i] == pytest.approx(math.sqrt(alone.variance[0]), rel=1e-9)


@pytest.mark.parametrize("kind", laws())
def test_a_contribution_is_the_squared_distance_from_what_was_expected(kind: str) -> None:
    law, y = laws()[kind], np.random.default_rng(1).normal(size=N)
    mean, sd = law.given_others(y)
    np.testing.assert_allclose(law.contributions(y), ((y - mean) / sd) ** 2, rtol=1e-9)


def test_own_quantiles_are_order_statistics_of_what_each_sensor_has() -> None:
    ratios = np.random.default_rng(0).exponential(size=(99, 3))
    expected = [score_quantile(np.sort(column), 0.1) for column in ratios.T]
    np.testing.assert_array_equal(own_quantiles(ratios, 0.1), expected)
    ratios[:60, 1], ratios[:95, 2] = np.nan, np.nan
    assert own_quantiles(ratios, 0.1).tolist() == [expected[0], score_quantile(np.sort(ratios[60:, 1]), 0.1), math.inf]


def network(length: int, seed: int = 0) -> Panel:
    """Sensors that share most of what they do, each with a scale and a tail of its own."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(length, 1))
    values = 50 + np.arange(1, N + 1) * (shared + 0.3 * rng.standard_t(3, size=(length, N)))
    return Panel(values, SENSORS, 300 * np.arange(length))


@pytest.mark.parametrize("method", ["static", "kalman", "ewma:box+aci"])
def test_the_own_band_of_a_sensor_covers_it_at_the_level_asked_for(method: str) -> None:
    panel = network(6000)
    predictor = predictor_for(method).fit(panel[:1500]).calibrate(panel[1500:4500])
    inside = []
    for row in panel.values[4500:]:
        lower, upper = predictor.own_bounds()
        inside.append((row >= lower) & (row <= upper))
        predictor.update(row)
    np.testing.assert_allclose(np.mean(inside, axis=0), 0.9, atol=0.035)  # four standard errors
    assert np.all(predictor.predict().half_width > (upper - lower) / 2)


def test_own_bands_go_with_the_level_that_they_were_calibrated_at() -> None:
    panel = network(1200)
    predictor = predictor_for("static+aci").fit(panel[:600]).calibrate(panel[600:])
    known = [predictor.rewrapped(ACI(alpha)).usual for alpha in (predictor.alpha, 0.3)]
    assert [usual is not None and usual.own is not None for usual in known] == [True, False]


def test_an_alarm_says_what_was_expected_of_a_sensor_well_inside_its_bounds() -> None:
    """One sensor goes the other way, no further than it often goes: only the others tell that it is odd."""
    panel = network(3000)
    predictor = predictor_for("static").fit(panel[:1500]).calibrate(panel[1500:])
    row = 50 + 1.5 * np.arange(1, N + 1)
    row[2] = 50 - 1.5 * 3
    line = json.dumps(dict(zip(SENSORS, row.tolist(), strict=True)))
    (answer,) = Stream(predictor).answers([line])
    first = answer["top"][0]
    assert answer["inside"] is False and first["sensor"] == "s2"
    assert first["lower"] < first["own"][0] < first["value"] < first["own"][1] < first["upper"]
    assert first["expected"] == pytest.approx(50 + 1.5 * 3, abs=1.0)
    assert abs(first["value"] - first["expected"]) > 5 * first["expected_sd"]
    assert first["contribution"] == pytest.approx(((first["value"] - first["expected"]) / first["expected_sd"]) ** 2)


@pytest.mark.parametrize("method", ["factor", "spci", "copula"])
def test_methods_without_a_law_of_one_sensor_say_null(method: str) -> None:
    panel = network(900)
    predictor = predictor_for(method).fit(panel[:500]).calibrate(panel[500:])
    (answer,) = Stream(predictor).answers([json.dumps(panel.values[0].tolist())])
    for entry in answer["top"]:
        assert (entry["expected"], entry["expected_sd"], entry["own"]) == (None, None, [None, None])


# ---------------------------------------------------------------------- through the command line


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).poisson(2.0, size=(900, 4)).astype(float)
    write_panel(Panel(values, SENSORS[:4], 300 * np.arange(900)), "counts.csv")
    result = CliRunner().invoke(app, ["fit", "counts.csv", "--out", "model", "--method", "kalman"])
    assert result.exit_code == 0, result.output
    return tmp_path


def run(*arguments: str, **options: Any) -> Any:
    result = CliRunner().invoke(app, [*arguments], **options)
    assert result.exit_code == 0, result.output
    return result


def test_limits_cut_off_what_is_shown_and_nothing_else(counts: Path) -> None:
    row = "s0,s1,s2,s3\n1,2,3,40\n"
    free, cut = (json.loads(run("stream", "model", *asked, input=row).stdout) for asked in ((), ("--min", "0")))
    assert min(low for low, _ in free["bounds"].values()) < 0 and free["top"][0]["own"][0] < 0
    assert [low for low, _ in cut["bounds"].values()] == [max(low, 0.0) for low, _ in free["bounds"].values()]
    assert cut["top"][0]["own"][0] == 0.0 and cut["top"][0]["lower"] == 0.0
    kept = ("score", "radius", "inside", "observed")
    assert [cut[key] for key in kept] == [free[key] for key in kept]
    assert cut["top"][0]["expected"] == free["top"][0]["expected"]

    shown = json.loads(run("predict", "model", "--json", "--min", "0", "--max", "4").stdout)
    assert {tuple(ends) for ends in shown["bounds"].values()} == {(0.0, 4.0)} and shown["own"]["s0"][0] == 0.0
    low = json.loads(run("predict", "model", "--json", "--max", "0.5").stdout)
    assert set(low["mean"].values()) == {0.5}  # no number that is shown lies beyond what there can be
    table = run("predict", "model", "counts.csv", "--out", "rows.csv", "--min", "0", "--max", "4")
    plain = run("predict", "model", "counts.csv")
    assert table.stdout.splitlines()[:5] == plain.stdout.splitlines()[:5]  # coverage and sizes are those of the sets
    rows = pd.read_csv("rows.csv")
    bounds = rows[[name for name in rows if name.endswith((".lower", ".upper"))]]
    assert bounds.min().min() == 0 and bounds.max().max() == 4


def test_the_next_set_is_shown_with_the_own_band_of_every_sensor(counts: Path) -> None:
    result = run("predict", "model")
    assert "own lower" in result.stdout and "that one sensor" in result.stdout
    lower, upper = load_predictor("model").own_bounds()
    shown = json.loads(run("predict", "model", "--json").stdout)
    np.testing.assert_allclose(list(shown["own"].values()), np.stack([lower, upper], -1))


def test_limits_that_leave_nothing_are_refused() -> None:
    assert limits_asked(None, 3.0) == Limits(-math.inf, 3.0)
    with pytest.raises(InputError, match="--min 3 must be below --max 3"):
        limits_asked(3.0, 3.0)
