"""Training of the learned backbones in the shared engine: squared error, all seeds at once, early stopping.

Every 50 steps each seed's error on held-out windows is looked at and its best weights so far are kept; a seed that has
not improved for `patience` looks is done, whatever the others do: its result does not depend on its company.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from jointset.backbones.learned import LearnedBackbone, Progress
from jointset.contracts import Array
from jointset.filters.recipes import Recipe
from jointset.filters.training import last_seen, train, usable_device


class SquaredError:
    """What the engine trains: mean squared error of z_{t+1} - z_t - change, over the readings that are there."""

    def __init__(self, backbone: LearnedBackbone, n: int) -> None:
        self.backbone, self.n = backbone, n
        self.live: Any = None  # the engine's weights: the same tensors throughout a run

    def identity(self) -> str:
        """The backbone with its settings."""
        return repr(self.backbone)

    def initial(self, rng: np.random.Generator) -> Any:
        """Fresh weights of one seed."""
        return self.backbone.initial_weights(self.n, rng)

    def zero_state(self, seeds: int, batch: int) -> torch.Tensor:
        """Nothing is carried from window to window."""
        return torch.zeros(seeds, 1)

    def loss(
        self, weights: object, windows: torch.Tensor, state: torch.Tensor, skip: int, gaps: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Error of every seed (S,) on windows (S, B, L + 1, N), from row `skip` + 1 of each on."""
        self.live = weights
        filled = last_seen(windows, 2) if gaps else windows
        keep = windows.shape[2] - 1 - skip
        error = windows[:, :, -keep:] - filled[:, :, -keep - 1 : -1]
        error = error - self.backbone.changes(weights, filled[:, :, :-1], keep)
        if not gaps:
            return (error * error).mean((1, 2, 3)), state
        seen = ~torch.isnan(windows[:, :, -keep:])
        error = torch.where(seen, error, torch.zeros_like(error))
        return (error * error).sum((1, 2, 3)) / seen.sum((1, 2, 3)).clamp(min=1), state


class _Enough(Exception):
    """Every seed is done."""


class _Best:
    """The best weights of every seed so far, by validation error; at first those that training starts from."""

    def __init__(
        self, model: SquaredError, validation: torch.Tensor, skip: int, seeds: Sequence[int], patience: int
    ) -> None:
        self.model, self.skip, self.patience = model, skip, patience
        self.windows = validation.expand(len(seeds), *validation.shape)
        self.gaps = bool(torch.isnan(validation).any())
        self.errors, self.looks = [math.inf] * len(seeds), [0] * len(seeds)  # looks since the best one
        self.weights = [model.initial(np.random.default_rng([seed, 0])) for seed in seeds]  # the engine's generators
        stacked = [torch.as_tensor(np.stack(x), dtype=torch.float32) for x in zip(*self.weights, strict=True)]
        model.live = type(self.weights[0])(*(x.to(validation.device) for x in stacked))
        self.look()

    def look(self) -> None:
        """Compare the weights as they are now with the best of every seed that is not done."""
        live = self.model.live
        with torch.no_grad():
            errors = self.model.loss(live, self.windows, torch.empty(0), self.skip, self.gaps)[0].tolist()
        for i, error in enumerate(errors):
            if self.looks[i] >= self.patience:
                continue
            self.looks[i] += 1
            if error < self.errors[i]:
                self.errors[i], self.looks[i] = error, 0
                self.weights[i] = type(live)(*(w[i].detach().cpu().double().numpy().copy() for w in live))

    @property
    def done(self) -> bool:
        """Whether no seed has improved for its patience."""
        return all(looks >= self.patience for looks in self.looks)


def train_seeds(
    backbone: LearnedBackbone,
    values: Array,
    validation: Array,
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> list[Any]:
    """Weights of every seed, trained on scaled rows (T, N) and chosen on scaled validation rows.

    A seed whose loss is no longer finite is put back by the engine and ends with its best weights, as any other.
    """
    rows, skip = backbone.window_rows, backbone.window_skip
    recipe = Recipe(
        steps=backbone.steps,
        batch=backbone.windows_of(values.shape[1]),
        window=rows,
        skip=skip,
        rate=backbone.rate,
        weight_decay=backbone.weight_decay,
        schedule="cosine",
        clip="norm",
        limit=1.0,
    )
    model = SquaredError(backbone, values.shape[1])
    held = torch.as_tensor(cut(validation, rows, skip), dtype=torch.float32, device=usable_device(backbone.device))
    best = _Best(model, held, skip, seeds, backbone.patience)
    with contextlib.suppress(_Enough):
        train(model, values, recipe, seeds, device=backbone.device, progress=_watch(best, progress))
    return best.weights


def _watch(best: _Best, progress: Progress | None) -> Callable[[int, int, float], None]:
    """Progress of the engine with a look at the validation error; ends the run when all seeds are done."""

    def look(step: int, total: int, loss: float) -> None:
        best.look()
        if progress is not None:
            progress(step, total, loss)
        if best.done:
            raise _Enough

    return look


def cut(values: Array, rows: int, skip: int) -> Array:
    """Windows (W, rows + 1, N) whose trained parts follow one another: every row after the first ones counts once."""
    starts = np.arange(0, len(values) - rows, rows - skip)
    return values[starts[:, None] + np.arange(rows + 1)]
