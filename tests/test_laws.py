"""Laws: marginal, conditional and distance agree with textbook formulas and an independent library."""

import numpy as np
import ot
import pytest
from scipy import stats
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal

from jointset.algebra.covariance import Covariance
from jointset.algebra.law_blocks import concatenate
from jointset.algebra.law_tails import NORMAL, Tails
from jointset.errors import InputError
from jointset.laws import DenseLaw, LowRankLaw

T, N, R = 6, 5, 2
TAILS = Tails(4.0, 0.7)


def low_rank(seed=0, n=N, r=R):
    rng = np.random.default_rng(seed)
    return LowRankLaw(rng.normal(size=(T, n)), rng.uniform(0.3, 2, (T, n)), rng.normal(size=(T, n, r)))


def as_dense(law):
    return DenseLaw(law.mean, law.dense())


def shared(seed=0):
    law = low_rank(seed)
    return DenseLaw(law.mean, law.dense()[0])


LAWS = {"low rank": low_rank, "dense": lambda: as_dense(low_rank()), "shared": shared}


def covariance(law, t):
    one = law[t]
    return one.dense() if isinstance(one, LowRankLaw) else one.covariance.matrix


@pytest.fixture(params=LAWS)
def law(request):
    return LAWS[request.param]()


@pytest.fixture
def y():
    return np.random.default_rng(9).normal(size=(T, N))


def test_density_equals_scipy(law, y):
    for t in range(T):
        truth = multivariate_normal(law.mean[t], covariance(law, t))
        np.testing.assert_allclose(law.nll(y)[t], -truth.logpdf(y[t]), rtol=1e-10)
        np.testing.assert_allclose(law[t].nll(y[t]), -truth.logpdf(y[t]), rtol=1e-10)
        np.testing.assert_allclose(law.log_det[t], np.linalg.slogdet(covariance(law, t))[1], rtol=1e-10)
        np.testing.assert_allclose(law.variance[t], covariance(law, t).diagonal())


def test_missing_readings_are_scored_on_the_marginal_law(law, y):
    y = np.where(np.random.default_rng(1).random(y.shape) < 0.4, np.nan, y)
    y[2] = np.nan
    y[3] = 1.0
    scores, nll, drops = law.mahalanobis(y), law.nll(y), law.contributions(y)
    for t in range(T):
        seen = ~np.isnan(y[t])
        if not seen.any():
            assert np.isnan(scores[t]) and np.isnan(nll[t]) and (drops[t] == 0).all()
            continue
        part = law[t].select(seen)
        np.testing.assert_allclose(scores[t], part.mahalanobis(y[t, seen]), rtol=1e-10)
        np.testing.assert_allclose(nll[t], part.nll(y[t, seen]), rtol=1e-10)
        np.testing.assert_allclose(law[t].mahalanobis(y[t]), scores[t], rtol=1e-12)
        assert (drops[t][~seen] == 0).all()


def test_contribution_is_the_drop_when_a_sensor_is_left_out(law, y):
    y[0, 1] = np.nan
    whole, drops = law.mahalanobis(y), law.contributions(y)
    for i in range(N):
        without = y.copy()
        without[:, i] = np.nan
        np.testing.assert_allclose(whole - law.mahalanobis(without), drops[:, i], rtol=1e-8, atol=1e-10)


def test_condition_times_marginal_is_the_joint_density(law, y):
    seen = [3, 0]
    rest = [1, 2, 4]
    joint = law.select(seen).nll(y[:, seen]) + law.condition(seen, y[:, seen]).nll(y[:, rest])
    np.testing.assert_allclose(joint, law.nll(y), rtol=1e-9)


def test_rescale_is_an_affine_change_of_variables(law, y):
    shift, scale = np.arange(5.0), np.array([0.1, 1.0, 10.0, 3.0, 0.5])
    moved = law.rescale(shift, scale)
    np.testing.assert_allclose(moved.mahalanobis(shift + scale * y), law.mahalanobis(y), rtol=1e-9)
    np.testing.assert_allclose(moved.log_det, law.log_det + 2 * np.log(scale).sum(), rtol=1e-9)


def test_sample_has_the_moments_of_the_law(law):
    rng = np.random.default_rng(0)
    draws = np.stack([law.sample(rng) for _ in range(20_000)])
    sd = np.sqrt(law.variance)
    assert (np.abs(draws.mean(0) - law.mean) < 5 * sd / np.sqrt(20_000)).all()
    for t in range(T):
        S = covariance(law, t)
        assert np.abs(np.cov(draws[:, t].T) - S).max() < 6 * S.diagonal().max() / np.sqrt(20_000)


def test_distance_equals_pot_and_sqrtm():
    a, b = low_rank(1), low_rank(2)
    for left, right in ((a, b), (as_dense(a), as_dense(b)), (a, as_dense(b))):
        for t in range(T):
            S, V = covariance(left, t), covariance(right, t)
            pot = ot.gaussian.bures_wasserstein_distance(left.mean[t], right.mean[t], S, V)
            root = sqrtm(V)
            trace = np.trace(S + V - 2 * sqrtm(root @ S @ root).real)
            dense = np.sqrt(np.sum((left.mean[t] - right.mean[t]) ** 2) + trace)
            np.testing.assert_allclose(left.distance(right)[t], pot, atol=1e-8)
            np.testing.assert_allclose(left.distance(right)[t], dense, atol=1e-8)


def test_small_distances_do_not_drown_in_rounding():
    """The trace formula loses half the digits near zero; for a common scaling the distance is known exactly."""
    law = low_rank(3)
    for step in (1e-3, 1e-6, 1e-9):
        near = LowRankLaw(law.mean, law.diagonal * (1 + step) ** 2, law.factor * (1 + step))
        exact = step * np.sqrt(law.variance.sum(-1))  # S^1/2 (1 + step) commutes with S^1/2
        np.testing.assert_allclose(law.distance(near), exact, rtol=1e-5)
    assert law.distance(law).max() < 1e-13


def test_laws_that_share_a_covariance_differ_by_their_means():
    cov = Covariance(np.eye(3))
    a, b = DenseLaw(np.zeros((2, 3)), cov), DenseLaw(np.full((2, 3), 2.0), cov)
    np.testing.assert_array_equal(a.distance(b), np.sqrt([12.0, 12.0]))


def test_long_batches_are_cut_into_blocks_without_changing_a_number(monkeypatch, y):
    law = low_rank()
    whole = law.mahalanobis(y), law.log_det, law.contributions(y)
    monkeypatch.setattr("jointset.laws.CHUNK", N * R * 2)
    law = low_rank()
    for a, b in zip(whole, (law.mahalanobis(y), law.log_det, law.contributions(y)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_concatenate_keeps_every_step(law):
    back = concatenate([law[:2], law[2:3], law[3:]])
    np.testing.assert_array_equal(back.mean, law.mean)
    np.testing.assert_array_equal(back.variance, law.variance)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DenseLaw(np.zeros(3), np.eye(2)), "do not fit together"),
        (lambda: DenseLaw(np.zeros(2), np.ones((2, 2))).log_det, "not positive definite"),
        (lambda: LowRankLaw(np.zeros(2), np.array([1.0, 0.0]), np.zeros((2, 1))), "must be positive"),
        (lambda: LowRankLaw(np.zeros(2), np.ones(3), np.zeros((2, 1))), "do not fit together"),
        (lambda: low_rank().select([0, 7]), "from 0 to 4"),
        (lambda: low_rank().select(np.array([True, False])), "length 5"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_a_marginal_is_not_that_of_another_thread(monkeypatch):
    """What one thread keeps may be replaced while another looks at it."""
    S = Covariance(np.eye(6) + 0.1, lasting=True)
    first, second = np.arange(6) == 0, np.arange(6) == 1
    other, equal = (second, S.observed(second)), np.array_equal
    S.observed(first)

    def meddling(a, b):
        found = equal(a, b)
        S._marginal = other
        return found

    monkeypatch.setattr(np, "array_equal", meddling)
    assert S.observed(first).missing.tolist() == first.tolist()


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_residuals_of_missing_sensors_are_filled_by_what_the_others_let_expect(share):
    rng = np.random.default_rng(4)
    root = rng.normal(size=(9, 9))
    S, missing, e = root @ root.T, rng.random((40, 9)) < share, rng.normal(size=(40, 9))
    missing[:, 2] = False
    filled = Covariance(S).observed(missing).filled(np.where(missing, 0.0, e))
    for row, gone, found in zip(e, missing, filled, strict=True):
        told = S[np.ix_(gone, ~gone)] @ np.linalg.solve(S[np.ix_(~gone, ~gone)], row[~gone])
        np.testing.assert_allclose(found[gone], told, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(found[~gone], row[~gone])


# ---------------------------------------------------------------------- tails of a Student-t


def truth(law, t, seen=slice(None)):
    """The same law in SciPy."""
    return stats.multivariate_t(law.mean[t][seen], 0.7 * covariance(law, t)[seen][:, seen], df=4.0)


def test_student_density_equals_scipy_and_gaps_are_marginal(law, y):
    y[1, 2] = y[4, 0] = np.nan
    heavy = law.with_tails(TAILS)
    for t in range(T):
        seen = ~np.isnan(y[t])
        np.testing.assert_allclose(heavy.log_density(y)[t], truth(law, t, seen).logpdf(y[t, seen]), rtol=1e-10)
        np.testing.assert_allclose(heavy[t].log_density(y[t]), heavy.log_density(y)[t], rtol=1e-10)
        chosen = heavy[t].select(seen)
        np.testing.assert_allclose(chosen.log_density(y[t, seen]), heavy.log_density(y)[t], rtol=1e-10)
    np.testing.assert_allclose(law.log_density(y), -law.nll(y), rtol=1e-10)
    assert np.isnan(heavy[0].log_density(np.full(N, np.nan)))


def test_condition_times_marginal_is_the_joint_density_of_a_student(law, y):
    heavy, seen, rest = law.with_tails(TAILS), [3, 0], [1, 2, 4]
    given = heavy.condition(seen, y[:, seen])
    joint = heavy.select(seen).log_density(y[:, seen]) + given.log_density(y[:, rest])
    np.testing.assert_allclose(joint, heavy.log_density(y), rtol=1e-9)
    assert given.degrees_of_freedom == 6.0
    np.testing.assert_allclose(given[2].log_density(y[2, rest]), given.log_density(y[:, rest])[2], rtol=1e-10)
    parts = concatenate([given[:2], given[2:]])
    np.testing.assert_allclose(parts.log_density(y[:, rest]), given.log_density(y[:, rest]), rtol=1e-10)


def test_other_units_keep_the_tails(law, y):
    shift, scale = np.arange(5.0), np.array([0.1, 1.0, 10.0, 3.0, 0.5])
    moved = law.with_tails(TAILS).rescale(shift, scale)
    expected = law.with_tails(TAILS).log_density(y) - np.log(scale).sum()
    np.testing.assert_allclose(moved.log_density(shift + scale * y), expected, rtol=1e-9)


def test_draws_have_the_variance_and_the_tails(law):
    """A squared distance a sensor, in units of the size, is distributed as F with N and v degrees of freedom."""
    tails = Tails(6.0, 0.7)
    heavy, rng = law.with_tails(tails), np.random.default_rng(0)
    draws = np.stack([heavy.sample(rng) for _ in range(20_000)])
    distance = np.stack([law.mahalanobis(row) for row in draws[:2000]]).ravel()
    assert stats.kstest(distance / (N * tails.size), stats.f(N, tails.freedom).cdf).pvalue > 0.001
    np.testing.assert_allclose(draws.var(axis=0), tails.variance * law.variance, rtol=0.15)
    assert NORMAL.variance == 1.0 and Tails(2.0).variance == np.inf


def test_sets_and_scores_do_not_know_of_tails(law, y):
    heavy, seen = law.with_tails(TAILS), [3, 0]
    for name in ("mahalanobis", "nll", "contributions"):
        np.testing.assert_array_equal(getattr(heavy, name)(y), getattr(law, name)(y))
    np.testing.assert_array_equal(heavy.variance, law.variance)
    np.testing.assert_array_equal(heavy.log_det, law.log_det)
    one, other = heavy.condition(seen, y[:, seen]), law.condition(seen, y[:, seen])
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.variance, other.variance)
