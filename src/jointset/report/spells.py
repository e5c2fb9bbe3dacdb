"""Spells of trouble in a run of rows: scores that drift, coverage that is lost, sensors that are silent or stuck."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.predictor import JointPredictor
from jointset.runs import Run
from jointset.sensor_health import observe, start_health, unknown_usual

MOST = 8  # sensors named


class Spell(NamedTuple):
    """Rows first .. last in which something was wrong; `last` is None while it goes on."""

    kind: str
    first: int
    last: int | None
    sensors: tuple[str, ...] = ()


def spells_of(before: JointPredictor, run: Run, shares: Array) -> list[Spell]:
    """The spells of a run that a predictor was about to make, in the order of their first rows.

    shares (K, N) are those of the last K rows: they name the sensors behind a drift.
    """
    found = [*_drifts(before, run, shares), *_ailments(before, run)]
    return sorted(found, key=lambda spell: spell.first)


def _drifts(before: JointPredictor, run: Run, shares: Array) -> Iterator[Spell]:
    """Spells of the two detectors of `jointset.trust`."""
    watch = before.watch
    if watch is None:
        return
    drift, coverage = np.zeros((2, len(run.score)), bool)
    for row, (score, inside) in enumerate(zip(run.score.tolist(), run.inside.tolist(), strict=True)):
        watch = watch.update(score, inside)
        found = watch.trust(0.0)
        drift[row], coverage[row] = found.drift >= 1.0, found.coverage_alarm
    for kind, alarm in (("drift", drift & ~coverage), ("coverage", coverage)):
        for first, last in stretches(alarm):
            yield Spell(kind, first, last, _blamed(run, shares, first, len(alarm) if last is None else last + 1))


def _blamed(run: Run, shares: Array, first: int, stop: int) -> tuple[str, ...]:
    """Sensors that weigh more than twice their part in the rows outside, heaviest first."""
    start = len(run.score) - len(shares)
    rows = slice(max(first - start, 0), max(stop - start, 0))
    outside = shares[rows][~run.inside[start:][rows]]
    if not len(outside):
        return ()
    mean = np.nan_to_num(outside).mean(axis=0)
    order = np.argsort(-mean, kind="stable")[:MOST]
    return tuple(run.sensors[i] for i in order if mean[i] > 2.0 / len(mean))


def _ailments(before: JointPredictor, run: Run) -> Iterator[Spell]:
    """Spells in which a sensor was silent or stuck, as a stream would have told."""
    n = len(run.sensors)
    usual, health = before.usual or unknown_usual(n), start_health(n)
    ill = {"silent": np.zeros(run.values.shape, bool), "stuck": np.zeros(run.values.shape, bool)}
    for row, y in enumerate(run.values):
        health = observe(health, y)
        ill["silent"][row], ill["stuck"][row] = health.silent(usual), health.stuck(usual)
    for kind, flags in ill.items():
        for i in np.flatnonzero(flags.any(axis=0)):
            for first, last in stretches(flags[:, i]):
                yield Spell(kind, first, last, (run.sensors[i],))


def stretches(flags: Array) -> list[tuple[int, int | None]]:
    """First and last row of every stretch of True (T,); None for one that goes on at the end.

    >>> stretches(np.array([True, True, False, True]))
    [(0, 1), (3, None)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    pairs: list[Any] = edges.reshape(-1, 2).tolist()
    return [(first, None if stop == len(flags) else stop - 1) for first, stop in pairs]
