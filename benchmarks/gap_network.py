"""A large network whose readings lack long blocks: every method fits, calibrates, runs and streams.

    python benchmarks/gap_network.py                                     # 200 sensors, a quarter of the cells empty
    python benchmarks/gap_network.py --methods copula spci --calibration 1400
    python benchmarks/gap_network.py --methods gnf default --steps 100   # those that learn are left out unless named

The network is simulated (GRSSF, track B). Blocks of 20 to 200 rows are empty until a quarter of the cells of every
sensor is; no row is complete. Of every method: joint coverage of what was read, the calibration scores that gave it,
seconds to fit, to calibrate, to run the test rows and to stream five of them. A method that refuses says why.
"""

import argparse
import itertools
import time
import warnings

import numpy as np

from jointset import Panel, generate_grssf
from jointset.catalogue import METHODS, TABLE
from jointset.errors import InputError
from jointset.methods import parse, predictor_for


def network(sensors: int, rows: int, share: float, seed: int = 0) -> Panel:
    """Rows an hour apart, long blocks of every sensor empty."""
    made, rng = generate_grssf("B", n=sensors, seed=seed, length=rows).panel, np.random.default_rng(seed)
    values = 50.0 + 7.0 * made.values
    for column in values.T:
        while np.isnan(column).mean() < share:
            start = rng.integers(rows)
            column[start : start + rng.integers(20, 200)] = np.nan
    return Panel(values, made.sensors, timestamps=3600 * np.arange(rows), adjacency=made.adjacency)


def measure(method: str, blocks: list[Panel], steps: int | None) -> str:
    """A line of the table; of training that many steps, where a method learns."""
    train, calibration, test = blocks
    marks = [time.perf_counter()]
    try:
        training = {"steps": steps} if steps and TABLE[parse(method).method].learned else None
        predictor = predictor_for(method, training=training).fit(train)
        marks.append(time.perf_counter())
        predictor.calibrate(calibration)
        marks.append(time.perf_counter())
        run = predictor.copy().run(test, regions=False)
        marks.append(time.perf_counter())
        for t in range(5):
            lower, _ = predictor.predict().bounds_for(test.values[t])
            np.testing.assert_allclose(lower, run.lower[t], rtol=1e-6)
            predictor.update(test.values[t])
    except InputError as error:
        return f"| {method} | refused: {error} | | |"
    marks.append(time.perf_counter())
    seconds = " / ".join(f"{b - a:.1f}" for a, b in itertools.pairwise(marks))
    return f"| {method} | {run.joint:.3f} | {predictor.n_calibration} | {seconds} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=[name for name in METHODS if not TABLE[name].learned])
    parser.add_argument("--sensors", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.25, help="of the cells that are empty")
    parser.add_argument("--train", type=int, default=1500)
    parser.add_argument("--calibration", type=int, default=700)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--steps", type=int, help="of training, where a method learns")
    given = parser.parse_args()
    panel = network(given.sensors, given.train + given.calibration + given.test, given.share)
    cuts = (0, given.train, given.train + given.calibration, len(panel))
    blocks = [panel[a:b] for a, b in itertools.pairwise(cuts)]
    warnings.simplefilter("ignore")
    empty = float(np.isnan(panel.values).mean())
    print(f"{given.sensors} sensors, {empty:.0%} of the cells empty, {given.train} + {given.calibration} rows\n")
    print("| method | joint coverage | calibration scores | s: fit / calibrate / run / stream |\n|---|---|---|---|")
    for method in given.methods:
        print(measure(method, blocks, given.steps), flush=True)


if __name__ == "__main__":
    main()
