"""Files of audits in a results folder, one for each cell and filter: what it is about, then an object an audit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jointset
from jointset.errors import InputError
from jointset.pages.shell import write_text
from jointset.paper_rows import row_in_paper
from jointset.writing import json_ready, new_folder

FOLDER = "_audits"
PLAIN = ("value", "rate", "rho", "tau", "ratio", "mean", "bernstein")  # where a record keeps its one number


class Audited(NamedTuple):
    """The audits of one filter on one cell, by name, and what their file says of them."""

    facts: Mapping[str, Any]
    audits: Mapping[str, Mapping[str, Any]]

    @property
    def cell(self) -> str:
        """The cell with its number of sensors, as the paper's tables call it."""
        from jointset.bench.tables.measured import full_name

        size = self.facts.get("n")
        return full_name(str(self.facts.get("cell", "")), size if isinstance(size, int) else 0)

    @property
    def filter(self) -> str:
        """The filter, as asked for."""
        return str(self.facts.get("filter", ""))

    @property
    def kind(self) -> str:
        """`gnf` for the learned graph filters, `kalman` for the linear one, as the paper's tables call them."""
        return row_in_paper(self.filter.partition("+")[0])

    def number(self, path: str) -> float | None:
        """The number at the first of several paths that leads to one; None where none does.

        >>> one = Audited({}, {"spectrum": {"condition": {"p50": 3.0}}})
        >>> one.number("cond|spectrum.condition.p50")
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


def about(subject: str, method: str, **facts: Any) -> dict[str, Any]:
    """What a file of audits is about; stands before the audits."""
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"cell": subject, "filter": method, **facts, "version": jointset.__version__, "started": started}


def audit_file(folder: str | Path, cell: str, method: str) -> Path:
    """Where the audits of a cell and a filter lie.

    >>> str(audit_file("out", "metr-la-20", "gnf-node"))
    'out/_audits/metr-la-20--gnf-node.json'
    """
    plain = [re.sub(r"[^A-Za-z0-9.+_-]+", "-", part).strip("-") for part in (cell, method)]
    return Path(folder) / FOLDER / f"{'--'.join(plain)}.json"


def audit_files(folder: str | Path) -> list[Path]:
    """The files of audits of a results folder, by name."""
    return sorted((Path(folder) / FOLDER).glob("*.json"))


def write_audits(path: Path, content: dict[str, Any]) -> None:
    """Write a file of audits, whole or not at all."""
    new_folder(path.parent)
    write_text(path, json.dumps(json_ready(content), indent=1, allow_nan=False) + "\n")


def read_audits(path: Path) -> Audited:
    """The audits of a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read ({reason}): delete it, or `jointset audit` it with --again") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} holds no audits: delete it, or `jointset audit` it with --again")
    audits = {name: value for name, value in content.items() if isinstance(value, dict)}
    return Audited({name: value for name, value in content.items() if name not in audits}, audits)


def _walk(record: object, keys: list[str]) -> Any:
    for key in keys:
        if not isinstance(record, Mapping):
            return None
        record = record.get(key)
    return record


def _value(found: object) -> float | None:
    if isinstance(found, Mapping):
        found = next((found[key] for key in PLAIN if isinstance(found.get(key), int | float)), None)
    if isinstance(found, bool) or not isinstance(found, int | float) or math.isnan(found):
        return None
    return float(found)
