"""What readings say about a predictor: the outcome of one, and the run of a whole panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.abilities import Growing
from jointset.contracts import Array, Forecast, Region, Score
from jointset.predicting.clock_coverage import ClockCoverage, clock_coverage
from jointset.support.notebook import listed, shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from jointset.calibration.shared_level import Course


class Outcome(NamedTuple):
    """What one reading said: its score, the radius it was held against, and whether it was inside."""

    score: float
    radius: float
    inside: bool
    observed: int  # sensors that had a reading; with 0 the score is NaN and nothing adapts


@dataclass(frozen=True, repr=False)
class Run:
    """Regions and outcomes of a whole panel, row by row; sizes are in the units of the data."""

    sensors: tuple[str, ...]
    timestamps: Array | None
    values: Array  # (T, N)
    mean: Array  # (T, N)
    lower: Array  # (T, N), of the set that a row is held against: see `Region.bounds_for`
    upper: Array  # (T, N)
    score: Array  # (T,), NaN where a row has no reading
    radius: Array  # (T,)
    inside: Array  # (T,) bool
    width: Array  # (T,)
    width_full: Array  # (T,)
    log_volume: Array  # (T,)
    infinite_share: float  # share of steps whose radius was infinite or had to be clipped, since calibration
    log_volume_held: Array | None = None  # (T,), of the least set of the same law that holds the set and the reading
    regions: Any = None  # the regions themselves, batched over time
    ahead: Any = None  # `AheadRun` of the sets for the next steps, where the predictor has a horizon

    @property
    def joint(self) -> float:
        """Share of rows inside their region, among rows with at least one reading."""
        seen = ~np.isnan(self.score)
        return float(self.inside[seen].mean()) if seen.any() else float("nan")

    @property
    def clock(self) -> ClockCoverage | None:
        """Coverage by hour and weekday; None where the rows have no clock."""
        return clock_coverage(self.timestamps, self.inside, ~np.isnan(self.score))

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
            **{name: _mean(getattr(self, name)) for name in ("width", "width_full", "log_volume")},
            "log_mean_volume": log_mean(self.log_volume),
            "infinite_share": self.infinite_share,
            "steps": len(self.score),
        }

    def __repr__(self) -> str:
        facts = self.facts()
        return f"Run({', '.join(f'{name} {text}' for name, text in facts.items())})"

    def _repr_html_(self) -> str:
        return shown("Run", self.facts())

    def facts(self) -> dict[str, str]:
        """Steps, sensors, coverage and mean sizes, in words."""
        sizes = self.summary()
        steps = {"steps": f"{sizes.pop('steps'):,}", "sensors": listed(self.sensors)}
        return steps | {name: f"{size:.4g}" for name, size in sizes.items()}

    def to_pandas(self, *, bounds: bool = False) -> pd.DataFrame:
        """Score, radius and inside, a row a step, indexed by UTC time (or by step); with the bounds of every sensor.

        `inside` is empty where a row had no reading.
        """
        import pandas as pd

        index = None
        if self.timestamps is not None:
            index = pd.to_datetime(self.timestamps, unit="s", utc=True).rename("time")
        inside = pd.array(self.inside, dtype="boolean")
        inside[np.isnan(self.score)] = pd.NA
        columns: dict[str, Any] = {"score": self.score, "radius": self.radius, "inside": inside}
        for i, name in enumerate(self.sensors if bounds else ()):
            columns |= {f"{name}.lower": self.lower[:, i], f"{name}.upper": self.upper[:, i]}
        return pd.DataFrame(columns, index=index)

    def to_xarray(self) -> xr.Dataset:
        """Readings, means and ends over time and sensor; score, radius, inside and sizes over time (extra `xarray`)."""
        from jointset.inputs.labelled_arrays import arrays_of

        return arrays_of(self)


def _mean(sizes: Array) -> float:
    """Mean, NaN of none."""
    return float(np.mean(sizes)) if len(sizes) else float("nan")


def log_mean(logs: Array) -> float:
    """Log of the mean of exp(logs); of log-volumes per sensor the log of the mean volume^(1/N).

    Unlike their own mean it grows when a radius shrinks at some steps and explodes at others, and an empty set counts
    as volume 0. One set without an end makes it infinite.

    >>> round(log_mean(np.log([1.0, 3.0])), 4), round(log_mean(np.array([-np.inf, 0.0])), 4)
    (0.6931, -0.6931)
    """
    top = float(np.max(logs)) if len(logs) else float("nan")
    return top + float(np.log(np.mean(np.exp(logs - top)))) if np.isfinite(top) else top


def columns_of(score: Score[Any], law: Forecast, rows: Array, scores: Array, found: Course) -> dict[str, Array]:
    """The columns of a run for one block of rows, `found` being the course of the rule through their scores."""
    region = score.region(law, found.radii)
    lower, upper = region.bounds_for(rows)
    return {
        "mean": law.mean,
        "lower": lower,
        "upper": upper,
        "score": found.score,
        "radius": found.radius,
        "radii": found.radii,
        "inside": np.asarray((scores <= found.radii).all(axis=tuple(range(1, scores.ndim)))),
        "width": region.width,
        "width_full": region.width_full,
        "log_volume": region.log_volume,
        "log_volume_held": held_log_volume(score, law, region, np.fmax(scores, found.radii)),
    }


def held_log_volume(score: Score[Any], law: Forecast, region: Region, radii: Array) -> Array:
    """Log-volumes (T,) of the sets of these radii; where such a set cannot be had from the law, that is infinite."""
    grown = score.grown if isinstance(score, Growing) else score.region
    with np.errstate(invalid="ignore"):
        found = np.asarray(grown(law, radii).log_volume)
    return np.fmax(np.where(np.isnan(found), np.inf, found), region.log_volume)
