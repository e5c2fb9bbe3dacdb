"""What a rough spell in a rare stratum leaves in the announced set: networks in which a row is hardly ever complete.

    python benchmarks/gap_spells.py [--methods static+aci] [--networks 30]

Twelve sensors go on as x_t = 0.9 x_{t-1} + s_t e_t, the scale s_t another one every 50 rows (log-normal, 0.8). One
reading in fifty is hidden, and from row 3000 on one sensor is out, but for some rows of the roughest of eight spells,
which are complete. Printed is how many times as wide as that of the rule alone the announced set is 600 rows after
their first, exp(l_0 / 2): the factor of complete rows, of squared scores.
"""

import argparse
import warnings

import numpy as np

from jointset.calibration.gap_levels import gaps_of
from jointset.methods import predictor_for
from jointset.panel import Panel

STEPS, SENSORS, SPELL, OUT = 4000, 12, 50, 3000


def network(seed: int, complete: int) -> tuple[Panel, int]:
    """The rows, and the first of the complete ones at the end."""
    rng = np.random.default_rng(seed)
    scale = np.exp(0.8 * np.repeat(rng.normal(size=STEPS // SPELL), SPELL))
    noise = scale[:, None] * (rng.normal(size=(STEPS, 1)) + rng.normal(size=(STEPS, SENSORS)))
    values = np.zeros((STEPS, SENSORS))
    for t in range(1, STEPS):
        values[t] = 0.9 * values[t - 1] + noise[t]
    start = OUT + SPELL * int(np.argmax(scale[OUT : OUT + 8 * SPELL : SPELL]))
    back = np.arange(start, start + complete)
    hidden = rng.random(values.shape) < 0.02
    hidden[OUT:, 0] = True
    hidden[back] = False
    return Panel(np.where(hidden, np.nan, values), [f"s{i}" for i in range(SENSORS)]), start


def width_left(method: str, seed: int, complete: int) -> float:
    """How many times as wide as that of its rule the announced set is in the end."""
    panel, start = network(seed, complete)
    predictor = predictor_for(method).fit(panel[:2400]).calibrate(panel[2400:OUT])
    predictor.run(panel[OUT : start + 600], regions=False)
    gaps = gaps_of(predictor.score)
    assert gaps is not None
    return float(np.exp(gaps.logs[0] / 2.0))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["static+aci", "ewma+aci", "ewma+auto"])
    parser.add_argument("--networks", type=int, default=30)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| method | complete rows | median | one in ten above | largest |\n|---|---|---|---|---|")
    for method in given.methods:
        for complete in (5, 20):
            found = [width_left(method, seed, complete) for seed in range(given.networks)]
            shown = " | ".join(f"{np.quantile(found, at):.2f}" for at in (0.5, 0.9, 1.0))
            print(f"| {method} | {complete} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
