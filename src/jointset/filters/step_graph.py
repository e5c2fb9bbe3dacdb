"""A training step as a CUDA graph: many steps run without the host in between."""

from __future__ import annotations

from typing import Any

import torch


class StepGraph:
    """One captured step of a training run, replayed for up to `longest` windows at a time."""

    def __init__(self, run: Any, longest: int) -> None:
        self.run = run
        steps = range(run.total)
        self.rates = torch.tensor([run.recipe.rate_at(step, len(run.series)) for step in steps], device=run.device)
        self.carries = torch.tensor([float(run.carries(step)) for step in steps], device=run.device)
        shape = (longest, len(run.seeds), run.recipe.batch)
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
