"""Likelihood of diagonal-plus-low-rank laws for training: one pass for the values and all gradients.

With S = D + L L', v = S^-1 e and P = S^-1 the derivatives of e' S^-1 e are 2 v in e, -v_i^2 in d_i and -2 v (v' L)
in L, those of log det S are P_ii in d_i and 2 S^-1 L in L, all from one r x r inverse.
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


class _LowRankTerms(torch.autograd.Function):
    """Squared distance and log-determinant, whose derivatives share all their parts."""

    @staticmethod
    def forward(
        ctx: Any, e: torch.Tensor, d: torch.Tensor, L: torch.Tensor, seen: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
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
        ctx.save_for_backward(v, precision, solved, z)
        return distance, log_det_d.sum(-1) + log_det_c

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        v, precision, solved, z = ctx.saved_tensors
        far, wide = (g.unsqueeze(-1) for g in grads)
        in_factor = 2.0 * (wide.unsqueeze(-1) * solved - (far * v).unsqueeze(-1) * z.unsqueeze(-2))
        return 2.0 * far * v, wide * precision - far * v * v, in_factor, None


def low_rank_terms(
    e: torch.Tensor, d: torch.Tensor, L: torch.Tensor, seen: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared Mahalanobis distance and log-determinant (...) of residuals e (..., N) under diag(d) + L L'.

    `seen` (..., N), 1 where there is a reading and 0 where not, leaves missing sensors out exactly.
    """
    distance, log_det = _LowRankTerms.apply(e, d, L, seen)
    return distance, log_det


def low_rank_nll(e: torch.Tensor, d: torch.Tensor, L: torch.Tensor, seen: torch.Tensor | None = None) -> torch.Tensor:
    """Negative log-likelihood (...) less its constant, of residuals e (..., N) under diag(d) + L L'."""
    if seen is None and L.shape[-1] <= 4 and e.shape[-1] <= 1024 and fused(e, 32):
        from jointset.filters.kernels import LowRankNLL

        return LowRankNLL.apply(e, d, torch.nn.functional.pad(L, (0, 4 - L.shape[-1])))
    distance, log_det = low_rank_terms(e, d, L, seen)
    return 0.5 * (distance + log_det)
