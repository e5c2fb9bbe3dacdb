"""Dependence of hits: integrated times against theory and a plain sum, and what m scores are worth."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import multivariate_normal, norm

from jointset.audits.dependence import effective_sizes, indicator_dependence
from jointset.errors import InputError
from jointset.predicting.integrated_time import autocovariance, integrated_time
from jointset.predicting.slow_time import slow_time


def autoregression(phi, m, seed):
    noise = np.random.default_rng(seed).normal(size=m) * np.sqrt(1 - phi**2)
    noise[0] /= np.sqrt(1 - phi**2)  # starts stationary
    return lfilter([1.0], [1.0, -phi], noise)


def indicator_correlation(phi, share, lags):
    """Corr(1{x_0 <= u}, 1{x_k <= u}) of a Gaussian AR(1): bivariate normal orthant probabilities."""
    u = norm.ppf(share)
    both = [multivariate_normal.cdf([u, u], cov=[[1, phi**k], [phi**k, 1]]) for k in range(1, lags + 1)]
    return (np.array(both) - share**2) / (share * (1 - share))


@pytest.mark.parametrize(("phi", "lags"), [(0.0, 1), (0.3, 15), (0.6, 40), (0.9, 200)])
@pytest.mark.parametrize("share", [0.9, 0.5])
def test_integrated_time_of_ar1_indicators_is_the_theory(phi, lags, share):
    truth = 1 + 2 * indicator_correlation(phi, share, lags).sum()
    found = [integrated_time(autoregression(phi, 100_000, s) <= norm.ppf(share)) for s in range(4)]
    assert abs(np.mean([f.tau for f in found]) / truth - 1) < 0.05
    # single estimates scatter as their standard error says
    assert all(abs(f.tau - truth) < 4 * f.standard_error for f in found)


def test_the_automatic_window_is_at_most_a_tenth_of_the_series():
    walk = np.cumsum(np.random.default_rng(0).normal(size=200))
    assert integrated_time(walk).window == 20


def test_thirty_lags_are_the_plain_sum_of_the_paper():
    hits = (autoregression(0.6, 2000, 0) <= 1.0).astype(float)
    centred = hits - hits.mean()
    plain = 1 + 2 * sum(centred[:-k] @ centred[k:] / (centred @ centred) for k in range(1, 31))
    found = integrated_time(hits, lags=30)
    np.testing.assert_allclose(found.tau, plain, rtol=1e-10)
    assert found.window == 30 and not found.automatic
    truth = 1 + 2 * indicator_correlation(0.9, 0.9, 30).sum()
    several = [integrated_time(autoregression(0.9, 100_000, s) <= norm.ppf(0.9), lags=30).tau for s in range(4)]
    assert abs(np.mean(several) / truth - 1) < 0.05


def test_autocovariance_is_the_direct_one():
    x = np.random.default_rng(0).normal(size=57)
    e = x - x.mean()
    direct = [e[: len(e) - k] @ e[k:] / len(e) for k in range(57)]
    np.testing.assert_allclose(autocovariance(x), direct, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (4, 3), ()])
def test_an_autocovariance_is_refused_what_is_no_series(shape):
    with pytest.raises(InputError, match="needs a series of numbers"):
        autocovariance(np.ones(shape))


def test_what_never_changes_has_no_slow_time():
    varied, still = np.tile([0.0, 1.0, 1.0, 0.0], 100), np.zeros(400)
    assert slow_time(varied, still, 1.645) == slow_time(still, varied, 1.645) == 1.0


def test_a_series_that_does_not_vary_says_nothing():
    assert np.isnan(integrated_time(np.ones(50)).tau)


def test_scaling_and_gaps_do_not_change_the_time():
    x = autoregression(0.7, 5000, 1)
    first = integrated_time(x).tau
    np.testing.assert_allclose(integrated_time(-3 * x + 100).tau, first, rtol=1e-9)
    np.testing.assert_allclose(integrated_time(np.insert(x, 10, np.nan)).tau, first, rtol=1e-9)


def test_effective_sizes_are_the_forms_of_the_paper():
    sizes = effective_sizes(3500, 11.5, 0.85, np.array([0.05, -0.05]))
    assert round(sizes.bernstein) == 304 and round(sizes.geometric) == 284  # the paper prints 304 and 285
    np.testing.assert_allclose(sizes.chebyshev, 3500 / 1.2)
    assert effective_sizes(100, 0.5).bernstein == 100  # never more than m
    assert np.isnan(effective_sizes(100, float("nan")).bernstein) and np.isnan(effective_sizes(100, 2.0).geometric)


def test_repeated_scores_count_once():
    scores = np.repeat(np.random.default_rng(0).exponential(size=4000), 10)
    hits = (scores <= np.quantile(scores, 0.9)).astype(float)
    size = effective_sizes(len(hits), integrated_time(hits).tau).bernstein
    assert abs(size / 4000 - 1) < 0.15


def test_indicator_audit_of_a_known_process():
    """Squares of an AR(1): their root is |x|, the three thresholds lie 2 % apart, the rate is phi^2 asymptotically."""
    x = autoregression(0.9, 100_000, 2)
    radius = float(np.sort(x**2)[90_000])
    found = indicator_dependence(x**2, radius)
    np.testing.assert_allclose(found.thresholds, np.sqrt(radius) * np.array([0.98, 1, 1.02]))
    assert (np.diff(found.share) > 0).all() and abs(found.share[1] - 0.9) < 1e-4
    np.testing.assert_allclose(found.autocovariance[:, 0], found.share * (1 - found.share), rtol=1e-9)
    assert (np.abs(found.rho - 0.81) < 0.04).all()
    np.testing.assert_allclose(found.tau[1], found.time.tau, rtol=0.01)
    np.testing.assert_allclose(found.sizes.bernstein, 100_000 / found.time.tau)
    same = indicator_dependence(np.abs(x), np.sqrt(radius), squared=False)
    np.testing.assert_allclose(same.autocovariance, found.autocovariance, atol=1e-4)


def test_independent_hits_have_no_rate_and_full_size():
    scores = np.random.default_rng(4).chisquare(5, size=20_000)
    found = indicator_dependence(scores, float(np.quantile(scores, 0.9)))
    assert (found.rho < 0.05).all() and found.sizes.geometric > 0.9 * 20_000
    assert found.sizes_automatic.bernstein > 0.9 * 20_000


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(InputError, match="too few for 30 lags"):
        indicator_dependence(np.arange(20.0), 5.0)
    with pytest.raises(InputError, match="infinite"):
        indicator_dependence(np.arange(200.0), np.inf)
