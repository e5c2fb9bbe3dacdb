"""The rule of winners: at target first, then size within a shape, and what cannot be told from the best."""

import sys
from pathlib import Path

import pandas as pd
from synthetic_results import row

from jointset.bench.tables.measured import summed

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from winners import shape_of, standings, ties


def rows(method, joints, sizes, *, cell="metr-la-20", protocol="text", **more):
    """A row for every seed; `sizes` are log mean volumes of ellipsoids and widths of boxes."""
    key = "width_full" if shape_of(method) == "box" else "log_mean_volume"
    n = int(cell.rpartition("-")[2])
    return [
        row(cell, method, seed, method, joint=joint, protocol=protocol, n=n, **{key: size}, **more)
        for seed, (joint, size) in enumerate(zip(joints, sizes, strict=True))
    ]


def order(found, shape="ellipsoid", cell="metr-la-20", protocol="text"):
    return standings(summed(pd.DataFrame(found)), cell, protocol, shape)


def named(found):
    return [one.key[2] for one in found]


def test_rows_below_target_cannot_win_whatever_their_size():
    found = order(rows("kalman", [0.894, 0.8955], [0.1, 0.1]) + rows("static", [0.894, 0.8961], [0.5, 0.5]))
    assert named(found) == ["static"]


def test_each_shape_has_its_own_measure_and_its_own_winner():
    made = rows("ewma", [0.9], [0.3], width_full=9.0) + rows("static", [0.9], [0.5], width_full=1.0)
    made += rows("copula", [0.9], [3.0], log_mean_volume=-9.0) + rows("ewma:box+aci", [0.9], [2.5])
    assert named(order(made)) == ["ewma", "static"]
    assert named(order(made, "box")) == ["ewma:box+aci", "copula"]


def test_within_one_standard_deviation_is_a_tie():
    best = rows("gnf-node", [0.9] * 3, [0.9, 1.0, 1.1])  # sd 0.1
    made = best + rows("static", [0.9] * 3, [1.09] * 3) + rows("factor", [0.9] * 3, [1.11] * 3)
    made += rows("local", [0.9] * 3, [0.95, 1.4, 1.8])  # sd 0.43, 0.38 behind
    found = order(made)
    assert named(found) == ["gnf-node", "static", "factor", "local"]
    assert named(ties(found)) == ["gnf-node", "static", "local"]
    assert named(ties(order(rows("static", [0.9], [1.0]) + rows("ewma", [0.9], [1.0001])))) == ["static"]


def test_sets_without_an_end_and_quick_looks_do_not_count():
    made = rows("static", [1.0], [float("inf")]) + rows("ewma", [0.9], [0.1], limit_steps=100)
    assert order(made + rows("kalman", [0.9], [0.5]))[0].key[2] == "kalman"
    assert order(made) == []


def test_where_seeds_are_other_sensors_a_row_without_all_of_them_does_not_count():
    made = rows("static", [0.9] * 3, [1.0] * 3, protocol="table") + rows("ewma", [0.9], [0.5], protocol="table")
    assert named(order(made, protocol="table")) == ["static"]
    made = rows("static", [0.9] * 3, [1.0] * 3) + rows("ewma", [0.9], [0.5])  # `text`: the same cell for every seed
    assert named(order(made)) == ["ewma", "static"]


def test_where_all_sensors_are_taken_seeds_share_the_readings_and_one_is_enough():
    made = rows("gnf", [0.9] * 3, [1.0] * 3, cell="metr-la-207", protocol="table")
    made += rows("ewma", [0.9], [0.5], cell="metr-la-207", protocol="table")
    assert named(order(made, cell="metr-la-207", protocol="table")) == ["ewma", "gnf"]
    made = rows("gnf", [0.9] * 3, [1.0] * 3, cell="grssf-a-30") + rows("ewma", [0.9], [0.5], cell="grssf-a-30")
    assert named(order(made, cell="grssf-a-30")) == ["gnf"]


def test_a_shape_is_that_of_the_geometry_or_the_usual_one_of_the_method():
    methods = ("ewma:lean+aci", "copula", "ewma:box", "factor+aci", "multidim-spci", "ewma")
    assert [shape_of(method) for method in methods] == ["box"] * 3 + ["ellipsoid"] * 3
