"""Graph-LGSSM: the linear Kalman filter on a graph, at rest in closed form, exact when sensors are missing.

H_{t+1} = F H_t + xi, Y_t = H_t + eta with F = rho A~ / lambda_max(A~), Q = sigma_q^2 I, R = sigma_r^2 I. In the
eigenbasis of F the filter at rest is N scalar recursions. A row with missing sensors leaves that rest: the update on
the observed sensors is then the textbook one, with a covariance of its own, until it has forgotten the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.covariance import Covariance
from jointset.errors import InputError, require
from jointset.filters.riccati import SteadyState, steady_state
from jointset.graph import modes, normalized_shift
from jointset.laws import DenseLaw
from jointset.panel import Panel
from jointset.recursion import first_order
from jointset.storage import storable

RHO_GRID = (0.5, 0.7, 0.85, 0.95)
NOISE_GRID = (0.03, 0.1, 0.3, 1.0)
REST = 1e-14  # relative distance to the steady state at which a covariance counts as at rest


@storable
class KalmanState(NamedTuple):
    """What the filter knows before the next reading: predicted state (N,) and its covariance (None = at rest)."""

    mean: Array
    covariance: Array | None = None


@storable
@dataclass(frozen=True)
class GraphLGSSM:
    """Linear Kalman filter with a graph transition.

    Parameters
    ----------
    rho
        Norm of the transition, in (0, 1).
    sigma_q, sigma_r
        Standard deviations of process and observation noise.
    obs_noise_frac
        If set, `fit` takes the noise from the data instead: Q = (1 - rho^2) v I, R = frac v I with v the mean sensor
        variance, both then rescaled so that the predicted innovation trace is the realised one.
    tune
        If set, `fit` chooses (rho, obs_noise_frac) from the 4 x 4 grid by the likelihood of the last 20 % of the
        training rows, then fits that pair on all of them.
    adjacency
        Set by `fit`: the graph (N, N). A panel without a graph is filtered sensor by sensor (F = rho I).
    """

    rho: float = 0.8
    sigma_q: float = 1.0
    sigma_r: float = 1.0
    obs_noise_frac: float | None = None
    tune: bool = False
    adjacency: Array | None = None

    def __post_init__(self) -> None:
        require(0.0 < self.rho < 1.0, f"rho must lie strictly between 0 and 1, got {self.rho}")
        require(self.sigma_q > 0 and self.sigma_r > 0, "sigma_q and sigma_r must be positive")
        frac = self.obs_noise_frac
        require(frac is None or frac > 0, f"obs_noise_frac must be positive, got {frac}")

    # ------------------------------------------------------------------ fitting

    def fit(self, panel: Panel) -> GraphLGSSM:
        """A copy with the graph of the panel and, in the data-driven modes, its noise levels."""
        n = panel.n_sensors
        graph = replace(self, adjacency=np.zeros((n, n)) if panel.adjacency is None else panel.adjacency)
        if self.tune:
            return graph._tuned(panel.values)
        if self.obs_noise_frac is not None:
            return graph._with_noise_from(panel.values)
        return graph

    def _with_noise_from(self, values: Array) -> GraphLGSSM:
        """Noise levels from the mean sensor variance, rescaled by the realised innovation trace (first fifth aside)."""
        assert self.obs_noise_frac is not None
        variance = float(np.nanmean(np.nanvar(values, axis=0)))
        require(variance > 0, "the training rows do not vary: there is nothing to fit")
        q, r = (1.0 - self.rho**2) * variance, self.obs_noise_frac * variance
        guess = replace(self, sigma_q=float(np.sqrt(q)), sigma_r=float(np.sqrt(r)))
        laws, _ = guess.run(forward_filled(values), guess.start())
        settled = slice(len(values) // 5, None)
        realised = np.nanmean((values[settled] - laws.mean[settled]) ** 2)
        scale = float(np.sqrt(realised / np.mean(guess.emitted.variance)))
        return replace(guess, sigma_q=guess.sigma_q * scale, sigma_r=guess.sigma_r * scale)

    def _tuned(self, values: Array) -> GraphLGSSM:
        """The pair of the grid with the smallest validation NLL, fitted on all rows.

        The grid is compared on forward-filled rows: gaps would cost an N x N update a step and pair, and the choice
        of two numbers does not need it. Scores, laws and calibration never see filled values.
        """
        rows = len(values)
        cut = round(0.8 * rows)
        require(rows - cut >= 2, f"tuning needs at least 10 training rows, got {rows}")
        filled = forward_filled(values)

        def validation_nll(candidate: GraphLGSSM) -> float:
            fitted = candidate._with_noise_from(values[:cut])
            laws, _ = fitted.run(filled, fitted.start())
            return float(np.mean(laws[cut:].nll(filled[cut:])))

        grid = [replace(self, rho=rho, obs_noise_frac=frac, tune=False) for rho in RHO_GRID for frac in NOISE_GRID]
        best = min(grid, key=validation_nll)
        return replace(best._with_noise_from(values), tune=True)  # fitted again, it tunes again

    # ------------------------------------------------------------------ the model

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Coefficients f_i of the modes (N,), ascending, and their orthonormal basis U (N, N)."""
        if self.adjacency is None:
            raise InputError("the Kalman filter is not fitted: call fit(panel) first")
        eigenvalues, basis = modes(normalized_shift(self.adjacency))
        return self.rho * eigenvalues / eigenvalues.max(), basis

    @cached_property
    def steady(self) -> SteadyState:
        """Closed-form steady state of every mode."""
        return steady_state(self.spectrum[0], self.sigma_q**2, self.sigma_r**2)

    def _matrix(self, coefficients: Array) -> Array:
        """Matrix with these coefficients on the graph modes."""
        basis = self.spectrum[1]
        return (basis * coefficients) @ basis.T

    @cached_property
    def transition(self) -> Array:
        """F (N, N)."""
        return self._matrix(self.spectrum[0])

    @cached_property
    def prior(self) -> Array:
        """Steady-state covariance P^- (N, N) of the predicted state."""
        return self._matrix(self.steady.prior)

    @cached_property
    def emitted(self) -> Covariance:
        """Covariance P^- + R of the law at rest: one object for all steps, factorised once."""
        return Covariance(self._matrix(self.steady.prior + self.sigma_r**2))

    @cached_property
    def closed_loop(self) -> Array:
        """F (I - K) (N, N): how the filter at rest forgets."""
        return self._matrix(self.steady.closed_loop)

    @cached_property
    def input_gain(self) -> Array:
        """F K (N, N): how a reading enters the next prediction."""
        return self._matrix(self.spectrum[0] * self.steady.gain)

    # ------------------------------------------------------------------ filtering

    def start(self, covariance: Array | None = None) -> KalmanState:
        """Zero mean, and the covariance at rest unless another prior covariance (N, N) is given."""
        return KalmanState(np.zeros(len(self.spectrum[0])), covariance)

    def law(self, state: KalmanState) -> DenseLaw:
        """Law of the next reading: N(state mean, P^- + R)."""
        if state.covariance is None:
            return DenseLaw(state.mean, self.emitted)
        return DenseLaw(state.mean, state.covariance + self.sigma_r**2 * np.eye(len(state.mean)))

    def step(self, state: KalmanState, y: Array) -> KalmanState:
        """State after one reading (N,); NaN = missing, left out of the update exactly."""
        y = np.asarray(y, dtype=float)
        missing = np.isnan(y)
        if state.covariance is None and not missing.any():
            return KalmanState(self.closed_loop @ state.mean + self.input_gain @ y)
        return self._step_off_rest(state, y, np.flatnonzero(~missing))

    def _step_off_rest(self, state: KalmanState, y: Array, seen: Array) -> KalmanState:
        """Textbook update on the observed sensors, then the transition."""
        from scipy.linalg import cho_factor, cho_solve  # here, so that importing jointset stays fast

        mean, P = state.mean, self.prior if state.covariance is None else state.covariance
        if len(seen):
            columns = P[:, seen]
            innovation = cho_factor(columns[seen] + self.sigma_r**2 * np.eye(len(seen)), lower=True)
            gain = cho_solve(innovation, columns.T).T
            mean = mean + gain @ (y[seen] - mean[seen])
            P = P - gain @ columns.T
        F = self.transition
        P = F @ P @ F.T
        P = 0.5 * (P + P.T)
        P[np.diag_indices_from(P)] += self.sigma_q**2
        at_rest = np.max(np.abs(P - self.prior)) <= REST * np.max(self.prior)
        return KalmanState(F @ mean, None if at_rest else P)

    def run(self, values: Array, state: KalmanState) -> tuple[DenseLaw, KalmanState]:
        """Laws of all rows (T, N) and the state after the last one.

        Without gaps all laws share one covariance. With gaps each step has its own: T N^2 numbers, so cut a long
        series into blocks (`JointPredictor` does).
        """
        values = np.asarray(values, dtype=float)
        gaps: Array = np.asarray(np.isnan(values).any(axis=1))
        breaks = np.append(np.flatnonzero(gaps), len(values))  # rows with a gap, and the end
        basis = self.spectrum[1]
        # One product for all rows whatever their gaps, so that a gap at t cannot change even the rounding before t.
        inputs = np.ascontiguousarray((np.where(gaps[:, None], 0.0, values) @ basis).T)
        inputs *= (self.spectrum[0] * self.steady.gain)[:, None]
        at_rest = np.zeros((len(basis), len(values)))  # predicted modes of the rows met at rest
        off_rest: dict[int, KalmanState] = {}
        t = 0
        while t < len(values):
            if state.covariance is not None:
                off_rest[t] = state
                state = self.step(state, values[t])
                t += 1
                continue
            stop = int(breaks[np.searchsorted(breaks, t)])
            predicted = self._modes_at_rest(inputs[:, t:stop], basis.T @ state.mean)
            at_rest[:, t : stop + 1] = predicted[:, : len(values) - t]
            state = KalmanState(basis @ predicted[:, -1])
            if stop < len(values):
                state = self.step(state, values[stop])
            t = stop + 1
        return self._laws(at_rest.T @ basis.T, off_rest), state

    def _modes_at_rest(self, inputs: Array, first: Array) -> Array:
        """Predicted modes (N, T + 1) through complete rows: m_{t+1} = a m_t + input_t, one filter a mode."""
        return np.hstack([first[:, None], first_order(self.steady.closed_loop, inputs, first)])

    def _laws(self, means: Array, off_rest: dict[int, KalmanState]) -> DenseLaw:
        if not off_rest:
            return DenseLaw(means, self.emitted)
        covariances = np.broadcast_to(self.emitted.matrix, (*means.shape, means.shape[1])).copy()
        for t, state in off_rest.items():
            law = self.law(state)
            means[t], covariances[t] = law.mean, law.covariance.matrix
        return DenseLaw(means, Covariance(covariances))


def forward_filled(values: Array) -> Array:
    """Last observation carried forward; the sensor's mean before its first one."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    last = np.where(missing, 0, np.arange(len(values))[:, None])
    np.maximum.accumulate(last, axis=0, out=last)
    filled = np.take_along_axis(values, last, axis=0)
    return np.where(np.isnan(filled), np.nanmean(values, axis=0), filled)
