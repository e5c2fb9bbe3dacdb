"""Predictors of the comparison rows: `JointPredictor` with a pilot block, a clock, and several radii."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from jointset.baselines.components import ComponentScore
from jointset.baselines.conditional import Local
from jointset.baselines.reuse import Pieces, Reuse, reuse, share_rows
from jointset.baselines.shapes import Constant
from jointset.baselines.shared_level import SharedLevel
from jointset.calibration import Split
from jointset.contracts import Array
from jointset.errors import require
from jointset.labels import panel_of
from jointset.panel import Panel
from jointset.predictor import BLOCK, STORED, JointPredictor, Outcome, Run
from jointset.regions import named
from jointset.scores import MaxStudentised
from jointset.trust import Trust, Watch, start_watch

ROWS_AT_ONCE = 4096


class RowPredictor(JointPredictor):
    """A `JointPredictor` around a `ResidualFilter`.

    >>> from jointset import generate_grssf
    >>> from jointset.baselines.rows import row
    >>> train, pilot, calibration, test = generate_grssf("A", n=10, length=2000).panel.split()
    >>> predictor = row("ewma").fit(train, pilot).calibrate(calibration)
    >>> len(predictor.run(test).radius)
    200
    """

    reuse: Reuse | None = None  # set by calibrate: what it costs that the shape was fitted on the same rows
    _times: Array | None = None  # of the rows being worked on
    _shaped_on: Panel | None = None  # rows that the shape was fitted on

    def fit(self, panel: Any, pilot: Any = None, skip: int | None = None, **options: Any) -> RowPredictor:
        """Fit the backbone on `panel` and the shape on the residuals of `pilot` (default: `panel`).

        `skip` is the number of first pilot rows left out. A pilot that is the calibration block itself gives the
        plug-in form, whose calibration scores are no longer fresh.
        """
        panel = shaped_on = panel_of(panel)
        if pilot is not None:
            pilot = shaped_on = panel_of(pilot, panel.sensors)
            self._same_sensors(pilot, panel.sensors)
            if self.standardize:
                shift, scale = np.nanmean(panel.values, axis=0), np.nanstd(panel.values, axis=0)
                pilot = pilot.with_values((pilot.values - shift) / scale)
        super().fit(panel, pilot=pilot, skip=skip, **options)
        self._shaped_on, self.reuse = shaped_on, None
        return self

    def _same_sensors(self, panel: Panel, sensors: tuple[str, ...]) -> None:
        require(
            panel.sensors == sensors, f"{self.filter.name}: the pilot block has other sensors than the training one"
        )

    @property
    def follows_clock(self) -> bool:
        """Whether the set depends on the time of the reading."""
        return hasattr(self.filter.shape, "at")

    def expect(self, when: int) -> None:
        """Say when the next reading will be (epoch seconds); without that it follows the last at the usual interval."""
        if self.follows_clock:
            state = self.filter_state
            self.filter_state = state._replace(shape=self.filter.shape.at(state.shape, when))
            self._pending = None

    def _clocked(self, panel: Panel) -> Array | None:
        if not self.follows_clock:
            return None
        require(panel.timestamps is not None, f"{self.filter.name} needs time stamps: give readings with a time column")
        return panel.timestamps

    def calibrate(self, panel: Any) -> RowPredictor:
        """Score a panel from a fresh state and set the radius; rows that the shape was fitted on give a warning."""
        panel = panel_of(panel, self.sensors)
        self._times = self._clocked(panel)
        super().calibrate(panel)
        again = self._shaped_on is not None and share_rows(self._shaped_on, panel)
        self.reuse = reuse(self.pieces, panel.n_sensors, self.n_calibration, self.alpha) if again else None
        if self.note:
            warnings.warn(f"{self.filter.name}: {self.note}", stacklevel=2)
        return self

    @property
    def pieces(self) -> Pieces | None:
        """Directions of every covariance of the shape and its share of the miss rate; None where it moves."""
        shape, n = self.filter.shape, len(self.sensors)
        if isinstance(shape, Constant):
            return [(1, 1.0 / n)] * n if isinstance(self.score, MaxStudentised) else [(n, 1.0)]
        return getattr(shape, "pieces", None)

    @property
    def note(self) -> str:
        """What is to be known of the calibration, in words; empty where there is nothing."""
        return "" if self.reuse is None else self.reuse.note(self.alpha, self._adaptive)

    @property
    def _adaptive(self) -> bool:
        return not isinstance(getattr(self.calibration, "rule", self.calibration), Split)

    def trust(self) -> Trust:
        """As `JointPredictor.trust`, with the loss of a shape that was fitted on the calibration rows."""
        found = super().trust()
        return found if self.reuse is None else self.reuse.corrected(found, self.alpha, self._adaptive)

    def run_with(
        self,
        others: Sequence[Any],
        panel: Any,
        *,
        regions: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[tuple[Run, float]]:
        """Runs of this predictor and of others that differ in their rule only."""
        panel = panel_of(panel, self.sensors)
        self._times = self._clocked(panel)
        return super().run_with(others, panel, regions=regions, progress=progress)

    @classmethod
    def stored(cls) -> dict[str, Any]:
        """What a model folder holds, and of what kind it is."""
        return STORED | {"reuse": Reuse | None}

    def restart(self) -> None:
        """Let the mean start afresh with the next row, as at the start of a block; shape and radius go on."""
        self.filter_state, self._pending = self.filter.restart(self.filter_state), None

    def _laws(self, values: Array, state: Any) -> Iterator[tuple[Any, Array, Any]]:
        size = max(1, BLOCK // values.shape[1] ** 2)  # steps with a matrix each
        if not isinstance(self.filter.shape, Local):  # all others hold none
            size = max(size, ROWS_AT_ONCE, len(values) * hasattr(self.filter.shape, "scores"))
        for start in range(0, max(len(values), 1), size):
            rows = values[start : start + size]
            times = None if self._times is None else self._times[start : start + size]
            laws, state = self.filter.run((rows - self.shift) / self.scale, state, times)
            yield laws.rescale(self.shift, self.scale), rows, state


class ComponentPredictor(RowPredictor):
    """A row with several components: one level alpha_t, shared among radii of their own.

    Scores and radii of outcomes and runs are on the nominal scale (see `jointset.baselines.shared_level`): the radius
    is 1 - alpha_t, and a reading is inside when its score is at most that.
    """

    calibration: Any

    def __init__(self, filter: Any, calibration: Any = None, **options: Any) -> None:
        rule = calibration if isinstance(calibration, SharedLevel) else SharedLevel(calibration or Split())
        super().__init__(filter, ComponentScore(), rule, **options)

    def fit(self, panel: Any, pilot: Any = None, skip: int | None = None, **options: Any) -> RowPredictor:
        """Fit the backbone on `panel` and the components on the residuals of `pilot` (default: `panel`)."""
        super().fit(panel, pilot, skip, **options)
        self.calibration = replace(self.calibration, shares=self.filter.shape.shares)
        return self

    def _require_enough(self, found: int, of: str) -> None:
        needed, k = self.calibration.needed, len(self.calibration.shares)
        require(
            found >= needed,
            f"{self.filter.name}: {found} calibration scores {of} are too few for alpha={self.alpha} shared by {k} "
            f"components: at least {needed} are needed",
        )

    def predict(self) -> Any:
        """The region for the next reading."""
        region = self.score.region(self._ahead()[0], self.calibration.radii(self.calibration_state))
        return named(region, self.sensors)

    def update(self, y: Any) -> Outcome:
        """Observe the next reading (N,), NaN = missing: score it, adapt the level, advance the filter."""
        y = self._reading(y)
        law, radius = self._ahead()
        scores = self.score.score(law, y)
        nominal = float(self.calibration.score(self.calibration_state, scores[None])[0])
        inside = bool(np.all(scores <= self.calibration.radii(self.calibration_state)))
        after = self.filter.step(self.filter_state, (y - self.shift) / self.scale)
        self.calibration_state = self.calibration.update(self.calibration_state, scores)
        self.filter_state, self._pending = after, None
        self.watch = self._watched().update(nominal, inside)
        return Outcome(nominal, radius, inside, int(y.size - np.isnan(y).sum()))

    def _start_watch(self) -> Watch:
        scores = self.calibration.score(self.calibration_state, self.calibration_scores)
        return start_watch(scores, 1.0 - self.alpha, self._aim(self.calibration.rule))

    def rewrapped(self, calibration: Any) -> Self:
        """An independent predictor with another rule for the level, started from the same calibration scores."""
        return super().rewrapped(replace(calibration, shares=self.calibration.shares))

    def run_with(
        self,
        others: Sequence[Any],
        panel: Any,
        *,
        regions: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[tuple[Run, float]]:
        """Runs of this predictor and of others that differ in their rule; regions cost no memory and are kept."""
        self._require_calibrated()
        panel = panel_of(panel, self.sensors)
        values, begin = self._values_of(panel), time.perf_counter()
        self._times = None
        blocks = list(self._laws(values, self.filter_state))
        law = replace(blocks[0][0], mean=np.concatenate([law.mean for law, _, _ in blocks]))
        scores = self.score.score(law, values)
        shared, runs = time.perf_counter() - begin, []
        for one in (self, *others):
            begin = time.perf_counter()
            radii, nominal, levels, one.calibration_state = one.calibration.run(one.calibration_state, scores)
            region = named(self.score.region(law, radii), self.sensors)
            lower, upper = region.bounds
            one.filter_state, one._pending = blocks[-1][2], None
            one._saw(panel)
            run = Run(
                panel.sensors,
                panel.timestamps,
                values,
                law.mean,
                lower,
                upper,
                nominal,
                levels,
                np.all(scores <= radii, axis=1),
                region.width,
                region.width_full,
                region.log_volume,
                one.infinite_share,
                region,
            )
            one.watch = one._watched().run(nominal, run.inside)
            runs.append((run, shared + time.perf_counter() - begin))
        if progress is not None:
            progress(len(values))
        return runs
