"""JointPredictor: filter + score + calibration, from a training panel to a live joint prediction set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, cast, overload

import numpy as np

from jointset.abilities import Clocked, Restarting, expecting, follows_clock, message_start
from jointset.calibration import Split
from jointset.calibration.any_rule import AnyRule, moved, one_score
from jointset.calibration.gap_levels import after_reading, in_own_units, rescaled_gaps, shown_radii
from jointset.contracts import Array, Filter, Fittable, Forecast, Reading, Readings, Region, Score
from jointset.errors import InputError, require
from jointset.horizons.calibrating_ahead import calibrate
from jointset.horizons.horizon import Horizon
from jointset.horizons.passes_ahead import predicted_ahead, run_through, stepped
from jointset.horizons.sets_ahead import AheadSets
from jointset.inputs.graph_edges import Edges
from jointset.inputs.labels import panel_of, reading_of, require_sensors
from jointset.inputs.outliers import scorable
from jointset.inputs.sensor_health import Health, Usual, observe, observe_rows, start_health
from jointset.inputs.sensor_places import Places
from jointset.panel import Panel
from jointset.predicting.calibrating import at_level, gap_scale, note_of, rewrapped, watch_from
from jointset.predicting.explaining import Explains, facts_of, line_of
from jointset.predicting.fitting import fit
from jointset.predicting.imputation import Filling, FillQuantiles, filling_after
from jointset.predicting.passes import Progress, laws_of
from jointset.predicting.reuse import Reuse
from jointset.predicting.stored_models import restore_predictor, save_predictor
from jointset.regions import named
from jointset.runs import Outcome as Outcome
from jointset.runs import Run as Run
from jointset.score_abilities import followed
from jointset.scores import Mahalanobis
from jointset.support.copies import shallow
from jointset.support.folders import Stored, reading
from jointset.support.notebook import shown
from jointset.trust import Watch


class JointPredictor(Explains):
    """One calibrated joint prediction set for the whole next reading.

    Parameters
    ----------
    filter
        Emits the law of the next reading (`GraphLGSSM`, `StaticFilter`, ...).
    score
        Shape of the set: `Mahalanobis()` (ellipsoids, default), `MaxStudentised()` (boxes), `BlockMaximum(...)`.
    calibration
        How past scores become a radius: `Split(alpha)` (default, 90 %), or any other of `jointset.calibration`.
    warmup
        t0: of the calibration rows t = 1..n the scores of t = t0..n are kept.
    standardize
        Filter z-scores (mean and sd of the training rows) instead of raw values. Regions are always in the units of
        the data; the Mahalanobis score does not change under such a map.

    >>> from jointset import GraphLGSSM, generate_grssf
    >>> train, _, calibration, test = generate_grssf("A", n=30, length=2000).panel.split()
    >>> predictor = JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration)
    >>> bool(predictor.predict().contains(test.values[0]))
    True
    """

    def __init__(
        self,
        filter: Filter[Any] | Fittable,
        score: Score[Any] | None = None,
        calibration: AnyRule | None = None,
        *,
        warmup: int = 50,
        standardize: bool = True,
    ) -> None:
        if isinstance(filter, str):  # the text of a filter is long
            raise InputError(f"{filter!r} is a name, not a filter: use jointset.predictor({filter!r})")
        require(warmup >= 1, f"warmup must be at least 1 (keep all scores), got {warmup}")
        self.filter = cast("Filter[Any]", filter)  # once it is fitted
        self.score: Score[Any] = Mahalanobis() if score is None else score
        self.calibration: AnyRule = Split() if calibration is None else calibration
        self.warmup = warmup
        self.standardize = standardize
        self.sensors: tuple[str, ...] = ()  # set by fit, with the next four
        self.fitted_rows = 0
        self.shift: Array = np.empty(0)
        self.scale: Array = np.empty(0)
        self.left_out: tuple[str, ...] = ()  # sensors of the source that it was not fitted on: ignored in later rows
        self.usual: Usual | None = None  # how long sensors are silent or stand still; older models lack it, and
        self.places: Places | None = None  # where the sensors are drawn
        self.graph: Edges | None = None  # that of the training panel, where it had one
        self.filter_state: object = None  # set by calibrate, with the next three; advanced by update and run
        self.calibration_state: Any = None
        self.calibration_scores: Array = np.empty(0)  # in time order; (m, K) where a set has K radii
        self.calibration_times: Array | None = None  # of those scores, where there are stamps; older models lack it
        self.watch: Watch | None = None  # of the scores since calibration, for `trust`
        self.health: Health | None = None  # how long every sensor has been silent or stood still
        self.fill_quantiles: FillQuantiles | None = None  # set by learn_to_fill or the first impute
        self.filling: Filling | None = None  # set by impute, then kept up by update
        self.reuse: Reuse | None = None  # what it costs that the shape was fitted on the calibration rows
        self.last_time: int | None = None  # time stamp of the last row seen, where there are stamps
        self._pending: tuple[Forecast, Array | float, float] | None = None  # see `_ahead`
        self.shaped_on: Panel | None = None  # rows that a shape was fitted on
        self.trained_on: Panel | None = None  # training rows, from which the law of the steps ahead is learned
        self.horizon: Horizon | None = None  # what is known of the next H steps, where it was asked for
        self.calibrated_on: Panel | None = None  # the rows of calibrate; not saved

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        return float(self.calibration.alpha)

    @property
    def n_calibration(self) -> int:
        """Number of calibration scores."""
        return len(self.calibration_scores)

    @property
    def infinite_share(self) -> float:
        """Share of steps since calibration whose radius was infinite or had to be clipped."""
        self._require_calibrated()
        return float(self.calibration.infinite_share(self.calibration_state))

    @property
    def radius(self) -> float:
        """Radius of the next set, as one number."""
        return self._ahead()[2]

    @property
    def note(self) -> str:
        """What is to be known of the calibration, in words; empty where there is nothing."""
        return note_of(self)

    # ------------------------------------------------------------------ fit and calibrate

    def fit(
        self, panel: Readings, pilot: Readings | None = None, *, frozen: bool = False, **options: Any
    ) -> JointPredictor:
        """Fit the filter on a training panel; forgets any earlier calibration. Options go to the filter's `fit`.

        Here and below a panel may be a data frame or a dict with a column a sensor, or an array (T, N). `pilot`
        is a block of its own for the shape of filters that learn one from residuals; one that is the calibration block
        itself gives the plug-in form, whose calibration scores are no longer fresh. `frozen` says that the filter is
        fitted already, on this panel in the units it would be given here.
        """
        fit(self, panel, pilot, frozen, options)
        self.filter_state = self.calibration_state = self.watch = self._pending = self.reuse = None
        return self

    def calibrate(self, panel: Readings, *, horizon: int = 1, progress: Progress | None = None) -> JointPredictor:
        """Score a panel from a fresh filter state and set the radius; the state is then carried on.

        With a `horizon` of H > 1 the sets of the next H steps are calibrated too, for `predict(horizon=H)`.
        `progress` is told how many rows were done, or what the work that was done counts for in rows.
        """
        rows, self.horizon, self.health = self._panel(panel), None, None
        self.horizon = calibrate(self, rows, horizon, progress)
        self.calibrated_on, self.fill_quantiles = rows, None
        if self.note:
            warnings.warn(f"{message_start(self.filter)}{self.note}", stacklevel=2)
        return self

    def scale_gaps(self) -> None:
        """Tell the score the coverage and the radius that rows with gaps are scaled to."""
        self.score = rescaled_gaps(self.score, gap_scale(self.calibration_scores, self.alpha))

    # ------------------------------------------------------------------ the clock

    @property
    def follows_clock(self) -> bool:
        """Whether the set depends on the time of the reading."""
        return follows_clock(self.filter) or follows_clock(self.calibration)

    def expect(self, when: int) -> None:
        """Say when the next reading will be (epoch seconds); without that it follows the last at the usual interval."""
        if isinstance(self.filter, Clocked) and self.filter.follows_clock:
            told = self.filter.expect(self.filter_state, when)
            if told is not self.filter_state:  # else it comes when it was expected, and the next law stands
                self.filter_state, self._pending = told, None
            if self.filling is not None:
                self.filling = self.filling._replace(state=self.filter.expect(self.filling.state, when))
        state = expecting(self.calibration, self.calibration_state, when)
        if state is not self.calibration_state:
            self.calibration_state, self._pending = state, None
        self.horizon = self.horizon and self.horizon.expecting(when)

    def restart(self) -> None:
        """Let the mean start afresh with the next row, as at the start of a block; shape and radius go on."""
        if isinstance(self.filter, Restarting):
            self.filter_state, self.filling, self._pending = self.filter.restart(self.filter_state), None, None

    # ------------------------------------------------------------------ one step at a time

    @overload
    def predict(self, alpha: float | None = None) -> Region: ...
    @overload
    def predict(self, alpha: None = None, *, horizon: int) -> AheadSets: ...
    def predict(self, alpha: float | None = None, *, horizon: int | None = None) -> Region | AheadSets:
        """The region for the next reading; with a split rule also at another miss rate than its own.

        With a `horizon` H, one that the model was calibrated for, the sets of the next H steps.
        """
        require(alpha is None or horizon is None, "sets ahead have the alpha of their calibration: leave alpha out")
        law, radii, _ = self._ahead()
        score, radii = (self.score, radii) if alpha is None else at_level(self, alpha)
        region = named(score.region(law, radii), self.sensors)
        return region if horizon is None else predicted_ahead(self, law, region, horizon)

    def update(self, y: Reading) -> Outcome:
        """Observe the next reading (N,), NaN = missing: score it, adapt the radius, advance the filter.

        A series, mapping or data frame of one row goes by its labels; a sensor without a label is missing.
        """
        y = self._reading(y)
        law, radii, radius = self._ahead()
        scores = self.score.score(law, y)
        own = in_own_units(self.score, self.calibration, scores)
        several = np.ndim(scores) > 0
        score = float(one_score(self.calibration, self.calibration_state, own[None])[0] if several else scores)
        inside = bool(np.all(scores <= radii)) if several else bool(scores <= radii)
        after = self.filter.step(self.filter_state, (y - self.shift) / self.scale)
        self.filling = self.filling and filling_after(self, law, self.filling, y)
        self.calibration_state = moved(self.calibration, self.calibration_state, own)
        self.score = followed(after_reading(self.score, self.calibration, y, inside), y[None])[1]
        self.horizon = self.horizon and stepped(self, self.horizon, law, y)
        self.filter_state, self._pending = after, None
        self.watch = self.watch and self.watch.update(score, inside)
        self.health = self.health and observe(self.health, y)
        return Outcome(score, radius, inside, int(y.size - np.count_nonzero(np.isnan(y))))

    def _ahead(self) -> tuple[Forecast, Array | float, float]:
        """Law of the next step in the units of the data, what cuts out its set, and its radius as one number."""
        if self._pending is None:
            self._require_calibrated()
            law = self.filter.law(self.filter_state).rescale(self.shift, self.scale)
            rule, state = self.calibration, self.calibration_state
            self._pending = law, *shown_radii(self.score, rule, state)
        return self._pending

    # ------------------------------------------------------------------ whole panels

    def run(self, panel: Readings, *, regions: bool = True, progress: Progress | None = None) -> Run:
        """Predict and update through a whole panel: the same numbers as step by step, only faster.

        The predictor ends where the panel ends, as after that many updates; use `copy()` to keep the present one.
        With `regions=False` only bounds and sizes are kept, which matters when the covariance changes at every step.
        """
        return self.run_with((), panel, regions=regions, progress=progress)[0][0]

    def run_with(
        self, others: Sequence[Self], panel: Readings, *, regions: bool = True, progress: Progress | None = None
    ) -> list[tuple[Run, float]]:
        """Runs of this predictor and of others that differ from it in their rule only (see `rewrapped`).

        Laws and scores are made once for all. With every run come the seconds it would have taken alone.
        """
        self._require_calibrated()
        rows = self._panel(panel)
        laws = laws_of(self, rows, self.filter_state)
        return run_through((self, *others), rows, laws, regions, progress)

    def moved_to(self, filter_state: object, calibration_state: object, panel: Panel) -> None:
        """Stand where a panel ends, in these states."""
        self.filter_state, self.calibration_state, self.filling = filter_state, calibration_state, None
        self._pending, self.health = None, observe_rows(self.health or start_health(panel.n_sensors), panel.values)
        self.score = followed(self.score, panel.values)[1]
        if panel.timestamps is not None and len(panel):
            self.last_time = int(panel.timestamps[-1])

    def rewrapped(self, calibration: AnyRule) -> JointPredictor:
        """An independent predictor with another rule, started from the same calibration scores."""
        self._require_calibrated()
        return rewrapped(self, calibration)

    def start_watch(self) -> None:
        """Watch later scores beside those of calibration."""
        scores, times = self.calibration_scores, self.calibration_times
        self.watch = watch_from(self.calibration, self.calibration_state, scores, times)

    def repeats(self, panel: Panel) -> bool:
        """Whether a panel begins before the last row this predictor has seen: its coverage would flatter."""
        stamps = panel.timestamps
        return self.last_time is not None and stamps is not None and len(panel) > 0 and stamps[0] <= self.last_time

    def _panel(self, data: Readings) -> Panel:
        """What was given as a panel with the sensors of the model, fit to be scored."""
        require(bool(self.sensors), "the predictor is not fitted: call fit(panel) first")
        panel = panel_of(data, self.sensors)
        require_sensors(panel.sensors, self.sensors)
        return scorable(panel)

    def _reading(self, y: Reading) -> Array:
        return reading_of(y, self.sensors)

    def _require_calibrated(self) -> None:
        require(self.calibration_state is not None, "the predictor is not calibrated: call calibrate(panel) first")

    # ------------------------------------------------------------------ copies and files

    def __repr__(self) -> str:
        return line_of(self)

    def _repr_html_(self) -> str:
        return shown(type(self).__name__, facts_of(self))

    def copy(self) -> JointPredictor:
        """An independent predictor in the same state."""
        return shallow(self)  # every part is an immutable value

    def save(self, path: str | Path) -> None:
        """Write a model folder, or replace the model of one; whoever loads it meanwhile gets the old or the new."""
        save_predictor(self, path)

    @classmethod
    def load(cls, path: str | Path) -> JointPredictor:
        """Read a model folder; the predictor goes on exactly where it was saved."""
        with reading(path) as stored:
            return cls.restored(stored)

    @classmethod
    def restored(cls, stored: Stored) -> JointPredictor:
        """The predictor in a model folder that was read."""
        if stored.part_class("rule") is not None:
            from jointset.published.older import from_older  # few have such a folder

            return from_older(stored)
        return restore_predictor(cls, stored)
