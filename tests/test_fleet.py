"""A fleet that changes: sensors come, go, die and get other names, and every command has the same words for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from jointset.cli import app
from jointset.datasets import generate_grssf
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.inputs.fleet import Fleet, match_columns, names_listed, read_renames
from jointset.methods import load_predictor
from jointset.panel import Panel
from jointset.writing import write_edges, write_panel

NETWORK = generate_grssf("A", n=8, seed=3, length=900).panel
SENSORS = NETWORK.sensors
LATER = NETWORK[700:760]


def jointset(*arguments: Any, **options: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def good(*arguments: Any, **options: Any) -> Any:
    result = jointset(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: Any, **options: Any) -> str:
    result = jointset(*arguments, **options)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    return line


def frame(panel: Panel, **columns: Any) -> pd.DataFrame:
    return panel.to_pandas().assign(**columns)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    write_panel(NETWORK[:700], folder / "readings.csv")
    good("fit", folder / "readings.csv", "--out", folder / "model", "--method", "kalman")
    return folder / "model"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def predicted(model: Path, file: Any, *options: Any) -> pd.DataFrame:
    good("predict", model, file, "--out", "out.csv", *options)
    return pd.read_csv("out.csv")


def streamed(model: Path, text: str, *options: Any) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in good("stream", model, *options, input=text).stdout.splitlines()]
    assert not [line for line in lines if "error" in line]
    return lines


def assert_same_scores(model: Path, file: str, expected: Panel, *options: Any) -> None:
    """File and stream give the scores of a panel of the model's own sensors."""
    scores = load_predictor(model).run(expected).score
    np.testing.assert_allclose(predicted(model, file, *options)["score"], scores, rtol=1e-9)
    found = streamed(model, Path(file).read_text(), *options)
    np.testing.assert_allclose([answer["score"] for answer in found], scores, rtol=1e-9)


# ---------------------------------------------------------------------- the rules


def test_columns_are_renamed_then_dropped_then_matched() -> None:
    told: list[str] = []
    fleet = Fleet({"north": "a", "x": "y"}, ("b", "y"), ignore_unknown=True)
    found = match_columns(["c", "north", "b", "x", "z"], ("a", "b", "c", "d"), fleet, told.append)
    assert found == {0: 2, 1: 0}
    assert told == [
        "columns that the model does not know are ignored: 'z'",
        "2 of 4 sensors have no column and count as missing in every row: 'b', 'd'",
    ]


def test_a_column_the_model_does_not_know_is_refused_with_the_flags_to_use() -> None:
    with pytest.raises(InputError, match=r"unknown sensor 'aa': did you mean 'aaa'\? --ignore-unknown .*--rename FILE"):
        match_columns(["aa", "b"], ("aaa", "b"), Fleet(), print)


def test_two_columns_for_one_sensor_are_refused() -> None:
    with pytest.raises(InputError, match=r"duplicated sensor 'b' \(columns 'a', 'b'\): name every sensor once"):
        match_columns(["a", "b"], ("b",), Fleet({"a": "b"}), print)


def test_names_that_meet_no_column_are_told() -> None:
    told: list[str] = []
    match_columns(["a"], ("a",), Fleet({"old": "new"}, ("b",)), told.append)
    assert told == ["nothing to drop, no column is called 'b'", "nothing to rename, no column has one of the old names"]


def test_names_with_commas_stand_in_quotes() -> None:
    assert names_listed(["a,b", ' "Main St, north" ', "b"]) == ("a", "b", "Main St, north")


def test_rename_files_are_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    for text in ("old,new\na,b\n", "a,b\n", "\ufeffOld, New\na , b\na,b\n"):
        file.write_text(text)
        assert read_renames(file) == {"a": "b"}
    for text, message in [("a\n", "1 cells"), ("a,\n", "lacks a name"), ("a,b\na,c\n", "line 2 gives 'a' a second")]:
        file.write_text(text)
        with pytest.raises(InputError, match=f"names.csv: .*{message}"):
            read_renames(file)


# ---------------------------------------------------------------------- predict and stream


def test_a_lost_sensor_counts_as_missing_in_files_and_streams(model: Path, here: Path) -> None:
    frame(LATER).drop(columns=["s002", "s005"]).to_csv("later.csv")
    gone = LATER.values.copy()
    gone[:, [2, 5]] = np.nan
    assert_same_scores(model, "later.csv", LATER.with_values(gone))
    assert "2 of 8 sensors have no column" in good("predict", model, "later.csv").stderr


def test_new_columns_are_refused_or_ignored_whatever_they_hold(model: Path, here: Path) -> None:
    frame(LATER, extra=1.0, remark="fine").to_csv("later.csv")
    text = Path("later.csv").read_text()
    for line in (refused("predict", model, "later.csv"), refused("stream", model, input=text)):
        assert "unknown sensor 'extra' (and 1 more)" in line and "--ignore-unknown" in line
    assert_same_scores(model, "later.csv", LATER, "--ignore-unknown")
    assert_same_scores(model, "later.csv", LATER, "--drop", "extra,remark")
    for result in (
        good("predict", model, "later.csv", "--ignore-unknown"),
        good("stream", model, "--ignore-unknown", input=text),
    ):
        assert result.stderr.count("ignored: 'extra', 'remark'") == 1


def test_new_names_in_json_rows_are_refused_or_ignored_with_one_notice(model: Path, here: Path) -> None:
    rows = [dict(zip((*SENSORS, "extra"), [*row, 1.0], strict=True)) for row in LATER.values.tolist()]
    text = "\n".join(map(json.dumps, rows))
    first = json.loads(good("stream", model, input=text).stdout.splitlines()[0])
    assert "unknown sensor 'extra'" in first["error"] and "--ignore-unknown" in first["error"]
    result = good("stream", model, "--ignore-unknown", input=text)
    found = [json.loads(line)["score"] for line in result.stdout.splitlines()]
    np.testing.assert_allclose(found, load_predictor(model).run(LATER).score, rtol=1e-9)
    assert result.stderr.count("ignored: 'extra'") == 1


def test_renamed_sensors_are_read_under_their_new_names(model: Path, here: Path) -> None:
    Path("names.csv").write_text("old,new\nnorth,s000\nsouth,s007\n")
    frame(LATER).rename(columns={"s000": "north", "s007": "south"}).to_csv("later.csv")
    assert_same_scores(model, "later.csv", LATER, "--rename", "names.csv")
    rows = pd.read_csv("later.csv").drop(columns="time").to_dict("records")
    found = streamed(model, "\n".join(map(json.dumps, rows)), "--rename", "names.csv")
    np.testing.assert_allclose([answer["score"] for answer in found], load_predictor(model).run(LATER).score, rtol=1e-9)


def test_a_dropped_sensor_of_the_model_counts_as_missing(model: Path, here: Path) -> None:
    frame(LATER).to_csv("later.csv")
    gone = LATER.values.copy()
    gone[:, 3] = np.nan
    assert_same_scores(model, "later.csv", LATER.with_values(gone), "--drop", "s003")
    rows = "\n".join(json.dumps(row) for row in LATER.values.tolist())
    expected = load_predictor(model).run(LATER.with_values(gone)).score
    found = [answer["score"] for answer in streamed(model, rows, "--drop", "s003")]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_audits_take_the_same_flags(model: Path, here: Path) -> None:
    later = frame(NETWORK[700:], extra="text").drop(columns="s004")
    later.rename(columns={"s000": "north"}).to_csv("later.csv")
    Path("names.csv").write_text("north,s000\n")
    assert "--ignore-unknown" in refused("audit", model, "later.csv", "--rename", "names.csv")
    result = good("audit", model, "later.csv", "--rename", "names.csv", "--drop", "extra", "--audits", "m_eff")
    assert "1 of 8 sensors have no column" in result.stderr


# ---------------------------------------------------------------------- fit


def test_dead_sensors_are_dropped_where_that_is_asked_for(here: Path) -> None:
    spoilt = frame(NETWORK[:700])
    spoilt["s001"], spoilt["s006"] = 4.0, np.nan
    spoilt.loc[spoilt.index[600:], "s001"] = 5.0  # alive after training, which is too late
    spoilt.to_csv("readings.csv")
    write_edges(NETWORK, "edges.csv")
    fit = ("fit", "readings.csv", "--out", "model", "--method", "kalman", "--graph", "edges.csv")
    assert "'s006'" in (line := refused(*fit)) and "--drop-dead" in line
    assert "constant sensors" in (line := refused(*fit, "--drop", "s006")) and "--drop-dead" in line
    result = good(*fit, "--drop-dead")
    assert "constant or empty in the 490 training rows: 's001', 's006'" in result.stderr
    assert load_predictor("model").sensors == tuple(name for name in SENSORS if name not in ("s001", "s006"))
    kept = NETWORK[:700].drop(["s001", "s006"])
    write_panel(kept, "kept.csv")
    write_edges(kept, "kept_edges.csv")
    good("fit", "kept.csv", "--out", "other", "--method", "kalman", "--graph", "kept_edges.csv")
    assert load_predictor("model").predict().radius == load_predictor("other").predict().radius


def test_what_fit_left_out_is_ignored_in_every_later_command_with_one_note(here: Path) -> None:
    spoilt = frame(NETWORK, s001=4.0, remark="fine")
    spoilt[:700].to_csv("readings.csv")
    spoilt[700:].to_csv("later.csv")
    good("fit", "readings.csv", "--out", "model", "--method", "kalman", "--drop-dead", "--drop", "remark")
    assert_same_scores(Path("model"), "later.csv", NETWORK[700:].drop(["s001"]))
    rows = spoilt[700:].to_dict("records")
    objects = "\n".join(map(json.dumps, rows))
    long = "\n".join(f"{t},{name},{row[name]}" for t, row in enumerate(rows[:9]) for name in row)
    for result in (
        good("predict", "model", "later.csv"),
        good("audit", "model", "later.csv", "--audits", "m_eff"),
        good("stream", "model", input=Path("later.csv").read_text()),
        good("stream", "model", input=objects),
        good("stream", "model", input="time,sensor,value\n" + long),
    ):
        assert result.stderr.count("left out when the model was fitted, ignored: ") == 1
        assert "'s001'" in result.stderr and "'remark'" in result.stderr
        assert "error" not in result.stdout
    spoilt.assign(extra=1.0)[700:].to_csv("later.csv")
    assert "unknown sensor 'extra':" in refused("predict", "model", "later.csv")
    objects = json.dumps(rows[0] | {"extra": 1.0})
    assert "unknown sensor 'extra':" in good("stream", "model", input=objects).stdout


def test_fit_renames_and_drops_in_readings_and_graph_alike(here: Path) -> None:
    frame(NETWORK[:700], remark="fine").rename(columns={"s000": "north"}).to_csv("readings.csv")
    Path("names.csv").write_text("north,zero\ns000,zero\n")
    options = ("--method", "kalman", "--rename", "names.csv", "--drop", "s003,remark")
    expected = NETWORK.rename({"s000": "zero"}).drop(["s003"])
    square = pd.DataFrame(NETWORK.adjacency, index=SENSORS, columns=SENSORS)
    square.to_csv("named.csv")
    np.save("bare.npy", NETWORK.adjacency)
    write_edges(NETWORK, "edges.csv")
    for k, graph in enumerate(("edges.csv", "named.csv")):
        good("fit", "readings.csv", "--out", f"model{k}", "--graph", graph, "--method", "kalman", *options)
        predictor = load_predictor(f"model{k}")
        assert predictor.sensors == expected.sensors
        np.testing.assert_allclose(predictor.filter.adjacency, expected.adjacency)
    frame(NETWORK[:700]).to_csv("readings.csv")
    good("fit", "readings.csv", "--out", "bare", "--graph", "bare.npy", "--method", "kalman", "--drop", "s003")
    np.testing.assert_allclose(load_predictor("bare").filter.adjacency, expected.adjacency)


def test_edges_to_sensors_without_readings_are_refused_or_ignored(here: Path) -> None:
    write_panel(NETWORK[:700].drop(["s003"]), "readings.csv")
    write_edges(NETWORK, "edges.csv")
    fit = ("fit", "readings.csv", "--out", "model", "--method", "kalman", "--graph", "edges.csv")
    assert "'s003' is not in the data" in (line := refused(*fit)) and "--ignore-unknown" in line
    assert "not in the data are left out: 's003'" in good(*fit, "--ignore-unknown").stderr
    np.testing.assert_allclose(load_predictor("model").filter.adjacency, NETWORK.drop(["s003"]).adjacency)


def test_file_cells_drop_and_rename_too(here: Path) -> None:
    frame(NETWORK, remark="fine", s001=1.0).to_csv("readings.csv")
    Path("names.csv").write_text("s000,zero\n")
    write_edges(NETWORK, "edges.csv")
    name = "file:readings.csv?drop=remark&drop=s002&drop_dead=yes&rename=names.csv&graph=edges.csv"
    found = cell(name)
    assert found.panel.sensors == ("zero", *SENSORS[3:])
    assert any("constant or empty" in note and "'s001'" in note for note in found.notes)
    with pytest.raises(InputError, match=r"'s001'.*drop_dead=yes"):
        cell("file:readings.csv?drop=remark")


def test_file_cells_ignore_edges_to_sensors_without_readings(here: Path) -> None:
    write_panel(NETWORK.drop(["s003"]), "readings.csv")
    write_edges(NETWORK, "edges.csv")
    with pytest.raises(InputError, match=r"'s003' is not in the data: .* ignore_unknown=yes"):
        cell("file:readings.csv?graph=edges.csv")
    found = cell("file:readings.csv?graph=edges.csv&ignore_unknown=yes")
    assert any("not in the data are left out: 's003'" in note for note in found.notes)
    np.testing.assert_allclose(found.panel.adjacency, NETWORK.drop(["s003"]).adjacency)


# ---------------------------------------------------------------------- long tables


def long_text(panel: Panel) -> str:
    table = panel.to_pandas().melt(ignore_index=False, var_name="sensor", value_name="value")
    return table.sort_index(kind="stable").reset_index().to_csv(index=False)


def test_long_tables_are_read_by_predict_and_stream(model: Path, here: Path) -> None:
    gaps = LATER.values.copy()
    gaps[5, 2:] = np.nan
    gaps[7:9, 0] = np.nan
    Path("long.csv").write_text(long_text(LATER.with_values(gaps)))
    assert_same_scores(model, "long.csv", LATER.with_values(gaps))
    kept = [line for line in Path("long.csv").read_text().splitlines() if not line.endswith(",")]
    Path("long.csv").write_text("\n".join(kept))
    assert_same_scores(model, "long.csv", LATER.with_values(gaps))


def test_a_long_reading_is_answered_when_it_is_complete_or_a_later_one_begins(model: Path) -> None:
    rows = [f"{t},{name},{value}" for t in (60, 120) for name, value in zip(SENSORS, LATER.values[0], strict=True)]
    asked: list[str] = []

    def lines() -> Any:
        for line in ["time,station,value", *rows[:8], *rows[8:12], f"180,s000,{LATER.values[0, 0]}"]:
            asked.append(line)
            yield line

    from jointset.streaming import Stream

    live = Stream(load_predictor(model)).answers(lines())
    first = next(live)
    assert (first["row"], first["time"], first["observed"], len(asked)) == (8, "60", 8, 9)  # no further line is needed
    second = next(live)
    assert (second["row"], second["time"], second["observed"], len(asked)) == (12, "120", 4, 14)
    third = next(live)
    assert (third["row"], third["time"], third["observed"]) == (13, "180", 1)


def test_long_rows_that_come_late_twice_or_without_a_time_are_bad_rows(model: Path) -> None:
    rows = ["60,s000,1", "120,s000,1", "60,s001,1", "120,s000,2", "noon,s000,1", ",s000,1", "120,s001,x", "120,s00x,1"]
    result = good("stream", model, input="\n".join(["time,sensor,value", *rows]))
    found = [json.loads(line) for line in result.stdout.splitlines()]
    errors = {answer["row"]: answer["error"] for answer in found if "error" in answer}
    assert "too late" in errors[3] and "two readings of 's000' at 120" in errors[4] and "'noon' is no time" in errors[5]
    assert set(errors) == {3, 4, 5, 6, 7, 8} and "unknown sensor 's00x'" in errors[8]
    assert [(a["time"], a["row"], a["observed"]) for a in found if "error" not in a] == [("60", 1, 1), ("120", 2, 1)]


def test_long_rows_of_sensors_the_model_lacks_are_ignored_or_dropped(model: Path) -> None:
    rows = ["time,sensor,value", *(f"60,{name},1" for name in SENSORS[:7]), "60,new,junk", "60,s007,1", "60,new,2"]
    (answer,) = streamed(model, "\n".join(rows), "--ignore-unknown")
    assert answer["observed"] == 8
    (answer,) = streamed(model, "\n".join(rows), "--drop", "new,s000")
    assert answer["observed"] == 7
