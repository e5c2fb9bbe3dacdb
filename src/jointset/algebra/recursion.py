"""First-order recursions y_t = a y_{t-1} + x_t over long series."""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array

SHORT = 64  # steps up to which a loop is faster


def first_order(decay: Array, inputs: Array, before: Array | None = None) -> Array:
    """y (K, T) for factors a (K,) and inputs x (K, T); `before` (K,) is y one step before the first, 0 if not given.

    A long series is the solution of a system with ones on its diagonal and -a below, which LAPACK solves row by row.

    >>> first_order(np.array([0.5]), np.array([[1.0, 0.0, 0.0]]))
    array([[1.  , 0.5 , 0.25]])
    """
    y = np.array(inputs, dtype=float, order="C")
    steps = y.shape[1]
    if before is not None and steps:
        y[:, 0] += decay * before
    if steps <= SHORT:
        for t in range(1, steps):
            y[:, t] += decay * y[:, t - 1]
        return y
    from scipy.linalg.lapack import dgttrs  # here, so that importing jointset stays fast

    diagonal, above, order = np.ones(steps), np.zeros(steps - 1), np.arange(1, steps + 1, dtype=np.int32)
    for row, a in zip(y, decay, strict=True):
        solved = dgttrs(np.full(steps - 1, -a), diagonal, above, above[1:], order, row)[0].ravel()
        if np.isfinite(solved).all():
            row[:] = solved
        else:  # what is not finite spoils all steps there, here only those after it
            for t in range(1, steps):
                row[t] += a * row[t - 1]
    return y
