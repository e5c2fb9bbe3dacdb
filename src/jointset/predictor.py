"""JointPredictor: filter + score + calibration, from a training panel to a live joint prediction set."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.calibration import Split, minimum_scores
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.laws import concatenate
from jointset.panel import Panel
from jointset.scores import Mahalanobis
from jointset.storage import load_folder, save_folder

BLOCK = 16_000_000  # numbers a block of covariances may hold when a filter emits a new one at every step


class Outcome(NamedTuple):
    """What one reading said: its score, the radius it was held against, and whether it was inside."""

    score: float
    radius: float
    inside: bool
    observed: int  # sensors that had a reading; with 0 the score is NaN and nothing adapts


@dataclass(frozen=True)
class Run:
    """Regions and outcomes of a whole panel, row by row; sizes are in the units of the data."""

    sensors: tuple[str, ...]
    timestamps: Array | None
    values: Array  # (T, N)
    mean: Array  # (T, N)
    lower: Array  # (T, N)
    upper: Array  # (T, N)
    score: Array  # (T,), NaN where a row has no reading
    radius: Array  # (T,)
    inside: Array  # (T,) bool
    width: Array  # (T,)
    width_full: Array  # (T,)
    log_volume: Array  # (T,)
    infinite_share: float  # share of steps whose radius was infinite or had to be clipped, since calibration
    regions: Any = None  # the regions themselves, batched over time

    @property
    def joint(self) -> float:
        """Share of rows inside their region, among rows with at least one reading."""
        seen = ~np.isnan(self.score)
        return float(self.inside[seen].mean()) if seen.any() else float("nan")

    @property
    def marginal(self) -> float:
        """Share of single readings inside the bounds of their sensor."""
        seen = ~np.isnan(self.values)
        ok = (self.values >= self.lower) & (self.values <= self.upper)
        return float(ok[seen].mean()) if seen.any() else float("nan")

    def summary(self) -> dict[str, float]:
        """Coverage and mean sizes."""
        return {
            "joint": self.joint,
            "marginal": self.marginal,
            "width": float(np.mean(self.width)),
            "width_full": float(np.mean(self.width_full)),
            "log_volume": float(np.mean(self.log_volume)),
            "infinite_share": self.infinite_share,
            "steps": len(self.score),
        }


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
        require(warmup >= 1, f"warmup must be at least 1 (keep all scores), got {warmup}")
        self.filter = filter
        self.score = Mahalanobis() if score is None else score
        self.calibration = Split() if calibration is None else calibration
        self.warmup = warmup
        self.standardize = standardize
        self.sensors: tuple[str, ...] = ()  # set by fit, with the next two
        self.shift: Array = np.empty(0)
        self.scale: Array = np.empty(0)
        self.filter_state: Any = None  # set by calibrate, with the next two; advanced by update and run
        self.calibration_state: Any = None
        self.calibration_scores: Array = np.empty(0)  # in time order; (m, K) where a set has K radii
        self.last_time: int | None = None  # time stamp of the last row seen, where there are stamps
        self._pending: tuple[Any, float] | None = None  # law and radius of the next step

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

    # ------------------------------------------------------------------ fit and calibrate

    def fit(self, panel: Panel, **options: Any) -> JointPredictor:
        """Fit the filter on a training panel; forgets any earlier calibration. Options go to the filter's `fit`."""
        panel.require_varying()
        shift, scale = np.zeros(panel.n_sensors), np.ones(panel.n_sensors)
        if self.standardize:
            shift, scale = np.nanmean(panel.values, axis=0), np.nanstd(panel.values, axis=0)
        self.filter = self.filter.fit(panel.with_values((panel.values - shift) / scale), **options)
        self.sensors, self.shift, self.scale = panel.sensors, shift, scale
        self.filter_state = self.calibration_state = self._pending = None
        return self

    def calibrate(self, panel: Panel) -> JointPredictor:
        """Score a panel from a fresh filter state and set the radius; the state is then carried on."""
        values = self._values_of(panel)
        laws = self._laws(values, self.filter.start())
        parts = [(self.score.score(law, rows), after) for law, rows, after in laws]
        scores = np.concatenate([part for part, _ in parts])[self.warmup - 1 :]
        scores = scores[~np.isnan(scores)]  # rows without any reading
        needed = minimum_scores(self.alpha)
        require(
            len(scores) >= needed,
            f"{len(scores)} calibration scores (of {len(values)} rows, warm-up {self.warmup}) are too few for "
            f"alpha={self.alpha}: at least {needed} are needed; calibrate on more rows, or choose a larger alpha",
        )
        self.calibration_state, self.calibration_scores = self.calibration.start(scores), scores
        self.filter_state, self._pending = parts[-1][1], None
        self._saw(panel)
        return self

    # ------------------------------------------------------------------ one step at a time

    def predict(self) -> Any:
        """The region for the next reading."""
        return self.score.region(*self._ahead())

    def update(self, y: Array) -> Outcome:
        """Observe the next reading (N,), NaN = missing: score it, adapt the radius, advance the filter."""
        y = self._reading(y)
        law, radius = self._ahead()
        score = float(self.score.score(law, y))
        after = self.filter.step(self.filter_state, (y - self.shift) / self.scale)
        self.calibration_state = self.calibration.update(self.calibration_state, score)
        self.filter_state, self._pending = after, None
        return Outcome(score, radius, score <= radius, int(y.size - np.isnan(y).sum()))

    def contributions(self, y: Array) -> Array:
        """How much each sensor of a reading adds to its score under the next law (N,); 0 where missing."""
        return self.score.contributions(self._ahead()[0], self._reading(y))

    def _ahead(self) -> tuple[Any, float]:
        """Law and radius of the next step, in the units of the data."""
        self._require_calibrated()
        if self._pending is None:
            law = self.filter.law(self.filter_state).rescale(self.shift, self.scale)
            self._pending = law, float(self.calibration.radius(self.calibration_state))
        return self._pending

    # ------------------------------------------------------------------ whole panels

    def run(self, panel: Panel, *, regions: bool = True, progress: Callable[[int], None] | None = None) -> Run:
        """Predict and update through a whole panel: the same numbers as step by step, only faster.

        The predictor ends where the panel ends, as after that many updates; use `copy()` to keep the present one.
        With `regions=False` only bounds and sizes are kept, which matters when the covariance changes at every step.
        """
        self._require_calibrated()
        values = self._values_of(panel)
        pieces = []
        state, calibrated = self.filter_state, self.calibration_state
        for law, rows, after in self._laws(values, state):
            state = after
            scores = np.atleast_1d(self.score.score(law, rows))
            radii, calibrated = self.calibration.run(calibrated, scores)
            region = self.score.region(law, radii)
            piece = {
                "mean": law.mean,
                "lower": region.bounds[0],
                "upper": region.bounds[1],
                "score": scores,
                "radius": radii,
                "inside": scores <= radii,
                "width": region.width,
                "width_full": region.width_full,
                "log_volume": region.log_volume,
            }
            pieces.append((piece, law if regions else None))
            if progress is not None:
                progress(len(rows))
        self.filter_state, self.calibration_state, self._pending = state, calibrated, None
        self._saw(panel)
        columns = {key: np.concatenate([piece[key] for piece, _ in pieces]) for key in pieces[0][0]}
        whole = self.score.region(concatenate([law for _, law in pieces]), columns["radius"]) if regions else None
        share = self.infinite_share
        return Run(panel.sensors, panel.timestamps, values, infinite_share=share, regions=whole, **columns)

    def _laws(self, values: Array, state: Any) -> Iterator[tuple[Any, Array, Any]]:
        """Laws of consecutive blocks of rows in the units of the data, those rows, and the state after them."""
        size = max(1, BLOCK // values.shape[1] ** 2)
        for start in range(0, max(len(values), 1), size):
            rows = values[start : start + size]
            laws, state = self.filter.run((rows - self.shift) / self.scale, state)
            yield laws.rescale(self.shift, self.scale), rows, state

    # ------------------------------------------------------------------ checks

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
        return panel.values

    def _reading(self, y: Array) -> Array:
        y = np.asarray(y, dtype=float)
        n = len(self.sensors)
        require(y.shape == (n,), f"a reading needs {n} values in the order of the sensors, got shape {y.shape}")
        if np.isinf(y).any():
            name = self.sensors[int(np.flatnonzero(np.isinf(y))[0])]
            raise InputError(f"the reading of sensor {name!r} is infinite: pass NaN for a missing reading")
        return y

    def _require_calibrated(self) -> None:
        require(self.calibration_state is not None, "the predictor is not calibrated: call calibrate(panel) first")

    # ------------------------------------------------------------------ copies and files

    def copy(self) -> JointPredictor:
        """An independent predictor in the same state."""
        return copy.copy(self)  # every part is an immutable value

    def save(self, path: str | Path) -> None:
        """Write a model folder: `model.json` and `arrays.safetensors`."""
        save_folder(path, {name: getattr(self, name) for name in STORED})

    @classmethod
    def load(cls, path: str | Path) -> JointPredictor:
        """Read a model folder; the predictor goes on exactly where it was saved."""
        parts = load_folder(path, STORED)
        predictor = cls(parts["filter"])
        for name in STORED:
            setattr(predictor, name, parts[name])
        return predictor


STORED = (
    "filter",
    "score",
    "calibration",
    "warmup",
    "standardize",
    "sensors",
    "shift",
    "scale",
    "filter_state",
    "calibration_state",
    "calibration_scores",
    "last_time",
)


def _sensor_mismatch(given: tuple[str, ...], expected: tuple[str, ...]) -> str:
    missing = [s for s in expected if s not in given]
    extra = [s for s in given if s not in expected]
    if missing:
        return f"sensor {missing[0]!r} ({len(missing)} in all) is missing from the panel: the model was fitted on it"
    if extra:
        return f"sensor {extra[0]!r} ({len(extra)} in all) is unknown to the model: use panel.select(predictor.sensors)"
    return "the panel has the model's sensors in another order: use panel.select(predictor.sensors)"
