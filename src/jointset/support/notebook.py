"""What a notebook shows of a panel, a predictor, a set or a run: a small table in HTML."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def shown(title: str, facts: Mapping[str, str]) -> str:
    """A table of two columns under a title.

    >>> shown("Panel", {"sensors": "a < b"})
    '<table><caption><b>Panel</b></caption><tr><th>sensors</th><td>a &lt; b</td></tr></table>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items())
    return f"<table><caption><b>{escape(title)}</b></caption>{rows}</table>"


def listed(names: tuple[str, ...], most: int = 4) -> str:
    """How many names there are, and the first of them.

    >>> listed(("a", "b")), listed(("a", "b", "c"), most=2)
    ('2 (a, b)', '3 (a, b, ...)')
    """
    return f"{len(names):,} ({', '.join(names[:most])}{', ...' * (len(names) > most)})"
