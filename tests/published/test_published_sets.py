"""Annuli and boxes: membership, projections and volumes against Monte Carlo and against each other."""

import numpy as np
import pytest

from jointset.laws import DenseLaw
from jointset.published.sets import Annulus, IntervalBox
from jointset.regions import Ellipsoid


def _law(n, seed=0):
    root = np.random.default_rng(seed).standard_normal((n, n))
    return DenseLaw(np.arange(n, dtype=float), root @ root.T + 0.5 * np.eye(n))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("lower", [0.0, 0.8, 1.6])
def test_annulus_volume_against_monte_carlo(n, lower):
    region = Annulus(_law(n), lower, 2.0)
    low, high = region.bounds
    points = np.random.default_rng(1).uniform(low, high, (200_000, n))
    share = Annulus(DenseLaw(np.broadcast_to(region.law.mean, points.shape), region.law.covariance), lower, 2.0)
    volume = share.contains(points).mean() * np.prod(high - low)
    assert np.exp(n * region.log_volume) == pytest.approx(volume, rel=0.02)


@pytest.mark.parametrize("n", [2, 3])
def test_box_volume_against_monte_carlo(n):
    region = IntervalBox(np.arange(n) - 0.7, np.arange(n) + 1.1)
    points = np.random.default_rng(2).uniform(-3, 5, (200_000, n))
    assert np.exp(n * region.log_volume) == pytest.approx(region.contains(points).mean() * 8**n, rel=0.05)


def test_the_projection_of_an_annulus_is_tight():
    region = Annulus(_law(3), 1.0, 2.0)
    root = region.law.covariance.root
    directions = np.random.default_rng(3).standard_normal((100_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    surface = region.law.mean + 1.999999 * directions @ root.T
    np.testing.assert_allclose(surface.max(axis=0), region.bounds[1], rtol=1e-2)
    assert Annulus(DenseLaw(surface * 0 + region.law.mean, region.law.covariance), 1.0, 2.0).contains(surface).all()


def test_without_a_hole_an_annulus_is_an_ellipsoid():
    law, y = _law(4), np.array([0.5, 1.0, 1.0, 4.0])
    annulus, ellipsoid = Annulus(law, 0.0, 1.7), Ellipsoid(law, 1.7**2)
    for name in ("width", "width_full", "log_volume"):
        assert getattr(annulus, name) == pytest.approx(float(getattr(ellipsoid, name)))
    assert annulus.contains(y) == ellipsoid.contains(y)
    assert annulus.log_volume == annulus.log_volume_filled


def test_recorded_volumes(peer):
    recorded = peer("multidimspci")
    law = DenseLaw(np.zeros((5, 5)), recorded["vol_cov"])
    volume = np.exp(5 * Annulus(law, np.zeros(5), recorded["vol_r"]).log_volume)
    np.testing.assert_allclose(volume, recorded["vol_v"], rtol=1e-10)


@pytest.mark.parametrize("n", [341, 342, 1000])
def test_volumes_do_not_overflow(n):
    law = DenseLaw(np.zeros(n), np.eye(n) * 1e4)
    region = Annulus(law, 18.0, 19.0)
    assert np.isfinite(region.log_volume) and np.isfinite(region.log_volume_filled)
    assert region.log_volume == pytest.approx(float(region.log_volume_filled), abs=1e-6)  # shells hold the volume
    assert region.log_volume < np.log(region.width)


def test_the_hole_is_outside_and_empty_shells_have_no_volume():
    region = Annulus(_law(3), 0.5, 1.5)
    assert not region.contains(region.center)
    assert region.log_volume < region.log_volume_filled
    assert Annulus(_law(3), 1.5, 1.5).log_volume == -np.inf
    assert Annulus(_law(3), 0.0, 0.0).log_volume == -np.inf


def test_regions_are_batched_over_time():
    law = DenseLaw(np.random.default_rng(4).standard_normal((6, 3)), np.eye(3))
    annulus = Annulus(law, np.linspace(0, 0.5, 6), np.linspace(1, 2, 6))
    box = IntervalBox(law.mean - 1, law.mean + np.arange(1, 7)[:, None])
    y = law.mean + 0.4
    for region in (annulus, box):
        for t in (0, 5):
            assert region[t].log_volume == pytest.approx(region.log_volume[t])
            assert region[t].contains(y[t]) == region.contains(y)[t]
            assert region[t].width == pytest.approx(region.width[t])


def test_the_ends_of_a_box_belong_to_it_only_when_closed():
    edge = np.array([1.0, 0.0])
    assert IntervalBox(-np.ones(2), np.ones(2)).contains(edge)
    assert not IntervalBox(-np.ones(2), np.ones(2), closed=False).contains(edge)
    box = IntervalBox(-np.ones(2), np.ones(2))
    assert box.score(edge) == 1.0
    assert box.contains(np.array([np.nan, 0.5])) and not box.contains(np.array([np.nan, 1.5]))
    assert np.isnan(box.score(np.full(2, np.nan))) and not box.contains(np.full(2, np.nan))
