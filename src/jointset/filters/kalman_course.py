"""The Kalman filter through rows with gaps, in a network that is not large: plain matrices, one factorisation a row.

With the sensors in the order read (o), then missing, S = P + nu I = L L' gives all that a row needs: the mean after it
is m + X'z, its covariance P - X'X, with X = L_oo^-1 P_o and z = L_oo^-1 e_o. Where the same sensors stay silent P comes
to rest again, at another place; from then on a row costs two products with a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_modes import StepCovariances, step_covariances
from jointset.algebra.triangles import NOT_DEFINITE
from jointset.contracts import Array
from jointset.errors import InputError
from jointset.laws import DenseLaw

if TYPE_CHECKING:
    from jointset.filters.kalman import GraphLGSSM

DENSE = 64  # sensors up to which this is the faster way
REST = 1e-13  # relative change of a covariance that counts as none
LOOK = 8  # rows between two looks at whether it changes


class Model(NamedTuple):
    """Transition F (N, N), symmetric; variances of the noise of process and reading; P at rest (N, N)."""

    F: Array
    q: float
    nu: float
    prior: Array


class Rows:
    """Readings (T, N) and what is missing of them: how many were read, sensors in the order read, then missing."""

    def __init__(self, values: Array) -> None:
        missing = np.isnan(values)
        self.values, steps = values, len(values)
        self.read = (~missing).sum(axis=1).tolist()
        self.orders = np.argsort(missing, axis=1, kind="stable")
        breaks = np.append(np.flatnonzero((missing[1:] != missing[:-1]).any(axis=1)) + 1, steps)
        self.ends = breaks[np.searchsorted(breaks, np.arange(steps), side="right")].tolist()  # of as many gaps


class Course:
    """The laws of rows from `first` on, until P is at rest with complete rows or the rows end at `stop`.

    means (k, N) · covariances: of each row · mean and P: predicted for row `stop`; P is None at rest.
    """

    def __init__(self, model: Model, rows: Rows, first: int, mean: Array, P: Array) -> None:
        from scipy.linalg.lapack import dpotrf, dtrtrs  # here, so that importing jointset stays fast

        self._factorise, self._solve = dpotrf, dtrtrs
        self.model, self.rows, self.stop = model, rows, first
        self.mean: Array = mean
        self.P: Array | None = P
        self.near = REST * float(model.prior.max())
        self.covariances: list[Covariance] = []
        self._means: list[Array] = []
        self._matrices: list[Array] = []
        self._pivots: list[Array] = []
        while self.P is not None and self.stop < len(rows.values):
            self._row(self.P)
        self._end_batch()
        self.means = np.array(self._means)

    def _row(self, P: Array) -> None:
        """One row: its law, and what follows from it."""
        t, (F, q, nu, prior), n = self.stop, self.model, len(P)
        order, read = self.rows.orders[t], self.rows.read[t]
        S = P.copy()
        S.reshape(-1)[:: n + 1] += nu
        L, failed = self._factorise(S.take(order, 0).take(order, 1).T, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise InputError(NOT_DEFINITE)
        self._means.append(self.mean)
        self._matrices.append(S)
        self._pivots.append(L.diagonal())
        mean, after = self.mean, P
        if read:
            e = (self.rows.values[t] - mean).take(order)
            e[read:] = 0.0
            X, z = (self._solve(L, right, lower=1)[0][:read] for right in (P.take(order, 1).T, e))
            mean, after = mean + z @ X, P - X.T @ X
        after = F @ after @ F
        after.reshape(-1)[:: n + 1] += q
        self.mean, self.P, self.stop = F @ mean, after, t + 1
        if read == n:
            self.P = None if np.abs(after - prior).max() <= self.near else after
        elif self.rows.ends[t] > t + 1 and t % LOOK == 0 and np.abs(after - P).max() <= self.near:
            self._stand_still(after)

    def _stand_still(self, P: Array) -> None:
        """The rows up to the end of a pattern of gaps under which P does not change any more."""
        t, end, (F, _, nu, _) = self.stop, self.rows.ends[self.stop], self.model
        seen = self.rows.orders[t][: self.rows.read[t]]
        S = P + nu * np.eye(len(P))
        gain = F @ np.linalg.solve(S[seen[:, None], seen], P[seen]).T
        forget = F.copy()
        forget[:, seen] -= gain
        mean = self.mean
        for row in self.rows.values[t:end, seen]:  # one by one, as later rows are not to change even the rounding
            self._means.append(mean)
            mean = forget @ mean + gain @ row
        self._end_batch()
        self.covariances += [Covariance(S, lasting=True)] * (end - t)
        self.mean, self.stop = mean, end

    def _end_batch(self) -> None:
        """The covariances of rows that have one each, as one array."""
        if self._matrices:
            log_det = 2.0 * np.log(np.array(self._pivots)).sum(axis=1)
            self.covariances += step_covariances(np.array(self._matrices), log_det)
            self._matrices, self._pivots = [], []


class OffRest:
    """The laws of the rows (T, N) of a run that a filter, a `GraphLGSSM`, meets off rest."""

    def __init__(self, filter_: GraphLGSSM, values: Array) -> None:
        self.filter, self.values = filter_, values
        self.dense = not filter_._alone and values.shape[1] <= DENSE
        self.found: dict[int, tuple[Array, Covariance]] = {}
        self._rows: Rows | None = None

    def from_row(self, t: int, state: Any) -> tuple[int, Any]:
        """The row and the state after one row, or after as many as are off rest; the law at rest is known."""
        first = t + state.at_rest
        if not self.dense:
            if first == t:
                self.found[t] = (state.mean, self.filter._emitted(state))
            return t + 1, self.filter.step(state, self.values[t])
        f = self.filter
        model = Model(f.transition, f.sigma_q**2, f.sigma_r**2, f.prior)
        P = f.prior if state.at_rest else f._emitted(state).matrix - model.nu * np.eye(len(state.mean))
        self._rows = self._rows or Rows(self.values)
        way = Course(model, self._rows, t, state.mean, P)
        for place in range(first, way.stop):
            self.found[place] = (way.means[place - t], way.covariances[place - t])
        return way.stop, type(state)(way.mean, way.P)

    def laws(self, means: Array, emitted: Covariance) -> DenseLaw:
        """The laws of all rows from the means (T, N) and the covariance of those at rest."""
        if not self.found:
            return DenseLaw(means, emitted)
        each = [emitted] * len(means)
        for t, (mean, covariance) in self.found.items():
            means[t], each[t] = mean, covariance
        return DenseLaw(means, StepCovariances(each))
