"""Model folders: `model.json` names one file of arrays, and replacing it is the one switch from a model to the next.

A save writes a new `arrays-*.safetensors` beside the old one, brings it to the disk, then renames a new `model.json`
over the old. A kill at any moment leaves the old model or the new one; what else it leaves is removed by the next save.
A reader whose arrays are replaced under its hands reads again. Writers wait for each other on the file `.lock`; where a
system has no such locks, the last switch wins and left-overs stay for an hour. Nothing outside the folder is touched,
nor any file in it that has another name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.errors import InputError, require
from jointset.storage import numbers_in, pack, unpack
from jointset.support.atomic import held, sync, sync_folder, whole_file, writing_to

FORMAT = 2  # raised when a folder written now could not be read by older code; 1 had `arrays.safetensors`
ARRAYS = re.compile(r"arrays(-[0-9a-f]{16})?\.safetensors")
FRESH = (".lock", "lost+found")  # what else a folder without a model may hold: ours, and that of a new volume
LEFT_OVER = re.compile(ARRAYS.pattern + r"|\.model\.json\.[0-9a-f]+\.tmp")
PATIENCE = 60.0  # seconds to wait for another writer
GRACE = 3600.0  # seconds a left-over stays where there are no locks
SETTINGS = ("score",)  # parts without numbers that were learned
BOUNDED = ("filter", "backbone", "shift", "scale", "filter_state", "history")  # parts where nothing is infinite


def model_place(path: str | Path) -> Path:
    """The folder of a model to be saved, refused when something else is there."""
    folder = Path(path)
    with writing_to(folder):
        free = not folder.exists() or (folder / "model.json").is_file()
        if not free and folder.is_dir():  # with nothing but what a killed first save left, or a new volume has
            free = all(name in FRESH or LEFT_OVER.fullmatch(name) for name in os.listdir(folder))
    require(free, f"{folder} exists and is not a model folder: choose another name")
    return folder


def save_folder(path: str | Path, parts: dict[str, Any]) -> None:
    """Write named values as the model of a folder, whole or not at all."""
    import jointset

    folder = model_place(path)
    with refusing(folder):
        require_finite(parts)
    arrays: dict[str, np.ndarray] = {}
    header = {
        "format": FORMAT,
        "jointset": jointset.__version__,
        "parts": {name: pack(value, arrays, name) for name, value in parts.items()},
    }
    with writing_to(folder):
        real = Path(os.path.realpath(folder))  # a link stays a link
        if not real.is_dir():
            real.mkdir(parents=True, exist_ok=True)
            sync_folder(real.parent)
        busy = f"another process has been saving to {real} for {PATIENCE:.0f} s: stop it"
        with held(real / ".lock", busy, PATIENCE) as alone:
            try:
                _switch(real, header, arrays)
            finally:
                _remove_left_overs(real, alone)


@contextmanager
def refusing(path: str | Path) -> Iterator[None]:
    """Say of a model with something wrong that it was not saved."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path} is not written: {error}; look for absurd readings") from None


def _switch(folder: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the arrays under a new name, then the `model.json` that names them."""
    from safetensors.numpy import save

    data, name = save(arrays), f"arrays-{secrets.token_hex(8)}.safetensors"
    (folder / name).write_bytes(data)
    sync(folder / name)
    sync_folder(folder)
    header |= {"arrays": name, "sha256": hashlib.sha256(data).hexdigest()}
    with whole_file(folder / "model.json") as unfinished:
        unfinished.write_text(json.dumps(header, indent=1), encoding="utf-8")


def _remove_left_overs(folder: Path, alone: bool) -> None:
    """Remove files of earlier and of killed saves: those the present `model.json` does not name."""
    try:
        known = folder / "model.json"
        current = _header(known.read_bytes())["arrays"] if known.exists() else None
    except (OSError, InputError):
        return  # nothing says which file is in use
    for path in folder.iterdir():
        with suppress(OSError):  # the next save tries again
            ours = LEFT_OVER.fullmatch(path.name) and path.name != current
            if ours and (alone or time.time() - path.stat().st_mtime > GRACE):
                path.unlink()


class Stored(NamedTuple):
    """The content of a model folder: the JSON trees of its parts, and its arrays."""

    trees: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def part_class(self, *place: str) -> Any:
        """Name of the class of a part, or of a field of a part; None where there is none."""
        tree: Any = {"fields": self.trees}
        for name in place:
            fields = tree.get("fields") if isinstance(tree, dict) else None
            tree = fields.get(name) if isinstance(fields, dict) else None
        return tree.get("class") if isinstance(tree, dict) else None

    def parts(self, kinds: Mapping[str, object], later: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The values named, each of the kind that its annotation says, and of finite numbers.

        `later` has plain values for parts that older folders lack.
        """
        trees = {**(later or {}), **self.trees}
        for name in kinds:
            require(name in trees, f"part {name!r} is missing")
        parts = {name: unpack(trees[name], self.arrays, name, kind) for name, kind in kinds.items()}
        require_finite(parts)
        return parts


class _Newer(InputError):
    """A folder of a version to come."""


@contextmanager
def reading(path: str | Path) -> Iterator[Stored]:
    """The content of a model folder; whatever is wrong with it, here or in the block, is one line."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a model folder: give the folder that `jointset fit` or save() wrote")
    damaged = f"the model folder {folder} is damaged"
    try:
        yield _stored(folder)
    except _Newer as error:
        raise InputError(f"{folder} {error}") from None
    except InputError as error:
        raise InputError(f"{damaged}: {error}; fit the model again") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror or error}): check its permissions") from None
    except Exception as error:  # sizes that do not fit, states of another filter: there is no end of such errors
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise InputError(f"{damaged}: it does not work ({reason}); fit the model again") from None


def _stored(folder: Path) -> Stored:
    """What is on the disk; a save at the same time does no harm."""
    before = None
    while True:
        try:
            text = (folder / "model.json").read_bytes()
        except FileNotFoundError:
            raise InputError("model.json is missing") from None
        header = _header(text)
        try:
            return Stored(header["parts"], _arrays((folder / header["arrays"]).read_bytes(), header))
        except FileNotFoundError:  # unless a save came between
            require(text != before, f"{header['arrays']} is missing")
        before = text


def _header(text: bytes) -> dict[str, Any]:
    """The content of `model.json`; with format 1 comes the one name its arrays had."""
    try:
        header = json.loads(text.decode("utf-8"))
        version = int(header["format"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"model.json cannot be read ({error})") from None
    if version > FORMAT:
        raise _Newer(
            f"was saved by jointset {header.get('jointset')} in format {version}, this version reads up to "
            f"format {FORMAT}: upgrade jointset"
        )
    name = "arrays.safetensors" if version == 1 else header.get("arrays")
    named = isinstance(name, str) and ARRAYS.fullmatch(name) is not None
    require(named, f"model.json names no arrays ({name!r})")
    require(isinstance(header.get("parts"), dict), "model.json has no parts")
    return header | {"arrays": name}


def _arrays(data: bytes, header: dict[str, Any]) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    whole = header.get("sha256") == hashlib.sha256(data).hexdigest()
    require(whole, f"{header['arrays']} was cut short or changed")
    try:
        return load(data)
    except SafetensorError as error:
        raise InputError(f"{header['arrays']} cannot be read ({error})") from None


def require_finite(parts: dict[str, Any]) -> None:
    """Refuse NaN in any part, and infinities in the arrays of what was fitted and of what a filter remembers."""
    for part, value in parts.items():
        for name, numbers in () if part in SETTINGS else numbers_in(value, part):
            require(not np.isnan(numbers).any(), f"{name} holds NaN")
            bounded = part in BOUNDED and isinstance(numbers, np.ndarray)
            require(not bounded or not np.isinf(numbers).any(), f"{name} holds an infinite number")
