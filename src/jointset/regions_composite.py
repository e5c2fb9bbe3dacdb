"""Regions with several radii: products of ellipsoids in rotated coordinates, and factor ellipsoids with a box.

Both are {y : every component score of the residual e = (y - m) / unit is at most its radius}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jointset.abilities import Components
from jointset.algebra.partial import UNCALIBRATED, GapScale, shares_of
from jointset.contracts import Array, Index, Reading
from jointset.regions import Sizes
from jointset.support.cached import cached_property

if TYPE_CHECKING:
    from jointset.residuals.component_law import ComponentLaw


@dataclass(frozen=True, repr=False)
class ComponentRegion(Sizes):
    """{y : score_j(y) <= radius_j for all components j}, batched over time.

    law: centre and units · structure: the components (`jointset.residuals.components`) · radii (..., K).

    The half-width on sensor i is the sum of the components' support functions there: exact for the orthogonal
    product, which is the Minkowski sum of its components, and the printed width of the factor + box set, whose members
    it bounds.
    """

    law: ComponentLaw
    structure: Components
    radii: Array
    gaps: GapScale = UNCALIBRATED  # what rows with gaps are held against

    @property
    def center(self) -> Array:  # type: ignore[override]
        """Mean of the law."""
        return self.law.mean

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """sum_j h_ij(radius_j) (..., N)."""
        return self.structure.half_width(np.maximum(self.radii, 0.0)) * self.law.unit

    def contains(self, y: Reading) -> Array:
        """Whether every component score is within its radius; False where nothing is observed."""
        y = self.ordered(y)
        return np.all(self.gaps.levelled(self.law.scores(y, self.gaps.level), y) <= self.radii, axis=-1)[()]

    def reach(self, y: Array) -> Array:
        """See `Sizes`: the components' radii by what their scores were raised by; one that says nothing has its own."""
        raised = self.law.raises(y, self.gaps.level)
        factor = self.gaps.factor(y)
        raised = np.where(raised > 0, raised, 1.0) * (1.0 if factor is None else factor[..., None])
        own = self.structure.half_width(np.maximum(self.radii, 0.0) / raised) * self.law.unit
        return shares_of(own, self.half_width)

    @property
    def log_volume(self) -> Array:
        """(1/N) log Vol: the components span orthogonal subspaces, so their volumes multiply."""
        with np.errstate(divide="ignore"):  # a radius of 0 has volume 0
            total = self.structure.log_volume(np.maximum(self.radii, 0.0))
        return total / self.law.mean.shape[-1] + np.log(self.law.unit).mean()

    def __getitem__(self, index: Index) -> ComponentRegion:
        radii = self.radii if np.ndim(self.radii) == 1 else np.asarray(self.radii)[index]
        return self._named_like(ComponentRegion(self.law[index], self.structure, radii, self.gaps.at(index)))
