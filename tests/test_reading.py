import gzip
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jointset.errors import InputError
from jointset.inputs.fleet import AS_IT_IS, Fleet
from jointset.inputs.graph_files import read_graph
from jointset.inputs.labels import panel_of
from jointset.inputs.reading import read_panel
from jointset.inputs.times import live_seconds
from jointset.panel import Panel

NAN = float("nan")
START = 1_330_560_000  # 2012-03-01T00:00:00Z
WIDE = "time,a,b\n2012-03-01T00:00:00,1,2\n2012-03-01T00:05:00,,4.5\n"
PANEL = Panel([[1.0, 2.0], [NAN, 4.5]], ["a", "b"], timestamps=[START, START + 300])
LONG = "time,sensor,value\n2012-03-01T00:05,a,\n2012-03-01T00:00,a,1\n2012-03-01T00:00,b,2\n2012-03-01T00:05,b,4.5\n"


def refusal(call, *args, **options) -> str:
    """Message of the refusal, which must be one line."""
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(folder, text, name="panel.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wide.csv", WIDE),
        ("windows.csv", "\ufeff" + WIDE.replace("\n", "\r\n")),
        ("spaces.csv", "time, a, b\n2012-03-01 00:00, 1, 2\n\n2012-03-01 00:05, NA, 4.5\n\n"),
        ("quoted.csv", '"time","a","b"\n"2012-03-01","1","2"\n"2012-03-01T00:05","","4.5"\n'),
        ("unnamed_index.csv", WIDE.replace("time", "")),
        ("any_place.csv", "a,Date Time,b\n1,2012-03-01,2\nNaN,2012-03-01T00:05,4.5\n"),
        ("dates_unnamed.csv", WIDE.replace("time", "moment")),
        ("wide.tsv", WIDE.replace(",", "\t")),
        ("offsets.csv", "time,a,b\n2012-03-01T01:00:00+01:00,1,2\n2012-03-01T02:05:00+02:00,null,4.5\n"),
        ("zulu.csv", WIDE.replace(":00,", ":00.000Z,")),
        ("seconds.csv", "timestamp,a,b\n1330560000,1,2\n1330560300,,4.5\n"),
        ("milliseconds.csv", "timestamp,a,b\n1330560000000,1,2\n1330560300000,,4.5\n"),
        ("microseconds.csv", "timestamp,a,b\n1330560000000000,1,2\n1330560300000000,,4.5\n"),
        ("nanoseconds.csv", "timestamp,a,b\n1330560000000000000,1,2\n1330560300000000000,,4.5\n"),
        ("long.csv", LONG),
        ("station.csv", LONG.replace("sensor,value", "Station ID,pm25")),
        ("columns_moved.csv", "value,sensor,time\n1,a,2012-03-01\n2,b,2012-03-01\n4.5,b,2012-03-01T00:05\n"),
    ],
)
def test_every_text_form_gives_the_same_panel(tmp_path, name, text):
    path = write(tmp_path, text, name)
    assert read_panel(path) == PANEL
    assert Panel.read(path) == PANEL
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_panel(packed) == PANEL


def test_other_formats_give_the_same_panel(tmp_path):
    frame = PANEL.to_pandas()
    melted = frame.reset_index().melt("time", var_name="sensor")
    forms = {
        "wide": frame,
        "unnamed_index": frame.rename_axis(index=None),
        "column": frame.reset_index(),
        "naive": frame.tz_localize(None),
        "berlin": frame.tz_convert("Europe/Berlin"),
        "iso_text": frame.reset_index().astype({"time": str}),
        "long": melted,
        "category": melted.astype({"sensor": "category"}),
        "long_index": melted.set_index(["time", "sensor"]),
        "float32": frame.astype("float32"),
        "objects": frame.astype(object),
    }
    for name, form in forms.items():
        assert Panel.from_pandas(form) == PANEL, name
        form.to_parquet(tmp_path / "p.parquet")
        assert read_panel(tmp_path / "p.parquet") == PANEL, name


def test_files_without_times_and_with_one_sensor(tmp_path):
    assert read_panel(write(tmp_path, "a,b\n1,2\nNaN,4.5\n")) == Panel(PANEL.values, ("a", "b"))
    one = read_panel(write(tmp_path, "a\n1\n\n3\n"))  # a blank line is a missing reading here
    assert one == Panel([[1.0], [NAN], [3.0]], ["a"])


def test_sensor_ids_made_of_digits_stay_text(tmp_path):
    wide = read_panel(write(tmp_path, "773869,0767541\n64.4,67.6\n62.7,68.6\n"))
    assert wide.sensors == ("773869", "0767541")
    long = read_panel(write(tmp_path, "time,sensor_id,speed\n0,0767541,1\n0,773869,2\n300,773869,3\n"))
    assert long == Panel([[1, 2], [NAN, 3]], ["0767541", "773869"], timestamps=[0, 300])


def test_long_sensors_come_in_order_of_appearance_and_times_sorted(tmp_path):
    text = "time,id,value\n600,z,1\n0,a,2\n300,m,3\n0,z,4\n"
    panel = read_panel(write(tmp_path, text))
    expected = [[4, 2, NAN], [NAN, NAN, 3], [1, NAN, NAN]]
    assert panel == Panel(expected, ["z", "a", "m"], timestamps=[0, 300, 600])


@settings(deadline=None)
@given(
    arrays(np.float64, (4, 3), elements=st.floats(allow_infinity=False, width=64)),
    st.permutations(range(3)),
)
def test_round_trips_are_lossless_and_follow_the_column_order(tmp_path_factory, values, order):
    folder = tmp_path_factory.mktemp("trip")
    sensors = ["11", "b", "c d"]
    A = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    frame = pd.DataFrame(values, columns=sensors, index=pd.RangeIndex(0, 1200, 300, name="time"))
    frame.to_csv(folder / "p.csv")
    frame.iloc[:, order].to_csv(folder / "permuted.csv")
    pd.DataFrame(A, index=sensors, columns=sensors).iloc[[2, 0, 1], [1, 2, 0]].to_csv(folder / "graph.csv")
    panel = read_panel(folder / "p.csv", graph=folder / "graph.csv")
    assert panel == Panel(values, sensors, timestamps=[0, 300, 600, 900], adjacency=A)
    assert read_panel(panel.to_npz(folder / "p.npz")) == panel
    assert read_panel(folder / "permuted.csv", graph=folder / "graph.csv") == panel.select(order)


def test_layout_can_be_forced(tmp_path):
    path = write(tmp_path, "time,id,value\n0,1,5\n300,2,6\n")
    assert read_panel(path).sensors == ("1", "2")
    assert read_panel(path, layout="wide").sensors == ("id", "value")
    ambiguous = write(tmp_path, "time,place,level\n0,x,5\n300,y,6\n", "ambiguous.csv")
    assert "layout=" in refusal(read_panel, ambiguous)
    assert read_panel(ambiguous, layout="long").sensors == ("x", "y")
    assert "'deep'" in refusal(read_panel, path, layout="deep")


def test_time_column_can_be_named(tmp_path):
    path = write(tmp_path, "a,clock,b\n1,0,2\n3,300,4\n")
    assert read_panel(path, time_column="clock") == Panel([[1, 2], [3, 4]], ["a", "b"], timestamps=[0, 300])
    message = refusal(read_panel, path, time_column="clok")
    assert "'clok'" in message
    assert "'clock'" in message


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", ["empty"]),
        ("\n", ["blank"]),
        ("time,a\n", ["only a header"]),
        ("time\n2012-03-01\n", ["no sensors"]),
        ("time,a,b\n0,1,2\n300,1\n", ["line 3", "2 cells", "3"]),
        ("a,b\n" + "1,2\n" * 200 + "1,2,3\n", ["line 202", "3 cells", "2"]),
        ("a,b\n1,2\n1,oops\n", ["line 3", "'b'", "'oops'"]),
        ("a,b\n" + "1,2\n" * 200 + "1,1_0\n", ["line 202", "'b'", "'1_0'"]),
        ("a,b\n1,0x10\n", ["line 2", "'b'", "'0x10'"]),
        ("a;b\n1,5;2\n1,5;2.5\n", ["line 2", "'a'", "'1,5'"]),
        ("a;b\n" + "1,5;2\n" * 200 + "1,5;2.5\n", ["line 202", "'b'", "'2.5'"]),
        ("a;b\n1;2,5,5\n", ["line 2", "'b'", "'2,5,5'"]),
        ("a,b,a\n1,2,3\n", ["duplicated", "'a'"]),
        (",a\n0,1\n1,2\n", ["column 1", "no name"]),
        ("a,b\n1,inf\n", ["infinite", "line 2", "'b'"]),
        ("1.5,2.5\n1,2\n", ["header", "'1.5'"]),
        ("7,7\n1,2\n", ["header", "'7'"]),
        ("2012-03-01,1,2\n2012-03-02,3,4\n", ["header", "'2012-03-01'"]),
        ("date,time,a\n2012-03-01,00:00,1\n", ["'date', 'time'", "--time-column (time_column=)"]),
        ("time,a\n2012-03-01T00:05,1\n2012-03-01T00:05,2\n", ["line 3", "repeats", "2012-03-01T00:05:00Z"]),
        ("time,a,b\n2012-03-01,1,2\n\n2012-03-02,1,2\n2012-03-02,1,2\n", ["line 5", "repeats that of line 4"]),
        ("time,a\n2012-03-01T00:05,1\n2012-03-01,2\n", ["line 3", "goes back", "2012-03-01T00:00:00Z"]),
        ("time,a\n2012-03-01T00:05,1\n2012-03-01T00:10Z,2\n", ["line 3", "line 2", "offset"]),
        ("time,a\n01.03.2012 00:05,1\n", ["line 2", "'01.03.2012 00:05'", "ISO 8601", "--day-first"]),
        ("day,a\n3/1/2012,1\n", ["line 2", "'day'", "'3/1/2012'", "ISO 8601"]),
        ("time,a\n2012-03-01,1\n2012-13-01,1\n", ["line 3", "'2012-13-01'", "ISO 8601"]),
        ("time,a\n2012-03-01,1\n,1\n", ["line 3", "no time"]),
        ("time,a\n0.5,1\n", ["line 2", "'0.5'", "ISO 8601"]),
        ("time,a\n2012-03-01T00:00:00.5,1\n", ["finer than a second"]),
        ("time,a\n1330560000500,1\n", ["finer than a second"]),
        ("date,a\n20120301,1\n", ["20120301", "2012-03-01"]),
        ("time,sensor,value\n0,a,1\n300,a,2\n0,b,3\n300,a,4\n", ["'a'", "1970-01-01T00:05:00Z", "line 3 and line 5"]),
        ("time,sensor,value\n0,a,1\n300,,2\n", ["line 3", "sensor name"]),
        ("time,sensor,value\n0,a,1\n300,a,high\n", ["line 3", "'value'", "'high'"]),
        ("time,sensor,value,flag\n0,a,1,0\n", ["three columns", "'flag': take the others out", "--layout wide"]),
        ("time,spot,value\n0,1,1\n", ["--layout wide", "--layout long", "layout="]),
        ("time|a|b\n2012-03-01 00:00|1|2\n", ["one column, 'time|a|b'", "semicolons or tabs"]),
        ("# of the mill\ntime,a,b\n0,1,2\n", ["line 2 has 3 cells", "drop the lines above the header"]),
    ],
)
def test_bad_text_is_refused(tmp_path, text, facts):
    message = refusal(read_panel, write(tmp_path, text))
    assert all(fact in message for fact in ["panel.csv", *facts]), message


@pytest.mark.parametrize(
    "text",
    [
        WIDE.replace(",", ";"),
        WIDE.replace(",", ";").replace("4.5", "4,5"),
        WIDE.replace(",", "\t"),
        LONG.replace(",", ";").replace("4.5", "4,5"),
    ],
)
def test_cells_may_be_separated_by_semicolons_or_tabs(tmp_path, text):
    assert read_panel(write(tmp_path, text)) == PANEL


def test_numbers_after_semicolons_have_commas_or_points(tmp_path):
    many = "a;b\n" + "1;2\n" * 200  # nothing in the first rows tells which
    assert read_panel(write(tmp_path, many + "1,5;2\n")).values[-1, 0] == 1.5
    assert read_panel(write(tmp_path, many + "1.5;2\n")).values[-1, 0] == 1.5
    assert read_panel(write(tmp_path, "a;b\n1.5;2\n")).values[-1, 0] == 1.5
    assert read_panel(write(tmp_path, 'time;"Main St, north"\n0;1,5\n')).sensors == ("Main St, north",)


@pytest.mark.parametrize(
    ("when", "seconds"),
    [
        ("2026-03-05T04:59:59.9Z", 1_772_686_799),
        ("1772686799900", 1_772_686_799),
        (1_772_686_799_900, 1_772_686_799),
        (1_772_686_799.9, 1_772_686_799),
        ("1772686799.9", 1_772_686_799),
        ("-0.5", -1),
        ("12.5.7", None),
        ("1969-12-31T23:59:59.5Z", -1),
    ],
)
def test_what_is_finer_than_a_second_is_cut_from_the_time_of_a_live_row(when, seconds):
    assert live_seconds(when) == seconds


def test_a_column_that_looks_like_epoch_seconds_is_told(tmp_path):
    text = "zeit_epoch,a\n" + "".join(f"{1_772_686_800 + 300 * t},{t % 3}\n" for t in range(5))
    with pytest.warns(UserWarning, match="'zeit_epoch' is taken for a sensor and looks like epoch seconds"):
        assert read_panel(write(tmp_path, text)).sensors == ("zeit_epoch", "a")


def test_graphs_and_names_may_be_separated_by_semicolons_too(tmp_path):
    edges = write(tmp_path, "source;target;weight\na;b;0.5\n", "edges.csv")
    assert read_panel(write(tmp_path, WIDE), graph=edges).adjacency[0, 1] == 0.5


@pytest.mark.parametrize(
    "form", ["{d:02d}/{m:02d}/2012 {h:02d}:{n:02d}", "{d}.{m}.2012 {h}:{n:02d}:00", "{d}-{m}-2012T{h}:{n:02d}"]
)
def test_dates_that_begin_with_the_day_are_read_where_asked_for(tmp_path, form):
    moments = pd.date_range("2012-01-30 23:50", periods=400, freq="5h")
    times = [form.format(d=t.day, m=t.month, h=t.hour, n=t.minute) for t in moments]
    path = write(tmp_path, "time,a\n" + "".join(f"{time},{k}\n" for k, time in enumerate(times)))
    assert "--day-first" in refusal(read_panel, path)
    panel = read_panel(path, day_first=True)
    np.testing.assert_array_equal(panel.timestamps, moments.astype("datetime64[s]").astype(int))
    assert [live_seconds(time, day_first=True) for time in times] == panel.timestamps.tolist()


@pytest.mark.parametrize(
    ("form", "day_first"),
    [("%m/%d/%Y %I:%M %p", False), ("%m/%d/%Y %I:%M:%S%p", False), ("%d/%m/%Y %I:%M %p", True)],
)
def test_dates_with_am_or_pm_begin_with_the_month_where_nothing_else_is_asked_for(tmp_path, form, day_first):
    moments = pd.date_range("2026-11-16 00:15", periods=400, freq="75min")
    times = moments.strftime(form).tolist()
    path = write(tmp_path, "time,a\n" + "".join(f"{time},{k}\n" for k, time in enumerate(times)))
    panel = read_panel(path, day_first=day_first)
    np.testing.assert_array_equal(panel.timestamps, moments.astype("datetime64[s]").astype(int))
    assert [live_seconds(time.lower(), day_first) for time in times] == panel.timestamps.tolist()


@pytest.mark.parametrize(("when", "day_first"), [("12/31/2012", True), ("31/12/2012 3:15 PM", False)])
def test_a_day_that_is_none_is_refused(tmp_path, when, day_first):
    said = refusal(read_panel, write(tmp_path, f"time,a\n{when},1\n"), day_first=day_first)
    assert f"'{when}' is not" in said and ("--day-first" in said) is not day_first
    assert live_seconds(when, day_first) is None


@pytest.mark.parametrize("when", ["11/16/2026 13:15 PM", "11/16/2026 0:15 AM", "11/16/2026 3:15 XM"])
def test_an_hour_that_is_none_is_refused(tmp_path, when):
    assert f"'{when}' is not" in refusal(read_panel, write(tmp_path, f"time,a\n{when},1\n"))
    assert live_seconds(when) is None


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet", "npz"])
def test_pipes_are_read_whatever_they_hold(tmp_path, kind):
    path = tmp_path / f"readings.{'csv.gz' if kind == 'gz' else kind}"
    if kind == "gz":
        path.write_bytes(gzip.compress(WIDE.encode()))
    elif kind == "parquet":
        PANEL.to_pandas().to_parquet(path)
    elif kind == "npz":
        PANEL.to_npz(path)
    else:
        path.write_text(WIDE)
    with path.open("rb") as file:  # as `jointset fit /dev/stdin < readings.csv` has it
        assert Panel.read(f"/dev/fd/{file.fileno()}") == PANEL
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        assert Panel.read(f"/dev/fd/{cat.stdout.fileno()}") == PANEL


def test_the_standard_input_is_read_and_refused_where_it_is_empty():
    code = "from jointset.panel import Panel; print(repr(Panel.read('/dev/stdin')))"
    full, empty = (
        subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True) for text in (WIDE, "")
    )
    assert full.stdout.strip() == repr(PANEL), full.stderr
    assert "InputError: /dev/stdin is empty" in empty.stderr


def test_wide_file_is_not_read_as_long(tmp_path):
    message = refusal(read_panel, write(tmp_path, "time,a,b,c\n0,1,2,3\n"), layout="long")
    assert "three columns" in message
    assert "layout='wide'" in message


def test_sensors_that_share_no_times_are_refused_before_memory_runs_out(tmp_path):
    rows = "".join(f"{i},s{i},1\n" for i in range(12_000))
    message = refusal(read_panel, write(tmp_path, "time,sensor,value\n" + rows))
    assert "12000 sensors" in message
    assert "cadence" in message


def test_bad_files_are_refused(tmp_path):
    assert "no such file" in refusal(read_panel, tmp_path / "none.csv")
    assert "folder" in refusal(read_panel, tmp_path)
    assert ".xlsx" in refusal(read_panel, write(tmp_path, "a", "panel.xlsx"))
    assert "Parquet" in refusal(read_panel, write(tmp_path, "PAR1, but not really", "p.parquet"))
    (tmp_path / "latin.csv").write_bytes("Zürich,b\n1,2\n".encode("latin-1"))
    assert "UTF-8" in refusal(read_panel, tmp_path / "latin.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(WIDE.encode())[:-12])
    assert "damaged" in refusal(read_panel, tmp_path / "cut.csv.gz")


def test_bad_npz_is_refused(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, values=np.zeros((2, 1)))
    assert "'sensors'" in refusal(read_panel, path)
    np.savez(path, adjacency=np.zeros((2, 2)))
    assert "'values'" in refusal(read_panel, path)
    np.savez(path, values=np.zeros((2, 1)), sensors=np.array(["a"], dtype=object))
    message = refusal(read_panel, path)
    assert "'sensors'" in message
    assert "pickled" in message
    path.write_bytes(path.read_bytes()[:200])
    assert "p.npz" in refusal(read_panel, path)
    path.write_bytes(b"garbage")
    assert "not a NumPy file" in refusal(read_panel, path)


def test_bad_frames_are_refused():
    frame = PANEL.to_pandas()
    mixed = frame.astype({"b": object})
    mixed.iloc[1, 1] = "oops"
    message = refusal(Panel.from_pandas, mixed)
    assert all(fact in message for fact in ["row 1", "'b'", "'oops'"]), message
    assert "duplicated" in refusal(Panel.from_pandas, frame.set_axis(["a", "a"], axis=1))
    assert "reset_index" in refusal(Panel.from_pandas, frame.set_axis([3, 7]))
    assert "no rows" in refusal(Panel.from_pandas, frame[:0])
    assert "levels" in refusal(Panel.from_pandas, pd.concat({"x": frame}, axis=1))
    assert "Series" in refusal(Panel.from_pandas, frame["a"])
    assert "column b" in refusal(Panel.from_pandas, frame.assign(b=1j))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_index_of_equal_steps_holds_times(suffix, tmp_path):
    frame = pd.read_csv(io.StringIO("time,a\n1700000000,1\n1700000300,2\n1700000600,3\n")).set_index("time")
    frame.index = pd.RangeIndex(1_700_000_000, 1_700_000_900, 300, name="time")  # as some versions of pandas make it
    getattr(frame, f"to_{suffix}")(tmp_path / f"p.{suffix}")
    for panel in (Panel.from_pandas(frame), Panel.read(tmp_path / f"p.{suffix}")):
        assert panel.sensors == ("a",) and panel.timestamps.tolist() == [*frame.index]
    clock = frame.rename_axis("clock")
    assert Panel.from_pandas(clock).timestamps is None
    assert Panel.from_pandas(clock, time_column="clock").timestamps.tolist() == [*frame.index]


def test_a_table_of_another_library_is_taken_by_its_labels():
    table = pa.Table.from_pandas(PANEL.to_pandas())
    assert Panel.from_pandas(table) == PANEL
    assert panel_of(table.select(["b", "a", "time"]), PANEL.sensors) == PANEL


def test_graph_of_a_panel(tmp_path):
    path = write(tmp_path, WIDE)
    edges = write(tmp_path, "source,target,weight\nb,a,2\n", "edges.csv")
    one_way = np.array([[0.0, 0.0], [2.0, 0.0]])
    both = one_way + one_way.T
    np.testing.assert_array_equal(read_panel(path, graph=edges).adjacency, both)
    np.testing.assert_array_equal(read_panel(path, graph=edges, symmetrize=True).adjacency, both)
    np.testing.assert_array_equal(read_panel(path, graph=edges, directed=True).adjacency, one_way)
    np.testing.assert_array_equal(read_panel(path, graph=one_way, symmetrize=True).adjacency, both / 2)
    frame = pd.DataFrame([[0.0, 2.0], [7.0, 0.0]], index=["b", "a"], columns=["b", "a"])
    for fleet in (AS_IT_IS, Fleet(rename={"a": "x"})):
        named = read_panel(
            path, graph=frame.rename(index=fleet.rename, columns=fleet.rename), directed=True, fleet=fleet
        )
        np.testing.assert_array_equal(named.adjacency, [[0.0, 7.0], [2.0, 0.0]])
    averaged = read_panel(path, graph=edges, symmetrize=True, directed=True)
    np.testing.assert_array_equal(averaged.adjacency, both / 2)
    assert not averaged.directed
    assert "symmetrize=True" in refusal(read_panel, path, graph=one_way)
    message = refusal(read_panel, path, graph=write(tmp_path, "source,target\na,z\n", "edges.csv"))
    assert "edges.csv" in message
    assert "panel.csv" not in message


def test_metr_la_facts(real_data):
    path = real_data("metr-la.npz")
    message = refusal(read_panel, path)
    assert all(fact in message for fact in ["metr-la.npz", "max |A - A'|", "symmetrize=True", "directed=True"])
    panel = read_panel(path, directed=True)
    assert panel.values.shape == (34_272, 207)
    assert (panel.cadence, panel.is_regular, panel.missing_share) == (300, True, 0.0)
    assert "1515 directed edges" in panel.describe()
    assert int((panel.values == 0).all(axis=1).sum()) == 2_148
    road = np.where(np.isfinite(panel.distances) & (panel.distances > 0) & (panel.adjacency > 0), panel.distances, NAN)
    scale = road / np.sqrt(-np.log(panel.adjacency, where=panel.adjacency > 0, out=np.full_like(road, NAN)))
    scale = scale[np.isfinite(scale)]
    np.testing.assert_allclose(scale, np.median(scale), rtol=1e-3)  # values, names and graph are in one order
    assert read_panel(path, symmetrize=True).directed is False


def test_jena_is_refused_for_its_repeated_stamp(real_data):
    assert "repeats" in refusal(read_panel, real_data("jena.npz"))


def test_graph_over_more_sensors_is_restricted(real_data):
    panel = read_panel(real_data("pems-bay-16.npz"), directed=True)
    graph = read_graph(real_data("pems-bay-graph.npz"), panel.sensors)
    np.testing.assert_array_equal(graph, panel.adjacency)
