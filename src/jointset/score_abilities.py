"""What some scores do beyond their contract; asked for as abilities are (`jointset.abilities`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, Self, runtime_checkable

from jointset.abilities import Ability
from jointset.contracts import Array, Forecast, Law

if TYPE_CHECKING:
    from jointset.algebra.lean import Lean


@runtime_checkable
class Dividing(Protocol, metaclass=Ability):
    """A score that divides exactly over the sensors (`jointset.algebra.shares`)."""

    def shares(self, law: Forecast, y: Array) -> Array:
        """Shares (N,) of the sensors in the score of one reading, of every part where it has several (K, N).

        They add up to 1, or are all 0 where the score is; 0 where missing.
        """
        ...


@runtime_checkable
class OfOneLaw(Protocol, metaclass=Ability):
    """A score whose sets are ellipsoids or boxes of one law: half-widths are radius^power times multiples of its sd."""

    sets: ClassVar[str]  # "ellipsoids" or "boxes"
    power: ClassVar[float]

    def typical(self, law: Law, level: float) -> float:
        """The score that a share `level` of complete readings stays below, were the law normal and right."""
        ...


def sets_of(score: object) -> str:
    """What the sets of a score are: ellipsoids or boxes of one law, or of a shape of their own."""
    return score.sets if isinstance(score, OfOneLaw) else "sets of its own shape"


@runtime_checkable
class Leaning(Protocol, metaclass=Ability):
    """A score whose sets may reach further to one side of the mean than to the other."""

    @property
    def leans(self) -> bool: ...
    @property
    def lean(self) -> Lean | None:
        """How far, where `fit` has found that."""
        ...

    def leaning(self, lean: Lean | None) -> Self:
        """The score with another lean."""
        ...
