"""Training of the members of the default: in one program on a GPU, side by side on the cores of a CPU."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jointset.filters.kept_weights import Kept, digest, keep, recall, told_apart
from jointset.filters.node_net_cells import NodeNetWeights
from jointset.filters.node_net_training import NodeNetModel, outage_patterns
from jointset.filters.training import Trained, train
from jointset.panel import Panel

if TYPE_CHECKING:
    from jointset.filters.node_net import NodeNet, Progress


def trained_members(
    net: NodeNet, panel: Panel, seeds: list[int], progress: Progress | None, checkpoint: str | Path | None
) -> Trained:
    """Weights of all members of all seeds, seed by seed; those that are kept are not trained again."""
    n, members = panel.n_sensors, len(net.identities)
    recipe, clock = net.schedule(len(panel), n), net.calendar.terms(panel.timestamps, len(panel))
    rows = np.hstack([panel.values, clock, np.arange(len(panel))[:, None]])
    hidden = outage_patterns(n, recipe.window + 1, net.outages)
    sizes = (n, clock.shape[1], net.rank, net.width)
    entries = [(seed * members + i, kind) for seed in seeds for i, kind in enumerate(net.identities)]
    graph = None if net.shift is None else np.round(net.shift, 6)
    run = digest(told_apart(rows, panel.values), graph, recipe, sizes, net.outages)
    names = [digest(run, entry, kind) for entry, kind in entries]
    found = {i: recall(name, NodeNetWeights) for i, name in enumerate(names)}
    lacking = [i for i, kept in found.items() if kept is None]
    stopped: dict[int, int] = {}
    ending = threading.Event()

    def part(which: int, of: int) -> None:
        def told(step: int, total: int, loss: float) -> None:
            if ending.is_set():
                raise KeyboardInterrupt
            if which == 0 and progress is not None:
                progress(step, total, loss)

        own = lacking[which::of]
        trained = train(
            NodeNetModel(*sizes, net.shift, [entries[i][1] for i in own], hidden),
            rows,
            recipe,
            [entries[i][0] for i in own],
            device=net.device,
            progress=told,
            checkpoint=None if checkpoint is None else Path(f"{checkpoint}.{which}" if which else checkpoint),
        )
        stopped.update(trained.stopped)
        for i, weights, losses in zip(own, trained.weights, trained.losses.T, strict=True):
            found[i] = Kept(weights, losses)
            keep(names[i], Kept(weights, losses))

    cores = min(len(lacking), (os.cpu_count() or 1) if net.device == "cpu" else 1)
    with ThreadPoolExecutor(max(cores, 1)) as pool:
        try:
            list(pool.map(part, range(cores), [cores] * cores))
        except BaseException:  # also Ctrl-C: the others end at their next look
            ending.set()
            raise
    whole = [kept for kept in found.values() if kept is not None]
    return Trained([one.weights for one in whole], np.stack([one.losses for one in whole], axis=1), stopped)
