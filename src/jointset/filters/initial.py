"""Random weights to start training from."""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array


def glorot(rng: np.random.Generator, *shape: int) -> Array:
    """Uniform on +-sqrt(6 / (rows + columns)), rows and columns the last two axes (Glorot and Bengio 2010)."""
    limit = np.sqrt(6.0 / (shape[-2] + shape[-1]))
    return rng.uniform(-limit, limit, shape)


def orthogonal(rng: np.random.Generator, n: int) -> Array:
    """Random orthogonal matrix (Saxe et al. 2014)."""
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    return Q * np.sign(R.diagonal())
