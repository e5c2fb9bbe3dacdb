"""Is the law heavy-tailed as it says? Log density and PIT of `quick` and `default`, normal and with its tails.

    python benchmarks/tails.py [CELL ...]

Members are fitted on the first 85 % of the rows before the calibration block (protocol `text`, seed 0). Of the rest the
first half chooses weights, correlations, scales and tails, the second is measured: log density a reading, in nats, of
the normal law as it stands, of the normal law whose size was fitted on the first half too, and of the Student-t that
the law reports; then the Kolmogorov-Smirnov distance of the squared distances from what each of the last two says of
them. Training takes minutes a cell on a CPU; weights kept in JOINTSET_WEIGHTS are used.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
from scipy import stats

from jointset.algebra.law_blocks import concatenate
from jointset.algebra.law_tails import NORMAL, Tails
from jointset.datasets.cells import cell
from jointset.experiments.rows import _fitting_block
from jointset.filters.default import DENSE, DefaultFilter, _whitening
from jointset.filters.held_out import blocks_of_laws, held_out
from jointset.filters.pool import PooledFilter
from jointset.filters.quick import experts

CELLS = ("ett-7", "aqi-12", "solar-12", "elec-20", "jena-20", "metr-la-20")


def filters_of(early, choosing):
    """Name of each method, and it as it stands after the rows to choose on."""
    yield "`quick`", PooledFilter([one.fit(early) for one in experts()], frozen=True).weigh(choosing)
    instant = [one.fit(early) for one in experts(low_rank=early.n_sensors > DENSE)]
    pool = PooledFilter((*DefaultFilter()._net.fit(early).split(), *instant), frozen=True).weigh(choosing)
    yield "`default`", _whitening(pool, choosing) or pool


def measured(filter_, late):
    """Degrees of freedom and size, three log densities a reading, and two distances from uniform PIT values."""
    laws = concatenate([law for _, law in blocks_of_laws(filter_, late)])
    half = len(late) // 2
    distance, _, count = laws[50:half].terms(late.values[50:half])
    sized = Tails(NORMAL.freedom, float(np.nansum(distance) / count.sum()))
    laws, y = laws[half:], late.values[half:]
    distance, _, count = laws.terms(y)
    forms = (NORMAL, sized, laws.tails)
    densities = [float(np.nansum(laws.with_tails(form).log_density(y)) / count.sum()) for form in forms]
    full = count == y.shape[1]
    normal = stats.kstest(distance[full] / sized.size, stats.chi2(y.shape[1]).cdf).statistic
    heavy = stats.f(y.shape[1], laws.tails.freedom).cdf
    student = stats.kstest(distance[full] / laws.tails.size / y.shape[1], heavy).statistic
    return laws.tails, densities, (normal, student)


def main(names):
    """A line a cell and method."""
    print("| cell | method | df, size | normal | ... of its best size | Student-t | KS, normal | KS, Student-t |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        early, late = held_out(_fitting_block(cell(name, "text"), "default"))
        for method, filter_ in filters_of(early, late[: len(late) // 2]):
            tails, densities, distances = measured(filter_, late)
            numbers = " | ".join([f"{x:.3f}" for x in densities] + [f"{x:.2f}" for x in distances])
            print(f"| {name} | {method} | {tails.freedom:g}, {tails.size:.2f} | {numbers} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or CELLS)
