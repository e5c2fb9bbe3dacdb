"""Missing readings filled: what each should have been given those that were read, and an interval around it.

The law announced for a row is conditioned on what was read of it, which gives a mean and a sd for every sensor that is
missing. Its covariance is that of the set. Its mean is told from filled rows: in a long gap that keeps a sensor near
its neighbours instead of at its last value. So there is a second state of the filter, fed with filled rows, kept while
fills are asked for. What makes the sets never sees a filled value.

Intervals are calibrated on readings of the calibration rows that are hidden on purpose, singly and in spells, and
filled in the same way: |error| / sd has a quantile for every length of silence, and every sensor a factor on it.
Where the rule of the sets adapts, one more factor does: every sensor that was read is also told from the others, and
the share of those that lie outside their band moves the factor as ACI moves its level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.abilities import OwnSetting, message_start
from jointset.calibration.any_rule import adapts
from jointset.calibration.quantiles import score_quantile
from jointset.contracts import Array, Forecast
from jointset.errors import InputError
from jointset.laws import AnyLaw
from jointset.panel import Panel
from jointset.predicting.attribution import normal_law
from jointset.predicting.limits import UNLIMITED, Limits
from jointset.predicting.passes import Counting, Progress
from jointset.storage import storable, storable_not_finite

if TYPE_CHECKING:
    import pandas as pd

    from jointset.joint_predictor import JointPredictor

AGES = (1, 2, 4, 10)  # rows of silence at which a class of intervals begins
SPELLS = (*(1,) * 12, 3, 3, 12, 36)  # rows that readings are hidden for, drawn alike
HIDDEN = 0.2  # share of the readings
TOLD = 50  # rows after which progress is told
MOST = 1000  # calibration rows looked at,
NUMBERS = 40_000_000  # fewer where their covariances hold more numbers than this
FEWEST = 30  # hidden readings of a length of silence that give it a quantile of its own
RATE = 0.05  # of the factor that adapts


@storable_not_finite("ages", "sensors", "others")
class FillQuantiles(NamedTuple):
    """Quantiles of |error| / sd of hidden readings at the level of the sets."""

    ages: Array  # (A,) by length of silence, see AGES
    sensors: Array  # (N,) factor of every sensor
    others: Array  # (N,) of sensors that were read, told from the others


@storable
class Filling(NamedTuple):
    """State of the filter fed with filled rows, rows (N,) that sensors have been silent, the factor that adapts."""

    state: object
    silent: Array
    stretch: float = 1.0


class Imputed(NamedTuple):
    """A row with its gaps filled (N,), and the interval of every reading that was missing; what was read has none."""

    values: Array
    lower: Array  # as read where it was read
    upper: Array


@dataclass(frozen=True)
class ImputedRows:
    """Rows (T, N) with their gaps filled, intervals, and which were gaps."""

    values: Array
    lower: Array
    upper: Array
    panel: Panel  # with the gaps

    def table(self) -> pd.DataFrame:
        """One line a gap: time (or row, from 1), sensor, value, lower and upper end."""
        import pandas as pd

        t, i = np.nonzero(~self.panel.mask)
        stamps = self.panel.timestamps
        when: dict[str, Any] = (
            {"row": t + 1} if stamps is None else {"time": pd.to_datetime(stamps[t], unit="s", utc=True)}
        )
        names = np.array(self.panel.sensors, dtype=object)[i]
        cells = {"value": self.values[t, i], "lower": self.lower[t, i], "upper": self.upper[t, i]}
        return pd.DataFrame({**when, "sensor": names, **cells})


def impute_rows(
    predictor: JointPredictor, panel: Panel, limits: Limits = UNLIMITED, progress: Progress | None = None
) -> ImputedRows:
    """The gaps of rows that follow filled one row after the other; the predictor stays where it is."""
    one, filled = predictor.copy(), []
    for t, y in enumerate(panel.values):
        if panel.timestamps is not None:
            one.expect(int(panel.timestamps[t]))
        found = one.impute(y)
        missing = np.isnan(y)
        filled.append([np.where(missing, limits.inside(part), y) for part in found])
        one.update(y)
        if progress is not None:
            progress(1)
    parts: Array = np.array(filled).reshape(len(panel), 3, panel.n_sensors)
    return ImputedRows(parts[:, 0], parts[:, 1], parts[:, 2], panel)


def start_filling(predictor: JointPredictor) -> Filling:
    """From where the predictor stands."""
    return Filling(predictor.filter_state, np.zeros(len(predictor.sensors), dtype=np.int64))


def impute_row(predictor: JointPredictor, quantiles: FillQuantiles, filling: Filling, y: Array) -> Imputed:
    """A reading (N,) that may follow, its gaps filled."""
    missing, (mean, sd) = np.isnan(y), _told(_law_of_fills(predictor, predictor._ahead()[0], filling), y)
    age = np.digitize(np.where(missing, filling.silent + 1, 1), AGES) - 1
    reach = quantiles.ages[age] * quantiles.sensors * filling.stretch * sd
    values = np.where(missing, mean, y)
    return Imputed(values, np.where(missing, values - reach, y), np.where(missing, values + reach, y))


def filling_after(predictor: JointPredictor, law: Forecast, filling: Filling, y: Array) -> Filling:
    """The state of filling after a reading (N,), for which this law was announced."""
    missing, stretch, quantiles = np.isnan(y), filling.stretch, predictor.fill_quantiles
    of_fills = _law_of_fills(predictor, law, filling)
    if quantiles is not None and adapts(predictor.calibration) and not missing.all():
        outside = np.sqrt(of_fills.contributions(y))[~missing] > stretch * quantiles.others[~missing]
        stretch *= math.exp(RATE * (float(outside.mean()) - predictor.alpha))
    filled = np.where(missing, _told(of_fills, y)[0], y)
    state = predictor.filter.step(filling.state, (filled - predictor.shift) / predictor.scale)
    return Filling(state, np.where(missing, filling.silent + 1, 0), stretch)


def _law_of_fills(predictor: JointPredictor, law: Forecast, filling: Filling) -> AnyLaw:
    """The law with the mean told from filled rows. The last is kept: a row is filled, and then taken in."""
    known = predictor.__dict__.get("_law_of_fills", (None, None, None))
    if known[0] is law and known[1] is filling:
        return known[2]
    normal = normal_law(law)
    if normal is None:
        raise InputError(
            f"{message_start(predictor.filter)}the method has no covariance to tell one sensor from others"
        )
    mean = predictor.shift + predictor.scale * predictor.filter.law(filling.state).mean
    made = replace(normal, mean=mean)
    predictor.__dict__["_law_of_fills"] = (law, filling, made)
    return made


def _told(law: AnyLaw, y: Array) -> tuple[Array, Array]:
    """Mean and sd (N,) of what is missing given what was read; 0 and NaN elsewhere."""
    missing, mean, sd = np.isnan(y), np.zeros(len(y)), np.full(len(y), np.nan)
    if missing.any():
        given = law if missing.all() else law.condition(~missing, y[~missing])
        mean[missing], sd[missing] = given.mean, np.sqrt(given.variance)
    return mean, sd


# ---------------------------------------------------------------------- calibration


def fill_quantiles(predictor: JointPredictor, panel: Panel, counting: Counting | None = None) -> FillQuantiles:
    """Quantiles from the last rows of a calibration panel, some of their readings hidden; the predictor stays."""
    n, filter_ = panel.n_sensors, predictor.filter
    kept = panel[-(predictor.warmup + int(np.clip(NUMBERS / n**2, 60, MOST))) :]
    values, warmup = kept.values, min(predictor.warmup, len(kept) // 2)
    hidden = _hidden(values.shape, np.random.default_rng(0)) & ~np.isnan(values)
    hidden[:warmup] = False
    one = predictor.copy()
    one.fill_quantiles = one.horizon = None
    if not isinstance(filter_, OwnSetting):  # its sets begin with calibration rows
        one.moved_to(filter_.start(), one.calibration_state, kept)
    one.filling = start_filling(one)
    ratios, ages, others = np.full(values.shape, np.nan), np.ones(values.shape, int), np.full(values.shape, np.nan)
    more = None if counting is None else counting(len(kept))
    for t, y in enumerate(np.where(hidden, np.nan, values)):
        if more is not None and t and t % TOLD == 0:
            more(TOLD)
        if kept.timestamps is not None:
            one.expect(int(kept.timestamps[t]))
        if t >= warmup:
            law = _law_of_fills(one, one._ahead()[0], one.filling)
            mean, sd = _told(law, y)
            ratios[t] = np.abs(values[t] - mean) / sd
            others[t] = np.where(np.isnan(y), np.nan, np.sqrt(law.contributions(y)))
            ages[t] = one.filling.silent + 1
        one.update(y)
    return _quantiles(np.where(hidden, ratios, np.nan), np.digitize(ages, AGES) - 1, others, predictor.alpha)


def _quantiles(ratios: Array, ages: Array, others: Array, alpha: float) -> FillQuantiles:
    """From ratios (T, N) of hidden readings, NaN elsewhere, their classes of silence, and the ratios of those read.

    A sensor's factor is told by the readings it has, which are many; lengths of silence by the hidden ones of all.
    """
    of_sensors = np.array([_quantile(column[~np.isnan(column)], alpha) for column in others.T])
    typical = _quantile(others[~np.isnan(others)], alpha)
    factors = np.where(np.isfinite(of_sensors) & (of_sensors > 0), of_sensors / typical, 1.0)
    known, relative = ~np.isnan(ratios), ratios / factors
    every = _quantile(relative[known], alpha)
    of_age = [relative[known & (ages == k)] for k in range(len(AGES))]
    by_age = np.array([_quantile(some, alpha) if len(some) >= FEWEST else every for some in of_age])
    return FillQuantiles(by_age, factors, of_sensors)


def _quantile(ratios: Array, alpha: float) -> float:
    return float(score_quantile(np.sort(ratios), alpha))


def _hidden(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Which readings (T, N) to hide: spells of every sensor, in so many rows as make up the share."""
    rows, n = shape
    between = float(np.mean(SPELLS)) * (1.0 - HIDDEN) / HIDDEN  # rows from the end of a spell to the next, on average
    out = np.zeros(shape, dtype=bool)
    for i in range(n):
        t = int(rng.geometric(1.0 / between))
        while t < rows:
            length = int(rng.choice(SPELLS))
            out[t : t + length, i] = True
            t += length + int(rng.geometric(1.0 / between))
    return out
