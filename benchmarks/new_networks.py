"""`default` on networks it was not developed on, beside every other method with the same wraps and geometries.

    python benchmarks/new_networks.py FOLDER [--networks bay-16,fork-a,...] [--alpha 0.1] [--seeds 2] [--device cuda]

Makes seven networks of the files in $JOINTSET_DATA (other sensors of METR-LA, 16 of PEMS-BAY, coarser averages of four
more), runs `jointset bench` on each with protocol `fit`, and prints the best rows at target. A run that was stopped
goes on with the same command.
"""

import argparse
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from jointset.inputs.adjacency import correlation_knn
from jointset.bench.results import read_results

OURS = "grid:default"
OTHERS = "grid:static,grid:adaptive,grid:conditional,grid:var,grid:quick,grid:copula,grid:gnf-node,grid:diag-gru"
FORKS = {"fork-a": 90, "fork-b": 150}  # METR-LA: the sensor around which twelve grow, none of the cell's twenty
COARSE = {"aqi-6h": ("aqi", 6), "jena-1h": ("jena", 6), "solar-1h": ("solar", 6), "elec-3h": ("elec", 3)}


def fork(data, centre, taken):
    """The network of twelve sensors that are joined to a centre one after the other by the strongest edge."""
    edges, found = np.maximum(data["adjacency"], data["adjacency"].T), [centre]
    while len(found) < 12:
        reach = edges[:, found].max(axis=1)
        reach[[*found, *taken]] = 0.0
        found.append(int(reach.argmax()))
    taken.update(found)
    return {
        "values": data["values"][:, found],
        "sensors": data["sensors"][found],
        "timestamps": data["timestamps"],
        "adjacency": data["adjacency"][np.ix_(found, found)],
    }


def coarse(data, rows):
    """Averages over so many rows, and a graph of correlations on the first 60 % of them."""
    whole = len(data["values"]) // rows * rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an average of nothing is a gap
        values = np.nanmean(data["values"][:whole].reshape(-1, rows, data["values"].shape[1]), axis=1)
    graph = correlation_knn(values[: len(values) * 6 // 10], 4)
    return {
        "values": values.astype(np.float32),
        "sensors": data["sensors"],
        "timestamps": data["timestamps"][:whole:rows],
        "adjacency": graph.astype(np.float32),
    }


def networks():
    """Name and arrays of each network."""

    def read(name):
        return dict(np.load(Path(os.environ["JOINTSET_DATA"]) / f"{name}.npz"))

    bay, metr, taken = read("pems-bay-16"), read("metr-la"), set(range(20))
    yield "bay-16", {key: bay[key] for key in ("values", "sensors", "timestamps", "adjacency")}
    for name, centre in FORKS.items():
        yield name, fork(metr, centre, taken)
    for name, (source, rows) in COARSE.items():
        yield name, coarse(read(source), rows)


def best(rows, alpha):
    """Cells of a table: `default` as it is, its best wrap at target and the best other there, ellipsoids, then boxes.

    Ellipsoids go by the log of the mean volume, boxes, upright and leaning, by their width.
    """
    means = rows.groupby("method")[["joint", "log_mean_volume", "width_full"]].mean()
    box = means.index.str.contains(":(?:box|lean)")
    for name, measure, kind in (("default", "log_mean_volume", ~box), ("default:box", "width_full", box)):
        ranked = means[kind].sort_values(measure)
        held = ranked[ranked["joint"] >= 1 - alpha - 0.005]
        ours = held.index.str.startswith("default")
        for found in (ranked.loc[[name]], held[ours][:1], held[~ours][:1]):
            yield " ".join(f"`{row}` {one[measure]:.3f} ({one['joint']:.3f})" for row, one in found.iterrows()) or "–"


def main():
    """Make the networks, run the bench, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", default="")
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--seeds", default="2")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted = options.networks.split(",") if options.networks else None
    for name, arrays in networks():
        if wanted is not None and name not in wanted:
            continue
        file, out = options.folder / f"{name}.npz", options.folder / f"{name}-{options.alpha:g}"
        np.savez_compressed(file, **arrays)
        command = [
            str(Path(sys.executable).with_name("jointset")),
            "bench",
            "--cells",
            f"file:{file}",
            "--out",
            str(out),
        ]
        command += ["--methods", f"{OURS},{OTHERS}", "--alpha", str(options.alpha), "--seeds", options.seeds]
        subprocess.run([*command, "--device", options.device], check=True, stdout=subprocess.DEVNULL)
        rows = read_results(out)
        print(f"| {name} | {arrays['values'].shape} | " + " | ".join(best(rows, options.alpha)) + " |", flush=True)


if __name__ == "__main__":
    main()
