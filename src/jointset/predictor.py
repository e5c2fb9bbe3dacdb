"""JointPredictor: filter + score + calibration, from a training panel to a live joint prediction set."""

from __future__ import annotations

import copy
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from jointset.calibration import Split
from jointset.calibration.fixed import Fixed
from jointset.calibration.quantiles import score_quantile
from jointset.calibration.shared_level import course, next_radii, one_score, rule_within, scores_needed, sharing
from jointset.contracts import Array, Calibration, Filter, Score
from jointset.errors import InputError, require
from jointset.folders import Stored, reading, refusing, save_folder
from jointset.labels import panel_of, reading_of
from jointset.laws import bare, concatenate
from jointset.outliers import scorable, warn_absurd
from jointset.own_bands import own_quantiles, studentised
from jointset.panel import Panel
from jointset.partial import GapScale
from jointset.regions import named
from jointset.reuse import Reuse, reuse, shared_rows
from jointset.runs import Outcome as Outcome
from jointset.runs import Run as Run
from jointset.runs import columns_of
from jointset.scores import Mahalanobis, MaxStudentised
from jointset.sensor_health import Usual, usual_of
from jointset.soundness import require_next_set, require_units, require_usual, require_working
from jointset.trust import Trust, Watch, start_watch

BLOCK = 16_000_000  # numbers a block of covariances may hold when a filter emits a new one at every step


class JointPredictor:
    """One calibrated joint prediction set for the whole next reading.

    Parameters
    ----------
    filter
        Emits the law of the next reading (`GraphLGSSM`, `StaticFilter`, ...).
    score
        Shape of the set: `Mahalanobis()` (ellipsoids, default), `MaxStudentised()` (boxes), `BlockMaximum(...)`.
    calibration
        How past scores become a radius: `Split(alpha)` (default, 90 %), `ACI`, `AgACI`, `DtACI`, `PID`.
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
        filter: Any,
        score: Any = None,
        calibration: Any = None,
        *,
        warmup: int = 50,
        standardize: bool = True,
    ) -> None:
        if isinstance(filter, str):  # the text of a filter is long
            raise InputError(f"{filter!r} is a name, not a filter: use jointset.methods.predictor_for({filter!r})")
        require(warmup >= 1, f"warmup must be at least 1 (keep all scores), got {warmup}")
        self.filter = filter
        self.score = Mahalanobis() if score is None else score
        self.calibration: Any = Split() if calibration is None else calibration
        self.warmup = warmup
        self.standardize = standardize
        self.sensors: tuple[str, ...] = ()  # set by fit, with the next three
        self.shift: Array = np.empty(0)
        self.scale: Array = np.empty(0)
        self.usual: Usual | None = None  # how long sensors are silent or stand still; older models lack it
        self.filter_state: Any = None  # set by calibrate, with the next two; advanced by update and run
        self.calibration_state: Any = None
        self.calibration_scores: Array = np.empty(0)  # in time order; (m, K) where a set has K radii
        self.watch: Watch | None = None  # of the scores since calibration, for `trust`
        self.reuse: Reuse | None = None  # what it costs that the shape was fitted on the calibration rows
        self.last_time: int | None = None  # time stamp of the last row seen, where there are stamps
        self._pending: tuple[Any, Any, float] | None = None  # see `_ahead`
        self._shaped_on: Panel | None = None  # rows that a shape was fitted on

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
    def note(self) -> str:
        """What is to be known of the calibration, in words; empty where there is nothing."""
        return "" if self.reuse is None else self.reuse.note(self.alpha, self._adaptive)

    # ------------------------------------------------------------------ fit and calibrate

    def fit(self, panel: Any, pilot: Any = None, *, frozen: bool = False, **options: Any) -> JointPredictor:
        """Fit the filter on a training panel; forgets any earlier calibration. Options go to the filter's `fit`.

        Here and below a panel may be a data frame with a column a sensor, or an array (T, N) in sensor order. `pilot`
        is a block of its own for the shape of filters that learn one from residuals; one that is the calibration block
        itself gives the plug-in form, whose calibration scores are no longer fresh. `frozen` says that the filter is
        fitted already, on this panel in the units it would be given here.
        """
        panel = scorable(panel_of(panel).require_varying())
        warn_absurd(panel, "training")
        shift, scale = np.zeros(panel.n_sensors), np.ones(panel.n_sensors)
        if self.standardize:
            shift, scale = panel.level_and_scale()
        if pilot is not None:
            pilot = panel_of(pilot, panel.sensors)
            require(
                pilot.sensors == panel.sensors, f"{self._named}the pilot block has other sensors than the training one"
            )
            options["pilot"] = pilot.with_values((pilot.values - shift) / scale)
        if not frozen:
            self.filter = self.filter.fit(panel.with_values((panel.values - shift) / scale), **options)
        self.calibration = sharing(self.calibration, getattr(self.filter, "shares", None))
        self.sensors, self.shift, self.scale, self.usual = panel.sensors, shift, scale, usual_of(panel)
        self._shaped_on = (panel if pilot is None else pilot) if hasattr(self.filter, "pieces") else None
        self.filter_state = self.calibration_state = self.watch = self._pending = self.reuse = None
        return self

    def calibrate(self, panel: Any, *, progress: Callable[[int], None] | None = None) -> JointPredictor:
        """Score a panel from a fresh filter state and set the radius; the state is then carried on.

        `progress` is told how many rows were scored, block by block.
        """
        panel = panel_of(panel, self.sensors)
        values, times = self._values_of(panel), self._clocked(panel)
        warn_absurd(panel, "calibration")
        self.score = self.score.with_gaps(GapScale(1.0 - self.alpha))
        scores, after, own = self._calibration_scores(values, times, progress)
        self._require_enough(len(scores), f"(of {len(values)} rows, warm-up {self.warmup})")
        self.calibration_scores = scores
        self._scale_gaps()
        if (
            scores.ndim == 1 and np.isnan(values).any()
        ):  # scores of rows with gaps stay at the radius, and move beside it
            self.calibration_scores = self._calibration_scores(values, times)[0]
        self.calibration_state = self.calibration.start(self.calibration_scores)
        self.watch = self._start_watch()
        self.filter_state, self._pending = after, None
        if self.usual is not None:
            self.usual = self.usual._replace(own=None if own is None else own_quantiles(own, self.alpha))
        self._saw(panel)
        self.reuse = self._reused(panel)
        if self.note:
            warnings.warn(f"{self._named}{self.note}", stacklevel=2)
        return self

    def _reused(self, panel: Panel) -> Reuse | None:
        """What it costs, if anything, that these calibration rows gave the shape as well."""
        if self._shaped_on is None:
            return None
        pieces = self.filter.pieces(boxes=isinstance(self.score, MaxStudentised))
        rows = round(self.n_calibration * len(self._shaped_on) / len(panel))
        return reuse(pieces, panel.n_sensors, rows, self.alpha, shared_rows(self._shaped_on, panel))

    def _calibration_scores(
        self, values: Array, times: Array | None, progress: Callable[[int], None] | None = None
    ) -> tuple[Array, Any, Array | None]:
        """Scores of the rows with a reading after the warm-up, from a fresh state, and the state after the last row.

        The third is the studentised residuals of the same rows, sensor by sensor; None where the law has no variances.
        """
        if hasattr(self.filter, "calibrate"):  # its sets begin with these rows
            return (*self.filter.calibrate((values - self.shift) / self.scale, self.warmup), None)
        parts = []
        for law, rows, after in self._laws(values, self.filter.start(), times):
            parts.append((self.score.score(law, rows), studentised(law, rows), after))
            if progress is not None:
                progress(len(rows))
        scores = np.concatenate([part for part, _, _ in parts])[self.warmup - 1 :]
        missing = np.isnan(scores).any(axis=tuple(range(1, scores.ndim)))
        own = [part for _, part, _ in parts if part is not None]
        return scores[~missing], parts[-1][2], np.concatenate(own)[self.warmup - 1 :][~missing] if own else None

    def _scale_gaps(self) -> None:
        """Tell the score the coverage and the radius that rows with gaps are scaled to."""
        scores = self.calibration_scores
        radius = score_quantile(np.sort(scores), self.alpha) if scores.ndim == 1 else float("nan")
        self.score = self.score.with_gaps(GapScale(1.0 - self.alpha, radius))

    def _require_enough(self, found: int, of: str) -> None:
        needed, shared = scores_needed(self.calibration)
        require(
            found >= needed,
            f"{self._named}{found} calibration scores {of} are too few for alpha={self.alpha}{shared}: at least "
            f"{needed} are needed; calibrate on more rows, or choose a larger alpha or a shorter warm-up",
        )

    @property
    def _named(self) -> str:
        """The filter's name in front of a message, where it has one."""
        name = getattr(self.filter, "name", "")
        return f"{name}: " if name else ""

    # ------------------------------------------------------------------ the clock

    @property
    def follows_clock(self) -> bool:
        """Whether the set depends on the time of the reading."""
        return bool(getattr(self.filter, "follows_clock", False))

    def expect(self, when: int) -> None:
        """Say when the next reading will be (epoch seconds); without that it follows the last at the usual interval."""
        if self.follows_clock:
            self.filter_state, self._pending = self.filter.expect(self.filter_state, when), None

    def restart(self) -> None:
        """Let the mean start afresh with the next row, as at the start of a block; shape and radius go on."""
        self.filter_state, self._pending = self.filter.restart(self.filter_state), None

    def _clocked(self, panel: Panel) -> Array | None:
        if not self.follows_clock:
            return None
        name = self._named.rstrip(": ") or "the filter"
        require(panel.timestamps is not None, f"{name} needs time stamps: give readings with a time column")
        return panel.timestamps

    # ------------------------------------------------------------------ one step at a time

    def predict(self) -> Any:
        """The region for the next reading."""
        return named(self.score.region(*self._ahead()[:2]), self.sensors)

    def update(self, y: Any) -> Outcome:
        """Observe the next reading (N,), NaN = missing: score it, adapt the radius, advance the filter.

        A series, mapping or data frame of one row goes by its labels; a sensor without a label is missing.
        """
        y = self._reading(y)
        law, radii, radius = self._ahead()
        scores = self.score.score(law, y)
        several = np.ndim(scores) > 0
        score = float(one_score(self.calibration, self.calibration_state, scores[None])[0] if several else scores)
        inside = bool(np.all(scores <= radii))
        after = self.filter.step(self.filter_state, (y - self.shift) / self.scale)
        self.calibration_state = self.calibration.update(self.calibration_state, scores if several else score)
        self.filter_state, self._pending = after, None
        self.watch = self.watch and self.watch.update(score, inside)
        return Outcome(score, radius, inside, int(y.size - np.isnan(y).sum()))

    def trust(self) -> Trust:
        """What the calibration is worth, the coverage to expect, drift of the scores since; cheap at every step."""
        found = self._watched().trust(self.infinite_share)
        return found if self.reuse is None else self.reuse.corrected(found, self.alpha, self._adaptive)

    def contributions(self, y: Any) -> Array:
        """How much each sensor of a reading adds to its score under the next law (N,); 0 where missing."""
        return self.score.contributions(self._ahead()[0], self._reading(y))

    def given_others(self, y: Any) -> tuple[Array, Array] | None:
        """Mean and sd of each reading of a row (N,) given all others, under the next law; None where there is no law.

        NaN where missing.
        """
        law, y = self._ahead()[0], self._reading(y)
        return law.given_others(y) if hasattr(law, "given_others") else None

    def own_bounds(self) -> tuple[Array, Array] | None:
        """Ends of the band of each sensor by itself (N,), at the same level; None where the method has none."""
        law, own = self._ahead()[0], None if self.usual is None else self.usual.own
        if own is None:
            return None
        reach = own * np.sqrt(law.variance)
        return law.mean - reach, law.mean + reach

    def _ahead(self) -> tuple[Any, Any, float]:
        """Law of the next step in the units of the data, what cuts out its set, and its radius as one number."""
        self._require_calibrated()
        if self._pending is None:
            law = self.filter.law(self.filter_state).rescale(self.shift, self.scale)
            rule, state = self.calibration, self.calibration_state
            self._pending = law, next_radii(rule, state), float(rule.radius(state))
        return self._pending

    # ------------------------------------------------------------------ whole panels

    def run(self, panel: Any, *, regions: bool = True, progress: Callable[[int], None] | None = None) -> Run:
        """Predict and update through a whole panel: the same numbers as step by step, only faster.

        The predictor ends where the panel ends, as after that many updates; use `copy()` to keep the present one.
        With `regions=False` only bounds and sizes are kept, which matters when the covariance changes at every step.
        """
        return self.run_with((), panel, regions=regions, progress=progress)[0][0]

    def run_with(
        self,
        others: Sequence[Self],
        panel: Any,
        *,
        regions: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[tuple[Run, float]]:
        """Runs of this predictor and of others that differ from it in their rule only (see `rewrapped`).

        Laws and scores are made once for all. With every run come the seconds it would have taken alone.
        """
        self._require_calibrated()
        panel = panel_of(panel, self.sensors)
        values, together = self._values_of(panel), (self, *others)
        pieces: list[list[dict[str, Array]]] = [[] for _ in together]
        kept = []
        clock, begin, own, spared = time.perf_counter, time.perf_counter(), [0.0] * len(together), 0.0
        state, calibrated = self.filter_state, [one.calibration_state for one in together]
        for law, rows, after in self._laws(values, state, self._clocked(panel)):
            state = after
            scores = np.atleast_1d(self.score.score(law, rows))
            for i, one in enumerate(together):
                start = clock()
                found, calibrated[i] = course(one.calibration, calibrated[i], scores)
                own[i] += clock() - start
                pieces[i].append(columns_of(self.score.region(law, found.radii), law, scores, found))
                spared += (clock() - start) * (i > 0)  # the law keeps its sizes: alone, each would pay as the first
            kept.append(bare(law) if regions else None)
            if progress is not None:
                progress(len(rows))
        shared = clock() - begin - spared - own[0]
        runs = []
        for one, parts, radius_state, seconds in zip(together, pieces, calibrated, own, strict=True):
            one.filter_state, one.calibration_state, one._pending = state, radius_state, None
            one._saw(panel)
            columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
            radii = columns.pop("radii")
            whole = named(self.score.region(concatenate(kept), radii), self.sensors) if regions else None
            one.watch = one.watch and one.watch.run(columns["score"], columns["inside"])
            share = one.infinite_share
            run = Run(panel.sensors, panel.timestamps, values, infinite_share=share, regions=whole, **columns)
            runs.append((run, shared + seconds))
        return runs

    def rewrapped(self, calibration: Any) -> Self:
        """An independent predictor with another rule, started from the same calibration scores."""
        self._require_calibrated()
        own = isinstance(self.calibration, Fixed)
        require(not own, f"{self._named}a row without a wrap has no scores for another one")
        other = copy.copy(self)
        other.calibration, other._pending = sharing(calibration, getattr(self.filter, "shares", None)), None
        other.calibration_state = other.calibration.start(self.calibration_scores)
        other.watch = other._start_watch()
        if other.usual is not None and calibration.alpha != self.alpha:
            other.usual = other.usual._replace(own=None)
        return other

    def _laws(self, values: Array, state: Any, times: Array | None) -> Iterator[tuple[Any, Array, Any]]:
        """Laws of consecutive blocks of rows in the units of the data, those rows, and the state after them."""
        for block in self._blocks(values):
            rows, clock = values[block], () if times is None else (times[block],)
            laws, state = self.filter.run((rows - self.shift) / self.scale, state, *clock)
            yield laws.rescale(self.shift, self.scale), rows, state

    def _blocks(self, values: Array) -> list[slice]:
        """Consecutive rows whose laws hold at most `BLOCK` numbers, N^2 a row unless the filter knows better."""
        if not hasattr(self.filter, "law_sizes") or not len(values):
            rows_at_once = getattr(self.filter, "rows_at_once", None)
            size = max(1, BLOCK // values.shape[1] ** 2) if rows_at_once is None else rows_at_once(*values.shape)
            return [slice(start, start + size) for start in range(0, max(len(values), 1), size)]
        total, starts = np.cumsum(self.filter.law_sizes(values)), [0]
        while starts[-1] < len(values):
            held = total[starts[-1] - 1] if starts[-1] else 0
            starts.append(max(starts[-1] + 1, int(np.searchsorted(total, held + BLOCK, side="right"))))
        return [slice(start, stop) for start, stop in itertools.pairwise(starts)]

    # ------------------------------------------------------------------ checks

    def _start_watch(self) -> Watch:
        scores, radius = self.calibration_scores, 1.0 - self.alpha
        if isinstance(self.calibration, Fixed):
            radius = self.calibration.value
        elif scores.ndim == 1:
            radius = score_quantile(np.sort(scores), self.alpha)
        aim = 1.0 - self.alpha if self._adaptive else None
        return start_watch(one_score(self.calibration, self.calibration_state, scores), radius, aim)

    @property
    def _adaptive(self) -> bool:
        """Whether the rule moves its radius, towards the coverage asked for."""
        return not isinstance(rule_within(self.calibration), Split | Fixed)

    def _watched(self) -> Watch:
        self._require_calibrated()
        if self.watch is None:
            raise InputError(f"{self._named}an older version saved no scores to judge by: calibrate the model again")
        return self.watch

    def _saw(self, panel: Panel) -> None:
        if panel.timestamps is not None and len(panel):
            self.last_time = int(panel.timestamps[-1])

    def repeats(self, panel: Panel) -> bool:
        """Whether a panel begins before the last row this predictor has seen: its coverage would flatter."""
        stamps = panel.timestamps
        return self.last_time is not None and stamps is not None and len(panel) > 0 and stamps[0] <= self.last_time

    def _values_of(self, panel: Panel) -> Array:
        require(bool(self.sensors), "the predictor is not fitted: call fit(panel) first")
        if panel.sensors != self.sensors:
            raise InputError(_sensor_mismatch(panel.sensors, self.sensors))
        return scorable(panel).values

    def _reading(self, y: Any) -> Array:
        return reading_of(y, self.sensors)

    def _require_calibrated(self) -> None:
        require(self.calibration_state is not None, "the predictor is not calibrated: call calibrate(panel) first")

    # ------------------------------------------------------------------ copies and files

    def copy(self) -> JointPredictor:
        """An independent predictor in the same state."""
        return copy.copy(self)  # every part is an immutable value

    def save(self, path: str | Path) -> None:
        """Write a model folder, or replace the model of one; whoever loads it meanwhile gets the old or the new."""
        with refusing(path):
            self._require_sound(require_next_set)
        save_folder(path, {name: getattr(self, name) for name in STORED})

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
        parts = stored.parts(STORED, LATER)
        predictor = cls(parts["filter"], warmup=parts["warmup"])
        for name in STORED:
            setattr(predictor, name, parts[name])
        predictor._scale_gaps()  # older folders do not hold it
        predictor._require_sound(require_working)
        return predictor

    def _require_sound(self, check: Callable[..., None]) -> None:
        """Refuse parts that do not make a set; `check` says what the next one must be."""
        if self.sensors:
            require_units(self.sensors, self.shift, self.scale)
            require_usual(self.sensors, self.usual)
        if self.calibration_state is not None:
            check(self, adapts=not isinstance(self.calibration, Fixed))
            radius = self._ahead()[2]
            require(not isinstance(self.calibration, Split) or radius >= 0, f"the radius is negative: {radius:g}")
            same = self.watch is None or self.trust().n_calibration == self.n_calibration
            require(same, "watch and calibration_scores differ in length")


STORED: dict[str, Any] = {  # what a model folder holds, and of what kind it is
    "filter": Filter,
    "score": Score,
    "calibration": Calibration,
    "warmup": int,
    "standardize": bool,
    "sensors": tuple[str, ...],
    "shift": Array,
    "scale": Array,
    "filter_state": Any,
    "calibration_state": Any,
    "calibration_scores": Array,
    "watch": Watch | None,
    "last_time": int | None,
    "usual": Usual | None,
    "reuse": Reuse | None,
}
LATER = {"reuse": None, "usual": None}  # parts that older folders lack, and what stands for them


def _sensor_mismatch(given: tuple[str, ...], expected: tuple[str, ...]) -> str:
    missing = [s for s in expected if s not in given]
    extra = [s for s in given if s not in expected]
    if missing:
        return f"sensor {missing[0]!r} ({len(missing)} in all) is missing from the panel: the model was fitted on it"
    if extra:
        return f"sensor {extra[0]!r} ({len(extra)} in all) is unknown to the model: use panel.select(predictor.sensors)"
    return "the panel has the model's sensors in another order: use panel.select(predictor.sensors)"
