"""A covariance of the moment, diagonal plus low rank, from what is known before: multivariate standardised residuals.

S(x) = diag(exp(W x)) + F(x) F(x)', F(x) (N, r) linear in x as W x is, r = ceil(sqrt(N)). x holds a constant, sines and
cosines of the time of day and of the week where there is a clock, and the first principal components of the predicted
means, which are functions of the last readings. W and F minimise the Gaussian negative log-likelihood of the residuals
(L-BFGS) and stop where the last fifth of the rows, which they do not see, says so.

Reference: Braun et al., "Multivariate standardized residuals for conformal prediction", 2025; MAPIE has it as a score,
whose W and F are the last layer of a network and not linear in x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from jointset.algebra import lowrank
from jointset.algebra.pooling import some_rows
from jointset.backbones.calendar import NO_CALENDAR, Calendar, calendar_at
from jointset.contracts import Array, Pilot
from jointset.errors import require
from jointset.laws import LowRankLaw
from jointset.residuals.conditional import Clock
from jointset.residuals.shrinkage import second_moment
from jointset.storage import storable
from jointset.support.how_far import tell

HARMONICS = (3, 1)  # of the day and of the week
COMPONENTS = 4  # of the predicted means, at most
WIDEST = 3.0  # a regressor counts as no more than so many of its standard deviations
FLOOR = 1e-6  # smallest variance of a sensor by itself, in those of all its residuals
LARGEST = 8.0  # of |W x|
NUMBERS = 8e6  # that the factors of all rows may hold
ROWS = (100, 20_000)  # rows that are fitted on: at least, and at most
STEPS = 60  # of L-BFGS
HELD = 0.2  # share of the rows that say when to stop
RIDGE = 1e-4  # MAPIE's decay of weights


@storable
@dataclass(frozen=True)
class LinearHeads:
    """Covariances of single steps; all fields but the rank are set by `fit`."""

    dense: ClassVar[bool] = True  # a factor a step is formed

    rank: int | None = None  # ceil(sqrt(N)) where None
    unit: Array | None = None  # root mean square of the residuals (N,)
    center: Array | None = None  # of the predicted means (N,)
    axes: Array | None = None  # (N, k): their principal components, in standard deviations
    log_diagonal: Array | None = None  # W (p, N)
    factors: Array | None = None  # (p, N, r)
    calendar: Calendar = NO_CALENDAR
    cadence: int = 0
    first: int = 0

    def fit(self, pilot: Pilot) -> LinearHeads:
        """Coefficients from the residuals of the pilot block."""
        rows, n = pilot.residuals.shape
        require(rows >= 20, f"{pilot.name} needs at least 20 rows, found {rows}: give more rows")
        unit = np.sqrt(np.mean(pilot.residuals**2, axis=0))
        unit = np.maximum(unit, max(float(unit.max()) * 1e-6, np.finfo(float).tiny))
        center, axes = principal(pilot.means)
        calendar = calendar_at(pilot.times, pilot.cadence, *HARMONICS)
        cadence = pilot.cadence or 0
        first = 0 if pilot.times is None else int(pilot.times[-1]) + cadence
        rank = int(np.ceil(np.sqrt(n))) if self.rank is None else self.rank
        made = replace(self, rank=rank, unit=unit, center=center, axes=axes, calendar=calendar)
        kept = some_rows(rows, int(np.clip(NUMBERS / (n * max(rank, 1)), *ROWS)))
        times = None if pilot.times is None else pilot.times[kept]
        X = made._regressors(pilot.means[kept], times)
        W, F = _likeliest(X, pilot.residuals[kept] / unit, rank)
        return replace(made, log_diagonal=W, factors=F, cadence=cadence, first=first)

    def start(self) -> Clock:
        """The step after the pilot block; `at` sets another time."""
        return Clock(self.first)

    def at(self, state: Clock, time: int) -> Clock:
        """The state with the time of the next row."""
        return Clock(int(time))

    def run(self, residuals: Array, centers: Array, times: Array | None, state: Clock) -> tuple[LowRankLaw, Clock]:
        """Laws of all rows."""
        if times is None:
            times = state.next + self.cadence * np.arange(len(residuals))
        unit = np.asarray(self.unit)
        d, L = heads(self._regressors(centers, times), np.asarray(self.log_diagonal), np.asarray(self.factors))
        after = Clock(int(times[-1]) + self.cadence) if len(times) else state
        return LowRankLaw(centers, d * unit**2, L * unit[:, None]), after

    @cached_property
    def _offset(self) -> Array:
        return np.asarray(self.center) @ np.asarray(self.axes)

    def _regressors(self, means: Array, times: Array | None) -> Array:
        """x (T, p), the constant first."""
        level = np.clip(means @ np.asarray(self.axes) - self._offset, -WIDEST, WIDEST)
        return np.hstack([np.ones((len(means), 1)), self.calendar.terms(times, len(means)), level])


def principal(means: Array) -> tuple[Array, Array]:
    """Centre (N,) of rows (T, N), and the axes (N, k) of their largest principal components, each of variance 1."""
    center = means.mean(axis=0)
    values, vectors = np.linalg.eigh(second_moment(means - center))
    kept = np.flatnonzero(values > 1e-9 * max(float(values[-1]), np.finfo(float).tiny))[::-1][:COMPONENTS]
    return center, vectors[:, kept] / np.sqrt(values[kept])


def heads(X: Array, W: Array, F: Array) -> tuple[Array, Array]:
    """Diagonals (T, N) and factors (T, N, r) at regressors (T, p)."""
    d = np.exp(np.clip(X @ W, -LARGEST, LARGEST)) + FLOOR
    return d, np.tensordot(X, F, axes=(1, 0))


def _likeliest(X: Array, z: Array, rank: int) -> tuple[Array, Array]:
    """W (p, N) and F (p, N, r) at which the rows left out are likeliest, on the way to where the others are."""
    from scipy.optimize import minimize  # here, as scipy takes longest to import

    cut = len(z) - int(np.ceil(HELD * len(z)))
    early, late = (X[:cut], z[:cut]), (X[cut:], z[cut:])
    p, n = X.shape[1], z.shape[1]
    start = np.zeros((p, n, 1 + rank))
    start[0] = _constant(early[1], rank)
    best, least, steps = start, np.inf, 0

    def keep(flat: Array) -> None:
        nonlocal best, least, steps
        theta = flat.reshape(start.shape)
        found = float(lowrank.nll(late[1], *_weights(late[0], theta)).mean())
        if found < least:
            best, least = theta.copy(), found
        tell(min(steps, STEPS), STEPS)
        steps += 1

    def loss(flat: Array) -> tuple[float, Array]:
        value, slope = _loss(*early, flat.reshape(start.shape))
        return value, slope.ravel()

    keep(start.ravel())
    minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", callback=keep, options={"maxiter": STEPS})
    return best[:, :, 0], best[:, :, 1:]


def _constant(z: Array, rank: int) -> Array:
    """Logarithms of the diagonal, and the factors (N, 1 + r), of the covariance of all rows: principal components."""
    values, vectors = np.linalg.eigh(second_moment(z))
    rest = float(np.mean(values[: len(values) - rank])) if rank < len(values) else 0.0
    L = (vectors * np.sqrt(np.maximum(values - rest, 0.0)))[:, len(values) - rank :]
    d = np.maximum(np.mean(z**2, axis=0) - (L**2).sum(axis=1), 0.05)
    return np.column_stack([np.log(d), L])


def _weights(X: Array, theta: Array) -> tuple[Array, Array]:
    d, L = heads(X, theta[:, :, 0], theta[:, :, 1:])
    return 1.0 / d, L


def _loss(X: Array, z: Array, theta: Array) -> tuple[float, Array]:
    """Mean negative log-likelihood of rows z (T, N) with a small ridge, and its slope (p, N, 1 + r)."""
    w, L = _weights(X, theta)
    WL = w[..., None] * L
    C = lowrank.capacitance(w, L)
    inverse = np.linalg.inv(C)
    f = lowrank.apply(inverse, np.einsum("tnr,tn->tr", WL, z))  # L'S^-1 z
    a, B = w * z - lowrank.apply(WL, f), WL @ inverse  # S^-1 z, S^-1 L
    value = 0.5 * ((z * a).sum(axis=-1) + lowrank.log_det(w, L, C))
    log_d = np.clip(X @ theta[:, :, 0], -LARGEST, LARGEST)
    inner = (np.abs(log_d) < LARGEST) * np.exp(log_d) * 0.5 * (w - (WL * B).sum(axis=-1) - a**2)
    outer = B - a[..., None] * f[:, None]
    slope = np.tensordot(X, np.concatenate([inner[..., None], outer], axis=-1), axes=(0, 0)) / len(z)
    penalty = RIDGE * theta
    penalty[0] = 0.0
    return float(value.mean() + 0.5 * (penalty * theta).sum()), slope + penalty
