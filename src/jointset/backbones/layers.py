"""Layers of the learned backbones, written once for NumPy (prediction) and PyTorch (training).

Weights are matrices (..., k, l) and biases rows (..., 1, l); leading axes, if any, are seeds and lead the data too.
"""

from __future__ import annotations

import numpy as np

from jointset.algebra.lowrank import Numbers, namespace


def dense(x: Numbers, weight: Numbers, bias: Numbers | None = None) -> Numbers:
    """x W + b along the last axis of x (seeds, ..., k), as one product for each seed."""
    flat = x.reshape(*weight.shape[:-2], -1, x.shape[-1]) @ weight
    if bias is not None:
        flat = flat + bias
    return flat.reshape(*x.shape[:-1], weight.shape[-1])


def across(row: Numbers, x: Numbers) -> Numbers:
    """A row (seeds, 1, k) with as many axes as x (seeds, ..., k), to be multiplied with it."""
    seeds = row.shape[:-2]
    return row.reshape(*seeds, *(1,) * (x.ndim - len(seeds) - 1), row.shape[-1])


def layer_norm(x: Numbers, gain: Numbers) -> Numbers:
    """(x - mean) / sd along the last axis, times a gain (seeds, 1, k) (Ba et al. 2016)."""
    centred = x - x.mean(-1)[..., None]
    variance = (centred * centred).mean(-1)[..., None]
    return centred / namespace(x).sqrt(variance + 1e-5) * across(gain, x)


def softmax(x: Numbers) -> Numbers:
    """exp(x_i) / sum_j exp(x_j) along the last axis."""
    xp = namespace(x)
    if xp is not np:
        return xp.softmax(x, -1)
    weights = xp.exp(x - xp.max(x, -1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def relu(x: Numbers) -> Numbers:
    """max(x, 0)."""
    xp = namespace(x)
    return xp.maximum(x, 0.0) if xp is np else xp.relu(x)
