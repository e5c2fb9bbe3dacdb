"""What the rules share about time: the whole-sequence path by stepping, missing scores, clipped levels, shares."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from jointset.abilities import expecting, follows_clock
from jointset.contracts import Array, Calibration, State
from jointset.errors import require

Clip = tuple[float, float] | None
CLIP = (1e-4, 1 - 1e-4)


class Counts(Protocol):
    """A state that counts."""

    @property
    def steps(self) -> int:
        """Scores so far."""
        ...

    @property
    def limited(self) -> int:
        """Those of them whose radius was infinite or had to be limited."""
        ...


Counted = TypeVar("Counted", bound=Counts)


class Stepwise(Calibration[State]):
    """A rule that goes through whole sequences score by score; its radius is always finite.

    `_after` is the state after a score that is a number.
    """

    @abstractmethod
    def _after(self, state: State, score: float) -> State: ...

    def update(self, state: State, score: float) -> State:
        """State after one score; NaN leaves it as it is."""
        return state if math.isnan(score) else self._after(state, score)

    def run(self, state: State, scores: Array) -> tuple[Array, State]:
        """Radii (T,) and the state after the last score."""
        return replay(self, state, scores)

    def infinite_share(self, state: State) -> float:
        """0: the radius is always finite."""
        return 0.0


class Limited(Stepwise[Counted]):
    """The same where a radius may be infinite or limited, which the state counts."""

    def infinite_share(self, state: Counted) -> float:
        """Share of the steps so far that were counted."""
        return share(state.limited, state.steps)


def replay(rule: Calibration[State], state: State, scores: Array) -> tuple[Array, State]:
    """Radii (T,) and last state, score by score."""
    step, after = stepping(rule, state)
    radii = np.array([step(score) for score in np.asarray(scores, dtype=float).tolist()], dtype=float)
    return radii, after()


Stepping = tuple[Callable[[float], float], Callable[[], State]]  # the radius before a score, and the state after all


@runtime_checkable
class Striding(Protocol[State]):
    """A rule that goes through scores one by one faster than by `radius` and `update`."""

    def strides(self, state: State) -> Stepping[State] | None:
        """The radius at each score that is handed in, one after the other, and the state after the last.

        None where there is no faster way.
        """
        ...


def stepping(rule: Calibration[State], state: State, clock: Sequence[int] | None = None) -> Stepping[State]:
    """`strides` of any rule: its next radius may depend on scores that depend on this one; `clock` has their times."""
    faster = rule.strides(state) if isinstance(rule, Striding) else None
    if faster is not None:
        return faster
    times = iter(clock or ())

    def step(score: float) -> float:
        nonlocal state
        state = state if clock is None else expecting(rule, state, next(times))
        radius = float(rule.radius(state))
        state = rule.update(state, score)
        return radius

    return step, lambda: state


def times_for(rule: object, times: Array | None) -> tuple[Array, ...]:
    """The times as a rule takes them: those that follow the clock do."""
    return () if times is None or not follows_clock(rule) else (times,)


def share(limited: int, steps: int) -> float:
    """`limited` as a share of the steps so far, 0 before the first."""
    return limited / steps if steps else 0.0


def require_clip(clip: Clip, alpha: float) -> None:
    """Refuse an interval of levels that does not hold alpha."""
    if clip is not None:
        require(
            len(clip) == 2 and clip[0] < clip[1] and clip[0] <= alpha <= clip[1],
            f"clip must be None or an interval (low, high) that holds alpha = {alpha}, got {clip}",
        )


def at_edge(level: float, clip: Clip) -> bool:
    """Whether the level sits at an end of its interval."""
    return clip is not None and not clip[0] < level < clip[1]
