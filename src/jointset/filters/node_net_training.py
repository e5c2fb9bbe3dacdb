"""What the engine needs to train the members of the default method: initial weights and a heavy-tailed likelihood."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from jointset.contracts import Array
from jointset.filters import node_net_cells as cells
from jointset.filters.initial import glorot, orthogonal
from jointset.filters.likelihood import low_rank_terms
from jointset.filters.node_net_cells import IDENTITY, READ, NodeNetWeights
from jointset.filters.recurrence import pooled_states
from jointset.filters.training import last_seen
from jointset.inputs.graph_edges import Edges
from jointset.inputs.shifts import Shift

SMALL_HEAD = 0.1  # the last layer begins at a tenth of the usual size
FIRST_TAIL = 6.0  # degrees of freedom above the least, at the start
APART = 31  # patterns of dropout between one sensor and the next


class NodeNetModel:
    """Sizes, graph and kinds of the members; a row of the series is readings (N,), clock terms (C,) and its number.

    `identities` says of each entry of the seed axis whether its sensors have vectors of their own, `outages` (K, T, N)
    is True where the inputs of a window are hidden: the window that begins at row i has pattern i mod K. `dropout` is
    the share of each sensor's state that is hidden, in a window, from what stands above it.
    """

    def __init__(
        self,
        n: int,
        clock: int,
        rank: int,
        width: int,
        shift: Shift | None,
        identities: Sequence[bool],
        outages: Array | None = None,
        dropout: float = 0.0,
    ) -> None:
        self.n, self.clock, self.rank, self.width, self.shift = n, clock, rank, width, shift
        self.identities, self.outages, self.dropout = tuple(identities), outages, dropout
        self._placed: dict[tuple[torch.device, torch.dtype], tuple[torch.Tensor | None, ...]] = {}

    def identity(self) -> str:
        """Kinds of members and graph."""
        parts = self.shift if isinstance(self.shift, Edges) else () if self.shift is None else (self.shift,)
        graph = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
        dropped = f" {self.dropout:g}" if self.dropout else ""
        return f"{type(self).__name__} {self.identities} {hashlib.sha256(graph).hexdigest()}{dropped}"

    def initial(self, rng: np.random.Generator) -> NodeNetWeights:
        """Glorot products, orthogonal recurrences, update bias 1, other biases 0, a small last layer."""
        h, C = self.width, self.clock

        def gates(rows: int) -> Array:
            return np.concatenate([glorot(rng, rows, h) for _ in range(3)], axis=1) if rows else np.zeros((0, 3 * h))

        bias = np.zeros((1, 3 * h))
        bias[:, h : 2 * h] = 1.0
        return NodeNetWeights(
            read_weight=gates(READ),
            read_clock=gates(C),
            read_identity=gates(IDENTITY),
            read_bias=bias,
            first_weight=np.concatenate([orthogonal(rng, h) for _ in range(3)], axis=1),
            mix_weight=gates(2 * h),
            mix_bias=bias.copy(),
            second_weight=np.concatenate([orthogonal(rng, h) for _ in range(3)], axis=1),
            head_weight=glorot(rng, 2 * h, h),
            head_read=glorot(rng, READ, h),
            head_clock=glorot(rng, C, h) if C else np.zeros((0, h)),
            head_identity=glorot(rng, IDENTITY, h),
            head_bias=np.zeros((1, h)),
            out_weight=SMALL_HEAD * glorot(rng, h, 2 + self.rank),
            out_bias=np.zeros((1, 2 + self.rank)),
            identity=0.3 * rng.standard_normal((self.n, IDENTITY)),
            tail=np.full((1, 1), math.log(FIRST_TAIL)),
        )

    def zero_state(self, seeds: int, batch: int) -> torch.Tensor:
        """Windows start from nothing: there is no state to carry."""
        return torch.zeros(seeds, 1)

    def loss(
        self, weights: NodeNetWeights, windows: torch.Tensor, state: torch.Tensor, skip: int, gaps: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Negative log-likelihood a reading (S,), mean over steps after the first `skip` and over windows."""
        windows = windows.transpose(1, 2)  # (S, window + 1, B, N + C)
        values, clock = windows[..., : self.n], windows[..., self.n : self.n + self.clock]
        missing = torch.isnan(values)
        seen = (~missing[:, 1:]).to(values.dtype)
        target = values[:, 1:].nan_to_num(0.0) if gaps else values[:, 1:]
        hidden, begins = self._where(values)[2], windows[:, 0, :, -1].long()
        if hidden is not None:
            missing = missing | hidden[begins % len(hidden)].transpose(1, 2)
        filled = values if hidden is None and not gaps else last_seen(values.masked_fill(missing, torch.nan), 1)
        mean, scale, factor, tail = self.laws(weights, filled[:, :-1], missing[:, :-1], clock, begins)
        e = (target - mean)[:, skip:]
        scale, factor, seen = scale[:, skip:], factor[:, skip:], seen[:, skip:]
        distance, log_det = low_rank_terms(e, scale**2, scale[..., None] * factor, seen if gaps else None)
        count = seen.sum(-1)
        v = tail[:, None, None]
        nll = 0.5 * log_det + 0.5 * (v + count) * torch.log1p(distance / v)
        nll = nll + torch.lgamma(0.5 * v) - torch.lgamma(0.5 * (v + count)) + 0.5 * count * torch.log(math.pi * v)
        return nll.mean((1, 2)) / self.n, state

    def laws(
        self,
        w: NodeNetWeights,
        filled: torch.Tensor,
        missing: torch.Tensor,
        clock: torch.Tensor,
        begins: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """Mean and scale (S, T, B, N), factor (S, T, B, N, r) and degrees of freedom (S,) after inputs (S, T, B, N).

        `begins` (S, B) holds the first row of every window, which says what is dropped; None: nothing is.
        """
        S, T, B, N = filled.shape
        shift, flags, _, kept = self._where(filled)
        w = w._replace(identity=w.identity * flags)

        def spread(x: torch.Tensor) -> torch.Tensor:
            if shift is None:
                return x
            flat = x.permute(2, 0, 1, 3)  # sensors first: one product instead of one a step
            return (shift @ flat.reshape(N, -1)).reshape(flat.shape).permute(1, 2, 0, 3)

        changes = torch.cat([torch.zeros_like(filled[:, :1]), filled[:, 1:] - filled[:, :-1]], 1)
        shape = (S, T * B, N)
        seen = (~missing).to(filled.dtype)
        read = cells.readings(filled.reshape(shape), changes.reshape(shape), seen.reshape(shape), spread)
        before, ahead = (c.reshape(S, T * B, self.clock) for c in (clock[:, :-1], clock[:, 1:]))
        own, own_head = cells.own_inputs(w)
        first = self._states(cells.first_gates(read, before, own, w), w.first_weight, T)
        if kept is not None and begins is not None:
            place = begins[..., None] + APART * torch.arange(N, device=begins.device)
            kept = kept[place % len(kept)][:, None].expand(S, T, B, N, -1).reshape(S, T * B, N, -1)
            first = first * kept[..., : self.width]
        second = self._states(cells.second_gates(first, spread, w), w.second_weight, T)
        if kept is not None and begins is not None:
            second = second * kept[..., self.width :]
        correction, scale, factor = cells.heads(second, read, ahead, own_head, w)
        mean = filled + correction.reshape(S, T, B, N)
        return mean, scale.reshape(S, T, B, N), factor.reshape(S, T, B, N, -1), cells.degrees(w)

    def _states(self, gates: torch.Tensor, recurrent: torch.Tensor, T: int) -> torch.Tensor:
        """States (S, T B, N, h) of gate inputs (S, T B, N, 3h): the recursion goes over T, all else side by side."""
        S, _, N, wide = gates.shape
        return pooled_states(gates.reshape(S, T, -1, wide), recurrent).reshape(S, -1, N, wide // 3)

    def _where(self, like: torch.Tensor) -> Any:
        """Shift, kinds, outages and what dropout keeps where the data is, copied there once."""
        key = (like.device, like.dtype)
        if key not in self._placed:
            place: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
            shift = None if self.shift is None else _placed(self.shift, place)
            hidden = None if self.outages is None else torch.as_tensor(self.outages, device=like.device)
            kept = torch.as_tensor(kept_patterns(2 * self.width, self.dropout), **place) if self.dropout else None
            self._placed[key] = shift, torch.as_tensor(self.identities, **place)[:, None, None], hidden, kept
        return self._placed[key]


def _placed(shift: Shift, place: dict[str, Any]) -> torch.Tensor:
    """The shift where the data is; one of edges is a sparse matrix, on a GPU a full one, whose products are faster."""
    if not isinstance(shift, Edges):
        return torch.as_tensor(shift, **place)
    ends, weights = torch.as_tensor(shift.ends.T), torch.as_tensor(shift.weights)
    matrix = torch.sparse_coo_tensor(ends, weights, check_invariants=True, **place).coalesce()
    return matrix if matrix.device.type == "cpu" else matrix.to_dense()


def outage_patterns(n: int, rows: int, share: float, count: int = 64, seed: int = 0) -> Array | None:
    """Hidden readings (count, rows, N): of every other pattern none, of the rest each sensor by chance for a while.

    `share` is the part of sensors that fail at some time in a window; None where that is 0.
    """
    if share == 0.0:
        return None
    rng = np.random.default_rng(seed)
    start = rng.integers(0, rows, (count, 1, n))
    length = np.ceil(rows * rng.random((count, 1, n)) ** 2)
    fails = (rng.random((count, 1, n)) < 2.0 * share) & (np.arange(count) % 2 == 1)[:, None, None]
    place = np.arange(rows)[:, None]
    return fails & (place >= start) & (place < start + length)


def kept_patterns(width: int, dropout: float, count: int = 1021, seed: int = 0) -> Array:
    """Factors (count, width) of states: 0 where they are dropped, the others larger so that their mean stays."""
    return (np.random.default_rng(seed).random((count, width)) >= dropout) / (1.0 - dropout)
