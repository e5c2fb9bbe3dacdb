"""Recorded outputs of published code, where they are at hand, and a small panel."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jointset import Panel

PEERS = Path(os.environ.get("JOINTSET_PEERS", Path(__file__).resolve().parents[2] / "../shared/peers"))


@pytest.fixture(scope="session")
def peer() -> Callable[[str], dict[str, np.ndarray]]:
    def load(name: str) -> dict[str, np.ndarray]:
        path = PEERS / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"recorded outputs {path.name} not found: set JOINTSET_PEERS to their folder")
        with np.load(path) as stored:
            return dict(stored)

    return load


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
