"""Joint prediction sets: the readings whose score is at most the radius.

A region is batched over time like the law it comes from, and `region[t]` is the set of one step. An infinite radius is
the whole space; a negative one the empty set. Sizes follow one definition for all shapes: h_i is the half-width of the
projection on sensor i, `width` = sqrt(mean h_i^2), `width_full` = mean 2 h_i, `log_volume` = (1/N) log Vol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from jointset.algebra.lean import Lean
from jointset.algebra.partial import (
    UNCALIBRATED,
    GapScale,
    held_distances,
    held_maximum,
    measured_distance,
    measured_maximum,
    shares_of,
)
from jointset.algebra.ties import ROUNDING
from jointset.algebra.volumes import box_log_volume, unit_ball_log_volume
from jointset.contracts import Array, Index, Law, Reading, Region
from jointset.distances import mahalanobis_score, studentised_score
from jointset.errors import require
from jointset.inputs.labels import in_order
from jointset.support.cached import cached_property
from jointset.support.copies import shallow
from jointset.support.notebook import listed, shown

if TYPE_CHECKING:
    import pandas as pd

    from jointset.scores import BlockMaximum


S = TypeVar("S")


class Sizes:
    """Sizes that follow from the centre and the half-widths (..., N) of the projections."""

    center: Array
    half_width: Array
    sensors: tuple[str, ...] = ()  # names, where a predictor made the region

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper end of the projection on every sensor, further out by what rounding can move a tie."""
        reach = self.half_width * (1.0 + 2.0 * ROUNDING)
        return self.center - reach, self.center + reach

    def bounds_for(self, y: Reading) -> tuple[Array, Array]:
        """`bounds` of the set that readings (..., N) are held against: of the sensors that were read.

        Where a reading is missing they are those of the set of complete readings.
        """
        y, ends = self.ordered(y), self.bounds
        missing = np.isnan(y)
        if not np.count_nonzero(missing):
            return ends
        reach = self.reach(y)
        kept = missing | missing.all(-1, keepdims=True) | (reach == 1.0)
        lower, upper = (np.where(kept, *both) for both in zip(ends, self.grown(reach), strict=True))
        return lower, upper

    def grown(self, reach: Array | float) -> tuple[Array, Array]:
        """`bounds` of a set with a size that is so many times as large (..., N) or (..., 1)."""
        lower, upper = (self.center + reach * (end - self.center) for end in self.bounds)
        return lower, upper

    def reach(self, y: Array) -> Array:
        """What half-widths are multiplied by, (..., N) or (..., 1), for the sensors read of readings with gaps."""
        return np.ones((*np.shape(y)[:-1], 1))

    @property
    def width(self) -> Array:
        """sqrt(mean_i h_i^2)."""
        return np.sqrt(np.mean(self.half_width**2, axis=-1))

    @property
    def width_full(self) -> Array:
        """mean_i 2 h_i."""
        return 2.0 * np.mean(self.half_width, axis=-1)

    def ordered(self, y: Reading) -> Array:
        """Readings (..., N) as they are; series, mappings and data frames by their labels; of one sensor also (...)."""
        y, shape = in_order(y, self.sensors), np.shape(self.center)
        y = y[..., None] if shape[-1] == 1 and y.shape == shape[:-1] else y
        require(y.shape[-1:] == shape[-1:], f"readings have shape {y.shape}: give {shape[-1]} values in each row")
        return y

    def _named_like(self, part: S) -> S:
        """A part of it with the names of its sensors."""
        return named(part, self.sensors)

    def facts(self) -> dict[str, str]:
        """How many steps and sensors it has, and its sizes, medians over the steps, in words."""
        steps, n = np.shape(self.center)[:-1], np.shape(self.center)[-1]
        sizes = {name: np.median(getattr(self, name)) for name in ("width", "width_full", "log_volume")}
        count = {"steps": f"{steps[0]:,}"} if steps else {}
        return (
            count
            | {"sensors": listed(self.sensors) if self.sensors else f"{n:,}"}
            | {name: f"{size:.4g}" for name, size in sizes.items()}
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name} {text}' for name, text in self.facts().items())})"

    def _repr_html_(self) -> str:
        return shown(type(self).__name__, self.facts())

    def to_pandas(self, sensors: Sequence[str] | None = None) -> pd.DataFrame:
        """Lower end, mean and upper end of the projection on every sensor; of the region of one step.

        `sensors` chooses among the names it knows; of a set that knows none, or others, they are the names of all.
        """
        import pandas as pd

        lower, upper = self.bounds
        require(lower.ndim == 1, f"a region of {len(lower)} steps: take one, region[t], or run.to_pandas(bounds=True)")
        given = list(sensors or ())
        chosen = bool(given) and set(given) <= set(self.sensors)
        names = list(self.sensors if chosen else given or self.sensors or range(len(lower)))
        require(len(names) == len(lower), f"{len(names)} names for {len(lower)} sensors: name all, or those it knows")
        frame = pd.DataFrame(
            {"lower": lower, "mean": self.center, "upper": upper}, index=pd.Index(names, name="sensor")
        )
        return frame.loc[given] if chosen else frame


def named(region: S, sensors: tuple[str, ...]) -> S:
    """The region with the names of its sensors; one of another kind as it is."""
    if not isinstance(region, Sizes):
        return region
    known = shallow(region)
    object.__setattr__(known, "sensors", sensors)
    return known


@dataclass(frozen=True, repr=False)
class _AroundLaw(Sizes):
    """A set around the mean of a law, its radius (...) or one number for all steps.

    `gaps` puts rows with gaps on the scale of the radius.
    """

    law: Law
    radius: Array | float
    gaps: GapScale = UNCALIBRATED

    @property
    def center(self) -> Array:  # type: ignore[override]
        """Mean of the law."""
        return self.law.mean

    def __getitem__(self, index: Index) -> Self:
        radius = self.radius if np.ndim(self.radius) == 0 else np.asarray(self.radius)[index]
        return self._named_like(replace(self, law=self.law[index], radius=radius, gaps=self.gaps.at(index)))


@dataclass(frozen=True, repr=False)
class Ellipsoid(_AroundLaw):
    """{y : (y - m)' S^-1 (y - m) <= radius}: the radius is on the squared scale."""

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """sqrt(radius S_ii), the support function along the sensor axes."""
        if isinstance(self.radius, float):  # one set, as every live row has
            return math.sqrt(max(self.radius, 0.0)) * np.sqrt(self.law.variance)
        return np.sqrt(np.maximum(self.radius, 0.0))[..., None] * np.sqrt(self.law.variance)

    def contains(self, y: Reading) -> Array:
        """Whether the whole reading lies inside, that is score <= radius."""
        return mahalanobis_score(self.law, self.ordered(y), self.gaps) <= self.radius

    def reach(self, y: Array) -> Array:
        """See `Sizes`: the root of the squared distances whose score is the radius, over the radius."""
        read = measured_distance(np.zeros(y.shape[:-1]), np.isnan(y))[..., None, :]
        held = held_distances(self.gaps.own_radius(self.radius, y), read, self.gaps)
        return np.sqrt(shares_of(held, self.radius))[..., None]

    @property
    def log_volume(self) -> Array:
        """(1/N) (log kappa_N + (N/2) log radius + (1/2) log det S)."""
        n = self.law.mean.shape[-1]
        with np.errstate(divide="ignore"):  # radius 0 has volume 0
            log_radius = 0.5 * np.log(np.maximum(self.radius, 0.0))
        return unit_ball_log_volume(n) / n + log_radius + 0.5 * self.law.log_det / n


@dataclass(frozen=True, repr=False)
class Box(_AroundLaw):
    """{y : |y_i - m_i| <= radius sd_i for all i}; with a lean, one end further from the mean than the other."""

    lean: Lean | None = None

    def _reaches(self, factor: Array | float) -> tuple[Array, Array]:
        """How far below and above the mean it reaches with a radius that is so many times as large."""
        radius, sd = np.maximum(self.radius, 0.0)[..., None] * factor, np.sqrt(self.law.variance)
        return (radius * sd, radius * sd) if self.lean is None else self.lean.reaches(radius, self.law.mean, sd)

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """radius sd_i, with a lean the mean of both sides."""
        below, above = self._reaches(1.0)
        return below if self.lean is None else 0.5 * (below + above)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper end of every sensor, further out by what rounding can move a tie."""
        return self.grown(1.0)

    def grown(self, reach: Array | float) -> tuple[Array, Array]:
        """See `Sizes`."""
        below, above = self._reaches(reach * (1.0 + 2.0 * ROUNDING))
        return self.center - below, self.center + above

    def __getitem__(self, index: Index) -> Self:
        chosen = super().__getitem__(index)
        return chosen if self.lean is None else self._named_like(replace(chosen, lean=self.lean.at(index)))

    def contains(self, y: Reading) -> Array:
        """Whether every observed sensor lies inside, that is score <= radius."""
        return studentised_score(self.law, self.ordered(y), self.gaps, self.lean) <= self.radius

    def reach(self, y: Array) -> Array:
        """See `Sizes`: the largest |residual| / sd whose score is the radius, over the radius."""
        read = measured_maximum(np.zeros(y.shape[:-1]), np.isnan(y), self.law, self.gaps.level)
        held = held_maximum(self.gaps.own_radius(self.radius, y), read, self.gaps)
        return shares_of(held, self.radius)[..., None]

    @property
    def log_volume(self) -> Array:
        """(1/N) sum_i log 2 h_i."""
        return box_log_volume(self.half_width)


@dataclass(frozen=True, repr=False)
class Product(Sizes):
    """Product of regions on disjoint blocks of sensors that together make up all of them."""

    blocks: tuple[Array, ...]
    parts: tuple[Region, ...]

    def __post_init__(self) -> None:
        check_blocks(self.blocks, sum(len(block) for block in self.blocks))
        require(len(self.blocks) == len(self.parts), "a product needs one region for each block of sensors")

    @cached_property
    def center(self) -> Array:  # type: ignore[override]
        """Centres of the blocks, in sensor order."""
        return self._gather([part.center for part in self.parts])

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """Half-widths of the blocks, in sensor order."""
        return self._gather([part.half_width for part in self.parts])

    def _gather(self, pieces: Sequence[Array]) -> Array:
        return np.concatenate(pieces, axis=-1)[..., np.argsort(np.concatenate(self.blocks))]

    def contains(self, y: Reading) -> Array:
        """Whether every block that has a reading contains it; False where no block has one."""
        y = self.ordered(y)
        inside = np.ones(y.shape[:-1], dtype=bool)
        for block, part in zip(self.blocks, self.parts, strict=True):
            inside &= part.contains(y[..., block]) | np.isnan(y[..., block]).all(-1)
        return (inside & ~np.isnan(y).all(-1))[()]

    @property
    def log_volume(self) -> Array:
        """Volumes of the blocks multiply, so N times log_volume adds up."""
        total = sum(len(b) * p.log_volume for b, p in zip(self.blocks, self.parts, strict=True))
        return np.asarray(total)[()] / sum(len(block) for block in self.blocks)

    def __getitem__(self, index: Index) -> Product:
        return self._named_like(Product(self.blocks, tuple(part[index] for part in self.parts)))


@dataclass(frozen=True, repr=False)
class ScoredProduct(Product):
    """The product of a score's regions: what it contains has a score of at most the radius, whatever is missing."""

    score: BlockMaximum = field(kw_only=True)
    law: Law = field(kw_only=True)
    radius: Array | float = field(kw_only=True)

    def contains(self, y: Reading) -> Array:
        """Whether the score is at most the radius; False where no block has a reading."""
        return self.score.score(self.law, self.ordered(y)) <= self.radius

    def reach(self, y: Array) -> Array:
        """See `Sizes`: one factor for all blocks."""
        radius = self.score.gaps.own_radius(self.radius, y)
        held = self.score.inner.held_largest(radius, self.score.measure(self.law, y))
        return shares_of(self.score.region(self.law, held).half_width, self.half_width)

    def __getitem__(self, index: Index) -> ScoredProduct:
        radius = self.radius if np.ndim(self.radius) == 0 else np.asarray(self.radius)[index]
        parts, score = tuple(part[index] for part in self.parts), self.score.with_gaps(self.score.gaps.at(index))
        found = ScoredProduct(self.blocks, parts, score=score, law=self.law[index], radius=radius)
        return self._named_like(found)


def check_blocks(blocks: Sequence[Sequence[int] | Array], n: int) -> None:
    """Refuse blocks that are empty, overlap, or do not cover the sensors 0 .. n-1."""
    members = np.concatenate([np.asarray(block, dtype=int) for block in blocks]) if len(blocks) else np.empty(0, int)
    require(
        all(len(block) for block in blocks) and np.array_equal(np.sort(members), np.arange(n)),
        f"blocks of sensors must be non-empty, disjoint and cover all {n} sensors (positions 0 to {n - 1})",
    )


__all__ = ["Box", "Ellipsoid", "Product", "Region", "Sizes", "check_blocks", "named", "unit_ball_log_volume"]
