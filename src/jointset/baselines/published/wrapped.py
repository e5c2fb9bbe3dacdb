"""A wrap around a published row: any calibration rule sets the factor by which the row's own sets are scaled.

The score of a reading is the least factor by which the row's own set must be scaled about its centre to hold it: the
root distance over the outer radius for an annulus, the largest distance from the middle of an interval in half-widths
for a box. The hole of an annulus is filled: with it, sets of growing factor would not contain one another. The first
half of the calibration residuals starts the row, its sets for the second half give the scores from which the rule
starts, and from then on the row and the rule move side by side; the rule's radius is the next factor.

So a split rule repairs the level of a row that has none of its own (SPCI, HopCPT) and, where the own sets do not move
after their half of the rows (CopulaCPTS), covers exactly as every split rule does; an adaptive one follows the misses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jointset.calibration import minimum_scores
from jointset.contracts import Array
from jointset.regions import Sizes
from jointset.storage import storable

LEAST = 1e-3  # of a sensor's residual sd: an interval of no length cannot be scaled


@dataclass(frozen=True)
class ScaledSet(Sizes):
    """An own set scaled about its centre by a factor (...); half-widths and N-th root of the volume scale with it."""

    own: Any
    factor: Any

    @property
    def center(self) -> Array:  # type: ignore[override]
        """That of the own set."""
        return self.own.center

    @property
    def radius(self) -> Array:
        """The factor."""
        return np.asarray(self.factor)[()]

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """The own ones times the factor."""
        return np.maximum(self.factor, 0.0)[..., None] * self.own.half_width

    def score(self, y: Array) -> Array:
        """The least factor that holds the reading (...); NaN where nothing is observed."""
        return self.own.growth(y)

    def contains(self, y: Array) -> Array:
        """Whether the reading lies inside, that is score <= factor."""
        return self.score(y) <= self.factor

    def contributions(self, y: Array) -> Array:
        """Those of the own set."""
        return self.own.contributions(y)

    @property
    def log_volume(self) -> Array:
        """That of the own set, filled, + log factor."""
        with np.errstate(divide="ignore"):
            return self.own.log_volume_filled + np.log(np.maximum(self.factor, 0.0))

    def __getitem__(self, index: Any) -> ScaledSet:
        return ScaledSet(self.own[index], self.factor if np.ndim(self.factor) == 0 else self.factor[index])


@storable
class WrappedState(NamedTuple):
    """States of the row and of the rule, the scores it started from, and the least half-width of every sensor (N,)."""

    own: Any
    wrap: Any
    scores: Array
    least: Array


@storable
@dataclass(frozen=True)
class WrappedRule:
    """A published rule for the sets and a calibration rule for their factor, with the interface of either's `Rule`."""

    own: Any
    wrap: Any
    share: float = 0.5  # of the calibration residuals, for the row itself

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        return float(self.wrap.alpha)

    @property
    def needed(self) -> int:
        """Enough residuals for the row in its share, and for a finite factor in the rest."""
        return int(np.ceil(max(self.own.needed / self.share, minimum_scores(self.alpha) / (1.0 - self.share)))) + 1

    def start(self, residuals: Array) -> WrappedState:
        """State after the calibration residuals (m, N)."""
        cut = int(self.share * len(residuals))
        least = LEAST * np.sqrt(np.mean(residuals[:cut] ** 2, axis=0))
        parameters, own = self.own.radii(self.own.start(residuals[:cut]), residuals[cut:])
        scores = self._sets(own, least, parameters, np.zeros_like(residuals[cut:])).growth(residuals[cut:])
        return WrappedState(own, self.wrap.start(scores), scores, least)

    def radii(self, state: WrappedState, residuals: Array) -> tuple[tuple[Array, ...], WrappedState]:
        """Parameters of the own sets and factors (T + 1,)."""
        parameters, own = self.own.radii(state.own, residuals)
        scores = self._sets(own, state.least, parameters, np.zeros_like(residuals)).growth(residuals)
        return self.factors(state._replace(own=own), parameters, scores)

    def factors(
        self, state: WrappedState, parameters: tuple[Array, ...], scores: Array
    ) -> tuple[tuple[Array, ...], WrappedState]:
        """The parameters with the factors (T + 1,) that follow the scores (T,), and the state after them."""
        radii, wrap = self.wrap.run(state.wrap, scores)
        factors = np.append(radii, self.wrap.radius(wrap))
        return (*parameters, factors), state._replace(wrap=wrap)

    def shape(self, state: WrappedState, parameters: tuple[Array, ...], mean: Array) -> ScaledSet:
        """The scaled sets around the means."""
        return ScaledSet(self.own.shape(state.own, parameters[:-1], mean).at_least(state.least), parameters[-1])

    def _sets(self, own: Any, least: Array, parameters: tuple[Array, ...], mean: Array) -> Any:
        """Own sets for all but the last of T + 1 entries."""
        return self.own.shape(own, tuple(part[:-1] for part in parameters), mean).at_least(least)

    def infinite_share(self, state: WrappedState) -> float:
        """Share of steps whose factor was infinite or had to be clipped."""
        return float(self.wrap.infinite_share(state.wrap))


def rewrapped(rule: WrappedRule, state: WrappedState, wrap: Any) -> tuple[WrappedRule, WrappedState]:
    """Another calibration rule around the same sets, started from the same scores."""
    return replace(rule, wrap=wrap), state._replace(wrap=wrap.start(state.scores))
