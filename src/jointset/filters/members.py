"""Training of the members of the default: in one program on a GPU, side by side on the cores of a CPU."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointset.backbones.interface import known_range
from jointset.contracts import Array
from jointset.errors import require
from jointset.filters.kept_weights import Kept, digest, keep, recall, told_apart
from jointset.filters.node_net_cells import NodeNetWeights
from jointset.filters.node_net_training import NodeNetModel, outage_patterns
from jointset.filters.recipes import dropout_for
from jointset.filters.training import Trained, train
from jointset.inputs.graph_edges import Edges
from jointset.panel import Panel

if TYPE_CHECKING:
    from jointset.filters.node_net import NodeNet, Progress

FURTHER = 0.25  # steps of a run that goes on with more rows, as a share of those before it


class Entry(NamedTuple):
    """A network to train: the number of its seed, whether its sensors have vectors, what it goes on from."""

    seed: int
    identity: bool
    begin: NodeNetWeights | None = None


def fresh_entries(net: NodeNet, seeds: Sequence[int]) -> list[Entry]:
    """The members of every seed, seed by seed."""
    members = len(net.identities)
    return [Entry(seed * members + i, kind) for seed in seeds for i, kind in enumerate(net.identities)]


def trained_further(
    nets: Sequence[NodeNet], panel: Panel, progress: Progress | None = None, checkpoint: str | Path | None = None
) -> list[NodeNet]:
    """Fitted filters of one kind after a short run from their weights on rows of which they have seen the first."""
    entries, places = [], []
    for net in nets:
        for i, one in enumerate(net.split()):
            begin = NodeNetWeights(*(x[0] for x in one.weights))
            entries.append(Entry(net.seed * len(net.identities) + i, one.identities[0], begin))
        places.append(slice(len(entries) - len(net.weights.tail), len(entries)))
    short = replace(nets[0], steps=further_steps(nets[0].steps))
    trained = trained_members(short, panel, entries, progress, checkpoint)
    if trained.stopped:
        warnings.warn("a member could not be trained on the last rows: it stays as it was before them", stacklevel=2)
    stacked = [NodeNetWeights(*map(np.stack, zip(*trained.weights[at], strict=True))) for at in places]
    known = known_range(panel.values)
    return [replace(net, weights=weights, known=known) for net, weights in zip(nets, stacked, strict=True)]


def further_steps(steps: int) -> int:
    """Steps of `trained_further` after a run of so many."""
    return max(1, round(FURTHER * steps))


def delete_checkpoints(checkpoint: str | Path | None, device: str) -> None:
    """Those of a run that is over."""
    for path in [] if checkpoint is None else checkpoint_files(checkpoint, parts_of(device)):
        path.unlink(missing_ok=True)


def checkpoint_files(checkpoint: str | Path, parts: int) -> list[Path]:
    """Where the parts of a run that goes on side by side keep theirs."""
    return [Path(f"{checkpoint}.{which}" if which else checkpoint) for which in range(parts)]


def trained_members(
    net: NodeNet, panel: Panel, entries: list[Entry], progress: Progress | None, checkpoint: str | Path | None
) -> Trained:
    """Weights of all networks; those that are kept are not trained again. Whoever asked deletes the checkpoints."""
    n = panel.n_sensors
    recipe, clock = net.schedule(len(panel), n), net.calendar.terms(panel.timestamps, len(panel))
    rows = np.hstack([panel.values, clock, np.arange(len(panel))[:, None]])
    hidden = outage_patterns(n, recipe.window + 1, net.outages)
    sizes = (n, clock.shape[1], net.rank, net.width)
    graph = [np.round(part, 6) for part in net.shift] if isinstance(net.shift, Edges) else [_rounded(net.shift)]
    dropout = dropout_for(len(panel)) if net.dropout is None else net.dropout
    dropped = (dropout,) if dropout else ()
    run = digest(told_apart(rows, panel.values), *graph, recipe, sizes, net.outages, *dropped)
    names = [digest(run, one.seed, one.identity, *_singles(one.begin)) for one in entries]
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
            NodeNetModel(*sizes, net.shift, [entries[i].identity for i in own], hidden, dropout),
            rows,
            recipe,
            [entries[i].seed for i in own],
            device=net.device,
            begin=[one for i in own if (one := entries[i].begin) is not None] or None,
            progress=told,
            checkpoint=None if checkpoint is None else checkpoint_files(checkpoint, of)[which],
            keep_checkpoint=True,
        )
        stopped.update(trained.stopped)
        for i, weights, losses in zip(own, trained.weights, trained.losses.T, strict=True):
            found[i] = Kept(weights, losses)
            keep(names[i], Kept(weights, losses))

    cores = min(len(lacking), parts_of(net.device))
    with ThreadPoolExecutor(max(cores, 1)) as pool:
        try:
            list(pool.map(part, range(cores), [cores] * cores))
        except BaseException:  # also Ctrl-C: the others end at their next look
            ending.set()
            raise
    whole = [kept for kept in found.values() if kept is not None]
    return Trained([one.weights for one in whole], np.stack([one.losses for one in whole], axis=1), stopped)


def stacked(identities: Sequence[bool], seed: int, trained: Trained, first: int) -> NodeNetWeights:
    """Weights of the members of a seed whose training went well, with a leading axis; refused when none did."""
    entries = range(first, first + len(identities))
    good = [i for i in entries if np.isfinite(trained.losses[0, i])]
    require(
        bool(good),
        f"the loss of seed {seed} was not finite from the first steps on: standardise the readings, or look for "
        "extreme values among them",
    )
    members = len(identities)
    if len(good) < members or any(seed * members + i in trained.stopped for i in range(members)):
        warnings.warn(
            f"training of a member of seed {seed} stopped early: the loss was not finite; its last good weights "
            "are kept" + (f", {len(good)} of {members} members go on" if len(good) < members else ""),
            stacklevel=4,
        )
    kept = [
        w if identities[i - first] else w._replace(identity=0.0 * w.identity)
        for i in good
        for w in [trained.weights[i]]
    ]
    return NodeNetWeights(*map(np.stack, zip(*kept, strict=True)))


def parts_of(device: str) -> int:
    """How many parts of a run go on side by side, at most."""
    return (os.cpu_count() or 1) if device == "cpu" else 1


def _rounded(shift: Array | None) -> Array | None:
    return None if shift is None else np.round(shift, 6)


def _singles(weights: NodeNetWeights | None) -> list[Array]:
    """Weights as they are kept."""
    return [] if weights is None else [np.asarray(x, dtype=np.float32) for x in weights]
