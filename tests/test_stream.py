"""Streams: the right answer to every row, and no row that can end them or change what comes after."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset.calibration.split import SplitState
from jointset.cli import app
from jointset.datasets import generate_grssf
from jointset.errors import InputError
from jointset.inputs.fleet import Fleet
from jointset.joint_predictor import JointPredictor
from jointset.methods import predictor_for
from jointset.panel import Panel
from jointset.streaming import Stream

NETWORK = generate_grssf("A", n=8, seed=3, length=700).panel
SENSORS = NETWORK.sensors
HEADER = ",".join(("time", *SENSORS))
LIVE = NETWORK[640:]


def fitted(method: str = "kalman+aci") -> JointPredictor:
    return predictor_for(method).fit(NETWORK[:400]).calibrate(NETWORK[400:640])


def csv_line(values: Iterable[float], time: object = "") -> str:
    return ",".join([str(time), *("" if math.isnan(x) else repr(float(x)) for x in values)])


def csv_lines(values: np.ndarray) -> list[str]:
    return [HEADER, *(csv_line(row, time) for time, row in enumerate(values))]


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def answers(predictor: JointPredictor, lines: Iterable[str], **options: Any) -> list[dict[str, Any]]:
    """Answers as a reader of the JSON lines gets them."""
    live = Stream(predictor, **options)
    return [strict_json(json.dumps(answer, allow_nan=False)) for answer in live.answers(lines)]


def without_row(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "row"}


# ---------------------------------------------------------------------- what an answer says


def test_the_set_of_a_row_was_there_before_the_row() -> None:
    other = LIVE.values.copy()
    other[7] += 3.0
    got, changed = (answers(fitted(), csv_lines(values)) for values in (LIVE.values, other))
    assert got[7]["bounds"] == changed[7]["bounds"]
    assert got[7]["radius"] == changed[7]["radius"]
    assert got[7]["score"] != changed[7]["score"]
    assert got[8]["bounds"] != changed[8]["bounds"]


def test_top_names_the_sensor_that_is_off() -> None:
    odd = LIVE.values[:1].copy()
    odd[0, 4] += 50.0
    (answer,) = answers(fitted(), csv_lines(odd), top=2)
    assert answer["inside"] is False
    first, second = answer["top"]
    assert (first["sensor"], first["value"]) == ("s004", odd[0, 4])
    assert [first["lower"], first["upper"]] == answer["bounds"]["s004"]
    assert second["contribution"] < 0.1 * first["contribution"] <= 0.1 * answer["score"]


def test_rows_in_every_format_get_the_same_answer() -> None:
    row = dict(zip(SENSORS, LIVE.values[0].tolist(), strict=True))
    turned = {"time": "now", **dict(reversed(row.items()))}
    inputs = [
        [HEADER, csv_line(LIVE.values[0], "now")],
        [
            "\ufeff" + HEADER.replace(",", "\t") + "\r\n",
            "\n",
            csv_line(LIVE.values[0], "now").replace(",", "\t") + "\r\n",
        ],
        [",".join(turned), ",".join(map(str, turned.values()))],
        [";".join(turned), ";".join(str(value).replace(".", ",") for value in turned.values())],
        [json.dumps({"time": "now", "values": row})],
        [json.dumps({"time": "now", "values": list(row.values())})],
        [json.dumps(turned)],
    ]
    first, *others = (answers(fitted(), lines) for lines in inputs)
    assert len(first) == 1
    assert first[0]["time"] == "now"
    assert all(other == first for other in others)
    assert answers(fitted(), [json.dumps(list(row.values()))]) == [{**first[0], "time": None}]


def test_a_good_row_pays_for_no_error_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an unknown sensor may have meant is looked for when there is one: at N = 1,000 it takes seconds."""

    def refuse(*_: Any, **__: Any) -> list[str]:
        raise AssertionError("a suggestion for a name that is known")

    monkeypatch.setattr("difflib.get_close_matches", refuse)
    row = dict(zip(SENSORS, LIVE.values[0].tolist(), strict=True))
    lines = [json.dumps({"time": 1, "values": row}), json.dumps(list(row.values()))]
    assert not any("error" in answer for answer in answers(fitted(), lines))
    assert not any("error" in answer for answer in answers(fitted(), GOOD, time_column="time"))


def test_missing_readings_are_null_empty_or_absent() -> None:
    values = LIVE.values[0].copy()
    values[[2, 5]] = np.nan
    row = {name: None if math.isnan(x) else x for name, x in zip(SENSORS, values.tolist(), strict=True)}
    short = {name: x for name, x in row.items() if x is not None}
    names = ",".join(short)
    told: list[str] = []
    inputs = [[json.dumps(row)], [json.dumps(short)], [names, ",".join(map(str, short.values()))]]
    got = [answers(fitted(), lines, notice=told.append) for lines in inputs]
    assert got[0][0]["observed"] == 6
    assert got[0] == got[1] == got[2]
    assert told == ["2 of 8 sensors have no column and count as missing in every row: 's002', 's005'"]
    marked = [HEADER, csv_line(values).replace(",,", ",NaN,")]
    assert answers(fitted(), marked)[0]["score"] == got[0][0]["score"]


def test_a_row_without_readings_is_neither_inside_nor_outside() -> None:
    (answer,) = answers(fitted(), [HEADER, "," * 8])
    assert (answer["score"], answer["inside"], answer["observed"], answer["top"]) == (None, None, 0, [])


@pytest.mark.parametrize("method", ["spci", "hopcpt"])
def test_an_interval_of_no_length_does_not_hold_up_a_stream(method: str) -> None:
    """A sensor that hardly ever moves gets such intervals; a reading off them is outside, and the next one comes."""
    values = NETWORK.values[:, :3].copy()
    values[np.random.default_rng(0).random(len(values)) < 0.97, 1] = 0.0
    still = Panel(values, SENSORS[:3])
    predictor = predictor_for(method).fit(still[:400]).calibrate(still[400:640])
    lines = [",".join(SENSORS[:3]), *(",".join(map(repr, row)) for row in values[640:].tolist())]
    found = answers(predictor, lines)
    assert not [answer for answer in found if "error" in answer]
    expected = predictor_for(method).fit(still[:400]).calibrate(still[400:640]).run(still[640:])
    assert [answer["inside"] for answer in found] == expected.inside.tolist()
    assert any(answer["score"] is None and answer["inside"] is False for answer in found)


def test_a_stream_of_hours_follows_the_clock_of_its_rows() -> None:
    """After a pause the set is that of the hour of the row, as in a run over a file."""
    rng = np.random.default_rng(1)
    times = 300 * np.arange(3000)
    values = rng.normal(size=(3000, 3)) * (1.0 + 4.0 * ((times // 3600) % 24 < 6))[:, None]
    panel = Panel(values, SENSORS[:3], times)
    late = Panel(values[2600:2700], SENSORS[:3], times[2600:2700] + 9 * 3600)

    def fresh() -> JointPredictor:
        return predictor_for("time-of-day").fit(panel[:2000]).calibrate(panel[2000:2600])

    rows = zip(late.timestamps, late.values.tolist(), strict=True)
    lines = [json.dumps({"time": int(t), "values": row}) for t, row in rows]
    found, expected = answers(fresh(), lines), fresh().run(late)
    bounds = np.array([list(answer["bounds"].values()) for answer in found])
    np.testing.assert_allclose(bounds, np.stack([expected.lower, expected.upper], axis=-1), rtol=1e-9)


def test_rows_that_come_twice_or_late_are_noted_once() -> None:
    told: list[str] = []
    rows = [
        HEADER,
        *(csv_line(row, f"1970-01-03 05:{k:02d}") for k, row in zip((20, 21, 21, 19, 22), LIVE.values, strict=False)),
    ]
    found = answers(fitted(), rows, notice=told.append)
    assert len(found) == 5 and not any("error" in answer for answer in found)
    assert len(told) == 1 and "row 3" in told[0] and "not later" in told[0]


def test_an_infinite_radius_is_valid_json() -> None:
    predictor = fitted("kalman")
    predictor.calibration_state = SplitState(math.inf, 0)
    (answer,) = answers(predictor, csv_lines(LIVE.values[:1]))
    assert (answer["radius"], answer["infinite"], answer["inside"]) == (None, True, True)
    assert answer["bounds"]["s000"] == [None, None]


def test_an_empty_set_is_valid_json() -> None:
    predictor = fitted("kalman")
    predictor.calibration_state = SplitState(-math.inf, 0)
    (answer,) = answers(predictor, csv_lines(LIVE.values[:1]))
    assert (answer["radius"], answer["empty"], answer["inside"]) == (None, True, False)


# ---------------------------------------------------------------------- unusual times and sensors


def told_by(lines: Iterable[str], predictor: JointPredictor | None = None, **options: Any) -> tuple[Any, ...]:
    """The stream after its lines, its answers, and what it told."""
    told: list[str] = []
    live = Stream(predictor or timed(), notice=told.append, **options)
    return live, list(live.answers(lines)), told


def timed(method: str = "kalman", cadence: int = 300) -> JointPredictor:
    """A predictor whose rows came every five minutes."""
    panel = Panel(NETWORK.values, SENSORS, cadence * np.arange(len(NETWORK)))
    return predictor_for(method).fit(panel[:400]).calibrate(panel[400:640])


def at(times: Iterable[object], values: np.ndarray | None = None) -> list[str]:
    rows = LIVE.values if values is None else values
    return [HEADER, *(csv_line(row, time) for time, row in zip(times, rows, strict=False))]


START = 640 * 300


def test_times_that_cannot_be_read_are_ignored_and_told_once() -> None:
    live, found, told = told_by(at([START, "junk", START + 300, "junk", ""]))
    assert [answer["observed"] for answer in found] == [8] * 5
    assert len(told) == 1 and "row 2: 'junk' is no time" in told[0]
    assert live.closing() == ["times that could not be read: 3"]
    scores = [answer["score"] for answer in found]
    assert scores == [answer["score"] for answer in told_by(at([START + 300 * k for k in range(5)]))[1]]


def test_repeated_rows_are_skipped_and_answered_as_repeated() -> None:
    """A source that reconnects sends its last rows again: neither the filter nor the coverage may count them twice."""
    lines = at([START + 300 * k for k in range(10)])
    live, found, told = told_by([*lines[:9], *lines[5:9], *lines[9:]])
    assert found[8:12] == [{"row": r, "time": str(START + 300 * (r - 5)), "repeated": True} for r in range(9, 13)]
    clean = told_by(lines)[1]
    kept = [answer for answer in found if "repeated" not in answer]
    assert [without_row(answer) for answer in kept] == [without_row(answer) for answer in clean]
    assert live.scored == 10 and len(told) == 1 and "repeats" in told[0]
    assert live.closing() == ["repeated rows, skipped: 4"]


def test_a_bad_row_that_comes_again_is_bad_again() -> None:
    lines = at([START, START + 300])
    bad = csv_line(np.full(8, 1e200), START + 300)
    found = told_by([lines[0], lines[1], bad, bad])[1]
    assert ["error" in answer for answer in found] == [False, True, True]


def test_one_time_with_other_readings_is_another_row() -> None:
    live, found, told = told_by(at([START, START, START - 300]))
    assert not any("repeated" in answer for answer in found) and len(told) == 1
    assert live.closing() == ["rows not later than the one before: 2"]


def test_gaps_are_told_once_and_counted() -> None:
    days = 3 * 86400
    live, _, told = told_by(at([START, START + 300, START + days, START + days + 300, START + 2 * days]))
    assert len(told) == 1 and "comes 3 days after the one before, where rows come every 5 min" in told[0]
    assert live.closing() == ["gaps in time: 2", "the longest gap lasted 3 days"]
    assert told_by(at([START, START + 3000, START + 6000]))[2] == []  # rows that were lost now and then


def test_a_gap_since_the_last_row_of_the_model_counts() -> None:
    assert "comes 10 days after" in told_by(at([START - 300 + 10 * 86400]))[2][0]


def test_another_cadence_is_told_once() -> None:
    live, _, told = told_by(at(START + 3600 * np.arange(20)))
    assert [text for text in told if "every 1 h, those of the model every 5 min" in text]
    assert live.events["changes of cadence"] == 1 and live.events["gaps in time"] <= 5
    live, _, told = told_by(at([*START + 300 * np.arange(8), *START + 2100 + 60 * np.arange(1, 30)]))
    assert len(told) == 1 and "every 1 min, those of the model every 5 min" in told[0]


def test_a_model_without_times_learns_the_cadence_of_its_rows() -> None:
    times = [*60 * np.arange(10), 600 + 86400]
    bare = Panel(NETWORK.values, SENSORS)
    told = told_by(at(times), predictor_for("kalman").fit(bare[:400]).calibrate(bare[400:640]))[2]
    assert len(told) == 1 and "where rows come every 1 min" in told[0]


def test_dates_that_begin_with_the_day_are_times_where_asked_for() -> None:
    lines = at(["03/01/1970 05:20", "03/01/1970 05:25", "03/01/1970 06:25"])
    live, _, told = told_by(lines)
    assert live.events["times that could not be read"] == 3 and told[0].endswith(
        "--day-first reads dates that begin with the day"
    )
    live = told_by(lines, day_first=True)[0]
    assert live.closing() == ["gaps in time: 1", "the longest gap lasted 1 h"]


def test_a_sensor_stuck_at_zero_is_named() -> None:
    """The default filter follows it, and soon no score blames it; mean 705, stuck at 0 for 500 rows."""
    panel = Panel(NETWORK.values + np.array([705.0, *[0.0] * 7]), SENSORS, 300 * np.arange(len(NETWORK)))
    predictor = predictor_for("kalman-tuned").fit(panel[:400]).calibrate(panel[400:640])
    values = np.random.default_rng(0).permutation(np.tile(LIVE.values, (9, 1)))[:500]
    values[:, 0] = 0.0
    live, found, told = told_by(at(START + 300 * np.arange(500), values), predictor, trust=True)
    assert len(told) == 1 and "row 21: 's000' has read 0 21 times in a row" in told[0] and "where it is 70" in told[0]
    assert [answer["trust"]["stuck"] for answer in (found[19], found[20], found[-1])] == [[], ["s000"], ["s000"]]
    assert found[-1]["trust"]["verdict"].endswith("; stuck: 's000'")
    assert live.closing() == ["spells of stuck sensors: 1", "stuck at the end: 's000'"]


def test_a_silent_sensor_is_named_and_forgiven_when_it_is_back() -> None:
    values = LIVE.values.copy()
    values[10:50, 2] = np.nan
    live, found, told = told_by(at(START + 300 * np.arange(60), values), trust=True)
    assert told == ["row 31: no reading of 's002' in 21 rows"]
    assert [answer["trust"]["silent"] for answer in (found[29], found[30], found[49], found[50])] == [
        [],
        ["s002"],
        ["s002"],
        [],
    ]
    assert live.closing() == ["spells of silent sensors: 1"]


def test_sensors_that_were_dropped_are_not_called_silent() -> None:
    told = told_by(at(START + 300 * np.arange(60)), fleet=Fleet(drop=("s002",)))[2]
    assert not any("no reading" in text for text in told)


def test_an_outage_is_told_as_one_and_what_stays_silent_after_it_is_named() -> None:
    values = LIVE.values.copy()
    values[5:56] = np.nan
    values[56:, 3] = np.nan
    live, found, told = told_by(at(START + 300 * np.arange(60), values))
    assert [answer["observed"] for answer in found[4:57]] == [8, *[0] * 51, 7]
    assert told == [
        "no reading at all in 21 rows in a row, the last is row 26",
        "row 57: no reading of 's003' in 52 rows",
    ]
    counts = ["rows without any reading: 51", "spells of silent sensors: 1", "silent at the end: 's003'"]
    assert live.closing() == counts


# ---------------------------------------------------------------------- bad rows

GOOD = csv_lines(LIVE.values)
BAD_CSV = {
    "too few cells": ("1,2", "2 cells, the header has 9"),
    "too many cells": ("," * 12, "13 cells, the header has 9"),
    "text": ("0,1,1,1,oops,1,1,1,1", "sensor 's003': 'oops' is no finite number"),
    "digits of another script": ("0,1,1,1,１２,1,1,1,1", "sensor 's003': '１２' is no finite number"),
    "infinite": ("0,1,1,1,inf,1,1,1,1", "sensor 's003': 'inf' is no finite number"),
    "overflow": ("0,1,1,1,1e999,1,1,1,1", "sensor 's003': '1e999' is no finite number"),
    "huge": ("0,1,1,1,-1e300,1,1,1,1", "sensor 's003': -1e+300 is absurd"),
    "underscore": ("0,1,1,1,1_0,1,1,1,1", "sensor 's003': '1_0' is no finite number"),
    "open quote": ('0,1,1,1,"1,1,1,1,1', "not CSV"),
    "bytes that are not text": ("0,1,1,1,\ufffd,1,1,1,1", "sensor 's003'"),
    "the header again": (HEADER, "sensor 's000': 's000' is no finite number"),
}
BAD_JSON = {
    "malformed": ('{"s000": 1.0', "not JSON"),
    "deeply nested": ("[" * 100_000, "not JSON"),
    "unknown sensor": ('{"s00x": 1.0}', "unknown sensor 's00x'"),
    "text": ('{"s003": "oops"}', "sensor 's003': \"oops\" is no finite number"),
    "true": ('{"s003": true}', "sensor 's003': true is no finite number"),
    "nested": ('{"s003": [1]}', "sensor 's003': [1] is no finite number"),
    "infinite": ('{"s003": Infinity}', "sensor 's003': Infinity is no finite number"),
    "long integer": ('{"s003": 1' + "0" * 400 + "}", "sensor 's003'"),
    "integer past the limit of digits": ('{"s003": 1' + "0" * 9000 + "}", "not JSON"),
    "huge": ('{"s003": 1e200}', "sensor 's003': 1e+200 is absurd"),
    "twice": ('{"s003": 1, "s003": 2}', "repeats 's003'"),
    "short list": ("[1, 2]", "2 values for 8 sensors"),
    "a number": ("3", "neither an object nor a list"),
    "values that are none": ('{"time": 1, "values": 5}', '"values" is 5: send an object'),
    "time that is none": ('{"time": {"h": 1}, "s003": 1}', "time must be text or a number"),
    "infinite time": ('{"time": Infinity, "s003": 1}', "time must be text or a number"),
}


def check_bad_row(good: list[str], head: int, bad: str, message: str) -> None:
    """A bad row in the middle is reported, and all other answers are the same to the last bit."""
    place = head + 20
    clean = answers(fitted(), good)
    got = answers(fitted(), [*good[:place], bad, *good[place:]])
    report = got.pop(20)
    assert set(report) == {"row", "error"}
    assert report["row"] == 21
    assert message in report["error"]
    assert "\n" not in report["error"]
    assert [without_row(a) for a in got] == [without_row(a) for a in clean]
    assert [a["row"] for a in got[20:]] == list(range(22, 22 + len(clean) - 20))


@pytest.mark.parametrize("case", BAD_CSV)
def test_a_bad_csv_row_changes_nothing(case: str) -> None:
    check_bad_row(GOOD, 1, *BAD_CSV[case])


@pytest.mark.parametrize("case", BAD_JSON)
def test_a_bad_json_row_changes_nothing(case: str) -> None:
    good = [json.dumps(dict(zip(SENSORS, row, strict=True))) for row in LIVE.values.tolist()]
    check_bad_row(good, 0, *BAD_JSON[case])


def test_an_uncalibrated_predictor_is_refused_before_any_row() -> None:
    with pytest.raises(InputError, match="not calibrated"):
        Stream(predictor_for("kalman").fit(NETWORK[:400]))


# ---------------------------------------------------------------------- through the command line


@pytest.fixture
def model(tmp_path: Path) -> Path:
    fitted().save(tmp_path / "model")
    return tmp_path / "model"


def stream(model: Path, lines: list[str], *options: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["stream", str(model), *options], input="\n".join(lines) + "\n")
    assert result.exit_code == 0, result.output
    return [strict_json(line) for line in result.stdout.splitlines()]


def test_a_saved_stream_goes_on_as_if_it_had_never_stopped(model: Path) -> None:
    gaps = LIVE.values.copy()
    gaps[20:26, 3] = np.nan  # the state that is saved carries a covariance of its own
    lines = csv_lines(gaps)
    whole = stream(model, lines)
    first = stream(model, lines[:24], "--save")
    rest = stream(model, [HEADER, *lines[24:]])
    assert [without_row(a) for a in (*first, *rest)] == [without_row(a) for a in whole]


def test_a_stream_leaves_the_model_alone_unless_told_to_save(model: Path) -> None:
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    stream(model, GOOD)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_no_input_is_no_error(model: Path) -> None:
    result = CliRunner().invoke(app, ["stream", str(model)], input="")
    assert (result.exit_code, result.stdout) == (0, "")


def test_the_terminal_is_told_how_it_went(model: Path) -> None:
    result = CliRunner().invoke(app, ["stream", str(model)], input="\n".join([*GOOD, "bad"]))
    assert "note: 61 rows, 1 bad, " in result.stderr
    assert "(target 90 %)" in result.stderr
    nothing = CliRunner().invoke(app, ["stream", str(model)], input="{bad\n[1]\n")
    assert nothing.stderr.splitlines()[-1] == "note: 2 rows, 2 bad, none could be scored"


def test_bytes_that_are_not_text_get_an_error_line(model: Path) -> None:
    data = "\n".join(GOOD[:2]).encode() + b"\n\xff\xfe,1,\xff,1,1,1,1,1,1\n" + GOOD[2].encode()
    result = CliRunner().invoke(app, ["stream", str(model)], input=data)
    assert ["error" in strict_json(line) for line in result.stdout.splitlines()] == [False, True, False]


def assert_close(a: Any, b: Any) -> None:
    """Equal up to rounding: another process may multiply matrices in another order."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_close(a[key], b[key])
    elif isinstance(a, list):
        for x, y in zip(a, b, strict=True):
            assert_close(x, y)
    else:
        assert a == (pytest.approx(b, rel=1e-9) if isinstance(b, float) else b)


def test_a_live_process_answers_at_once_and_saves_on_ctrl_c(model: Path) -> None:
    whole = stream(model, GOOD[:5])
    command = [sys.executable, "-c", "from jointset.cli import main; main()", "stream", str(model), "--save"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(GOOD[0] + "\n")
        got = []
        for line in GOOD[1:4]:
            process.stdin.write(line + "\n")
            got.append(strict_json(process.stdout.readline()))  # would wait for ever if lines were held back
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    for answer, expected in zip(got, whole[:3], strict=True):
        assert_close(answer, expected)
    assert_close(without_row(stream(model, [HEADER, GOOD[4]])[0]), without_row(whole[3]))


def test_a_reader_that_leaves_is_no_error_message(model: Path) -> None:
    program = "from jointset.cli import main; main()"
    process = subprocess.run(
        f"yes '[1,2,3,4,5,6,7,8]' | head -3000 | '{sys.executable}' -c '{program}' stream '{model}' --top 0 | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert strict_json(process.stdout)["row"] == 1
    assert "Traceback" not in process.stderr
    assert "Broken" not in process.stderr


def test_the_closing_note_names_what_was_unusual_and_a_saved_model_knows_its_sensors(tmp_path: Path) -> None:
    """A sensor that often stands still in training is given more time than one that never does."""
    values = NETWORK.values.copy()
    values[:, 1] = np.repeat(values[::70, 1], 70)  # stands still for 70 rows at a time
    panel = Panel(values, SENSORS, 300 * np.arange(len(NETWORK)))
    predictor_for("static").fit(panel[:400]).calibrate(panel[400:640]).save(tmp_path / "model")
    live = LIVE.values.copy()
    live[:, :2] = 0.0
    lines = at(START + 300 * np.arange(60), live)
    result = CliRunner().invoke(app, ["stream", str(tmp_path / "model")], input="\n".join([*lines, lines[-1]]))
    closing = result.stderr.splitlines()[-1]
    assert closing == "note: spells of stuck sensors: 1; repeated rows, skipped: 1; stuck at the end: 's000'"


def test_an_absurd_reading_is_refused_and_not_taken_in():
    """A filter that took it in would need hundreds of rows to forget it."""
    panel = generate_grssf("A", n=8, seed=1, length=1500).panel
    predictor = predictor_for("kalman").fit(panel[:900]).calibrate(panel[900:1200])
    row = dict(zip(panel.sensors, panel.values[1200].tolist(), strict=True))
    live = Stream(predictor)
    bad, good = live.answers([json.dumps(row | {panel.sensors[3]: 1e30}), json.dumps(row)])
    assert f"sensor {panel.sensors[3]!r}: 1e+30 is absurd" in bad["error"]
    assert good["score"] == predictor.copy().update(panel.values[1200]).score


def test_coverage_by_the_clock_has_a_place_in_trust_and_in_the_closing_note():
    """Noise ten times as large at 05 h, every day: overall coverage says nothing of it."""
    panel = generate_grssf("A", n=8, seed=1, length=4000).panel
    hours = np.arange(4000)
    values = panel.values * np.where(hours % 24 == 5, 10.0, 1.0)[:, None]
    panel = Panel(values, panel.sensors, timestamps=3600 * hours, adjacency=panel.adjacency)
    predictor = predictor_for("static").fit(panel[:2000]).calibrate(panel[2000:3000])
    rows = [
        json.dumps({"time": int(stamp), "values": dict(zip(panel.sensors, y.tolist(), strict=True))})
        for stamp, y in zip(panel.timestamps[3000:], panel.values[3000:], strict=True)
    ]
    live = Stream(predictor, trust=True)
    last = list(live.answers(rows))[-1]
    assert "at 05 h" in last["trust"]["by_clock"] and "at 05 h" in last["trust"]["verdict"]
    assert any("at 05 h" in line for line in live.closing())
