"""Distances from one law to many: exact against two independent computations, near and far."""

import numpy as np
import ot
import pytest
from scipy.linalg import sqrtm

import jointset.algebra.bures
from jointset.algebra.bures import distances_from
from jointset.algebra.covariance import Covariance
from jointset.errors import InputError
from jointset.laws import DenseLaw, LowRankLaw

K = 4


def low_rank(n, r, away, seed=0, equal_diagonals=False):
    """A law and K others that differ from it by a relative amount `away` in mean, diagonal and factor."""
    rng = np.random.default_rng(seed)
    law = LowRankLaw(rng.normal(size=n), rng.uniform(0.2, 3, n), rng.normal(size=(n, r)))
    spread = 0.0 if equal_diagonals else away
    others = LowRankLaw(
        law.mean + away * rng.normal(size=(K, n)),
        law.diagonal * np.exp(spread * rng.normal(size=(K, n))),
        law.factor + away * rng.normal(size=(K, n, r)),
    )
    return law, others


def matrix(law):
    return law.dense() if isinstance(law, LowRankLaw) else law.covariance.matrix


def by_square_roots(a, b):
    S, T = matrix(a), matrix(b)
    root = sqrtm(T).real
    trace = np.trace(S + T - 2 * sqrtm(root @ S @ root).real)
    return np.sqrt(np.sum((a.mean - b.mean) ** 2) + trace)


def dense(law):
    return DenseLaw(law.mean, law.dense())


@pytest.mark.parametrize("away", [3.0, 0.5, 0.1, 1e-2])
@pytest.mark.parametrize(("n", "r"), [(3, 1), (12, 4), (40, 2), (6, 0)])
@pytest.mark.parametrize("equal_diagonals", [False, True])
def test_equals_pot_and_a_dense_square_root(n, r, away, equal_diagonals):
    law, others = low_rank(n, r, away, equal_diagonals=equal_diagonals)
    for a, b in ((law, others), (dense(law), dense(others)), (law, dense(others)), (dense(law), others)):
        found = distances_from(a, b)
        for k in range(K):
            pot = ot.gaussian.bures_wasserstein_distance(a.mean, b.mean[k], matrix(a), matrix(b[k]))
            np.testing.assert_allclose(found[k], pot, atol=1e-8)
            np.testing.assert_allclose(found[k], by_square_roots(a, b[k]), atol=1e-8)


@pytest.mark.parametrize("away", [1.0, 0.1, 1e-3, 1e-6, 1e-9])
def test_equals_the_pairwise_distance_at_every_scale(away):
    law, others = low_rank(25, 3, away)
    pairwise = np.array([law.distance(others[k]) for k in range(K)])
    np.testing.assert_allclose(distances_from(law, others), pairwise, rtol=1e-6 if away < 1e-8 else 1e-9)


def test_near_laws_need_no_decomposition_of_their_own(monkeypatch):
    def refuse(*_):
        raise AssertionError("a near law went through singular values")

    monkeypatch.setattr(jointset.algebra.bures, "bures_wasserstein", refuse)
    law, others = low_rank(20, 4, 0.02)
    assert (distances_from(law, others) > 0).all()


def test_small_distances_keep_their_digits():
    """For a common scaling of the covariance the distance is known exactly, down to 1e-12."""
    law, _ = low_rank(30, 4, 0.0)
    for step in (1e-2, 1e-6, 1e-12):
        near = LowRankLaw(law.mean[None], (law.diagonal * (1 + step) ** 2)[None], (law.factor * (1 + step))[None])
        exact = step * np.sqrt(law.variance.sum())
        np.testing.assert_allclose(distances_from(law, near), exact, rtol=1e-3 if step < 1e-9 else 1e-8)


def test_laws_with_one_covariance_differ_by_their_means():
    rng = np.random.default_rng(0)
    means, S = rng.normal(size=(K + 1, 5)), np.cov(rng.normal(size=(5, 40)))
    apart = np.linalg.norm(means[1:] - means[0], axis=1)
    one = Covariance(S)
    for others in (DenseLaw(means[1:], one), DenseLaw(means[1:], np.stack([S] * K)), DenseLaw(means[1:], S.copy())):
        np.testing.assert_array_equal(distances_from(DenseLaw(means[0], one), others), apart)


def test_other_ranks_and_shared_covariances_are_compared_too():
    law, others = low_rank(8, 2, 0.3)
    wider = LowRankLaw(others.mean, others.diagonal, np.concatenate([others.factor, 0 * others.factor], axis=-1))
    np.testing.assert_allclose(distances_from(law, wider), distances_from(law, others), rtol=1e-8)
    shared = DenseLaw(others.mean, others.dense()[0])
    np.testing.assert_allclose(distances_from(law, shared)[0], distances_from(law, others)[0], rtol=1e-8)


def test_blocks_do_not_change_a_number(monkeypatch):
    law, others = low_rank(10, 2, 0.2)
    whole = distances_from(law, others)
    monkeypatch.setattr(jointset.algebra.bures, "CHUNK", 1)
    np.testing.assert_allclose(distances_from(law, others), whole, rtol=1e-12)


def test_wrong_shapes_are_named():
    _, others = low_rank(4, 1, 0.1)
    with pytest.raises(InputError, match=r"one law \(N,\) and a batch"):
        distances_from(others, others)
