"""Sets with several radii: the residual split into components, each with its own score.

A structure is fitted on pilot residuals and then fixed. `shares` divides the miss rate among its components: at level
alpha component j is held to the order statistic of level shares_j alpha of its own calibration scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from jointset.abilities import Components
from jointset.algebra.chi_squares import chi_square_quantile
from jointset.algebra.covariance import Covariance
from jointset.algebra.partial import largest_quantile
from jointset.algebra.volumes import box_section_log_volume, ellipsoid_log_volume
from jointset.contracts import Array, Pilot
from jointset.residuals.component_law import ComponentLaw
from jointset.residuals.shrinkage import all_positive_definite, mean_variance, schaefer_strimmer
from jointset.residuals.splits import ResidualSplit, groups_of, split_residuals
from jointset.storage import storable

BLIND = 1e-9  # of its variance: what is known less well of a component from the others is not known


@dataclass(frozen=True)
class _Structure:
    """A split of the residuals: how (`split`), and what `fit` found.

    bases: orthonormal columns (N, d_j) of the components · covariances (d_j, d_j) · shares of the miss rate · least
    scores (K,): 0, or 1 where a component has a ridge. It may hold nothing but flat directions, and its scores nothing
    but rounding: without a least one its radius would come from these, however large the ridge.
    """

    centred: ClassVar[bool] = False
    one_radius: ClassVar[bool] = False

    split: ResidualSplit = field(default_factory=lambda: ResidualSplit("factor"))
    bases: tuple[Array, ...] = ()
    covariances: tuple[Array, ...] = ()
    shares: tuple[float, ...] = ()
    least: tuple[float, ...] = ()  # none is 0 for all

    def start(self) -> tuple[()]:
        """There is nothing to remember."""
        return ()

    def run(
        self, residuals: Array, centers: Array, times: Array | None, state: tuple[()]
    ) -> tuple[ComponentLaw, tuple[()]]:
        """Laws of all rows."""
        return ComponentLaw(centers, cast(Components, self), np.ones(centers.shape[1])), state

    @cached_property
    def _factors(self) -> tuple[Covariance, ...]:
        return tuple(Covariance(S) for S in self.covariances)

    def _distances(self, e: Array) -> list[Array]:
        """Squared Mahalanobis distance (...) of every component."""
        return [S.distance(e @ B) for B, S in zip(self.bases, self._factors, strict=True)]

    def _slopes(self, e: Array) -> Array:
        """B_j S_j^-1 B_j' e (J, N): half the slope of every component's distance at one residual (N,)."""
        return np.stack([B @ S.solve(e @ B) for B, S in zip(self.bases, self._factors, strict=True)])

    def _largest_slope(self, e: Array) -> Array:
        """That of the component with the largest distance (N,)."""
        return self._slopes(e)[int(np.argmax(self._distances(e)))]

    def _distance_quantiles(self, covariance: Array, levels: Sequence[float]) -> Array:
        """Quantile of every component's distance (J,) at its level, for normal residuals with this covariance (N, N).

        The distance is a weighted sum of chi-squares, close to a multiple of one (Satterthwaite): 0 where nothing of
        the component varies.
        """
        out = []
        for B, S, level in zip(self.bases, self._factors, levels, strict=True):
            white = S.whitener @ (B.T @ covariance @ B) @ S.whitener.T
            mean, square = float(np.trace(white)), float((white**2).sum())
            blind = mean <= BLIND * len(white)
            out.append(0.0 if blind else square / mean * float(chi_square_quantile(mean**2 / square, level)))
        return np.array(out)

    @property
    def pieces(self) -> list[tuple[int, float]]:
        """Directions of every fitted covariance, and its share of the miss rate."""
        return [(B.shape[1], share) for B, share in zip(self.bases, self.shares, strict=True)]

    @cached_property
    def raised(self) -> dict[tuple[bytes, float], Array]:
        """See `ComponentLaw`: what is known of patterns of gaps, by which sensors are missing and the coverage."""
        return {}

    def at_least(self, scores: Array) -> Array:
        """Component scores (..., K), those below the least raised to it."""
        return np.maximum(scores, self.least) if any(self.least) else scores

    @cached_property
    def _spreads(self) -> Array:
        """sqrt diag B_j S_j B_j' (J, N): half-widths at radius 1."""
        pairs = zip(self.bases, self.covariances, strict=True)
        return np.sqrt([np.einsum("ij,jk,ik->i", B, S, B) for B, S in pairs])

    @cached_property
    def covariance(self) -> Array:
        """sum_j B_j S_j B_j' (N, N), for what a missing sensor should have read."""
        return sum((B @ S @ B.T for B, S in zip(self.bases, self.covariances, strict=True)), start=np.zeros(()))


@storable
@dataclass(frozen=True)
class OrthogonalBlocks(_Structure):
    """Components in orthogonal subspaces that make up the whole space: e' B_j S_j^-1 B_j' e, radii on that scale.

    The region is a product of ellipsoids in rotated coordinates: half-widths add, volumes multiply.
    """

    def fit(self, pilot: Pilot) -> OrthogonalBlocks:
        """Bases, covariances and shares from the pilot residuals."""
        parts = split_residuals(self.split, pilot)
        bases, covariances, shares, ridges, _ = zip(*parts, strict=True)
        least = tuple(float(ridge > 0) for ridge in ridges)
        return replace(self, bases=bases, covariances=covariances, shares=shares, least=least)

    def scores(self, e: Array) -> Array:
        """Component scores (..., K)."""
        return np.stack(self._distances(e), axis=-1)

    def slopes(self, e: Array) -> Array:
        """See `Components.slopes`."""
        return self._slopes(e)

    def quantiles(self, covariance: Array, level: float) -> Array:
        """Quantiles of the scores (K,) that together cover `level` of normal residuals with this covariance."""
        return self._distance_quantiles(covariance, [1.0 - part * (1.0 - level) for part in self.shares])

    def half_width(self, radii: Array) -> Array:
        """sum_j sqrt(radius_j) spread_ij (..., N)."""
        return np.sqrt(radii) @ self._spreads

    def log_volume(self, radii: Array) -> Array:
        """Sum of the components' log-volumes (...)."""
        return _ellipsoids(self.bases, self._factors, radii)


@storable
@dataclass(frozen=True)
class GroupMaximum(_Structure):
    """One score, the largest root Mahalanobis distance over groups of sensors: a product with one radius.

    Each group's covariance is shrunk to its diagonal by the Schaefer-Strimmer weight.
    """

    centred: ClassVar[bool] = True
    one_radius: ClassVar[bool] = True

    def fit(self, pilot: Pilot) -> GroupMaximum:
        """Groups of the graph and their covariances."""
        groups = groups_of(self.split, pilot)
        bases = tuple(np.eye(pilot.residuals.shape[1])[:, list(group)] for group in groups)
        found = [schaefer_strimmer(pilot.residuals[:, list(group)]) for group in groups]
        covariances = all_positive_definite(found, mean_variance(pilot.residuals), pilot.name)
        return replace(self, bases=bases, covariances=tuple(covariances), shares=(1.0,))

    @property
    def pieces(self) -> list[tuple[int, float]]:
        """The groups have equal shares."""
        return [(B.shape[1], 1.0 / len(self.bases)) for B in self.bases]

    def scores(self, e: Array) -> Array:
        """Largest root distance (..., 1)."""
        return np.sqrt(np.max(self._distances(e), axis=0))[..., None]

    def slopes(self, e: Array) -> Array:
        """See `Components.slopes`: that of the largest group."""
        return self._largest_slope(e)[None]

    def quantiles(self, covariance: Array, level: float) -> Array:
        """Quantile of the score (1,) at `level` for normal residuals with this covariance: the largest group's."""
        each = [level ** (1.0 / len(self.bases))] * len(self.bases)
        return np.sqrt(self._distance_quantiles(covariance, each).max(keepdims=True))

    def half_width(self, radii: Array) -> Array:
        """radius sd_i (..., N)."""
        return radii * self._spreads.sum(axis=0)

    def log_volume(self, radii: Array) -> Array:
        """Sum of the groups' log-volumes (...)."""
        return _ellipsoids(self.bases, self._factors, np.repeat(radii**2, len(self.bases), axis=-1))


@storable
@dataclass(frozen=True)
class FactorBox(_Structure):
    """Factor ellipsoids and a box for the rest: max_g |B_g' e|_{S_g^-1} and max_i |e - B B'e|_i / sd_i, two radii.

    Groups share both radii. The half-width is q_F sqrt(diag B S B') + q_R sd. The set itself is the product of the
    factor ellipsoids and of the section of the box by the complement of the factors: its volume has no closed form
    when more than five dimensions are left over (see `box_section_log_volume`).
    """

    centred: ClassVar[bool] = True

    sd: Array | None = None  # residual sd (N,), floored, set by fit
    section: float = 0.0  # log-volume of the box sections at radius 1, set by fit

    def fit(self, pilot: Pilot) -> FactorBox:
        """Bases and factor covariances by group, sd of what they leave over."""
        E = pilot.residuals
        parts = split_residuals(self.split, pilot)
        factors, boxed = ([part for part in parts if (part.share > 0) is factor] for factor in (True, False))
        bases = tuple(part.basis for part in factors)
        rest = E - sum((E @ B @ B.T for B in bases), start=np.zeros(()))
        sd = rest.std(axis=0, ddof=1)
        for part in boxed:
            sd = np.where(part.basis.any(axis=1) & (part.ridge > 0), np.hypot(sd, np.sqrt(part.ridge)), sd)
        sd = np.maximum(sd, self.split.floor)
        section = 0.0
        for B in bases:
            group = np.flatnonzero(np.abs(B).sum(axis=1) > 0)
            section += box_section_log_volume(sd[group], B[group])
        shares = (self.split.theta, 1.0 - self.split.theta)
        least = tuple(float(any(part.ridge > 0 for part in kind)) for kind in (factors, boxed))
        covariances = tuple(part.covariance for part in factors)
        return replace(self, bases=bases, covariances=covariances, shares=shares, least=least, sd=sd, section=section)

    @property
    def pieces(self) -> list[tuple[int, float]]:
        """Groups have equal shares of the factors' part, sensors of the rest."""
        factor, rest = self.shares
        n = len(np.asarray(self.sd))
        return [*((B.shape[1], factor / len(self.bases)) for B in self.bases), *[(1, rest / n)] * n]

    def scores(self, e: Array) -> Array:
        """Largest factor root score and largest studentised rest (..., 2)."""
        factor = np.sqrt(np.max(self._distances(e), axis=0))
        rest = e - e @ self._projection
        return np.stack([factor, (np.abs(rest) / self.sd).max(axis=-1)], axis=-1)

    def slopes(self, e: Array) -> Array:
        """See `Components.slopes`: of the largest group, and of the largest rest, e_i less the row of BB' times e."""
        rest = e - e @ self._projection
        worst = int(np.argmax(np.abs(rest) / self.sd))
        row = np.eye(len(e))[worst] - self._projection[worst]
        return np.stack([self._largest_slope(e), row * rest[worst]])

    def quantiles(self, covariance: Array, level: float) -> Array:
        """Quantiles of both scores (2,) that together cover `level` of normal residuals with this covariance."""
        factor, box = (1.0 - part * (1.0 - level) for part in self.shares)
        each = [factor ** (1.0 / len(self.bases))] * len(self.bases)
        distance = np.sqrt(self._distance_quantiles(covariance, each).max())
        rest = np.eye(len(covariance)) - self._projection
        variance = np.einsum("ij,jk,ik->i", rest, covariance, rest)
        spread = np.sqrt(np.maximum(variance, 0.0)) / np.asarray(self.sd)
        count = spread.sum() ** 2 / (spread**2).sum() if spread.any() else 1.0  # sensors whose rest is seen
        return np.array([distance, spread.max() * largest_quantile(count, box)])

    @cached_property
    def _projection(self) -> Array:
        return sum((B @ B.T for B in self.bases), start=np.zeros(()))

    def half_width(self, radii: Array) -> Array:
        """q_F sqrt(diag B S B') + q_R sd (..., N)."""
        spread = np.sqrt((self._spreads**2).sum(axis=0))
        return radii[..., :1] * spread + radii[..., 1:] * self.sd

    def log_volume(self, radii: Array) -> Array:
        """Ellipsoids in the factors' space, times the section of the box in its complement (...)."""
        factors = np.repeat(radii[..., :1] ** 2, len(self.bases), axis=-1)
        left = len(np.asarray(self.sd)) - sum(B.shape[1] for B in self.bases)
        rest = self.section + (left * np.log(radii[..., 1]) if left else 0.0)
        return _ellipsoids(self.bases, self._factors, factors) + rest

    @cached_property
    def covariance(self) -> Array:
        """B S B' + diag sd^2 (N, N)."""
        return super().covariance + np.diag(np.asarray(self.sd) ** 2)


def _ellipsoids(bases: Sequence[Array], factors: Sequence[Covariance], radii: Array) -> Array:
    parts = enumerate(zip(bases, factors, strict=True))
    return np.sum([ellipsoid_log_volume(B.shape[1], float(S.log_det), radii[..., j]) for j, (B, S) in parts], axis=0)
