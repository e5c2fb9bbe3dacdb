"""The low-rank algebra equals dense algebra, in NumPy and in PyTorch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jointset.algebra import lowrank


@st.composite
def laws(draw):
    """Residual e, weights w (some zero), factor L, with a batch axis."""
    T, n, r = draw(st.integers(1, 3)), draw(st.integers(1, 7)), draw(st.integers(0, 4))
    number = st.floats(-3, 3)
    e = draw(arrays(float, (T, n), elements=number))
    d = draw(arrays(float, (T, n), elements=st.floats(0.05, 5)))
    L = draw(arrays(float, (T, n, r), elements=number))
    keep = draw(arrays(bool, (T, n)))
    keep[:, 0] = True
    return np.where(keep, e, 0.0), np.where(keep, 1.0 / d, 0.0), L


def dense(w, L):
    """Covariance and residual selector on the sensors that are there."""
    seen = w > 0
    return seen, (np.diag(1 / np.where(seen, w, 1.0)) + L @ L.T)[np.ix_(seen, seen)]


@settings(max_examples=150)
@given(laws())
def test_equals_dense_algebra(parts):
    e, w, L = parts
    got = {
        "mahalanobis": lowrank.mahalanobis(e, w, L),
        "log_det": lowrank.log_det(w, L),
        "nll": lowrank.nll(e, w, L),
        "solve": lowrank.solve(e, w, L),
        "precision": lowrank.precision_diagonal(w, L),
    }
    for t in range(len(e)):
        seen, S = dense(w[t], L[t])
        r = e[t][seen]
        P = np.linalg.inv(S)
        scale = np.linalg.cond(S)
        tol = {"rtol": 1e-12 * scale + 1e-9, "atol": 1e-10}
        np.testing.assert_allclose(got["mahalanobis"][t], r @ P @ r, **tol)
        np.testing.assert_allclose(got["log_det"][t], np.linalg.slogdet(S)[1], **tol)
        np.testing.assert_allclose(got["nll"][t], 0.5 * (r @ P @ r + np.linalg.slogdet(S)[1]), **tol)
        np.testing.assert_allclose(got["solve"][t][seen], P @ r, **tol)
        np.testing.assert_allclose(got["precision"][t][seen], P.diagonal(), **tol)
        assert (got["solve"][t][~seen] == 0).all()


@settings(max_examples=40)
@given(laws())
def test_torch_and_numpy_are_one_implementation(parts):
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(np.ascontiguousarray(x)) for x in parts]
    for name, args in {
        "mahalanobis": (0, 1, 2),
        "nll": (0, 1, 2),
        "solve": (0, 1, 2),
        "log_det": (1, 2),
        "precision_diagonal": (1, 2),
    }.items():
        function = getattr(lowrank, name)
        np.testing.assert_allclose(
            function(*(tensors[i] for i in args)).numpy(), function(*(parts[i] for i in args)), rtol=1e-9, atol=1e-9
        )


def test_mahalanobis_is_never_negative_when_the_factor_dominates():
    rng = np.random.default_rng(0)
    L = 1e6 * rng.normal(size=(50, 20, 4))
    e = (L @ rng.normal(size=(50, 4, 1)))[..., 0]  # lies in the span of L: the distance is nearly |z|^2
    got = lowrank.mahalanobis(e, np.full((50, 20), 1e4), L)
    assert (got >= 0).all() and (got < 50).all()
