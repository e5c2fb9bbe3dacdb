"""Audits of a results folder as the report shows them: verdicts, numbers and curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jointset.audits.light import overall
from jointset.audits.stored import audit_files, read_audits
from jointset.bench.report_traces import digits
from jointset.errors import InputError

POINTS = 120  # of a curve
FIGURES = 4  # numbers shown of one audit


class Finding(NamedTuple):
    """One audit: its name in the paper, its main numbers, what they mean, what the paper prints, why ours differs."""

    name: str
    numbers: str
    verdict: str
    paper: str = ""
    note: str = ""


class Shown(NamedTuple):
    """The audits of one file as the page shows them; curves are {"label", "x", "y"}."""

    title: str
    about: str
    findings: tuple[Finding, ...]
    curves: tuple[dict[str, Any], ...]
    problem: str = ""
    light: str = ""  # colour and sentence over all of them


def audits_shown(folder: str | Path) -> list[Shown]:
    """All audits of a folder; a file that cannot be read is listed with the reason instead of stopping the page."""
    return [_shown_file(file) for file in audit_files(folder)]


def _shown_file(file: Path) -> Shown:
    title = file.stem.replace("--", ", ")
    try:
        found = read_audits(file)
    except InputError as error:
        return Shown(title, "", (), (), str(error))
    about = ", ".join(f"{key} {shown(value)}" for key, value in found.facts.items() if value is not None)
    findings = tuple(_finding(name, record) for name, record in found.audits.items())
    curves = tuple(curve for name, record in found.audits.items() if (curve := _curve(name, record)) is not None)
    light = overall(found.audits)
    told = f"{light['light']}: {light['verdict']}" if light["light"] != "grey" else ""
    return Shown(title, about, findings, curves, light=told)


def _finding(name: str, record: Mapping[str, object]) -> Finding:
    numbers = [
        f"{'' if key == 'value' else key.replace('_', ' ')} {shown(item)}".strip()
        for key, item in record.items()
        if isinstance(item, (bool, int, float)) and key not in ("seconds", "paper")
    ]
    reasons = [f"{key}: {record[key]}" for key in ("skipped", "failed") if record.get(key)]
    verdict = str(record.get("verdict") or next(iter(reasons), ""))
    printed = record.get("paper")
    paper = "" if printed is None else shown(printed)
    return Finding(name, ", ".join(numbers[:FIGURES]), verdict, paper, str(record.get("note") or ""))


def _curve(name: str, record: Mapping[str, object]) -> dict[str, Any] | None:
    curve: Any = record.get("curve")
    points = _points(curve) if isinstance(curve, Mapping) else []
    if not points:
        return None
    x, y = zip(*points, strict=True)
    axes = {f"{side}label": str(curve.get(f"{side}label") or "") for side in "xy"}
    return {"name": name, "label": str(curve.get("label") or name), "x": x, "y": y, **axes}


def _points(curve: Mapping[str, object]) -> list[tuple[Any, Any]]:
    x, y = curve.get("x"), curve.get("y")
    if not isinstance(y, list) or not y:
        return []
    x = x if isinstance(x, list) and len(x) == len(y) else list(range(len(y)))
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if _finite(a) and _finite(b)]
    every = max(1, math.ceil(len(pairs) / POINTS))
    return [(digits(a), digits(b)) for a, b in pairs[::every]]


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def shown(value: object) -> str:
    """A value in words and few digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
