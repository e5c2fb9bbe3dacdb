"""Audits of a results folder for the report: verdicts, numbers and curves, whatever of them a file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jointset.audits.light import overall
from jointset.bench.report_traces import digits

FOLDER = "_audits"
ABOUT = (
    *("cell", "filter", "method", "protocol", "backbone", "seed", "alpha", "recipe", "steps", "n"),
    *("version", "commit", "started"),
)
POINTS = 120  # of a curve
FIGURES = 4  # numbers shown of one audit


class Finding(NamedTuple):
    """One audit: its name in the paper, its main numbers, what they mean, what the paper prints, why ours differs."""

    name: str
    numbers: str
    verdict: str
    paper: str = ""
    note: str = ""


class Audited(NamedTuple):
    """The audits of one file; curves are {"label", "x", "y"}."""

    title: str
    about: str
    findings: tuple[Finding, ...]
    curves: tuple[dict[str, Any], ...]
    problem: str = ""
    light: str = ""  # colour and sentence over all of them


def read_audits(folder: str | Path) -> list[Audited]:
    """All audits of a folder; a file that cannot be read is listed with the reason instead of stopping the page."""
    files = sorted((Path(folder) / FOLDER).glob("*.json"))
    return [_audited(file) for file in files]


def _audited(file: Path) -> Audited:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return Audited(file.stem, "", (), (), f"{file.name} cannot be read: {' '.join(str(error).split())}")
    if isinstance(content, list):
        content = {str(one.get("name", place)): one for place, one in enumerate(content) if isinstance(one, dict)}
    if not isinstance(content, dict):
        return Audited(file.stem, "", (), (), f"{file.name} holds no audits")
    audits = content.get("audits", content)
    if isinstance(audits, list):
        audits = {str(one.get("name", place)): one for place, one in enumerate(audits) if isinstance(one, dict)}
    known = [
        f"{key} {_shown(content[key])}" for key in ABOUT if not isinstance(content.get(key), (dict, list, type(None)))
    ]
    audits = {key: value for key, value in audits.items() if key not in ABOUT} if isinstance(audits, dict) else {}
    findings = tuple(found for key, value in audits.items() if (found := _finding(key, value)) is not None)
    curves = tuple(curve for key, value in audits.items() for curve in _curves(key, value))
    light = overall({key: value for key, value in audits.items() if isinstance(value, Mapping)})
    told = f"{light['light']}: {light['verdict']}" if light["light"] != "grey" else ""
    return Audited(file.stem.replace("--", ", "), ", ".join(known), findings, curves, light=told)


def _finding(name: str, value: Any) -> Finding | None:
    if isinstance(value, Mapping):
        numbers = [f"{key} {_shown(item)}".strip() for key, item in _numbers(value)]
        verdict = _sentence(value.get("verdict"))
        for key in ("skipped", "failed"):
            verdict = verdict or (f"{key}: {value[key]}" if value.get(key) else "")
        printed = value.get("paper")
        paper = "" if printed is None else _shown(printed)
        return Finding(name, ", ".join(numbers[:FIGURES]), verdict, paper, str(value.get("note") or ""))
    if isinstance(value, (bool, int, float)):
        return Finding(name, _shown(value), "")
    return Finding(name, "", value) if isinstance(value, str) and value else None


def _numbers(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, (bool, int, float)) and key not in ("seconds", "paper", "verdict"):
            yield ("" if key == "value" else key.replace("_", " ")), item


def _sentence(verdict: Any) -> str:
    return {True: "passed", False: "failed"}.get(verdict, "") if isinstance(verdict, bool) else str(verdict or "")


def _curves(name: str, value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, Mapping):
        return
    for key in ("curve", "curves"):
        held = value.get(key)
        for curve in held if isinstance(held, list) else [held]:
            if isinstance(curve, Mapping) and (points := _points(curve)):
                x, y = zip(*points, strict=True)
                label = str(curve.get("label") or name)
                axes = {side: str(curve.get(f"{side}label") or curve.get(f"{side}_label") or "") for side in "xy"}
                yield {"name": name, "label": label, "x": x, "y": y, "xlabel": axes["x"], "ylabel": axes["y"]}


def _points(curve: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    x, y = curve.get("x"), curve.get("y")
    if not isinstance(y, list) or not y:
        return []
    x = x if isinstance(x, list) and len(x) == len(y) else list(range(len(y)))
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if _finite(a) and _finite(b)]
    every = max(1, math.ceil(len(pairs) / POINTS))
    return [(digits(a), digits(b)) for a, b in pairs[::every]]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
