"""Checkpoints of training: named arrays and the identity of the run, in one npz file. NumPy alone reads them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.support.atomic import whole_file


def write_checkpoint(path: Path, arrays: dict[str, Array], identity: str) -> None:
    """Write whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    named: dict[str, Any] = {**arrays, "identity": np.array(identity)}
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **named)


def read_checkpoint(path: Path, identity: str) -> dict[str, Array]:
    """The arrays of a checkpoint; refused when it is damaged or belongs to another run."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        found = str(arrays.pop("identity"))
    except (OSError, ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"checkpoint {path} cannot be read ({error}): delete it to start again") from None
    require(
        found == identity,
        f"checkpoint {path} belongs to another run (recipe, seeds or data differ): delete it or choose another",
    )
    return arrays
