"""Shared fixtures. Real data is looked for in $JOINTSET_DATA, else beside the checkout; tests skip without it."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
os.environ.setdefault("JOINTSET_DATA", str(ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def real_data():
    """Path of a real data file by name, or a skip that says what is absent."""

    def find(name):
        path = Path(os.environ["JOINTSET_DATA"]) / name
        if not path.exists():
            pytest.skip(f"{name} is not in $JOINTSET_DATA")
        return path

    return find
