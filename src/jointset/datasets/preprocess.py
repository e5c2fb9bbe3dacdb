"""Preprocessing P1 and P2, fitted on the training block only: gaps, logarithm, z-scores, and the way back.

P1: sentinel codes become missing; runs of at most three missing steps take the last reading, longer ones the sensor's
training median. P2: log10(1 + x) where asked for, then z-scores with training mean and population standard deviation.
With `missing="mask"` gaps stay NaN instead. A run that reaches past the end of a block is judged by what that block
shows of it, so nothing before the end of training depends on what comes after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.panel import Panel
from jointset.storage import storable

Missing = Literal["fill", "mask"]
LONGEST = 3  # missing steps in a row that take the last reading
OBSERVED, CARRIED, MEDIAN = 0, 1, 2
ADVICE = "leave them out, file:PATH?drop_dead=yes"


class Repairs(NamedTuple):
    """What P1 did to one block, in readings."""

    readings: int
    sentinels: int
    carried: int
    median: int
    missing: int  # left as gaps


@storable
@dataclass(frozen=True, eq=False)
class Preprocess:
    """The constants of P1 and P2 for N sensors; `fit` computes them, `apply` and `invert` use them.

    >>> train = Panel([[1.0], [3.0], [float("nan")], [-99.0], [5.0]], ["a"])
    >>> steps = Preprocess.fit(train, sentinels=(-99.0,))
    >>> steps.invert(steps.apply(train.values)).ravel()
    array([1., 3., 3., 3., 5.])
    """

    sensors: tuple[str, ...]
    median: Array  # (N,), physical units
    mean: Array  # (N,), after the logarithm where there is one
    sd: Array  # (N,), population standard deviation, likewise
    log: bool = False
    missing: Missing = "fill"
    sentinels: tuple[float, ...] = ()

    @classmethod
    def fit(
        cls,
        train: Panel,
        *,
        sentinels: Sequence[float] = (),
        missing: Missing = "fill",
        log: bool = False,
        scale: bool = True,
    ) -> Preprocess:
        """Constants of the training block; a sensor that is constant or missing there is refused by name.

        Without `scale` readings keep their units.
        """
        require(
            missing in get_args(Missing), f"unknown treatment of gaps {missing!r}: use {' or '.join(get_args(Missing))}"
        )
        n, codes = train.n_sensors, tuple(float(code) for code in sentinels)
        seen = train.with_values(without_sentinels(train.values, codes)) if codes else train
        _check_training(seen)
        median = np.nanmedian(seen.values, axis=0)
        raw = cls(train.sensors, median, np.zeros(n), np.ones(n), log, missing, codes)
        levels = raw.apply(train.values)
        sd = np.nanstd(levels, axis=0)
        flat = [train.sensors[i] for i in np.flatnonzero(~(sd > 0))]
        require(
            not flat,
            f"sensors that hardly vary in the training block: {some(flat)}; leave them out, file:PATH?drop=NAME",
        )
        return cls(train.sensors, median, np.nanmean(levels, axis=0), sd, log, missing, codes) if scale else raw

    @classmethod
    def identity(cls, sensors: Sequence[str]) -> Preprocess:
        """Leaves readings as they are: for simulated panels, whose truth is known in their own units."""
        n = len(sensors)
        return cls(tuple(sensors), np.zeros(n), np.zeros(n), np.ones(n), missing="mask")

    def apply(self, values: ArrayLike, ends: Sequence[int] = ()) -> Array:
        """Physical readings (T, N) to z-scores (T, N); `ends` are the steps at which blocks end."""
        levels = without_sentinels(self._checked(values), self.sentinels)
        if self.missing == "fill":
            fill_gaps(levels, self.median, ends)
        if self.log:
            _check_log(levels, self.sensors)
            np.log1p(levels, out=levels)
            levels /= np.log(10.0)
        levels -= self.mean
        levels /= self.sd
        return levels

    def invert(self, values: ArrayLike) -> Array:
        """z-scores (..., N) to physical units; increasing in every sensor, so ends of intervals map to ends."""
        levels = self._checked(values) * self.sd + self.mean
        return np.expm1(levels * np.log(10.0)) if self.log else levels

    def repairs(self, values: ArrayLike, ends: Sequence[int] = ()) -> tuple[Repairs, ...]:
        """Counts for every block of physical readings (T, N), in order; `ends` as for `apply`."""
        given = self._checked(values)
        seen = without_sentinels(given, self.sentinels)
        kinds = gap_kinds(seen, ends)
        filled = self.missing == "fill"
        bounds = [0, *_block_ends(ends, len(given))]
        return tuple(
            Repairs(
                readings=given[start:stop].size,
                sentinels=int(np.isin(given[start:stop], self.sentinels).sum()) if self.sentinels else 0,
                carried=int((kinds[start:stop] == CARRIED).sum()) if filled else 0,
                median=int((kinds[start:stop] == MEDIAN).sum()) if filled else 0,
                missing=0 if filled else int(np.isnan(seen[start:stop]).sum()),
            )
            for start, stop in pairwise(bounds)
        )

    def _checked(self, values: ArrayLike) -> Array:
        given, n = np.asarray(values, dtype=np.float64), len(self.sensors)
        require(given.shape[-1:] == (n,), f"readings have shape {given.shape}, expected (..., {n}) for {n} sensors")
        return given


def without_sentinels(values: Array, codes: Sequence[float]) -> Array:
    """A copy with NaN in place of the codes."""
    seen = np.array(values, dtype=np.float64)
    for code in codes:
        seen[seen == code] = np.nan
    return seen


def gap_kinds(values: Array, ends: Sequence[int] = (), longest: int = LONGEST) -> Array:
    """What becomes of every reading (T, N): OBSERVED, CARRIED or MEDIAN, as int8.

    A run's length is counted from its first missing step up to the end of the block that shows it.

    >>> gap_kinds(np.array([[1.0], [np.nan], [np.nan], [np.nan], [np.nan], [2.0]]), ends=[3]).ravel()
    array([0, 1, 1, 2, 2, 0], dtype=int8)
    """
    T, n = values.shape
    kinds = np.zeros((T, n), dtype=np.int8)
    if not T:
        return kinds
    block_ends = _block_ends(ends, T)
    horizon = np.array(block_ends)[np.searchsorted(block_ends, np.arange(T), side="right")]  # end of each step's block
    for i in np.flatnonzero(np.isnan(values).any(axis=0)):
        missing = np.isnan(values[:, i])
        last = _last_observed(missing)
        following = np.minimum.accumulate(np.where(missing, T, np.arange(T))[::-1])[::-1]
        length = np.minimum(following, horizon) - last - 1
        kinds[missing, i] = np.where((length <= longest) & (last >= 0), CARRIED, MEDIAN)[missing]
    return kinds


def fill_gaps(values: Array, median: Array, ends: Sequence[int] = (), longest: int = LONGEST) -> None:
    """Fill the gaps of values (T, N) in place: short runs with the last reading, long ones with the median (N,)."""
    kinds = gap_kinds(values, ends, longest)
    for i in np.flatnonzero(kinds.any(axis=0)):
        last = _last_observed(np.isnan(values[:, i]))
        carried = kinds[:, i] == CARRIED
        values[carried, i] = values[last[carried], i]
        values[kinds[:, i] == MEDIAN, i] = median[i]


def _last_observed(missing: Array) -> Array:
    """Step of the last reading up to each step (T,), -1 before the first."""
    return np.maximum.accumulate(np.where(missing, -1, np.arange(len(missing))))


def _block_ends(ends: Sequence[int], T: int) -> list[int]:
    """Ends of the blocks that cover T steps, the last one T.

    >>> _block_ends([7, 8], 10), _block_ends([], 10), _block_ends([7, 10], 10)
    ([7, 8, 10], [10], [7, 10])
    """
    return [*(end for end in ends if end < T), T]


def _check_training(train: Panel) -> None:
    """Refuse sensors whose scale the training block cannot tell."""
    unseen = [train.sensors[i] for i in np.flatnonzero(~train.mask.any(axis=0))]
    require(not unseen, f"no reading in the training block ({train.T} steps) of sensors {some(unseen)}: {ADVICE}")
    constant = train.constant_sensors()
    require(
        not constant,
        f"constant in the training block ({train.T} steps), so without a scale: {some(constant)}; {ADVICE}",
    )


def _check_log(levels: Array, sensors: Sequence[str]) -> None:
    low = np.fmin.reduce(levels, axis=0, initial=np.inf)
    for i in np.flatnonzero(low <= -1.0).tolist():
        raise InputError(f"log10(1 + x) needs readings above -1, sensor {sensors[i]!r} has {low[i]:g}")
