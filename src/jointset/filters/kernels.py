"""Triton kernels of the pooled filter: graph layer, recurrence and likelihood, each fused with its gradient.

Imported only on CUDA tensors. Every kernel computes in float32 what its PyTorch twin in `cells`, `recurrence` and
`likelihood` computes; the twins are the reference in the tests.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from jointset.filters.products import inner

RANK = 4  # the likelihood kernel is written out for four factors; fewer are padded with zero columns


# ---------------------------------------------------------------------- graph layer


@triton.jit
def _features(x, w, b, out, rows, n, H: tl.constexpr, BM: tl.constexpr):
    """out[s, m, :] = mean over n of gelu(x[s, m, n] w[s, :] + b[s, :])."""
    seed = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.arange(0, H)
    weight, bias = tl.load(w + seed * H + k), tl.load(b + seed * H + k)
    total = tl.zeros((BM, H), dtype=tl.float32)
    base = x + (seed * rows + m) * n
    for i in range(n):
        a = tl.load(base + i, mask=m < rows, other=0.0)[:, None] * weight + bias
        total += 0.5 * a * (1.0 + tl.erf(a * 0.7071067811865476))
    tl.store(out + (seed * rows + m)[:, None] * H + k, total / n, mask=(m < rows)[:, None])


@triton.jit
def _features_back(x, w, b, grad, dw, db, rows, n, H: tl.constexpr, BM: tl.constexpr):
    """Partial sums over a block of rows of the gradients in w and b."""
    seed = tl.program_id(1)
    block = tl.program_id(0)
    m = block * BM + tl.arange(0, BM)
    k = tl.arange(0, H)
    weight, bias = tl.load(w + seed * H + k), tl.load(b + seed * H + k)
    g = tl.load(grad + (seed * rows + m)[:, None] * H + k, mask=(m < rows)[:, None], other=0.0) / n
    sum_w = tl.zeros((BM, H), dtype=tl.float32)
    sum_b = tl.zeros((BM, H), dtype=tl.float32)
    base = x + (seed * rows + m) * n
    for i in range(n):
        value = tl.load(base + i, mask=m < rows, other=0.0)[:, None]
        a = value * weight + bias
        slope = 0.5 * (1.0 + tl.erf(a * 0.7071067811865476)) + a * 0.3989422804014327 * tl.exp(-0.5 * a * a)
        sum_w += slope * value
        sum_b += slope
    place = (seed * tl.num_programs(0) + block) * H + k
    tl.store(dw + place, tl.sum(sum_w * g, axis=0))
    tl.store(db + place, tl.sum(sum_b * g, axis=0))


class GraphFeatures(torch.autograd.Function):
    """Pooled graph features (S, M, h) of mixed readings (S, M, N); readings are data and get no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        S, M, N = x.shape
        H = w.shape[-1]
        x, w, b = x.contiguous(), w.contiguous(), b.contiguous()
        out = torch.empty(S, M, H, device=x.device, dtype=x.dtype)
        _features[(triton.cdiv(M, 32), S)](x, w, b, out, M, N, H=H, BM=32, num_warps=4)
        ctx.save_for_backward(x, w, b)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, w, b = ctx.saved_tensors
        S, M, N = x.shape
        H, blocks = w.shape[-1], triton.cdiv(M, 32)
        dw, db = (torch.empty(S, blocks, H, device=x.device, dtype=x.dtype) for _ in range(2))
        _features_back[(blocks, S)](x, w, b, grads[0].contiguous(), dw, db, M, N, H=H, BM=32, num_warps=4)
        return None, dw.sum(1, keepdim=True), db.sum(1, keepdim=True)


# ---------------------------------------------------------------------- recurrence


@triton.jit
def _gru(gates, W, h_all, both_all, c_all, T, B, H: tl.constexpr, BB: tl.constexpr):
    """One program carries BB windows of one seed through all steps with its weights in registers."""
    seed = tl.program_id(1)
    i = tl.program_id(0) * BB + tl.arange(0, BB)
    k = tl.arange(0, H)
    live = (i < B)[:, None]
    square = k[:, None] * (3 * H) + k
    W_r = tl.load(W + seed * 3 * H * H + square)
    W_u = tl.load(W + seed * 3 * H * H + square + H)
    W_c = tl.load(W + seed * 3 * H * H + square + 2 * H)
    h = tl.zeros((BB, H), dtype=tl.float32)
    first = (seed * (T + 1)) * B
    tl.store(h_all + (first + i)[:, None] * H + k, h, mask=live)
    for t in range(T):
        row = (seed * T + t) * B + i
        g = gates + row[:, None] * (3 * H) + k
        r = tl.sigmoid(tl.load(g, mask=live, other=0.0) + tl.dot(h, W_r, input_precision="ieee"))
        u = tl.sigmoid(tl.load(g + H, mask=live, other=0.0) + tl.dot(h, W_u, input_precision="ieee"))
        a = tl.load(g + 2 * H, mask=live, other=0.0) + tl.dot(r * h, W_c, input_precision="ieee")
        c = 2.0 * tl.sigmoid(2.0 * a) - 1.0
        h = h + u * (c - h)
        tl.store(both_all + row[:, None] * (2 * H) + k, r, mask=live)
        tl.store(both_all + row[:, None] * (2 * H) + H + k, u, mask=live)
        tl.store(c_all + row[:, None] * H + k, c, mask=live)
        tl.store(h_all + (first + (t + 1) * B + i)[:, None] * H + k, h, mask=live)


@triton.jit
def _gru_back(upper, W, h_all, both_all, c_all, pre, T, B, H: tl.constexpr, BB: tl.constexpr):
    """Gradients of the gate inputs (S, T, B, 3h), from the last step to the first."""
    seed = tl.program_id(1)
    i = tl.program_id(0) * BB + tl.arange(0, BB)
    k = tl.arange(0, H)
    live = (i < B)[:, None]
    across = k[None, :] * (3 * H) + k[:, None]  # transposed squares
    W_r = tl.load(W + seed * 3 * H * H + across)
    W_u = tl.load(W + seed * 3 * H * H + across + H)
    W_c = tl.load(W + seed * 3 * H * H + across + 2 * H)
    carry = tl.zeros((BB, H), dtype=tl.float32)
    for back in range(T):
        t = T - 1 - back
        row = (seed * T + t) * B + i
        h = tl.load(h_all + ((seed * (T + 1) + t) * B + i)[:, None] * H + k, mask=live, other=0.0)
        r = tl.load(both_all + row[:, None] * (2 * H) + k, mask=live, other=0.0)
        u = tl.load(both_all + row[:, None] * (2 * H) + H + k, mask=live, other=0.0)
        c = tl.load(c_all + row[:, None] * H + k, mask=live, other=0.0)
        down = carry + tl.load(upper + row[:, None] * H + k, mask=live, other=0.0)
        to_c = down * u * (1.0 - c * c)
        inner = tl.dot(to_c, W_c, input_precision="ieee")
        to_r = inner * h * r * (1.0 - r)
        to_u = down * (c - h) * u * (1.0 - u)
        carry = down * (1.0 - u) + inner * r
        carry += tl.dot(to_r, W_r, input_precision="ieee") + tl.dot(to_u, W_u, input_precision="ieee")
        p = pre + row[:, None] * (3 * H) + k
        tl.store(p, to_r, mask=live)
        tl.store(p + H, to_u, mask=live)
        tl.store(p + 2 * H, to_c, mask=live)


class Recurrence(torch.autograd.Function):
    """States (S, T, B, h) of windows from zero."""

    @staticmethod
    def forward(ctx: Any, gates: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        S, T, B, _ = gates.shape
        H = W.shape[1]
        gates, W = gates.contiguous(), W.contiguous()
        before = torch.empty(S, T + 1, B, H, device=gates.device, dtype=gates.dtype)
        both = torch.empty(S, T, B, 2 * H, device=gates.device, dtype=gates.dtype)
        candidates = torch.empty(S, T, B, H, device=gates.device, dtype=gates.dtype)
        _gru[(triton.cdiv(B, 16), S)](gates, W, before, both, candidates, T, B, H=H, BB=16, num_warps=2)
        ctx.save_for_backward(before, both, candidates, W)
        return before[:, 1:]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before, both, candidates, W = ctx.saved_tensors
        S, T, B, H = candidates.shape
        pre = torch.empty(S, T, B, 3 * H, device=W.device, dtype=W.dtype)
        upper = grads[0].contiguous()
        _gru_back[(triton.cdiv(B, 16), S)](upper, W, before, both, candidates, pre, T, B, H=H, BB=16, num_warps=2)
        flat, h = pre.flatten(1, 2), before[:, :-1]
        past, kept = h.flatten(1, 2), (both[..., :H] * h).flatten(1, 2)
        return pre, torch.cat([inner(past, flat[..., : 2 * H]), inner(kept, flat[..., 2 * H :])], dim=-1)


# ---------------------------------------------------------------------- likelihood


@triton.jit
def _nll(e_, d_, L_, value, ge, gd, gL, rows, n, BN: tl.constexpr):
    """Value and gradients of one row: the 4 x 4 capacitance is factorised in scalars."""
    m = tl.program_id(0)
    i = tl.arange(0, BN)
    live = i < n
    e = tl.load(e_ + m * n + i, mask=live, other=0.0)
    d = tl.load(d_ + m * n + i, mask=live, other=1.0)
    w = tl.where(live, 1.0 / d, 0.0)
    at = L_ + (m * n + i) * 4
    l0 = tl.load(at, mask=live, other=0.0)
    l1 = tl.load(at + 1, mask=live, other=0.0)
    l2 = tl.load(at + 2, mask=live, other=0.0)
    l3 = tl.load(at + 3, mask=live, other=0.0)
    s0, s1, s2, s3 = w * l0, w * l1, w * l2, w * l3
    # C = I + L' W L, its Cholesky factor R, row by row
    r00 = tl.sqrt(1.0 + tl.sum(s0 * l0, 0))
    r10 = tl.sum(s1 * l0, 0) / r00
    r20 = tl.sum(s2 * l0, 0) / r00
    r30 = tl.sum(s3 * l0, 0) / r00
    r11 = tl.sqrt(1.0 + tl.sum(s1 * l1, 0) - r10 * r10)
    r21 = (tl.sum(s2 * l1, 0) - r20 * r10) / r11
    r31 = (tl.sum(s3 * l1, 0) - r30 * r10) / r11
    r22 = tl.sqrt(1.0 + tl.sum(s2 * l2, 0) - r20 * r20 - r21 * r21)
    r32 = (tl.sum(s3 * l2, 0) - r30 * r20 - r31 * r21) / r22
    r33 = tl.sqrt(1.0 + tl.sum(s3 * l3, 0) - r30 * r30 - r31 * r31 - r32 * r32)
    # q = W L R^-T column by column, then S^-1 L = q R^-1
    q0 = s0 / r00
    q1 = (s1 - q0 * r10) / r11
    q2 = (s2 - q0 * r20 - q1 * r21) / r22
    q3 = (s3 - q0 * r30 - q1 * r31 - q2 * r32) / r33
    p3 = q3 / r33
    p2 = (q2 - p3 * r32) / r22
    p1 = (q1 - p2 * r21 - p3 * r31) / r11
    p0 = (q0 - p1 * r10 - p2 * r20 - p3 * r30) / r00
    z0, z1, z2, z3 = tl.sum(p0 * e, 0), tl.sum(p1 * e, 0), tl.sum(p2 * e, 0), tl.sum(p3 * e, 0)
    rest = e - l0 * z0 - l1 * z1 - l2 * z2 - l3 * z3
    v = w * rest
    precision = w - (q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    log_det = tl.sum(tl.where(live, tl.log(d), 0.0), 0) + 2.0 * tl.log(r00 * r11 * r22 * r33)
    distance = tl.sum(v * rest, 0) + z0 * z0 + z1 * z1 + z2 * z2 + z3 * z3  # a sum of squares: no cancellation
    tl.store(value + m, 0.5 * (distance + log_det))
    tl.store(ge + m * n + i, v, mask=live)
    tl.store(gd + m * n + i, 0.5 * (precision - v * v), mask=live)
    out = gL + (m * n + i) * 4
    tl.store(out, p0 - v * z0, mask=live)
    tl.store(out + 1, p1 - v * z1, mask=live)
    tl.store(out + 2, p2 - v * z2, mask=live)
    tl.store(out + 3, p3 - v * z3, mask=live)


class LowRankNLL(torch.autograd.Function):
    """Negative log-likelihood (...) of residuals (..., N) under diag(d) + L L', L (..., N, 4)."""

    @staticmethod
    def forward(ctx: Any, e: torch.Tensor, d: torch.Tensor, L: torch.Tensor) -> torch.Tensor:
        e, d, L = e.contiguous(), d.contiguous(), L.contiguous()
        n = e.shape[-1]
        rows = e.numel() // n
        value = torch.empty(e.shape[:-1], device=e.device, dtype=e.dtype)
        ge, gd, gL = torch.empty_like(e), torch.empty_like(d), torch.empty_like(L)
        block = triton.next_power_of_2(n)
        _nll[(rows,)](e, d, L, value, ge, gd, gL, rows, n, BN=block, num_warps=1 if block <= 128 else 4)
        ctx.save_for_backward(ge, gd, gL)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ge, gd, gL = ctx.saved_tensors
        g = grads[0]
        return g.unsqueeze(-1) * ge, g.unsqueeze(-1) * gd, g[..., None, None] * gL
