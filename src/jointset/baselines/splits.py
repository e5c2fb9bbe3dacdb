"""How residuals are split into orthogonal components: factors, groups of sensors, graph frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.baselines.residual_filter import Pilot
from jointset.baselines.shrinkage import WORKING, flat_spans, is_singular, mean_variance, ridge_of, second_moment
from jointset.communities import Groups, louvain, spectral_groups
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.graph import normalized_shift
from jointset.storage import storable


class Part(NamedTuple):
    """One component of a split.

    basis (N, d), orthonormal columns · covariance (d, d) · share of the miss rate, 0 for what is left to a box · ridge
    on the diagonal of the covariance, 0 unless the component holds a flat direction.
    """

    basis: Array
    covariance: Array
    share: float
    ridge: float = 0.0


@storable
@dataclass(frozen=True)
class ResidualSplit:
    """A split by name: `factor`, `group`, `spectral`, `group-factor`; `rest` makes what factors leave over a component.

    grouping: `louvain` (resolution 1), or `spectral` with `groups` groups, one search from the seed · rank, theta:
    factors, and their share of the miss rate · cuts: quantiles of the graph frequencies between bands · floor: smallest
    residual sd.
    """

    kind: str
    rest: bool = True
    rank: int = 4
    theta: float = 0.5
    grouping: str = "louvain"
    groups: int = 4
    seed: int = 0
    cuts: tuple[float, ...] = (0.33, 0.67)
    floor: float = 1e-3


def split_residuals(split: ResidualSplit, pilot: Pilot) -> list[Part]:
    """The components of a split; flat ones, of duplicate sensors, with a ridge and one warning for all of them."""
    parts = _parts(split, pilot)
    found = flat_spans(second_moment(pilot.residuals), [part.basis for part in parts])
    flat = [
        one or (part.share > 0 and is_singular(part.covariance, WORKING))
        for one, part in zip(found, parts, strict=True)
    ]
    if not any(flat):
        return parts
    ridge = ridge_of(mean_variance(pilot.residuals), pilot.name)
    return [_lifted(part, ridge) if one else part for one, part in zip(flat, parts, strict=True)]


def _lifted(part: Part, ridge: float) -> Part:
    return part._replace(covariance=part.covariance + ridge * np.eye(len(part.covariance)), ridge=ridge)


def _parts(split: ResidualSplit, pilot: Pilot) -> list[Part]:
    n = pilot.residuals.shape[1]
    if split.kind == "factor":
        return _factor(split, pilot, np.arange(n), 1.0)
    if split.kind == "spectral":
        return _bands(split, pilot)
    groups = groups_of(split, pilot)
    share = 1.0 / len(groups)
    if split.kind == "group":
        return [_part(np.eye(n)[:, list(group)], share, pilot) for group in groups]
    return [part for group in groups for part in _factor(split, pilot, np.array(group), share)]


def groups_of(split: ResidualSplit, pilot: Pilot) -> Groups:
    """The groups of sensors that the graph holds together."""
    adjacency = _graph(pilot)
    if split.grouping == "louvain":
        return louvain(adjacency)
    return spectral_groups(adjacency, split.groups, split.seed, starts=1)  # one search, as the authors' code


def _graph(pilot: Pilot) -> Array:
    if pilot.adjacency is None:
        raise InputError(f"{pilot.name} needs a graph: give one (graph=knn makes one from correlations)")
    return np.asarray(pilot.adjacency)


def _part(basis: Array, share: float, pilot: Pilot) -> Part:
    inside = pilot.residuals @ basis
    require(
        len(inside) > basis.shape[1] or share == 0,
        f"{pilot.name}: a covariance of {basis.shape[1]} directions needs more rows without gaps than {len(inside)}",
    )
    return Part(basis, second_moment(inside), share)


def _factor(split: ResidualSplit, pilot: Pilot, group: Array, share: float) -> list[Part]:
    """Leading right singular vectors of a group's residuals, at least one fewer than it has sensors, and the rest."""
    n = pilot.residuals.shape[1]
    rank = max(1, min(split.rank, len(group) - 1))
    moment = second_moment(pilot.residuals[:, group])
    vectors = np.linalg.eigh(moment)[1][:, ::-1]  # right singular vectors, the largest first
    whole = np.zeros((n, len(group)))
    whole[group] = vectors
    if len(group) == rank:  # a single sensor has no rest
        return [_part(whole, share, pilot)]
    theta = split.theta if split.rest else 1.0
    return [
        _part(whole[:, :rank], share * theta, pilot),
        _part(whole[:, rank:], share * (1.0 - theta), pilot),
    ]


def _bands(split: ResidualSplit, pilot: Pilot) -> list[Part]:
    """Bands of the Laplacian I - A~ between quantiles of its eigenvalues, low frequencies first."""
    shift = normalized_shift(_graph(pilot))
    frequencies, basis = np.linalg.eigh(np.eye(len(shift)) - shift)
    band = np.searchsorted(np.quantile(frequencies, split.cuts), frequencies)
    parts = [basis[:, band == b] for b in np.unique(band)]
    return [_part(part, 1.0 / len(parts), pilot) for part in parts]
