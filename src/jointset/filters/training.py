"""One training engine for every learned filter: windows, optimiser, clipping, checkpoints, many seeds at once.

Weights of all seeds are stacked on a leading axis and trained in one program. Every seed draws its own windows from
its own generator, its loss touches its own slice alone, and Adam and clipping act on that slice alone: a seed's result
does not depend on its company.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.storage import storable

CHECK = 50  # steps between looks at the loss: a look waits for the device


@storable
@dataclass(frozen=True)
class Recipe:
    """How to train. Steps are `epochs` times the number of whole windows in the series, unless given."""

    epochs: int = 60
    steps: int | None = None
    batch: int = 64
    window: int = 24
    skip: int = 0  # first steps of a window that are not in the loss
    in_order: bool = False  # cut the series into `batch` parts and go through each window by window, state carried on
    skip_share: float = 0.0  # in order: first share of the series that only brings the state up
    rate: float = 1e-3
    schedule: str = "constant"  # or "cosine": warm up over 5 % of the steps, then down to zero
    clip: str = "value"  # each gradient entry to +-limit, or "norm": the whole gradient of a seed
    limit: float = 5.0
    weight_decay: float = 0.0

    def for_rows(self, rows: int) -> Recipe:
        """The recipe with as many parts as a short series has windows; refused when it has none."""
        require(
            rows > self.window,
            f"{rows} training rows are fewer than one window of {self.window} and the row after it: give more rows",
        )
        return replace(self, batch=min(self.batch, (rows - 1) // self.window)) if self.in_order else self

    def total(self, rows: int) -> int:
        """Optimiser steps on a series of that many rows."""
        return self.steps if self.steps is not None else self.epochs * self.windows(rows)

    def windows(self, rows: int) -> int:
        """Steps of one pass over a series of that many rows: its whole windows, or those of one part in order."""
        return (rows - 1) // (self.batch if self.in_order else 1) // self.window

    def rate_at(self, step: int, rows: int) -> float:
        """Learning rate of a step: zero where an ordered pass only brings the state up."""
        if self.in_order and (step % self.windows(rows)) * self.window < self.skip_share * rows:
            return 0.0
        return self.rate * rate_factor(self.schedule, step, self.total(rows))


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
    progress: Callable[[int, int, float], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
) -> Trained:
    """Train one set of weights for each seed on rows (T, N), complete and in order."""
    recipe = recipe.for_rows(len(values))
    run = _Run(model, values, recipe, seeds, usable_device(device))
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
        Path(checkpoint).unlink(missing_ok=True)
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

    def __init__(self, model: Trainable, values: Array, recipe: Recipe, seeds: Sequence[int], device: Any) -> None:
        self.model, self.recipe, self.seeds, self.device = model, recipe, list(seeds), device
        self.total = recipe.total(len(values))
        self.series = torch.tensor(np.asarray(values), dtype=torch.float32, device=device)
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
        self.total_loss = torch.zeros(len(seeds), device=device)
        self.starts = [np.random.default_rng([seed, 1]) for seed in self.seeds]
        self.state = model.zero_state(len(seeds), recipe.batch).to(device)
        self.ahead = torch.arange(recipe.window + 1, device=device)
        self.graph: StepGraph | None = None
        self.step = 0
        self.losses: list[list[float]] = []
        self.stopped: dict[int, int] = {}
        self.good = [w.detach().clone() for w in self.weights]

    def _fresh(self) -> tuple[type, list[torch.Tensor]]:
        initial = [self.model.initial(np.random.default_rng([seed, 0])) for seed in self.seeds]
        stacked = [np.stack(parts) for parts in zip(*initial, strict=True)]
        tensors = [torch.as_tensor(x, dtype=torch.float32, device=self.device).requires_grad_() for x in stacked]
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
                self.graph = StepGraph(self)
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
        for g in grads:
            g *= factor.reshape(-1, *(1,) * (g.ndim - 1))

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
        from safetensors.torch import save_file

        tensors = {f"weight.{i}": w.detach().contiguous() for i, w in enumerate(self.weights)}
        tensors |= {f"good.{i}": w.contiguous() for i, w in enumerate(self.good)}
        for i, w in enumerate(self.weights):
            state = self.optimiser.state[w]
            tensors |= {f"{key}.{i}": state[key].contiguous() for key in ("exp_avg", "exp_avg_sq")}
        tensors["state"] = self.state.contiguous()
        tensors["losses"] = torch.tensor(self.losses, dtype=torch.float64)
        stopped = ",".join(f"{seed}:{step}" for seed, step in self.stopped.items())
        facts = {"step": str(self.step), "identity": self._identity(), "stopped": stopped}
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, fresh, metadata=facts)
        fresh.replace(path)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint of the same run, if there is one."""
        from safetensors import SafetensorError, safe_open

        if not path.exists():
            return
        try:
            with safe_open(path, "pt") as file:
                facts = file.metadata()
                tensors = {key: file.get_tensor(key).to(self.device) for key in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise InputError(f"checkpoint {path} cannot be read ({error}): delete it to start again") from None
        require(
            (facts or {}).get("identity") == self._identity(),
            f"checkpoint {path} belongs to another run (recipe, seeds or data differ): delete it or choose another",
        )
        self.step = int(facts["step"])
        for done in range(0, self.step, CHECK):  # bring the window generators to where they were
            self.windows(min(CHECK, self.step - done))
        self.state.copy_(tensors["state"])
        self.losses = tensors["losses"].cpu().tolist()
        self.stopped = {int(s): int(t) for s, t in (x.split(":") for x in facts["stopped"].split(",") if x)}
        with torch.no_grad():
            for i, w in enumerate(self.weights):
                w.copy_(tensors[f"weight.{i}"])
                self.good[i].copy_(tensors[f"good.{i}"])
                moments = {key: tensors[f"{key}.{i}"] for key in ("exp_avg", "exp_avg_sq")}
                count = torch.tensor(float(self.step), device=self.device if self.device.type == "cuda" else "cpu")
                self.optimiser.state[w] = {"step": count, **moments}

    def _identity(self) -> str:
        data = hashlib.sha256(self.series.cpu().numpy().tobytes()).hexdigest()
        return repr((self.recipe, self.seeds, data, self.model.identity(), [tuple(w.shape) for w in self.weights]))


class StepGraph:
    """One training step captured as a CUDA graph: many steps run without the host in between."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        steps = range(run.total)
        self.rates = torch.tensor([run.recipe.rate_at(step, len(run.series)) for step in steps], device=run.device)
        self.carries = torch.tensor([float(run.carries(step)) for step in steps], device=run.device)
        shape = (CHECK, len(run.seeds), run.recipe.batch)
        self.starts = torch.zeros(shape, dtype=torch.int64, device=run.device)
        self.place = torch.zeros(1, dtype=torch.int64, device=run.device)  # within the block of starts
        self.step = torch.zeros(1, dtype=torch.int64, device=run.device)  # within the whole run
        self._capture()

    def _capture(self) -> None:
        """Warm up on the side, put everything back, then record."""
        run = self.run
        states = run.optimiser.state
        moments = [{k: v.clone() for k, v in states[w].items()} for w in run.weights if states]
        weights, state = [w.detach().clone() for w in run.weights], run.state.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._body()
        torch.cuda.current_stream().wait_stream(side)
        with torch.no_grad():
            run.state.copy_(state)
            for i, w in enumerate(run.weights):
                w.copy_(weights[i])
                for key, value in run.optimiser.state[w].items():
                    value.copy_(moments[i][key]) if moments else value.zero_()
        run.optimiser.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._body()

    def _body(self) -> None:
        step = self.step.clamp(max=self.run.total - 1)
        self.run.rate.copy_(self.rates.index_select(0, step)[0])
        active = (self.run.rate > 0).to(self.run.series.dtype)
        self.run.take(self.starts.index_select(0, self.place)[0], self.carries.index_select(0, step)[0], active)
        self.place += 1
        self.step += 1

    def replay(self, starts: torch.Tensor, step: int) -> None:
        """Steps on all the given windows (count, S, B), the first of them being step number `step`."""
        self.starts[: len(starts)].copy_(starts)
        self.place.zero_()
        self.step.fill_(step)
        self.run.total_loss.zero_()
        for _ in range(len(starts)):
            self.graph.replay()


def rate_factor(schedule: str, step: int, total: int) -> float:
    """Learning rate at a step, as a share of the recipe's rate."""
    if schedule == "constant":
        return 1.0
    warm = max(1, total // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(1, total - warm)))
