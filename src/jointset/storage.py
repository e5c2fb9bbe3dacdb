"""Values to JSON and arrays and back: dataclasses and NamedTuples, never a pickle.

A storable class is a frozen dataclass or a NamedTuple whose fields are numbers, strings, None, arrays, tuples or
other storable values. `pack` splits such a value into a JSON tree and named arrays; `unpack` rebuilds it. Only classes
of the table in `jointset.parts` and those that other packages registered with `storable` can come out of a file, and
every field is held to its annotation.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import types
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from jointset.errors import InputError, require
from jointset.parts import PARTS, STORED_AS, plugins

T = TypeVar("T", bound=type)
_NAMES: dict[type, str] = {}  # stored name of every class that was marked
_OTHERS: dict[str, type] = {}  # classes of other packages
_NOT_FINITE: dict[type, tuple[str, ...]] = {}  # fields that may hold NaN or infinities
WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    np.ndarray: "an array",
    types.NoneType: "null",
}
LENGTH = 8  # bytes that say how long the tree is


def storable(cls: T) -> T:
    """Mark a class whose values can be saved and loaded (decorator); one of another package is stored by its name."""
    name = STORED_AS.get((cls.__module__, cls.__name__), cls.__name__)
    if PARTS.get(name) != (cls.__module__, cls.__name__):
        require(name not in PARTS, f"{name!r} is the name of a part of jointset: give the class another name")
        _OTHERS[name] = cls
    _NAMES[cls] = name
    return cls


def storable_not_finite(*fields: str) -> Callable[[T], T]:
    """Mark a class some of whose fields may hold NaN (a gap) or infinities (no bound) in a sound model."""

    def register(cls: T) -> T:
        _NOT_FINITE[cls] = fields
        return storable(cls)

    return register


def pack(value: object, arrays: dict[str, np.ndarray], name: str = "value") -> Any:
    """JSON tree of a value; arrays go into `arrays` under their path, one that is met again under its first."""
    if isinstance(value, np.ndarray):
        known = next((path for path, other in arrays.items() if other is value), name)
        arrays[known] = np.ascontiguousarray(value)
        return {"array": known}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):  # JSON has no inf or nan
        return value if np.isfinite(value) else {"float": repr(value)}
    cls: Any = type(value)
    if cls in _NAMES:
        fields = {key: getattr(value, key) for key in _fields(cls)}
        return {"class": _NAMES[cls], "fields": {k: pack(v, arrays, f"{name}.{k}") for k, v in fields.items()}}
    if isinstance(value, (tuple, list)):
        return [pack(v, arrays, f"{name}.{i}") for i, v in enumerate(value)]
    raise TypeError(f"cannot store a {type(value).__name__} at {name}")


def unpack(tree: object, arrays: dict[str, np.ndarray], name: str = "value", kind: object = Any) -> Any:
    """The value of a JSON tree made by `pack`, refused unless it is of the kind; lists come back as tuples."""
    value = _value(tree, arrays, name)
    require(fits(value, kind), f"{name} must be {_words(kind)}, got {_shown(value)}")
    return value


def _value(tree: object, arrays: dict[str, np.ndarray], name: str) -> Any:
    if isinstance(tree, list):
        return tuple(_value(item, arrays, f"{name}.{i}") for i, item in enumerate(tree))
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        found = arrays.get(str(tree["array"]))
        require(found is not None, f"{name}: array {tree['array']!r} is missing")
        return found
    if "float" in tree:
        require(tree["float"] in ("nan", "inf", "-inf"), f"{name}: {str(tree['float'])[:40]!r} is no number")
        return float(tree["float"])
    return _object(tree, arrays, name)


def _object(tree: dict[str, Any], arrays: dict[str, np.ndarray], name: str) -> Any:
    """A value of a storable class."""
    cls = stored_class(str(tree.get("class")))
    if cls is None:
        what = f"unknown part {str(tree.get('class'))[:40]!r}"
        raise InputError(f"{name}: {what}, perhaps of a newer jointset or of a package that is not installed")
    given, known = tree.get("fields"), _fields(cls)
    if not isinstance(given, dict):
        raise InputError(f"{name}: a {cls.__name__} without fields")
    given = cls.of_older(given) if hasattr(cls, "of_older") else given
    for field, needed in known.items():
        require(field in given or not needed, f"{name}: a {cls.__name__} without its field {field!r}")
    kinds = _annotations(cls)
    kept = {field: tree for field, tree in given.items() if field in known}  # an older version may have had more
    values = {field: unpack(tree, arrays, f"{name}.{field}", kinds[field]) for field, tree in kept.items()}
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def stored_class(name: str) -> Any:
    """The class that is stored under a name, imported where it has to be; None where nothing has that name."""
    if name in PARTS:
        module, cls = PARTS[name]
        return getattr(importlib.import_module(module), cls)
    if name not in _OTHERS:
        plugins()  # their modules mark classes
    return _OTHERS.get(name)


@functools.cache
def _fields(cls: Any) -> dict[str, bool]:
    """Names of the fields of a storable class, and whether each must be given."""
    if not dataclasses.is_dataclass(cls):
        return {name: name not in cls._field_defaults for name in cls._fields}
    free = dataclasses.MISSING
    return {f.name: f.default is free and f.default_factory is free for f in dataclasses.fields(cls) if f.init}


_annotations = functools.cache(get_type_hints)


def fits(value: object, kind: object) -> bool:
    """Whether a value is what an annotation says; a whole number is a number, True is none.

    >>> fits((1, 2.5), tuple[float, ...]), fits("1", float | None), fits(True, int)
    (True, False, False)
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        kinds = inner[:1] * len(value) if isinstance(value, tuple) and inner[-1] is Ellipsis else inner
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(fits, value, kinds))
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, _class_of(origin or kind))


def _class_of(kind: object) -> Any:
    """The class behind the name of a type, which `NDArray` is from numpy 2.5 on; any other kind as it is."""
    named = getattr(kind, "__value__", None)
    return kind if named is None else _class_of(get_origin(named) or named)


def _words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(one) for one in get_args(kind))
    if origin is tuple:
        inner = get_args(kind)
        count = "" if inner[-1] is Ellipsis else f"{len(inner)} "
        return f"a list of {count}{_words(inner[0]).partition(' ')[2]}s"
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    kind = _class_of(origin or kind)
    return WORDS.get(kind) or f"a {kind.__name__}"


def _shown(value: object) -> str:
    if isinstance(value, (str, int, float)):
        return repr(value)[:40]
    if type(value) is tuple:
        return f"a list of {len(value)}"
    return WORDS.get(type(value)) or f"a {type(value).__name__}"


def numbers_in(value: object, name: str) -> Iterator[tuple[str, Any]]:
    """Path and content of every array of floats and every float, except where a class may hold what is not finite."""
    if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        yield name, value
        return
    cls: Any = type(value)
    if cls in _NAMES:
        known = [key for key in _fields(cls) if key not in _NOT_FINITE.get(cls, ())]
        inner = [(key, getattr(value, key)) for key in known]
    else:
        inner = [(str(i), item) for i, item in enumerate(value)] if isinstance(value, (tuple, list)) else []
    for key, item in inner:
        yield from numbers_in(item, f"{name}.{key}")


def to_bytes(parts: dict[str, Any]) -> bytes:
    """Named values as one string of bytes, bit for bit and without a pickle: a JSON tree, then the arrays it names."""
    from safetensors.numpy import save

    arrays: dict[str, Any] = {}
    trees = json.dumps({name: pack(value, arrays, name) for name, value in parts.items()}).encode()
    return len(trees).to_bytes(LENGTH, "little") + trees + save(arrays)


def from_bytes(data: bytes) -> dict[str, Any]:
    """The values of `to_bytes`; lists come back as tuples."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    end = LENGTH + int.from_bytes(data[:LENGTH], "little")
    try:
        trees = json.loads(data[LENGTH:end])
        arrays = load(data[end:])
    except (ValueError, SafetensorError) as error:
        raise InputError(f"the snapshot cannot be read ({error})") from None
    require(isinstance(trees, dict), "the snapshot holds no parts")
    return {name: unpack(tree, arrays, name) for name, tree in trees.items()}
