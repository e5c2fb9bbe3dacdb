"""Live rows in, one answer a reading out; a bad row is answered with an error and leaves the predictor as it was.

`jointset.live_rows` says what lines may look like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.fleet import AS_IT_IS, Fleet
from jointset.live_rows import BAD, Options, Reading, readings
from jointset.outliers import LARGEST
from jointset.predictor import JointPredictor
from jointset.times import live_seconds
from jointset.writing import json_ready


class Stream:
    """A predictor that is fed lines. `predictor` is always the state after the last good row.

    `notice` is told, once, what the reader of the answers should know about the header or the order of the rows. With
    `trust` every answer holds the predictor's verdict on itself after the row.
    """

    def __init__(
        self,
        predictor: JointPredictor,
        *,
        format: str = "auto",
        layout: str = "auto",
        time_column: str | None = None,
        fleet: Fleet = AS_IT_IS,
        top: int = 3,
        trust: bool = False,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.options = Options(format, layout, time_column, fleet).checked()
        require(top >= 0, f"top must be 0 or more sensors, got {top}")
        predictor.predict()  # refuses a predictor that is not calibrated before any row is read
        if trust:
            predictor.trust()  # likewise one that has no verdict to give
        self.predictor, self.trust, self.top, self.notice = predictor, trust, top, notice
        self.rows = self.scored = self.inside = self.bad = 0
        self._latest: int | None = getattr(predictor, "last_time", None)  # time of the last row
        self._in_order = True  # as far as anyone was told

    def answers(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """One JSON-ready answer a reading, in order; blank lines are skipped."""
        for row, found in readings(lines, self.predictor.sensors, self.options, self.notice):
            self.rows = row
            yield self._answer(found)

    def _answer(self, found: Reading | Exception) -> dict[str, Any]:
        try:
            if isinstance(found, Exception):
                raise found
            seconds = live_seconds(found.time)
            answer, after = advance(self._expecting(seconds), found.values, self.top)
        except BAD as error:
            self.bad += 1
            return {"row": self.rows, "error": " ".join(str(error).split())}
        self._follow(after, seconds, found.time)
        self.scored += answer["inside"] is not None
        self.inside += answer["inside"] is True
        if self.trust:
            answer["trust"] = json_ready(after.trust()._asdict())
        return {"row": self.rows, "time": found.time, **answer}

    def _expecting(self, seconds: int | None) -> JointPredictor:
        """The predictor, told when the row is where it follows the clock."""
        if seconds is None or not getattr(self.predictor, "follows_clock", False):
            return self.predictor
        told: Any = self.predictor.copy()
        told.expect(seconds)
        return told

    def _follow(self, after: JointPredictor, seconds: int | None, time: Any) -> None:
        """Go on from the predictor after a row; a row that is no later than the last is taken all the same."""
        self.predictor = after
        if seconds is None:
            return
        if self._in_order and self._latest is not None and seconds <= self._latest:
            self._in_order = False
            self.notice(
                f"row {self.rows} ({time}) is not later than the last one: rows count in the order they come in"
            )
        self._latest = seconds
        if hasattr(after, "last_time"):
            after.last_time = seconds


def advance(predictor: JointPredictor, y: Array, top: int = 3) -> tuple[dict[str, Any], JointPredictor]:
    """Answer to one reading (N,) and the predictor after it; the one given is not changed.

    The region is the one announced before the reading. A reading that would leave the filter without finite numbers
    is refused; an infinite score, of a reading off an interval of no length, is none of these.
    """
    region, after = predictor.predict(), predictor.copy()
    with np.errstate(all="ignore"):
        contributions = predictor.contributions(y)
        outcome = after.update(y)
        scored = not math.isnan(outcome.score) or not outcome.observed
        finite = scored and np.isfinite(after.predict().center).all()
    if not finite or np.any(np.abs(y) > LARGEST):
        worst = int(np.nanargmax(np.abs(y)))
        raise InputError(f"sensor {predictor.sensors[worst]!r}: {y[worst]:g} is too large to be scored: check the row")
    lower, upper = (np.asarray(end).tolist() for end in region.bounds)
    answer = {
        "score": outcome.score,
        "radius": outcome.radius,
        "inside": outcome.inside if outcome.observed else None,
        "observed": outcome.observed,
        **_unusual(outcome.radius),
        "bounds": {name: [lower[i], upper[i]] for i, name in enumerate(predictor.sensors)},
        "top": [
            {
                "sensor": predictor.sensors[i],
                "contribution": float(contributions[i]),
                "value": float(y[i]),
                "lower": lower[i],
                "upper": upper[i],
            }
            for i in largest(contributions, y, top)
        ],
    }
    return json_ready(answer), after


def largest(contributions: Array, y: Array, count: int) -> list[int]:
    """Positions of the observed sensors that contribute most, largest first."""
    seen = np.flatnonzero(~np.isnan(y))
    order = np.argsort(-contributions[seen], kind="stable")
    return [int(i) for i in seen[order[:count]]]


def _unusual(radius: float) -> dict[str, bool]:
    """What a null radius means: the whole space, or the empty set."""
    if radius == math.inf:
        return {"infinite": True}
    return {"empty": True} if radius < 0 else {}
