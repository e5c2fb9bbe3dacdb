"""Values to files and back: dataclasses and NamedTuples as JSON + safetensors, never a pickle.

A storable class is a frozen dataclass or a NamedTuple whose fields are numbers, strings, None, arrays, tuples or
other storable values. `pack` splits such a value into a JSON tree and named arrays; `unpack` rebuilds it, and only
classes registered with `storable` can come out of a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jointset.errors import InputError, require

T = TypeVar("T", bound=type)
FORMAT = 1  # raised when a folder written now could not be read by older code
_CLASSES: dict[str, type] = {}


def storable(cls: T) -> T:
    """Register a class so that its values can be saved and loaded (decorator)."""
    _CLASSES[cls.__name__] = cls
    return cls


def pack(value: Any, arrays: dict[str, np.ndarray], name: str = "value") -> Any:
    """JSON tree of a value; arrays go into `arrays` under their path."""
    if isinstance(value, np.ndarray):
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):  # JSON has no inf or nan
        return value if np.isfinite(value) else {"float": repr(value)}
    kind = type(value).__name__
    if kind in _CLASSES:
        if dataclasses.is_dataclass(value):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        else:
            fields = value._asdict()
        return {"class": kind, "fields": {k: pack(v, arrays, f"{name}.{k}") for k, v in fields.items()}}
    if isinstance(value, (tuple, list)):
        return [pack(v, arrays, f"{name}.{i}") for i, v in enumerate(value)]
    raise TypeError(f"cannot store a {type(value).__name__} at {name}")


def unpack(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value of a JSON tree made by `pack`; lists come back as tuples."""
    if isinstance(tree, list):
        return tuple(unpack(v, arrays) for v in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        if tree["array"] not in arrays:
            raise InputError(f"array {tree['array']!r} is missing; fit the model again")
        return arrays[tree["array"]]
    if "float" in tree:
        return float(tree["float"])
    if tree.get("class") not in _CLASSES:
        raise InputError(f"unknown part {tree.get('class')!r}; was it saved by a newer jointset?")
    return _CLASSES[tree["class"]](**{k: unpack(v, arrays) for k, v in tree["fields"].items()})


def model_place(path: str | Path) -> Path:
    """The folder of a model to be saved, refused when something else is there."""
    folder = Path(path)
    free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir())) or (folder / "model.json").is_file()
    require(free, f"{folder} exists and is not a model folder: choose another name")
    return folder


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save_folder(path: str | Path, parts: dict[str, Any]) -> None:
    """Write named values as `model.json` + `arrays.safetensors`, whole or not at all."""
    from safetensors.numpy import save_file

    import jointset

    folder = model_place(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    arrays: dict[str, np.ndarray] = {}
    tree = {name: pack(value, arrays, name) for name, value in parts.items()}
    save_file(arrays, fresh / "arrays.safetensors")
    header = {
        "format": FORMAT,
        "jointset": jointset.__version__,
        "sha256": checksum(fresh / "arrays.safetensors"),
        "parts": tree,
    }
    (fresh / "model.json").write_text(json.dumps(header, indent=1))
    stale = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(stale)
    fresh.rename(folder)
    shutil.rmtree(stale, ignore_errors=True)


def load_folder(path: str | Path, names: Iterable[str]) -> dict[str, Any]:
    """Read the named values of a folder written by `save_folder`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a model folder: give the folder that `jointset fit` or save() wrote")
    damaged = f"the model folder {folder} is damaged"
    for name in ("model.json", "arrays.safetensors"):
        if not (folder / name).is_file():
            raise InputError(f"{damaged}: {name} is missing; fit the model again")
    try:
        header = json.loads((folder / "model.json").read_text())
        version = int(header["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{damaged}: model.json cannot be read ({error}); fit the model again") from None
    if version > FORMAT:
        raise InputError(
            f"{folder} was saved by jointset {header.get('jointset')} in format {version}, this version reads up to "
            f"format {FORMAT}: upgrade jointset"
        )
    if header.get("sha256") != checksum(folder / "arrays.safetensors"):
        raise InputError(f"{damaged}: arrays.safetensors was cut short or changed; fit the model again")
    try:
        arrays = load_file(folder / "arrays.safetensors")
        return {name: unpack(header["parts"][name], arrays) for name in names}
    except InputError as error:
        raise InputError(f"{damaged}: {error}") from None
    except SafetensorError as error:
        raise InputError(f"{damaged}: arrays.safetensors cannot be read ({error}); fit the model again") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{damaged}: model.json does not fit this version ({error}); fit the model again") from None
