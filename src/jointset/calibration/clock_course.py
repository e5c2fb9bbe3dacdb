"""The course of scores over day and week: log quantiles by the clock, shrunk as far as chance explains them.

At a node of the day the (1 - alpha) quantile q of the log scores around it is taken, rows the nearer the more (WIDTH
hours to either side); on a weekday that of its rows. Rows of one date go together, so the variance of q is

    v = sum over dates (sum of w (1{x > q} - alpha))^2 / (sum of w)^2 / density^2,

and what differs by the clock beyond chance has the variance tau^2 = mean (q - mean q)^2 - mean v, at least 0. A node
keeps tau^2 / (tau^2 + v) of its distance from the quantile of all; with the mean of v that says how certain all are.

Where a node expects fewer than FEW scores above its quantile, q is next to its largest score and v tells nothing: it is
then at least that of independent rows, alpha (1 - alpha) sum w^2 / (sum of w)^2 / density^2, with a density no higher
than that of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.calibration.quantiles import least_telling, order_statistic
from jointset.contracts import Array

DAY = 86_400
NODES = 48  # of the day, half an hour apart
WIDTH = 1.0  # hours to either side of a node that tell about it; both chosen on validation blocks
DAYS, WEEKS = 5, 4  # dates and weeks that a course over the day, and over the week, needs
THURSDAY = 3  # 1970-01-01, counted from Monday
LEAST = -50.0  # log of a score of 0
FEW = 5.0  # scores above its quantile that a node expects, below which they do not tell how uncertain it is
CLOSE = 0.05  # of probability to either side, between which the density is read off


class ClockCourse(NamedTuple):
    """Log multipliers of the nodes, of the weekdays (none where weeks are few), and the spread of what is left.

    `certain` is the share of what differs over the day, 0 to 1, that chance does not explain.
    """

    day: tuple[float, ...]
    week: tuple[float, ...]
    spread: float
    certain: float


def course_of(scores: Array, times: Array, alpha: float) -> ClockCourse:
    """The course of scores (m,) at times (m,), epoch seconds."""
    x, times = np.full(len(scores), LEAST), np.asarray(times)
    np.log(scores, out=x, where=np.isfinite(scores) & (scores > 0.0))
    x = np.clip(np.where(np.isposinf(scores), x.max(initial=LEAST), x), LEAST, -LEAST)
    tells = x >= least_telling(x, alpha, LEAST)
    x, times = x[tells], times[tells]  # a score of nothing beside the others says nothing (`auto`)
    dates = np.unique(times // DAY, return_inverse=True)[1]
    day, week, certain = np.zeros(NODES), np.zeros(0), 0.0
    if len(np.unique(dates)) >= DAYS:
        day, certain = shrunk_quantiles(x, around_nodes(times), dates, alpha)
    left = x - at_nodes(day, times)
    if times[-1] - times[0] >= WEEKS * 7 * DAY:
        week, _ = shrunk_quantiles(left, (weekday(times)[:, None] == np.arange(7)).astype(float), dates, alpha)
        left = left - week[weekday(times)]
    ordered = np.sort(left)
    spread = order_statistic(ordered, 1.0 - alpha / 2.0) - order_statistic(ordered, (1.0 - alpha) / 2.0)
    return ClockCourse(tuple(day.tolist()), tuple(week.tolist()), max(spread, 0.01), certain)


def weekday(times: Any) -> Any:
    """Weekday of times, 0 = Monday."""
    return (times // DAY + THURSDAY) % 7


def around_nodes(times: Array) -> Array:
    """Weights (m, NODES) of rows around every node, falling to 0 at WIDTH hours."""
    away = np.abs(times[:, None] % DAY / DAY - np.arange(NODES) / NODES)
    return np.maximum(1.0 - 24.0 * np.minimum(away, 1.0 - away) / WIDTH, 0.0)


def at_nodes(day: Array, times: Array) -> Array:
    """Values of a course over the day at times (m,)."""
    return np.interp(times % DAY * NODES / DAY, np.arange(NODES + 1), np.append(day, day[0]))


def shrunk_quantiles(x: Array, weights: Array, dates: Array, alpha: float) -> tuple[Array, float]:
    """Quantiles (G,) of values (m,) under weights (m, G), less that of all, shrunk to 0 as far as chance explains.

    With them comes the share of their variance that it does not.
    """
    order = np.argsort(x, kind="stable")
    ordered, sums = x[order], np.cumsum(weights[order], axis=0)
    total, known = sums[-1], sums[-1] > 0.0

    def quantile(p: float) -> Array:
        places = (sums < p * total).sum(axis=0)
        return ordered[np.minimum(places, len(x) - 1)]

    found = np.where(known, quantile(1.0 - alpha), order_statistic(ordered, 1.0 - alpha))
    close = min(CLOSE, alpha / 2.0, (1.0 - alpha) / 2.0)
    slope = np.maximum((quantile(1.0 - alpha + close) - quantile(1.0 - alpha - close)) / (2.0 * close), 1e-3)
    over = weights * ((x[:, None] > found) - alpha)
    by_date = np.zeros((dates.max() + 1, weights.shape[1]))
    np.add.at(by_date, dates, over)
    off, squares = np.sum(by_date**2, axis=0), np.sum(weights**2, axis=0)
    few = alpha * total**2 < FEW * squares
    upper, lower = (order_statistic(ordered, 1.0 - alpha + side) for side in (close, -close))
    slope = np.where(few, np.maximum(slope, (upper - lower) / (2.0 * close)), slope)
    off = np.where(few, np.maximum(off, alpha * (1.0 - alpha) * squares), off)
    chance = off[known] / total[known] ** 2 * slope[known] ** 2
    beyond = max(float(np.var(found[known]) - chance.mean()), 0.0)
    kept = np.zeros(weights.shape[1])
    if beyond > 0.0:
        kept[known] = beyond / (beyond + chance)
    return kept * (found - order_statistic(ordered, 1.0 - alpha)), beyond / (beyond + float(chance.mean()) + 1e-300)
