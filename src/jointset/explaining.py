"""What a predictor says of a reading under its next law, before it takes it in: who is to blame, what was expected."""

from __future__ import annotations

from typing import Any

from jointset.abilities import TellsOneFromOthers
from jointset.attribution import Explained, Neighbourhood, attribution, explained, neighbourhoods
from jointset.calibration.shared_level import AnyRule
from jointset.contracts import Array, Reading, Score
from jointset.graph_edges import Edges
from jointset.own_bands import own_ends, studentised
from jointset.sensor_health import Usual


class Explains:
    """The questions to a `JointPredictor` that leave it as it is; y is a reading (N,), NaN = missing, or by labels."""

    score: Score[Any]
    calibration: AnyRule
    calibration_state: Any
    sensors: tuple[str, ...]
    graph: Edges | None
    usual: Usual | None

    def _ahead(self) -> tuple[Any, Array | float, float]:
        raise NotImplementedError

    def _reading(self, y: Reading) -> Array:
        raise NotImplementedError

    def contributions(self, y: Reading) -> Array:
        """How much each sensor of a reading adds to its score under the next law (N,); 0 where missing."""
        return self.score.contributions(self._ahead()[0], self._reading(y))

    def attribution(self, y: Reading) -> Array:
        """Shares (N,) of the sensors in the score of a reading under the next law: they add up to it; 0 where missing.

        Which sensor is to blame is told by `contributions`; a share may be negative (`jointset.shares`).
        """
        return attribution(self, self._ahead()[0], self._reading(y))

    def neighbourhoods(self, y: Reading) -> list[Neighbourhood]:
        """Neighbourhoods of the graph, the one most to blame for a reading first, with shares that add up to the score.

        Without a graph every sensor is one; a law without a covariance gives none.
        """
        return neighbourhoods(self, self._ahead()[0], self._reading(y))

    def explained(self, y: Reading, score: float) -> Explained:
        """Contributions, shares and what each reading should be given all others, of a reading of this score."""
        return explained(self, self._ahead()[0], self._reading(y), score)

    def given_others(self, y: Reading) -> tuple[Array, Array] | None:
        """Mean and sd of each reading of a row (N,) given all others, under the next law; None where there is no law.

        NaN where missing.
        """
        law, y = self._ahead()[0], self._reading(y)
        return law.given_others(y) if isinstance(law, TellsOneFromOthers) else None

    def errors(self, y: Reading) -> Array | None:
        """Errors of a reading (N,) in sd of the next law, NaN where missing; None where that has no variances."""
        return studentised(self._ahead()[0], self._reading(y))

    def own_bounds(self) -> tuple[Array, Array] | None:
        """Ends of the band of each sensor by itself (N,), at the same level; None where the method has none."""
        return None if self.usual is None else own_ends(self._ahead()[0], self.usual.own)
