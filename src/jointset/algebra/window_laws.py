"""The joint law of the next H rows: modes that do not mix with each other, each with a covariance over the steps.

With D the scales, U an orthonormal basis of the sensors and K_i (H, H) the covariance over the steps of mode i, the H N
readings have the covariance D U (K_1 + ... + K_N) U' D, plus a low rank G G' on the modes where the law is of a filter
that is not at rest. Only matrices of size N and H are worked with; the whole one is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.contracts import Array, Index
from jointset.storage import storable
from jointset.support.cached import cached_property


@storable
@dataclass(frozen=True)
class WindowLaw:
    """Gaussian law of windows of H rows of N sensors; readings of a window are flattened step by step.

    center, scale (..., H, N) · basis U (N, N), None: the sensors themselves · roots (N, H, H): lower Cholesky factors
    of the K_i · factor G (H, N, r) on the modes, None: there is none. Leading axes are the batch.

    >>> roots = np.linalg.cholesky(np.array([[[2.0, 1.0], [1.0, 2.0]]]))
    >>> law = WindowLaw(np.zeros((2, 1)), np.ones((2, 1)), None, roots)
    >>> round(float(law.mahalanobis(np.array([1.0, 1.0]))), 6), law.variance
    (0.666667, array([2., 2.]))
    """

    center: Array
    scale: Array
    basis: Array | None
    roots: Array
    factor: Array | None = None

    @property
    def mean(self) -> Array:
        """Means (..., H N)."""
        return _flat(self.center)

    @cached_property
    def _known(self) -> dict[Any, Any]:
        """What was worked out of basis, roots and factor: laws of other windows of the same shape share it."""
        return {}

    def _of_shape(self, name: object, make: Callable[[], Any]) -> Any:
        if name not in self._known:
            self._known[name] = make()
        return self._known[name]

    def around(self, center: Array, scale: Array) -> WindowLaw:
        """The law of the same shape around other means, with other scales."""
        law = WindowLaw(center, scale, self.basis, self.roots, self.factor)
        law.__dict__["_known"] = self._known
        return law

    @cached_property
    def variance(self) -> Array:
        """Marginal variances (..., H N)."""
        return _flat(self.scale**2 * self._of_shape("variances", self._variances))

    def _variances(self) -> Array:
        """Those in units of the scale (H, N)."""
        units = (self.roots**2).sum(-1).T  # on the modes
        if self.basis is not None:
            units = units @ (self.basis**2).T
        if self.factor is not None:
            units = units + (self._from_modes(np.moveaxis(self.factor, -1, 0)) ** 2).sum(0)
        return units

    @cached_property
    def log_det(self) -> Array:
        """Log-determinant (...)."""
        return 2.0 * np.log(self.scale).sum((-1, -2)) + self._of_shape("log_det", self._log_det)

    def _log_det(self) -> float:
        """That in units of the scale."""
        whole = 2.0 * np.log(np.einsum("ihh->ih", self.roots)).sum()
        if self.factor is not None:
            G = self._factor_columns
            whole += np.linalg.slogdet(np.eye(len(G)) + G @ G.T)[1]
        return float(whole)

    def mahalanobis(self, y: Array) -> Array:
        """Squared distance (...) of readings (..., H N); NaN is left out, and NaN where nothing was read."""
        e = np.asarray(y, dtype=float).reshape(*np.shape(y)[:-1], *self.center.shape[-2:]) - self.center
        missing = np.isnan(e)
        white = self._whitened(np.where(missing, 0.0, e) / self.scale)
        distance = np.einsum("...hi,...hi->...", white, white)
        gaps = missing.any((-1, -2)) | (self.factor is not None)
        if not gaps.any():
            return distance
        distance, scales = np.atleast_1d(distance), np.broadcast_to(self.scale, e.shape)
        rows = zip(white[gaps], missing[gaps], scales[gaps], strict=True)  # one window is taken as a batch of one
        distance[np.atleast_1d(gaps)] = [self._least(*row) for row in rows]
        return distance.reshape(e.shape[:-2])[()]

    def _least(self, white: Array, missing: Array, scale: Array) -> float:
        """The distance of what was read: the least over what was not, and over the factors of the low rank."""
        if missing.all():
            return float("nan")
        free = self._factor_columns if self.factor is not None else np.empty((0, white.size))
        if missing.any():
            free = np.concatenate([free, _flat(self._whitened(_units(missing) / scale))])
        penalty = np.zeros(len(free))
        penalty[: len(free) - int(missing.sum())] = 1.0
        rest, gram = white.reshape(-1), free @ free.T
        gram[np.diag_indices(len(gram))] += penalty
        found = np.linalg.solve(gram, free @ rest) if len(free) else np.empty(0)
        rest = rest - found @ free
        return float(rest @ rest + (penalty * found) @ found)

    @property
    def _inverse_roots(self) -> Array:
        return self._of_shape("inverse", lambda: np.linalg.inv(self.roots))

    @property
    def _factor_columns(self) -> Array:
        """The whitened columns of the factor (r, H N)."""
        G = np.asarray(self.factor)
        return self._of_shape("factor", lambda: _flat(np.einsum("ihk,kir->rhi", self._inverse_roots, G)))

    def _whitened(self, units: Array) -> Array:
        """Coordinates (..., H, N) of residuals in units of the scale that are independent but for the low rank."""
        on_modes = units if self.basis is None else units @ self.basis
        return np.einsum("ihk,...ki->...hi", self._inverse_roots, on_modes)

    def _from_modes(self, x: Array) -> Array:
        return x if self.basis is None else x @ self.basis.T

    def step(self, h: int) -> WindowLaw:
        """The marginal law of step h alone, from 0."""
        own = slice(h, h + 1)
        center, scale = self.center[..., own, :], self.scale[..., own, :]
        return self._of_shape(h, lambda: self._marginal(h)).around(center, scale)

    def _marginal(self, h: int) -> WindowLaw:
        """A law of the shape of step h."""
        root = np.sqrt((self.roots[:, h] ** 2).sum(-1))[:, None, None]
        factor = None if self.factor is None else self.factor[h : h + 1]
        some = np.ones((1, len(root)))
        law = WindowLaw(some, some, self.basis, root, factor)
        law._known["variances"] = self._of_shape("variances", self._variances)[h : h + 1]
        return law

    def with_steps(self) -> tuple[WindowLaw, ...]:
        """The marginal laws of all steps, then the law of all of them."""
        return (*(self.step(h) for h in range(self.center.shape[-2])), self)

    def covariance(self) -> Array:
        """The whole matrix (H N, H N) of one window, formed."""
        H, n = self.center.shape[-2:]
        U = np.eye(n) if self.basis is None else self.basis
        K = self.roots @ self.roots.swapaxes(-1, -2)
        whole = np.einsum("ai,ihk,bi->hakb", U, K, U, optimize=True).reshape(H * n, H * n)
        if self.factor is not None:
            G = _flat(self._from_modes(np.moveaxis(self.factor, -1, 0)))
            whole = whole + G.T @ G
        return whole * np.outer(_flat(self.scale), _flat(self.scale))

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent readings those `seen` (..., H N) amount to, and all; see `Law.effective_sensors`."""
        plain = np.ones(self.center.shape[-2:])
        alike = WindowLaw(plain, plain, self.basis, self.roots, self.factor).covariance()
        return Covariance(alike).effective_sensors(seen)

    def rescale(self, shift: Array, scale: Array) -> WindowLaw:
        """Law of shift + scale * Y, sensor by sensor."""
        units = np.broadcast_to(scale * self.scale, self.center.shape)
        return self.around(shift + scale * self.center, units)

    def __getitem__(self, index: Index | None) -> WindowLaw:
        return self.around(self.center[index], self.scale[index])

    def __len__(self) -> int:
        return len(self.center)


def step_roots(covariances: Sequence[Array] | Array) -> Array:
    """Lower Cholesky factors (N, H, H) of the covariances of modes over steps."""
    return np.linalg.cholesky(np.asarray(covariances))


def _flat(x: Array) -> Array:
    return x.reshape(*x.shape[:-2], -1)


def _units(missing: Array) -> Array:
    """A window (H, N) for every missing reading, 1 there and 0 elsewhere."""
    places = np.flatnonzero(missing)
    out = np.zeros((len(places), missing.size))
    out[np.arange(len(places)), places] = 1.0
    return out.reshape(-1, *missing.shape)
