"""Who is to blame for a score: the shares of the sensors, which add up to it, and the neighbourhoods that moved.

Two questions, two answers. How the score divides is told by shares (`algebra.shares`). Which sensor is to blame is
told by how much of the squared distance goes away when the sensor is left out (`contributions`), and of a neighbourhood
H by how much goes away when its sensors may have moved together, all by one number of their sd:

    drop(H) = (u' P e)^2 / (u' P u),    u the sd of the law on H and 0 elsewhere, P the precision of what was read.

For one sensor by itself that is its contribution. A whole neighbourhood left out lowers the distance the more the more
sensors it has, and p-values for that trust the tails of the law too far: see docs/attribution.md for what was measured.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointset.abilities import NearNormal, TellsOneFromOthers
from jointset.algebra import lowrank
from jointset.algebra.shares import adding_to_one
from jointset.calibration.any_rule import one_score
from jointset.calibration.gap_levels import in_own_units
from jointset.contracts import Array, Forecast
from jointset.inputs.graph_edges import closed_neighbourhoods
from jointset.laws import AnyLaw, DenseLaw, LowRankLaw
from jointset.score_abilities import Dividing, sets_of

if TYPE_CHECKING:
    from jointset.predicting.explaining import Explains


class Neighbourhood(NamedTuple):
    """A sensor and its neighbours, and their part in a score."""

    sensor: str  # at its centre
    sensors: tuple[str, ...]
    drop: float  # of the squared distance, where they may have moved together
    share: float  # of the score: those of all neighbourhoods add up to it


def attribution(predictor: Explains, law: Forecast, y: Array) -> Array:
    """Shares (N,) of the sensors in the score of a reading (N,), which add up to it; 0 where missing."""
    rule, state, score = predictor.calibration, predictor.calibration_state, predictor.score
    scores = np.asarray(score.score(law, y))
    if np.isnan(scores).any():  # nothing was read
        return np.zeros(len(y))
    shares = score.shares(law, y) if isinstance(score, Dividing) else adding_to_one(score.contributions(law, y))
    if scores.ndim:  # the component that decides: each by itself on the scale of the rule
        scores = in_own_units(score, rule, scores)
        alone = one_score(rule, state, np.where(np.eye(len(scores), dtype=bool), scores, 0.0))
        shares, scores = shares[int(alone.argmax())], one_score(rule, state, scores[None])[0]
    return np.where(shares == 0, 0.0, shares * np.where(shares == 0, 0.0, scores))


class Explained(NamedTuple):
    """What a reading (N,) is under a law: `contributions`, `attribution` and `given_others` at once."""

    contributions: Array
    shares: Array
    given: tuple[Array, Array] | None


def explained(predictor: Explains, law: Forecast, y: Array, score: float) -> Explained:
    """All three for a reading of this score; of a squared distance they follow from one solve."""
    if sets_of(predictor.score) != "ellipsoids" or not isinstance(law, (DenseLaw, LowRankLaw)) or math.isnan(score):
        given = law.given_others(y) if isinstance(law, TellsOneFromOthers) else None
        return Explained(predictor.score.contributions(law, y), attribution(predictor, law, y), given)
    missing, e = np.isnan(y), y - law.mean
    gaps = int(np.count_nonzero(missing))
    e = np.where(missing, 0.0, e) if gaps else e
    solved, precision = _precision_terms(law, e, missing, gaps)
    precision = np.where(missing, 1.0, precision) if gaps else precision
    step, shares = solved / precision, adding_to_one(e * solved)
    shares = shares * (score if math.isfinite(score) else np.where(shares == 0, 0.0, score))
    sd = precision**-0.5
    return Explained(solved * step, shares, (y - step, np.where(missing, np.nan, sd) if gaps else sd))


def _precision_terms(law: AnyLaw, e: Array, missing: Array, gaps: int) -> tuple[Array, Array]:
    """P e (N,) and the diagonal of P, P the precision of what was read; 0 in P e where missing, which so many are."""
    if isinstance(law, DenseLaw):
        S = law.covariance
        return (S.observed(missing) if gaps else S).precision_terms(e)
    w, L = np.where(missing, 0.0, 1.0 / law.diagonal), law.factor
    inner = np.linalg.solve(lowrank.capacitance(w, L), L.T) if L.shape[1] else L.T
    return w * (e - L @ (inner @ (w * e))), w - w * w * (L * inner.T).sum(1)


def neighbourhoods(
    predictor: Explains, law: Forecast, y: Array, shares: Array | None = None, count: int | None = None
) -> list[Neighbourhood]:
    """The neighbourhoods with a reading, the one most to blame first, or so many of them.

    None where the method has no covariance.
    """
    normal = normal_law(law)
    if np.isnan(y).all() or normal is None:
        return []
    names, missing, around = predictor.sensors, np.isnan(y), closed_neighbourhoods(predictor.graph, len(y))
    if missing.any():
        around = [(i, places[~missing[places]]) for i, places in around]
        around = [(i, places) for i, places in around if len(places)]
    blocks = [places for _, places in around]
    shares = attribution(predictor, law, y) if shares is None else shares
    parts = shares / np.maximum(np.bincount(np.concatenate(blocks), minlength=len(y)), 1)
    drops = _drops(normal, y, blocks)
    return [
        Neighbourhood(
            names[around[k][0]], tuple(names[j] for j in blocks[k]), float(drops[k]), float(parts[blocks[k]].sum())
        )
        for k in np.argsort(-drops, kind="stable")[:count].tolist()
    ]


def normal_law(forecast: Forecast) -> AnyLaw | None:
    """The normal law of a forecast, or one of the same spread; None where it has no covariance."""
    law = forecast.as_normal() if isinstance(forecast, NearNormal) else forecast
    return law if isinstance(law, (DenseLaw, LowRankLaw)) else None


def _drops(law: AnyLaw, y: Array, blocks: list[Array]) -> Array:
    """(u' P e)^2 / (u' P u) (K,) of blocks of sensors that were read, u their sd, P the precision of what was read."""
    seen = np.flatnonzero(~np.isnan(y))
    part = law.select(seen) if len(seen) < len(y) else law  # a complete row keeps what its law has factorised
    place, e, sd = np.empty(len(y), dtype=int), y[seen] - part.mean, np.sqrt(part.variance)
    place[seen] = np.arange(len(seen))
    at, ends = place[np.concatenate(blocks)], np.cumsum([len(block) for block in blocks])
    u, starts = sd[at], np.concatenate([[0], ends[:-1]])
    if isinstance(part, DenseLaw):
        P = part.covariance.precision
        weighted, pieces = e @ P, [slice(a, b) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        bent = np.array([u[one] @ P[at[one][:, None], at[one]] @ u[one] for one in pieces])
    else:  # u' P u by Woodbury: nothing of size N x N
        w, L = 1.0 / part.diagonal, part.factor
        left, weighted = w[:, None] * L, lowrank.solve(e, w, L)
        inner = np.linalg.solve(lowrank.capacitance(w, L), left.T).T
        ways = [np.add.reduceat(u[:, None] * matrix[at], starts) for matrix in (left, inner)]
        bent = np.add.reduceat(w[at] * u * u, starts) - (ways[0] * ways[1]).sum(axis=1)
    return np.asarray(np.add.reduceat(u * weighted[at], starts) ** 2 / bent)
