"""Joint coverage of what was read, by how much was missing: four kinds of gaps, any methods, any cells.

    python benchmarks/gap_coverage.py [--cells metr-la-20 aqi-12] [--methods static+aci] [--kinds random] [--test]

Gaps are in training, calibration and test rows alike. `random`: every row lacks a share of its sensors of its own;
`fifth`: every reading is hidden with probability 0.2; `sensors`: for 200 rows at a time the same sensors are out;
`network`: about every 150 rows all sensors are out for 1 to 24 rows, and the rows after that count; `mask`: METR-LA
with its zeros as gaps, as they are. Without `--test` the validation block calibrates and the calibration block is
scored: choices are made there. A cell of the table is the coverage and, in brackets, the number of rows.
"""

import argparse
import sys
import time
import warnings

import numpy as np

from jointset.catalogue import TABLE
from jointset.datasets.cells import cell
from jointset.methods import parse, predictor_for
from jointset.panel import Panel

METHODS = ("static+aci", "ewma+aci", "copula+aci", "kalman+aci", "gnf-node+aci", "quick")
SHARES = (0.0, 0.05, 0.2, 0.45)
EDGES = (0.0, 1e-9, 0.1, 0.3, 0.6)  # of the strata: none, to a tenth, to three tenths, to six tenths
STRATA = ("0", "1-10 %", "10-30 %", "30-60 %")
SINCE = ("1st row", "2-6", "7-24", "later")  # rows after the network was out


def hidden(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Which readings (T, N) to hide."""
    steps, n = shape
    out = np.zeros(shape, dtype=bool)
    if kind == "fifth":
        return rng.random(shape) < 0.2
    if kind == "network":
        start = 0
        while (start := start + int(rng.integers(100, 200))) < steps:
            length = int(rng.integers(1, 25))
            out[start : start + length] = True
            start += length
        return out
    for start in range(0, steps, 1 if kind == "random" else 200):
        count = round(rng.choice(SHARES) * n)
        out[start : start + (1 if kind == "random" else 200), rng.permutation(n)[:count]] = True
    return out


def with_gaps(panel: Panel, kind: str, seed: int) -> Panel:
    """The panel with readings hidden."""
    if kind == "mask":
        return panel
    return panel.with_values(
        np.where(hidden(kind, panel.values.shape, np.random.default_rng(seed)), np.nan, panel.values)
    )


def strata(panel: Panel, kind: str) -> np.ndarray:
    """Number of the stratum of every row; -1 for rows that are in none."""
    missing = np.isnan(panel.values)
    if kind != "network":
        found = np.searchsorted(EDGES, missing.mean(axis=1), side="left") - 1 + (~missing.any(axis=1))
        return np.where(missing.mean(axis=1) > EDGES[-1], -1, found)
    dark = missing.all(axis=1)
    since = np.arange(len(dark)) - np.maximum.accumulate(np.where(dark, np.arange(len(dark)), -10_000))
    return np.where(dark, -1, np.searchsorted((1, 6, 24), since))


def blocks_of(name: str, kind: str, test: bool, trained_whole: bool = False) -> list[Panel]:
    """Training, calibration and scored rows."""
    data = cell(name, missing="mask" if kind == "mask" else None)
    names = ("train", "calibration", "test") if test else ("train", "validation", "calibration")
    blocks = [with_gaps(data.block(one), kind, seed) for seed, one in enumerate(names)]
    return [data.train, *blocks[1:]] if trained_whole else blocks


def measure(method: str, blocks: list[Panel], kind: str, training: dict) -> tuple[str, list[str]]:
    """Coverage of all rows with a reading, and of every stratum."""
    train, calibration, test = blocks
    learned = TABLE[parse(method).method].learned
    predictor = predictor_for(method, training=training if learned else None)
    run = predictor.fit(train).calibrate(calibration).run(test, regions=False)
    read, which = ~np.isnan(run.score), strata(test, kind)
    parts = []
    for k in range(4):
        rows = (which == k) & read
        parts.append(f"{run.inside[rows].mean():.3f} ({rows.sum()})" if rows.sum() else "-")
    return f"{run.inside[read].mean():.3f}", parts


def main() -> None:
    """Print a table for every cell and kind of gaps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=["metr-la-20", "aqi-12"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--kinds", nargs="+", default=["random", "fifth", "sensors", "network"])
    parser.add_argument("--steps", type=int, help="of training, where a method learns")
    parser.add_argument("--device", default="cpu", help="of training")
    parser.add_argument("--test", action="store_true", help="the official blocks, for what is written down")
    parser.add_argument("--trained-whole", action="store_true", help="no gaps in the training rows")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    training = {"device": given.device} | ({"steps": given.steps} if given.steps else {})
    for name in given.cells:
        for kind in given.kinds:
            blocks = blocks_of(name, kind, given.test, given.trained_whole)
            head = SINCE if kind == "network" else STRATA
            print(f"\n{name}, {kind}\n\n| method | all | {' | '.join(head)} | s |\n|---{'|---' * 6}|")
            for method in given.methods:
                start = time.perf_counter()
                every, parts = measure(method, blocks, kind, training)
                print(f"| {method} | {every} | {' | '.join(parts)} | {time.perf_counter() - start:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
