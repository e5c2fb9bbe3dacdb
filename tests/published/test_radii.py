"""MultiDimSPCI and SPCI: agreement with recorded outputs, the quantile forest, and the covariances."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from jointset.published.forest import (
    Forest,
    ForestSettings,
    ForestState,
    forest_intervals,
    forest_weights,
    grow,
    leaves,
    weighted_quantiles,
)
from jointset.published.multidim import REFIT, MultiDimRule, evaluate, invertible, local_covariances, shrunk, train
from jointset.published.shortest_intervals import levels, sliding_intervals
from jointset.published.spci import SPCIRule

EXACT = {"rtol": 0.0, "atol": 1e-10}
GRID = np.linspace(0.0, 0.1, 5)
TRAIN = 400


def agrees(ours, recorded, tag):
    """Lower, upper and the chosen beta of every test step."""
    lower, upper, best = ours
    np.testing.assert_allclose(lower, recorded[f"{tag}_lower"], **EXACT)
    np.testing.assert_allclose(upper, recorded[f"{tag}_upper"], **EXACT)
    np.testing.assert_allclose(GRID[best], recorded[f"{tag}_beta_hat"], **EXACT)


def low_rank(covariance, rank):
    """The covariance (N, N) with all but its `rank` largest eigenvalues set to zero."""
    values, vectors = np.linalg.eigh(covariance)
    kept = vectors[:, -rank:]
    return (kept * values[-rank:]) @ kept.T


def root_scores(covariance, residuals):
    """(e' S^+ e)^1/2, the pseudo-inverse where S is singular, as recorded."""
    precision = np.linalg.pinv(covariance, hermitian=True)
    return np.sqrt(np.maximum(np.einsum("...i,...ij,...j->...", residuals, precision, residuals), 0.0))


@pytest.mark.parametrize(("tag", "window", "rank"), [("w100", 100, 5), ("full", 400, 5), ("rank2", 100, 2)])
def test_recorded_empirical_radii(peer, tag, window, rank):
    recorded, tag = peer("multidimspci"), f"enbpi_{tag}"
    residuals = recorded["E"]
    covariance = low_rank(np.cov(residuals[:TRAIN].T), rank)
    np.testing.assert_allclose(covariance, recorded[f"{tag}_global_cov"], **EXACT)
    scores = root_scores(covariance, residuals)
    np.testing.assert_allclose(scores[:TRAIN], recorded[f"{tag}_train_et"], **EXACT)
    np.testing.assert_allclose(scores[TRAIN:], recorded[f"{tag}_test_et"], **EXACT)
    agrees(sliding_intervals(scores[TRAIN - window : TRAIN], scores[TRAIN:-1], 0.1), recorded, tag)


@pytest.mark.parametrize(("tag", "window", "neighbors"), [("w100", 100, 0), ("full", 400, 0), ("local", 100, 40)])
def test_recorded_sets_of_the_rule(peer, tag, window, neighbors):
    """The whole rule, from residuals to annuli: radii, coverage and volume (the annulus, its hole left out)."""
    recorded, tag = peer("multidimspci"), f"enbpi_{tag}"
    residuals = recorded["E"]
    rule = MultiDimRule("empirical", window=window, neighbors=neighbors)
    parameters, state = rule.radii(rule.start(residuals[:TRAIN]), residuals[TRAIN:-1])
    region = rule.shape(state, parameters, np.zeros((200, 5)))
    np.testing.assert_allclose(region.lower, recorded[f"{tag}_lower"], **EXACT)
    np.testing.assert_allclose(region.upper, recorded[f"{tag}_upper"], **EXACT)
    np.testing.assert_array_equal(region.contains(residuals[TRAIN:]), recorded[f"{tag}_covered"])
    np.testing.assert_allclose(np.exp(5 * region.log_volume), recorded[f"{tag}_volume"], rtol=1e-10)


def test_recorded_local_covariances(peer):
    recorded = peer("multidimspci")
    residuals = recorded["E"]
    series = np.concatenate([np.zeros((1, 5)), residuals[:-1]])
    ours = local_covariances(series, TRAIN, 40, np.cov(residuals[:TRAIN].T))
    np.testing.assert_allclose(ours, recorded["enbpi_local_local_cov"], **EXACT)
    np.testing.assert_allclose(root_scores(ours, residuals[TRAIN:]), recorded["enbpi_local_test_et"], **EXACT)


@pytest.mark.parametrize("column", range(5))
def test_recorded_empirical_intervals_of_spci(peer, column):
    recorded = peer("spci")
    series = recorded["E"][:, column]
    agrees(sliding_intervals(series[300:TRAIN], series[TRAIN:-1], 0.1), recorded, f"enbpi_c{column}_w100")


def test_the_box_of_spci_is_its_intervals(peer):
    residuals = peer("spci")["E"]
    rule = SPCIRule("empirical")
    (lower, upper), _ = rule.radii(rule.start(residuals[:TRAIN]), residuals[TRAIN:-1])
    for i in range(5):
        np.testing.assert_allclose(lower[:, i], peer("spci")[f"enbpi_c{i}_w100_lower"], **EXACT)
        np.testing.assert_allclose(upper[:, i], peer("spci")[f"enbpi_c{i}_w100_upper"], **EXACT)


@pytest.mark.parametrize(("tag", "window"), [("spci_w10", 10), ("spci_w100", 100)])
def test_forest_radii_have_the_recorded_distribution(peer, tag, window):
    """Eight seeds at the default refit, pooled; one seed has four forests only in 200 steps, and KS up to 0.16."""
    recorded = peer("multidimspci")
    scores = np.concatenate([recorded[f"{tag}_train_et"], recorded[f"{tag}_test_et"]])
    runs = [_forest(scores, window, refit=REFIT, seed=seed) for seed in range(8)]
    for k, name in enumerate(("lower", "upper")):
        ours, theirs = np.concatenate([run[k] for run in runs]), recorded[f"{tag}_{name}"]
        assert ks_2samp(ours, theirs).statistic < 0.12
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.03)
        assert ours.std() == pytest.approx(theirs.std(), rel=0.25)
    covered = [((scores[TRAIN:] >= low) & (scores[TRAIN:] <= high)).mean() for low, high, *_ in runs]
    assert np.mean(covered) == pytest.approx(recorded[f"{tag}_covered"].mean(), abs=0.03)


@pytest.mark.parametrize(("column", "window"), [(0, 10), (3, 10), (0, 100)])
def test_forest_intervals_have_the_recorded_distribution(peer, column, window):
    recorded, tag = peer("spci"), f"spci_c{column}_w{window}"
    series = recorded["E"][:, column]
    runs = [_forest(series, window, refit=REFIT, seed=seed) for seed in range(8)]
    for k, name in enumerate(("lower", "upper")):
        theirs = recorded[f"{tag}_{name}"]
        assert ks_2samp(np.concatenate([run[k] for run in runs]), theirs).statistic < 0.12
        assert np.corrcoef(np.mean([run[k] for run in runs], axis=0), theirs)[0, 1] > 0.8


@pytest.mark.parametrize("variant", ["forest", "empirical"])
def test_coverage_on_exchangeable_residuals(variant):
    """Within 3 points of 90 % on average: the shortest of five intervals is chosen on the scores it is taken from."""
    rng = np.random.default_rng(7)
    rule = MultiDimRule(variant, window=5 if variant == "forest" else 300)
    covered = []
    for _ in range(5):
        residuals = rng.standard_normal((900, 4)) @ np.array([[1, 0.5, 0, 0], [0, 1, 0, 0], [0, 0, 3, 1], [0, 0, 0, 1]])
        parameters, state = rule.radii(rule.start(residuals[:500]), residuals[500:-1])
        covered.append(rule.shape(state, parameters, np.zeros((400, 4))).contains(residuals[500:]).mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=0.03)


def test_a_share_of_alpha_for_every_sensor_covers_them_together():
    residuals = np.random.default_rng(8).standard_normal((3000, 8))
    joint = {}
    for bonferroni in (False, True):
        rule = SPCIRule("empirical", window=1000, bonferroni=bonferroni)
        parameters, state = rule.radii(rule.start(residuals[:1000]), residuals[1000:-1])
        region = rule.shape(state, parameters, np.zeros((2000, 8)))
        joint[bonferroni] = region.contains(residuals[1000:]).mean()
    assert joint[False] == pytest.approx(0.9**8, abs=0.04)
    assert joint[True] == pytest.approx(0.9, abs=0.04)


def _forest(scores, window, refit, seed=0):
    settings = ForestSettings(0.1, window, 10, 2, refit, seed)
    return forest_intervals(ForestState(scores[:TRAIN], 0, None), scores[TRAIN:-1], settings)


def test_rare_refits_have_the_distribution_of_a_refit_at_every_step():
    rng = np.random.default_rng(0)
    noise, series = rng.standard_normal(700), np.zeros(700)
    for t in range(1, 700):
        series[t] = 0.6 * series[t - 1] + noise[t]
    often = _forest(series[:520], 5, refit=1)
    rarely = [_forest(series[:520], 5, refit=50, seed=seed) for seed in range(5)]
    for k in range(2):
        pooled = np.concatenate([run[k] for run in rarely])
        assert ks_2samp(often[k], pooled).statistic < 0.15
        assert pooled.mean() == pytest.approx(often[k].mean(), abs=0.1)
        assert np.corrcoef(np.mean([run[k] for run in rarely], axis=0), often[k])[0, 1] > 0.8


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_leaves_are_those_of_a_walk_down_the_tree(depth):
    """The leaf reached by walking down, even where a branch ends early."""
    rng = np.random.default_rng(1)
    X, fresh = rng.standard_normal((60, 3)), rng.standard_normal((200, 3))
    forest = grow(X, np.r_[np.zeros(58), 1.0, 5.0], 6, depth, (0,), 1, 0)
    for b in range(6):
        for x, leaf in zip(fresh, leaves(forest, fresh)[:, b].tolist(), strict=True):
            place = 0
            while place < 2**depth - 1:
                place = 2 * place + 1 + int(x[forest.feature[b, place]] > forest.threshold[b, place])
            assert leaf == place - (2**depth - 1)


def test_bootstrap_copies():
    """Each tree has as many copies as pairs, and about one of every later pair."""
    rng = np.random.default_rng(2)
    forest = grow(rng.standard_normal((60, 3)), rng.standard_normal(60), 4, 2, (0,), 500, 0)
    assert forest.copies.shape == (560, 4)
    assert forest.copies[:60].sum(axis=0).tolist() == [60] * 4
    assert forest.copies[60:].mean() == pytest.approx(1.0, abs=0.1)


def test_quantiles_at_the_ends_are_the_extremes_with_weight():
    values, weights = np.array([-50.0, 1.0, 2.0, 3.0, 80.0]), np.array([0.0, 0.2, 0.5, 0.3, 0.0])
    low, middle, high = weighted_quantiles(values, weights, np.array([0.0, 0.45, 1.0]))
    assert (low, high) == (1.0, 3.0)
    assert middle == pytest.approx(2.0)
    several = weighted_quantiles(values, weights, np.linspace(0, 1, 50))
    assert (np.diff(several) >= 0).all()


def test_forest_quantiles_at_zero_and_one():
    """With one leaf the forest is the bootstrap sample: its extremes are extremes of the scores."""
    rng = np.random.default_rng(2)
    y = rng.standard_normal(300)
    forest = grow(np.zeros((300, 3)), y, 10, 2, (1,), 1, 0)  # nothing to split by
    order = np.argsort(y)
    ids = leaves(forest, rng.standard_normal((300, 3)))
    weights = forest_weights(ids[:1], ids, forest.copies[order], np.ones((1, 300), bool))[0]
    ends = weighted_quantiles(y[order], weights, np.array([0.0, 1.0]))
    assert ends.tolist() == [y.min(), y.max()]  # a point is in none of 10 samples with probability 5e-5


def test_forest_weights_sum_to_one_and_ignore_what_is_not_valid():
    pool, copies = np.array([[0], [0], [1], [0]], np.uint8), np.array([[1], [2], [1], [5]], np.uint8)
    valid = np.array([[True, True, True, False]])
    weights = forest_weights(np.array([[0]], np.uint8), pool, copies, valid)
    np.testing.assert_allclose(weights, [[1 / 3, 2 / 3, 0, 0]])
    alone = forest_weights(np.array([[3]], np.uint8), pool, copies, valid)
    np.testing.assert_array_equal(alone, [[1, 1, 1, 0]])


def test_a_forest_goes_on_where_it_was():
    """Any way of cutting the scores into calls gives the same radii."""
    series = np.random.default_rng(3).chisquare(3, 260)
    settings = ForestSettings(0.1, 4, 10, 2, 7, 0)
    whole = forest_intervals(ForestState(series[:200], 0, None), series[200:], settings)
    state, pieces = ForestState(series[:200], 0, None), []
    for a, b in [(200, 201), (201, 201), (201, 230), (230, 260)]:
        lower, *_, state = forest_intervals(state, series[a:b], settings)
        pieces.append(lower[:-1])
    np.testing.assert_array_equal(np.concatenate(pieces), whole[0][:-1])
    assert isinstance(state.forest, Forest)


def test_levels_keep_the_mass_and_stay_in_range():
    for alpha in (0.01, 0.05, 0.1, 0.2, 0.37):
        low, high = levels(alpha, rounded=False)
        np.testing.assert_allclose(high - low, 1 - alpha)
        assert levels(alpha)[1].max() <= 1.0


def test_sliding_intervals_are_quantiles_of_the_window():
    series = np.random.default_rng(4).standard_normal(150)
    lower, upper, best = sliding_intervals(series[:60], series[60:], 0.2, rounded=False)
    low, high = levels(0.2, rounded=False)
    for t in (0, 17, 90):
        np.testing.assert_allclose(lower[t], np.quantile(series[t : t + 60], low[best[t]]))
        np.testing.assert_allclose(upper[t], np.quantile(series[t : t + 60], high[best[t]]))


def test_a_singular_covariance_gets_a_ridge_and_says_so():
    residuals = np.random.default_rng(5).standard_normal((100, 2))[:, [0, 1, 1]]
    with pytest.warns(UserWarning, match="a ridge of"):
        covariance, ridge = invertible(np.cov(residuals.T))
    assert ridge > 0
    np.linalg.cholesky(covariance)
    assert invertible(np.eye(3))[1] == 0.0
    assert np.linalg.eigvalsh(shrunk(np.cov(residuals.T), 0.05))[0] > 0


def test_the_radius_network_learns_a_conditional_quantile():
    """Scores whose scale follows the last residual: radii are larger where it is, and cover about 90 % in sample."""
    rng = np.random.default_rng(6)
    residuals = np.abs(rng.standard_normal((1500, 1)))
    scores = np.r_[1.0, (0.2 + residuals[:-1, 0]) * np.abs(rng.standard_normal(1499))]
    network = train(residuals, scores, 1, 0.1, 20, 0)
    radii = evaluate(network, residuals[:-1])
    assert np.corrcoef(radii, residuals[:-1, 0])[0, 1] > 0.8
    assert (scores[1:] <= radii).mean() == pytest.approx(0.9, abs=0.04)
