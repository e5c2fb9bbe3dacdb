"""Sets for the next 12 steps beside what else there is for them, on real cells.

    python benchmarks/horizons.py [--methods kalman+aci,quick,...] [CELL ...]

Each method is fitted on the rows before the calibration block (protocol `text`) and run through the test block with its
horizon. The one set for all 12 N readings stands beside three others around the same means and the same laws: sets of
single steps at alpha / 12 from calibration alone (Bonferroni), the same with radii that follow late outcomes, and the
box of CopulaCPTS over 12 N residuals; sets from calibration alone also times a factor that follows late outcomes.
Then the time of `predict(horizon=12)` at 207 sensors. Weights kept in JOINTSET_WEIGHTS are used.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from jointset import generate_grssf
from jointset.calibration.late import LateACI
from jointset.datasets.cells import cell
from jointset.horizons.passes_ahead import AheadPass
from jointset.methods import predictor_for
from jointset.predicting.passes import laws_of
from jointset.published.copula import copula_radii

STEPS, ALPHA = 12, 0.1
CELLS, METHODS = ("metr-la-20", "aqi-12"), ("kalman+aci", "kalman-tuned+aci", "static+aci", "var+aci", "quick")


class Residuals(AheadPass):
    """A pass that keeps the errors of the means of all whole windows (T, H N)."""

    def _sizes(self, laws, row):
        super()._sizes(laws, row)
        center, H = laws[-1].center, self.horizon.steps
        whole = min(len(center), len(self.values) - H + 1 - row)
        rows = [self.values[row + h : row + h + whole] for h in range(H)]
        self.__dict__.setdefault("residuals", []).append((np.stack(rows, axis=1) - center[:whole]).reshape(whole, -1))


def residuals_of(predictor, horizon, panel, state):
    """Errors (T, H N) of whole windows of a panel, from a state of the filter."""
    walk = Residuals(predictor, horizon, panel.values, panel.timestamps)
    for law, _, _ in laws_of(predictor, panel, state):
        walk.see(law)
    return np.concatenate(walk.residuals)


def products(predictor, test):
    """Coverage and log-volume a reading of products of sets of single steps, in three ways.

    At alpha / H each from calibration alone (Bonferroni), the same with radii that follow late outcomes, and those of
    Bonferroni times a factor that follows late outcomes.
    """
    found = []
    whole = slice(0, len(test) - STEPS + 1)
    for gamma in (0.0, LateACI.gamma):
        other = predictor.copy()
        other.horizon = predictor.horizon.rewrapped(LateACI(ALPHA / STEPS, gamma))
        ahead = other.run(test, regions=False).ahead
        inside = (ahead.score <= ahead.radius)[whole, :STEPS].all(axis=1)
        found.append((inside.mean(), ahead.log_volume[whole, :STEPS].mean()))
        if not gamma:
            radii, pools = ahead.radius[0, :STEPS], predictor.horizon.pools[:STEPS]
            shortest = min(len(pool.recent) for pool in pools)
            past = np.max([pool.recent[:shortest] / r for pool, r in zip(pools, radii, strict=True)], axis=0)
            joint, growth = scaled(past, (ahead.score[whole, :STEPS] / radii).max(axis=1))
            raised = joint, found[0][1] + 0.5 * growth  # scores are squared distances
    return [*found, raised]


def scaled(past, scores):
    """Coverage, and mean log of the factor, of sets times a factor that follows late outcomes."""
    rule, radii, level = LateACI(ALPHA), [], ALPHA
    pool = rule.start(past)
    for t in range(len(scores)):
        radii.append(rule.radius(pool, level, STEPS))
        if t >= STEPS - 1:
            begun = t - STEPS + 1
            level = rule.moved(level, bool(scores[begun] > radii[begun]))
            pool = rule.grown(pool, float(scores[begun]))
    return (scores <= radii).mean(), np.log(radii).mean()


def copula(predictor, calibration, test):
    """Coverage and log-volume a reading of the box of CopulaCPTS, then of that box times a factor that adapts."""
    past = residuals_of(predictor, predictor.horizon, calibration, predictor.filter.start())[predictor.warmup - 1 :]
    errors = residuals_of(predictor, predictor.horizon, test, predictor.filter_state)
    half = np.maximum(copula_radii(np.abs(past), ALPHA), 1e-12)
    joint, growth = scaled((np.abs(past) / half).max(axis=1), (np.abs(errors) / half).max(axis=1))
    volume = np.log(2.0 * half).mean()
    return [((np.abs(errors) < half).all(axis=1).mean(), volume), (joint, volume + growth)]


def measure(name, method):
    """One line of the table, and the coverage of every step."""
    data = cell(name, "text")
    predictor = predictor_for(method, standardize=False).fit(data.panel[: data.blocks["calibration"].start])
    begin = time.perf_counter()
    predictor.calibrate(data.calibration, horizon=STEPS)
    seconds = time.perf_counter() - begin
    others = [*products(predictor, data.test), *copula(predictor, data.calibration, data.test)]
    ahead = predictor.run(data.test, regions=False).ahead
    whole = ahead.summary()[-1]
    found = [(whole["joint"], whole["log_volume"]), *others]
    numbers = " | ".join(f"{volume:.3f} ({joint:.3f})" for joint, volume in found)
    steps = " ".join(f"{c:.3f}" for c in ahead.coverage[:STEPS])
    print(f"| {name} | `{method}` | {numbers} | {seconds:.0f} s |", flush=True)
    return f"| {name} | `{method}` | {steps} |"


def speed():
    """Median milliseconds of `predict(horizon=12)` with the ends of all sets, at 207 sensors."""
    panel = generate_grssf("A", n=207, length=1600).panel
    for method in ("kalman+aci", "static+aci"):
        predictor = predictor_for(method).fit(panel[:1200]).calibrate(panel[1200:1500], horizon=STEPS)
        taken, updates = [], []
        for y in panel.values[1500:1540]:
            predictor.predict()  # the law of the next row, which one step needs as well
            begin = time.perf_counter()
            sets = predictor.predict(horizon=STEPS)
            _ = sets.bounds, sets.bounds_together, sets.together.log_volume
            middle = time.perf_counter()
            predictor.update(y)
            taken.append(middle - begin)
            updates.append(time.perf_counter() - middle)
        first, second = (1000 * statistics.median(one) for one in (taken, updates))
        print(f"{method}, 207 sensors: predict(horizon=12) {first:.1f} ms, update {second:.1f} ms")


def main():
    """The tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", nargs="*", default=list(CELLS))
    parser.add_argument("--methods", default=",".join(METHODS))
    asked = parser.parse_args()
    heads = "together | Bonferroni | steps at alpha / 12 | Bonferroni, scaled | CopulaCPTS | CopulaCPTS, scaled"
    print(f"| cell | method | {heads} | calibrate |\n|---|---|---|---|---|---|---|---|---|")
    lines = [measure(name, method) for name in asked.cells for method in asked.methods.split(",")]
    print("\n| cell | method | coverage of steps 1 to 12 |\n|---|---|---|\n" + "\n".join(lines))
    speed()


if __name__ == "__main__":
    main()
