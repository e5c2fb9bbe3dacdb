"""How far a fit is: progress functions for parts that are done one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from jointset.contracts import Filter
from jointset.panel import Panel
from jointset.support.how_far import Told as Told
from jointset.support.how_far import listening
from jointset.support.how_far import tells as tells

FINE = 100  # steps that a part of weight 1 counts for


def in_turn(progress: Told | None, weights: Sequence[int]) -> list[Told]:
    """Progress functions for parts that come one after the other, each with its share of the whole.

    >>> first, second = in_turn(lambda step, steps, loss: print(step, "of", steps), (1, 3))
    >>> first(1, 2, 0.0), second(1, 2, 0.0)
    50 of 400
    250 of 400
    (None, None)
    """
    whole = FINE * sum(weights)

    def told(done: int, share: int, step: int, steps: int, loss: float) -> None:
        if progress is not None:
            progress(FINE * done + FINE * share * step // steps, whole, loss)

    return [partial(told, end - share, share) for end, share in zip(accumulate(weights), weights, strict=True)]


def fitted(filter_: Filter[Any], panel: Panel, told: Told) -> Filter[Any]:
    """The filter fitted on a panel; its progress is told, at least that it is done."""
    with listening(told):
        made = filter_.fit(panel, **({"progress": told} if tells(filter_) else {}))
    told(1, 1, float("nan"))
    return made
