"""What it costs when the ends at which boxes stop come not to hold: simulated networks, with ends and without.

    python benchmarks/ends.py [NETWORK ...] [--methods ewma:lean+auto,...] [--seeds 2]

Ten sensors; 1,500 rows to train on, 700 to calibrate, 3,000 to test, of which the network changes after 500 (those
whose name begins with `then`). The same with ends and without: coverage, that of the worst 500 rows and of the first
300 after the change, and how wide boxes with ends are for each width of those without.
"""

import argparse
import warnings
from unittest import mock

import numpy as np

import jointset
from jointset import Panel
from jointset.predicting import fitting

N, TRAIN, CALIBRATE, CALM, ROWS = 10, 1500, 700, 500, 5200
CHANGE = TRAIN + CALIBRATE + CALM
METHODS = "ewma:lean,ewma:lean+aci,ewma:lean+auto,var:lean+auto,quick:box+auto"


def waves(rng):
    """Rows (ROWS, N) that wander around 0, all sensors in part together."""
    x = np.zeros((ROWS, N))
    for t in range(1, ROWS):
        x[t] = 0.9 * x[t - 1] + np.sqrt(0.4) * rng.normal() + np.sqrt(0.6) * rng.normal(size=N)
    return x


def networks(seed):
    """Name and readings of each network."""
    rng = np.random.default_rng(seed)
    x, t = waves(rng), np.arange(ROWS)[:, None]
    then, day = t >= CHANGE, np.maximum(np.sin(2 * np.pi * t / 24), 0.0)
    dry, sun = np.maximum(x, 0.0), 10.0 * day / (1.0 + np.exp(-waves(rng) / 1.5))
    rain = np.where(x > 1.5, rng.exponential(size=x.shape) * np.maximum(x - 1.5, 0.0) * 3.0, 0.0)
    counts = rng.poisson(0.7, size=x.shape).astype(float)
    yield "dry rivers", dry
    yield "solar power", sun
    yield "speed limit", np.minimum(65.0, 66.0 - np.exp(0.7 * x))
    yield "rain", rain
    yield "counts", counts
    yield "outages read as 0", np.where(rng.random(x.shape) < 0.03, 0.0, 50.0 + 3.0 * x)
    yield "then a lower bed", np.where(then, np.maximum(x, -2.0), dry)
    yield "then a wet season", dry + 5.0 * then
    yield "then a higher limit", np.minimum(np.where(then, 75.0, 65.0), np.where(then, 76.0, 66.0) - np.exp(0.7 * x))
    yield "then another zero", counts - then
    yield "then another unit", dry - 273.0 * then
    yield "then glitches", np.where(then & (rng.random(x.shape) < 0.005), -10.0, dry)
    yield "then noise at night", sun - np.where(then, np.abs(rng.normal(size=x.shape)) * 0.1, 0.0)


def measured(method, values):
    """Coverage, of the worst 500 rows and of the first 300 after the change, and mean width."""
    panel = Panel(values, [f"s{i}" for i in range(N)])
    predictor = jointset.predictor(method).fit(panel[:TRAIN]).calibrate(panel[TRAIN : TRAIN + CALIBRATE])
    run = predictor.run(panel[TRAIN + CALIBRATE :], regions=False)
    worst = np.convolve(run.inside, np.full(500, 1 / 500), "valid").min()
    return np.array([run.joint, worst, run.inside[CALM : CALM + 300].mean(), run.width_full.mean()])


def main():
    """Print a line for each network and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| network | method | coverage | worst 500 | first 300 | width |\n" + "|---" * 6 + "|")
    drawn = [dict(networks(seed)) for seed in range(asked.seeds)]
    for name in asked.networks or drawn[0]:
        for method in asked.methods.split(","):
            ends = np.mean([measured(method, one[name]) for one in drawn], axis=0)
            with mock.patch.object(fitting, "found_ends", return_value=None):
                none = np.mean([measured(method, one[name]) for one in drawn], axis=0)
            pairs = " | ".join(f"{one:.3f}, {other:.3f}" for one, other in zip(ends[:3], none[:3], strict=True))
            print(f"| {name} | `{method}` | {pairs} | {ends[3] / none[3]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
