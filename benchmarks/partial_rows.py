"""Coverage of rows with gaps under the learned node-wise filter: six networks, four shares of sensors read.

    python benchmarks/partial_rows.py [CELL ...]   # some minutes a network: the filter is trained, recipe `fast`

Half of the test rows lack sensors, drawn at random for every row. Printed are the joint coverage of the test block as
it is, then of its complete and of its partial rows among such gaps: with one radius, with ACI, and with one radius from
calibration rows that have gaps alike.
"""

import sys
import warnings

import numpy as np

from jointset import ACI, GNF, JointPredictor, Split
from jointset.datasets.cells import cell
from jointset.panel import Panel
from jointset.scores import Mahalanobis, MaxStudentised

CELLS = ("metr-la-20", "aqi-12", "ett-7", "jena-20", "elec-20", "solar-12")


def reads_of(n: int) -> list[int]:
    """Numbers of sensors read: one, a quarter, a half, nine tenths."""
    return [1, max(1, round(0.25 * n)), round(0.5 * n), round(0.9 * n)]


def thinned(panel: Panel, seed: int) -> tuple[Panel, np.ndarray]:
    """The panel with gaps, and which of the four numbers each row has left; below 0: complete."""
    rng, n = np.random.default_rng(seed), panel.n_sensors
    values, kind = panel.values.copy(), rng.integers(-4, 4, len(panel))
    for t in np.flatnonzero(kind >= 0):
        values[t, rng.permutation(n)[reads_of(n)[kind[t]] :]] = np.nan
    return panel.with_values(values), kind


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or CELLS:
        data = cell(name)
        trained = GNF(node=True, recipe="fast").fit(data.train)
        test, kind = thinned(data.test, 0)
        gappy = thinned(data.calibration, 1)[0]
        for what, score, rule, rows in (
            ("ellipsoid", Mahalanobis(), Split(0.1), data.calibration),
            ("box", MaxStudentised(), Split(0.1), data.calibration),
            ("ellipsoid, ACI", Mahalanobis(), ACI(0.1), data.calibration),
            ("ellipsoid, gaps in calibration", Mahalanobis(), Split(0.1), gappy),
        ):
            predictor = JointPredictor(trained, score, rule, standardize=False)
            predictor.fit(data.train, frozen=True).calibrate(rows)
            whole = predictor.copy().run(data.test, regions=False).joint
            inside = predictor.run(test, regions=False).inside
            shares = [f"{read}: {inside[kind == i].mean():.3f}" for i, read in enumerate(reads_of(test.n_sensors))]
            complete = f"without gaps {whole:.3f}, complete {inside[kind < 0].mean():.3f}"
            print(f"{name}, {what}: {complete}, read {', '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
