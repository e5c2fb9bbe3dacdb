"""One pass through rows with sets for the next H steps: windows scored in whole arrays, radii moved row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointset.abilities import Spread
from jointset.algebra.window_laws import WindowLaw
from jointset.calibration.pool import ScorePool
from jointset.contracts import Array, Forecast, Region
from jointset.errors import require
from jointset.horizons.direct import fill_from
from jointset.horizons.horizon import Announced, Centred, Horizon, radii_at
from jointset.horizons.sets_ahead import AheadSets, sets_ahead
from jointset.panel import Panel
from jointset.predicting.passes import Laws, Progress, run_together
from jointset.support.how_far import in_rows, listening

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor
    from jointset.runs import Run
    from jointset.score_abilities import OfOneLaw


@dataclass(frozen=True)
class AheadRun:
    """What became of the windows that began with each of T rows; the last column of all arrays is all steps together.

    Scores are NaN where nothing was read, or the rows end before the outcome is known.
    """

    score: Array  # (T, H + 1)
    radius: Array  # (T, H + 1)
    log_volume: Array  # (T, H + 1), a reading
    error: Array  # (T, H): root mean squared error over the sensors

    @property
    def steps(self) -> int:
        """H."""
        return self.score.shape[1] - 1

    @property
    def coverage(self) -> Array:
        """Share of the windows inside (H + 1,), among those with an outcome."""
        known = ~np.isnan(self.score)
        inside = (self.score <= self.radius) & known
        return np.where(known.any(axis=0), inside.sum(axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)

    def summary(self) -> list[dict[str, Any]]:
        """A row for each step and one for all together: coverage, log-volume a reading, error."""
        size, errors = self.log_volume.mean(axis=0), np.sqrt(np.nanmean(self.error**2, axis=0))
        names: list[Any] = [*range(1, self.steps + 1), "together"]
        return [
            {
                "step": name,
                "joint": float(self.coverage[h]),
                "log_volume": float(size[h]),
                "rmse": float(errors[h] if h < self.steps else np.sqrt(np.mean(errors**2))),
            }
            for h, name in enumerate(names)
        ]


class AheadPass:
    """The windows of a predictor's horizon through the rows of a panel, fed with the laws of these rows in order."""

    def __init__(
        self, predictor: JointPredictor, horizon: Horizon, values: Array, times: Array | None, calibrating: bool = False
    ):
        self.predictor, self.horizon, self.values = predictor, horizon, np.asarray(values, dtype=float)
        measured = calibrating and bool(np.isnan(self.values).any())
        self.method = "measure" if measured else "score"
        rows, H = len(values), horizon.steps
        clock = horizon.clock + horizon.cadence * np.arange(rows)
        self.times = clock if times is None else np.asarray(times)
        self.old = len(horizon.windows)  # windows under way; rows since the first of them come before these
        self.rows = np.concatenate([horizon.rows, self.values])
        self.scores = np.full((len(self.rows), H + 1, *((3,) if measured else ())), np.nan)
        self.volumes, self.errors = np.full((rows, H + 1), np.nan), np.full((rows, H), np.nan)
        self.ratios = np.full((rows, H, self.values.shape[1]) if calibrating else (0,), np.nan)
        self.before, self.done = horizon.before, 0
        self.open = len(self.rows) - H + 1  # place of the first window whose outcome these rows leave open
        self.kept = {place: one.law for place, one in enumerate(horizon.windows) if place >= self.open}
        for place, one in enumerate(horizon.windows):
            self._score(one.law[None].with_steps(), place, from_row=self.old)

    def listening(self, laws: Laws) -> Iterator[tuple[Forecast, Array, object]]:
        """The blocks of laws as they are, seen on their way."""
        for law, rows, after in laws:
            self.see(law)
            yield law, rows, after

    def see(self, law: Centred) -> None:
        """Score the windows that begin with the next rows, from the laws of these rows (T, N)."""
        first, count = self.done, len(law.mean)
        filled = fill_from(self.values[first : first + count], law.mean)
        past = np.concatenate([self.before[::-1], filled])
        before = np.stack([past[1:-1], past[:-2]], axis=1)
        for at, window in self.horizon.laws(self.predictor, law, before, self.times[first : first + count]):
            place = self.old + first + at
            laws = window.with_steps()
            (self._spreads if len(self.ratios) else self._sizes)(laws, first + at)
            self._score(laws, place)
            late = range(max(0, self.open - place), len(window))
            self.kept |= {place + i: _copied(window[i]) for i in late}
        self.before, self.done = past[:-3:-1].copy(), first + count

    def _score(self, laws: tuple[WindowLaw, ...], place: int, from_row: int = 0) -> None:
        """Scores of windows that begin at a place of the rows, of the steps that these rows have."""
        H, n, rows, count = self.horizon.steps, self.rows.shape[1], self.rows, len(laws[-1])
        for h in range(max(0, from_row - place), H):
            self._put(h, laws[h], place, rows[place + h : place + h + count])
        whole = min(count, self.open - place)
        if whole > 0:
            y = np.stack([rows[place + h : place + h + whole] for h in range(H)], axis=1)
            self._put(H, laws[H], place, y.reshape(whole, H * n))

    def _put(self, h: int, law: WindowLaw, place: int, y: Array) -> None:
        if len(y):
            law = law if len(y) == len(law) else law[: len(y)]
            self.scores[place : place + len(y), h] = getattr(self.horizon.scores[h], self.method)(law, y)

    def _sizes(self, laws: tuple[WindowLaw, ...], row: int) -> None:
        """Log-volumes at radius 1, and errors."""
        own = slice(row, row + len(laws[-1]))
        for h, (score, law) in enumerate(zip(self.horizon.scores, laws, strict=True)):
            self.volumes[own, h] = score.region(law, 1.0).log_volume
        for h, law in enumerate(laws[:-1]):
            y = self.values[row + h : row + h + len(law)]
            squares = (y - law.mean[: len(y)]) ** 2
            seen = ~np.isnan(squares)
            mean = np.where(seen, squares, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
            self.errors[row : row + len(y), h] = np.where(seen.any(axis=1), np.sqrt(mean), np.nan)

    def _spreads(self, laws: tuple[WindowLaw, ...], row: int) -> None:
        """Errors of every sensor in standard deviations."""
        for h, law in enumerate(laws[:-1]):
            y = self.values[row + h : row + h + len(law)]
            ratios = np.abs(y - law.mean[: len(y)]) / np.sqrt(law.variance[: len(y)])
            self.ratios[row : row + len(y), h] = ratios

    def finish(self) -> tuple[AheadRun, Horizon]:
        """The run, and the horizon after the last row."""
        horizon, H, old = self.horizon, self.horizon.steps, self.old
        radii, levels, pools = self._radii()
        under_way = tuple(Announced(law, radii[place].copy()) for place, law in self.kept.items())
        ended = slice(max(0, old - H + 1), max(0, self.open))
        known = self.scores[ended, H]
        after = replace(
            horizon,
            levels=levels,
            pools=pools,
            before=self.before,
            clock=int(self.times[-1]) + horizon.cadence if len(self.values) else horizon.clock,
            windows=under_way,
            rows=self.rows[len(self.rows) - len(under_way) :].copy(),
            watch=horizon.watch and horizon.watch.run(known, known <= radii[ended, H]),
        )
        radius = radii[old:]
        with np.errstate(divide="ignore"):
            growth = np.log(np.maximum(radius, 0.0))
        volumes = self.volumes + cast("OfOneLaw", horizon.scores[0]).power * growth
        return AheadRun(self.scores[old:], radius, volumes, self.errors), after

    def _radii(self) -> tuple[Array, Array, tuple[ScorePool, ...]]:
        """Radii of all windows (P + T, H + 1) as they were announced, and what the rule stands at after the last row.

        With every row a window begins, and for each set the outcome of one window becomes known.
        """
        horizon, rule, late = self.horizon, self.horizon.rule, self.horizon.lateness
        radii, levels, pools = np.full(self.scores.shape, np.nan), horizon.levels.copy(), list(horizon.pools)
        for place, one in enumerate(horizon.windows):
            radii[place] = one.radii
        if not rule.gamma:
            radii[self.old :] = horizon.radii()
            return radii, levels, horizon.pools
        for row in range(self.old, len(self.rows)):
            radii[row] = radii_at(rule, pools, levels, late)
            for h, steps in enumerate(late):
                begun = row + 1 - steps
                score = float(self.scores[begun, h]) if begun >= 0 else math.nan
                if not math.isnan(score):
                    levels[h] = rule.moved(float(levels[h]), score > radii[begun, h])
                    pools[h] = rule.grown(pools[h], score)
        return radii, levels, tuple(pools)


def _copied(window: WindowLaw) -> WindowLaw:
    """A window by itself, not a view of many."""
    return window.around(window.center.copy(), np.array(window.scale))


def predicted_ahead(predictor: JointPredictor, law: Forecast, region: Region, steps: int) -> AheadSets:
    """Sets of the next `steps` rows, from the law and the set of the next one: that very set where it is all."""
    if steps == 1:
        return sets_ahead((region, region), predictor.sensors)
    horizon = predictor.horizon
    known = "without a horizon" if horizon is None else f"for a horizon of {horizon.steps}, not {steps}"
    advice = f"calibrate(panel, horizon={steps}), or jointset fit --horizon {steps}"
    require(horizon is not None and horizon.steps == steps, f"the model was calibrated {known}: {advice}")
    assert horizon is not None
    window = horizon.next_law(predictor, law)
    own = None if horizon.own is None else horizon.own * np.sqrt(window.variance).reshape(horizon.own.shape)
    return sets_ahead(horizon.regions(window), predictor.sensors, own)


def stepped(predictor: JointPredictor, horizon: Horizon, law: Forecast, y: Array) -> Horizon:
    """The horizon after one more row (N,), from the law that was emitted for it."""
    walk = AheadPass(predictor, horizon, y[None], None)
    walk.see(_SpreadRow(law, law.variance) if isinstance(law, Spread) else _Row(law))
    return walk.finish()[1]


def run_through(
    predictors: Sequence[JointPredictor], panel: Panel, laws: Laws, regions: bool, progress: Progress | None
) -> list[tuple[Run, float]]:
    """Runs of predictors that differ in their rule only; those with a horizon have one of the steps ahead too."""
    walks = {}
    for i, one in enumerate(predictors):
        if one.horizon is not None:
            walks[i] = AheadPass(one, one.horizon, panel.values, panel.timestamps)
            laws = walks[i].listening(laws)
    with listening(in_rows(progress, len(panel))):
        runs = run_together(predictors, panel, laws, regions)
    for i, walk in walks.items():
        ahead, predictors[i].horizon = walk.finish()
        runs[i] = (replace(runs[i][0], ahead=ahead), runs[i][1])
    return runs


class _Row:
    """A law of one row (N,) with a leading axis, for what is asked of laws here."""

    def __init__(self, law: Forecast) -> None:
        self.mean = np.asarray(law.mean)[None]
        if hasattr(law, "covariance"):
            self.covariance = law.covariance


class _SpreadRow(_Row):
    """The same of a law with variances: a class of its own, as abilities are asked of classes, once."""

    def __init__(self, law: Forecast, variance: Array) -> None:
        super().__init__(law)
        self.variance = np.asarray(variance)[None]
