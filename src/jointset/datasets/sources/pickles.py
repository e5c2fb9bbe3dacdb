"""Pickles from outside, read without running anything in them.

A pickle names functions and classes to call. Here a name is never looked up: array parts become arrays through
functions of this module, whatever belongs to pandas becomes an inert `Part` that only keeps what it is given, and
every other name is refused before anything is called.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require

_ARRAY_CLASS = "numpy.ndarray"  # stands for the class, which is thus never called


def read_arrays(path: Path) -> Any:
    """What a pickle of plain Python values and NumPy arrays holds; Python 2 text is read as latin-1."""
    return _read(path, _Arrays)


def read_frame(path: Path) -> tuple[Array, list[str], Array]:
    """Values (T, N), column names and index (T,) of a pandas data frame pickled by pandas 0.15 to 1.2."""
    frame = _read(path, _Frames)
    try:
        axes, _, _, extra = frame.state["_data"].state
        blocks = extra["0.14.1"]["blocks"]
        columns, index = (np.asarray(axis.args[1]["data"]) for axis in axes)
        values = np.full((len(index), len(columns)), np.nan)
        for block in blocks:
            values[:, block["mgr_locs"]] = np.asarray(block["values"], dtype=np.float64).T
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise InputError("not a table of numbers pickled by pandas 0.15 to 1.2: convert it to CSV") from None
    return values, [str(name) for name in columns], index


def _read(path: Path, reader: type[_Arrays]) -> Any:
    with path.open("rb") as file:
        try:
            return reader(file, encoding="latin1").load()
        except InputError:
            raise
        except Exception as error:  # a damaged or hostile pickle can fail in any way
            raise InputError(f"not a pickle of arrays ({type(error).__name__}): is it damaged or cut short?") from None


class Part:
    """An object of a pickle that is not rebuilt: what it would be made of, and nothing more."""

    def __new__(cls, *args: Any) -> Part:
        """Keep the arguments."""
        part = super().__new__(cls)
        part.args, part.state = args, None
        return part

    args: tuple[Any, ...]
    state: Any

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Arrays(pickle.Unpickler):
    """Numbers, text, lists, tuples, dictionaries and NumPy arrays."""

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("numpy.core.multiarray", "_reconstruct"): _new_array,
            ("numpy._core.multiarray", "_reconstruct"): _new_array,
            ("numpy.core.numeric", "_frombuffer"): _from_bytes,
            ("numpy._core.numeric", "_frombuffer"): _from_bytes,
            ("numpy", "ndarray"): _ARRAY_CLASS,
            ("numpy", "dtype"): _dtype,
            ("_codecs", "encode"): _latin1,
        }
        require((module, name) in known, f"the pickle asks for {module}.{name}, which is refused: only arrays are read")
        return known[module, name]


class _Frames(_Arrays):
    """The same, and pandas objects as inert parts."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "pandas":
            return Part
        if (module, name) in (("builtins", "slice"), ("__builtin__", "slice")):
            return slice
        return super().find_class(module, name)


def _new_array(kind: object, shape: object, code: object) -> Array:
    """An empty array; the pickle fills it by its state."""
    require(kind == _ARRAY_CLASS, "the pickle holds a special array class, which is refused: only arrays are read")
    return np.ndarray.__new__(np.ndarray, (0,), "b")


def _from_bytes(content: Any, dtype: np.dtype[Any], shape: Any, order: Any) -> Array:
    return np.frombuffer(content, dtype).reshape(shape, order=order)


def _dtype(code: Any, align: Any = False, copy: Any = False) -> np.dtype[Any]:
    require(isinstance(code, str), "the pickle holds a structured array, which is refused: only plain ones are read")
    return np.dtype(code, copy=True)


def _latin1(text: str, encoding: str) -> bytes:
    require(encoding == "latin1", f"the pickle asks for the encoding {encoding!r}, which is refused")
    return text.encode("latin1")
