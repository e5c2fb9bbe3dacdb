"""Rows of this year's peers: what each is made of (`staci`, `msr`, `space`)."""

import numpy as np
import pytest

from jointset import InputError, Panel, generate_grssf
from jointset.contracts import Pilot
from jointset.laws import LowRankLaw
from jointset.methods import predictor_for
from jointset.residuals import linear_heads
from jointset.residuals.linear_heads import LinearHeads, heads
from jointset.residuals.topology import Topology, nearest_range, path_lengths, tail_up

RIVER = np.zeros((6, 6))  # two springs join and flow on: 0 -> 2 <- 1, 2 -> 3 -> 4; 5 stands alone
RIVER[[0, 1, 2, 3], [2, 2, 3, 4]] = 1.0


def pilot(residuals, adjacency=None, **given):
    means = np.zeros_like(residuals)
    return Pilot(residuals, given.get("means", means), given.get("times"), adjacency, given.get("cadence"), "row")


# ---------------------------------------------------------------------- staci


def test_only_what_a_stream_joins_is_correlated():
    G = tail_up(path_lengths(RIVER), 2.0)
    assert G[0, 1] == G[4, 5] == 0.0  # two springs, and a sensor by itself
    assert G[0, 4] == G[4, 0] == pytest.approx(np.exp(-3 / 2.0))
    both_ways = tail_up(path_lengths(RIVER + RIVER.T), 2.0)
    assert both_ways[0, 1] == pytest.approx(np.exp(-2 / 2.0))


def test_a_weaker_edge_is_longer_and_a_way_around_is_taken():
    A = np.array([[0.0, 1.0, 0.05], [1.0, 0.0, 1.0], [0.05, 1.0, 0.0]])
    d = path_lengths(A)
    assert d[0, 1] == 1.0 and d[0, 2] == pytest.approx(np.sqrt(1.0 + np.log(20.0)))
    assert path_lengths(A**4)[0, 2] == 2.0


def test_correlations_of_a_ring_are_made_positive_definite():
    ring = np.roll(np.eye(7), 1, axis=0) + np.roll(np.eye(7), 3, axis=0)
    d = path_lengths(ring)
    assert np.linalg.eigvalsh(np.exp(-d / 20.0))[0] < np.linalg.eigvalsh(tail_up(d, 20.0))[0]
    G = tail_up(d, 20.0)
    assert np.diag(G) == pytest.approx(1.0) and np.linalg.eigvalsh(G)[0] > 0


def test_the_range_of_a_tail_up_process_is_found():
    d = path_lengths(RIVER)
    assert nearest_range(d, tail_up(d, 3.0)) == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize(("rows", "truth", "lowest", "highest"), [(60, "graph", 0.3, 1.0), (4000, "other", 0.0, 0.2)])
def test_the_graph_counts_where_rows_are_few_and_not_where_they_contradict_it(rows, truth, lowest, highest):
    line = np.eye(20, k=1)
    rng = np.random.default_rng(1)
    S = tail_up(path_lengths(line), 3.0) if truth == "graph" else 0.1 * np.eye(20) + 0.9
    S = S * (1.0 if truth == "graph" else np.outer(np.tile([1.0, -1.0], 10), np.tile([1.0, -1.0], 10)))
    shape = Topology().fit(pilot(rng.multivariate_normal(np.zeros(20), S, rows), line))
    assert lowest <= shape.weight <= highest


def test_weight_nothing_is_the_covariance_of_the_residuals():
    E = np.random.default_rng(0).normal(size=(100, 6))
    shape = Topology(weight=0.0).fit(pilot(E, RIVER))
    assert shape.covariance == pytest.approx(E.T @ E / 99)
    assert np.diag(Topology(weight=0.7).fit(pilot(E, RIVER)).covariance) == pytest.approx(np.diag(shape.covariance))


@pytest.mark.parametrize("method", ["staci", "group", "spectral"])
def test_a_method_without_its_graph_says_how_to_give_one(method):
    panel = Panel(np.random.default_rng(0).normal(size=(300, 3)), ["a", "b", "c"])
    with pytest.raises(InputError, match=rf"{method} needs a graph: give .*--graph knn .*with_graph.*, or use static"):
        predictor_for(method).fit(panel)


# ---------------------------------------------------------------------- msr


def test_the_slope_is_that_of_the_likelihood():
    rng = np.random.default_rng(0)
    X, z = np.column_stack([np.ones(40), rng.normal(size=(40, 2))]), rng.normal(size=(40, 5))
    theta = 0.3 * rng.normal(size=(3, 5, 3))
    value, slope = linear_heads._loss(X, z, theta)
    law = LowRankLaw(np.zeros_like(z), *heads(X, theta[:, :, 0], theta[:, :, 1:]))
    ridge = 0.5 * linear_heads.RIDGE * (theta[1:] ** 2).sum()
    assert value == pytest.approx(law.nll(z).mean() - 2.5 * np.log(2 * np.pi) + ridge)
    for place in [(0, 0, 0), (1, 3, 0), (0, 2, 1), (2, 4, 2)]:
        moved = np.zeros_like(theta)
        moved[place] = 1e-6
        numeric = (linear_heads._loss(X, z, theta + moved)[0] - linear_heads._loss(X, z, theta - moved)[0]) / 2e-6
        assert slope[place] == pytest.approx(numeric, abs=1e-6)


def test_the_covariance_follows_the_clock_and_the_level():
    rng, rows = np.random.default_rng(0), 2400
    times, level = 3600 * np.arange(rows), rng.normal(size=rows)
    night = np.where(times % 86_400 < 43_200, 3.0, 1.0)
    common = rng.normal(size=(rows, 1))
    E = (common + rng.normal(size=(rows, 4))) * night[:, None] * np.exp(0.5 * np.clip(level, -2, 2))[:, None]
    means = level[:, None] * np.ones(4)
    shape = LinearHeads().fit(pilot(E, means=means, times=times, cadence=3600))
    when = np.array([6, 18]) * 3600
    laws, _ = shape.run(np.zeros((2, 4)), np.zeros((2, 4)), when, shape.start())
    assert np.sqrt(laws.variance[0] / laws.variance[1]) == pytest.approx(3.0, rel=0.3)
    calm, loud = (shape.run(np.zeros((1, 4)), np.full((1, 4), c), when[:1], shape.start())[0] for c in (-1.0, 1.0))
    assert (np.sqrt(loud.variance / calm.variance) > 1.7).all()  # e, less what factors linear in x cannot follow
    related = laws[0].factor @ laws[0].factor.T / laws.variance[0].mean()
    assert related[~np.eye(4, dtype=bool)] == pytest.approx(0.5, abs=0.15)


def test_rows_without_times_follow_one_another():
    E, times = np.random.default_rng(0).normal(size=(400, 3)), 3600 * np.arange(400)
    shape = LinearHeads().fit(pilot(E, times=times, cadence=3600))
    told = shape.run(E[:5], E[:5], times[-1] + 3600 * np.arange(1, 6), shape.start())
    assert shape.run(E[:5], E[:5], None, shape.start())[0].variance == pytest.approx(told[0].variance)
    assert told[1].next == times[-1] + 6 * 3600


# ---------------------------------------------------------------------- space


def test_space_is_the_law_of_var_under_the_window_rule():
    train, calibration, test = (
        generate_grssf("B", n=8, length=900).panel[a:b] for a, b in ((0, 500), (500, 800), (800, 900))
    )
    one, other = (predictor_for(name).fit(train).calibrate(calibration).run(test) for name in ("space", "var+window"))
    assert np.array_equal(one.radius, other.radius) and np.array_equal(one.score, other.score)
