"""The next H rows under the linear filter, in closed form: H_{t+h} = F^{h-1} H_{t+1} + noise, on the graph modes.

A mode with coefficient f and prior variance p has after h more steps the variance p_h = f^2h p + q (1 + f^2 + ...),
and steps h <= k the covariance f^(k - h) p_h, to which R adds nu on the diagonal. Off rest the prior covariance is a
matrix: then the modes have p = 0, and a square root of the matrix, moved on by f^h, is the low rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from jointset.algebra.covariance import Covariance, Scaled
from jointset.algebra.covariance_steps import StepCovariances, StepOf
from jointset.algebra.triangles import cholesky
from jointset.algebra.window_laws import WindowLaw, step_roots
from jointset.contracts import Array

if TYPE_CHECKING:
    from jointset.filters.kalman import GraphLGSSM
    from jointset.laws import DenseLaw


def mode_covariances(f: Array, p: Array, q: float, nu: float, steps: int) -> Array:
    """Covariances (N, H, H) over the next steps of modes f (N,) whose prior variances are p (N,)."""
    variances = [np.broadcast_to(p, f.shape)]
    for _ in range(steps - 1):
        variances.append(f**2 * variances[-1] + q)
    h = np.arange(steps)
    first = np.stack(variances, axis=1)[:, np.minimum(h[:, None], h)]
    return f[:, None, None] ** np.abs(h[:, None] - h) * first + nu * np.eye(steps)


def windows_ahead(
    filter_: GraphLGSSM, law: DenseLaw, steps: int, shift: Array, scale: Array
) -> Iterator[tuple[slice, WindowLaw]]:
    """Laws of the next rows from those of the next one, of consecutive rows that share a covariance.

    Both are in the units of the data, shift + scale * those of the filter. A law of one
    row has no leading axis, and its window none.
    """
    f, basis = filter_.spectrum
    nu, powers = filter_.sigma_r**2, f ** np.arange(steps)[:, None]
    to_modes = (lambda x: x) if filter_._alone else (lambda x: x @ basis)
    means = (law.mean - shift) / scale
    for rows, S in _groups(law):
        mean = means[rows] if means.ndim > 1 else means
        center = filter_._from_modes(powers * to_modes(mean)[..., None, :])
        if S is filter_.emitted:
            yield rows, _shape(filter_, steps, at_rest=True).around(center, np.ones(center.shape)).rescale(shift, scale)
            continue
        P = to_modes(to_modes(S.matrix - nu * np.eye(len(f))).T)
        least = 1e-14 * P.trace() / len(f) * np.eye(len(f))
        factor = powers[:, :, None] * cholesky(0.5 * (P + P.T) + least)
        bare = _shape(filter_, steps, at_rest=False)
        yield rows, WindowLaw(center, np.ones(center.shape), bare.basis, bare.roots, factor).rescale(shift, scale)


def _shape(filter_: GraphLGSSM, steps: int, at_rest: bool) -> WindowLaw:
    """A window of the shape at rest, or of what the noise to come adds; the last of either is kept."""
    kept = filter_.__dict__.setdefault("_windows", {})
    if at_rest not in kept or kept[at_rest].center.shape[0] != steps:
        f, basis = filter_.spectrum
        prior, some = filter_.steady.prior if at_rest else np.zeros(len(f)), np.ones((steps, len(f)))
        covariances = mode_covariances(f, prior, filter_.sigma_q**2, filter_.sigma_r**2, steps)
        kept[at_rest] = WindowLaw(some, some, None if filter_._alone else basis, step_roots(covariances))
    return kept[at_rest]


def _groups(law: DenseLaw) -> Iterator[tuple[slice, Covariance]]:
    """Consecutive rows that share a covariance, and that one in the units of the filter."""
    S = law.covariance
    if isinstance(S, StepCovariances):
        for start, stop, one in S.groups():
            yield slice(start, stop), _inner(one)
    elif S.shared:
        yield slice(0, len(np.atleast_2d(law.mean))), _inner(S)
    else:
        yield from ((slice(t, t + 1), _inner(S[t])) for t in range(len(law.mean)))


def _inner(S: Covariance) -> Covariance:
    """The covariance before it was put in the units of the data."""
    return S.base if isinstance(S, Scaled | StepOf) else S
