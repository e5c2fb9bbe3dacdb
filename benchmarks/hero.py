"""The picture at the head of the README: METR-LA-20, the learned node-wise filter, the last 800 test steps.

    python benchmarks/hero.py --out docs/images/metr-la.png

Trains for about a minute on a free core. Readings are in miles per hour, zeros kept as values: the last steps are drawn
as in more than half of the first 800 every detector reads zero.
"""

import argparse
from pathlib import Path

from table import seconds, show  # first: sets the number of threads

from jointset.datasets.cells import cell
from jointset.methods import predictor_for
from jointset.report.figures import overview_figure

STEPS = 800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", default="metr-la-20")
    parser.add_argument("--method", default="gnf-node")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    found = cell(asked.cell)
    train, calibration, test = (found.raw[found.blocks[name]] for name in ("train", "calibration", "test"))
    predictor = predictor_for(asked.method)
    fitting = seconds(lambda: predictor.fit(train).calibrate(calibration), repeats=1)
    before, run = predictor.run(test[:-STEPS]), predictor.run(test[-STEPS:])
    overview_figure(run, predictor.alpha).savefig(asked.out)
    rows = [
        ("fit and calibrate", f"{fitting:.0f} s", ""),
        (f"inside, {len(before.score)} steps before", f"{100 * before.joint:.1f} %", "target 90 %"),
        (f"inside, last {len(run.score)} steps", f"{100 * run.joint:.1f} %", "target 90 %"),
    ]
    show(f"{asked.cell}, {asked.method}", rows)


if __name__ == "__main__":
    main()
