"""Regions with several radii: products of ellipsoids in rotated coordinates, and factor ellipsoids with a box.

Both are {y : every component score of the residual e = (y - m) / unit is at most its radius}.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.regions import Sizes, unit_ball_log_volume


@dataclass(frozen=True)
class ComponentRegion(Sizes):
    """{y : score_j(y) <= radius_j for all components j}, batched over time.

    law: centre and units · structure: the components (`jointset.baselines.components`) · radii (..., K).

    The half-width on sensor i is the sum of the components' support functions there: exact for the orthogonal
    product, which is the Minkowski sum of its components, and the printed width of the factor + box set, whose members
    it bounds.
    """

    law: Any
    structure: Any
    radii: Array

    @property
    def center(self) -> Array:  # type: ignore[override]
        """Mean of the law."""
        return self.law.mean

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """sum_j h_ij(radius_j) (..., N)."""
        return self.structure.half_width(np.maximum(self.radii, 0.0)) * self.law.unit

    def contains(self, y: Array) -> Array:
        """Whether every component score is within its radius; False where nothing is observed."""
        return np.all(self.law.scores(y) <= self.radii, axis=-1)[()]

    @property
    def log_volume(self) -> Array:
        """(1/N) log Vol: the components span orthogonal subspaces, so their volumes multiply."""
        with np.errstate(divide="ignore"):  # a radius of 0 has volume 0
            total = self.structure.log_volume(np.maximum(self.radii, 0.0))
        return total / self.law.mean.shape[-1] + np.log(self.law.unit).mean()

    def __getitem__(self, index: Any) -> ComponentRegion:
        radii = self.radii if np.ndim(self.radii) == 1 else np.asarray(self.radii)[index]
        return ComponentRegion(self.law[index], self.structure, radii)


def ellipsoid_log_volume(dimension: int, log_det: float, radius: Array) -> Array:
    """log Vol {x : x' S^-1 x <= radius} (...), radius on the squared scale."""
    if dimension == 0:
        return np.zeros(np.shape(radius))
    return unit_ball_log_volume(dimension) + 0.5 * dimension * np.log(radius) + 0.5 * log_det


def box_section_log_volume(half_widths: Array, basis: Array) -> float:
    """log of the volume of {x : |x_i| <= h_i, B'x = 0} in its own dimension d = n - r, B (n, r) orthonormal.

    d = 1 is a segment and d = 2 to 5 a polytope with few corners: exact. In higher dimensions the volume is
    prod 2 h_i times the density at 0 of B'X for X uniform in the box, an integral over r frequencies,

        (2 pi)^-r int prod_i sinc(h_i (B xi)_i) d xi,

    taken over a fixed lattice. For ranks up to 4 it is accurate to 1e-3 of the volume from n = 16 on, 1e-3 / n of a
    log-volume per sensor, and to 1e-2 where d is 6 or 7; at rank 8 to a few hundredths.

    >>> basis = np.array([[1.0], [1.0]]) / np.sqrt(2.0)
    >>> round(float(np.exp(box_section_log_volume(np.ones(2), basis))), 6)  # the other diagonal of the square
    2.828427
    """
    n, r = basis.shape
    if r == n:
        return 0.0
    if r == 0:
        return float(np.log(2.0 * half_widths).sum())
    if n - r <= 5:
        return _corner_volume(half_widths, basis)
    return _fourier_volume(half_widths, basis)


def _corner_volume(half_widths: Array, basis: Array) -> float:
    """Exact, from the corners of the section in coordinates of its subspace."""
    full, _ = np.linalg.qr(basis, mode="complete")
    rest = full[:, basis.shape[1] :]  # x = rest g
    if rest.shape[1] == 1:
        reach = np.abs(rest[:, 0])
        return float(np.log(2.0 * (half_widths[reach > 0] / reach[reach > 0]).min()))
    from scipy.spatial import ConvexHull, HalfspaceIntersection

    kept = np.linalg.norm(rest, axis=1) > 1e-12
    scale = float(np.median(half_widths))
    sides, ends = rest[kept], half_widths[kept, None] / scale
    halves = np.concatenate([np.hstack([sides, -ends]), np.hstack([-sides, -ends])])
    corners = HalfspaceIntersection(halves, np.zeros(rest.shape[1])).intersections
    return float(np.log(ConvexHull(corners, qhull_options="QJ").volume) + rest.shape[1] * np.log(scale))


def _fourier_volume(half_widths: Array, basis: Array) -> float:
    """By importance sampling from a multivariate Student law matched to the Gaussian approximation."""
    from scipy.special import gammaincinv, gammaln, ndtri

    r, freedom = basis.shape[1], 4.0
    spread = (basis.T * half_widths**2 / 3.0) @ basis  # covariance of B'X
    root = np.linalg.cholesky(np.linalg.inv(spread))
    uniform = _lattice(r + 1)
    stretch = np.sqrt(freedom / (2.0 * gammaincinv(freedom / 2, uniform[:, r])))
    draws = ndtri(uniform[:, :r]) * stretch[:, None]
    log_density = (
        gammaln((freedom + r) / 2)
        - gammaln(freedom / 2)
        - 0.5 * r * np.log(freedom * np.pi)
        - 0.5 * (freedom + r) * np.log1p((draws**2).sum(axis=1) / freedom)
        - np.log(np.diag(root)).sum()
    )
    angles = (draws @ root.T @ basis.T) * half_widths
    wave = np.sinc(angles / np.pi).prod(axis=1)
    density = float(np.mean(wave * np.exp(-log_density))) / (2.0 * np.pi) ** r
    return float(np.log(2.0 * half_widths).sum() + np.log(density))


def _lattice(dimension: int) -> Array:
    """Points (32749, dimension) of a Korobov lattice inside the unit cube.

    Its generator has the smallest P_2 error in six dimensions of 250 that were drawn.
    """
    size, generator = 32_749, 8_607
    steps = np.array([pow(generator, j, size) for j in range(dimension)])
    return (np.arange(size)[:, None] * steps % size + 0.5) / size


__all__ = ["ComponentRegion", "box_section_log_volume", "ellipsoid_log_volume"]
