"""Errors a user can act on: one line that says what, where and what to do."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input. The message is one line; the command line prints it and exits with code 2."""


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless the condition holds."""
    if not condition:
        raise InputError(message)


def require_alpha(alpha: float) -> None:
    """Refuse a miss rate outside (0, 1), NaN included."""
    require(0.0 < alpha < 1.0, f"alpha must lie strictly between 0 and 1, got {alpha}: 0.1 asks for 90 % coverage")
