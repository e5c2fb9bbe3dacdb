"""Laws of the next rows against the whole matrix, which they never form."""

import numpy as np
import pytest

from jointset.algebra.window_laws import WindowLaw, step_roots

H, N = 4, 5
RNG = np.random.default_rng(0)


def law_of(rank, batch=()):
    K = RNG.normal(size=(N, H, H + 2))
    basis = np.linalg.qr(RNG.normal(size=(N, N)))[0]
    factor = RNG.normal(size=(H, N, rank)) if rank else None
    center, scale = RNG.normal(size=(*batch, H, N)), RNG.uniform(0.5, 2.0, (*batch, H, N))
    return WindowLaw(center, scale, basis, step_roots(K @ K.swapaxes(1, 2) + 0.1 * np.eye(H)), factor)


@pytest.mark.parametrize("rank", [0, 2])
def test_every_number_is_that_of_the_whole_matrix(rank):
    law = law_of(rank)
    S, y = law.covariance(), RNG.normal(size=H * N)
    np.testing.assert_allclose(law.variance, S.diagonal())
    np.testing.assert_allclose(law.log_det, np.linalg.slogdet(S)[1])
    np.testing.assert_allclose(law.mahalanobis(y), (y - law.mean) @ np.linalg.solve(S, y - law.mean))
    for h in range(H):
        own = slice(h * N, (h + 1) * N)
        np.testing.assert_allclose(law.step(h).covariance(), S[own, own])


@pytest.mark.parametrize("rank", [0, 3])
def test_missing_readings_leave_the_marginal_law(rank):
    law = law_of(rank, (6,))
    y = RNG.normal(size=(6, H * N))
    y[1:4][RNG.random((3, H * N)) < 0.4] = np.nan
    y[4] = np.nan
    found = law.mahalanobis(y)
    assert np.isnan(found[4])
    for t in (0, 1, 2, 3, 5):
        seen = ~np.isnan(y[t])
        e, S = (y[t] - law[t].mean)[seen], law[t].covariance()[np.ix_(seen, seen)]
        np.testing.assert_allclose(found[t], e @ np.linalg.solve(S, e))
        np.testing.assert_allclose(law[t].mahalanobis(y[t]), found[t])


def test_effective_readings_are_those_of_the_correlations():
    law = law_of(0, (3,))
    S = law[0].covariance()
    R = (S / np.sqrt(np.outer(S.diagonal(), S.diagonal()))) ** 2
    seen = RNG.random((3, H * N)) < 0.6
    some, every = law.effective_sensors(seen)
    np.testing.assert_allclose(every, (H * N) ** 2 / R.sum())
    np.testing.assert_allclose(some, [w.sum() ** 2 / R[np.ix_(w, w)].sum() for w in seen])
