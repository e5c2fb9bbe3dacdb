"""A horizon for a fitted predictor: its law from training rows, its radii from the windows of calibration rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.abilities import LooksAhead, OwnSetting, message_start
from jointset.algebra.partial import GapScale
from jointset.calibration.late import windows_needed
from jointset.calibration.own_bands import own_quantiles
from jointset.contracts import Array, MeanModel, Score
from jointset.errors import InputError, require
from jointset.horizons.direct import Seen, learn_direct
from jointset.horizons.horizon import Centred, Horizon, variances_of
from jointset.horizons.passes_ahead import AheadPass
from jointset.panel import Panel
from jointset.predicting.calibrating import calibrate_next, late_rule
from jointset.predicting.passes import Progress, laws_of
from jointset.score_abilities import sets_of
from jointset.scores import Mahalanobis, MaxStudentised
from jointset.support.how_far import in_rows, listening, part
from jointset.trust import start_watch

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

LONGEST = 1000  # steps ahead
ROWS = (3_000, 20_000)  # training rows that the law is learned on: at least, and at most
READINGS = 1_000_000  # in them, in between


@dataclass(frozen=True)
class _MeansOnly:
    """What a method without laws says of rows: their means (T, N)."""

    mean: Array


def require_horizon(steps: int) -> None:
    """Refuse a number of steps that is no horizon."""
    require(1 <= steps <= LONGEST, f"a horizon must be 1 to {LONGEST} steps, got {steps}")


def calibrate(predictor: JointPredictor, panel: Panel, steps: int, progress: Progress | None) -> Horizon | None:
    """Take a predictor through its calibration rows; the horizon is that of so many steps, None of one."""
    with listening(in_rows(progress, len(panel))):
        with part(1, 1 if steps == 1 else 2):
            calibrate_next(predictor, panel)
        if steps == 1:
            return None
        with part(2, 2):
            return horizon_for(predictor, panel, steps)


def horizon_for(predictor: JointPredictor, panel: Panel, steps: int) -> Horizon:
    """The horizon of a fitted predictor, its radii from calibration rows; it stands where these end.

    The law is learned on the last training rows. Where these are not at hand, in a model that was loaded, the first
    half of the calibration rows takes their place.
    """
    require_horizon(steps)
    model, training = None, predictor.trained_on
    if not isinstance(predictor.filter, LooksAhead):
        if training is None:
            training, panel = panel[: len(panel) // 2], panel[len(panel) // 2 :]
        rows = int(np.clip(READINGS // panel.n_sensors, *ROWS))
        model = learn_direct(_seen(predictor, training[-rows:]), steps, predictor.warmup)
    level = GapScale(1.0 - predictor.alpha)
    shape = MaxStudentised(level) if sets_of(predictor.score) == "boxes" else Mahalanobis(level)
    rule = late_rule(predictor.calibration)
    cadence = panel.cadence or 0
    start = 0 if panel.timestamps is None else int(panel.timestamps[0])
    empty = Horizon(
        steps=steps,
        model=model,
        rule=rule,
        scores=(shape,) * (steps + 1),
        pools=(),
        levels=np.full(steps + 1, rule.alpha),
        before=np.tile(predictor.shift, (2, 1)),
        clock=start,
        cadence=cadence,
        windows=(),
        rows=np.empty((0, panel.n_sensors)),
    )
    return _calibrated(predictor, empty, panel)


def _calibrated(predictor: JointPredictor, empty: Horizon, panel: Panel) -> Horizon:
    """The horizon with pools and gap scales from the windows of calibration rows."""
    gaps = bool(np.isnan(panel.values).any())
    walk = AheadPass(predictor, empty, panel.values, panel.timestamps, calibrating=True)
    for law in _laws(predictor, panel):
        walk.see(law)
    scores, pools, series = [], [], np.empty(0)
    for h, late in enumerate(empty.lateness):
        found, score = walk.scores[predictor.warmup - 1 :, h], empty.scores[h]
        series = _series(score, found, gaps)
        needed = windows_needed(predictor.alpha, late)
        require(
            len(series) >= needed,
            f"{message_start(predictor.filter)}{len(series)} calibration windows of {late} steps (of {len(panel)} "
            f"rows, warm-up {predictor.warmup}) are too few for alpha={predictor.alpha}: at least {needed} are needed; "
            "calibrate on more rows, or choose a shorter horizon",
        )
        radius = empty.rule.radius(empty.rule.start(series), predictor.alpha, late)
        scores.append(score.with_gaps(GapScale(1.0 - predictor.alpha, radius)))
        series = _series(scores[-1], found, gaps)  # of rows with gaps they stay at the radius, and move beside it
        pools.append(empty.rule.start(series))
    watch = start_watch(series, radius, 1.0 - predictor.alpha if empty.rule.gamma else None)
    ratios = walk.ratios[predictor.warmup - 1 :]
    own = np.stack([own_quantiles(ratios[: len(ratios) - h, h], predictor.alpha) for h in range(empty.steps)])
    known = {"scores": tuple(scores), "pools": tuple(pools), "watch": watch, "own": own}
    clock = empty.clock if panel.timestamps is None else int(panel.timestamps[-1]) + empty.cadence
    return Horizon(**{**vars(empty), **known, "before": walk.before, "clock": clock})


def _series(score: Score[Any], found: Array, measured: bool) -> Array:
    """Scores of windows in time order, those without an outcome left out."""
    series = score.place(found) if measured else found
    return series[~np.isnan(series)]


def _seen(predictor: JointPredictor, panel: Panel) -> Seen:
    """Means and variances of the rows of a panel, each before it was read, from a fresh state."""
    laws = list(_laws(predictor, panel))
    spreads = [variances_of(law) for law in laws]
    known = all(one is not None for one in spreads)
    means = np.concatenate([np.asarray(law.mean) for law in laws])
    return Seen(panel, means, np.concatenate(spreads) if known else None)  # type: ignore[arg-type]


def _laws(predictor: JointPredictor, panel: Panel) -> Iterator[Centred]:
    """Laws of the rows of a panel in blocks, in the units of the data; of a published method its means."""
    filter_ = predictor.filter
    if not isinstance(filter_, OwnSetting):
        yield from (law for law, _, _ in laws_of(predictor, panel, filter_.start()))
        return
    mean = getattr(filter_, "backbone", None)
    if not isinstance(mean, MeanModel):
        raise InputError(f"{message_start(filter_)}a method without a law or a mean has no sets for steps ahead")
    values = (panel.values - predictor.shift) / predictor.scale
    yield _MeansOnly(predictor.shift + predictor.scale * np.asarray(mean.predict(values)))
