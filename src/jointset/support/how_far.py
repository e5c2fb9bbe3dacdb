"""How far something long is, told to whoever listens: work deep inside a method needs no argument for it.

Whoever shows it listens (`listening`). Whoever works says how many of its parts are done (`each`, `part`, `tell`), and
parts of parts count for their share. Where nobody listens, and in other threads, nothing happens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

Told = Callable[[int, int, float], None]  # the step, how many there are, and what it has come to
FINE = 1000  # steps that the whole is told in
T = TypeVar("T")


@dataclass
class _Listener:
    told: Told
    low: float = 0.0  # where the part at work begins, and where it ends
    high: float = 1.0
    last: int = 0  # that was told: it never goes back

    def reached(self, share: float) -> None:
        """Tell that this share of the part at work is done."""
        step = int(FINE * (self.low + share * (self.high - self.low)) + 1e-6)
        if step > self.last:
            self.last = step
            self.told(step, FINE, float("nan"))


_LISTENER: ContextVar[_Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(told: Told | None) -> Iterator[None]:
    """Let a function hear how far the work inside is; None: whoever listened before goes on.

    >>> with listening(lambda step, steps, loss: print(step, "of", steps)):
    ...     for _ in each("ab"):
    ...         tell(1, 2)
    250 of 1000
    500 of 1000
    750 of 1000
    1000 of 1000
    """
    token = _LISTENER.set(_LISTENER.get() if told is None else _Listener(told))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(step: int, steps: int) -> None:
    """Say that so many steps of the part at work are done."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.reached(step / steps)


def telling() -> Told:
    """A progress function that tells whoever listens now, from other threads too."""
    listener = _LISTENER.get()
    return lambda step, steps, loss: None if listener is None else listener.reached(step / steps)


def part(number: int, parts: int) -> AbstractContextManager[None]:
    """Work on one of several parts, counted from 1, that take about as long; what is told inside is of this part."""
    return between((number - 1) / parts, number / parts)


@contextmanager
def between(begin: float, end: float) -> Iterator[None]:
    """Work on the part from one share of the whole to another."""
    listener = _LISTENER.get()
    if listener is None:
        yield
        return
    low, high = listener.low, listener.high
    listener.low, listener.high = low + begin * (high - low), low + end * (high - low)
    try:
        yield
        listener.reached(1.0)
    finally:
        listener.low, listener.high = low, high


def each(items: Sequence[T]) -> Iterator[T]:
    """The items one after the other, each a part of the work."""
    for number, item in enumerate(items, start=1):
        with part(number, len(items)):
            yield item


def tells(filter_: Any) -> bool:
    """Whether the `fit` of a filter takes a progress function."""
    return "progress" in inspect.signature(filter_.fit).parameters


def in_rows(progress: Callable[[int], None] | None, rows: int) -> Told | None:
    """A function to listen with, for a progress function that is told how many more of these rows are done."""
    if progress is None:
        return None
    done = 0

    def told(step: int, steps: int, loss: float) -> None:
        nonlocal done
        more = round(rows * step / steps) - done
        done += more
        if more:
            progress(more)

    return told
