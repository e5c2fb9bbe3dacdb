"""Trained weights kept between runs: trained once, for instance on a GPU, they serve every later run on the same rows.

The folder is named by the environment variable JOINTSET_WEIGHTS; without it nothing is kept. A file belongs to one
network: its name is a digest of the rows, the graph, every setting and the seed. A checkpoint is a file of a training
that is not over.
"""

from __future__ import annotations

import os
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.support.atomic import whole_file

FOLDER = "JOINTSET_WEIGHTS"
SMALL = 1e-2  # range of the readings of a sensor below which six decimals are too few


def write_checkpoint(path: Path, arrays: dict[str, Array], identity: str) -> None:
    """Write a checkpoint whole or not at all."""
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


class Kept(NamedTuple):
    """Weights of one network, a NamedTuple of arrays, and the course of its loss."""

    weights: Any
    losses: Array


def digest(*parts: Any) -> str:
    """What tells one training run from all others, of arrays and plain values."""
    found = sha256()
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        found.update(b"|")
    return found.hexdigest()[:32]


def recall(identity: str, kind: type) -> Kept | None:
    """The weights of that identity, where they are kept."""
    path = _path(identity)
    if path is None or not path.exists():
        return None
    arrays = read_checkpoint(path, identity)
    names = [f"weight.{name}" for name in kind._fields]  # type: ignore[attr-defined]
    whole = {*names, "losses"} <= arrays.keys() and all(np.isfinite(arrays[name]).all() for name in names)
    require(whole, f"the weights in {path} are not whole: delete it to train them again")
    return Kept(kind(*(arrays[name].astype(float) for name in names)), arrays["losses"])


def keep(identity: str, kept: Kept) -> None:
    """Keep weights, in single precision as they were trained, where there is a folder for them; told if that fails."""
    path = _path(identity)
    if path is None:
        return
    weights = {f"weight.{name}": np.asarray(x, dtype=np.float32) for name, x in kept.weights._asdict().items()}
    try:
        write_checkpoint(path, weights | {"losses": kept.losses}, identity)
    except OSError as error:
        warnings.warn(f"trained weights cannot be kept in {FOLDER}={path.parent}: {error}", stacklevel=2)


def told_apart(rows: Array, readings: Array) -> Array:
    """Rows as they enter a digest: six decimals, as machines differ in the last digits of standardised readings.

    Readings in units so large that this would take them for equal enter as they are.
    """
    varied = np.fmax.reduce(readings) - np.fmin.reduce(readings)
    return rows if bool((varied[varied > 0] < SMALL).any()) else np.round(rows, 6) + 0.0


def _path(identity: str) -> Path | None:
    folder = os.environ.get(FOLDER)
    return Path(folder).expanduser() / f"{identity}.npz" if folder else None
