"""All audits of the learned filter on METR-LA-207: seconds of each, without training. Wanted: 5 minutes in all.

Arguments: another cell, another filter.
"""

import sys
import time

from table import show  # first: sets the number of threads

from jointset.audits.questions import audits_named
from jointset.audits.collect import collect
from jointset.audits.subject import subject_of_cell
from jointset.experiments.rows import fitted_row
from jointset.datasets import cell

STEPS = 40  # of training: audits take the same time however well a filter is trained
WANTED = 300.0


def main() -> None:
    name, method = (*sys.argv[1:], *("metr-la-207", "gnf-node")[len(sys.argv) - 1 :])
    data = cell(name)
    start = time.perf_counter()
    predictor = fitted_row(method, data, training={"steps": STEPS})
    fitted = time.perf_counter() - start
    subject = subject_of_cell(predictor, data, method, training={"steps": STEPS})
    start = time.perf_counter()
    found = collect(subject, audits_named(None))
    total = time.perf_counter() - start
    each = {key: record["seconds"] for key, record in found.items()}
    rows = [(key, f"{spent:.1f} s", f"{100 * spent / total:.0f} %") for key, spent in each.items()]
    rows.append(("all audits", f"{total:.0f} s", f"{WANTED / total:.1f}x below 5 minutes"))
    show(f"audits of {method} on {name}", rows, f"fitting ({STEPS} steps) took {fitted:.0f} s and does not count")


if __name__ == "__main__":
    main()
