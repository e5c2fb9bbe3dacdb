"""Seconds of ACI over a million scores, against sorting the calibration scores anew at every step.

Run: python benchmarks/aci.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from jointset.calibration import ACI, RULES, calibration
from jointset.calibration.quantiles import score_quantile

M = 10_000
STEPS = 1_000_000
SUBSET = 2_000


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Best of a few runs: the least disturbed by other work on the machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def sorting_each_step(pool: np.ndarray, scores: np.ndarray, alpha: float = 0.1, gamma: float = 0.005) -> np.ndarray:
    """ACI as the formula reads: the quantile is taken from the unsorted scores at every step."""
    level, radii = alpha, np.empty(len(scores))
    for t, score in enumerate(scores.tolist()):
        radii[t] = score_quantile(np.sort(pool), level)
        level = min(max(level + gamma * (alpha - (score > radii[t])), 1e-4), 1 - 1e-4)
    return radii


def stepping(rule: ACI, pool: np.ndarray, scores: np.ndarray) -> None:
    state = rule.start(pool)
    for score in scores.tolist():
        rule.radius(state)
        state = rule.update(state, score)


def main() -> None:
    rng = np.random.default_rng(0)
    pool, scores = rng.chisquare(20, M), rng.chisquare(20, STEPS)
    few, rule = scores[:SUBSET], ACI()
    assert np.array_equal(rule.run(rule.start(pool), few)[0], sorting_each_step(pool, few)), "the two paths differ"

    scale = STEPS / SUBSET
    slow = seconds(lambda: sorting_each_step(pool, few)) * scale
    stepped = seconds(lambda: stepping(rule, pool, few)) * scale
    fast = seconds(lambda: rule.run(rule.start(pool), scores))

    table = Table(title=f"ACI, {STEPS:,} scores, {M:,} calibration scores")
    for column in ("path", "seconds", "us a step", "ratio"):
        table.add_column(column, justify="left" if column == "path" else "right")
    for name, taken in [
        (f"sorting at every step (timed on {SUBSET:,} steps, scaled)", slow),
        (f"radius, update (timed on {SUBSET:,} steps, scaled)", stepped),
        ("run, whole sequence (timed in full)", fast),
    ]:
        table.add_row(name, f"{taken:.2f}", f"{taken / STEPS * 1e6:.2f}", f"{slow / taken:.0f}x")
    console = Console(width=120)
    console.print(table)

    growth = Table(title=f"Every rule, microseconds a step of run over {SUBSET:,} scores")
    sizes = (100, 1_000, 10_000)
    for column in ("rule", *(f"m = {m:,}" for m in sizes)):
        growth.add_column(column, justify="left" if column == "rule" else "right")
    for name in RULES:
        other = calibration(name)
        states = [other.start(pool[:m]) for m in sizes]
        cells = [seconds(lambda rule=other, state=state: rule.run(state, few)) / SUBSET * 1e6 for state in states]
        growth.add_row(name, *(f"{cell:.2f}" for cell in cells))
    console.print(growth)


if __name__ == "__main__":
    main()
