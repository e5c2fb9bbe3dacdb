"""Products with shared weights whose gradient is quick: a sum over very many rows is made in parts, side by side."""

from __future__ import annotations

from typing import Any

import torch

PARTS = 64  # of a long sum on a GPU
LONG = 8192  # rows from which a sum is long


def inner(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """x' g (S, k, m) of rows (S, R, k) and (S, R, m): few numbers from many rows, which one product does slowly."""
    S, R, k = x.shape
    parts = PARTS if x.is_cuda and R >= LONG else 1
    while R % parts:
        parts //= 2
    if parts == 1:
        return x.mT @ g
    x, g = (y.contiguous().view(S * parts, R // parts, -1) for y in (x, g))
    return (x.mT @ g).view(S, parts, k, -1).sum(1)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor]:
        x, weight = ctx.saved_tensors
        return grads[0] @ weight.mT if ctx.needs_input_grad[0] else None, inner(x, grads[0])


def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Rows (S, R, k) times weights (S, k, m)."""
    return _Product.apply(x, weight)
