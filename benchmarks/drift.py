"""Who holds its coverage when readings drift: wraps of a method on simulated drifts, and on tracks of GRSSF.

Run: python benchmarks/drift.py [METHOD] [KIND ...]    (kalman on all of DRIFTS; E and D are tracks of GRSSF)

Medians over seeds. Cost: mean log-volume above that of the same shapes with the two best fixed radii, before and after
the middle of the test block, where the jump is: known to nobody beforehand.
"""

from __future__ import annotations

import sys

import numpy as np

from jointset.bench.measures import coin, steadiness
from jointset.calibration import calibration
from jointset.datasets import generate_grssf
from jointset.datasets.drift import DRIFTS, with_drift
from jointset.methods import predictor_for, three_blocks
from jointset.panel import Panel

WRAPS = ("split", "aci", "aci-tail", "agaci", "dtaci", "pid", "sfogd", "saocp", "eci", "window", "auto-alone", "auto")
SEEDS, N, LENGTH = range(20, 25), 30, 8000


def figures(score: np.ndarray, radius: np.ndarray) -> list[float]:
    """Coverage, that of the 200 steps after the middle, P90 of the gap of 100 steps, and cost."""
    inside, middle = score <= radius, len(score) // 2
    halves = np.split(score, [middle])
    known = np.concatenate([np.full(len(half), np.sort(half)[int(np.ceil(0.9 * len(half))) - 1]) for half in halves])
    after = inside[middle : middle + 200].mean()
    return [inside.mean(), after, steadiness(inside, 0.1)["gap_100_p90"], np.log(radius / known).mean() / 2]


def network(kind: str, seed: int) -> Panel:
    """Readings that drift in their last tenth."""
    if kind in DRIFTS:
        return with_drift(generate_grssf("A", n=N, seed=seed, length=LENGTH).panel, kind)
    return generate_grssf(kind, n=N, seed=seed, length=LENGTH).panel


def measured(method: str, kind: str) -> dict[str, list[float]]:
    """Medians over seeds of the figures of every wrap; a radius that is not finite makes its cost so."""
    found: dict[str, list[list[float]]] = {wrap: [] for wrap in WRAPS}
    for seed in SEEDS:
        train, calibrating, test = three_blocks(network(kind, seed), 0.8, 0.1)
        plain = predictor_for(f"{method}+{WRAPS[0]}").fit(train).calibrate(calibrating)
        runs = plain.run_with([plain.rewrapped(calibration(wrap)) for wrap in WRAPS[1:]], test)
        for wrap, (run, _) in zip(WRAPS, runs, strict=True):
            found[wrap].append(figures(run.score, run.radius))
    return {wrap: np.median(rows, axis=0).tolist() for wrap, rows in found.items()}


def main(method: str = "kalman", *kinds: str) -> None:
    drifts = {kind: measured(method, kind) for kind in kinds or DRIFTS}
    print(f"| wrap | {' | '.join(drifts)} |\n{'|---' * (len(drifts) + 1)}|")
    for wrap in WRAPS:
        entries = (found[wrap] for found in drifts.values())
        shown = (f"{joint:.3f} / {after:.3f} / {gap:.3f} / {cost:+.3f}" for joint, after, gap, cost in entries)
        print(f"| `+{wrap}` | {' | '.join(shown)} |")
    steps = LENGTH // 10
    print(f"An ideal coin of {steps} steps has a P90 gap of {coin(steps, 0.1)['gap_100_p90']:.3f}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
