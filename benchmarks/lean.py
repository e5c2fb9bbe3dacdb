"""What boxes gain that lean and stop at the ends of ranges, on rows before the calibration block of a cell alone.

    python benchmarks/lean.py [CELL ...] [--methods var,ewma,...]

Fitted on the first 70 % of these rows, calibrated on 15 %, tested on the last 15 %, ACI at 90 %: width of upright and
of leaning boxes, their coverage, how far they lean at a low, a middle and a high level, and how many of the sensors
have a lowest and a highest end.
"""

import argparse
import warnings

import numpy as np

import jointset
from jointset.datasets.cells import cell
from jointset.methods import three_blocks

CELLS = ("metr-la-20", "aqi-12", "ett-7", "jena-20", "elec-20", "solar-12")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cells", nargs="*", default=CELLS)
parser.add_argument("--methods", default="var,ewma")
asked = parser.parse_args()
warnings.simplefilter("ignore")
print("| cell | method | upright | leaning | ratio | coverage | lean | ends |\n|---|---|---|---|---|---|---|---|")
for name in asked.cells:
    known = cell(name, "text")
    train, calibration, test = three_blocks(known.panel[: known.blocks["calibration"].start], 0.7, 0.15)
    for method in asked.methods.split(","):
        runs, lean = [], None
        for shape in ("box", "lean"):
            predictor = jointset.predictor(f"{method}:{shape}+aci").fit(train).calibrate(calibration)
            lean = predictor.score.lean
            runs.append(predictor.run(test, regions=False))
        upright, leaning = (float(np.mean(run.width_full / known.panel.values.std())) for run in runs)
        amounts = "–" if lean is None else ", ".join(f"{a:.1f}" for a in lean.amounts)
        known_ends = None if lean is None else lean.ends
        ends = "–" if known_ends is None else ", ".join(str(k) for k in np.isfinite(known_ends).sum(axis=1))
        covered = f"{runs[0].joint:.3f}, {runs[1].joint:.3f}"
        widths = f"{upright:.4g} | {leaning:.4g} | {leaning / upright:.3f}"
        print(f"| {name} | `{method}` | {widths} | {covered} | {amounts} | {ends} |", flush=True)
