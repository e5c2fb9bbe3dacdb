"""One training engine for every learned filter: windows, optimiser, clipping, checkpoints, many seeds at once.

Weights of all seeds are stacked on a leading axis and trained in one program. Every seed draws its own windows from
its own generator, its loss touches its own slice alone, and Adam and clipping act on that slice alone: a seed's result
does not depend on its company.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.filters.kept_weights import read_checkpoint, write_checkpoint
from jointset.filters.recipes import Recipe
from jointset.filters.step_graph import StepGraph

CHECK = 50  # steps between looks at the loss: a look waits for the device
MOMENTS = ("exp_avg", "exp_avg_sq")  # what Adam remembers of every weight


class Trainable(Protocol):
    """What the engine trains: a family of weights and their loss on windows."""

    def initial(self, rng: np.random.Generator) -> Any:
        """Fresh weights, a NamedTuple of arrays."""
        ...

    def identity(self) -> str:
        """What makes this model another one than its shapes tell: a checkpoint must have the same."""
        ...

    def zero_state(self, seeds: int, batch: int) -> torch.Tensor:
        """State before the first row, with the seed axis first."""
        ...

    def loss(
        self, weights: Any, windows: torch.Tensor, state: torch.Tensor, skip: int, gaps: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss of every seed (S,) on windows (S, B, window + 1, N) from a state, and the state after them.

        `gaps` says whether the series has missing readings (NaN) at all.
        """
        ...


class Trained(NamedTuple):
    """Weights of every seed, the loss curve, and the seeds that had to stop."""

    weights: list[Any]
    losses: Array  # (looks, S)
    stopped: dict[int, int]  # seed -> step at which its loss was no longer finite


def train(
    model: Trainable,
    values: Array,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    begin: Sequence[Any] | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
    keep_checkpoint: bool = False,
) -> Trained:
    """Train one set of weights for each seed on rows (T, N), in order; NaN = missing. float64 is for checks.

    `begin` holds the weights that each seed goes on from, instead of fresh ones. A checkpoint that is kept holds the
    finished run at the end: the same call gives it back at once.
    """
    recipe = recipe.for_rows(len(values))
    run = _Run(model, values, recipe, seeds, usable_device(device), dtype, begin)
    if checkpoint is not None:
        run.resume(Path(checkpoint))
    small = recipe.batch * np.shape(values)[1] < 8000
    while run.step < run.total:
        stop = min(run.step + CHECK - run.step % CHECK, run.total)
        with threads(1 if small else torch.get_num_threads()):
            loss = run.advance(stop)
        if progress is not None:
            progress(run.step, run.total, loss)
        if checkpoint is not None and (run.step // checkpoint_every) * checkpoint_every > run.step - CHECK:
            run.save(Path(checkpoint))
    if checkpoint is not None:
        run.save(Path(checkpoint)) if keep_checkpoint else Path(checkpoint).unlink(missing_ok=True)
    return run.result()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """That many threads for the products inside: small ones lose more to waiting than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def usable_device(name: str) -> torch.device:
    """The device of that name, refused when it is unknown or not there."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"unknown device {name!r}: use cpu or cuda") from None
    require(device.type == "cpu" or torch.cuda.is_available(), f"device {name!r} is not available here: use cpu")
    return device


class _Run:
    """The moving parts of one training run."""

    def __init__(
        self,
        model: Trainable,
        values: Array,
        recipe: Recipe,
        seeds: Sequence[int],
        device: Any,
        dtype: torch.dtype = torch.float32,
        begin: Sequence[Any] | None = None,
    ) -> None:
        self.begin = begin
        self.model, self.recipe, self.seeds, self.device, self.dtype = model, recipe, list(seeds), device, dtype
        self.total = recipe.total(len(values))
        self.series = torch.tensor(np.asarray(values), dtype=dtype, device=device)
        self.kind, self.weights = self._fresh()
        self.gaps = bool(np.isnan(values).any())
        self.rate = torch.tensor(recipe.rate, device=device)
        on_gpu = device.type == "cuda"
        self.optimiser = torch.optim.Adam(
            self.weights,
            lr=self.rate if on_gpu else recipe.rate,
            weight_decay=recipe.weight_decay,
            capturable=on_gpu,
            fused=on_gpu,
            foreach=not on_gpu,
        )
        self.total_loss = torch.zeros(len(seeds), dtype=dtype, device=device)
        self.starts = [np.random.default_rng([seed, 1]) for seed in self.seeds]
        self.state = model.zero_state(len(seeds), recipe.batch).to(device, dtype)
        self.ahead = torch.arange(recipe.window + 1, device=device)
        self.graph: StepGraph | None = None
        self.step = 0
        self.losses: list[list[float]] = []
        self.stopped: dict[int, int] = {}
        self.good = [w.detach().clone() for w in self.weights]

    def _fresh(self) -> tuple[type, list[torch.Tensor]]:
        initial = self.begin or [self.model.initial(np.random.default_rng([seed, 0])) for seed in self.seeds]
        stacked = [np.stack(parts) for parts in zip(*initial, strict=True)]
        tensors = [torch.as_tensor(x, dtype=self.dtype, device=self.device).requires_grad_() for x in stacked]
        return type(initial[0]), tensors

    def windows(self, count: int) -> torch.Tensor:
        """First rows (count, S, B) of the next windows: drawn with replacement, or the next ones in order."""
        last = len(self.series) - self.recipe.window
        if self.recipe.in_order:
            places = (self.step + np.arange(count)) % self.recipe.windows(len(self.series)) * self.recipe.window
            parts = np.arange(self.recipe.batch) * ((len(self.series) - 1) // self.recipe.batch)
            starts = np.repeat((places[:, None] + parts)[:, None], len(self.seeds), axis=1)
            return torch.as_tensor(starts, device=self.device)
        draws = [rng.integers(0, last, (count, self.recipe.batch)) for rng in self.starts]
        return torch.as_tensor(np.stack(draws, axis=1), device=self.device)

    def advance(self, stop: int) -> float:
        """Take steps up to `stop`, then look at the loss."""
        count = stop - self.step
        self.total_loss.zero_()
        starts = self.windows(count)
        if self.device.type == "cuda":
            if self.graph is None:
                self.graph = StepGraph(self, CHECK)
            self.graph.replay(starts, self.step)
        else:
            for i, chosen in enumerate(starts):
                for group in self.optimiser.param_groups:
                    group["lr"] = self.recipe.rate_at(self.step + i, len(self.series))
                rate = self.recipe.rate_at(self.step + i, len(self.series))
                self.take(chosen, float(self.carries(self.step + i)), float(rate > 0))
        self.step = stop
        mean = (self.total_loss / count).tolist()
        self._keep_or_restore(mean)
        self.losses.append(mean)
        return float(np.mean([x for x in mean if math.isfinite(x)] or [math.nan]))

    def carries(self, step: int) -> bool:
        """Whether a step goes on from the state the step before it ended in."""
        return self.recipe.in_order and step % self.recipe.windows(len(self.series)) > 0

    def take(self, starts: torch.Tensor, carry: float | torch.Tensor, active: float | torch.Tensor) -> None:
        """One optimiser step on windows that begin at rows (S, B), from the last state times `carry`.

        `active` is 0 where a window only brings the state up: its loss counts for nothing.
        """
        windows = self.series[starts[..., None] + self.ahead]  # (S, B, window + 1, N)
        state = self.state * carry
        loss, after = self.model.loss(self.kind(*self.weights), windows, state, self.recipe.skip, self.gaps)
        self.state.copy_(after.detach())
        loss = loss * active
        self.optimiser.zero_grad(set_to_none=True)
        loss.sum().backward()
        self._clip()
        self.optimiser.step()
        self.total_loss += loss.detach()

    def _clip(self) -> None:
        grads = [w.grad for w in self.weights if w.grad is not None]
        if self.recipe.clip == "value":
            torch._foreach_clamp_min_(grads, -self.recipe.limit)
            torch._foreach_clamp_max_(grads, self.recipe.limit)
            return
        squares = torch.stack([(g.flatten(1) ** 2).sum(1) for g in grads]).sum(0)
        factor = (self.recipe.limit / (torch.sqrt(squares) + 1e-6)).clamp(max=1.0)
        whole = torch.isfinite(squares)
        for g in grads:
            shape = (-1, *(1,) * (g.ndim - 1))
            g *= factor.reshape(shape)
            g.masked_fill_(~whole.reshape(shape), 0.0)  # a step that overflowed is left out

    def _keep_or_restore(self, losses: list[float]) -> None:
        """Remember the weights of seeds with a finite loss; put the others back and note when they stopped."""
        whole = torch.stack([torch.isfinite(w).flatten(1).all(1) for w in self.weights]).all(0).tolist()
        fine = [math.isfinite(x) and ok for x, ok in zip(losses, whole, strict=True)]
        if all(fine) and not self.stopped:
            torch._foreach_copy_(self.good, self.weights)
            return
        with torch.no_grad():
            for i, (seed, ok) in enumerate(zip(self.seeds, fine, strict=True)):
                for w, good in zip(self.weights, self.good, strict=True):
                    if ok and seed not in self.stopped:
                        good[i] = w[i]
                    else:
                        w[i] = good[i]
                if not ok:
                    self.stopped.setdefault(seed, self.step)

    def result(self) -> Trained:
        """Weights as NumPy arrays, one NamedTuple a seed."""
        arrays = [w.detach().cpu().double().numpy() for w in self.good]
        weights = [self.kind(*(x[i].copy() for x in arrays)) for i in range(len(self.seeds))]
        return Trained(weights, np.array(self.losses).reshape(-1, len(self.seeds)), self.stopped)

    # ------------------------------------------------------------------ checkpoints

    def save(self, path: Path) -> None:
        """Everything needed to go on, written whole or not at all."""
        tensors = {"state": self.state, "losses": torch.tensor(self.losses, dtype=torch.float64)}
        for i, (w, good) in enumerate(zip(self.weights, self.good, strict=True)):
            moments = self.optimiser.state[w]
            tensors |= {f"weight.{i}": w, f"good.{i}": good} | {f"{key}.{i}": moments[key] for key in MOMENTS}
        arrays = {key: value.detach().cpu().numpy() for key, value in tensors.items()}
        stopped = np.array(list(self.stopped.items()), dtype=np.int64).reshape(-1, 2)
        write_checkpoint(path, arrays | {"step": np.array(self.step), "stopped": stopped}, self._identity())

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint of the same run, if there is one."""
        if not path.exists():
            return
        arrays = read_checkpoint(path, self._identity())
        self.step = int(arrays["step"])
        for done in range(0, self.step, CHECK):  # bring the window generators to where they were
            self.windows(min(CHECK, self.step - done))
        tensors = {key: torch.as_tensor(value, device=self.device) for key, value in arrays.items()}
        self.state.copy_(tensors["state"])
        self.losses = arrays["losses"].tolist()
        self.stopped = {int(seed): int(step) for seed, step in arrays["stopped"]}
        with torch.no_grad():
            for i, w in enumerate(self.weights):
                w.copy_(tensors[f"weight.{i}"])
                self.good[i].copy_(tensors[f"good.{i}"])
                count = torch.tensor(float(self.step), device=self.device if self.device.type == "cuda" else "cpu")
                self.optimiser.state[w] = {"step": count, **{key: tensors[f"{key}.{i}"] for key in MOMENTS}}

    def _identity(self) -> str:
        data = hashlib.sha256(self.series.cpu().numpy().tobytes())
        for one in self.begin or ():
            data.update(b"".join(np.asarray(x, dtype=np.float32).tobytes() for x in one))
        return repr(
            (self.recipe, self.seeds, data.hexdigest(), self.model.identity(), [tuple(w.shape) for w in self.weights])
        )


def last_seen(windows: torch.Tensor, time: int) -> torch.Tensor:
    """Missing readings (..., N) replaced by the last one before them along the axis of time, zero at its start."""
    place = torch.arange(windows.shape[time], device=windows.device).reshape(-1, *[1] * (windows.ndim - 1 - time))
    last = torch.where(torch.isnan(windows), -1, place).cummax(time).values
    return torch.where(last < 0, torch.zeros_like(windows), torch.gather(windows, time, last.clamp(min=0)))
