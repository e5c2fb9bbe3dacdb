"""Adaptive scale around any filter: laws that grow and shrink with what was seen lately.

Two factors, each optional. Of every sensor: the moving average v_i of its squared standardised residuals, and the
covariance S becomes D S D with D = diag(sqrt(v)). Of the whole row: the moving average c of the squared distance a
sensor under D S D, and the covariance becomes c D S D. Both half-lives, and that there is none, are chosen on held-out
training rows by log density. What was not read moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple

import numpy as np

from jointset.abilities import Shaped, Sized, expecting, message_start
from jointset.algebra.covariance import Covariance
from jointset.algebra.law_tails import Tails, tails_of
from jointset.algebra.pooling import distances, student_scores
from jointset.contracts import Array, Filter, State
from jointset.errors import InputError, require
from jointset.filters.held_out import (
    FEWEST,
    WARMUP,
    blocks_of_laws,
    enough,
    follows_clock,
    held_out,
    normal_law,
    normal_run,
)
from jointset.filters.remembered import Remembered
from jointset.laws import AnyLaw, DenseLaw, LowRankLaw, matrix_of
from jointset.panel import Panel
from jointset.storage import storable

SENSOR = (0.0, 300.0, 1000.0, 3000.0)  # half-lives in rows that are tried; 0: the scale does not move
WHOLE = (0.0, 12.0, 48.0, 200.0)
LARGEST = 20.0  # a square counts as no more than so many of the present average
REACH = 20.0  # averages stay within so many times what is usual
GAIN = 0.02  # log density a reading that moving scales must bring: with less, sets are wider more often than smaller
NUMBERS = 20_000_000  # that the covariances which are factorised for a choice may hold
LAST = 1000  # training rows that say what is usual


@storable
class ScaledState(NamedTuple, Generic[State]):
    """The state of the filter, v (N,) of the sensors, c of the whole."""

    inner: State
    sensors: Array
    whole: float


@storable
@dataclass(frozen=True)
class ScaledFilter(Remembered[ScaledState[State], AnyLaw]):
    """A filter whose law follows the size of recent residuals, sensor by sensor and on the whole.

    Parameters
    ----------
    inner
        Any filter whose sets have one radius.
    sensor_half_life, whole_half_life
        Rows after which a residual counts half; 0: the scale does not move; None: chosen by `fit`.
    frozen
        The filter is fitted already, in the units that `fit` will be given; half-lives that are None are then chosen on
        the last rows of the panel.
    sensors, whole
        Set by `fit`: v (N,) and c as they usually are.
    tails
        Of the law where a scale moves, set with the half-lives; None: those of the inner law.

    >>> from jointset import GraphLGSSM, generate_grssf
    >>> scaled = ScaledFilter(GraphLGSSM(), 300.0, 0.0).fit(generate_grssf("A", n=10, length=600).panel)
    >>> scaled.law(scaled.start()).variance.shape
    (10,)
    """

    inner: Filter[State]
    sensor_half_life: float | None = None
    whole_half_life: float | None = None
    frozen: bool = False
    sensors: Array | None = None
    whole: float = 1.0
    tails: Tails | None = None

    def __post_init__(self) -> None:
        for name in ("sensor_half_life", "whole_half_life"):
            given = getattr(self, name)
            require(given is None or given >= 0, f"{name} must be 0 (none) or a number of rows, got {given}")

    def fit(self, panel: Panel) -> ScaledFilter[State]:
        """Half-lives on rows that are held out from the filter first, then the filter on all rows."""
        early, late = held_out(panel)
        chosen = self
        if self.sensor_half_life is None or self.whole_half_life is None:
            chosen = replace(self, inner=self.inner if self.frozen else self.inner.fit(early)).choose(late)
        fitted = replace(chosen, inner=self.inner if self.frozen else self.inner.fit(panel))
        several = isinstance(fitted.inner, Shaped) and fitted.inner.shares is not None
        require(not several, f"{message_start(fitted.inner)}sets of several radii cannot be scaled")
        return fitted._usual(panel[-LAST:])

    def choose(self, panel: Panel) -> ScaledFilter[State]:
        """The same around a fitted filter, half-lives that are None chosen on rows that it was not fitted on."""
        sensors = SENSOR if self.sensor_half_life is None else (self.sensor_half_life,)
        wholes = WHOLE if self.whole_half_life is None else (self.whole_half_life,)
        if not enough(panel):
            return replace(self, sensor_half_life=sensors[0], whole_half_life=wholes[0])
        found = {
            (life, whole): _gain(whole, *terms)
            for life, terms in zip(sensors, self._distances(panel, sensors), strict=True)
            for whole in wholes
        }
        life, whole = max(found, key=lambda lives: found[lives][0])
        if found[life, whole][0] < found[sensors[0], wholes[0]][0] + GAIN:
            life, whole = sensors[0], wholes[0]
        return replace(self, sensor_half_life=life, whole_half_life=whole, tails=found[life, whole][1])

    def _distances(self, panel: Panel, lives: tuple[float, ...]) -> list[tuple[Array, Array, Array]]:
        """For every half-life of the sensors distances, log-determinants and counts of the last rows."""
        rows, n = panel.values.shape
        first_kept = max(WARMUP, rows - max(FEWEST, NUMBERS // (n**2 * len(lives))))
        averages = [np.ones(n) for _ in lives]
        out: list[list[tuple[Array, Array, Array]]] = [[] for _ in lives]
        for first, laws in blocks_of_laws(self.inner, panel):
            y = panel.values[first : first + len(laws.mean)]
            squares = (y - laws.mean) ** 2 / laws.variance
            kept = slice(max(0, first_kept - first), None)
            some = laws[kept] if first + len(y) > first_kept else None
            for k, life in enumerate(lives):
                course, averages[k] = _course(squares, averages[k], np.ones(n), life)
                if some is not None:
                    out[k].append(distances(scaled(some, np.sqrt(course[kept])), y[kept]))
        return [tuple(np.concatenate(part) for part in zip(*blocks, strict=True)) for blocks in out]  # type: ignore[misc]

    def _usual(self, panel: Panel) -> ScaledFilter[State]:
        """The same with v and c as in these rows."""
        sensors, whole = np.ones(panel.n_sensors), 1.0
        if self._moves and len(panel) > WARMUP:
            squares, distance = [], []
            for first, laws in blocks_of_laws(self.inner, panel):
                y = panel.values[first : first + len(laws.mean)]
                squares.append((y - laws.mean) ** 2 / laws.variance)
                if not self.sensor_half_life:
                    distance.append(laws.mahalanobis(y) / _read(y))
            if self.sensor_half_life:
                sensors = _typical(np.concatenate(squares)[WARMUP:])
            else:
                whole = float(_typical(np.concatenate(distance)[WARMUP:, None])[0])
        return replace(self, sensors=sensors, whole=whole)

    @property
    def _moves(self) -> bool:
        return bool(self.sensor_half_life or self.whole_half_life)

    def start(self) -> ScaledState[State]:
        """The filter's own start, and scales as they usually are."""
        if self.sensors is None:
            raise InputError("the scaled filter is not fitted: call fit(panel) first")
        return ScaledState(self.inner.start(), self.sensors, self.whole)

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return follows_clock(self.inner)

    def expect(self, state: ScaledState[State], when: int) -> ScaledState[State]:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        inner = expecting(self.inner, state.inner, when)
        return state if inner is state.inner else state._replace(inner=inner)

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the law of a row holds, before and after it is scaled."""
        rows, n = values.shape
        return 2 * self.inner.law_sizes(values) if isinstance(self.inner, Sized) else np.full(rows, 2 * n**2)

    def _law(self, state: ScaledState[State]) -> AnyLaw:
        law = normal_law(self.inner, state.inner)
        return self._scaled(law, np.sqrt(state.sensors * state.whole)) if self._moves else law

    def _scaled(self, law: AnyLaw, scale: Array) -> AnyLaw:
        return scaled(law, scale).with_tails(self.tails or tails_of(law))

    def step(self, state: ScaledState[State], y: Array) -> ScaledState[State]:
        """State after one reading (N,), NaN = missing."""
        sensors, whole = state.sensors, state.whole
        if self.sensor_half_life:
            law = normal_law(self.inner, state.inner)
            sensors = _after(sensors, (y - law.mean) ** 2 / law.variance, self._usual_sensors, self.sensor_half_life)
        if self.whole_half_life:
            each = whole * self.law(state).mahalanobis(y) / _read(y)
            whole = float(_after(whole, each, self.whole, self.whole_half_life))
        return ScaledState(self.inner.step(state.inner, y), sensors, whole)

    def run(
        self, values: Array, state: ScaledState[State], times: Array | None = None
    ) -> tuple[AnyLaw, ScaledState[State]]:
        """Laws of all rows (T, N) and the state after the last one; `times` (T,) where the filter follows the clock."""
        laws, inner = normal_run(self.inner, values, state.inner, *(() if times is None else (times,)))
        if not self._moves:
            return laws, state._replace(inner=inner)
        squares = (values - laws.mean) ** 2 / laws.variance
        sensors, last = _course(squares, state.sensors, self._usual_sensors, self.sensor_half_life or 0.0)
        distance = np.full(len(values), np.nan)
        if self.whole_half_life:
            distance = scaled(laws, np.sqrt(sensors)).mahalanobis(values)
        each, usual = (distance / _read(values))[:, None], np.array([self.whole])
        course, whole = _course(each, np.array([state.whole]), usual, self.whole_half_life or 0.0)
        return self._scaled(laws, np.sqrt(sensors * course)), ScaledState(inner, last, float(whole[0]))

    @property
    def _usual_sensors(self) -> Array:
        assert self.sensors is not None
        return self.sensors


def scaled(law: AnyLaw, scale: Array) -> AnyLaw:
    """The law around the same mean whose sd are `scale` (N,) or (T, N) times as large."""
    if isinstance(law, LowRankLaw):
        return LowRankLaw._made(law.mean, scale**2 * law.diagonal, scale[..., None] * law.factor)
    return DenseLaw(law.mean, Covariance(matrix_of(law) * (scale[..., :, None] * scale[..., None, :])))


def _read(rows: Array) -> Array:
    """How many sensors were read in each row (T,), at least 1."""
    return np.maximum((~np.isnan(rows)).sum(axis=-1), 1)


def _course(squares: Array, average: Array, usual: Array, half_life: float) -> tuple[Array, Array]:
    """Moving averages (T, k) before every row of squares (T, k), and after the last; NaN moves nothing."""
    out = np.empty(squares.shape)
    if not half_life:
        out[:] = average
        return out, average
    for t, row in enumerate(squares):
        out[t] = average
        average = _after(average, row, usual, half_life)
    return out, average


def _after(average: Any, squares: Any, usual: Any, half_life: float) -> Any:
    """Moving averages (k,), or one, after squares of the same shape."""
    step = np.fmin(squares, LARGEST * average) - average
    moved = average + (1.0 - 2.0 ** (-1.0 / half_life)) * np.where(np.isnan(squares), 0.0, step)
    return np.minimum(np.maximum(moved, usual / REACH), usual * REACH)


def _typical(squares: Array) -> Array:
    """Mean squares (k,) of columns (T, k), none of which counts as more than `LARGEST` times the median."""
    columns = []
    for column in squares.T:
        read = column[~np.isnan(column)]
        middle = float(np.median(read)) if len(read) else 1.0
        columns.append(float(np.minimum(read, LARGEST * 2.2 * middle).mean()) if len(read) and middle > 0 else 1.0)
    return np.array(columns)


def _gain(half_life: float, distance: Array, log_det: Array, count: Array) -> tuple[float, Tails]:
    """Log density a reading when c moves with this half-life, and the tails it has then."""
    one = np.ones(1)
    course = _course((distance / np.maximum(count, 1))[:, None], one, one, half_life)[0][:, 0]
    scores, tails = student_scores(distance / course, log_det + count * np.log(course), count)
    return float(np.nansum(scores) / count.sum()), tails
