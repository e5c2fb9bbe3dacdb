"""The command line: what a user types, reads and finds on disk."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from jointset.cli import app
from jointset.datasets import generate_grssf
from jointset.errors import InputError
from jointset.joint_predictor import JointPredictor
from jointset.panel import Panel
from jointset.writing import write_edges, write_panel

NETWORK = generate_grssf("A", n=8, seed=3, length=900).panel
FIT = ["fit", "readings.csv", "--out", "fitted", "--method", "kalman-tuned"]


def jointset(*arguments: str, **options: Any) -> Any:
    return CliRunner().invoke(app, list(arguments), **options)


def refused(result: Any) -> str:
    """The one line a refusal prints; everything about it is checked here."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with readings, a graph, later readings and a fitted model, copied for every test."""
    folder = tmp_path_factory.mktemp("made")
    write_panel(NETWORK[:700], folder / "readings.csv")
    write_panel(NETWORK[700:], folder / "later.csv")
    write_edges(NETWORK, folder / "edges.csv")
    graphed = ["--graph", f"{folder}/edges.csv", "--method", "kalman-tuned"]
    result = jointset("fit", f"{folder}/readings.csv", "--out", f"{folder}/model", *graphed)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import shutil

    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------------- what the commands do


def test_generate_npz_holds_everything(tmp_path: Path) -> None:
    assert jointset("generate", f"{tmp_path}/a.npz", "--n", "8", "--seed", "3", "--length", "900").exit_code == 0
    assert Panel.read(tmp_path / "a.npz") == NETWORK


def test_generate_with_a_drift_changes_the_last_tenth(tmp_path: Path) -> None:
    options = ("--n", "8", "--seed", "3", "--length", "900", "--drift", "jump")
    assert jointset("generate", f"{tmp_path}/a.npz", *options).exit_code == 0
    values = Panel.read(tmp_path / "a.npz").values
    np.testing.assert_allclose(values[:855], NETWORK.values[:855])
    assert np.std(values[855:]) > 1.5 * np.std(NETWORK.values[855:])


def test_generate_csv_and_edges_read_back_to_the_same_panel(tmp_path: Path) -> None:
    options = ["--n", "8", "--seed", "3", "--length", "900", "--graph", f"{tmp_path}/e.csv"]
    assert jointset("generate", f"{tmp_path}/a.csv", *options).exit_code == 0
    assert Panel.read(tmp_path / "a.csv", graph=tmp_path / "e.csv") == NETWORK
    assert "1970-01-01T00:00:00Z" in (tmp_path / "a.csv").read_text()


def test_generate_csv_says_where_the_graph_is(tmp_path: Path) -> None:
    result = jointset("generate", f"{tmp_path}/a.csv", "--n", "8", "--length", "30")
    assert "--graph" in result.stdout


def test_fit_says_in_a_sentence_how_the_held_out_rows_went(folder: Path) -> None:
    result = jointset(*FIT, "--graph", "edges.csv")
    sentence = r"On the last 70 rows the set contained the whole reading (\d+\.\d) % of the time \(target 90 %\)\."
    said = re.search(sentence, result.stdout)
    assert said is not None
    train, calibration, test = NETWORK[:700].split((0.7, 0.2, 0.1))
    predictor = JointPredictor.load("fitted")
    again = type(predictor)(predictor.filter).fit(train)  # the saved filter keeps what tuning chose
    assert float(said[1]) == pytest.approx(100 * again.calibrate(calibration).run(test).joint, abs=0.051)


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e6])
def test_sizes_are_told_to_three_digits_in_any_unit(folder: Path, unit: float) -> None:
    for panel, name in ((NETWORK[:700], "past.csv"), (NETWORK[700:], "next.csv")):
        write_panel(panel.with_values(unit * panel.values), name)
    assert jointset("fit", "past.csv", "--out", "scaled", "--method", "ewma").exit_code == 0
    (line,) = (line for line in jointset("predict", "scaled", "next.csv").stdout.splitlines() if "│" in line)
    joint, width, width_full, log_volume = (cell.strip() for cell in line.strip("│").split("│"))
    run = JointPredictor.load("scaled").run(Panel.read("next.csv")).summary()
    assert float(width) == pytest.approx(run["width"], rel=6e-4) and len(width) <= 9
    assert float(width_full) == pytest.approx(run["width_full"], rel=6e-4)
    assert log_volume == f"{run['log_volume']:.3f}" and joint.endswith(" %")


def test_the_fitted_model_stands_at_the_end_of_the_file(folder: Path) -> None:
    predictor = JointPredictor.load("model")
    moved = predictor.copy()
    moved.calibrate(NETWORK[490:630]).run(NETWORK[630:700])
    np.testing.assert_allclose(predictor.predict().bounds[0], moved.predict().bounds[0], rtol=1e-12)


def test_fit_says_when_there_is_no_graph(folder: Path) -> None:
    said = jointset(*FIT).stdout
    assert "No graph: sensors are not mixed." in said and "jumps of neighbourhoods raise no alarm" in said
    quick = jointset("fit", "readings.csv", "--out", "seconds", "--method", "quick").stdout
    assert "No graph: how sensors go together is learned from the readings." in quick
    assert "No graph" not in jointset(*FIT, "--graph", "edges.csv").stdout


@pytest.mark.parametrize("method", ["kalman", "kalman-tuned", "static"])
@pytest.mark.parametrize(("shape", "rule"), [("ellipsoid", "split"), ("box", "aci"), ("ellipsoid", "dtaci")])
def test_every_filter_goes_with_every_shape_and_rule(folder: Path, method: str, shape: str, rule: str) -> None:
    result = jointset(*FIT, "--filter", method, "--shape", shape, "--calibration", rule, "--alpha", "0.2")
    assert result.exit_code == 0, result.output
    assert JointPredictor.load("fitted").alpha == 0.2
    assert jointset("predict", "fitted", "later.csv").exit_code == 0


def test_predict_shows_the_next_set_as_table_and_as_json(folder: Path) -> None:
    region = JointPredictor.load("model").predict()
    table = jointset("predict", "model").stdout
    assert all(name in table for name in (*NETWORK.sensors, "lower", "mean", "upper", "radius", "width", "log_volume"))
    said = strict_json(jointset("predict", "model", "--json").stdout)
    assert said["bounds"]["s003"] == [region.bounds[0][3], region.bounds[1][3]]
    assert said["mean"]["s003"] == region.center[3]
    assert (said["radius"], said["log_volume"]) == (region.radius, region.log_volume)


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_predict_writes_one_row_a_step(folder: Path, suffix: str) -> None:
    with_gaps = NETWORK[700:].values.copy()
    with_gaps[1], with_gaps[2, 0] = np.nan, np.nan
    write_panel(NETWORK[700:].with_values(with_gaps), "gaps.csv")
    assert jointset("predict", "model", "gaps.csv", "--out", f"p.{suffix}").exit_code == 0
    readers: dict[str, Callable[[str], Any]] = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}
    table = readers[suffix](f"p.{suffix}")
    run = JointPredictor.load("model").run(NETWORK[700:].with_values(with_gaps))
    assert list(table.columns[:6]) == ["time", "score", "radius", "inside", "s000.lower", "s000.upper"]
    np.testing.assert_allclose(table["score"].astype(float), run.score, rtol=1e-9)
    np.testing.assert_allclose(table["s007.upper"], run.upper[:, 7], rtol=1e-9)
    assert table["inside"].isna().tolist() == [i == 1 for i in range(200)]  # a row without readings is neither
    assert pd.to_datetime(table["time"], utc=True)[0] == pd.Timestamp(NETWORK.timestamps[700], unit="s", tz="UTC")


def test_predict_matches_sensors_by_name(folder: Path) -> None:
    write_panel(NETWORK[700:].select(list(NETWORK.sensors[::-1])), "turned.csv")
    assert (
        jointset("predict", "model", "turned.csv", "--json").stdout
        == jointset("predict", "model", "later.csv", "--json").stdout
    )


def test_predict_changes_the_model_only_when_asked(folder: Path) -> None:
    before, expected = model_bytes(folder / "model"), JointPredictor.load("model")
    jointset("predict", "model", "later.csv")
    assert model_bytes(folder / "model") == before
    jointset("predict", "model", "later.csv", "--save")
    expected.run(NETWORK[700:])
    assert JointPredictor.load("model").predict().bounds[0].tolist() == expected.predict().bounds[0].tolist()


def test_version_and_help() -> None:
    assert re.fullmatch(r"jointset \d+\.\d+\.\d+", jointset("--version").stdout.strip())
    assert all(name in jointset("--help").stdout for name in ("demo", "generate", "fit", "predict", "stream"))


def test_help_fills_its_lines_and_groups_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "Exit code 3: it is written, but its sets held far fewer of" in jointset("fit", "--help").stdout
    panels = re.findall(r"─ ([A-Z][a-z ]+) ─", jointset("--help").stdout)
    assert panels == ["Options", "First steps", "Your readings", "Comparing and auditing", "A service"]


def test_help_needs_none_of_the_heavy_libraries() -> None:
    heavy = "{'matplotlib', 'pandas', 'jinja2', 'torch', 'sklearn'}"
    code = f"import sys, jointset.cli; print(*sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


# ---------------------------------------------------------------------- bad input


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def rewrite(path: str, change: Callable[[list[str]], list[str]]) -> None:
    Path(path).write_text("\n".join(change(lines_of(path))) + "\n")


def with_cell(line: int, column: int, text: str) -> Callable[[list[str]], list[str]]:
    def change(lines: list[str]) -> list[str]:
        cells = lines[line].split(",")
        cells[column] = text
        return [*lines[:line], ",".join(cells), *lines[line + 1 :]]

    return change


def constant(lines: list[str]) -> list[str]:
    return [lines[0], *(re.sub(r"^([^,]*),[^,]*", r"\1,4.0", line) for line in lines[1:])]


def matrix(change: Callable[[np.ndarray], Any]) -> Callable[[], None]:
    def write() -> None:
        A = np.array(NETWORK.adjacency)
        np.save("graph.npy", A if (new := change(A)) is None else new)

    return write


def edit(change: Callable[[list[str]], list[str]]) -> Callable[[], None]:
    return lambda: rewrite("readings.csv", change)


GRAPH = [*FIT, "--graph", "graph.npy"]
BAD_READINGS = {
    "missing file": (lambda: Path("readings.csv").unlink(), FIT, r"no such file: readings\.csv"),
    "empty file": (lambda: Path("readings.csv").write_text(""), FIT, r"readings\.csv is empty"),
    "ragged": (edit(lambda ls: [*ls[:5], ls[5] + ",1.0", *ls[6:]]), FIT, r"readings\.csv: line 6 has 10 cells"),
    "text cell": (edit(with_cell(9, 3, "broken")), FIT, r"line 10, column 's002': 'broken' is not a number"),
    "infinite cell": (edit(with_cell(9, 3, "inf")), FIT, r"infinite reading at line 10.*'s002'"),
    "duplicated sensor": (edit(with_cell(0, 3, "s000")), FIT, r"duplicated sensor 's000'"),
    "constant sensor": (edit(constant), FIT, r"490 steps.*'s000'"),
    "time goes back": (edit(lambda ls: [*ls[:5], ls[6], ls[5], *ls[7:]]), FIT, r"goes back"),
    "time repeats": (edit(lambda ls: [*ls[:5], ls[4], *ls[6:]]), FIT, r"repeats that of line 5"),
    "too few rows": (edit(lambda ls: ls[:251]), FIT, r"250 rows are too few: .* give 290 rows"),
    "too few rows, of a row": (
        edit(lambda ls: ls[:251]),
        [*FIT, "--method", "static+aci"],
        r"50 of them calibrate, 1 of these after the warm-up of 50, and 9 are needed for alpha=0\.1",
    ),
    "two rows": (edit(lambda ls: ls[:3]), FIT, r"2 rows are too few: .* give 290 rows"),
    "no column for time": (lambda: None, [*FIT, "--time-column", "when"], r"no column 'when' for time"),
}
BAD_GRAPHS = {
    "missing graph": (lambda: None, GRAPH, r"no such file: graph\.npy"),
    "wrong size": (matrix(lambda A: A[:7, :7]), GRAPH, r"adjacency has shape \(7, 7\), expected \(8, 8\)"),
    "asymmetric": (matrix(lambda A: A.__setitem__((0, 1), 9.0)), GRAPH, r"adjacency is not symmetric.*symmetrize"),
    "negative": (matrix(lambda A: -A), GRAPH, r"adjacency is negative"),
    "nan": (matrix(lambda A: A.__setitem__((0, 1), np.nan)), GRAPH, r"adjacency is not a finite number"),
    "unknown sensor": (
        lambda: rewrite("edges.csv", lambda ls: [*ls, "s000,elsewhere,1.0"]),
        [*FIT, "--graph", "edges.csv"],
        r"line \d+: sensor 'elsewhere' is not in the data",
    ),
}
NOTHING = lambda: None  # noqa: E731
BAD_OPTIONS = {
    "no folder to write": (NOTHING, ["fit", "readings.csv"], r"Missing option '--out' \(.* fit --help lists"),
    "no such option": (NOTHING, [*FIT, "--nope"], r"No such option:? '?--nope"),
    "no such option before the command": (NOTHING, ["--nope", *FIT], r"No such option:? '?--nope.* --help lists"),
    "no such command": (NOTHING, ["fitt"], r"No such command 'fitt'.* --help lists"),
    "no such command of data": (NOTHING, ["data", "lst"], r"No such command 'lst'"),
    "a word for a number": (NOTHING, [*FIT, "--alpha", "often"], r"Invalid value for '--alpha'"),
    "alpha 0": (NOTHING, [*FIT, "--alpha", "0"], r"alpha must lie strictly between 0 and 1, got 0"),
    "alpha 1": (NOTHING, [*FIT, "--alpha", "1"], r"alpha must lie strictly between 0 and 1, got 1"),
    "alpha nan": (NOTHING, [*FIT, "--alpha", "nan"], r"alpha must lie strictly between 0 and 1, got nan"),
    "alpha in demo": (NOTHING, ["demo", "--alpha", "2"], r"alpha must lie strictly between 0 and 1, got 2"),
    "two rules": (NOTHING, [*FIT, "--method", "ewma+aci", "--calibration", "pid"], r"ewma\+aci and pid contradict"),
    "two shapes": (NOTHING, [*FIT, "--method", "kalman:ellipsoid", "--shape", "box"], r"and box contradict each other"),
    "recipe of a filter without one": (NOTHING, [*FIT, "--recipe", "paper"], r"--recipe.*kalman-tuned is none"),
    "device of a filter without one": (NOTHING, [*FIT, "--device", "cuda"], r"--device.*kalman-tuned is none"),
    "graph of a filter that needs one": (
        NOTHING,
        [*FIT, "--method", "gnf-node", "--steps", "2"],
        r"gnf-node: .*has no graph.*diag-gru",
    ),
    "filter": (
        NOTHING,
        [*FIT, "--filter", "kalmann"],
        r"unknown method 'kalmann': did you mean 'kalman'.*`jointset methods`",
    ),
    "shape": (NOTHING, [*FIT, "--shape", "ball"], r"unknown shape 'ball': choose one of ellipsoid, box"),
    "calibration": (NOTHING, [*FIT, "--calibration", "magic"], r"unknown calibration 'magic': choose one of split"),
    "layout": (NOTHING, [*FIT, "--layout", "tall"], r"unknown layout 'tall'"),
    "warm-up": (NOTHING, [*FIT, "--warmup", "0"], r"warmup must be at least 1"),
    "shares": (NOTHING, [*FIT, "--train-share", "0.9"], r"must leave rows for calibration"),
    "drift": (NOTHING, ["generate", "a.csv", "--drift", "flood"], r"unknown drift 'flood'"),
    "track": (NOTHING, ["generate", "a.csv", "--track", "Z"], r"unknown GRSSF track 'Z': choose one of A, B, C, D, E"),
    "sensors": (NOTHING, ["generate", "a.csv", "--n", "2"], r"GRSSF needs at least 8 sensors"),
    "suffix": (NOTHING, ["generate", "a.xlsx"], r"cannot write a\.xlsx: its name must end in \.npz or \.csv"),
    "out without rows": (NOTHING, ["predict", "model", "--out", "p.csv"], r"--out and --save need PANEL"),
    "format of a stream": (NOTHING, ["stream", "model", "--format", "xml"], r"unknown format 'xml'"),
}
LATER = ["predict", "model", "later.csv"]
BAD_PLACES = {
    "model over a file": (NOTHING, [*FIT[:3], "later.csv"], r"later\.csv exists and is not a model folder"),
    "model under a file": (NOTHING, [*FIT[:3], "later.csv/m"], r"cannot write later\.csv"),
    "report under a file": (NOTHING, ["demo", "--out", "later.csv/r", "--n", "8"], r"cannot write later\.csv/r"),
    "table in no folder": (NOTHING, [*LATER, "--out", "none/p.csv"], r"there is no folder none; create it"),
    "table of a strange kind": (NOTHING, [*LATER, "--out", "p.txt"], r"must end in \.csv or \.json or \.parquet"),
    "panel in no folder": (NOTHING, ["generate", "none/p.csv"], r"there is no folder none; create it"),
}


def damage(name: str, change: Callable[[bytes], bytes | None]) -> Callable[[], None]:
    def write() -> None:
        (path,) = Path("model").glob(name)
        new = change(path.read_bytes())
        path.unlink() if new is None else path.write_bytes(new)

    return write


def newer(data: bytes) -> bytes:
    return json.dumps(json.loads(data) | {"format": 99, "jointset": "9.0"}).encode()


PREDICT = ["predict", "model"]
BAD_MODELS = {
    "no model": (NOTHING, ["predict", "nowhere"], r"nowhere is not a model folder"),
    "report of no model": (NOTHING, ["report", "nope"], r"no folder nope: `jointset fit` writes a model"),
    "a file": (NOTHING, ["predict", "later.csv"], r"later\.csv is not a model folder"),
    "json missing": (damage("model.json", lambda b: None), PREDICT, r"damaged: model\.json is missing"),
    "arrays missing": (damage("arrays-*", lambda b: None), PREDICT, r"arrays-\w+\.safetensors is missing"),
    "json cut short": (damage("model.json", lambda b: b[:200]), PREDICT, r"model\.json cannot be read"),
    "json of another kind": (damage("model.json", lambda b: b"[1, 2]"), PREDICT, r"model\.json cannot be read"),
    "arrays cut short": (damage("arrays-*", lambda b: b[:-40]), PREDICT, r"arrays-\w+\.safetensors was cut"),
    "arrays empty": (damage("arrays-*", lambda b: b""), PREDICT, r"arrays-\w+\.safetensors was cut short"),
    "newer": (damage("model.json", newer), PREDICT, r"saved by jointset 9\.0 in format 99.*upgrade"),
    "cut short, in a stream": (damage("model.json", lambda b: b[:200]), ["stream", "model"], r"cannot be read"),
    "no sensor": (
        lambda: rewrite("later.csv", lambda ls: [re.sub("s00", "other", ls[0]), *ls[1:]]),
        [*LATER, "--ignore-unknown"],
        r"none of the columns .* is a sensor of the model: there are 's000'",
    ),
    "sensor unknown": (
        lambda: rewrite("later.csv", lambda ls: [ls[0] + ",extra", *(line + ",1.0" for line in ls[1:])]),
        LATER,
        r"later\.csv: unknown sensor 'extra': .*--ignore-unknown.*--rename",
    ),
}
BAD = {**BAD_READINGS, **BAD_GRAPHS, **BAD_OPTIONS, **BAD_PLACES, **BAD_MODELS}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line_and_exit_code_2(folder: Path, case: str) -> None:
    spoil, arguments, message = BAD[case]
    spoil()
    line = refused(jointset(*arguments))
    assert re.search(message, line), line
    assert not Path("fitted").exists()
    assert not list(folder.glob(".*"))  # no unfinished file is left behind


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*LATER, "--out", "later.csv"], "--out would overwrite later.csv, which is read: give another name"),
        ([*LATER, "--out", "p.csv", "--impute", "p.csv"], "--impute and --out would both write p.csv: give two names"),
        ([*LATER, "--horizon", "1", "--out", "linked.csv"], "--out would overwrite linked.csv, which is read"),
        ([*LATER, "--rename", "names.csv", "--impute", "names.csv"], "--impute would overwrite names.csv"),
        (["impute", "model", "later.csv", "--out", "./later.csv"], "--out would overwrite later.csv, which is read"),
        (["impute", "model", "later.csv", "--filled", "later.csv"], "--filled would overwrite later.csv"),
        (
            ["impute", "model", "later.csv", "--out", "g.csv", "--filled", "g.csv"],
            "--filled and --out would both write",
        ),
        (["generate", "g.csv", "--graph", "g.csv"], "--graph and OUT would both write g.csv: give two names"),
    ],
)
def test_no_result_overwrites_another_or_what_is_read(folder: Path, arguments: list[str], message: str) -> None:
    Path("linked.csv").symlink_to("later.csv")
    Path("names.csv").write_text("old,s000\n")
    before = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    assert message in refused(jointset(*arguments))
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == before


def test_a_stream_with_a_bad_header_is_refused(folder: Path) -> None:
    header = "time,s000,s0001\n"
    said = refused(jointset("stream", "model", input=header))
    assert "unknown sensor 's0001': did you mean" in said and "--time-column" not in said
    assert "--time-column" in refused(jointset("stream", "model", input="zeit,s000,s001\n"))
    assert "duplicated sensor 's000'" in refused(jointset("stream", "model", input="s000,s000\n"))
    assert "the first line holds data" in refused(jointset("stream", "model", input="1.0,2.0\n"))


def test_usage_errors_exit_with_code_2(folder: Path) -> None:
    for arguments in (["fit"], ["fit", "readings.csv"], ["nonsense"], ["demo", "--n", "many"]):
        result = jointset(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


def test_debug_lets_the_error_through(folder: Path) -> None:
    result = jointset("--debug", "fit", "nowhere.csv", "--out", "fitted")
    assert isinstance(result.exception, InputError)


def test_a_real_process_exits_with_code_2_and_no_traceback(folder: Path) -> None:
    command = [sys.executable, "-m", "jointset"]
    plain = subprocess.run([*command, "fit", "nowhere.csv", "--out", "m"], capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr == "error: no such file: nowhere.csv; check the path\n"
    debug = [*command, "--debug", "fit", "nowhere.csv", "--out", "m"]
    assert "Traceback" in subprocess.run(debug, capture_output=True, text=True, check=False).stderr


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def model_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_terminal_is_told_what_takes_time(folder: Path) -> None:
    import os
    import pty

    leader, follower = pty.openpty()
    program = [sys.executable, "-c", "from jointset.cli import main; main()", "predict", "model", "later.csv"]
    process = subprocess.run([*program, "--out", "rows.csv"], stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # how the end of a terminal reads
        while chunk := os.read(leader, 65536):
            shown += chunk
    os.close(leader)
    assert process.returncode == 0
    for word in ("loading the model", "reading", "predicting", "writing"):
        assert word in shown.decode()


def test_rows_without_any_reading_are_told_as_such(folder: Path) -> None:
    Path("empty.csv").write_text("time,s000,s001\n2030-01-01,,\n2030-01-02,,\n")
    result = jointset("predict", "model", "empty.csv")
    assert result.exit_code == 0, result.output
    assert "there was no reading at all: none could be scored" in result.stdout and "nan" not in result.stdout


def test_fit_without_a_method_trains_the_default_and_compares_it(folder: Path) -> None:
    """What was trained, how it does beside simple methods on the same rows, and a radius that adapts."""
    result = jointset("fit", "readings.csv", "--graph", "edges.csv", "--out", "best", "--steps", "20")
    assert result.exit_code == 0, result.output
    table = result.stdout[result.stdout.index("On the same rows") :]
    assert all(name in table for name in ("default", "quick", "ewma+auto"))
    assert re.search(r"Per sensor, the sets of \S+ are \d+ % smaller|sets of one size|held", result.stdout)
    predictor = JointPredictor.load("best")
    before = predictor.predict().bounds
    predictor.update(NETWORK.values[700])
    assert type(predictor.calibration).__name__ == "ByClock" and not np.array_equal(before, predictor.predict().bounds)


@pytest.mark.parametrize(("asked", "rule"), [([], "ByClock"), (["--calibration", "split"], "Split")])
def test_the_split_rule_is_had_by_asking_for_it(folder: Path, asked: list[str], rule: str) -> None:
    result = jointset("fit", "readings.csv", "--out", "ruled", "--method", "quick", *asked)
    assert result.exit_code == 0, result.output
    assert type(JointPredictor.load("ruled").calibration).__name__ == rule


def test_a_rule_beside_another_in_the_name_is_refused(folder: Path) -> None:
    result = jointset("fit", "readings.csv", "--out", "both", "--method", "kalman+aci", "--calibration", "split")
    assert result.exit_code == 2 and "contradict" in result.stderr


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        ((0.9, 0.0), (0.9, 0.1), "Per sensor, the sets of default are 10 % smaller than those of quick."),
        ((0.9, 0.1), (0.9, 0.0), "Per sensor, the sets of quick are 10 % smaller here"),
        ((0.9, 0.0), (0.9, 0.001), "of one size"),
        ((0.9, float("inf")), (0.9, float("inf")), "of one size"),
        ((0.7, -1.0), (0.9, 0.0), "default held less than 90 %"),
        ((0.9, 0.0), (0.7, -1.0), "No simple method held 90 %"),
        (
            (0.875, 0.0),
            (0.93, 0.06),
            "6 % smaller than those of quick, but held 87.5 % of the rows, those of quick 93.0 %.",
        ),
        ((0.93, 0.06), (0.875, 0.0), "6 % smaller here, but held 87.5 % of the rows, those of default 93.0 %."),
    ],
)
def test_sets_are_compared_where_both_methods_hold_the_target(own: Any, other: Any, said: str) -> None:
    from jointset.commands.advice import verdict

    found = {
        name: dict(zip(("joint", "log_mean_volume"), pair, strict=True)) | {"log_volume": -pair[1]}
        for name, pair in (("default", own), ("quick", other))
    }
    assert said in verdict(found, 0.1)


def test_the_simple_methods_are_calibrated_as_the_fitted_one() -> None:
    """On the rows after the same warm-up, in the same units."""
    from jointset.commands.advice import beside
    from jointset.methods import parse, predictor_for

    how = {"alpha": 0.2, "warmup": 5, "standardize": False}
    blocks = NETWORK[:400], NETWORK[400:600], NETWORK[600:]
    alone = predictor_for("ewma+auto", **how).fit(blocks[0]).calibrate(blocks[1]).run(blocks[2])
    found = beside(parse("default"), alone, blocks, **how)
    assert found["ewma+auto"] == alone.summary() == found["default"]


def test_the_methods_of_fit_are_listed_first() -> None:
    lines = jointset("methods").stdout.splitlines()
    names = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    assert (
        names[:2] == ["default", "quick"]
        and [one["name"] for one in json.loads(jointset("methods", "--json").stdout)][:2] == names[:2]
    )
