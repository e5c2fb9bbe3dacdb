r"""InfluxDB line protocol: `measurement,tag=value field=1.5,other=2i 1700000000000000000`, with its escapes.

A backslash before a comma, an equals sign or a space makes it part of a name; text in fields stands in double quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from jointset.errors import InputError, require

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,20}[iu]", re.ASCII)
STAMP = re.compile(r"-?\d{1,19}", re.ASCII)
TRUE, FALSE = ("t", "T", "true", "True", "TRUE"), ("f", "F", "false", "False", "FALSE")


class Point(NamedTuple):
    """One line: a name, tags, fields (text stays text) and a time stamp in the unit of the sender."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, float | str]
    stamp: int | None


def points(number: int, line: str) -> Iterator[Point]:
    r"""The point of a line, none for a comment.

    >>> list(points(1, r"traffic,sensor=a\ 1 value=61.5,n=3i 1700000000"))
    [Point(measurement='traffic', tags={'sensor': 'a 1'}, fields={'value': 61.5, 'n': 3.0}, stamp=1700000000)]
    """
    line = line.strip()
    if line.startswith("#"):
        return
    parts = _split(line, " ", quotes=True)
    parts = [part for part in parts if part]
    shape = "measurement,tag=value field=number time"
    require(len(parts) in (2, 3), f"line {number} is no line protocol: write {shape}")
    head = _split(parts[0], ",")
    measurement = _plain(head[0])
    require(measurement != "", f"line {number} has no measurement: write {shape}")
    tags = dict(_pair(number, part) for part in head[1:])
    fields = {}
    for part in _split(parts[1], ",", quotes=True):
        key, value = _pair(number, part)
        fields[key] = _value(number, key, value)
    stamp = None
    if len(parts) == 3:
        require(
            STAMP.fullmatch(parts[2]) is not None, f"line {number}: {parts[2][:40]!r} is no time stamp: send digits"
        )
        stamp = int(parts[2])
    yield Point(measurement, tags, fields, stamp)


def _split(text: str, at: str, *, quotes: bool = False) -> list[str]:
    """Pieces between the marks that are neither escaped nor, where quotes count, in quotes."""
    pieces, start, quoted, i = [], 0, False, 0
    while i < len(text):
        if text[i] == "\\":
            i += 2
            continue
        quoted ^= quotes and text[i] == '"'
        if text[i] == at and not quoted:
            pieces.append(text[start:i])
            start = i + 1
        i += 1
    return [*pieces, text[start:]]


def _pair(number: int, text: str) -> tuple[str, str]:
    parts = _split(text, "=", quotes=True)
    if len(parts) != 2 or not parts[0] or not parts[1]:
        raise InputError(f"line {number}: {text[:40]!r} is not name=value")
    return _plain(parts[0]), parts[1] if parts[1].startswith('"') else _plain(parts[1])


def _plain(text: str) -> str:
    return re.sub(r"\\([,= \\])", r"\1", text)


def _value(number: int, key: str, text: str) -> float | str:
    """A field: a number, a truth value as 1 or 0, or text."""
    if text in TRUE or text in FALSE:
        return float(text in TRUE)
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    value = math.inf
    if NUMBER.fullmatch(text) or WHOLE.fullmatch(text):
        value = float(text.rstrip("iu"))
    require(math.isfinite(value), f"line {number}: field {key[:40]!r} is {text[:40]!r}, no finite number: send one")
    return value
