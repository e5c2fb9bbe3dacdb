"""What the published rows share: a mean backbone, a rule for the radii, and the surface of `JointPredictor`.

A **rule** is a frozen dataclass with three functions of residual arrays (rows are steps, columns sensors):

- `start(residuals)`: the state after the calibration residuals (m, N);
- `radii(state, residuals)`: the parameters of the next T + 1 sets, entry j from the state and the first j of the T
  residuals only, and the state after all of them;
- `shape(state, parameters, mean)`: the regions with these parameters around means (..., N).

A row steps, and runs through whole panels, with these three functions only, so both give the same numbers and no set
can see its own reading.

Gaps: the backbone fills them with the last reading; calibration residuals are made complete
(`jointset.baselines.published.gaps`); a row of readings with a gap is held against the set on its observed sensors;
only complete rows move the state.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from jointset.backbones.interface import Backbone
from jointset.baselines.published.gaps import complete_residuals
from jointset.baselines.published.wrapped import WrappedRule, rewrapped
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.folders import Stored, reading, refusing, save_folder
from jointset.labels import panel_of, reading_of
from jointset.outliers import scorable, warn_absurd
from jointset.panel import Panel
from jointset.predictor import Outcome, Run
from jointset.regions import named
from jointset.sensor_health import Usual, usual_of
from jointset.soundness import require_next_set, require_units, require_usual, require_working
from jointset.trust import Trust


@runtime_checkable
class Rule(Protocol):
    """Residuals to sets; see the head of the module."""

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        ...

    @property
    def needed(self) -> int:
        """Fewest calibration residuals."""
        ...

    def start(self, residuals: Array) -> Any:
        """State after the calibration residuals."""
        ...

    def radii(self, state: Any, residuals: Array) -> tuple[tuple[Array, ...], Any]:
        """Parameters of the next T + 1 sets and the state after T residuals."""
        ...

    def shape(self, state: Any, parameters: tuple[Array, ...], mean: Array) -> Any:
        """The regions around the means."""
        ...


class PublishedRow:
    """A published method as a row: fit, calibrate, then predict and update, or run."""

    method: ClassVar[str] = ""
    plain: ClassVar[str] = ""  # the variant that needs no name
    note: ClassVar[str] = ""  # as `JointPredictor.note`: there is nothing to tell

    def __init__(self, rule: Any, backbone: Any = None, *, warmup: int = 50, standardize: bool = True) -> None:
        require(warmup >= 1, f"{self.method}: warmup must be at least 1 (keep all scores), got {warmup}")
        if backbone is None:
            from jointset.backbones import GPVARBackbone

            backbone = GPVARBackbone()
        self.rule: Any = rule
        self.backbone: Any = backbone
        self.warmup = warmup
        self.standardize = standardize
        self.cold = False  # predict the training mean until `lags` readings were seen, as in protocol `table`
        self.sensors: tuple[str, ...] = ()  # set by fit, with the next three
        self.shift: Array = np.empty(0)
        self.scale: Array = np.empty(0)
        self.usual: Usual | None = None  # how long sensors are silent or stand still; older models lack it
        self.history: Array = np.empty(0)  # last readings, z-scored; set by calibrate, advanced by update and run
        self.seen = 0  # readings in it, at most `lags`
        self.state: Any = None
        self.n_calibration = 0
        self._pending: Any = None  # the next region

    @property
    def name(self) -> str:
        """The method, with its variant where it is not the usual one."""
        own = self.rule.own if isinstance(self.rule, WrappedRule) else self.rule
        variant = getattr(own, "variant", self.plain)
        return self.method if variant == self.plain else f"{self.method}-{variant}"

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        return float(self.rule.alpha)

    @property
    def infinite_share(self) -> float:
        """Share of steps whose factor was infinite or clipped; 0 without a wrap, as no own set is the whole space."""
        self._require_calibrated()
        return float(self.rule.infinite_share(self.state)) if isinstance(self.rule, WrappedRule) else 0.0

    @property
    def calibration_scores(self) -> Array:
        """Scores a wrap started from, in time order; empty without a wrap."""
        self._require_calibrated()
        return self.state.scores if isinstance(self.rule, WrappedRule) else np.empty(0)

    def fit(self, panel: Any, *, frozen: bool = False, **options: Any) -> Self:
        """Fit the mean backbone on a training panel, unless it is `frozen`; forgets any earlier calibration."""
        panel = scorable(panel_of(panel).require_varying())
        warn_absurd(panel, "training")
        shift, scale = np.zeros(panel.n_sensors), np.ones(panel.n_sensors)
        if self.standardize:
            shift, scale = np.nanmean(panel.values, axis=0), np.nanstd(panel.values, axis=0)
        if not frozen:
            self.backbone = self.backbone.fit(panel.with_values((panel.values - shift) / scale), **options)
        self.sensors, self.shift, self.scale, self.usual = panel.sensors, shift, scale, usual_of(panel)
        self.state = self._pending = None
        return self

    def calibrate(self, panel: Any) -> Self:
        """Residuals of a panel from a fresh history; those of rows t0.., made complete, make the first state."""
        panel = panel_of(panel, self.sensors)
        values = self._values_of(panel)
        warn_absurd(panel, "calibration")
        self.restart()
        self.state = None
        residuals = (values - self._means(values))[self.warmup - 1 :]
        residuals = complete_residuals(residuals, self.name)
        require(
            len(residuals) >= self.rule.needed,
            f"{self.name}: {len(residuals)} calibration rows with readings (of {len(values)}, warm-up {self.warmup}) "
            f"are too few, at least {self.rule.needed} are needed: calibrate on more rows",
        )
        self.state = self.rule.start(residuals)
        self.n_calibration = len(self.calibration_scores) or len(residuals)
        return self

    def restart(self) -> None:
        """Let the mean start afresh with the next row, as at the start of a block; the sets go on."""
        self.history, self.seen, self._pending = self.backbone.start(), 0, None

    def predict(self) -> Any:
        """The region for the next reading."""
        self._require_calibrated()
        if self._pending is None:
            parameters, self.state = self.rule.radii(self.state, np.empty((0, len(self.sensors))))
            cold = self.cold and self.seen < self.backbone.lags
            ahead = self.backbone.mean if cold else self.backbone.next_mean(self.history)
            mean = self.shift + self.scale * ahead
            region = self.rule.shape(self.state, tuple(p[0] for p in parameters), mean)
            self._pending = named(region, self.sensors), mean
        return self._pending[0]

    def update(self, y: Any) -> Outcome:
        """Observe the next reading (N,), NaN = missing: score it, move the state and the backbone."""
        y = self._reading(y)
        region = self.predict()
        residual = y - self._pending[1]
        score, inside = float(region.score(y)), bool(region.contains(y))
        if not np.isnan(residual).any():
            self.state = self.rule.radii(self.state, residual[None])[1]
        self._means(y[None])
        self._pending = None
        return Outcome(score, float(region.radius), inside, int(y.size - np.isnan(y).sum()))

    def run(self, panel: Any, *, regions: bool = True, progress: Callable[[int], None] | None = None) -> Run:
        """Predict and update through a whole panel: the numbers of stepping, only faster."""
        return self.run_with((), panel, regions=regions, progress=progress)[0][0]

    def run_with(
        self,
        others: Sequence[Self],
        panel: Any,
        *,
        regions: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[tuple[Run, float]]:
        """Runs of this row and of others that differ in their wrap only, with the seconds each would take alone.

        The own sets and the scores are made once for all.
        """
        self._require_calibrated()
        panel = panel_of(panel, self.sensors)
        values, begin = self._values_of(panel), time.perf_counter()
        means = self._means(values)
        residuals = values - means
        complete = ~np.isnan(residuals).any(axis=1)
        seen = np.concatenate([[0], np.cumsum(complete)[:-1]]) if len(values) else np.zeros(0, int)
        sets, self.state = self.rule.radii(self.state, residuals[complete])
        shared, runs, wrapped_scores = time.perf_counter() - begin, [], None
        for one in (self, *others):
            begin, parameters = time.perf_counter(), sets
            if one is not self:
                if wrapped_scores is None:
                    own = self.rule.shape(
                        self.state, tuple(part[:-1] for part in sets), np.zeros_like(residuals[complete])
                    )
                    wrapped_scores = own.score(residuals[complete])
                parameters, one.state = one.rule.factors(
                    one.state._replace(own=self.state.own), sets[:-1], wrapped_scores
                )
            region = named(one.rule.shape(one.state, tuple(part[seen] for part in parameters), means), self.sensors)
            one._pending, one.history, one.seen = None, self.history, self.seen
            run = Run(
                sensors=panel.sensors,
                timestamps=panel.timestamps,
                values=values,
                mean=means,
                lower=region.bounds[0],
                upper=region.bounds[1],
                score=np.atleast_1d(region.score(values)),
                radius=np.atleast_1d(region.radius),
                inside=np.atleast_1d(region.contains(values)),
                width=region.width,
                width_full=region.width_full,
                log_volume=region.log_volume,
                infinite_share=one.infinite_share,
                regions=region if regions else None,
            )
            runs.append((run, shared + time.perf_counter() - begin))
        if progress is not None:
            progress(len(values))
        return runs

    def rewrapped(self, calibration: Any) -> Self:
        """An independent row with another wrap, started from the same scores."""
        require(isinstance(self.rule, WrappedRule), f"{self.name}: a row without a wrap has no scores for another one")
        other = self.copy()
        other.rule, other.state = rewrapped(self.rule, self.state, calibration)
        other._pending = None
        return other

    def trust(self) -> Trust:
        """Refused: no calibration scores of one frozen rule are kept to judge new ones by."""
        raise InputError(f"{self.name}: no calibration scores are kept to judge by: use a filter or another row")

    def contributions(self, y: Any) -> Array:
        """What each sensor of a reading adds to its score under the next region (N,); 0 where missing."""
        return self.predict().contributions(self._reading(y))

    def given_others(self, y: Any) -> None:
        """None: there is no law to say what one reading lets expect of another."""
        return None

    def own_bounds(self) -> None:
        """None: no residuals of single sensors are kept."""
        return None

    def copy(self) -> Self:
        """An independent row in the same state."""
        return copy.copy(self)  # every part is an immutable value

    def save(self, path: str | Path) -> None:
        """Write a model folder."""
        with refusing(path):
            self._require_sound(require_next_set)
        save_folder(path, {name: getattr(self, name) for name in STORED})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model folder; the row goes on exactly where it was saved."""
        with reading(path) as stored:
            return cls.restored(stored)

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The row in a model folder that was read."""
        row = cls.__new__(cls)
        for name, value in stored.parts(STORED, LATER).items():
            setattr(row, name, value)
        row._pending = None
        row._require_sound(require_working)
        return row

    def _require_sound(self, check: Callable[..., None]) -> None:
        """Refuse parts that do not make a set; `check` says what the next one must be."""
        require(self.warmup >= 1, f"warmup must be at least 1, got {self.warmup}")
        if self.sensors:
            require_units(self.sensors, self.shift, self.scale)
            require_usual(self.sensors, self.usual)
        if self.state is not None:
            check(self, adapts=isinstance(self.rule, WrappedRule))

    def _means(self, values: Array) -> Array:
        """Means (T, N) in the units of the data; moves the history of the backbone to the end."""
        scaled = (values - self.shift) / self.scale
        means, lags = np.asarray(self.backbone.predict(scaled, self.history), dtype=float), self.backbone.lags
        if self.cold:
            means[: max(lags - self.seen, 0)] = self.backbone.mean
        self.history, self.seen = self.backbone.fill(scaled, self.history)[-lags:], min(self.seen + len(values), lags)
        return self.shift + self.scale * means

    def _values_of(self, panel: Panel) -> Array:
        require(bool(self.sensors), f"{self.name}: not fitted, call fit(panel) first")
        if panel.sensors != self.sensors:
            raise InputError(f"{self.name}: the panel has other sensors than the model: use panel.select(row.sensors)")
        return scorable(panel).values

    def _reading(self, y: Any) -> Array:
        return reading_of(y, self.sensors)

    def _require_calibrated(self) -> None:
        require(self.state is not None, f"{self.name}: not calibrated, call calibrate(panel) first")


STORED: dict[str, Any] = {  # what a model folder holds, and of what kind it is
    "rule": Rule,
    "backbone": Backbone,
    "warmup": int,
    "standardize": bool,
    "cold": bool,
    "sensors": tuple[str, ...],
    "shift": Array,
    "scale": Array,
    "history": Array,
    "seen": int,
    "state": Any,
    "n_calibration": int,
    "usual": Usual | None,
}
LATER = {"cold": False, "seen": 0, "usual": None}  # parts that older folders lack, and what stands for them
