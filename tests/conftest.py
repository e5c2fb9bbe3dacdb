"""Shared fixtures. Real data is looked for in $JOINTSET_DATA, else beside the checkout; tests skip without it."""

import functools
import os
import signal
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from jointset.support.extras import installed

ROOT = Path(__file__).parents[1]
os.environ.setdefault("JOINTSET_DATA", str(ROOT.parent / "shared" / "data"))
PEERS = Path(os.environ.get("JOINTSET_PEERS", ROOT.parent / "shared" / "peers"))
hypothesis.settings.register_profile("jointset", deadline=None)  # how long an example takes is no promise
hypothesis.settings.load_profile("jointset")
collect_ignore = [] if installed("fastapi") and installed("httpx") else ["serve"]


@pytest.fixture(scope="session")
def real_data():
    """Path of a real data file by name, or a skip that says what is absent."""

    def find(name):
        path = Path(os.environ["JOINTSET_DATA"]) / name
        if not path.exists():
            pytest.skip(f"{name} is not in $JOINTSET_DATA")
        return path

    return find


@pytest.fixture(scope="session")
def same():
    """Equality to the bit; to single precision before numpy 2.3, where a row of a product depends on the other rows."""
    if np.lib.NumpyVersion(np.__version__) >= "2.3.0":
        return np.testing.assert_array_equal
    return functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="session")
def peer():
    """Recorded outputs of published code by name, or a skip that says what is absent."""

    def load(name):
        path = PEERS / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"recorded outputs {path.name} not found: set JOINTSET_PEERS to their folder")
        with np.load(path) as stored:
            return dict(stored)

    return load


@pytest.fixture(scope="session", autouse=True)
def _interruptible():
    """Processes started by tests can be stopped by Ctrl-C, also where the tests run in the background of a shell."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
