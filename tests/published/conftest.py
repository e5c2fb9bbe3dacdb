"""A small panel for the published rows."""

import numpy as np
import pytest

from jointset import Panel


@pytest.fixture(scope="session")
def panel() -> Panel:
    """1,500 steps of a vector autoregression with correlated noise, four sensors on a path."""
    rng = np.random.default_rng(3)
    n, steps = 4, 1500
    root = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(range(n), range(n)))) * np.array([[0.5], [1], [2], [1]])
    values = np.zeros((steps, n))
    for t in range(1, steps):
        values[t] = 0.5 * values[t - 1] + root @ rng.standard_normal(n)
    path = np.diag(np.ones(n - 1), 1)
    return Panel(values + 10.0, [f"s{i}" for i in range(n)], adjacency=path + path.T)
