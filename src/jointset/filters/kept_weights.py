"""Trained weights kept between runs: trained once, for instance on a GPU, they serve every later run on the same rows.

The folder is named by the environment variable JOINTSET_WEIGHTS; without it nothing is kept. A file belongs to one
network: its name is a digest of the rows, the graph, every setting and the seed.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.filters.checkpoints import read_checkpoint, write_checkpoint

FOLDER = "JOINTSET_WEIGHTS"


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
    return Kept(kind(*(arrays[f"weight.{name}"].astype(float) for name in kind._fields)), arrays["losses"])  # type: ignore[attr-defined]


def keep(identity: str, kept: Kept) -> None:
    """Keep weights, in single precision as they were trained, where there is a folder for them."""
    path = _path(identity)
    if path is not None:
        weights = {f"weight.{name}": np.asarray(x, dtype=np.float32) for name, x in kept.weights._asdict().items()}
        write_checkpoint(path, weights | {"losses": kept.losses}, identity)


def _path(identity: str) -> Path | None:
    folder = os.environ.get(FOLDER)
    return Path(folder).expanduser() / f"{identity}.npz" if folder else None
