"""Values to JSON and arrays and back: dataclasses and NamedTuples, never a pickle.

A storable class is a frozen dataclass or a NamedTuple whose fields are numbers, strings, None, arrays, tuples or
other storable values. `pack` splits such a value into a JSON tree and named arrays; `unpack` rebuilds it, and only
classes registered with `storable` can come out of a file.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from jointset.errors import InputError

T = TypeVar("T", bound=type)
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
    made = _CLASSES[tree["class"]]
    known = set(getattr(made, "_fields", None) or (field.name for field in dataclasses.fields(made)))
    fields = {k: v for k, v in tree["fields"].items() if k in known}  # an older version may have had more
    return made(**{k: unpack(v, arrays) for k, v in fields.items()})
