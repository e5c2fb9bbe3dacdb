"""The Kalman filter through rows with gaps, in a network that is not large: plain matrices, one factorisation a row.

With the sensors in the order read (o), then missing, S = P + nu I = L L' gives all that a row needs: the mean after it
is m + X'z, its covariance P - X'X, its distance z'z, with X = L_oo^-1 P_o and z = L_oo^-1 e_o. Where the same sensors
stay silent P comes to rest again, at another place; from then on a row costs two products with a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_steps import StepCovariances, Steps, Walked
from jointset.algebra.triangles import NOT_DEFINITE
from jointset.contracts import Array
from jointset.errors import InputError
from jointset.laws import DenseLaw

if TYPE_CHECKING:
    from jointset.filters.kalman import GraphLGSSM

DENSE = 64  # sensors up to which this is the faster way
REST = 1e-13  # relative change of a covariance that counts as none
LOOK = 8  # rows between two looks at whether it changes
TOGETHER = 64  # rows at rest that are predicted at once


class Model(NamedTuple):
    """Transition F (N, N), symmetric; variances of the noise of process and reading; P at rest (N, N)."""

    F: Array
    q: float
    nu: float
    prior: Array


class Rows:
    """Readings (T, N) and what is missing of them: how many were read, sensors in the order read, then missing.

    known: readings with zeros for gaps · ahead: F times these
    """

    def __init__(self, values: Array, F: Array) -> None:
        missing = np.isnan(values)
        self.values, self.known, steps = values, np.where(missing, 0.0, values), len(values)
        self.ahead = self.known @ F
        self.read = (~missing).sum(axis=1).tolist()
        self.orders = np.argsort(missing, axis=1, kind="stable")
        breaks = np.append(np.flatnonzero((missing[1:] != missing[:-1]).any(axis=1)) + 1, steps)
        self.ends = breaks[np.searchsorted(breaks, np.arange(steps), side="right")].tolist()  # of as many gaps


class Course:
    """The laws of rows from `first` on, until P is at rest with complete rows or the rows end at `stop`.

    means (k, N) · parts: how many rows, their covariances · mean and P: predicted for row `stop`; P is None at rest.
    """

    def __init__(self, model: Model, rows: Rows, first: int, mean: Array, P: Array) -> None:
        from scipy.linalg.blas import dgemm  # here, so that importing jointset stays fast
        from scipy.linalg.lapack import dpotrf, dtrtrs

        self._product, self._factorise, self._solve = dgemm, dpotrf, dtrtrs
        self.model, self.rows, self.first, self.stop = model, rows, first, first
        self.mean: Array = mean
        self.P: Array | None = P
        self.near = REST * float(model.prior.max())
        self.parts: list[tuple[int, Covariance]] = []
        self._means: list[Array] = []
        self._matrices: list[Array] = []
        self._pivots: list[Array] = []
        self._distances: list[float] = []
        self._F, self._noise = _bordered(model.F), _bordered(model.q * np.eye(len(P)))
        C = _bordered(P)
        while self.P is not None and self.stop < len(rows.values):
            C = self._row(C)
        self._end_batch()
        self.means = np.array(self._means)

    def _row(self, C: Array) -> Array:
        """One row: its law, and what follows from it. C (N + 1, N + 1) is P, with a place for e in its last column."""
        t, (_, _, nu, prior), n, F = self.stop, self.model, len(C) - 1, self._F
        order, read = self.rows.orders[t], self.rows.read[t]
        np.subtract(self.rows.known[t], self.mean, out=C[:n, n])
        right = C.T.take(order, 1)  # the rows of P and e, in the order read, then missing
        S = right.take(order, 0)
        S.reshape(-1)[:: n + 1] += nu
        L, failed = self._factorise(S.T, 1, 0, 1)  # lower, not cleaned, in its place: names would cost as much
        if failed:
            raise InputError(NOT_DEFINITE)
        solved = self._solve(L, right.T, 1, 0, 0, n, 1)[0]  # lower, in the place of the right side: X and z
        solved[read:] = 0.0
        after = self._product(-1.0, solved, solved, 1.0, C, 1)  # P - X'X, e - X'z, -z'z
        onward = self._product(1.0, F, after)
        self._means.append(self.mean)
        self._matrices.append(C[:n, :n])
        self._pivots.append(L.diagonal())
        self._distances.append(-after[n, n] if read else np.nan)
        D = self._product(1.0, onward, F, 1.0, self._noise)
        P, self.P, self.stop = C[:n, :n], D[:n, :n], t + 1
        self.mean = self.rows.ahead[t] - onward[:n, n]  # F (m + X'z)
        if read == n:
            self.P = None if np.abs(self.P - prior).max() <= self.near else self.P
        elif self.rows.ends[t] > t + 1 and t % LOOK == 0 and np.abs(self.P - P).max() <= self.near:
            self._stand_still(self.P)
        return D

    def _stand_still(self, P: Array) -> None:
        """The rows up to the end of a pattern of gaps under which P does not change any more."""
        t, end, (F, _, nu, _) = self.stop, self.rows.ends[self.stop], self.model
        seen = self.rows.orders[t][: self.rows.read[t]]
        S = P + nu * np.eye(len(P))
        gain = F @ np.linalg.solve(S[seen[:, None], seen], P[seen]).T
        forget = F.copy()
        forget[:, seen] -= gain
        powers = [forget.T]
        while 2 ** len(powers) < TOGETHER:
            powers.append(powers[-1] @ powers[-1])
        for start in range(t, end, TOGETHER):
            rows = self.rows.known[start : min(start + TOGETHER, end)][:, seen]
            means = _predicted(powers, gain, self.mean, rows)
            self._means += [self.mean, *means[:-1]]
            self.mean = means[-1]
        self._end_batch()
        self.parts.append((end - t, Covariance(S, lasting=True)))
        self.stop = end

    def _end_batch(self) -> None:
        """The covariances of rows that have one each, as one array."""
        count = len(self._matrices)
        if not count:
            return
        start, log_det = self.stop - count, 2.0 * np.log(np.array(self._pivots)).sum(axis=1)
        means = np.array(self._means[start - self.first : self.stop - self.first])
        variance = np.array([P.diagonal() for P in self._matrices]) + self.model.nu
        residuals, distances = self.rows.values[start : self.stop] - means, np.array(self._distances)
        steps = Steps(self._matrices, self.model.nu, variance, log_det, residuals, distances)
        self.parts.append((count, Walked(steps)))
        self._matrices, self._pivots, self._distances = [], [], []


def _predicted(powers: list[Array], gain: Array, mean: Array, rows: Array) -> Array:
    """Means (k, N) after each of a few rows (k, o): m <- A m + gain y, with A', A'^2, A'^4 ... given.

    By doubling: after sums over the last 1, 2, 4 ... rows each has all. The products are of one size whatever comes
    later, as later rows are not to change even the rounding.
    """
    padded = np.zeros((TOGETHER, rows.shape[1]))
    padded[: len(rows)] = rows
    means = padded @ gain.T
    means[0] += mean @ powers[0]
    for i, power in enumerate(powers):
        means[2**i :] += means[: -(2**i)] @ power
    return means[: len(rows)]


def _bordered(A: Array) -> Array:
    """A matrix (N, N) with a row and a column of zeros, in the order of Fortran."""
    out = np.zeros((len(A) + 1, len(A) + 1), order="F")
    out[:-1, :-1] = A
    return out


class OffRest:
    """The laws of the rows (T, N) of a run that a filter, a `GraphLGSSM`, meets off rest."""

    def __init__(self, filter_: GraphLGSSM, values: Array) -> None:
        self.filter, self.values = filter_, values
        self.dense = not filter_._alone and values.shape[1] <= DENSE
        self.found: list[tuple[int, Array, list[tuple[int, Covariance]]]] = []  # first row, means (k, N), parts
        self._rows: Rows | None = None

    def from_row(self, t: int, state: Any) -> tuple[int, Any]:
        """The row and the state after one row, or after as many as are off rest; the law at rest is known."""
        first = t + state.at_rest
        if not self.dense:
            if first == t:
                self.found.append((t, state.mean[None], [(1, self.filter._emitted(state))]))
            return t + 1, self.filter.step(state, self.values[t])
        f = self.filter
        model = Model(f.transition, f.sigma_q**2, f.sigma_r**2, f.prior)
        P = f.prior if state.at_rest else f._emitted(state).matrix - model.nu * np.eye(len(state.mean))
        self._rows = self._rows or Rows(self.values, model.F)
        way = Course(model, self._rows, t, state.mean, P)
        parts = StepCovariances(way.parts)[first - t :] if first > t else StepCovariances(way.parts)
        self.found.append((first, way.means[first - t :], parts.parts))  # type: ignore[attr-defined]
        return way.stop, type(state)(way.mean, None if way.P is None else way.P.copy())

    def laws(self, means: Array, emitted: Covariance) -> DenseLaw:
        """The laws of all rows from the means (T, N) and the covariance of those at rest."""
        if not self.found:
            return DenseLaw(means, emitted)
        parts, done = [], 0
        for first, own, covariances in self.found:
            means[first : first + len(own)] = own
            parts += [(first - done, emitted), *covariances]
            done = first + len(own)
        return DenseLaw(means, StepCovariances([*parts, (len(means) - done, emitted)]))
