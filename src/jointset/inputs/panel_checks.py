"""Checks and conversions of what a panel is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from jointset.contracts import Array
from jointset.errors import BadRow, InputError, require, some, suggest
from jointset.graph import by_label, is_sparse
from jointset.inputs.times import iso

Kept = TypeVar("Kept")

ADVICE = "sort the rows, drop repeats, or write UTC offsets where a clock change repeats an hour"


def numbers(array: ArrayLike, what: str) -> Array:
    """Read-only float64 array, shared with the caller only when nobody can write to it; what is masked is missing."""
    given = np.asarray(unmasked(array))
    require(given.dtype.kind in "biuf", f"{what} must be numbers, got dtype {given.dtype}: convert them first")
    if given.dtype == np.float64 and not writeable(given):
        return given
    return read_only(np.array(given, dtype=np.float64, order="C"))


def unmasked(array: Any) -> Any:
    """A masked array with NaN where it is masked; anything else as it is."""
    if not isinstance(array, np.ma.MaskedArray) or array.dtype.kind not in "biuf":
        return array
    return np.ma.filled(array.astype(np.float64), np.nan)


def read_only(fresh: Kept) -> Kept:
    """The array, or matrix of scipy.sparse, no longer writeable."""
    given: Any = fresh
    for part in (given.data, given.indices, given.indptr) if is_sparse(given) else (given,):
        part.flags.writeable = False
    return fresh


def writeable(array: object) -> bool:
    """Whether someone can change the array, through itself or through what it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None


def sensor_names(sensors: Sequence[str] | Array) -> tuple[str, ...]:
    """Distinct, non-empty names as text."""
    require(not isinstance(sensors, str), f"sensors must be a sequence of names, not the text {sensors!r}")
    names = tuple(str(name) for name in sensors)
    for i, name in enumerate(names):
        require(name.strip() != "", f"the sensor in column {i} (from 0) has no name: name it, or drop the column")
    twice = [name for name, count in Counter(names).items() if count > 1]
    require(not twice, f"duplicated sensor names: {some(twice)}; rename or drop the repeats")
    return names


def check_shape(values: Array, sensors: tuple[str, ...]) -> tuple[int, int]:
    """Steps and sensors of values (T, N), refused when the names do not fit."""
    require(values.ndim == 2, f"values must be (steps, sensors), got {values.ndim} dimensions: reshape to two")
    T, n = values.shape
    require(n > 0, "the panel has no sensors: give at least one column of readings")
    require(n == len(sensors), f"{len(sensors)} sensor names for {n} columns of values: give one name per column")
    return T, n


def check_finite(values: Array, timestamps: Array | None, sensors: tuple[str, ...]) -> None:
    """Refuse readings that are infinite, with the first of them."""
    if np.fmax.reduce(values, axis=None, initial=0) < np.inf and np.fmin.reduce(values, axis=None, initial=0) > -np.inf:
        return  # the usual case, without a temporary array
    t, i = np.argwhere(np.isinf(values))[0]
    time = "" if timestamps is None else f" ({iso(timestamps[t])})"
    where = f"{time}, sensor {sensors[i]!r}"
    raise BadRow(lambda place: f"infinite reading at {place(t)}{where}: write a number, or NaN where it is missing")


def shaped(array: ArrayLike | None, what: str, shape: tuple[int, int], sensors: Sequence[str]) -> Array | None:
    """Optional per-sensor array, refused when it has another shape; a data frame that names sensors in their order."""
    if array is None:
        return None
    given = numbers(by_label(array, sensors, "index", *["columns"] * (what == "distances")), what)
    require(given.shape == shape, f"{what} have shape {given.shape}, expected {shape}: one row per sensor")
    return given


def stamps(timestamps: ArrayLike, T: int) -> Array:
    """Time stamps (T,) as read-only int64 seconds, refused unless strictly increasing."""
    stamps = np.asarray(timestamps)
    if stamps.dtype.kind == "M":
        require(not np.isnat(stamps).any(), "a time stamp is missing (NaT): drop its row, or give its time")
        whole = stamps.astype("datetime64[s]")
        require(bool((whole == stamps).all()), "time stamps finer than a second are not supported: average to seconds")
        stamps = whole
    require(
        stamps.dtype.kind in "iuM" or not stamps.size,
        f"time stamps must be whole epoch seconds or datetime64, got dtype {stamps.dtype}: convert them first",
    )
    require(stamps.shape == (T,), f"time stamps have shape {stamps.shape}, expected ({T},): one per row of values")
    seconds = stamps if stamps.dtype == np.int64 and not writeable(stamps) else read_only(stamps.astype(np.int64))
    back = np.flatnonzero(np.diff(seconds) <= 0)
    if back.size:
        t = int(back[0]) + 1
        now, before = iso(seconds[t]), iso(seconds[t - 1])
        fault = "repeats" if seconds[t] == seconds[t - 1] else "goes back from"
        raise BadRow(
            lambda place: f"time stamp of {place(t)}, {now}, {fault} that of {place(t - 1)}, {before}: {ADVICE}"
        )
    return seconds


def sensor_index(asked: object, sensors: tuple[str, ...]) -> Array:
    """Integer index (k,) of the sensors asked for, each once."""
    n = len(sensors)
    given = np.atleast_1d(np.asarray(asked))
    require(given.ndim == 1 and given.size > 0, "no sensors selected: give at least one name, index or True")
    if given.dtype.kind == "b":
        require(len(given) == n, f"boolean mask has {len(given)} entries for {n} sensors: give one per sensor")
        index = np.flatnonzero(given)
        require(index.size > 0, "no sensors selected: the boolean mask is False everywhere")
        return index
    if given.dtype.kind in "iu":
        for i in given[(given < -n) | (given >= n)]:
            raise InputError(f"sensor index {i} is outside 0 .. {n - 1}: the panel has {n} sensors")
        index = np.where(given < 0, given + n, given)
    else:
        index = named_index([str(name) for name in given], sensors)
    twice = [sensors[i] for i, count in Counter(index.tolist()).items() if count > 1]
    require(not twice, f"sensors selected more than once: {some(twice)}; ask for each once")
    return index


def named_index(names: list[str], sensors: tuple[str, ...]) -> Array:
    """Places of the named sensors; an unknown one is refused with close matches."""
    place = {name: i for i, name in enumerate(sensors)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise InputError(f"unknown sensor {unknown[0]!r}: {suggest(unknown[0], sensors)}")
    return np.array([place[name] for name in names])
