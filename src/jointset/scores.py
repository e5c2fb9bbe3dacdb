"""Scores: law + reading -> one number, or one a component, and back from the radius to the region it cuts out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from jointset.algebra.chi_squares import chi_square_quantile
from jointset.algebra.lean import Lean
from jointset.algebra.partial import (
    UNCALIBRATED,
    GapScale,
    held_distances,
    held_maximum,
    independent_count,
    joined_maxima,
    largest_quantile,
    placed_distance,
    placed_distances,
    placed_maximum,
)
from jointset.algebra.shares import distance_shares, maximum_shares
from jointset.algebra.ties import settled
from jointset.contracts import Array, Law, Score
from jointset.distances import (
    distance_measured,
    mahalanobis_score,
    maximum_measured,
    studentised,
    studentised_score,
)
from jointset.errors import InputError
from jointset.regions import Box, Ellipsoid, Product, ScoredProduct, check_blocks
from jointset.regions_composite import ComponentRegion
from jointset.storage import storable

if TYPE_CHECKING:
    from jointset.residuals.component_law import ComponentLaw


@dataclass(frozen=True)
class _WithGaps:
    """A score with a scale for rows with gaps."""

    gaps: GapScale = UNCALIBRATED

    def with_gaps(self, gaps: GapScale) -> Self:
        """The score with another scale for rows with gaps."""
        return replace(self, gaps=gaps)


@dataclass(frozen=True)
class _Distance(_WithGaps):
    """A score that is made from the squared Mahalanobis distance."""

    sets: ClassVar[str] = "ellipsoids"
    power: ClassVar[float]

    def typical(self, law: Law, level: float) -> float:
        """See `OfOneLaw`."""
        return float(chi_square_quantile(law.mean.shape[-1], level)) ** (0.5 / self.power)

    def measure(self, law: Law, y: Array) -> Array:
        """See `Score.measure`."""
        return distance_measured(law, y)

    def contributions(self, law: Law, y: Array) -> Array:
        """How much of the squared distance goes away when a sensor is left out (..., N)."""
        return law.contributions(y)

    def shares(self, law: Law, y: Array) -> Array:
        """See `Dividing`: e_i (S^-1 e)_i over their sum."""
        return distance_shares(law, y)


@storable
@dataclass(frozen=True)
class Mahalanobis(_Distance):
    """Squared Mahalanobis distance; its regions are ellipsoids oriented by the law's covariance.

    >>> from jointset.laws import DenseLaw
    >>> law = DenseLaw(np.zeros(2), np.eye(2))
    >>> region = Mahalanobis().region(law, 4.0)
    >>> bool(region.contains(np.array([0.0, 1.9]))), bool(region.contains(np.array([1.5, 1.5])))
    (True, False)
    """

    power: ClassVar[float] = 0.5

    def score(self, law: Law, y: Array) -> Array:
        """(y - m)' S^-1 (y - m) (...)."""
        return mahalanobis_score(law, y, self.gaps)

    def place(self, measured: Array) -> Array:
        """See `Score.place`."""
        return settled(placed_distance(measured, self.gaps))

    def place_largest(self, measured: Array) -> Array:
        """The largest score of blocks (..., G, 3), on the scale of rows with all blocks complete."""
        return settled(placed_distances(measured, self.gaps))

    def held_largest(self, radius: Array, measured: Array) -> Array:
        """The largest score without gaps (...) of blocks read as those, whose place is the radius."""
        return held_distances(radius, measured, self.gaps)

    def region(self, law: Law, radius: Array | float) -> Ellipsoid:
        """The ellipsoid of all readings with a score of at most `radius`."""
        return Ellipsoid(law, radius, self.gaps)


@storable
@dataclass(frozen=True)
class RootMahalanobis(_Distance):
    """sqrt((y - m)' S^-1 (y - m)): the same sets, radii in standard deviations.

    Rules that mix radii or costs, such as `CostAgACI`, depend on this choice.
    """

    power: ClassVar[float] = 1.0

    def score(self, law: Law, y: Array) -> Array:
        """Root distance (...)."""
        return np.sqrt(mahalanobis_score(law, y, self._squared))

    def place(self, measured: Array) -> Array:
        """See `Score.place`."""
        return np.sqrt(settled(placed_distance(measured, self._squared)))

    def place_largest(self, measured: Array) -> Array:
        """The largest score of blocks (..., G, 3), on the scale of rows with all blocks complete."""
        return np.sqrt(settled(placed_distances(measured, self._squared)))

    def held_largest(self, radius: Array, measured: Array) -> Array:
        """The largest score without gaps (...) of blocks read as those, whose place is the radius."""
        return np.sqrt(held_distances(np.maximum(radius, 0.0) ** 2, measured, self._squared))

    def region(self, law: Law, radius: Array | float) -> Ellipsoid:
        """The ellipsoid of all readings with a score of at most `radius`."""
        radius = np.asarray(radius, dtype=float)
        return Ellipsoid(law, settled(radius * np.abs(radius)), self._squared)

    @property
    def _squared(self) -> GapScale:
        return self.gaps.squared()


@storable
@dataclass(frozen=True)
class MaxStudentised(_WithGaps):
    """Largest |residual| / sd over the sensors; its regions are boxes.

    With `leans` they reach further on the side where the readings of training went further, by the level that a sensor
    is expected at; how far, `lean`, is set by `fit`.
    """

    leans: bool = False
    lean: Lean | None = None
    sets: ClassVar[str] = "boxes"
    power: ClassVar[float] = 1.0

    def leaning(self, lean: Lean | None) -> Self:
        """The score with another lean."""
        return replace(self, lean=lean)

    def typical(self, law: Law, level: float) -> float:
        """See `OfOneLaw`."""
        effective = np.asarray(law.effective_sensors(np.ones(law.mean.shape[-1], dtype=bool))[1])
        return float(largest_quantile(independent_count(law.mean.shape[-1], effective, level), level))

    def score(self, law: Law, y: Array) -> Array:
        """max_i |y_i - m_i| / sd_i (...)."""
        return studentised_score(law, y, self.gaps, self.lean)

    def measure(self, law: Law, y: Array) -> Array:
        """See `Score.measure`."""
        return maximum_measured(law, y, self.gaps.level, self.lean)

    def place(self, measured: Array) -> Array:
        """See `Score.place`."""
        return settled(placed_maximum(measured, self.gaps))

    def place_largest(self, measured: Array) -> Array:
        """The largest score of blocks (..., G, 3), on the scale of rows with all blocks complete."""
        return settled(placed_maximum(joined_maxima(measured), self.gaps))

    def held_largest(self, radius: Array, measured: Array) -> Array:
        """The largest score without gaps (...) of blocks read as those, whose place is the radius."""
        return held_maximum(radius, joined_maxima(measured), self.gaps)

    def region(self, law: Law, radius: Array | float) -> Box:
        """The box of half-widths radius * sd_i."""
        return Box(law, radius, self.gaps, self.lean)

    def contributions(self, law: Law, y: Array) -> Array:
        """|residual| / sd of every sensor (..., N); 0 where missing."""
        return np.nan_to_num(studentised(law, y, self.lean))

    def shares(self, law: Law, y: Array) -> Array:
        """See `Dividing`: all to the sensor that attains the maximum."""
        return maximum_shares(self.contributions(law, y))


@storable
@dataclass(frozen=True)
class BlockMaximum:
    """Largest score over blocks of sensors (positions); its regions are products over the blocks."""

    blocks: tuple[Array, ...]
    inner: Mahalanobis | RootMahalanobis | MaxStudentised = field(default_factory=Mahalanobis)

    def __post_init__(self) -> None:
        blocks = tuple(np.asarray(block, dtype=np.int64) for block in self.blocks)
        object.__setattr__(self, "blocks", blocks)
        check_blocks(blocks, sum(len(block) for block in blocks))

    @property
    def gaps(self) -> GapScale:
        """The scale for rows with gaps."""
        return self.inner.gaps

    def with_gaps(self, gaps: GapScale) -> BlockMaximum:
        """The score with another scale for rows with gaps."""
        return replace(self, inner=self.inner.with_gaps(gaps))

    def score(self, law: Law, y: Array) -> Array:
        """max_g score of block g (...), over the blocks that have a reading."""
        y = np.asarray(y, dtype=float)
        if np.isnan(y).any():
            return self.gaps.levelled(self.place(self.measure(law, y)), y)
        return np.max([self.inner.score(law.select(b), y[..., b]) for b in self.blocks], axis=0)

    def measure(self, law: Law, y: Array) -> Array:
        """Those of the blocks (..., G, 3)."""
        y = np.asarray(y, dtype=float)
        return np.stack([self.inner.measure(law.select(b), y[..., b]) for b in self.blocks], axis=-2)

    def place(self, measured: Array) -> Array:
        """The largest: the fewer sensors and blocks were read, the more it is raised."""
        return self.inner.place_largest(measured)

    def region(self, law: Law, radius: Array | float) -> Product:
        """The product over the blocks, each with the same radius."""
        parts = tuple(self.inner.region(law.select(b), radius) for b in self.blocks)
        return ScoredProduct(self.blocks, parts, score=self, law=law, radius=radius)

    def contributions(self, law: Law, y: Array) -> Array:
        """Contributions inside each block (..., N)."""
        out = np.zeros(np.shape(y))
        for b in self.blocks:
            out[..., b] = self.inner.contributions(law.select(b), np.asarray(y)[..., b])
        return out

    def shares(self, law: Law, y: Array) -> Array:
        """See `Dividing`: all inside the block that attains the maximum."""
        sizes = np.nan_to_num(self.measure(law, y)[:, 0], nan=-np.inf)
        out, b = np.zeros(len(y)), self.blocks[int(sizes.argmax())]
        out[b] = self.inner.shares(law.select(b), y[b])
        return out


@dataclass(frozen=True)
class _OfComponents(_WithGaps):
    """A score of component scores: rows with gaps have a scale at the coverage asked for alone."""

    def place(self, measured: Array) -> Array:
        """As measured."""
        return measured

    def contributions(self, law: ComponentLaw, y: Array) -> Array:
        """Squared studentised residual of each sensor (..., N), 0 where missing: a guide to which one is unusual."""
        e = (np.asarray(y, dtype=float) - law.mean) / law.unit
        return np.nan_to_num(e**2 / np.diag(law.structure.covariance))


@storable
@dataclass(frozen=True)
class ComponentScore(_OfComponents):
    """Component scores (..., K) of a reading, and the region of K radii."""

    def score(self, law: ComponentLaw, y: Array) -> Array:
        """Scores (..., K)."""
        return self.gaps.levelled(law.scores(y, self.gaps.level), y)

    measure = score

    def region(self, law: ComponentLaw, radius: Array | float) -> ComponentRegion:
        """All readings whose component scores are within their radii (..., K)."""
        return ComponentRegion(law, law.structure, np.asarray(radius, dtype=float), self.gaps)

    def shares(self, law: ComponentLaw, y: Array) -> Array:
        """See `Dividing`, of every component (K, N)."""
        return law.shares(y)


@storable
@dataclass(frozen=True)
class SingleScore(_OfComponents):
    """The score of a structure with one component, as a plain number."""

    def score(self, law: ComponentLaw, y: Array) -> Array:
        """Score (...)."""
        return self.gaps.levelled(law.scores(y, self.gaps.level)[..., 0], y)

    measure = score

    def region(self, law: ComponentLaw, radius: Array | float) -> ComponentRegion:
        """All readings with a score of at most `radius`."""
        return ComponentRegion(law, law.structure, np.asarray(radius, dtype=float)[..., None], self.gaps)

    def shares(self, law: ComponentLaw, y: Array) -> Array:
        """See `Dividing`."""
        return law.shares(y)[0]


SHAPES: dict[str, Any] = {"ellipsoid": Mahalanobis, "box": MaxStudentised, "lean": partial(MaxStudentised, leans=True)}


def score_for(shape: str) -> Score:
    """The score whose regions have this shape: `ellipsoid`, `box`, or a box that may lean, `lean`."""
    if shape not in SHAPES:
        raise InputError(f"unknown shape {shape!r}: choose one of {', '.join(SHAPES)}")
    score: Score = SHAPES[shape]()
    return score
