"""The root of the Mahalanobis distance as score: the same sets, radii in standard deviations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointset.contracts import Array, Law
from jointset.partial import UNCALIBRATED, GapScale
from jointset.regions import Ellipsoid, mahalanobis_score
from jointset.storage import storable
from jointset.ties import settled


@storable
@dataclass(frozen=True)
class RootMahalanobis:
    """sqrt((y - m)' S^-1 (y - m)). Rules that mix radii or costs, such as `CostAgACI`, depend on this choice."""

    gaps: GapScale = UNCALIBRATED

    def with_gaps(self, gaps: GapScale) -> RootMahalanobis:
        """The score with another scale for rows with gaps."""
        return replace(self, gaps=gaps)

    def score(self, law: Law, y: Array) -> Array:
        """Root distance (...)."""
        return np.sqrt(mahalanobis_score(law, y, self._squared))

    def region(self, law: Law, radius: Array | float) -> Ellipsoid:
        """The ellipsoid of all readings with a score of at most `radius`."""
        radius = np.asarray(radius, dtype=float)
        return Ellipsoid(law, settled(radius * np.abs(radius)), self._squared)

    @property
    def _squared(self) -> GapScale:
        return self.gaps._replace(radius=self.gaps.radius**2)

    def contributions(self, law: Law, y: Array) -> Array:
        """How much of the squared score goes away when a sensor is left out (..., N)."""
        return law.contributions(y)
