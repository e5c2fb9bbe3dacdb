"""Recorded outputs of published code, where they are at hand."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

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
