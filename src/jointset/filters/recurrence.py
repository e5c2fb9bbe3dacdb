"""The recurrences over whole windows, each with its own backward pass: a few products a step, no autograd graph."""

from __future__ import annotations

from typing import Any

import torch

from jointset.filters.recurrent_cells import NodeWeights


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        T, n = gates.shape[1], W.shape[1]
        W_both, W_candidate = W[..., : 2 * n].contiguous(), W[..., 2 * n :].contiguous()
        before = gates.new_zeros(gates.shape[0], T + 1, gates.shape[2], n)  # h_0 .. h_T
        both = torch.empty_like(gates[..., : 2 * n])
        candidates = torch.empty_like(gates[..., 2 * n :])
        for t in range(T):
            h, g = before[:, t], gates[:, t]
            b = torch.baddbmm(g[..., : 2 * n], h, W_both).sigmoid_()
            c = torch.baddbmm(g[..., 2 * n :], b[..., :n] * h, W_candidate).tanh_()
            torch.lerp(h, c, b[..., n:], out=before[:, t + 1])
            both[:, t], candidates[:, t] = b, c
        ctx.save_for_backward(before, both, candidates, W)
        return before[:, 1:]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (upper,) = grads
        before, both, candidates, W = ctx.saved_tensors
        T, n = upper.shape[1], W.shape[1]
        back_both = W[..., : 2 * n].transpose(1, 2).contiguous()
        back_candidate = W[..., 2 * n :].transpose(1, 2).contiguous()
        reset, update, h = both[..., :n], both[..., n:], before[:, :-1]
        # factors that need no recursion, for all steps at once
        to_candidate = update * (1.0 - candidates * candidates)
        to_update = (candidates - h) * update * (1.0 - update)
        to_reset = h * reset * (1.0 - reset)
        pre = torch.empty(*upper.shape[:3], 3 * n, dtype=upper.dtype, device=upper.device)
        carry = torch.zeros_like(upper[:, 0])
        for t in range(T - 1, -1, -1):
            down = carry + upper[:, t]
            through = pre[:, t, :, 2 * n :]
            torch.mul(down, to_candidate[:, t], out=through)
            inner = torch.bmm(through, back_candidate)
            torch.mul(inner, to_reset[:, t], out=pre[:, t, :, :n])
            torch.mul(down, to_update[:, t], out=pre[:, t, :, n : 2 * n])
            carry = torch.baddbmm(down - down * update[:, t] + inner * reset[:, t], pre[:, t, :, : 2 * n], back_both)
        flat = pre.flatten(1, 2)
        past = h.flatten(1, 2).transpose(1, 2)
        kept = (reset * h).flatten(1, 2).transpose(1, 2)
        return pre, torch.cat([past @ flat[..., : 2 * n], kept @ flat[..., 2 * n :]], dim=-1)


class _NodeRecurrence(torch.autograd.Function):
    """States (T, S, M, h) of M nodes (windows times nodes) from gate inputs (T, S, M, 3h); time leads."""

    @staticmethod
    def forward(
        ctx: Any, gates: torch.Tensor, start: torch.Tensor, W_both: torch.Tensor, W_candidate: torch.Tensor, shift: Any
    ) -> torch.Tensor:
        T, n = len(gates), start.shape[-1]
        seen = gates.new_empty(T + 1, *start.shape[:2], 2 * n)  # [h, S h]
        kept = gates.new_empty(T, *start.shape[:2], 2 * n)  # [r h, S (r h)]
        both, candidates = torch.empty_like(kept), torch.empty_like(kept[..., :n])
        seen[0, ..., :n] = start
        for t in range(T):
            h = seen[t, ..., :n]
            _mix(h, shift, seen[t, ..., n:])
            torch.sigmoid(torch.baddbmm(gates[t, ..., : 2 * n], seen[t], W_both), out=both[t])
            torch.mul(both[t, ..., :n], h, out=kept[t, ..., :n])
            _mix(kept[t, ..., :n], shift, kept[t, ..., n:])
            torch.tanh(torch.baddbmm(gates[t, ..., 2 * n :], kept[t], W_candidate), out=candidates[t])
            torch.lerp(h, candidates[t], both[t, ..., n:], out=seen[t + 1, ..., :n])
        ctx.save_for_backward(seen, kept, both, candidates, W_both, W_candidate)
        ctx.shift = shift
        return seen[1:, ..., :n]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (upper,) = grads
        seen, kept, both, candidates, W_both, W_candidate = ctx.saved_tensors
        T, n = len(upper), upper.shape[-1]
        back_both, back_candidate = W_both.mT.contiguous(), W_candidate.mT.contiguous()
        reset, update, h = both[..., :n], both[..., n:], seen[:-1, ..., :n]
        # factors that need no recursion, for all steps at once
        stay = 1.0 - update
        to_candidate = update * (1.0 - candidates * candidates)
        to_update = (candidates - h) * update * stay
        to_reset = h * reset * (1.0 - reset)
        pre = upper.new_empty(*upper.shape[:3], 3 * n)
        carry = torch.zeros_like(upper[0])
        for t in range(T - 1, -1, -1):
            down = carry + upper[t]
            torch.mul(down, to_candidate[t], out=pre[t, ..., 2 * n :])
            inner = _unmix(torch.bmm(pre[t, ..., 2 * n :], back_candidate), ctx.shift)
            torch.mul(inner, to_reset[t], out=pre[t, ..., :n])
            torch.mul(down, to_update[t], out=pre[t, ..., n : 2 * n])
            carry = _unmix(torch.bmm(pre[t, ..., : 2 * n], back_both), ctx.shift)
            carry.addcmul_(down, stay[t]).addcmul_(inner, reset[t])
        flat = pre.transpose(0, 1).flatten(1, 2)
        past, held = (x.transpose(0, 1).flatten(1, 2).mT for x in (seen[:-1], kept))
        return pre, carry, past @ flat[..., : 2 * n], held @ flat[..., 2 * n :], None


def _mix(x: torch.Tensor, shift: torch.Tensor | None, out: torch.Tensor) -> None:
    """S x of all nodes (S, B N, h) into `out`; the shift is (1 or S, N, N), or None where every node is alone."""
    if shift is None:
        out.copy_(x)
    else:
        torch.bmm(_all_windows(shift, x), _windows(x, shift), out=_windows(out, shift))


def _unmix(x: torch.Tensor, shift: torch.Tensor | None) -> torch.Tensor:
    """The gradient of h, given that of [h, S h]."""
    own, mixed = x.chunk(2, dim=-1)
    if shift is None:
        return own + mixed
    back = _all_windows(shift, x).mT
    return torch.baddbmm(_windows(own, shift), back, _windows(mixed, shift)).reshape(own.shape)


def _windows(x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Nodes (S, B N, h) as windows (S B, N, h)."""
    return x.view(-1, shift.shape[-1], x.shape[-1])


def _all_windows(shift: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The shift for each of the windows of (S, B N, h)."""
    N, count = shift.shape[-1], x.shape[0] * x.shape[1] // shift.shape[-1]
    if len(shift) == 1:
        return shift.expand(count, N, N)
    return shift[:, None].expand(-1, count // len(shift), N, N).reshape(count, N, N)


def node_states(y: torch.Tensor, state: torch.Tensor, shift: torch.Tensor | None, w: NodeWeights) -> torch.Tensor:
    """States (T, S, B N, h) of all nodes after each of the readings (T, S, B N, 1): `cells.node_step` over time."""
    n = state.shape[-1]
    own = torch.cat([w.gate_weight[:, 2 * n :], w.candidate_weight[:, 2 * n :]], dim=-1)
    gates = torch.addcmul(torch.cat([w.gate_bias, w.candidate_bias], dim=-1), y, own)
    graph = None if shift is None else shift.reshape(-1, *shift.shape[-2:])
    return _NodeRecurrence.apply(
        gates, state, w.gate_weight[:, : 2 * n].contiguous(), w.candidate_weight[:, : 2 * n].contiguous(), graph
    )


def fused(x: torch.Tensor, width: int) -> bool:
    """Whether the Triton kernels serve this tensor: on a GPU, in float32, with a width they are written for."""
    if not x.is_cuda or x.dtype != torch.float32 or width not in (16, 32, 64):
        return False
    from importlib.util import find_spec

    return find_spec("triton") is not None


def pooled_states(gates: torch.Tensor, hidden_weight: torch.Tensor) -> torch.Tensor:
    """States (S, T, B, h) of windows from zero, given gate inputs (S, T, B, 3h) and weights (S, h, 3h)."""
    if fused(gates, hidden_weight.shape[1]):
        from jointset.filters.kernels import Recurrence

        return Recurrence.apply(gates, hidden_weight)
    return _Recurrence.apply(gates, hidden_weight)
