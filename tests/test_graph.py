import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jointset.errors import InputError
from jointset.graph import check_adjacency, modes, normalized_shift, symmetrize
from jointset.inputs.graph_files import read_graph

SENSORS = ("a", "b", "c")
A = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 2.5], [0.0, 2.5, 0.0]])
weights = st.integers(1, 8).flatmap(lambda n: arrays(np.float64, (n, n), elements=st.floats(0, 100)))


def refusal(call, *args, **options) -> str:
    """Message of the refusal, which must be one line."""
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(tmp_path, text, name="graph.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@given(weights)
def test_shift_is_symmetric_with_top_eigenvalue_one(adjacency):
    shift = normalized_shift(adjacency)
    values, vectors = modes(shift)
    np.testing.assert_array_equal(shift, shift.T)
    assert values[-1] == pytest.approx(1.0)
    assert values[0] > -1.0
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(shift)), atol=1e-12)
    np.testing.assert_allclose(vectors * values @ vectors.T, shift, atol=1e-12)


@given(weights)
def test_shift_ignores_self_loops_and_direction(adjacency):
    looped = adjacency + np.diag(np.arange(len(adjacency)))
    np.testing.assert_allclose(normalized_shift(looped), normalized_shift(adjacency), atol=1e-15)
    np.testing.assert_allclose(normalized_shift(adjacency.T), normalized_shift(adjacency), atol=1e-15)


@given(weights, st.randoms())
def test_shift_follows_a_permutation_of_the_sensors(adjacency, random):
    order = list(range(len(adjacency)))
    random.shuffle(order)
    permuted = normalized_shift(adjacency[np.ix_(order, order)])
    np.testing.assert_allclose(permuted, normalized_shift(adjacency)[np.ix_(order, order)], atol=1e-14)


def test_shift_leaves_its_input_alone():
    given_ = A.copy()
    normalized_shift(given_)
    np.testing.assert_array_equal(given_, A)


def test_symmetrize_keeps_the_symmetric():
    np.testing.assert_array_equal(symmetrize(A), A)


@pytest.mark.parametrize(
    ("adjacency", "facts"),
    [
        (A[:2], ["(2, 3)", "(3, 3)"]),
        (np.where(A == 2.5, np.nan, A), ["finite", "'b'", "'c'"]),
        (np.where(A == 2.5, np.inf, A), ["finite", "'b'", "'c'"]),
        (-A, ["negative", "'a'", "'b'"]),
        (np.triu(A), ["not symmetric", "max |A - A'| = 2.5", "symmetrize=True", "directed=True"]),
        (np.full((3, 3), "x"), ["numbers"]),
    ],
)
def test_bad_adjacency_is_refused(adjacency, facts):
    message = refusal(check_adjacency, adjacency, 3, sensors=SENSORS)
    assert all(fact in message for fact in facts), message


def test_float32_rounding_is_no_asymmetry():
    rounded = A.copy()
    rounded[1, 2] *= 1 + 1e-7
    np.testing.assert_array_equal(check_adjacency(rounded, 3), rounded)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edges.csv", "source,target,weight\nb,a,1\nb,c,2.5\n"),
        ("both_ways.csv", "weight,target,source\n1,b,a\n1,a,b\n2.5,c,b\n2.5,b,c\n"),
        ("dcrnn.csv", "from,to,cost\na,b,1\nc,b,2.5\n"),
        ("edges.tsv", "source\ttarget\tweight\na\tb\t1\nc\tb\t2.5\n"),
        ("bare.csv", "0,1,0\n1,0,2.5\n0,2.5,0\n"),
        ("named.csv", ",c,a,b\na,0,0,1\nc,0,0,2.5\nb,2.5,1,0\n"),
        ("superset.csv", "sensor,z,c,a,b\nz,0,9,9,9\na,9,0,0,1\nc,9,0,0,2.5\nb,9,2.5,1,0\n"),
    ],
)
def test_every_text_form_gives_the_same_adjacency(tmp_path, name, text):
    np.testing.assert_array_equal(read_graph(write(tmp_path, text, name), SENSORS), A)


def test_arrays_on_disk_are_aligned_by_name(tmp_path):
    order = [2, 0, 1]
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "plain.npz", adjacency=A)
    np.savez(tmp_path / "named.npz", adjacency=A[np.ix_(order, order)], sensors=[SENSORS[i] for i in order])
    for name in ("a.npy", "plain.npz", "named.npz"):
        np.testing.assert_array_equal(read_graph(tmp_path / name, SENSORS), A)


@given(st.permutations(SENSORS), st.permutations(SENSORS))
def test_named_matrix_is_aligned_whatever_the_orders(tmp_path_factory, rows, columns):
    place = {name: i for i, name in enumerate(SENSORS)}
    lines = [",".join(["", *columns])]
    lines += [",".join([row, *(str(A[place[row], place[column]]) for column in columns)]) for row in rows]
    path = write(tmp_path_factory.mktemp("graph"), "\n".join(lines))
    np.testing.assert_array_equal(read_graph(path, SENSORS), A)


def test_directed_edges_fill_one_direction(tmp_path):
    path = write(tmp_path, "source,target,weight\na,b,1\nb,a,3\n")
    np.testing.assert_array_equal(read_graph(path, ("a", "b"), directed=True), [[0, 1], [3, 0]])
    message = refusal(read_graph, path, ("a", "b"))
    assert re.search(r"line 3: edge 'b' - 'a' has weight 3 but 1 in line 2.*directed=True", message)


def test_symmetrized_edges_get_the_mean_of_both_ways(tmp_path):
    path = write(tmp_path, "source,target,weight\na,b,1\nb,a,2\nb,c,4\n")
    expected = [[0, 1.5, 0], [1.5, 0, 4], [0, 4, 0]]
    np.testing.assert_array_equal(read_graph(path, ("a", "b", "c"), symmetrize=True), expected)
    path = write(tmp_path, "source,target,weight\na,b,2\nb,a,0\n")
    assert read_graph(path, ("a", "b"), symmetrize=True)[0, 1] == 1.0
    twice = write(tmp_path, "source,target,weight\na,b,1\na,b,2\n")
    assert "directed" not in refusal(read_graph, twice, ("a", "b"))


def test_edges_default_to_weight_one_and_leave_others_isolated(tmp_path):
    adjacency = read_graph(write(tmp_path, "source,target\n1,0\n"), ("0", "1", "2"))
    np.testing.assert_array_equal(adjacency, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("name", "text", "facts"),
    [
        ("g.csv", "source,target\na,q\n", ["line 2", "'q'", "not in the data"]),
        ("g.csv", "source,target,weight\na,b,much\n", ["line 2", "'weight'", "'much'"]),
        ("g.csv", "source,target,weight\na,b,\n", ["line 2", "''"]),
        ("g.csv", "source,target,weight\na,b,-1\n", ["negative", "'a'", "'b'"]),
        ("g.csv", "source,target,weight\na,b\n", ["line 2", "2 cells", "3"]),
        ("g.csv", "source,target,lanes\na,b,2\n", ["'lanes'"]),
        ("g.csv", "0,1\n1,0\n", ["(2, 2)", "(3, 3)"]),
        ("g.csv", ",a,b\na,0,1\nb,1,0\n", ["'c'", "not in the graph"]),
        ("g.csv", ",a,b,c\na,0,1,0\nb,1,0,0\nd,0,0,0\n", ["edge list", "matrix"]),
        ("g.csv", ",a,a,c\na,0,1,0\na,1,0,0\nc,0,0,0\n", ["'a'", "more than once"]),
        ("g.csv", "0,1,0\n1,0,x\n0,1,0\n", ["line 2", "'x'"]),
        ("g.xml", "<graph/>", [".xml", ".csv"]),
        ("g.npz", "not an archive", ["not a NumPy file"]),
    ],
)
def test_bad_graph_file_is_refused(tmp_path, name, text, facts):
    message = refusal(read_graph, write(tmp_path, text, name), SENSORS)
    assert all(fact in message for fact in [name, *facts]), message


def test_missing_graph_and_missing_key_are_refused(tmp_path):
    assert "no such file" in refusal(read_graph, tmp_path / "none.csv", SENSORS)
    np.savez(tmp_path / "g.npz", weights=A)
    assert "'adjacency'" in refusal(read_graph, tmp_path / "g.npz", SENSORS)


def test_rounding_is_measured_by_the_largest_weight():
    small = A * 1e-4
    small[0, 1] += 1e-7
    with pytest.raises(InputError, match="not symmetric"):
        check_adjacency(small, 3)
    small[0, 1] = 1e-4 + 1e-11
    check_adjacency(small, 3)
