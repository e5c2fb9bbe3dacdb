"""What each part of the default method is worth, on training and validation rows alone.

    python benchmarks/default.py [CELL ...]

Members are trained on the first 85 % of the rows before the calibration block (protocol `text`, seed 0). Of the rest
the first half chooses (weights, correlations, scales), the second is measured: log-volume a sensor of ellipsoids and
width of boxes that hold 90 % of it. Training takes minutes a cell on a CPU; weights kept in JOINTSET_WEIGHTS are used.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
from scipy.special import gammaln

from jointset.datasets.cells import cell
from jointset.experiments.rows import _fitting_block
from jointset.filters.default import DENSE, DefaultFilter, _whitening
from jointset.filters.held_out import blocks_of_laws, held_out
from jointset.filters.pool import PooledFilter
from jointset.filters.quick import experts
from jointset.algebra.law_blocks import concatenate

CELLS = ("ett-7", "aqi-12", "solar-12", "elec-20", "jena-20", "metr-la-20")


def sizes(filter_, late):
    """Log-volume and width of the sets that hold 90 % of the second half of some rows."""
    laws = concatenate([law for _, law in blocks_of_laws(filter_, late)])
    half = len(late) // 2
    laws, y = laws[half:], late.values[half:]
    n = y.shape[1]
    ball = 0.5 * np.log(np.pi) - gammaln(n / 2 + 1) / n
    volume = np.mean(laws.log_det) / (2 * n) + 0.5 * np.log(np.quantile(laws.mahalanobis(y), 0.9)) + ball
    sd = np.sqrt(laws.variance)
    return volume, 2.0 * np.quantile((np.abs(y - laws.mean) / sd).max(axis=1), 0.9) * sd.mean()


def rows_of(name):
    """Name of each form, and what it is."""
    early, late = held_out(_fitting_block(cell(name, "text"), "default"))
    choosing = late[: len(late) // 2]
    nets = DefaultFilter()._net.fit(early).split()
    instant = [expert.fit(early) for expert in experts(low_rank=early.n_sensors > DENSE)]
    yield "sensors alike", nets[0]
    yield "with identities", nets[1]
    yield "both", PooledFilter(tuple(nets), weights=np.full(2, 0.5), frozen=True)
    yield "`var`", instant[0]
    yield "both and `var`", PooledFilter((*nets, instant[0]), frozen=True).weigh(choosing)
    pool = PooledFilter((*nets, *instant), frozen=True).weigh(choosing)
    yield "and the other experts", pool
    yield "with correlations of residuals: `default`", _whitening(pool, choosing) or pool


def main(names):
    """The table, a column a cell."""
    table = {}
    for name in names:
        begin = time.perf_counter()
        for form, filter_ in rows_of(name):
            volume, width = sizes(filter_, held_out(_fitting_block(cell(name, "text"), "default"))[1])
            table.setdefault(form, []).append(f"{volume:.3f}, {width:.3f}")
        print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    print(f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for form, numbers in table.items():
        print(f"| {form} | {' | '.join(numbers)} |")


if __name__ == "__main__":
    main(sys.argv[1:] or CELLS)
