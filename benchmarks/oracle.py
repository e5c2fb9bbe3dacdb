"""`default` beside the filter that knows the truth, on the simulated networks whose filter is linear: GRSSF A, B, C.

    python benchmarks/oracle.py [--seeds 10]

The Kalman filter with the transition, the process covariance (on B correlated inside communities) and the noise that
the readings were drawn with, on the blocks of protocol `text`, under the rules `split`, `aci` and `auto`. Beside it the
rows of `default` and `kalman` on the same seeds in docs/data/results.parquet: log mean volume above the oracle's, mean
over seeds and standard error, and joint coverage.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from results_file import read_file
from scipy.linalg import solve_discrete_are

from jointset import ACI, DenseLaw, JointPredictor, Split
from jointset.bench.measures import measures
from jointset.calibration import Auto, ByClock
from jointset.datasets.cells import cell
from jointset.datasets.grssf import generate_grssf

ALPHA = 0.1
RULES = {"split": Split(ALPHA), "aci": ACI(ALPHA), "auto": ByClock(Auto(ALPHA))}
NAMES = {
    "default": {"split": "default+split", "aci": "default+aci", "auto": "default"},
    "kalman": {"split": "kalman", "aci": "kalman+aci", "auto": "kalman+auto"},
}


@dataclass(frozen=True)
class TrueFilter:
    """The Kalman filter at rest with the matrices of the simulation."""

    transition: Any
    covariance: Any  # of a reading, given all before it
    gain: Any

    def fit(self, panel):
        """It knows all."""
        return self

    def start(self):
        """State expected before the first reading."""
        return np.zeros(len(self.transition))

    def law(self, state):
        """Law of the next reading."""
        return DenseLaw(state, self.covariance)

    def step(self, state, y):
        """State expected after one."""
        return self.transition @ (state + self.gain @ (y - state))

    def run(self, values, state):
        """Laws of all rows and the state after them."""
        states = [state]
        for y in values:
            states.append(self.step(states[-1], y))
        return DenseLaw(np.array(states[:-1]).reshape(values.shape), self.covariance), states[-1]


def true_filter(truth):
    """That of a simulated network whose matrices do not change."""
    F, Q, R = truth.transition, truth.process_covariance, truth.observation_covariance
    prior = solve_discrete_are(F.T, np.eye(len(F)), Q, R)
    return TrueFilter(F, prior + R, np.linalg.solve(prior + R, prior).T)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    table = read_file()[0]
    print("| track | rule | oracle: log mean volume, joint | `default` above it | joint | `kalman` above it | joint |")
    print("|---|---|---|---|---|---|---|")
    for track in "abc":
        name = f"grssf-{track}-30"
        for rule, calibration in RULES.items():
            oracle = []
            for seed in seeds:
                found = cell(name, "text", seed)
                filter_ = true_filter(generate_grssf(track, n=30, seed=seed).truth)
                predictor = JointPredictor(filter_, calibration=calibration, standardize=False)
                run = predictor.fit(found.train).calibrate(found.calibration).run(found.test, regions=False)
                oracle.append(measures(run, ALPHA))
            size, joint = ([one[key] for one in oracle] for key in ("log_mean_volume", "joint"))
            line = [track.upper(), rule, f"{np.mean(size):.3f}, {np.mean(joint):.3f}"]
            for names in NAMES.values():
                rows = table[table["cell"].eq(name) & table["method"].eq(names[rule]) & table["pilot"].eq("")]
                rows = rows.set_index("seed").loc[list(seeds)]
                above = rows["log_mean_volume"].to_numpy() - size
                error = above.std(ddof=1) / len(above) ** 0.5 if len(above) > 1 else float("nan")
                line += [f"{above.mean():+.3f} ± {error:.3f}", f"{rows['joint'].mean():.3f}"]
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
