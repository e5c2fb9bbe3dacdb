"""Which rule should a default have? Two rules around the same laws, on rows before the test blocks.

    python benchmarks/rules.py [--rules aci auto] [--methods quick quick:box ewma kalman-tuned time-of-day] [CELL ...]

The calibration block of a cell is cut in two: the first half calibrates, the second is scored. Under each rule: joint
coverage, the worst 500 steps, the lowest hour of the day, log mean volume and joint score (size and misses in one
figure, docs/benchmark.md; lower is better); at the end in how many pairs the second rule is better, and by how much.
"""

import argparse

import numpy as np
from windows import ALPHA, CELLS, without_test

from jointset.bench.measures import measures
from jointset.datasets.cells import cell
from jointset.experiments.rows import run_rows

METHODS = ("quick", "quick:box", "ewma", "kalman-tuned", "time-of-day")
SHOWN = ("joint", "worst_window", "worst_hour", "log_mean_volume", "joint_score")


def main() -> None:
    """A line a cell and method, two figures each, and the sum of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cells", nargs="*", default=CELLS)
    parser.add_argument("--rules", nargs=2, default=("aci", "auto"))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    options = parser.parse_args()
    print(f"| cell | method | {' | '.join(SHOWN)} |\n|---|---|{'---|' * len(SHOWN)}", flush=True)
    pairs = []
    for name in options.cells:
        rows = without_test(cell(name, "text"))
        for method in options.methods:
            runs = run_rows([f"{method}+{rule}" for rule in options.rules], rows, ALPHA)
            one, other = ([measures(run, ALPHA)[key] for key in SHOWN] for _, _, run, _ in runs)
            pairs.append((one, other))
            shown = " | ".join(f"{a:.3f}, {b:.3f}" for a, b in zip(one, other, strict=True))
            print(f"| {name} | `{method}` | {shown} |", flush=True)
    found = np.array(pairs)
    score, size = np.log(found[:, 1, -1] / found[:, 0, -1]), found[:, 1, -2] - found[:, 0, -2]
    print(f"\n{options.rules[1]} beside {options.rules[0]}, {len(found)} pairs")
    print(f"lower joint score in {(score < 0).sum()}, by {-100 * np.expm1(score.mean()):.1f} % on average")
    print(f"smaller log mean volume in {(size < 0).sum()}, by {-size.mean():.3f} on average")


if __name__ == "__main__":
    main()
