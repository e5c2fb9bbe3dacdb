"""`jointset bench`: what a user types, reads and finds on disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from jointset.bench.results import MEASURED, read_results, read_runs, read_trace
from jointset.cli import app
from jointset.datasets import generate_grssf, registry
from jointset.datasets.download import DownloadError
from jointset.writing import write_panel

PANEL = generate_grssf("A", n=8, seed=3, length=4000).panel


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("readings") / "few.csv"
    write_panel(PANEL[:3000], file)
    return file


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("readings") / "readings.csv"
    write_panel(PANEL, file)
    return file


def bench(cells: str, methods: str, out: Path, *more: str) -> Any:
    arguments = ["bench", "--cells", cells, "--methods", methods, "--out", str(out), "--jobs", "1", *more]
    return CliRunner().invoke(app, arguments)


def settled(folder: Path) -> pd.DataFrame:
    """The rows of a folder without what differs from run to run."""
    return read_results(folder).drop(columns=[*MEASURED])


def test_rows_of_a_file_of_ones_own(readings, tmp_path):
    result = bench(f"file:{readings}", "static:ellipsoid,ewma,ewma+aci", tmp_path, "--seeds", "2")
    assert result.exit_code == 0, result.output
    table = read_results(tmp_path)
    assert table["method"].tolist() == ["static"] * 2 + ["ewma"] * 2 + ["ewma+aci"] * 2
    assert (table["n"] == 8).all() and (table["n_test"] == 400).all() and (table["n_calibration"] == 751).all()
    assert (table["width"] <= table["width_full"]).all()
    assert (table["log_volume"] <= np.log(table["width_full"]) + 0.8).all()
    assert (table["worst_window"] <= table["joint"] + 1e-12).all()
    assert (table["fit_seconds"] > 0).all() and (table["peak_mb"] > 10).all()
    assert "jointset tables" in result.stdout and "ewma+aci" in result.stdout
    (run,) = read_runs(tmp_path)
    assert run["arguments"]["methods"] == "static:ellipsoid,ewma,ewma+aci" and run["machine"]["cores"] >= 1
    for task in table["task"].unique():
        for method, arrays in read_trace(tmp_path, task).items():
            inside = table.loc[table["method"].eq(method), "joint"].iloc[0]
            assert arrays["inside"].mean() == pytest.approx(inside)


def test_the_table_tells_sizes_of_readings_in_small_units(tmp_path):
    write_panel(PANEL[:1000].with_values(1e-6 * PANEL[:1000].values), tmp_path / "small.csv")
    result = bench(f"file:{tmp_path / 'small.csv'}", "ewma", tmp_path / "out")
    assert f" {read_results(tmp_path / 'out')['width_full'][0]:.4g} " in result.output, result.output


def test_shapes_from_other_rows_are_rows_of_their_own(tmp_path):
    """Fitted on the calibration rows a shape of 30 sensors loses coverage, and says so; on others it does not."""
    plug_in = bench("grssf-a-30", "static:ellipsoid,kalman", tmp_path, "--seeds", "2")
    said = "shape fitted on the calibration rows: N/m = 0.04, expect about 0.04 less coverage than the 0.90 asked for"
    assert plug_in.exit_code == 0 and plug_in.stderr.count(said) == 1  # once for both seeds
    assert f"† static: {said}" in plug_in.stdout and re.search(r"0\.8\d\d†", plug_in.stdout)
    fresh = bench("grssf-a-30", "static:ellipsoid,kalman", tmp_path, "--seeds", "2", "--pilot", "validation")
    assert "4 rows, 2 of them already in" in fresh.stderr  # a filter has no shape
    assert "(shape" in fresh.stdout and "†" not in fresh.stdout
    table = read_results(tmp_path)
    assert table[["method", "pilot"]].to_numpy().tolist() == [
        *[["static", ""]] * 2,
        *[["static", "validation"]] * 2,
        *[["kalman", ""]] * 2,
    ]
    assert table["note"].tolist() == [said] * 2 + [""] * 4
    joint = table.groupby(["method", "pilot"])["joint"].mean()
    assert joint["static", ""] < 0.86 < 0.88 < joint["static", "validation"]
    same = bench("grssf-a-30", "static:ellipsoid", tmp_path, "--seeds", "2", "--pilot", "calibration")
    assert "2 rows, 2 of them already in" in same.stderr
    assert "did you mean 'validation'" in bench("grssf-a-30", "ewma", tmp_path, "--pilot", "validaton").stderr


def test_a_second_run_does_only_what_is_missing(readings, tmp_path):
    cell = f"file:{readings}"
    assert bench(cell, "ewma", tmp_path, "--seeds", "2").exit_code == 0
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.parquet")}
    result = bench(cell, "ewma,rolling", tmp_path, "--seeds", "3")
    assert "6 rows, 2 of them already in" in result.stderr and "4 to do" in result.stderr
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in before} == before
    assert len(read_results(tmp_path)) == 6
    again = bench(cell, "ewma,rolling", tmp_path, "--seeds", "3")
    assert again.exit_code == 0 and "0 to do" in again.stderr and "rolling" in again.stdout


def test_a_method_that_fails_is_a_row_and_the_rest_goes_on(tmp_path):
    timeless = tmp_path / "timeless.csv"
    PANEL.to_pandas().to_csv(timeless, index=False)
    for _ in range(2):  # the error is tried again, and is still one row
        result = bench(f"file:{timeless}", "time-of-day,ewma", tmp_path / "out")
        assert result.exit_code == 1
        assert "1 row is an error" in result.stderr and "needs time stamps" in result.stderr
    table = read_results(tmp_path / "out").set_index("method")
    assert table["status"].to_dict() == {"ewma": "ok", "time-of-day": "error"}
    assert "needs time stamps" in table.loc["time-of-day", "error"]
    assert np.isnan(table.loc["time-of-day", "width_full"]) and table.loc["time-of-day", "n"] == 8


def test_data_that_cannot_be_had_is_an_error_row_where_it_was_asked_for_by_name(readings, tmp_path, monkeypatch):
    def fetch(name: str) -> None:
        raise DownloadError("cannot download it: no network")

    monkeypatch.setattr(registry, "state", lambda name, **_: "not here")
    monkeypatch.setattr(registry, "fetch", fetch)
    result = bench(f"pems-bay-50,hero,file:{readings}", "ewma", tmp_path)
    assert result.exit_code == 1
    assert "metr-la-20 left out" in result.stderr
    table = read_results(tmp_path).set_index("cell")
    assert table.loc["pems-bay-50", "error"] == "cannot download it: no network"
    assert table.loc[f"file:{readings}", "status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cells", "metr-la-2o", "--methods", "ewma"], "did you mean 'metr-la-20'"),
        (["--cells", "grssf-a", "--methods", "emwa"], "did you mean 'ewma'"),
        (["--cells", "file:none.csv", "--methods", "ewma"], "no such file: none.csv"),
        (["--cells", "grssf-a", "--methods", "ewma", "--protocol", "tables"], "did you mean 'table'"),
        (["--cells", "grssf-a", "--methods", "ewma", "--backbone", "gruu"], "did you mean 'gru'"),
        (["--cells", "grssf-a", "--methods", "ewma", "--engine", "dsk"], "did you mean 'dask'"),
        (["--cells", "grssf-a", "--methods", "gnf", "--recipe", "sharp"], "unknown recipe 'sharp'"),
        (["--cells", "grssf-a", "--methods", "ewma", "--recipe", "nope"], "unknown recipe 'nope'"),
        (["--cells", "grssf-a", "--methods", "ewma", "--seeds", "0"], "--seeds 0"),
        (["--cells", "grssf-a", "--methods", "ewma", "--jobs", "0"], "--jobs 0"),
        (["--cells", "grssf-a", "--methods", "ewma", "--alpha", "1.5"], "alpha must lie strictly between"),
        (["--cells", "grssf-a", "--methods", "ewma", "--device", "tpu"], "unknown device 'tpu'"),
        (
            ["--cells", "grssf-a", "--methods", "ewma", "--device", "tpu", "--engine", "dask:x:1"],
            "unknown device 'tpu'",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_run(arguments, said, tmp_path):
    result = CliRunner().invoke(app, ["bench", *arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and said in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_run_in_which_everything_fails_ends_with_a_message(tmp_path):
    file = tmp_path / "still.csv"
    values = PANEL.values[:400].copy()
    values[:, 2] = 1.0
    write_panel(PANEL[:400].with_values(values), file)
    result = bench(f"file:{file}", "static:ellipsoid,kalman", tmp_path / "out")
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "2 rows are errors, the first: constant in the training block" in result.stderr
    assert read_results(tmp_path / "out")["status"].tolist() == ["error", "error"]


def test_an_engine_that_cannot_begin_leaves_nothing_behind(readings, tmp_path):
    pytest.importorskip("distributed")
    result = bench(f"file:{readings}", "ewma", tmp_path / "out", "--engine", "dask:nowhere")
    assert result.exit_code == 2 and "no Dask scheduler answers at nowhere" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_refused_before_anything_is_done(readings, tmp_path):
    (tmp_path / "out").write_text("mine")
    result = bench(f"file:{readings}", "ewma", tmp_path / "out")
    assert result.exit_code == 2 and len(result.stderr.strip().splitlines()) == 1
    assert "is a file" in result.stderr and (tmp_path / "out").read_text() == "mine"


def test_gaps_in_a_file_are_told(tmp_path):
    file = tmp_path / "speeds, all.csv"  # with a comma
    table = PANEL[:1500].to_pandas()
    table.index = pd.date_range("2024-01-01", periods=1500, freq="5min", name="time")
    table.drop(table.index[700:760]).to_csv(file)
    first = bench(f"file:{file}", "static:ellipsoid,kalman", tmp_path / "out")
    assert first.exit_code == 0, first.output
    assert first.stderr.count("between time stamps is not 300 s") == 1


def test_a_file_that_was_only_touched_is_the_same_file(readings, tmp_path):
    cell = f"file:{readings}"
    assert bench(cell, "ewma", tmp_path).exit_code == 0
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    later = time.time() + 60
    os.utime(readings, (later, later))
    again = bench(cell, "ewma", tmp_path)
    assert again.exit_code == 0 and "0 to do" in again.stderr and "has changed" not in again.stderr
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_a_changed_file_that_looks_as_old_as_before_is_run_again_and_stands_alone(tmp_path):
    file, out = tmp_path / "readings.csv", tmp_path / "out"
    write_panel(PANEL[:1000], file)
    assert bench(f"file:{file}", "ewma,local", out).exit_code == 0
    assert "local" in CliRunner().invoke(app, ["tables", str(out)]).stdout
    old, stat = settled(out), file.stat()
    write_panel(PANEL[1000:2500], file)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    changed = bench(f"file:{file}", "ewma", out)
    assert changed.exit_code == 0 and "1 row; 1 to do" in changed.stderr
    assert f"{file} has changed since rows of it were made: they are left out" in changed.stderr
    new = settled(out)
    assert new["method"].tolist() == ["ewma"] and new["n_test"].tolist() == [150]
    assert "local" not in CliRunner().invoke(app, ["tables", str(out)]).stdout
    assert "has changed" not in bench(f"file:{file}", "ewma", out).stderr

    write_panel(PANEL[:1000], file)  # as it was: what the table shows is always of the file of the last run
    back = bench(f"file:{file}", "ewma", out)
    assert "1 to do" in back.stderr and "has changed" in back.stderr
    pd.testing.assert_frame_equal(settled(out), old, check_exact=True)


def test_a_changed_graph_file_makes_other_rows(tmp_path):
    file, graph, out = tmp_path / "readings.csv", tmp_path / "gg.csv", tmp_path / "out"
    write_panel(PANEL[:1000], file)
    cell, edges = f"file:{file}?graph={graph}", pd.DataFrame({"from": PANEL.sensors[:-1], "to": PANEL.sensors[1:]})
    edges.to_csv(graph, index=False)
    assert bench(cell, "kalman", out).exit_code == 0
    old = read_results(out)
    edges.iloc[:3].to_csv(graph, index=False)
    changed = bench(cell, "kalman", out)
    assert changed.exit_code == 0 and "or its graph file has changed" in changed.stderr and "1 to do" in changed.stderr
    new = read_results(out)
    assert len(new) == 1 and new["data"][0] != old["data"][0] and new["width_full"][0] != old["width_full"][0]

    graph.rename(tmp_path / "gone.csv")
    gone = bench(cell, "kalman", out)
    assert gone.exit_code == 1 and "gg.csv" in gone.stderr and "kalman" not in gone.stdout
    pd.testing.assert_frame_equal(read_results(out), new)  # an error that tells nothing of the data hides no row
    (tmp_path / "gone.csv").rename(graph)
    assert "0 to do" in bench(cell, "kalman", out).stderr


def test_the_same_name_in_another_folder_is_another_file(tmp_path, monkeypatch):
    for folder, part in (("a", PANEL[:1000]), ("b", PANEL[1000:2500]), ("c", PANEL[1000:2500])):
        (tmp_path / folder).mkdir()
        write_panel(part, tmp_path / folder / "readings.csv")
    monkeypatch.chdir(tmp_path / "a")
    assert bench("file:readings.csv", "ewma", tmp_path / "out").exit_code == 0
    monkeypatch.chdir(tmp_path / "b")
    other = bench("file:readings.csv", "factor", tmp_path / "out")
    assert other.exit_code == 0 and "has changed" in other.stderr
    assert read_results(tmp_path / "out")["method"].tolist() == ["factor"]
    assert read_results(tmp_path / "out")["n_test"].tolist() == [150]
    monkeypatch.chdir(tmp_path / "c")  # a copy is no other data
    assert "0 to do" in bench("file:readings.csv", "factor", tmp_path / "out").stderr


def test_a_record_of_runs_that_cannot_be_continued_is_refused_before_any_work(readings, tmp_path):
    (tmp_path / "_run.json").write_text("[{")
    result = bench(f"file:{readings}", "ewma", tmp_path)
    assert result.exit_code == 2 and len(result.stderr.strip().splitlines()) == 1
    assert "_run.json is not valid JSON" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["_run.json"]


def test_a_single_sensor_is_told_as_one(tmp_path):
    write_panel(PANEL[:1000].select([0]), tmp_path / "one.csv")
    result = bench(f"file:{tmp_path / 'one.csv'}", "ewma", tmp_path / "out")
    assert result.exit_code == 0 and "1 sensor," in " ".join(result.stdout.split())


def test_two_runs_into_one_folder_at_once_are_refused(readings, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / "_lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = bench(f"file:{readings}", "ewma", tmp_path)
    assert result.exit_code == 2 and "another run is filling" in result.stderr


@pytest.mark.slow
def test_learned_filters_and_backbones_in_a_quick_look(few, tmp_path):
    options = ["--seeds", "2", "--backbone", "gpvar,var,gru", "--swap", "--limit-steps", "20"]
    result = bench(f"file:{few}?graph=knn", "gnf,gnf+aci,static:ellipsoid", tmp_path, *options)
    assert result.exit_code == 0, result.output
    table = read_results(tmp_path)
    assert len(table) == 2 * (2 * 4 + 1 + 2)
    assert (table["limit_steps"] == 20).all() and (table["n_test"] == 20).all()
    assert set(table.loc[table["method"].eq("gnf"), "backbone"]) == {"own", "gpvar", "var", "gru"}
    trained = table[table["method"].eq("gnf") & table["backbone"].eq("own")]
    steps, losses = read_trace(tmp_path, trained["task"].iloc[0])["gnf"]["curve"].T  # what the figures draw
    assert steps[-1] == trained["limit_steps"].iloc[0] and np.isfinite(losses).all()
    assert trained["width_full"].nunique() == 2  # a seed each
    assert table[table["method"].eq("static") & table["backbone"].eq("gpvar")]["width_full"].nunique() == 1


def start(folder: Path, cell: str) -> subprocess.Popen[bytes]:
    code = "from jointset.cli import main; main()"
    options = ["--cells", cell, "--methods", "conditional,static:ellipsoid", "--seeds", "2", "--protocol", "table"]
    command = [sys.executable, "-c", code, "bench", *options, "--out", str(folder), "--jobs", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def children(pid: int) -> list[int]:
    """Processes begun by a process, by those it began, and so on."""
    own = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return own + [later for child in own for later in children(child)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_run_that_is_killed_goes_on_and_ends_with_the_same_table(few, tmp_path):
    cell = f"file:{few}?n=6"
    whole = start(tmp_path / "whole", cell)
    whole.communicate()
    assert whole.returncode == 0
    rows = len(list((tmp_path / "whole").glob("*.parquet")))

    broken = tmp_path / "broken"
    run = start(broken, cell)
    while len(list(broken.glob("*.parquet"))) < 3:
        assert run.poll() is None
        time.sleep(0.01)
    workers = children(run.pid)
    assert len(workers) >= 2
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    kept = {file.name: file.stat().st_mtime_ns for file in broken.glob("*.parquet")}
    assert 3 <= len(kept) < rows

    again = start(broken, cell)
    _, said = again.communicate()
    assert again.returncode == 0
    assert f"{rows} rows, {len(kept)} of them already in".encode() in said
    assert {name: (broken / name).stat().st_mtime_ns for name in kept} == kept
    pd.testing.assert_frame_equal(settled(broken), settled(tmp_path / "whole"), check_exact=True)
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):  # workers of the killed run end by themselves
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_keeps_what_is_done(stop, few, tmp_path):
    run = start(tmp_path, f"file:{few}?n=6")
    while not list(tmp_path.glob("*.parquet")):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(stop)
    _, said = run.communicate()
    assert run.returncode == 130
    assert b"the same command goes on from there" in said and b"Traceback" not in said
    assert len(read_results(tmp_path)) >= 1
