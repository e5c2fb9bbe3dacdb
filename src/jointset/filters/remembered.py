"""The law of the state that was asked for last, kept for those who ask again.

At a live step the law of a filter is made to predict with, and wanted once more by whatever wraps the filter when the
reading is there. States are immutable, so the same state has the same law.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from jointset.contracts import Law, State

Emitted = TypeVar("Emitted", bound=Law)


class Remembered(ABC, Generic[State, Emitted]):
    """A filter that gives out the law of the last state again; subclasses make it in `_law`."""

    @abstractmethod
    def _law(self, state: State) -> Emitted:
        """Law of the next reading, made anew."""

    def law(self, state: State) -> Emitted:
        """Law of the next reading."""
        last: tuple[State, Emitted] | None = self.__dict__.get("_last")
        if last is None or last[0] is not state:
            last = state, self._law(state)
            self.__dict__["_last"] = last  # one assignment: whoever reads meanwhile sees the old pair or the new
        return last[1]
