"""Graph-LGSSM: the linear Kalman filter on a graph, at rest in closed form, exact when sensors are missing.

H_{t+1} = F H_t + xi, Y_t = H_t + eta with F = rho A~ / lambda_max(A~), Q = sigma_q^2 I, R = sigma_r^2 I. In the
eigenbasis of F the filter at rest is N scalar recursions. A row with missing sensors leaves that rest, until it is
forgotten (`jointset.filters.kalman_gaps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_gaps import Cut
from jointset.algebra.covariance_modes import ModeCovariance, Raised
from jointset.algebra.recursion import first_order
from jointset.algebra.window_laws import WindowLaw
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.filters.kalman_ahead import windows_ahead
from jointset.filters.kalman_course import OffRest
from jointset.filters.kalman_gaps import block_step, law_sizes, posterior_excess, shortened, transition_form
from jointset.filters.kalman_tuning import GRID, TrainingRows, noise_level, training_rows
from jointset.filters.riccati import SteadyState, steady_state
from jointset.graph import dense, modes, normalized_shift
from jointset.laws import DenseLaw
from jointset.panel import Panel
from jointset.storage import storable

REST = 1e-14  # relative distance to the steady state at which a covariance counts as at rest


@storable
class KalmanState(NamedTuple):
    """What the filter knows before the next reading: predicted state (N,) and, off rest, its covariance.

    On the graph modes that is diag(prior) + excess excess', prior (N,) and excess (N, r); None is the prior at rest and
    no excess. Where r would not be small the whole `covariance` (N, N) of the sensors is kept instead.
    """

    mean: Array
    covariance: Array | None = None
    prior: Array | None = None
    excess: Array | None = None

    @property
    def at_rest(self) -> bool:
        """Whether the covariance is the one that does not change with complete readings."""
        return self.covariance is None and self.prior is None and self.excess is None


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

    def fit(self, panel: Panel, progress: Callable[[int, int, float], None] | None = None) -> GraphLGSSM:
        """A copy with the graph of the panel and, in the data-driven modes, its noise levels.

        While it tunes, `progress` is told how many pairs were tried, how many there are, and the best NLL so far.
        """
        n = panel.n_sensors
        graph = replace(self, adjacency=np.zeros((n, n)) if panel.adjacency is None else dense(panel.adjacency))
        if not self.tune and self.obs_noise_frac is None:
            return graph
        if progress is not None and self.tune:
            progress(0, len(GRID), float("nan"))  # the modes of a large graph take their time
        rows = training_rows(panel.values, graph._to_modes, graph._from_modes)
        if self.tune:
            return graph._tuned(rows, progress)
        return graph._at_level(rows, self.rho, float(self.obs_noise_frac or 0.0))

    def _at_level(self, rows: TrainingRows, rho: float, frac: float) -> GraphLGSSM:
        """A copy with this pair and the noise that the rows show."""
        level = noise_level(rows, self._coefficients(rho), rho, frac)
        noise = {"sigma_q": float(np.sqrt(level.q)), "sigma_r": float(np.sqrt(level.nu))}
        return self._on_same_graph(rho=rho, obs_noise_frac=frac, **noise)

    def _tuned(self, rows: TrainingRows, progress: Callable[[int, int, float], None] | None) -> GraphLGSSM:
        """The pair of the grid with the smallest validation NLL, fitted on all rows.

        The grid is compared on forward-filled rows: gaps would cost an N x N update a step and pair, and the choice
        of two numbers does not need it. Scores, laws and calibration never see filled values.
        """
        cut = round(0.8 * len(rows))
        require(len(rows) - cut >= 2, f"tuning needs at least 10 training rows, got {len(rows)}")
        found: list[float] = []
        for rho, frac in GRID:
            level = noise_level(rows, self._coefficients(rho), rho, frac, stop=cut)
            found.append(level.nll(slice(cut, None)))
            if progress is not None:
                progress(len(found), len(GRID), min(found))
        return self._at_level(rows, *GRID[int(np.argmin(found))])  # fitted again, it tunes again

    def _coefficients(self, rho: float) -> Array:
        eigenvalues = self.graph_modes[0]
        return rho * eigenvalues / eigenvalues.max()

    def _on_same_graph(self, **changes: Any) -> GraphLGSSM:
        """A copy with other numbers; the modes of the graph are found once."""
        other = replace(self, **changes)
        other.__dict__["graph_modes"] = self.graph_modes
        return other

    # ------------------------------------------------------------------ the model

    @cached_property
    def graph_modes(self) -> tuple[Array, Array]:
        """Eigenvalues of the normalised shift (N,), ascending, and their orthonormal basis U (N, N)."""
        if self.adjacency is None:
            raise InputError("the Kalman filter is not fitted: call fit(panel) first")
        if self._alone:
            return np.ones(len(self.adjacency)), np.eye(len(self.adjacency))
        return modes(normalized_shift(self.adjacency))

    @cached_property
    def _alone(self) -> bool:
        """Whether no sensor has a neighbour: then the modes are the sensors."""
        A = np.asarray(self.adjacency)
        return np.count_nonzero(A) == np.count_nonzero(A.diagonal())

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Coefficients f_i of the modes (N,), ascending, and their orthonormal basis U (N, N)."""
        return self._coefficients(self.rho), self.graph_modes[1]

    @property
    def _basis(self) -> Array | None:
        return None if self._alone else self.spectrum[1]

    def _to_modes(self, x: Array) -> Array:
        return x if self._alone else x @ self.spectrum[1]

    def _from_modes(self, x: Array) -> Array:
        return x if self._alone else x @ self.spectrum[1].T

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
        return self.rho / self.graph_modes[0].max() * normalized_shift(np.asarray(self.adjacency))

    @cached_property
    def prior(self) -> Array:
        """Steady-state covariance P^- (N, N) of the predicted state."""
        return self._matrix(self.steady.prior)

    @cached_property
    def emitted(self) -> ModeCovariance:
        """Covariance P^- + R of the law at rest: one object for all steps, factorised once."""
        return ModeCovariance(self._basis, self.steady.prior + self.sigma_r**2, lasting=True)

    @cached_property
    def closed_loop(self) -> Array:
        """F (I - K) (N, N): how the filter at rest forgets."""
        return self._matrix(self.steady.closed_loop)

    @cached_property
    def input_gain(self) -> Array:
        """F K (N, N): how a reading enters the next prediction."""
        return self._matrix(self._input_gains)

    @cached_property
    def _input_gains(self) -> Array:
        """The same mode by mode (N,)."""
        return self.spectrum[0] * self.steady.gain

    # ------------------------------------------------------------------ filtering

    def start(self, covariance: Array | None = None) -> KalmanState:
        """Zero mean, and the covariance at rest unless another prior covariance (N, N) is given."""
        return KalmanState(np.zeros(len(self.spectrum[0])), covariance)

    def law(self, state: KalmanState) -> DenseLaw:
        """Law of the next reading: N(state mean, P^- + R)."""
        return DenseLaw(state.mean, self._emitted(state))

    def _emitted(self, state: KalmanState) -> Covariance:
        """Covariance P^- + R of a state. The last is kept: the law and the step of a state share what it factorises."""
        if state.at_rest:
            return self.emitted
        known, made = self.__dict__.get("_latest", (None, None))
        if known is None or any(a is not b for a, b in zip(known, state[1:], strict=True)):
            made = self._new_covariance(state)
            self.__dict__["_latest"] = (state[1:], made)
        return made

    def _new_covariance(self, state: KalmanState) -> Covariance:
        if state.covariance is None:
            plain = self.emitted if state.prior is None else None
            return ModeCovariance(self._basis, self._prior_of(state) + self.sigma_r**2, state.excess, plain=plain)
        return Raised(state.covariance, self.sigma_r**2)

    def _prior_of(self, state: KalmanState) -> Array:
        return self.steady.prior if state.prior is None else state.prior

    def step(self, state: KalmanState, y: Array) -> KalmanState:
        """State after one reading (N,); NaN = missing, left out of the update exactly."""
        y = np.asarray(y, dtype=float)
        missing = np.isnan(y)
        if state.at_rest and not missing.any():
            ahead = self.steady.closed_loop * self._to_modes(state.mean) + self._input_gains * self._to_modes(y)
            return KalmanState(self._from_modes(ahead))
        S, e = self._emitted(state), np.where(missing, 0.0, y - state.mean)
        if state.covariance is None:
            if self._alone or missing.all() or not missing.any():
                return self._mode_step(state, e, missing, None)
            seen = S.observed(missing)
            if not isinstance(seen, Cut):
                return self._mode_step(state, e, missing, seen)
        q, nu = self.sigma_q**2, self.sigma_r**2
        mean, P = block_step(self._transition, S, state.mean, e, missing, q, nu)
        near = not missing.any() and np.max(np.abs(P - self.prior)) <= REST * np.max(self.prior)
        return KalmanState(mean, None if near else P)

    def _mode_step(self, state: KalmanState, e: Array, missing: Array, seen: Any) -> KalmanState:
        """Update and transition on the modes: N scalar filters, and the excess that gaps leave behind."""
        f, p, q, nu = self.spectrum[0], self._prior_of(state), self.sigma_q**2, self.sigma_r**2
        read: Any = ~missing if self._alone else not missing.all()  # mode by mode where they are the sensors
        mean, x = self._to_modes(state.mean), self._to_modes(e)
        posterior = np.where(read, nu * p / (p + nu), p)
        mean = mean + np.where(read, p / (p + nu), 0.0) * x
        V = state.excess
        if seen is not None or (V is not None and np.any(read)):
            V = posterior_excess(cast("ModeCovariance", self._emitted(state)), seen, nu)
            mean += V @ (x @ V) / nu
        mean, least = self._from_modes(f * mean), REST * np.max(self.steady.prior)
        if V is not None:
            V = shortened(f[:, None] * V, least, 0 if state.excess is None else state.excess.shape[1])
        if state.prior is None and np.all(read):
            return KalmanState(mean, None, None, V)
        prior = f**2 * posterior + q
        near = np.max(np.abs(prior - self.steady.prior)) <= least
        return KalmanState(mean, None, None if near else prior, V)

    @cached_property
    def _transition(self) -> Any:
        return transition_form(self.transition)

    def run(self, values: Array, state: KalmanState) -> tuple[DenseLaw, KalmanState]:
        """Laws of all rows (T, N) and the state after the last one.

        All laws at rest share one covariance. After a gap each has its own until it is forgotten, N r numbers or N^2,
        so cut a long series into blocks (`JointPredictor` does, by `law_sizes`).
        """
        values = np.asarray(values, dtype=float)
        gaps: Array = np.asarray(np.isnan(values).any(axis=1))
        breaks = np.append(np.flatnonzero(gaps), len(values))  # rows with a gap, and the end
        # One product for all rows whatever their gaps, so that a gap at t cannot change even the rounding before t.
        inputs = np.ascontiguousarray(self._to_modes(np.where(gaps[:, None], 0.0, values)).T)
        inputs *= self._input_gains[:, None]
        at_rest = np.zeros(inputs.shape)  # predicted modes of the rows met at rest
        off_rest = OffRest(self, values)
        t = 0
        while t < len(values):
            if not state.at_rest:
                t, state = off_rest.from_row(t, state)
                continue
            stop = int(breaks[np.searchsorted(breaks, t)])
            first = self._to_modes(state.mean)  # complete rows: m_{t+1} = a m_t + input_t, one filter a mode
            later = first_order(self.steady.closed_loop, inputs[:, t:stop], first)
            predicted = np.hstack([first[:, None], later])
            at_rest[:, t : stop + 1] = predicted[:, : len(values) - t]
            t, state = stop, KalmanState(self._from_modes(predicted[:, -1]))
            if stop < len(values):
                t, state = off_rest.from_row(stop, state)
        return off_rest.laws(self._from_modes(at_rest.T), self.emitted), state

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the law of each row (T, N) holds, at most: what gaps leave behind lives for some steps."""
        return law_sizes(values, float(np.max(np.abs(self.steady.closed_loop))), self._alone, REST)

    def ahead(self, law: DenseLaw, steps: int, shift: Array, scale: Array) -> Iterator[tuple[slice, WindowLaw]]:
        """Laws of the next rows from those of the next one, in closed form (`jointset.abilities.LooksAhead`)."""
        return windows_ahead(self, law, steps, shift, scale)
