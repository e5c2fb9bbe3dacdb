"""A radius that is given beforehand: of methods that set the level of their sets themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointset.contracts import Array, State
from jointset.errors import require_alpha
from jointset.storage import storable


@storable
@dataclass(frozen=True)
class Fixed:
    """The same radius for ever, whatever the scores; `alpha` is the miss rate it was meant for.

    >>> Fixed().run((), np.array([0.5, 2.0]))[0]
    array([1., 1.])
    """

    alpha: float = 0.1
    value: float = 1.0

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    def start(self, scores: Array) -> tuple[()]:
        """There is nothing to remember."""
        return ()

    def radius(self, state: object) -> float:
        """The given radius."""
        return self.value

    def update(self, state: State, score: float) -> State:
        """Nothing changes."""
        return state

    def run(self, state: State, scores: Array) -> tuple[Array, State]:
        """The radius at every step (T,)."""
        return np.full(len(scores), self.value), state

    def infinite_share(self, state: object) -> float:
        """0: the radius is what it is."""
        return 0.0
