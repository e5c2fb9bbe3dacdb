"""What the paper prints: every number of its tables as written there, by table, row and place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jointset.paper_rows import row_in_paper

HADAMARD = (
    "The paper's log-volumes lie above the logarithm of its widths, which Hadamard's inequality forbids; "
    "ours are exact and are not expected to agree."
)
SIGMA_1 = (
    "The paper prints sigma_1 between 0.433 and 0.443; at its defaults (0.8, 1, 1) the closed form gives 0.338 on "
    "every graph, since the top mode always has f = 0.8. We print what the mathematics gives."
)


@cache
def _tables() -> dict[str, Any]:
    return json.loads((files("jointset") / "paper_values.json").read_text(encoding="utf-8"))


def printed(table: str, row: str, place: str = "") -> Mapping[str, str]:
    """Numbers of one row at one place, as printed; empty where the paper has none.

    A place is a cell, `CELL@BACKBONE`, `CELL#SEED`, or a value of a sweep.

    >>> printed("hero", "gnf-node", "metr-la-20")["width"]
    '3.05'
    """
    values = _tables()[table]["values"]
    return values.get(row_in_paper(row), {}).get(place, {})


def printed_rows(table: str) -> list[str]:
    """Names of the rows of a printed table, in its order."""
    return [*_tables()[table]["values"]]


def printed_places(table: str, row: str) -> list[str]:
    """Places at which a printed row has numbers, in its order."""
    return [*_tables()[table]["values"].get(row_in_paper(row), {})]


def limits(table: str) -> Mapping[str, str]:
    """Upper limits that the paper states in words for a table."""
    return _tables()[table].get("limits", {})


def where(table: str) -> str:
    """Label of the table in the paper's source, or the section that states the numbers."""
    return str(_tables()[table]["where"])
