"""What each part of `default` is worth on the test blocks: the whole method beside the same with one part left out.

    python benchmarks/ablation.py [CELL ...] [--seeds 2] [--device cpu] [--processes 2] [--pool] [--train] [--rows FILE]

A cell is `name` (protocol `text`) or `name/table`; of simulated networks and of `table` every seed is another draw.
Parts of the networks are left out in training, parts of the pool afterwards, around the same networks; `--pool`: these
alone. Weights that are kept in JOINTSET_WEIGHTS are used; `--train` only makes them. Rows go to a CSV file, the tables
are printed: by how much log mean volume (ellipsoids) grows without the part, then by how many per cent the width of
boxes does, means over seeds, all under the rule of `default`. Nothing is chosen on these rows: they say what choices
were worth.
"""

import argparse
import csv
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from jointset.datasets.cells import cell
from jointset.experiments.rows import _fitting_block, fitted_rows
from jointset.filters.default import DENSE, DefaultFilter, _final_pool, _recorded, _starting_after, _whitening
from jointset.filters.held_out import held_out
from jointset.filters.pool import PooledFilter
from jointset.filters.quick import experts

CELLS = ("metr-la-20/table", "metr-la-20", "aqi-12", "ett-7", "jena-20", "elec-20", "solar-12", "metr-la-207")
CELLS += ("grssf-a-30", "grssf-b-30", "grssf-c-30")
TRAINED = {  # what is left out of the networks, and their settings without it
    "": {},
    "heavy tails of the likelihood": {},
    "the clock, in the networks": {},
    "the graph, in the networks": {},
    "common factors": {"rank": 0},
    "hidden sensors in training": {"outages": 0.0},
}
POOLED = {  # what is left out of the pool, of (alike, identities, var, graph autoregression, kalman)
    "sensors alike": (1, 2, 3, 4),
    "identities": (0, 2, 3, 4),
    "both networks": (2, 3, 4),
    "`var`": (0, 1, 3, 4),
    "the slow experts": (0, 1, 2),
    "all experts": (0, 1),
}
NEARLY_NORMAL = 1e4  # degrees of freedom at the start, which training hardly moves
COLUMNS = ("cell", "seed", "without", "shape", "joint", "log_mean_volume", "log_volume", "width_full")


def blocks(name, seed):
    """The cell, and the rows `default` is fitted on."""
    plain, _, protocol = name.partition("/")
    found = cell(plain, protocol or "text", seed)
    return found, _fitting_block(found, "default")


def same_rows(name):
    """Whether all seeds of a cell have the same rows."""
    return not (name.endswith("/table") or name.startswith("grssf"))


def networks(name, without, seeds, device):
    """The networks of each seed after the first rows and after all; kept weights are used."""
    from jointset.filters import node_net_training
    from jointset.filters.members import trained_further

    if "tails" in without:  # no setting of a network, so its weights have a folder of their own
        node_net_training.FIRST_TAIL = NEARLY_NORMAL
        os.environ["JOINTSET_WEIGHTS"] = str(Path(os.environ["JOINTSET_WEIGHTS"]) / "normal")
        Path(os.environ["JOINTSET_WEIGHTS"]).mkdir(parents=True, exist_ok=True)
    panel = blocks(name, seeds[0])[1]
    if "clock" in without:
        panel = replace(panel, timestamps=None)
    if "graph" in without:
        panel = panel.with_graph(np.zeros((panel.n_sensors, panel.n_sensors)))
    net = replace(DefaultFilter(device=device)._net, **TRAINED[without])
    early = held_out(panel)[0]
    before = net.fit_seeds(early, seeds)
    return list(zip(before, trained_further(before, panel), strict=True))


def train(name, without, seeds, device):
    """Weights of all seeds, kept."""
    warnings.simplefilter("ignore")
    networks(name, without, seeds, device)
    return name, without, seeds


def composed(members, nets, instant, panel, *, whiten=True):
    """The pool of some members, its choices made on the held-out rows; as `default` does it, or without a part."""
    late, small = held_out(panel)[1], panel.n_sensors <= DENSE
    trial = PooledFilter(tuple(_recorded(one, late) if small else one for one in members), frozen=True).weigh(late)
    pool = _final_pool(trial, [_starting_after(late, net) for net in nets], instant)
    white = _whitening(trial, late) if whiten else None
    return pool if white is None else replace(white.after(late), inner=pool)


def forms(name, without, seed):
    """Name of each form, and its filter."""
    panel = blocks(name, seed)[1]
    early = held_out(panel)[0]
    before, after = networks(name, without, (seed,), "cpu")[0]
    instant = experts(low_rank=panel.n_sensors > DENSE)
    known, final = ([expert.fit(rows) for expert in instant] for rows in (early, panel))
    members, nets, ended = [*before.split(), *known], after.split(), before.split()
    whole = composed(members, nets, final, panel)
    yield without, whole
    if without:
        return
    for part, kept in POOLED.items():
        kept = [k for k in kept if k < len(members)]
        some = [nets[k] for k in kept if k < 2], [final[k - 2] for k in kept if k >= 2]
        yield part, composed([members[k] for k in kept], *some, panel)
    yield "correlations of residuals", composed(members, nets, final, panel, whiten=False)
    yield "the run on all rows", composed(members, ended, final, panel)


def measured(name, without, seed):
    """Rows of the file for the forms of one training run."""
    from jointset.bench.measures import measures

    warnings.simplefilter("ignore")
    found, out = blocks(name, seed)[0], []
    for form, filter_ in forms(name, without, seed):
        for shape in ("ellipsoid", "box"):
            row = next(fitted_rows(f"default:{shape}", found, seeds=(seed,), filters=[filter_]))[1]
            seen = measures(row.run(found.test, regions=False), 0.1)
            out.append([name, seed, form, shape, *(f"{seen[key]:.6f}" for key in COLUMNS[4:])])
    return out


def tables(path, names):
    """Lines of the table from a file of rows."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        key = row["cell"], row["without"], row["shape"]
        found.setdefault(key, []).append([float(row[k]) for k in ("joint", "log_mean_volume", "width_full")])
    mean = {key: np.mean(values, axis=0) for key, values in found.items()}
    names = [name for name in names if (name, "", "box") in mean]
    yield f"| without | {' | '.join(names)} |\n|---|{'---|' * len(names)}"
    whole = [(mean[name, "", "ellipsoid"], mean[name, "", "box"]) for name in names]
    yield f"| nothing: `default` | {' | '.join(f'{e[1]:.3f}, {b[2]:.3f}' for e, b in whole)} |"
    for form in dict.fromkeys(key[1] for key in mean if key[1]):
        cells = []
        for name, (e, b) in zip(names, whole, strict=True):
            if (name, form, "box") not in mean:
                cells.append("–")
                continue
            other, box = mean[name, form, "ellipsoid"], mean[name, form, "box"]
            missed = "*" if min(other[0], box[0]) < 0.895 else ""
            cells.append(f"{other[1] - e[1]:+.3f}, {100 * (box[2] / b[2] - 1):+.1f}{missed}")
        yield f"| {form} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cells", nargs="*", default=CELLS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pool", action="store_true")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--rows", type=Path, default=Path("ablation.csv"))
    args = parser.parse_args()
    if "JOINTSET_WEIGHTS" not in os.environ:
        sys.exit("set JOINTSET_WEIGHTS to a folder for the trained weights")
    seeds, trained = tuple(range(args.seeds)), [""] if args.pool else list(TRAINED)
    groups = {name: [seeds] if same_rows(name) else [(seed,) for seed in seeds] for name in args.cells}
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        if args.train:
            jobs = [(n, w, g, args.device) for n in args.cells for w in trained for g in groups[n]]
            for job in [pool.submit(train, *job) for job in jobs]:
                print("trained", *job.result(), flush=True)
            return
        with args.rows.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            jobs = [(n, w, s) for n in args.cells for w in trained for s in seeds]
            for job in [pool.submit(measured, *job) for job in jobs]:
                writer.writerows(job.result())
                file.flush()
    for line in tables(args.rows, args.cells):
        print(line)


if __name__ == "__main__":
    main()
