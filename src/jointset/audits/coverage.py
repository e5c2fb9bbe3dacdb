"""Audits of what was seen: the share of rows inside their set, held against what was promised, and by the clock."""

from __future__ import annotations

import numpy as np

from jointset.audits.records import Record, curve, listed
from jointset.audits.subject import Skip, Subject
from jointset.contracts import Array
from jointset.errors import some
from jointset.predicting.clock_coverage import WEEKDAYS
from jointset.predicting.promise import promise_of

WINDOW = 200  # rows of the moving share, at most a fifth of them all
DRAWN = 200  # points of its curve


def coverage(subject: Subject) -> Record:
    """Share of the rows after calibration inside their set, over all and in a moving window."""
    run = subject.run
    promise = promise_of(subject.predictor, run)
    if promise is None:
        raise Skip("no row has a reading")
    dead = subject.silent(slice(subject.calibrating, None))
    window, share = _moving(run.inside[~np.isnan(run.score)])
    drawn = np.unique(np.linspace(0, len(share) - 1, DRAWN).round().astype(int))
    label = f"share inside of the last {window} rows (dashed: target)"
    left = f"; no reading at all: {some(dead)}" if dead else ""
    return {
        "value": promise.seen,
        "target": promise.target,
        "steps": promise.steps,
        "band": [promise.low, promise.high],
        "word": promise.word,
        "dead": dead,
        "worst_window": float(share.min()),
        "window": window,
        "curve": {**curve(drawn + window, share[drawn], label), "xlabel": "row", "target": promise.target},
        "verdict": promise.sentence + left,
    }


def clock(subject: Subject) -> Record:
    """Share of the rows inside by hour of day and by weekday, with what chance does not explain."""
    found = subject.run.clock
    if found is None:
        raise Skip("needs time stamps at several hours of the day")
    hour, target = found.hour, 1.0 - subject.alpha
    hours = zip(hour.groups, hour.share, hour.rows, hour.low, hour.high, strict=True)
    names = [WEEKDAYS[day] for day in found.weekday.groups]
    days = zip(names, found.weekday.share, found.weekday.rows, found.weekday.low, found.weekday.high, strict=True)
    keys = ("share", "rows", "low", "high")
    return {
        "value": found.worst,
        "target": target,
        "hours": {f"{name:02d}": dict(zip(keys, map(float, numbers), strict=True)) for name, *numbers in hours},
        "weekdays": {name: dict(zip(keys, map(float, numbers), strict=True)) for name, *numbers in days},
        "rows": listed(found.rows),
        "hits": listed(found.hits),
        "verdict": clock_words(found.words, subject.run.joint),
    }


def _moving(inside: Array) -> tuple[int, Array]:
    """Window, and the share inside of every one."""
    window = max(1, min(WINDOW, len(inside) // 5))
    hits = np.concatenate([[0], np.cumsum(inside)])
    return window, (hits[window:] - hits[:-window]) / window


def clock_words(words: str, joint: float) -> str:
    """What a share over all hides.

    >>> clock_words("by the hour 31 % at 05 h to 100 % at 02 h", 0.901)
    '90.1 % of the rows were inside over all, but by the hour 31 % at 05 h to 100 % at 02 h'
    """
    if words:
        return f"{100 * joint:.1f} % of the rows were inside over all, but {words}"
    return f"no hour and no weekday differs from the {100 * joint:.1f} % over all by more than chance explains"
