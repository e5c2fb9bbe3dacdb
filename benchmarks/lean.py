"""What boxes gain that lean and stop at the ends of ranges, on rows before the calibration block of a cell alone.

    python benchmarks/lean.py [CELL ...] [--methods var,ewma,...]

Fitted on the first 70 % of these rows, calibrated on 15 %, tested on the last 15 %, ACI at 90 %: width of upright
boxes, of those that lean, and of those that stop at ends too, their coverage, how far they lean at a low, a middle and
a high level, and how many of the sensors have a lowest and a highest end.
"""

import argparse
import warnings
from contextlib import nullcontext
from unittest import mock

import numpy as np

import jointset
from jointset.datasets.cells import cell
from jointset.methods import three_blocks
from jointset.predicting import fitting

CELLS = ("metr-la-20", "aqi-12", "ett-7", "jena-20", "elec-20", "solar-12")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cells", nargs="*", default=CELLS)
parser.add_argument("--methods", default="var,ewma,quick")
asked = parser.parse_args()
warnings.simplefilter("ignore")
print("| cell | method | upright | leaning | stopping too | ratio | coverage | lean | ends |\n" + "|---" * 9 + "|")
for name in asked.cells:
    known = cell(name, "text")
    train, calibration, test = three_blocks(known.panel[: known.blocks["calibration"].start], 0.7, 0.15)
    for method in asked.methods.split(","):
        shape, widths, covered = "box" if method == "quick" else "lean", [], []
        for instead in ({"_lean": lambda predictor, panel: None}, {"found_ends": lambda values: None}, {}):
            with mock.patch.multiple(fitting, **instead) if instead else nullcontext():
                predictor = jointset.predictor(f"{method}:{shape}+aci").fit(train).calibrate(calibration)
            lean = predictor.score.lean
            run = predictor.run(test, regions=False)
            widths.append(float(run.width_full.mean() / known.panel.values.std()))
            covered.append(f"{run.joint:.3f}")
        amounts = "–" if lean is None else ", ".join(f"{a:.1f}" for a in lean.amounts)
        known_ends = None if lean is None else lean.ends
        ends = "–" if known_ends is None else ", ".join(str(k) for k in np.isfinite(known_ends).sum(axis=1))
        sizes = " | ".join(f"{width:.3f}" for width in widths)
        ratio = f"{widths[2] / widths[0]:.3f}"
        print(f"| {name} | `{method}` | {sizes} | {ratio} | {', '.join(covered)} | {amounts} | {ends} |", flush=True)
