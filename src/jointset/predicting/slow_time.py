"""How far a mean of hits may be off where what they share moves slowly: their spectrum at its low end.

Hits are mostly noise, and a slow change of the spread of scores hides in it: autocorrelations of 0.03 that last for 200
steps make the integrated time 13, and a window chosen from the hits themselves ends long before. At periods of 20 steps
and more what is quick is flat, and the slow part stands out; in the ranks of the scores more clearly than in the hits.
So there both are taken for a flat spectrum and a share a of an autoregression with coefficient rho,

    f(w) = s (1 - a + a (1 - rho^2) / (1 - 2 rho cos w + rho^2)),    tau = f(0),

on a grid of a and rho, s at its best for each; without a slow part (a = 0) is as likely at first as with one. Whittle's
likelihood of the ranks weighs rho, that of the hits a; the mean of m hits is off by sqrt(tau / m) of each pair with its
weight, and the half-width is that of this mixture of normal laws. Where the series is too short to tell, it is wide.
"""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array

SHARES = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 0.95])  # a
NONE = 0.5  # weight of a = 0 before any score is seen
COEFFICIENTS = 10  # values of rho, of 1 - rho from
QUICKEST, SLOWEST = 0.6, 2.0  # this to that over m
PERIOD = 20  # steps of the shortest period that is looked at
FEWEST, MOST = 12, 2000  # periods that are looked at, at least and most


def slow_time(hits: Array, ranks: Array, errors: float) -> float:
    """The integrated time (at least 1) whose normal half-width of so many standard errors is that of the mixture.

    >>> rng = np.random.default_rng(0)
    >>> spread = np.repeat(rng.normal(size=30), 100)  # changes every 100 steps
    >>> scores = rng.chisquare(10, 3000) * np.exp(0.2 * spread)
    >>> round(slow_time((scores < 15.0).astype(float), scores.argsort().argsort().astype(float), 1.645))
    19
    """
    if np.ptp(hits) == 0.0 or np.ptp(ranks) == 0.0 or len(hits) < 2 * FEWEST + 2:
        return 1.0
    rho = 1.0 - np.geomspace(QUICKEST, SLOWEST / len(hits), COEFFICIENTS)
    before = np.append(NONE, np.full(len(SHARES) - 1, (1.0 - NONE) / (len(SHARES) - 1)))
    (own, level), (likely, _) = (_likelihood(x, rho) for x in (hits, ranks))
    weight = own * before * (likely @ before)[:, None]
    spread = np.sqrt(level * (1.0 - SHARES + SHARES * ((1.0 + rho) / (1.0 - rho))[:, None]))
    half = _half_width(weight.ravel() / weight.sum(), spread.ravel(), errors)
    return max((half / errors) ** 2, 1.0)


def _likelihood(x: Array, rho: Array) -> tuple[Array, Array]:
    """Whittle's likelihood (R, A) of a series (m,) at every rho and share, the largest 1, and s of each."""
    x, m = (x - x.mean()) / x.std(), len(x)
    count = int(np.clip(m / PERIOD, FEWEST, MOST))
    power = np.abs(np.fft.rfft(x)[1 : count + 1]) ** 2 / m
    waves = np.cos(2.0 * np.pi * np.arange(1, count + 1) / m)
    slow = (1.0 - rho**2)[:, None] / (1.0 - 2.0 * rho[:, None] * waves + (rho**2)[:, None])
    f = (1.0 - SHARES)[:, None] + SHARES[:, None] * slow[:, None, :]
    level = np.maximum((power / f).mean(-1), 1e-12)
    logs = -(count * np.log(level) + np.log(f).sum(-1))
    return np.exp(logs - logs.max()), level


def _half_width(weights: Array, spreads: Array, errors: float) -> float:
    """What a mixture of centred normal laws exceeds as seldom, either side, as one normal law `errors` of its sd."""
    from scipy.special import ndtr  # here, so that importing jointset stays fast

    low, high, outside = 0.0, errors * float(spreads.max()), 2.0 * float(ndtr(-errors))
    for _ in range(50):
        middle = 0.5 * (low + high)
        beyond = float(weights @ (2.0 * ndtr(-middle / spreads)))
        low, high = (middle, high) if beyond > outside else (low, middle)
    return high
