"""Shapes of one covariance: constant, exponentially weighted, rolling window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.triangles import add_to_diagonal
from jointset.contracts import Array, Pilot
from jointset.errors import require
from jointset.laws import DenseLaw
from jointset.residuals.incomplete import expected_moment
from jointset.residuals.piecewise import Piece, PiecewiseLaw
from jointset.residuals.shrinkage import gram, positive_definite, second_moment, to_diagonal
from jointset.storage import storable, storable_not_finite

if TYPE_CHECKING:
    from jointset.residuals.updates import UpdatedCovariance

CALM = 16  # complete rows after which updates of one factorisation are the faster way again
FARTHEST = 1e6  # sd of the pilot block beyond which one residual would cost all others their digits


@storable
@dataclass(frozen=True)
class Constant:
    """One covariance for all steps: S = E'E / (n - 1) of the pilot residuals, shrunk to its diagonal by `shrink`."""

    shrink: float = 0.0
    covariance: Array | None = None  # (N, N), set by fit

    def fit(self, pilot: Pilot) -> Constant:
        """The covariance of the pilot residuals."""
        rows, n = pilot.residuals.shape
        require(
            rows > n or self.shrink > 0,
            f"{pilot.name}: a covariance of {n} sensors needs more than {n} rows, found {rows}",
        )
        S = to_diagonal(second_moment(pilot.residuals), self.shrink)
        return replace(self, covariance=positive_definite(S, pilot.name))

    @cached_property
    def emitted(self) -> Covariance:
        """The one covariance, factorised once."""
        return Covariance(np.asarray(self.covariance), lasting=True)

    @property
    def pieces(self) -> list[tuple[int, float]]:
        """Directions of the one covariance, and its share of the miss rate."""
        return [(len(np.asarray(self.covariance)), 1.0)]

    def start(self) -> tuple[()]:
        """There is nothing to remember."""
        return ()

    def run(
        self, residuals: Array, centers: Array, times: Array | None, state: tuple[()]
    ) -> tuple[DenseLaw, tuple[()]]:
        """Laws of all rows."""
        return DenseLaw(centers, self.emitted), state


@storable_not_finite("pending")
class UpdatedState(NamedTuple):
    """The covariance (N, N) at the last row with gaps or exact factorisation, and the complete residuals (j, N) since.

    aged: rows that `base` took in since the last exact factorisation, through which jitter has faded.
    """

    base: Array
    pending: Array
    aged: int = 0


@storable
@dataclass(frozen=True)
class EWMA:
    """S_{t+1} = w S_t + (1 - w) r_t r_t', w = 2^(-1 / half_life), from the pilot covariance shrunk by `shrink`.

    The recursion starts before the pilot block and runs through it. `jitter` is added to the diagonal at every exact
    factorisation, one in `refresh` steps, and fades with w between them; all else is exact, by rank-one updates
    (`jointset.residuals.updates`). Of a row with gaps r_t r_t' is what is to be expected of it given what was read; one
    without any reading leaves the covariance as it is. After the pilot block a residual counts as no more than
    `farthest` standard deviations of that block.
    """

    half_life: float = 288.0
    shrink: float = 0.05
    jitter: float = 1e-6
    refresh: int = 128
    covariance: Array | None = None  # at the end of the pilot block (N, N), set by fit
    farthest: float = FARTHEST

    def __post_init__(self) -> None:
        require(self.half_life > 0, f"half_life must be positive, got {self.half_life}")
        require(self.farthest > 0, f"farthest must be positive, got {self.farthest}")
        require(self.refresh >= 1, f"refresh must be 1 step or more, got {self.refresh}")

    @property
    def decay(self) -> float:
        """w, the weight of the past."""
        return float(2.0 ** (-1.0 / self.half_life))

    def fit(self, pilot: Pilot) -> EWMA:
        """The covariance at the end of the pilot block."""
        E, w = pilot.residuals, self.decay
        start = to_diagonal(second_moment(E), self.shrink)
        weights = (1.0 - w) * w ** np.arange(len(E) - 1, -1, -1.0)
        return replace(self, covariance=w ** len(E) * start + (E.T * weights) @ E)

    def start(self) -> UpdatedState:
        """The covariance after the pilot block."""
        S = np.asarray(self.covariance)
        return UpdatedState(S, np.empty((0, len(S))))

    def run(
        self, residuals: Array, centers: Array, times: Array | None, state: UpdatedState
    ) -> tuple[PiecewiseLaw, UpdatedState]:
        """Laws of all rows, in pieces; an exact factorisation comes at fixed counts of rows with a reading.

        A row with gaps ends its piece, and the next goes through gaps (`GapCourse`) until some complete rows have come.
        """
        from jointset.residuals.gap_course import GapCourse  # here, as scipy takes longest to import

        pieces, t, calm, (base, pending, aged) = [], 0, 0, state
        residuals = self._limited(residuals)
        pending = _complete(pending)
        gaps = np.flatnonzero(partly_read(residuals))
        ends = np.append(gaps + 1, len(residuals))
        while t < len(residuals):
            due = t + self.refresh - aged - len(pending)  # later where rows without a reading come
            if t < calm:
                base, aged = self.advance(base, pending), aged + len(pending)
                course = GapCourse(base, residuals[t : min(calm, due)], self.decay, self.jitter * self.decay**aged)
                pieces.append(Piece(np.arange(t, t + course.stop), course))
                base, pending, aged, t = course.base, course.pending, aged + course.moved, t + course.stop
            else:
                stop = min(int(ends[np.searchsorted(ends, t, side="right")]), due)
                rows = np.concatenate([pending, residuals[t:stop]]) if len(pending) else residuals[t:stop]
                pieces.append(Piece(np.arange(t, stop), self.covariances(base, rows, len(pending), aged)))
                pending, t = rows[~np.isnan(rows).any(axis=1)], stop
                if partly_read(rows[-1:])[0]:
                    base, aged = self.advance(base, pending), aged + len(pending)
                    base, aged, pending = self._expected(base, rows[-1], aged), aged + 1, pending[:0]
                    calm = self._calm_after(gaps, t, len(residuals))
            if aged + len(pending) >= self.refresh:
                base, pending, aged = self.advance(base, pending), pending[:0], 0
        law = PiecewiseLaw(centers, tuple(pieces), np.ones(centers.shape[1]))
        return law, UpdatedState(base, pending.copy(), aged)

    def law(self, center: Array, state: UpdatedState) -> DenseLaw:
        """The law of the next row around its center (N,): that of `run`."""
        base, pending, aged = state
        pending = _complete(pending)
        weights, scales = self._courses
        used = pending * weights[: len(pending), None]
        return DenseLaw._made(center, Covariance(scales[len(pending)] * (self._jittered(base, aged) + used.T @ used)))

    def after(self, residuals: Array, state: UpdatedState) -> UpdatedState:
        """The state after a row of residuals (1, N), NaN = missing."""
        base, pending, aged = state
        if np.isnan(residuals).any():
            return self.run(residuals, residuals, None, state)[1]
        pending = np.concatenate([_complete(pending), self._limited(residuals)])
        if aged + len(pending) < self.refresh:
            return UpdatedState(base, pending, aged)
        return UpdatedState(self.advance(base, pending), pending[:0], 0)

    def _limited(self, residuals: Array) -> Array:
        """Residuals (T, N) as far as one counts: scores are of what was read, wherever that is."""
        return np.minimum(np.maximum(residuals, -self._limit), self._limit)

    @cached_property
    def _limit(self) -> Array:
        return self.farthest * np.sqrt(np.diagonal(np.asarray(self.covariance)))

    @cached_property
    def _courses(self) -> tuple[Array, Array]:
        """Weight of an update and scale of the covariance after as many complete rows as count from the last base."""
        counts = np.arange(self.refresh + 1)
        with np.errstate(over="ignore"):  # of more rows than any base lives
            return np.sqrt((1.0 - self.decay) * self.decay ** (-1.0 - counts)), self.decay**counts

    def _calm_after(self, gaps: Array, t: int, rows: int) -> int:
        """The row, from t on, at which so many have come without gaps."""
        calm = min(CALM, self.refresh)
        later = gaps[np.searchsorted(gaps, t) :]
        far = np.flatnonzero(np.diff(later, prepend=t - 1) > calm)
        near = later[: far[0]] if len(far) else later
        return min(int(near[-1] if len(near) else t - 1) + 1 + calm, rows)

    def covariances(self, base: Array, rows: Array, first: int, aged: int) -> UpdatedCovariance | Covariance:
        """Covariances before each of rows[first:], `rows` (j, N) being all residuals since `base`."""
        if len(rows) == 1 and np.isnan(rows).any():  # nothing to update
            return Covariance(self._jittered(base, aged))
        from jointset.residuals.updates import UpdatedCovariance  # here, as scipy takes longest to import

        seen, complete = complete_before(rows)
        counts = seen[1:] - complete  # complete rows before each row
        weights, scales = self._courses
        weight = weights[counts]
        whole = rows if complete.all() else np.where(complete[:, None], rows, 0.0)
        active = np.arange(first, len(rows))
        scale = scales[seen[:-1][first:]]
        return UpdatedCovariance(self._jittered(base, aged), whole * weight[:, None], active, scale, weight[first:])

    def advance(self, base: Array, rows: Array) -> Array:
        """The covariance after these complete rows, exactly."""
        weights = (1.0 - self.decay) * self.decay ** np.arange(len(rows) - 1, -1, -1.0)
        return self.decay ** len(rows) * base + gram(np.sqrt(weights)[:, None] * rows)

    def _jittered(self, S: Array, aged: int) -> Array:
        S = S.copy()
        add_to_diagonal(S, self.jitter * self.decay**aged)
        return S

    def _expected(self, S: Array, row: Array, aged: int) -> Array:
        """The covariance S after a row (N,) with gaps."""
        filled, unknown = expected_moment(self._jittered(S, aged), row)
        return self.decay * S + (1.0 - self.decay) * (filled[:, None] * filled + unknown)


@storable
class RollingState(NamedTuple):
    """The last residuals (window, N), oldest first, the lower triangle of their E'E (N, N), and more on it.

    peak: largest diagonal of E'E since it was made anew (N,) · age: rows since then.
    """

    window: Array
    squares: Array
    peak: Array
    age: int


@storable
@dataclass(frozen=True)
class Rolling:
    """S_t = (1 - s) C_t + s diag C_t with C_t the second moment of the last `window` residuals, s = `shrink`.

    Exact, with a factorisation a step (`jointset.residuals.sliding`); sums over the window are made anew every
    `refresh` rows. A gap takes what is to be expected given the sensors that were read, plus what the row that leaves
    the window differs there from what its own let expect; a row without any reading leaves the window as it is.
    """

    window: int = 288
    shrink: float = 0.05
    jitter: float = 1e-9
    refresh: int = 72
    residuals: Array | None = None  # the last window of the pilot block, set by fit

    def __post_init__(self) -> None:
        require(0.0 < self.shrink < 1.0, f"shrink must lie between 0 and 1, got {self.shrink}")
        require(self.refresh >= 1, f"refresh must be 1 row or more, got {self.refresh}")

    def fit(self, pilot: Pilot) -> Rolling:
        """The last residuals of the pilot block."""
        rows = len(pilot.residuals)
        require(
            rows >= self.window,
            f"{pilot.name}: a window of {self.window} residuals needs as many rows before the first set, found {rows}",
        )
        return replace(self, residuals=np.array(pilot.residuals[-self.window :], dtype=float))

    def start(self) -> RollingState:
        """The window at the end of the pilot block."""
        from jointset.residuals.sliding import start_rolling  # here, as scipy takes longest to import

        return start_rolling(np.asarray(self.residuals))

    def run(
        self, residuals: Array, centers: Array, times: Array | None, state: RollingState | UpdatedState
    ) -> tuple[PiecewiseLaw, RollingState]:
        """Laws of all rows, a piece from one sum over the window to the next."""
        from jointset.residuals.gap_course import expected_residual
        from jointset.residuals.sliding import Shrinkage, SlidingCovariance, slide_window, start_rolling

        if isinstance(state, UpdatedState):  # of an older model
            kept = state.pending[~np.isnan(state.pending).any(axis=1)]
            state = start_rolling(np.concatenate([state.base, kept])[-self.window :])
        how, pieces, start, first = Shrinkage(self.window, self.shrink, self.jitter), [], 0, state
        moves: Array = np.asarray(~np.isnan(residuals).all(axis=1))
        gaps = partly_read(residuals)
        entering: list[Array] = []
        leaving: list[Array] = []
        active: list[int] = []
        for t, row in enumerate(residuals):
            active.append(len(entering))
            if moves[t]:
                leaves = state.window[0]
                enters = leaves + expected_residual(how.whole(state.squares), row - leaves) if gaps[t] else row
                entering.append(enters)
                leaving.append(leaves)
                state = slide_window(state, enters, self.refresh)
            if t + 1 == len(residuals) or (moves[t] and state.age == 0):
                entered, left = (np.reshape(rows, (-1, residuals.shape[1])) for rows in (entering, leaving))
                covariance = SlidingCovariance(how, first.squares, entered, left, np.array(active))
                pieces.append(Piece(np.arange(start, t + 1), covariance))
                start, first, entering, leaving, active = t + 1, state, [], [], []
        return PiecewiseLaw(centers, tuple(pieces), np.ones(centers.shape[1])), state


def partly_read(rows: Array) -> Array:
    """Which rows (T,) have gaps, and readings."""
    missing = np.isnan(rows)
    return np.asarray(missing.any(axis=1) & ~missing.all(axis=1))


def _complete(pending: Array) -> Array:
    """Rows (j, N) without those that older models kept, which have no reading."""
    return pending[~np.isnan(pending).any(axis=1)] if np.isnan(pending).any() else pending


def complete_before(rows: Array) -> tuple[Array, Array]:
    """How many complete rows come before each row and after the last (j + 1,), and which rows are complete (j,)."""
    complete: Array = np.asarray(~np.isnan(rows).any(axis=1))
    return np.concatenate(([0], np.cumsum(complete))), complete
