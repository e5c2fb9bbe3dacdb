"""Audits of memory, each as a record: contraction, observability, forgetting of scores, dependence of hits, theory."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointset.audits import verdicts
from jointset.audits.contraction import Decay
from jointset.audits.records import Record, curve, listed
from jointset.audits.subject import Subject
from jointset.contracts import Array, Filter
from jointset.filters import GraphLGSSM

HORIZON = 50  # steps of rho_tr, rho_M0 and of the Jacobian product, as in the paper
SMALL = 0.01  # share of the first effect below which it counts as forgotten
DRAWN = 100  # steps of a decay that are drawn


def _decay(x: Array, y: Array, label: str, se: Array | None = None) -> Record:
    """A decay curve on a logarithmic axis, cut where nothing is left."""
    kept = np.flatnonzero(np.asarray(y) > 0)[:DRAWN]
    drawn = curve(np.asarray(x)[kept], np.asarray(y)[kept], label, None if se is None else np.asarray(se)[kept])
    return {**drawn, "scale": "log", "xlabel": "step"}


def _forgotten(distance: Array) -> float:
    """The step from which on a distance (T,) stays below 1 % of the first one; NaN where it does not."""
    above = np.flatnonzero(np.asarray(distance) > SMALL * distance[0])
    last = int(above[-1]) if len(above) else -1
    return float(last + 1) if last + 1 < len(distance) else float("nan")


def rho_dG(subject: Subject) -> Record:
    """Bures-Wasserstein decay of the emitted laws of coupled pairs."""
    found = subject.contraction
    record = _pairs(subject, "rho_dG", found.rho_dG, found.distances, "the effect of a wrong state on the law")
    drawn = _decay(found.steps, found.mean, "distance of the emitted laws", found.error)
    return record | {"floor_share": found.floor_share, "fitted_share": found.fitted_share, "curve": drawn}


def rho_DL(subject: Subject) -> Record:
    """Decay of the finite-horizon distance of coupled pairs."""
    from jointset.audits.contraction import finite_horizon

    found = subject.contraction
    distances = finite_horizon(found.distances)
    record = _pairs(subject, "rho_DL", found.rho_DL, distances, "the effect of a wrong state over the next ten laws")
    drawn = _decay(np.arange(distances.shape[1]), distances.mean(axis=0), "finite-horizon distance")
    return record | {"curve": drawn}


def _pairs(subject: Subject, name: str, decay: Decay, distances: Array, what: str) -> Record:
    """Numbers and verdict of coupled pairs (K, T).

    The linear filter decays at one rate in the end, which the later half of the window shows (sigma_1). A learned one
    decays at a rate that changes with the readings: the mean over the pairs and the whole window, as in the paper.
    """
    late = decay.late.rate if subject.is_linear else float("nan")
    value = late if np.isfinite(late) else decay.rate
    pairs, steps = distances.shape
    apart = int(np.sum(distances[:, -1] > SMALL * distances[:, 0]))
    forgotten = _forgotten(distances.mean(axis=0))
    return {
        "value": value,
        "window_rate": decay.rate,
        "late_rate": decay.late.rate,
        "standard_error": decay.standard_error,
        "forgotten_after": forgotten,
        "pairs": pairs,
        "apart": apart,
        "verdict": verdicts.contraction(name, value, what, forgotten, apart, pairs, steps),
    }


def observability(subject: Subject) -> Record:
    """Percentiles of the finite-horizon observability ratio."""
    from jointset.audits.observability import observability as observed

    found = observed(subject.state_space, subject.values, subject.start, seed=subject.seed)
    levels = [f"p{level}" for level in found.levels.tolist()]
    ratios = np.sort(found.ratios.reshape(-1))
    share = np.linspace(0.0, 1.0, len(ratios))
    every = slice(None, None, max(1, len(ratios) // DRAWN))
    return {
        "value": found.percentile(5),
        **dict(zip(levels, listed(found.percentiles), strict=True)),
        "class": found.verdict,
        "horizon": found.horizon,
        "by_length": {
            f"{length:g}": dict(zip(levels, listed(row), strict=True))
            for length, row in zip(found.lengths, found.by_length, strict=True)
        },
        "curve": curve(ratios[every], share[every], "distribution of the observability ratio"),
        "verdict": verdicts.observability(found.percentile(5), found.percentile(50), found.verdict),
    }


def rho_score(subject: Subject) -> Record:
    """Decay of the distance between the score distributions of coupled copies."""
    from jointset.audits.forgetting import score_forgetting

    filter_ = subject.state_space
    what = "the effect of a wrong state on the score"
    score = None if subject.ellipsoid else subject.predictor.score.score
    found = score_forgetting(filter_, subject.coupled_values, score=score, seed=subject.seed)
    return {
        "value": found.rho,
        "window_rate": found.fixed.rate,
        "free_rate": found.free.rate,
        "window_measurable": found.measurable,
        "floor_share": found.floor_share,
        "copies": found.copies,
        "curve": _decay(found.steps, found.distance, "W1 of the score distributions", found.error),
        "verdict": verdicts.rate("rho_score", found.rho, what, _forgotten(found.distance)),
    }


def sensitivity(subject: Subject) -> Record:
    """The rates of the coupled audits over the paper's grids of settings."""
    from jointset.audits.contraction import sensitivity as over_grid
    from jointset.audits.forgetting import robustness

    laws = over_grid(subject.state_space, subject.coupled_values, seed=subject.seed)
    scores = robustness(subject.state_space, subject.coupled_values, seed=subject.seed)
    moves = [
        float(np.ptp([rate for rate in rates if np.isfinite(rate)] or [np.nan]))
        for rates in ([one.rho_dG for one in laws], [one.rho_DL for one in laws], [one.rho for one in scores])
    ]
    return {
        "value": moves[0],
        **dict(zip(("moves_rho_dG", "moves_rho_DL", "moves_rho_score"), moves, strict=True)),
        "rho_dG": [one._asdict() for one in laws],
        "rho_score": [one._asdict() for one in scores],
        "verdict": verdicts.sensitivity(moves[0], moves[2]),
    }


def rho_ind(subject: Subject) -> Record:
    """Rate of the autocovariance of hits at the radius and 2 % around it."""
    found = subject.dependence
    correlation = found.autocovariance[1] / max(float(found.autocovariance[1, 0]), 1e-300)
    return {
        "value": float(found.rho[1]),
        "rho": listed(found.rho),
        "rho_all_lags": listed(found.rho_all),
        "fitted_lags": listed(found.fitted_lags),
        "thresholds": listed(found.thresholds),
        "absolute_sum": listed(found.absolute_sum),
        "noise": found.noise,
        "curve": {**curve(found.lags, correlation, "autocorrelation of hits"), "xlabel": "lag"},
        "verdict": verdicts.hits(float(found.rho[1]), int(found.fitted_lags[1]), subject.season),
    }


def tau_int(subject: Subject) -> Record:
    """Integrated autocorrelation time of the hits, over 30 lags and over a window chosen from the series."""
    found = subject.dependence
    correlation = found.autocovariance[1, 1:] / max(float(found.autocovariance[1, 0]), 1e-300)
    sums = 1.0 + 2.0 * np.cumsum(correlation)
    return {
        "value": found.time.tau,
        "standard_error": found.time.standard_error,
        "lags": found.time.window,
        "by_threshold": listed(found.tau),
        "automatic": found.automatic.tau,
        "automatic_window": found.automatic.window,
        "season": {name: one._asdict() for name, one in subject.season.items()},
        "curve": {**curve(found.lags[1:], sums, "tau_int over the lags summed"), "xlabel": "lag"},
        "verdict": verdicts.integrated_time(found.time.tau, found.automatic.tau, found.time.window, subject.season),
    }


def m_eff(subject: Subject) -> Record:
    """Effective calibration size in all forms, and the coverage to expect."""
    from jointset.audits.theory import bernstein_interval, chebyshev_interval

    found, alpha = subject.dependence, subject.alpha
    paper, automatic = found.sizes, found.sizes_automatic
    size = float(np.fmin(paper.bernstein, automatic.bernstein))  # the window that sees more dependence counts
    gamma = found.autocovariance[1]
    cheb = chebyshev_interval(alpha, paper.m, gamma[1:], variance=float(gamma[0]))
    return {
        "value": size,
        "m": paper.m,
        "bernstein": paper.bernstein,
        "bernstein_automatic": automatic.bernstein,
        "geometric": paper.geometric,
        "chebyshev": paper.chebyshev,
        "coverage_band": listed(bernstein_interval(alpha, size)) if size > 0 else None,
        "chebyshev_band": listed(cheb),
        "verdict": verdicts.effective_size(paper.m, size, alpha),
    }


def m_sweep(subject: Subject) -> Record:
    """Error of the share of hits against the number of scores it is taken from, and what calibration foresees of it."""
    from jointset.audits.sweeps import size_sweep

    scores, times = np.concatenate([subject.scores, subject.run.score]), subject.dependence
    tau = float(np.fmax(np.fmax(times.time.tau, times.automatic.tau), 1.0))  # as `m_eff` has it
    found = size_sweep(scores, subject.radius, subject.alpha, tau=tau)
    sizes = found.sizes / found.tau_int
    return {
        "value": found.exponent,
        "m": listed(found.sizes),
        "m_eff": listed(sizes),
        "error": listed(found.error),
        "expected": listed(found.expected),
        "bernstein": listed(found.bernstein),
        "within": listed(found.within),
        "ratio": found.ratio,
        "tau_int": found.tau_int,
        "threshold": subject.radius,
        "scores": int((~np.isnan(scores)).sum()),
        "curve": {**_decay(found.sizes, found.error, "error of the share of hits of m scores"), "xlabel": "m"},
        "verdict": verdicts.size_sweep(listed(found.sizes), listed(found.error), found.exponent, found.ratio),
    }


def theory(subject: Subject) -> Record:
    """Closed forms of the linear filter; Jacobian-product rate of a learned one."""
    filter_ = subject.state_space
    return _linear(subject, subject.linear) if subject.is_linear else _learned(subject, filter_)


def _linear(subject: Subject, filter_: GraphLGSSM) -> Record:
    from jointset.audits import theory as closed

    values = subject.coupled_values
    complete = values[~np.isnan(values).any(axis=1)]
    rows = complete if len(complete) >= HORIZON else values  # a sensor that is always missing leaves no complete row
    states = filter_.run(rows, filter_.start())[0].mean[len(rows) // 2 :]  # a cold start is off by these
    M0 = states.T @ states / max(1, len(states))
    modes, basis = filter_.steady.closed_loop, filter_.spectrum[1]
    sigma, trace = closed.sigma_1(modes), closed.rho_tr(modes, HORIZON)
    weighted = closed.rho_m0(modes, HORIZON, M0, basis)
    steps = np.arange(1, HORIZON + 1)
    eigenvalues = np.linalg.eigvalsh(M0)
    return {
        "value": sigma,
        "sigma_1": sigma,
        "rho_tr": trace,
        "rho_M0": weighted,
        "rho_snr": closed.rho_snr(filter_.rho, filter_.steady.prior, filter_.sigma_r**2),
        "gap_rho_M0_rho_tr": abs(weighted - trace),
        "M0_anisotropy": float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0 else None,
        "horizon": HORIZON,
        "no_go_prefactor": closed.no_go_prefactor(sigma, weighted, HORIZON),
        "curve": {
            **curve(steps, [closed.rho_m0(modes, int(t), M0, basis) for t in steps], "rho_M0 over the horizon"),
            "xlabel": "step",
        },
        "verdict": verdicts.theory(sigma, trace, weighted),
    }


def _learned(subject: Subject, filter_: Filter[Any]) -> Record:
    from jointset.audits.theory import jacobian_rms_rate

    rates = jacobian_rms_rate(filter_, subject.coupled_values[:HORIZON], seed=subject.seed)
    steps = np.arange(1, len(rates) + 1)
    left = np.flatnonzero(rates**steps <= SMALL)
    forgotten = float(steps[left[0]]) if len(left) else np.ceil(verdicts.steps_to_forget(float(rates[-1])))
    return {
        "value": float(rates[-1]),
        "rho_M0": float(rates[-1]),
        "rho_M0_max": float(rates.max()),
        "horizon": len(rates),
        "curve": {
            **curve(steps, rates, "Jacobian-product rate over the horizon"),
            "xlabel": "step",
        },
        "verdict": verdicts.rate("rho_M0", float(rates[-1]), "a small error in the state, linearised,", forgotten),
    }
