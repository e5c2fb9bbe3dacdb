import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointset.errors import InputError
from jointset.panel import Panel

NAN = float("nan")


def make(T=6, n=4, seed=0, **changes) -> Panel:
    """A panel with every optional part, all different."""
    rng = np.random.default_rng(seed)
    parts = {
        "values": rng.normal(size=(T, n)),
        "sensors": [f"s{i}" for i in range(n)],
        "timestamps": 1_330_560_000 + 300 * np.arange(T),
        "adjacency": rng.random((n, n)),
        "directed": True,
        "coordinates": rng.random((n, 2)),
        "distances": rng.random((n, n)),
    }
    return Panel(**(parts | changes))


def refusal(call, *args, **options) -> str:
    """Message of the refusal, which must be one line."""
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"values": np.zeros(6)}, ["1 dimensions"]),
        ({"values": np.array([["a"] * 4] * 6)}, ["numbers"]),
        ({"values": np.where(np.arange(24).reshape(6, 4) == 9, np.inf, 0)}, ["row 2", "'s1'", "2012-03-01T00:10:00Z"]),
        ({"values": np.where(np.arange(24).reshape(6, 4) == 9, -np.inf, 0)}, ["row 2", "'s1'"]),
        ({"values": np.zeros((6, 0)), "sensors": []}, ["no sensors"]),
        ({"sensors": ["a", "b"]}, ["2 sensor names", "4 columns"]),
        ({"sensors": ["a", "b", "a", "c"]}, ["duplicated", "'a'"]),
        ({"sensors": ["a", "b", " ", "c"]}, ["column 2", "no name"]),
        ({"sensors": "abcd"}, ["sequence"]),
        ({"timestamps": [0, 60, 120]}, ["(3,)", "(6,)"]),
        ({"timestamps": np.arange(6) + 0.5}, ["float64"]),
        ({"timestamps": [0, 60, 60, 120, 180, 240]}, ["row 2", "repeats", "1970-01-01T00:01:00Z"]),
        (
            {"timestamps": [0, 60, 30, 120, 180, 240]},
            ["row 2", "1970-01-01T00:00:30Z", "goes back", "row 1", "1970-01-01T00:01:00Z", "sort"],
        ),
        ({"adjacency": np.zeros((3, 3))}, ["(3, 3)", "(4, 4)"]),
        ({"adjacency": np.full((4, 4), NAN)}, ["adjacency", "finite", "'s0'"]),
        ({"adjacency": -np.ones((4, 4))}, ["adjacency", "negative", "'s0'"]),
        ({"adjacency": np.triu(np.ones((4, 4))), "directed": False}, ["max |A - A'| = 1", "symmetrize", "directed"]),
        ({"coordinates": np.zeros((4, 3))}, ["coordinates", "(4, 3)", "(4, 2)"]),
        ({"distances": np.zeros((4, 3))}, ["distances", "(4, 3)", "(4, 4)"]),
    ],
)
def test_bad_parts_are_refused(changes, facts):
    message = refusal(make, **changes)
    assert all(fact in message for fact in facts), message


def test_panel_does_not_follow_later_changes_of_its_input():
    values = np.zeros((3, 2))
    view = np.broadcast_to(values, (3, 2))  # read-only itself, but not what it shows
    panels = Panel(values, ["a", "b"]), Panel(view, ["a", "b"])
    values[:] = 1.0
    assert all((panel.values == 0).all() for panel in panels)
    with pytest.raises(ValueError, match="read-only"):
        panels[0].values[0, 0] = 1.0


def test_slices_share_memory():
    panel = make()
    assert np.shares_memory(panel[2:5].values, panel.values)


@given(st.integers(-8, 8), st.integers(-8, 8))
def test_rows_slice_like_numpy(start, stop):
    panel = make()
    part = panel.rows(start, stop)
    np.testing.assert_array_equal(part.values, panel.values[start:stop])
    np.testing.assert_array_equal(part.timestamps, panel.timestamps[start:stop])
    assert part == panel[start:stop]
    assert part.sensors == panel.sensors


@given(st.permutations(range(4)), st.integers(1, 4))
def test_selection_keeps_everything_aligned(order, k):
    panel, kept = make(), order[:k]
    part = panel.select(kept)
    assert part.values.flags.c_contiguous  # rows stay together, whole-sequence code runs over them
    for i, old in enumerate(kept):
        assert part.sensors[i] == panel.sensors[old]
        np.testing.assert_array_equal(part.values[:, i], panel.values[:, old])
        np.testing.assert_array_equal(part.coordinates[i], panel.coordinates[old])
        for j, other in enumerate(kept):
            assert part.adjacency[i, j] == panel.adjacency[old, other]
            assert part.distances[i, j] == panel.distances[old, other]
    assert part == panel.select([panel.sensors[i] for i in kept])
    mask = np.isin(np.arange(4), kept)
    assert panel.select(mask) == panel.select(sorted(kept))


@given(st.permutations(range(4)), st.integers(0, 6), st.integers(0, 6))
def test_selection_and_slicing_commute(order, start, stop):
    panel = make()
    assert panel.select(order)[start:stop] == panel[start:stop].select(order)


def test_selection_by_one_name_and_from_the_end():
    panel = make()
    assert panel.select("s3") == panel.select([-1]) == panel.select(np.array(["s3"], dtype=object))


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        (["s1", "s_2"], ["unknown", "'s_2'", "did you mean", "'s2'"]),
        (["depot"], ["'depot'", "'s0'"]),
        (["s1", "s1"], ["more than once", "'s1'"]),
        ([1, -3], ["more than once", "'s1'"]),
        ([4], ["4", "0 .. 3"]),
        ([], ["no sensors"]),
        ([False] * 4, ["no sensors"]),
        ([True, False], ["2 entries", "4 sensors"]),
    ],
)
def test_bad_selection_is_refused(asked, facts):
    message = refusal(make().select, asked)
    assert all(fact in message for fact in facts), message


def test_between_is_half_open_and_takes_every_form_of_time():
    panel = make()
    expected = panel[1:3]
    start = datetime(2012, 3, 1, 0, 5)
    stop = start + timedelta(minutes=10)
    zone = timezone(timedelta(hours=2))
    assert panel.between("2012-03-01T00:05", "2012-03-01 00:15:00Z") == expected
    assert panel.between("2012-03-01T02:05+02:00", 1_330_560_900) == expected
    assert panel.between(start, stop) == expected
    assert panel.between(start.replace(tzinfo=UTC).astimezone(zone), np.datetime64(stop)) == expected
    assert panel.between("2012-03-01T00:00:00.5", stop) == expected
    assert panel.between(None, stop) == panel[:3]
    assert panel.between(start) == panel[1:]
    assert len(panel.between("2030-01-01")) == 0


def test_bad_time_ranges_are_refused():
    panel = make()
    assert "'noon'" in refusal(panel.between, "noon")
    assert "after stop" in refusal(panel.between, "2012-03-02", "2012-03-01")
    assert "no time stamps" in refusal(make(timestamps=None).between, "2012-03-01")


@pytest.mark.parametrize("index", [3, "2012-03-01", slice(None, None, -1), slice(None, None, 0)])
def test_only_forward_slices_of_time_are_taken(index):
    refusal(make().__getitem__, index)


@given(st.integers(0, 200), st.lists(st.integers(0, 10), min_size=1, max_size=6).filter(any))
def test_split_covers_every_row_once_in_order(T, shares):
    panel = make(T=T)
    blocks = panel.split([share / sum(shares) for share in shares])
    assert len(blocks) == len(shares)
    np.testing.assert_array_equal(np.concatenate([block.values for block in blocks]), panel.values)
    np.testing.assert_array_equal(np.concatenate([block.timestamps for block in blocks]), panel.timestamps)


@pytest.mark.parametrize(("T", "sizes"), [(34_272, [23_990, 3_428, 3_427, 3_427]), (15, [10, 2, 2, 1]), (0, [0] * 4)])
def test_split_sizes(T, sizes):
    assert [len(block) for block in Panel(np.zeros((T, 1)), ["a"]).split()] == sizes


@pytest.mark.parametrize("fractions", [(0.5, 0.4), (1.5, -0.5), ()])
def test_bad_fractions_are_refused(fractions):
    assert "sum to 1" in refusal(make().split, fractions)


def test_mask_and_missing_share():
    panel = Panel([[1.0, NAN], [NAN, NAN]], ["a", "b"])
    np.testing.assert_array_equal(panel.mask, [[True, False], [False, False]])
    assert panel.missing_share == 0.75
    assert make(T=0).missing_share == 0.0


@pytest.mark.parametrize(
    ("stamps", "cadence", "regular"),
    [([0, 60, 120, 180], 60, True), ([0, 60, 180, 240], 60, False), ([0, 60, 180, 181], 1, False), (None, None, False)],
)
def test_cadence(stamps, cadence, regular):
    panel = Panel(np.zeros((4, 1)), ["a"], timestamps=stamps)
    assert (panel.cadence, panel.is_regular) == (cadence, regular)


def test_datetime64_stamps_are_epoch_seconds():
    stamps = np.array(["2012-03-01T00:00", "2012-03-01T00:05"], dtype="datetime64[ns]")
    np.testing.assert_array_equal(make(T=2, timestamps=stamps).timestamps, [1_330_560_000, 1_330_560_300])
    assert "second" in refusal(make, T=2, timestamps=stamps + np.timedelta64(1, "ms"))
    assert "NaT" in refusal(make, T=2, timestamps=np.array(["2012-03-01", "NaT"], dtype="datetime64[s]"))


def test_constant_sensors_are_named():
    panel = Panel([[1.0, 5.0, NAN, NAN], [2.0, 5.0, NAN, 3.0], [1.0, NAN, NAN, 3.0]], list("abcd"))
    assert panel.constant_sensors() == ("b", "c", "d")
    message = refusal(panel.require_varying)
    assert all(fact in message for fact in ["without any reading", "'c'", "drop"])
    message = refusal(panel.select(["a", "b", "d"]).require_varying)
    assert all(fact in message for fact in ["constant", "'b', 'd'", "drop"])
    varying = panel.select(["a"])
    assert varying.require_varying() is varying


def test_graph_and_values_can_be_replaced():
    panel = make()
    upper = np.triu(np.ones((4, 4)), 1)
    assert not panel.with_graph(upper, symmetrize=True).directed
    np.testing.assert_array_equal(panel.with_graph(upper, symmetrize=True).adjacency, (upper + upper.T) / 2)
    np.testing.assert_array_equal(panel.with_graph(upper, directed=True).adjacency, upper)
    assert "symmetrize=True" in refusal(panel.with_graph, upper)
    assert panel.with_graph(None).adjacency is None
    assert panel.with_values(panel.values * 2).with_values(panel.values) == panel
    assert "(5, 4)" in refusal(panel.with_values, np.zeros((5, 4)))


def test_self_loops_are_kept_as_given():
    assert (make(adjacency=np.eye(4)).adjacency.diagonal() == 1).all()


def test_equality_sees_every_part():
    panel = make()
    assert panel == make()
    assert panel != "panel"
    for changed in (
        make(seed=1),
        make(sensors=list("abcd")),
        make(timestamps=None),
        make(adjacency=None),
        make(coordinates=None),
        make(distances=None),
        panel.with_graph(np.ones((4, 4)), directed=True),
    ):
        assert panel != changed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npz_round_trip_is_lossless(tmp_path, dtype):
    values = np.random.default_rng(1).normal(size=(6, 4)).astype(dtype)
    values[2, 1] = NAN
    distances = np.full((4, 4), np.inf, dtype=dtype)
    for panel in (make(values=values, distances=distances), Panel(values, list("abcd"))):
        path = panel.to_npz(tmp_path / "panel.npz")
        assert Panel.read(path) == panel
        assert np.load(path, allow_pickle=False)["values"].dtype == dtype


def test_failed_write_leaves_the_old_file_and_no_trace(tmp_path, monkeypatch):
    path = make().to_npz(tmp_path / "panel.npz")

    def disk_full(file, **_):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", disk_full)
    with pytest.raises(InputError, match="no space"):
        make(seed=1).to_npz(path)
    assert Panel.read(path) == make()
    assert [file.name for file in tmp_path.iterdir()] == ["panel.npz"]


def test_npz_goes_to_an_existing_folder_and_a_readable_name(tmp_path):
    assert "no such folder" in refusal(make().to_npz, tmp_path / "none" / "panel.npz")
    assert ".npz" in refusal(make().to_npz, tmp_path / "panel.dat")


def test_pandas_round_trip(tmp_path):
    panel = Panel([[1.0, NAN], [3.0, 4.0]], ["773869", "b"], timestamps=[0, 300])
    frame = panel.to_pandas()
    assert str(frame.index[1]) == "1970-01-01 00:05:00+00:00"
    frame.iloc[0, 0] = 9.0  # the frame is the user's own
    assert panel.values[0, 0] == 1.0
    assert Panel.from_pandas(panel.to_pandas()) == panel
    plain = Panel(panel.values, panel.sensors)
    assert Panel.from_pandas(plain.to_pandas()) == plain


def test_description_is_one_line_of_facts():
    text = repr(make(adjacency=np.ones((4, 4)), directed=False))
    assert text == (
        "Panel(4 sensors x 6 steps, 2012-03-01T00:00:00Z to 2012-03-01T00:25:00Z every 300 s, 0.0 % missing, 6 edges)"
    )


def test_import_is_light():
    heavy = "('pandas', 'pyarrow', 'torch', 'sklearn')"
    code = f"import sys, jointset.panel, jointset.inputs.reading; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("rows", "first"), [(45, 32), (85, 60), (165, 116)])
def test_blocks_that_end_at_a_half_end_at_the_even_row(rows, first):
    blocks = Panel(np.zeros((rows, 1)), ["a"]).split()
    assert len(blocks[0]) == first and sum(map(len, blocks)) == rows


def test_data_frames_of_graphs_and_places_go_by_their_labels():
    names, turned = ["a", "b", "c"], ["c", "a", "b"]
    A = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    places = np.array([[50.0, 8.0], [51.0, 9.0], [52.0, 10.0]])
    frame = pd.DataFrame(A, index=names, columns=names).loc[turned, turned]
    where = pd.DataFrame(places, index=names, columns=["lat", "lon"]).loc[turned]
    panel = Panel(np.ones((2, 3)), names, adjacency=frame, distances=frame, coordinates=where)
    for found, expected in ((panel.adjacency, A), (panel.distances, A), (panel.coordinates, places)):
        np.testing.assert_array_equal(found, expected)
    half = pd.DataFrame(frame.to_numpy(), columns=turned)  # only its columns are named
    wider = pd.DataFrame(np.eye(4), index=[*turned, "d"], columns=[*turned, "d"])
    for graph, expected in ((frame, A), (half, A), (pd.DataFrame(A), A), (wider, np.eye(3))):
        np.testing.assert_array_equal(panel.with_graph(graph).adjacency, expected)
        np.testing.assert_array_equal(panel.with_graph(graph, symmetrize=True).adjacency, expected)
    with pytest.raises(InputError, match="no 'c' in its index"):
        panel.with_graph(frame.rename(index={"c": "z"}))
    with pytest.raises(InputError, match="names 'a' more than once"):
        panel.with_graph(frame.iloc[[0, 1, 1, 2], [0, 1, 1, 2]])
    readings = pd.DataFrame([[3.0, 1.0, 2.0]] * 2, columns=turned)
    for found in (
        panel.with_values(readings),
        Panel(readings, names),
        Panel(readings.rename(columns=str.upper), turned),
    ):
        np.testing.assert_array_equal(found.select(names).values, [[1.0, 2.0, 3.0]] * 2)


def test_none_may_be_left_out():
    panel = Panel(np.array([[1.0, 2.0], [2.0, 1.0]]), ["a", "b"])
    assert panel.drop(panel.constant_sensors()) == panel == panel.drop([])


def test_what_is_masked_is_missing():
    kept = np.array([[1.0, np.nan], [2.0, 3.0]])
    for kind in (float, np.float32, int):
        masked = np.ma.masked_equal(np.array([[1, -99], [2, 3]], dtype=kind), -99)
        panel = Panel(masked, ["a", "b"])
        for values in (panel.values, panel.with_values(masked).values):
            np.testing.assert_array_equal(values, kept)
