"""How residuals are split into orthogonal components: factors, groups of sensors, graph frequencies."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array, Pilot
from jointset.errors import InputError
from jointset.graph import dense, normalized_shift
from jointset.inputs.communities import Groups, louvain, spectral_groups
from jointset.residuals.shrinkage import (
    WORKING,
    flat_spans,
    is_singular,
    ledoit_wolf,
    mean_variance,
    ridge_of,
    second_moment,
)
from jointset.storage import storable


def no_graph(name: str) -> InputError:
    """What is wrong with readings that come without a graph, where a method needs one."""
    give = "give --graph FILE, or --graph knn for one from correlations (in a cell ?graph=knn, in Python with_graph)"
    return InputError(f"{name} needs a graph: {give}, or use static, which needs none")


class Part(NamedTuple):
    """One component of a split.

    basis (N, d), orthonormal columns · covariance (d, d) · share of the miss rate, 0 for what is left to a box · ridge
    on the diagonal of the covariance, 0 unless the component holds a flat direction · whether the covariance was shrunk
    for lack of rows.
    """

    basis: Array
    covariance: Array
    share: float
    ridge: float = 0.0
    shrunk: bool = False


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
    """The components of a split; flat ones, of duplicate sensors, with a ridge and one warning for all of them.

    A component with no more rows than directions is shrunk to equal variances instead, which leaves nothing flat.
    """
    parts = _parts(split, pilot)
    shrunk = [part.basis.shape[1] for part in parts if part.shrunk]
    if shrunk:
        warnings.warn(
            f"{pilot.name}: {len(pilot.residuals)} rows for {max(shrunk)} directions: their covariance is shrunk to "
            "equal variances; more rows to fit it on make a smaller set",
            stacklevel=2,
        )
    found = flat_spans(second_moment(pilot.residuals), [part.basis for part in parts])
    flat = [
        not part.shrunk and (one or (part.share > 0 and is_singular(part.covariance, WORKING)))
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
        raise no_graph(pilot.name)
    return dense(pilot.adjacency)


def _part(basis: Array, share: float, pilot: Pilot, spent: int = 0) -> Part:
    """The component on a basis, shrunk unless rows, less those `spent` on other directions, outnumber its own."""
    inside = pilot.residuals @ basis
    few = share > 0 and len(inside) - spent <= basis.shape[1]
    return Part(basis, ledoit_wolf(inside)[0] if few else second_moment(inside), share, shrunk=few)


def _factor(split: ResidualSplit, pilot: Pilot, group: Array, share: float) -> list[Part]:
    """Leading right singular vectors of a group's residuals, at least one fewer than it has sensors, and the rest."""
    n = pilot.residuals.shape[1]
    rank = max(1, min(split.rank, len(group) - 1))
    whole = np.zeros((n, len(group)))
    whole[group] = _leading_first(pilot.residuals[:, group], rank)
    if len(group) == rank:  # a single sensor has no rest
        return [_part(whole, share, pilot)]
    theta = split.theta if split.rest else 1.0
    return [
        _part(whole[:, :rank], share * theta, pilot),
        _part(whole[:, rank:], share * (1.0 - theta), pilot, spent=rank),
    ]


def _leading_first(residuals: Array, rank: int) -> Array:
    """Orthonormal directions (N, N), the `rank` leading right singular vectors of residuals (n, N) first.

    With n <= N the others have no axes of their own, and any that complete them serve.
    """
    rows, n = residuals.shape
    if rows > n or rank >= rows:
        return np.linalg.eigh(second_moment(residuals))[1][:, ::-1]
    return np.linalg.qr(residuals.T @ np.linalg.eigh(residuals @ residuals.T)[1][:, ::-1][:, :rank], mode="complete")[0]


def _bands(split: ResidualSplit, pilot: Pilot) -> list[Part]:
    """Bands of the Laplacian I - A~ between quantiles of its eigenvalues, low frequencies first."""
    shift = normalized_shift(_graph(pilot))
    frequencies, basis = np.linalg.eigh(np.eye(len(shift)) - shift)
    band = np.searchsorted(np.quantile(frequencies, split.cuts), frequencies)
    parts = [basis[:, band == b] for b in np.unique(band)]
    return [_part(part, 1.0 / len(parts), pilot) for part in parts]
