"""The geometric mean of laws and the weights of its members."""

import numpy as np
import pytest
from scipy import stats

from jointset import GraphLGSSM, JointPredictor, PooledFilter, generate_grssf
from jointset.algebra.pooling import Tails, best_weights, cost, log_scores, mixture_weights, pooled
from jointset.checks import check_predictor
from jointset.errors import InputError
from jointset.filters.residual import ResidualFilter
from jointset.laws import DenseLaw, LowRankLaw, matrix_of
from jointset.residuals.components import OrthogonalBlocks
from jointset.residuals.shapes import EWMA, Rolling
from jointset.residuals.splits import ResidualSplit

TWO = (GraphLGSSM(), GraphLGSSM(rho=0.5))


def low_rank(rng, rows, n, rank):
    return LowRankLaw(rng.normal(size=(rows, n)), 0.5 + rng.random((rows, n)), rng.normal(size=(rows, n, rank)))


@pytest.mark.parametrize("kinds", ["low rank", "dense", "both"])
def test_the_density_of_the_pool_is_the_product_of_powers(kinds):
    """Up to a constant: differences of log densities between points are the weighted ones of the members."""
    rng = np.random.default_rng(0)
    laws = [low_rank(rng, 4, 6, rank) for rank in (0, 2, 3)]
    if kinds != "low rank":
        laws = [DenseLaw(laws[0].mean, matrix_of(laws[0])[0]), *laws[1:]]  # one covariance for all steps
    if kinds == "dense":
        laws = [laws[0], *(DenseLaw(law.mean, matrix_of(law)) for law in laws[1:])]
    weights = np.array([0.2, 0.5, 0.3])
    sizes = np.array([2.0, 0.5, 1.0])
    law = pooled(laws, weights, sizes)
    assert isinstance(law, LowRankLaw) == (kinds == "low rank")
    points = rng.normal(size=(20, 4, 6))
    found = np.array([law.mahalanobis(y) for y in points])
    wanted = sum(
        w / s * np.array([one.mahalanobis(y) for y in points]) for w, s, one in zip(weights, sizes, laws, strict=True)
    )
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-7)


def test_low_rank_members_stay_of_low_rank():
    rng = np.random.default_rng(1)
    law = pooled([low_rank(rng, 3, 50, 4), low_rank(rng, 3, 50, 2)], np.array([0.5, 0.5]))
    assert isinstance(law, LowRankLaw) and law.factor.shape == (3, 50, 4 + 2)


def test_who_is_sure_has_the_say():
    """Of two members that differ in the mean, the pool stands by the one whose variance is small."""
    sure, unsure = (DenseLaw(np.full(2, at), size * np.eye(2)) for at, size in ((0.0, 0.01), (1.0, 1.0)))
    law = pooled([sure, unsure], np.array([0.5, 0.5]))
    np.testing.assert_allclose(law.mean, 1 / 101, rtol=1e-6)
    np.testing.assert_allclose(law.variance, 2 / 101, rtol=1e-6)


def test_log_scores_are_those_of_scipy_and_gaps_are_marginal():
    rng = np.random.default_rng(3)
    law, y = low_rank(rng, 6, 5, 2), rng.normal(size=(6, 5))
    y[2, [1, 3]] = np.nan
    y[4] = np.nan
    found, _ = log_scores(law, y, Tails(4.0, 1.7))
    for t, row in enumerate(y):
        seen = ~np.isnan(row)
        if not seen.any():
            assert np.isnan(found[t])
            continue
        S = 1.7 * law.dense()[t][np.ix_(seen, seen)]
        assert found[t] == pytest.approx(stats.multivariate_t.logpdf(row[seen], law.mean[t][seen], S, df=4.0))


def test_tails_are_found():
    rng = np.random.default_rng(4)
    z = rng.standard_normal((4000, 6)) / np.sqrt(rng.chisquare(5.0, 4000) / 5.0)[:, None]
    _, tails = log_scores(DenseLaw(np.zeros(z.shape), np.eye(6)), np.sqrt(3.0) * z)
    assert tails.freedom in (4.0, 5.0, 6.0) and tails.size == pytest.approx(3.0, rel=0.05)


def test_the_cost_is_exact_and_does_not_depend_on_the_scale_of_the_law():
    rng = np.random.default_rng(6)
    y = rng.standard_normal((20_000, 3)) * [1.0, 2.0, 4.0]
    S = np.diag([1.0, 4.0, 16.0])
    volume, width = np.log(64.0) / 6, np.log(8.0) / 3
    ellipsoids = [volume + 0.5 * np.log(stats.chi2.ppf(share, 3)) for share in (0.9, 0.95)]
    boxes = [width + np.log(stats.norm.ppf(0.5 + 0.5 * share ** (1 / 3))) for share in (0.9, 0.95)]
    density = -0.5 * (np.log(2 * np.pi) + 1.0) - volume
    expected = np.mean(ellipsoids + boxes) - density
    for factor in (0.01, 1.0, 100.0):
        assert cost(DenseLaw(np.zeros(y.shape), factor * S), y) == pytest.approx(expected, abs=0.02)
    assert cost(DenseLaw(np.zeros(y.shape), np.eye(3)), y) > expected + 0.2  # a worse shape
    gappy = y.copy()
    gappy[0], gappy[1, 0] = np.nan, np.nan
    assert cost(DenseLaw(np.zeros(y.shape), S), gappy) == pytest.approx(expected, abs=0.02)


def test_weights_are_searched_beyond_those_tried():
    rng = np.random.default_rng(7)
    truth, noise = rng.normal(size=(4000, 2)), rng.normal(size=(3, 4000, 2))
    laws = [DenseLaw(truth + sd * e, np.eye(2)) for sd, e in zip((1.0, 1.0, 5.0), noise, strict=True)]
    poor = np.array([0.0, 0.1, 0.9])
    found = best_weights(laws, np.ones(3), truth, [poor])
    assert found.sum() == pytest.approx(1.0) and found[2] == 0.0 and found[:2].min() > 0.3
    only = best_weights(laws[:1], np.ones(1), truth, [np.ones(1)])
    assert only.tolist() == [1.0]


def test_em_finds_the_shares_of_a_mixture():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(20_000) < 0.3, rng.normal(-2, 1, 20_000), rng.normal(2, 1, 20_000))
    scores = np.stack([stats.norm.logpdf(y, at) for at in (-2.0, 2.0, 30.0)], axis=1)
    np.testing.assert_allclose(mixture_weights(scores), [0.3, 0.7, 0.0], atol=0.015)
    partly = np.concatenate([scores, [[0.0, np.nan, 0.0]]])  # a row that one member says nothing of
    np.testing.assert_array_equal(mixture_weights(partly), mixture_weights(scores))


@pytest.fixture(scope="module")
def panel():
    return generate_grssf("A", n=8, seed=0, length=2000).panel


def test_a_member_that_is_wrong_weighs_nothing(panel):
    """The truth beside a filter that forgets at once."""
    pool = PooledFilter([GraphLGSSM(), GraphLGSSM(rho=0.01, obs_noise_frac=0.99)]).fit(panel)
    assert pool.weights[0] > 0.9


def test_weights_do_not_see_later_rows(panel):
    changed = panel.values.copy()
    changed[1400:] += 5.0
    pools = [
        PooledFilter([GraphLGSSM(), GraphLGSSM(rho=0.5)]).fit(p[:1400]) for p in (panel, panel.with_values(changed))
    ]
    np.testing.assert_array_equal(pools[0].weights, pools[1].weights)


def test_few_rows_give_equal_weights(panel):
    np.testing.assert_array_equal(PooledFilter(TWO).fit(panel[:300]).weights, [0.5, 0.5])


def test_members_of_several_radii_and_bad_weights_are_refused(panel):
    blocks = ResidualFilter(shape=OrthogonalBlocks(ResidualSplit("factor")), name="factor")
    with pytest.raises(InputError, match="several radii"):
        PooledFilter([GraphLGSSM(), blocks]).fit(panel)
    with pytest.raises(InputError, match="sum 1"):
        PooledFilter([GraphLGSSM()], [0.5])
    with pytest.raises(InputError, match="at least one"):
        PooledFilter([])


def test_a_member_that_cannot_be_fitted_is_told_and_left_out(panel):
    needs_rows = ResidualFilter(shape=Rolling(window=5000), name="rolling")
    with pytest.warns(UserWarning, match="left out of the pool: rolling: .*a window of 5000 residuals"):
        pool = PooledFilter([needs_rows, *TWO]).fit(panel)
    assert len(pool.members) == 2 == len(pool.weights)
    with pytest.warns(UserWarning, match="left out"):
        np.testing.assert_allclose(PooledFilter([needs_rows, *TWO], [0.5, 0.25, 0.25]).fit(panel).weights, [0.5, 0.5])
    with pytest.raises(InputError, match="a window of 5000 residuals"):
        PooledFilter([needs_rows]).fit(panel)


def test_with_many_sensors_the_first_member_stands_alone(panel):
    pool = PooledFilter(TWO, alone_above=7).fit(panel)
    np.testing.assert_array_equal(pool.weights, [1.0])
    assert len(PooledFilter(TWO, alone_above=8).fit(panel).members) == 2


def test_a_pool_keeps_the_contract():
    def pool():
        return JointPredictor(PooledFilter([GraphLGSSM(), ResidualFilter(shape=EWMA(), name="ewma")]))

    check_predictor(pool)
