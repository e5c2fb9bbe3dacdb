"""What some scores do beyond their contract; asked for as abilities are (`jointset.abilities`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

from jointset.abilities import Ability
from jointset.contracts import Array, Forecast, Index, Law, Score

if TYPE_CHECKING:
    from jointset.algebra.lean import Lean

S = TypeVar("S", bound=Score[Any])  # of whatever law


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


def followed(score: S, rows: Array) -> tuple[S, S]:
    """The score that knows its lean before each of the rows (T, N), and the score after the last."""
    if not isinstance(score, Leaning) or score.lean is None:
        return score, score
    before, after = score.lean.followed(rows)
    return (score, score) if after is score.lean else (score.leaning(before), score.leaning(after))


def leaning_as(score: S, other: S, rows: Index) -> S:
    """The score with the lean that another, which knows that of each row, has in some of them."""
    lean = other.lean if isinstance(other, Leaning) else None
    return score if lean is None or not isinstance(score, Leaning) else score.leaning(lean.at(rows))


def lean_restarted(score: S) -> S:
    """The score with the lean that `fit` found."""
    return score.leaning(score.lean.restarted()) if isinstance(score, Leaning) and score.lean is not None else score
