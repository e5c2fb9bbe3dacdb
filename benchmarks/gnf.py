"""The learned filter on one core: training against a loop over single steps, whole-sequence run, latency, widths."""

import argparse
import statistics
import time
from dataclasses import replace

from table import show  # first: sets the number of threads

import numpy as np
import torch

from jointset import GNF, JointPredictor, Panel
from jointset.experiments.rows import run_rows
from jointset.datasets import cell
from jointset.filters import recurrent_cells as cells
from jointset.filters.gnf_training import NodeModel
from jointset.filters.likelihood import low_rank_nll
from jointset.graph import normalized_shift

STEPS = 64  # of the single-step loop
PRINTED = {"gnf-node": 2.888, "gnf-node+aci": 2.825}  # width_full of the authors' code, seed 0, 12 of 60 epochs


def cpu_seconds(function) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def loop_epoch(panel: Panel) -> float:
    """CPU seconds of one pass of the node-wise filter: one step at a time, one trajectory, backward every 64 steps."""
    shift = torch.tensor(normalized_shift(panel.adjacency), dtype=torch.float32)
    model = NodeModel(panel.n_sensors, 4, 32, normalized_shift(panel.adjacency))
    drawn = model.initial(np.random.default_rng(0))
    weights = cells.NodeWeights(*(torch.tensor(w, dtype=torch.float32).requires_grad_() for w in drawn))
    optimiser = torch.optim.Adam(weights, lr=1e-3, weight_decay=1e-4)
    y = torch.tensor(panel.values[: STEPS + 1], dtype=torch.float32)

    def piece() -> None:
        h, loss = torch.zeros(panel.n_sensors, 32), torch.zeros(())
        for t in range(STEPS):
            h = cells.node_step(y[t][:, None], h, lambda x: shift @ x, weights)
            mean, diagonal, factor = cells.node_heads(h, weights)
            loss = loss + low_rank_nll(y[t + 1] - mean, diagonal, factor)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    piece()
    return cpu_seconds(lambda: [piece() for _ in range(5)]) / 5 * len(panel) / STEPS


def training(panel: Panel, steps: int | None) -> list[tuple[str, str, str]]:
    """Of whole trainings, or of so many steps of each, scaled to all of them."""
    epoch = loop_epoch(panel)
    rows = [("node-wise, single-step loop", f"{epoch:.0f} s an epoch", f"{60 * epoch / 60:.0f} min for 60 epochs")]
    for name, filter in {
        "gnf fast": GNF(),
        "gnf-node fast": GNF(node=True),
        "gnf-node sharp": GNF(node=True, recipe="sharp"),
    }.items():
        whole = filter.training_recipe.total(len(panel))
        share = 1.0 if steps is None else min(steps / whole, 1.0)
        one = replace(filter, steps=round(share * whole))
        cpu = cpu_seconds(lambda one=one: one.fit(panel)) / share
        rows.append((name, f"{cpu:.0f} CPU s", f"{60 * epoch / cpu:.0f}x fewer than 60 epochs of the loop"))
    return rows


def inference(k: int, node: bool) -> tuple[str, str, str]:
    panel = cell(f"metr-la-{k}").panel
    f = GNF(node=node, steps=2).fit(panel[:2000])
    f.run(panel.values[:50], f.start())
    start = time.perf_counter()
    f.run(panel.values[:4000], f.start())
    rate = 4000 / (time.perf_counter() - start)
    predictor = JointPredictor(GNF(node=node, steps=2)).fit(panel[:2000]).calibrate(panel[2000:3000])
    live = []
    for y in panel.values[3000:4000]:
        start = time.perf_counter()
        predictor.predict()
        predictor.update(y)
        live.append(time.perf_counter() - start)
    kind = "node-wise" if node else "pooled"
    return (f"{kind}, N = {k}", f"run {rate:,.0f} steps/s", f"live {1e6 * statistics.median(live):.0f} us median")


def widths() -> list[tuple[str, str, str]]:
    """METR-LA-20, protocol `table`, seed 0: a bar on test rows, not in the tests, as nothing may be tuned on it."""
    runs = run_rows([*PRINTED], cell("metr-la-20", "table"))
    found = {name: (run.width_full.mean(), run.joint) for name, _, run, _ in runs}
    return [(name, f"{w:.3f} at {j:.3f}", f"authors' code: {PRINTED[name]}") for name, (w, j) in found.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help="train for so many steps only and scale; widths are left out")
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    panel = cell("metr-la-20").train
    show("training on METR-LA-20", training(panel, steps), "the loop is timed on five pieces of 64 steps and scaled")
    rows = [inference(k, node) for k in (20, 207) for node in (False, True)]
    show(
        "inference: law + score + update",
        rows,
        "wanted: 20,000 / 4,000 and 5,000 / 1,500 steps/s; 150 / 500 and 250 / 900 us",
    )
    if steps is None:
        show(
            "width_full on METR-LA-20, table, seed 0",
            widths(),
            "wanted: joint >= 0.895, no wider than the authors' code",
        )


if __name__ == "__main__":
    main()
