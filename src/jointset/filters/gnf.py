"""GNF, the learned graph filter: a recurrent network that emits a diagonal-plus-low-rank law before every reading.

`GNF()` is the paper's pooled GCN-GRU, `GNF(node=True)` the node-wise graph GRU behind its tables. The ablations are
arguments: Diag-GRU is `GNF(graph=False, rank=0)`, with `pool=False` the one of its tables; GCN-rank-0 is `GNF(rank=0)`.
Training needs torch; a fitted filter runs on NumPy alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require
from jointset.filters import recurrent_cells as cells
from jointset.filters.recipes import RECIPES, Recipe
from jointset.graph import normalized_shift
from jointset.inputs.shifts import quick_operator
from jointset.laws import LowRankLaw
from jointset.panel import Panel
from jointset.storage import storable
from jointset.support.extras import require_extra

if TYPE_CHECKING:
    from jointset.filters.training import Trained

CHUNK = 30_000  # numbers of the graph layer worked on at a time: they fit in the processor's cache
Progress = Callable[[int, int, float], None]


@storable
class GNFState(NamedTuple):
    """Hidden state after the last reading: (1, h) pooled, (N, h) node-wise."""

    hidden: Array


@storable
@dataclass(frozen=True)
class GNF:
    """Learned filter with covariance diag(d) + L L', L (N, rank).

    Parameters
    ----------
    node
        One GRU state for every node, with weights shared by the nodes, instead of one for the network.
    graph
        Mix neighbours through the normalised shift; without it every node sees itself only.
    pool
        Mean over the nodes before the GRU; False (without node and graph) gives it the readings of all sensors.
    rank, width
        Columns of L; size of a hidden state.
    recipe, steps
        `fast` (default), `paper` (60 epochs) or `sharp` (node-wise only), see `jointset.filters.recipes`; another
        number of optimiser steps.
    seed, device
        Of the training run.
    weights, shift, sensors
        Set by `fit`: what was learned, the graph shift (N, N), the number of sensors.
    """

    node: bool = False
    graph: bool = True
    pool: bool = True
    rank: int = 4
    width: int = 32
    recipe: str = "fast"
    steps: int | None = None
    seed: int = 0
    device: str = "cpu"
    weights: Any = None
    shift: Array | None = None
    sensors: int = 0

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"the seed must be a whole number >= 0, got {self.seed}")
        require(self.steps is None or self.steps >= 1, f"steps must be 1 or more, got {self.steps}")
        require(self.rank >= 0, f"rank must be 0 or more, got {self.rank}")
        require(self.width >= 1, f"width must be 1 or more, got {self.width}")
        require(
            self.pool or not (self.node or self.graph),
            "pool=False is a GRU on the readings of all sensors: use it with node=False, graph=False",
        )
        cell = "node" if self.node else "pooled"
        known = [name for name, kinds in RECIPES.items() if cell in kinds]
        require(self.recipe in known, f"unknown recipe {self.recipe!r}: choose one of {', '.join(known)}")

    # ------------------------------------------------------------------ training

    def fit(
        self,
        panel: Panel,
        seeds: int | list[int] | None = None,
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Any:
        """A trained copy; with `seeds` a list of them, as `fit_seeds`."""
        if seeds is not None:
            return self.fit_seeds(panel, seeds, progress=progress, checkpoint=checkpoint)
        return self.fit_seeds(panel, [self.seed], progress=progress, checkpoint=checkpoint)[0]

    def fit_seeds(
        self,
        panel: Panel,
        seeds: int | list[int],
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> list[GNF]:
        """Independent filters for several seeds (0 .. k - 1 for a number k), trained in one program."""
        seeds = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        trained = self._train(panel, seeds, progress, checkpoint)
        for seed, step in trained.stopped.items():
            require(
                bool(np.isfinite(trained.losses[0, seeds.index(seed)])),
                f"the loss of seed {seed} was not finite from the first steps on: standardise the readings, "
                "or look for extreme values among them",
            )
            warnings.warn(
                f"training of seed {seed} stopped before step {step}: the loss was not finite; "
                "the last good weights are kept",
                stacklevel=2,
            )
        shift = self._shift_of(panel)
        return [
            replace(self, seed=seed, weights=weights, shift=shift, sensors=panel.n_sensors)
            for seed, weights in zip(seeds, trained.weights, strict=True)
        ]

    def _train(
        self, panel: Panel, seeds: list[int], progress: Progress | None, checkpoint: str | Path | None
    ) -> Trained:
        require_extra("torch", "training a GNF")
        from jointset.filters.gnf_training import NodeModel, PooledModel, VectorModel  # torch is imported here
        from jointset.filters.training import train

        require(
            panel.adjacency is not None or not self.graph,
            "this filter mixes neighbours and the panel has no graph: give one, or use diag-gru (graph=False)",
        )
        kind = NodeModel if self.node else PooledModel if self.pool else VectorModel
        model = kind(panel.n_sensors, self.rank, self.width, self._shift_of(panel))
        recipe = self.training_recipe
        return train(model, panel.values, recipe, seeds, device=self.device, progress=progress, checkpoint=checkpoint)

    @property
    def training_recipe(self) -> Recipe:
        """How it is trained: that of its name, with its own number of steps where one is set."""
        settings = RECIPES[self.recipe]["node" if self.node else "pooled"]
        return Recipe(**settings if self.steps is None else settings | {"steps": self.steps})

    def _shift_of(self, panel: Panel) -> Array | None:
        return None if panel.adjacency is None or not self.graph else normalized_shift(panel.adjacency)

    # ------------------------------------------------------------------ filtering

    @cached_property
    def _mix(self) -> Any:
        """The shift as a matrix for products from the left; None without a graph."""
        return quick_operator(self.shift)

    def _spread(self, x: Array) -> Array:
        return x if self._mix is None else self._mix @ x

    def start(self) -> GNFState:
        """State before the first reading: zero, advanced on Y_0 = 0."""
        require(self.weights is not None, "the filter is not trained: call fit(panel) first")
        rows = self.sensors if self.node else 1
        return self._advance(np.zeros((rows, self.width)), np.zeros(self.sensors))

    def law(self, state: GNFState) -> LowRankLaw:
        """Law of the next reading."""
        return LowRankLaw._made(*self._heads(state.hidden))

    def step(self, state: GNFState, y: Array) -> GNFState:
        """State after one reading (N,); a missing one is replaced by its predicted mean."""
        y = np.asarray(y, dtype=float)
        missing = np.isnan(y)
        if missing.any():
            y = np.where(missing, self._heads(state.hidden)[0], y)
        return self._advance(state.hidden, y)

    def _heads(self, hidden: Array) -> tuple[Array, Array, Array]:
        if self.node:
            return cells.node_heads(hidden, self.weights)
        mean, diagonal, factor = cells.pooled_heads(hidden, self.weights, self.sensors)
        return mean[0], diagonal[0], factor[0]

    def _advance(self, hidden: Array, y: Array) -> GNFState:
        if self.node:
            return GNFState(cells.node_step(y[:, None], hidden, self._spread, self.weights))
        gates = cells.pooled_gates(y[None], self.shift, self.weights)
        return GNFState(cells.pooled_step(gates, hidden, self.weights.hidden_weight))

    def run(self, values: Array, state: GNFState) -> tuple[LowRankLaw, GNFState]:
        """Laws of all rows (T, N) and the state after the last one."""
        values = np.asarray(values, dtype=float)
        gaps: Array = np.asarray(np.isnan(values).any(axis=1))
        hidden = np.empty((len(values), *state.hidden.shape))
        gates = None if self.node else self._all_gates(np.where(gaps[:, None], 0.0, values))
        for t in range(len(values)):
            hidden[t] = state.hidden
            if gates is None or gaps[t]:
                state = self.step(state, values[t])
            else:
                state = GNFState(cells.pooled_step(gates[t : t + 1], state.hidden, self.weights.hidden_weight))
        return self._laws(hidden), state

    def _all_gates(self, values: Array) -> Array:
        """Gate inputs (T, 3h), a block of rows at a time: the graph layer makes N h numbers a row."""
        size = max(1, CHUNK // (self.sensors * self.width))
        shift = self.shift
        blocks = [values[i : i + size] for i in range(0, max(len(values), 1), size)]
        return np.concatenate([cells.pooled_gates(block, shift, self.weights) for block in blocks])

    def _laws(self, hidden: Array) -> LowRankLaw:
        if self.node:
            return LowRankLaw(*cells.node_heads(hidden, self.weights))
        return LowRankLaw(*cells.pooled_heads(hidden[:, 0], self.weights, self.sensors))

    # ------------------------------------------------------------------ what audits ask

    @property
    def variance_floor(self) -> float:
        """The least that the diagonal of the covariance is made of."""
        return cells.FLOOR

    def trajectories(self, states: Sequence[GNFState], values: Array) -> Iterator[LowRankLaw]:
        """Laws (K, N) that K copies emit before each row of values (T, N), from K states."""
        from jointset.filters.gnf_copies import side_by_side

        return side_by_side(self, np.stack([state.hidden for state in states]), values)

    def state_map(self, state: GNFState) -> tuple[Callable[[Any, Array], Any], Any]:
        """The hidden state after a reading, (h, y) -> h on flat tensors, and the one of `state`."""
        from jointset.filters.gnf_copies import state_map

        return state_map(self, state)
