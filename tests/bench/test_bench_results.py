"""The folder of a benchmark: what is written can be read, whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from scipy import stats

from jointset.bench.measures import coin, measures, steadiness, trace, winkler, worst_window
from jointset.bench.plan import Settings, Task
from jointset.bench.results import (
    COLUMNS,
    STEADY,
    read_results,
    read_runs,
    read_trace,
    write_rows,
    write_run,
    write_trace,
)
from jointset.bench.runner import run_record
from jointset.bench.task import filled
from jointset.errors import InputError
from jointset.joint_predictor import Run

TASK = Task("metr-la-20", "text", "gpvar", ("static",), (0, 1), Settings())
STAMPS = {"version": "1", "commit": "", "task": "t"}


def row(seed: int, **known) -> dict:
    return filled(TASK, "static", seed, {"started": "2026-01-01T00:00:00.000+00:00"} | known) | STAMPS


def made(T: int = 700, N: int = 4) -> Run:
    rng = np.random.default_rng(0)
    values, mean, half = rng.normal(size=(T, N)), np.zeros((T, N)), np.full((T, N), 1.5)
    values[5, 1] = np.nan
    score = np.nanmax(np.abs(values) / half, axis=1)
    sizes = {"width": half[:, 0], "width_full": 2 * half[:, 0], "log_volume": np.log(2 * half[:, 0])}
    sensors = tuple("abcd"[:N])
    times = np.arange(T) * 300
    return Run(sensors, times, values, mean, -half, half, score, np.ones(T), score <= 1, infinite_share=0.0, **sizes)


def test_rows_come_back_as_they_were_in_an_order_of_their_own(tmp_path):
    write_rows(tmp_path, "b", [row(1, joint=0.9, width_full=float("inf"))])
    write_rows(tmp_path, "a", [row(0, joint=0.8)])
    table = read_results(tmp_path)
    assert tuple(table.columns) == COLUMNS
    assert table["seed"].tolist() == [0, 1]
    assert table["joint"].tolist() == [0.8, 0.9]
    assert np.isinf(table["width_full"][1])
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path).sort_values("seed", ignore_index=True), table)


def test_a_later_row_replaces_an_error_and_never_the_other_way_round(tmp_path):
    write_rows(tmp_path, "a", [row(0, error="no memory")])
    write_rows(tmp_path, "b", [row(0, joint=0.9, started="2026-01-02T00:00:00.000+00:00")])
    write_rows(tmp_path, "c", [row(0, error="again", started="2026-01-03T00:00:00.000+00:00")])
    table = read_results(tmp_path)
    assert table["status"].tolist() == ["ok"]
    assert table["joint"].tolist() == [0.9]


def of_file(method: str, data: str, day: int, **known) -> dict:
    started = f"2026-01-{day:02}T00:00:00.000+00:00"
    return row(0, cell="file:a.csv", method=method, data=data, started=started, **known)


def test_of_a_file_only_rows_of_the_data_that_ran_last_are_read(tmp_path):
    write_rows(tmp_path, "a", [of_file("static", "aaa", 1), of_file("ewma", "aaa", 1), row(0, joint=0.8)])
    write_rows(tmp_path, "b", [of_file("static", "bbb", 2), of_file("kalman", "bbb", 2, error="no memory")])
    table = read_results(tmp_path)
    assert table["cell"].tolist() == ["file:a.csv"] * 2 + ["metr-la-20"]  # other cells are not touched
    assert table["data"].tolist() == ["bbb", "bbb", ""]
    write_rows(tmp_path, "c", [of_file("kalman", "aaa", 3)])  # back again, with what was worked out then
    found = read_results(tmp_path).query("cell == 'file:a.csv'")
    assert set(found["method"]) == {"static", "ewma", "kalman"} and set(found["data"]) == {"aaa"}


def test_rows_that_do_not_tell_their_data_are_read_until_there_are_others(tmp_path):
    write_rows(tmp_path, "a", [of_file("static", "", 1), of_file("ewma", "", 2), of_file("rolling", "", 2, error="no")])
    later = ["data", "pilot", "note"]
    old = parquet.read_table(tmp_path / "a.parquet").drop_columns(later)  # as files were before there were the columns
    parquet.write_table(old, tmp_path / "a.parquet")
    table = read_results(tmp_path)
    assert tuple(table.columns) == COLUMNS
    assert set(table["method"]) == {"static", "ewma", "rolling"} and set(table["data"]) == {""}
    write_rows(tmp_path, "b", [of_file("static", "bbb", 3)])
    assert read_results(tmp_path)[["method", "data"]].to_numpy().tolist() == [["static", "bbb"]]


def test_a_file_that_could_not_be_read_hides_no_rows(tmp_path):
    write_rows(tmp_path, "a", [of_file("static", "aaa", 1)])
    unread = [of_file(name, "", 2, error="no such file") for name in ("static", "ewma")]
    write_rows(tmp_path, "b", unread)
    table = read_results(tmp_path)
    assert dict(zip(table["method"], table["status"], strict=True)) == {"static": "ok", "ewma": "error"}


def test_other_files_in_the_folder_are_no_results(tmp_path):
    write_rows(tmp_path, "a", [row(0)])
    (tmp_path / ".a.parquet.17.tmp").write_bytes(b"half a file")
    (tmp_path / "notes.txt").write_text("mine")
    write_run(tmp_path, {"command": "jointset bench"})
    write_run(tmp_path, {"command": "jointset bench --again"})
    assert len(read_results(tmp_path)) == len(pd.read_parquet(sorted(tmp_path.glob("[!._]*.parquet")))) == 1
    assert [run["command"] for run in read_runs(tmp_path)] == ["jointset bench", "jointset bench --again"]


def test_a_folder_without_results_is_empty_and_a_missing_or_broken_one_refused(tmp_path):
    assert read_results(tmp_path).empty
    assert tuple(read_results(tmp_path).columns) == COLUMNS
    assert read_runs(tmp_path) == []
    with pytest.raises(InputError, match="no folder"):
        read_results(tmp_path / "none")
    (tmp_path / "x.parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match=r"x\.parquet cannot be read"):
        read_results(tmp_path)


def test_files_from_before_there_was_the_mean_volume_are_read_without_it(tmp_path):
    write_rows(tmp_path, "a", [row(0, joint=0.9, log_volume=0.5, log_mean_volume=0.6)])
    old = parquet.read_table(tmp_path / "a.parquet").drop_columns(["log_mean_volume", *STEADY])
    parquet.write_table(old, tmp_path / "a.parquet")
    write_rows(tmp_path, "b", [row(1, joint=0.9, log_volume=0.5, log_mean_volume=0.6)])
    table = read_results(tmp_path)
    assert table["log_volume"].tolist() == [0.5, 0.5]
    np.testing.assert_array_equal(table["log_mean_volume"], [np.nan, 0.6])


def test_a_radius_that_shrinks_and_explodes_is_no_smaller_by_the_mean_volume():
    steady = made()
    swing = np.where(np.arange(len(steady.score)) % 2 == 0, 0.02, 3.0)  # half the sets tiny, half three times as wide
    wild = replace(steady, log_volume=steady.log_volume + np.log(swing), width=steady.width * swing)
    one, other = measures(steady, 0.1), measures(wild, 0.1)
    assert other["log_volume"] < one["log_volume"] - 1.0  # the mean of logarithms takes it for smaller
    assert other["log_mean_volume"] == pytest.approx(np.log(3.0 * swing.mean()))
    assert other["log_mean_volume"] > one["log_mean_volume"]


def test_empty_sets_have_volume_zero_and_one_without_an_end_makes_the_mean_infinite():
    volume = made().log_volume.copy()
    volume[::4] = -np.inf
    found = replace(made(), log_volume=volume).summary()
    assert found["log_volume"] == -np.inf
    assert found["log_mean_volume"] == pytest.approx(np.log(0.75 * 3.0))
    endless = np.where(np.arange(len(volume)) == 1, np.inf, made().log_volume)
    assert replace(made(), log_volume=endless).summary()["log_mean_volume"] == np.inf


def test_traces_come_back_by_method(tmp_path):
    run = made()
    write_trace(tmp_path, "t", {"ewma+aci": trace(run), "ewma": trace(run)})
    found = read_trace(tmp_path, "t")
    assert set(found) == {"ewma", "ewma+aci"}
    np.testing.assert_array_equal(found["ewma"]["inside"], run.inside)
    np.testing.assert_array_equal(found["ewma"]["timestamps"], run.timestamps)
    assert found["ewma"]["score"].dtype == np.float32
    assert found["ewma"]["sensors"].tolist() == ["a", "b", "c", "d"]
    assert read_trace(tmp_path, "other") == {}


def test_steadiness_agrees_with_its_definition():
    inside = np.random.default_rng(3).random(700) < 0.85
    found, alpha = steadiness(inside, 0.1), 0.1
    for window in (30, 100, 500):
        gaps = [abs(inside[i : i + window].mean() - 0.9) for i in range(len(inside) - window + 1)]
        assert found[f"gap_{window}"] == pytest.approx(np.mean(gaps))
        assert found[f"gap_{window}_p90"] == pytest.approx(np.quantile(gaps, 0.9))
    off = [abs(inside[i : i + 30].sum() - 27) > 3 for i in range(671)]
    assert found["off_30"] == pytest.approx(np.mean(off))
    runs = "".join("1" if one else "0" for one in inside).split("1")
    assert found["longest_misses"] == max(map(len, runs))
    assert steadiness(np.ones(20, dtype=bool), alpha)["longest_misses"] == 0
    assert np.isnan(steadiness(np.empty(0, dtype=bool), alpha)["gap_30"])


def test_an_ideal_coin_has_the_figures_of_the_binomial_law():
    ideal = coin(3427, 0.1)
    assert ideal["worst_window"] == pytest.approx(0.87, abs=0.005)
    assert 0.8 < ideal["worst_hour"] < ideal["worst_window"]
    counts = np.arange(31)
    law = stats.binom(30, 0.9).pmf(counts)
    assert ideal["gap_30"] == pytest.approx(law @ np.abs(counts / 30 - 0.9), rel=0.02)
    assert ideal["off_30"] == pytest.approx(law[np.abs(counts - 27) > 3].sum(), rel=0.1)


def test_measures_agree_with_their_definitions():
    run, alpha = made(), 0.1
    found = measures(run, alpha)
    scores = []
    for t in range(len(run.values)):
        for y, low, high in zip(run.values[t], run.lower[t], run.upper[t], strict=True):
            if not np.isnan(y):
                scores.append((high - low) + 2 / alpha * max(low - y, 0) + 2 / alpha * max(y - high, 0))
    assert winkler(run, alpha) == pytest.approx(np.mean(scores))
    windows = [run.inside[i : i + 500].mean() for i in range(len(run.inside) - 499)]
    assert found["worst_window"] == pytest.approx(min(windows))
    assert worst_window(run.inside[:40]) == pytest.approx(run.inside[:40].mean())
    assert found["joint"] == run.joint
    assert (found["n"], found["n_test"]) == (4, 700)


def test_the_lowest_hour_is_that_of_the_clock():
    """Of rows with a reading; without time stamps, or at one hour alone, there is none."""
    run = made()
    assert np.isnan(measures(replace(run, timestamps=None), 0.1)["worst_hour"])
    times = 1800 * np.arange(700)
    hour, seen = times % 86_400 // 3600, ~np.isnan(run.score)
    shares = [run.inside[seen & (hour == one)].mean() for one in range(24)]
    assert measures(replace(run, timestamps=times), 0.1)["worst_hour"] == pytest.approx(min(shares))
    assert np.isnan(measures(replace(run, timestamps=86_400 * np.arange(700)), 0.1)["worst_hour"])


def test_blame_and_outside_name_the_sensor_that_misses():
    run = made()
    run.values[:, 2] = 0.0
    run.values[:50, 2] = 9.0
    run.inside[:] = True
    run.inside[:50] = False
    found = trace(run)
    assert found["blame"].tolist() == [0, 0, 1, 0]
    assert found["outside"][2] == pytest.approx(50 / 700)


def test_a_run_on_a_gpu_says_which(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    assert run_record({"arguments": {"device": "cuda"}})["machine"]["gpu"] == "a GPU"
    assert "gpu" not in run_record({"arguments": {"device": "cpu"}})["machine"]
