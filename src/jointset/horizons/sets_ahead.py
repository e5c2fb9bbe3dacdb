"""The sets of the next H steps: one for each step, and one that holds all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.contracts import Array, Index, Region
from jointset.errors import require
from jointset.inputs.labels import in_order
from jointset.regions import Sizes, named
from jointset.support.cached import cached_property
from jointset.support.notebook import listed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class StepRegions(Sizes):
    """Sets of single steps, batched over the steps: `regions[h]` is that of step h, from 0.

    Each holds the whole row of its step with the coverage asked for; how often all of them hold is not said.
    """

    parts: tuple[Region, ...]

    @cached_property
    def center(self) -> Array:  # type: ignore[override]
        """Centres (H, N)."""
        return np.stack([part.center for part in self.parts])

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """Half-widths (H, N)."""
        return np.stack([part.half_width for part in self.parts])

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Ends (H, N) of each."""
        return _ends(part.bounds for part in self.parts)

    def bounds_for(self, y: object) -> tuple[Array, Array]:
        """Ends of those that rows of readings (..., H, N) with gaps are held against."""
        y = in_order(y, self.sensors)
        return _ends(part.bounds_for(y[..., h, :]) for h, part in enumerate(self.parts))

    @property
    def log_volume(self) -> Array:
        """(1/N) log of the volume of each (H,)."""
        return np.array([part.log_volume for part in self.parts])

    def contains(self, y: object) -> Array:
        """Whether each holds its row of readings (..., H, N): (..., H)."""
        y = in_order(y, self.sensors)
        require(
            y.ndim >= 2 and y.shape[-2:] == self.center.shape,
            f"readings have shape {y.shape}, expected {self.center.shape}: a row for every step",
        )
        return np.stack([np.asarray(part.contains(y[..., h, :])) for h, part in enumerate(self.parts)], axis=-1)

    def __getitem__(self, index: int | slice) -> Any:
        chosen = self.parts[index]
        return self._named_like(StepRegions(chosen)) if isinstance(chosen, tuple) else chosen

    def __len__(self) -> int:
        return len(self.parts)


def _ends(parts: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Lower and upper ends (..., H, N) of parts (..., N)."""
    lower, upper = zip(*parts, strict=True)
    return np.stack(lower, axis=-2), np.stack(upper, axis=-2)


@dataclass(frozen=True, repr=False)
class WholeRegion(Sizes):
    """One set for all H N readings, flattened step by step: it holds all of them with the coverage asked for."""

    inner: Any
    steps: int
    columns: tuple[str, ...] = ()  # names of the N sensors, where they are known

    @property
    def center(self) -> Array:  # type: ignore[override]
        """Centre (H N,)."""
        return np.asarray(self.inner.center)

    @property
    def half_width(self) -> Array:  # type: ignore[override]
        """Half-widths (H N,)."""
        return np.asarray(self.inner.half_width)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Ends (H N,)."""
        lower, upper = self.inner.bounds
        return lower, upper

    def bounds_for(self, y: object) -> tuple[Array, Array]:
        """Ends (..., H N) of the set that readings (..., H, N) or (..., H N) with gaps are held against."""
        lower, upper = self.inner.bounds_for(self._flat(y))
        return lower, upper

    def facts(self) -> dict[str, str]:
        """See `Sizes`: how many steps it holds, too."""
        size = self.center.shape[-1]
        names = listed(self.columns) if self.columns else f"{size // self.steps:,}"
        return {"steps": f"{self.steps}"} | super().facts() | {"sensors": names}

    @property
    def radius(self) -> float:
        """Radius of the set."""
        return float(self.inner.radius)

    @property
    def log_volume(self) -> Array:
        """(1 / H N) log of the volume."""
        return np.asarray(self.inner.log_volume)[()]

    def contains(self, y: object) -> Array:
        """Whether all readings, (..., H, N) or (..., H N), lie inside; missing ones do not count."""
        return np.asarray(self.inner.contains(self._flat(y)))[()]

    def _flat(self, y: object) -> Array:
        """Readings (..., H N)."""
        y, size = in_order(y, self.columns), self.center.shape[-1]
        whole = (self.steps, size // self.steps)
        if y.ndim >= 2 and y.shape[-2:] == whole:
            y = y.reshape(*y.shape[:-2], size)
        require(y.shape[-1:] == (size,), f"readings have shape {y.shape}, expected {whole} or ({size},)")
        return y

    def __getitem__(self, index: Index) -> WholeRegion:
        return WholeRegion(self.inner[index], self.steps, self.columns)


@dataclass(frozen=True, repr=False)
class AheadSets:
    """What is to be expected of the next H rows.

    mean (H, N) · steps: a set for each step · together: one set for all H N readings · own: half-widths (H, N) of
    bands that hold one sensor at one step, as often as a set holds all; None where they are not known.
    """

    mean: Array
    steps: StepRegions
    together: WholeRegion
    sensors: tuple[str, ...]
    own: Array | None = None

    def __repr__(self) -> str:
        first, last, whole = (*self.steps.log_volume[[0, -1]], self.together.log_volume)
        sizes = f"log_volume of the first step {first:.4g}, of the last {last:.4g}, of all together {whole:.4g}"
        return f"AheadSets(steps {self.horizon}, sensors {listed(self.sensors)}, {sizes})"

    @property
    def own_bounds(self) -> tuple[Array, Array] | None:
        """Lower and upper ends (H, N) of the bands of single sensors; None where they are not known."""
        return None if self.own is None else (self.mean - self.own, self.mean + self.own)

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.mean)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper ends (H, N) of the sets of single steps."""
        return self.steps.bounds

    @property
    def bounds_together(self) -> tuple[Array, Array]:
        """Lower and upper ends (H, N) of the set of all steps: wider, as it holds all of them at once."""
        lower, upper = self.together.bounds
        return lower.reshape(self.mean.shape), upper.reshape(self.mean.shape)

    def to_pandas(self, sensors: Sequence[str] | None = None) -> pd.DataFrame:
        """A row for every step and sensor: mean, the ends of both kinds of set, and the sensor's own band."""
        import pandas as pd

        chosen = [self.sensors.index(name) for name in sensors or self.sensors]
        (lower, upper), (all_lower, all_upper) = self.bounds, self.bounds_together
        columns = {"lower": lower, "mean": self.mean, "upper": upper}
        columns |= {"together_lower": all_lower, "together_upper": all_upper}
        if self.own_bounds is not None:
            columns |= {"own_lower": self.own_bounds[0], "own_upper": self.own_bounds[1]}
        index = pd.MultiIndex.from_product(
            [range(1, self.horizon + 1), [self.sensors[i] for i in chosen]], names=["step", "sensor"]
        )
        return pd.DataFrame({name: part[:, chosen].reshape(-1) for name, part in columns.items()}, index=index)


def sets_ahead(regions: Sequence[Region], sensors: tuple[str, ...], own: Array | None = None) -> AheadSets:
    """The sets of single steps and, the last of the regions, of all steps."""
    *parts, whole = regions
    steps = named(StepRegions(tuple(named(part, sensors) for part in parts)), sensors)
    return AheadSets(steps.center, steps, WholeRegion(whole, len(parts), sensors), sensors, own)
