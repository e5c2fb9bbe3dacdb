"""The pooled GRU over whole windows, with its own backward pass: two products a step instead of an autograd graph."""

from __future__ import annotations

from typing import Any

import torch


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
