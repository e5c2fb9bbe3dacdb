"""Sizes of the sets with several radii: volumes against counted points, half-widths against the sets themselves."""

import numpy as np
import pytest

from jointset.algebra.volumes import box_section_log_volume
from jointset.contracts import Pilot
from jointset.residuals.components import FactorBox, GroupMaximum, OrthogonalBlocks
from jointset.residuals.splits import ResidualSplit
from jointset.scores import ComponentScore

CHAIN = {n: np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1) for n in (2, 3, 4, 6)}
PAIRS = {n: np.kron(np.eye(n // 2), np.ones((2, 2)) - np.eye(2)) for n in (2, 4, 6)}
CASES = {
    "factor, N = 2": (2, OrthogonalBlocks(ResidualSplit("factor", rank=1)), CHAIN),
    "factor, N = 3": (3, OrthogonalBlocks(ResidualSplit("factor", rank=2)), CHAIN),
    "spectral, N = 3": (3, OrthogonalBlocks(ResidualSplit("spectral")), CHAIN),
    "group, N = 4": (4, OrthogonalBlocks(ResidualSplit("group")), PAIRS),
    "per-group-factor, N = 4": (4, OrthogonalBlocks(ResidualSplit("group-factor", rank=1)), PAIRS),
    "factor + box, N = 2": (2, FactorBox(ResidualSplit("factor", rest=False, rank=1)), CHAIN),
    "factor + box, N = 3": (3, FactorBox(ResidualSplit("factor", rest=False, rank=1)), CHAIN),
    "factor + box, N = 4": (4, FactorBox(ResidualSplit("factor", rest=False, rank=1)), CHAIN),
    "factor + box, N = 6": (6, FactorBox(ResidualSplit("factor", rest=False, rank=2)), CHAIN),
    "per-group-factor + box, N = 4": (4, FactorBox(ResidualSplit("group-factor", rest=False, rank=1)), PAIRS),
    "group maximum, N = 4": (4, GroupMaximum(ResidualSplit("group")), PAIRS),
}


def fitted(n, structure, graphs):
    rng = np.random.default_rng(n)
    residuals = rng.normal(size=(500, n)) @ (rng.normal(size=(n, n)) + 2.0 * np.eye(n))
    return structure.fit(Pilot(residuals, residuals, None, graphs[n], None, "test")), residuals


def region_of(structure, n, rng):
    law, _ = structure.run(np.zeros((1, n)), rng.normal(size=(1, n)), None, ())
    law = law.rescale(np.ones(n), np.linspace(0.5, 2.0, n))
    return ComponentScore().region(law[0], rng.uniform(1.0, 3.0, size=len(structure.shares)))


@pytest.mark.parametrize("case", CASES)
def test_volume_is_the_share_of_points_inside(case):
    n, structure, graphs = CASES[case]
    rng = np.random.default_rng(7)
    structure, _ = fitted(n, structure, graphs)
    region = region_of(structure, n, rng)
    lower, upper = region.bounds
    points = rng.uniform(lower, upper, size=(400_000, n))
    inside = np.mean(ComponentScore().score(region.law, points) <= region.radii, axis=0)  # component by component
    assert (inside > 0).all()
    share = np.mean(region.contains(points))
    spread = np.sqrt((1 - share) / (share * len(points)))
    expected = np.log(np.prod(upper - lower) * share)
    assert n * region.log_volume == pytest.approx(expected, abs=5 * spread + 1e-3)


@pytest.mark.parametrize("case", CASES)
def test_the_bounds_hold_the_set(case):
    """No member leaves the bounds; those of orthogonal components are touched."""
    n, structure, graphs = CASES[case]
    rng = np.random.default_rng(8)
    structure, _ = fitted(n, structure, graphs)
    region = region_of(structure, n, rng)
    lower, upper = region.bounds
    points = rng.uniform(lower - 1.0, upper + 1.0, size=(200_000, n))
    members = points[region.contains(points)]
    assert (members >= lower).all() and (members <= upper).all()
    if isinstance(structure, OrthogonalBlocks):
        i = 0  # the outermost point along sensor 0: the sum of the components' own
        ends = [
            B @ (S @ B[i]) / np.sqrt(B[i] @ S @ B[i]) * np.sqrt(q)
            for B, S, q in zip(structure.bases, structure.covariances, region.radii, strict=True)
            if B[i] @ S @ B[i] > 0
        ]
        tip = region.center + region.law.unit * sum(ends)
        assert tip[i] == pytest.approx(upper[i], rel=1e-12)
        assert region.contains(region.center + (1 - 1e-9) * (tip - region.center))
        assert not region.contains(region.center + (1 + 1e-9) * (tip - region.center))


@pytest.mark.parametrize("case", CASES)
def test_volumes_grow_with_the_radii(case):
    n, structure, graphs = CASES[case]
    structure, _ = fitted(n, structure, graphs)
    region = region_of(structure, n, np.random.default_rng(1))
    twice = ComponentScore().region(
        region.law, region.radii * (4.0 if isinstance(structure, OrthogonalBlocks) else 2.0)
    )
    np.testing.assert_allclose(twice.half_width, 2.0 * region.half_width)
    assert twice.log_volume - region.log_volume == pytest.approx(np.log(2.0))


@pytest.mark.parametrize(("n", "r"), [(5, 1), (6, 2), (9, 3), (12, 4)])
def test_section_of_a_cube_against_thin_slabs(n, r):
    """Vol {x in the box : B'x = 0} is the density of B'X at 0, counted in a small ball around it."""
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.normal(size=(n, r)))[0]
    half = rng.uniform(0.5, 2.0, n)
    total, close, radius = 0, 0, 0.35
    for _ in range(20):
        points = rng.uniform(-half, half, size=(100_000, n)) @ basis
        close += int((np.einsum("ij,ij->i", points, points) < radius**2).sum())
        total += len(points)
    from jointset.algebra.volumes import unit_ball_log_volume

    counted = np.log(close / total) - unit_ball_log_volume(r) - r * np.log(radius) + np.log(2 * half).sum()
    assert box_section_log_volume(half, basis) == pytest.approx(counted, abs=5 / np.sqrt(close) + 0.04)


@pytest.mark.parametrize(
    ("blocks", "size", "volume", "rtol"),
    [(4, 2, 2.0 * np.sqrt(2.0), 1e-9), (5, 2, 2.0 * np.sqrt(2.0), 1e-9), (3, 3, 3.0 * np.sqrt(3.0), 1e-2)],
    ids=["4 diagonals", "5 diagonals", "3 hexagons"],
)
def test_section_that_is_a_product_of_known_ones(blocks, size, volume, rtol):
    """Each block of coordinates is cut at right angles to its diagonal: squares in a diagonal, cubes in a hexagon."""
    basis = np.kron(np.eye(blocks), np.full((size, 1), 1.0 / np.sqrt(size)))
    found = np.exp(box_section_log_volume(np.ones(blocks * size), basis))
    assert found == pytest.approx(volume**blocks, rel=rtol)
