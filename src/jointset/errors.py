"""Errors a user can act on: one line that says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence


class InputError(ValueError):
    """Bad input. The message is one line; the command line prints it and exits with code 2."""


class BadRow(InputError):
    """Bad input in rows of a table, which `say` is given a function to name: whoever knows the file names its lines.

    >>> print(BadRow(lambda place: f"no time in {place(3)}"))
    no time in row 3 (from 0)
    """

    def __init__(self, say: Callable[[Callable[[int], str]], str]) -> None:
        super().__init__(say(lambda row: f"row {row} (from 0)"))
        self.say = say

    def __reduce__(self) -> tuple[type[InputError], tuple[str]]:
        return InputError, (str(self),)


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless the condition holds."""
    if not condition:
        raise InputError(message)


def require_known(name: str, known: Collection[str], problem: str) -> None:
    """Raise `InputError("problem: what to do about it")` unless the name is known; a good name costs nothing.

    >>> require_known("b", ["a"], "unknown sensor 'b'")
    Traceback (most recent call last):
    jointset.errors.InputError: unknown sensor 'b': there are 'a'
    """
    if name not in known:
        raise InputError(f"{problem}: {suggest(name, [*known])}")


def require_alpha(alpha: float) -> None:
    """Refuse a miss rate outside (0, 1), NaN included."""
    require(0.0 < alpha < 1.0, f"alpha must lie strictly between 0 and 1, got {alpha}: 0.1 asks for 90 % coverage")


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first few names, quoted, and how many more.

    >>> some(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(repr(str(name)) for name in names[:limit]) + more


def suggest(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """What to do about an unknown name: close matches, or what there is; and what else could be done.

    >>> suggest("senser_1", ["sensor_1", "b"]), suggest("x", ["b"], "or drop it")
    ("did you mean 'sensor_1'?", "there are 'b'; or drop it")
    """
    import difflib

    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"did you mean {some(close)}? {otherwise}".rstrip()
    return "; ".join(filter(None, (f"there are {some(known)}", otherwise)))
