"""Regions: sizes equal Monte-Carlo volumes, membership equals the score, geometry obeys its inequalities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointset.algebra.volumes import unit_ball_log_volume
from jointset.errors import InputError
from jointset.laws import DenseLaw, LowRankLaw
from jointset.regions import Ellipsoid, Product
from jointset.scores import BlockMaximum, Mahalanobis, MaxStudentised, score_for


def random_law(rng, n, T=None, r=2):
    shape = (n,) if T is None else (T, n)
    return LowRankLaw(rng.normal(size=shape), rng.uniform(0.1, 2, shape), rng.normal(size=(*shape, r)))


def scores_for(n):
    halves = (np.arange(0, n, 2), np.arange(1, n, 2)) if n > 1 else (np.arange(n),)
    return [Mahalanobis(), MaxStudentised(), BlockMaximum(halves), BlockMaximum(halves, MaxStudentised())]


@settings(max_examples=80)
@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.0, 1.0), st.floats(0.01, 30))
def test_contains_is_score_at_most_radius(seed, n, gaps, radius):
    rng = np.random.default_rng(seed)
    T = 20
    law = random_law(rng, n, T)
    y = law.mean + 3 * rng.normal(size=(T, n)) * rng.uniform(0, 1.5, (T, 1))
    y[rng.random((T, n)) < gaps * 0.5] = np.nan
    for score in scores_for(n):
        s = score.score(law, y)
        radii = np.where(rng.random(T) < 0.3, np.nan_to_num(s, nan=1.0), radius)  # some exactly on the boundary
        region = score.region(law, radii)
        np.testing.assert_array_equal(region.contains(y), s <= radii)
        for t in (0, T - 1):
            assert region[t].contains(y[t]) == (score.score(law[t], y[t]) <= radii[t])
            np.testing.assert_allclose(region[t].bounds, (region.bounds[0][t], region.bounds[1][t]))
            np.testing.assert_allclose(region[t].log_volume, region.log_volume[t])


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("which", range(4))
def test_log_volume_equals_monte_carlo(n, which):
    rng = np.random.default_rng(n)
    law, score = random_law(rng, n), scores_for(n)[which]
    region = score.region(law, 3.0)
    lower, upper = region.bounds
    draws = 400_000
    points = lower + (upper - lower) * rng.random((draws, n))
    share = region.contains(points).mean()
    volume = np.prod(upper - lower) * share
    error = 5 * np.sqrt((1 - share) / share / draws)  # five standard errors of the log
    assert abs(n * region.log_volume - np.log(volume)) <= max(error, 1e-9)


@pytest.mark.parametrize("which", range(4))
def test_bounds_are_tight(which):
    """No point inside passes the bounds, and along each axis some point reaches them."""
    rng = np.random.default_rng(5)
    law, score = random_law(rng, 3), scores_for(3)[which]
    region = score.region(law, 2.0)
    S = law.dense()
    points = law.mean + (rng.normal(size=(200_000, 3)) @ np.linalg.cholesky(S).T) * rng.random((200_000, 1))
    inside = points[region.contains(points)]
    lower, upper = region.bounds
    assert (inside >= lower).all() and (inside <= upper).all()
    touch = law.mean + S[:, 0] / np.sqrt(S[0, 0]) * np.sqrt(2.0) * 0.999999  # the ellipsoid's extreme point on axis 0
    assert Ellipsoid(law, 2.0).contains(touch)


@settings(max_examples=100)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(1e-3, 100))
def test_hadamard_bounds_the_volume_by_the_width(seed, n, radius):
    """(1/N) log Vol <= log width + (1/N) log kappa_N for every ellipsoid; <= log 2 width for boxes."""
    law = random_law(np.random.default_rng(seed), n)
    ellipsoid, box = Mahalanobis().region(law, radius), MaxStudentised().region(law, radius)
    assert ellipsoid.log_volume <= np.log(ellipsoid.width) + unit_ball_log_volume(n) / n + 1e-9
    assert box.log_volume <= np.log(2 * box.width) + 1e-9
    assert ellipsoid.width_full <= 2 * ellipsoid.width + 1e-12


def test_width_is_the_papers_formula():
    law = random_law(np.random.default_rng(0), 7)
    region = Mahalanobis().region(law, 11.0)
    np.testing.assert_allclose(region.width, np.sqrt(11.0 * np.trace(law.dense()) / 7))


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_score_and_coverage_do_not_change_under_affine_maps(seed, n):
    rng = np.random.default_rng(seed)
    S = np.cov(rng.normal(size=(n, 3 * n + 3)))
    law = DenseLaw(rng.normal(size=(40, n)), np.atleast_2d(S))
    y = rng.normal(size=(40, n))
    A = (
        np.linalg.qr(rng.normal(size=(n, n)))[0]
        @ np.diag(rng.uniform(0.2, 5, n))
        @ np.linalg.qr(rng.normal(size=(n, n)))[0]
    )
    b = rng.normal(size=n)
    mapped = DenseLaw(law.mean @ A.T + b, A @ np.atleast_2d(S) @ A.T)
    before, after = Mahalanobis().score(law, y), Mahalanobis().score(mapped, y @ A.T + b)
    np.testing.assert_allclose(after, before, rtol=1e-6)
    gap = np.abs(before - np.median(before)).min()
    radius = np.median(before) + (gap or 1e-3) / 2
    np.testing.assert_array_equal(
        Mahalanobis().region(mapped, radius).contains(y @ A.T + b), Mahalanobis().region(law, radius).contains(y)
    )


def test_infinite_radius_is_everything_and_negative_is_nothing():
    law = random_law(np.random.default_rng(0), 3)
    for score in scores_for(3):
        everything, nothing = score.region(law, np.inf), score.region(law, -np.inf)
        assert everything.contains(np.full(3, 1e9)) and not nothing.contains(law.mean)
        assert everything.log_volume == np.inf and nothing.log_volume == -np.inf
        assert everything.width == np.inf and nothing.width == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BlockMaximum(([0, 1], [1, 2])), "disjoint"),
        (lambda: BlockMaximum(([0], [2])), "cover all"),
        (lambda: BlockMaximum(([0], [])), "non-empty"),
        (lambda: Product((np.array([0]),), ()), "one region for each block"),
        (lambda: score_for("ball"), "choose one of ellipsoid, box"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_contributions_to_a_box_are_counted_in_standard_deviations():
    law = DenseLaw(np.array([1.0, 0.0, 0.0]), np.diag([4.0, 0.25, 1.0]))
    y = np.array([5.0, 1.0, np.nan])
    np.testing.assert_allclose(MaxStudentised().contributions(law, y), [2.0, 2.0, 0.0])
    halves = BlockMaximum((np.array([0]), np.array([1, 2])), MaxStudentised())
    np.testing.assert_allclose(halves.contributions(law, y), [2.0, 2.0, 0.0])


def test_a_product_tells_one_reading_and_batches_of_any_shape():
    rng = np.random.default_rng(0)
    law = random_law(rng, 4)
    score = BlockMaximum((np.array([0, 2]), np.array([1, 3])))
    region = Product(score.blocks, tuple(Mahalanobis().region(law.select(block), 3.0) for block in score.blocks))
    y = law.mean + 2 * rng.normal(size=(3, 5, 4))
    y[0, 0], y[1, 1, [0, 2]] = np.nan, np.nan  # nothing read, and one block without a reading
    inside = region.contains(y)
    assert inside.shape == (3, 5) and not inside[0, 0]
    for i in np.ndindex(3, 5):
        assert region.contains(y[i]) == inside[i] == (score.score(law, y[i]) <= 3.0)
