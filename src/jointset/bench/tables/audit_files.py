"""Audits of a benchmark folder: read from their files, and numbers picked out of them whatever they nest in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jointset.audits.printed import LEARNED
from jointset.errors import InputError

AUDITS = "_audits"
PLAIN = ("value", "rate", "rho", "tau", "ratio", "mean", "bernstein")  # where a record keeps its one number


class Audited(NamedTuple):
    """The audits of one filter on one cell, by name."""

    cell: str
    filter: str
    audits: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """`gnf` for the learned graph filters, `kalman` for the linear one, as the paper's tables call them."""
        return "gnf" if self.filter.partition("+")[0] in LEARNED else self.filter.partition("+")[0]

    def number(self, path: str) -> float | None:
        """The number at the first of several paths that leads to one; None where none does.

        >>> Audited("c", "kalman", {"spectrum": {"condition": {"p50": 3.0}}}).number("cond|spectrum.condition.p50")
        3.0
        """
        for way in path.split("|"):
            found = _value(_walk(self.audits, way.split(".")))
            if found is not None:
                return found
        return None

    def series(self, path: str) -> list[float]:
        """The list of numbers at the first of several paths that leads to one."""
        for way in path.split("|"):
            found = _walk(self.audits, way.split("."))
            if isinstance(found, list) and all(isinstance(x, int | float) for x in found):
                return [float(x) for x in found]
        return []


def read_audits(folder: str | Path) -> list[Audited]:
    """All audits of a folder by cell and filter; empty where there are none."""
    from jointset.bench.tables.measured import full_name

    found = []
    for file in sorted((Path(folder) / AUDITS).glob("*.json")):
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read ({error}): delete it and run `jointset audit` again") from None
        if isinstance(stored, dict):
            name, _, filter_ = file.stem.partition("--")
            size = stored.get("n")
            cell = full_name(str(stored.get("cell", name)), size if isinstance(size, int) else 0)
            nested = stored.get("audits")
            audits = nested if isinstance(nested, dict) else {k: v for k, v in stored.items() if isinstance(v, dict)}
            found.append(Audited(cell, str(stored.get("filter", filter_)), audits))
    return found


def _walk(record: Any, keys: list[str]) -> Any:
    for key in keys:
        if not isinstance(record, Mapping):
            return None
        record = record.get(key)
    return record


def _value(found: Any) -> float | None:
    if isinstance(found, Mapping):
        found = next((found[key] for key in PLAIN if isinstance(found.get(key), int | float)), None)
    if isinstance(found, bool) or not isinstance(found, int | float) or math.isnan(found):
        return None
    return float(found)
