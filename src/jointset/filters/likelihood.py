"""Gaussian likelihood of diagonal-plus-low-rank laws for training: one pass for the value and all gradients.

With S = D + L L', v = S^-1 e and P = S^-1 the derivatives of e' S^-1 e / 2 + log det S / 2 are
v in e, (P_ii - v_i^2) / 2 in d_i, and S^-1 L - v (v' L) in L, all from one r x r inverse.
"""

from __future__ import annotations

from typing import Any

import torch

from jointset.filters.recurrence import fused


def small_inverse(C: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inverse and log-determinant of many small positive definite matrices (..., r, r), by Gauss-Jordan elimination.

    Positive definite matrices need no pivoting, and a few whole-batch products beat a factorisation per matrix.
    """
    r = C.shape[-1]
    work = torch.cat([C, torch.eye(r, dtype=C.dtype, device=C.device).expand_as(C)], dim=-1)
    log_det = C.new_zeros(C.shape[:-2])
    for k in range(r):
        pivot = work[..., k, k]
        log_det = log_det + torch.log(pivot)
        row = work[..., k, :] / pivot.unsqueeze(-1)
        work = work - work[..., :, k].unsqueeze(-1) * row.unsqueeze(-2)
        work[..., k, :] = row
    return work[..., r:], log_det


class _LowRankNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, e: torch.Tensor, d: torch.Tensor, L: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        w = 1.0 / d if seen is None else seen / d
        rank = L.shape[-1]
        scaled = w.unsqueeze(-1) * L  # W L (..., N, r)
        capacitance = torch.eye(rank, dtype=L.dtype, device=L.device) + L.transpose(-1, -2) @ scaled
        inverse, log_det_c = small_inverse(capacitance)
        solved = scaled @ inverse  # S^-1 L (..., N, r), since S^-1 L = W L C^-1
        z = (solved * e.unsqueeze(-1)).sum(-2)  # posterior factor L' S^-1 e (..., r)
        rest = e - (L @ z.unsqueeze(-1)).squeeze(-1)
        v = w * rest
        precision = w - (solved * scaled).sum(-1)
        log_det_d = torch.log(d) if seen is None else seen * torch.log(d)
        distance = (v * rest).sum(-1) + (z * z).sum(-1)  # a sum of squares: v' e would cancel in float32
        value = 0.5 * (distance + log_det_d.sum(-1) + log_det_c)
        ctx.save_for_backward(v, 0.5 * (precision - v * v), solved - v.unsqueeze(-1) * z.unsqueeze(-2))
        return value

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (grad,) = grads
        v, d_grad, factor_grad = ctx.saved_tensors
        return grad.unsqueeze(-1) * v, grad.unsqueeze(-1) * d_grad, grad[..., None, None] * factor_grad, None


def low_rank_nll(e: torch.Tensor, d: torch.Tensor, L: torch.Tensor, seen: torch.Tensor | None = None) -> torch.Tensor:
    """Negative log-likelihood (...) less its constant, of residuals e (..., N) under diag(d) + L L'.

    `seen` (..., N), 1 where there is a reading and 0 where not, leaves missing sensors out exactly.
    """
    if seen is None and L.shape[-1] <= 4 and e.shape[-1] <= 1024 and fused(e, 32):
        from jointset.filters.kernels import LowRankNLL

        return LowRankNLL.apply(e, d, torch.nn.functional.pad(L, (0, 4 - L.shape[-1])))
    return _LowRankNLL.apply(e, d, L, seen)
