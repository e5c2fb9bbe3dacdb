"""CopulaCPTS: agreement with recorded outputs, coverage, and the properties of its box."""

import numpy as np
import pytest

from jointset.published.copula import (
    CopulaRule,
    copula_radii,
    kde_radii,
    pseudo_values,
    smooth_thresholds,
    split_rows,
    threshold_radii,
)

CASES = [("n5_eps0.1", 0.1), ("n5_eps0.2", 0.2), ("n20_eps0.1", 0.1), ("n20_eps0.2", 0.2), ("ms", 0.1)]


@pytest.mark.parametrize(("tag", "alpha"), CASES)
def test_recorded_thresholds_and_radii(peer, tag, alpha):
    recorded = peer("copulacpts")
    scores = recorded[f"{tag}_nonconformity"]
    theta = smooth_thresholds(recorded[f"{tag}_pseudo"], alpha)
    assert theta.dtype == np.float32
    np.testing.assert_allclose(theta, recorded[f"{tag}_threshold"], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(threshold_radii(theta, scores), recorded[f"{tag}_radius"])


@pytest.mark.parametrize(("tag", "alpha"), CASES)
def test_double_precision_thresholds_stay_near_and_give_the_same_radii(peer, tag, alpha):
    """The loss is flat near its minimum: two precisions end up to 5e-4 (to two digits) apart, inside one rank."""
    recorded = peer("copulacpts")
    theta = smooth_thresholds(recorded[f"{tag}_pseudo"], alpha, dtype=np.float64)
    np.testing.assert_allclose(theta, recorded[f"{tag}_threshold"], rtol=0, atol=5.1e-4)
    radii = threshold_radii(theta, recorded[f"{tag}_nonconformity"])
    np.testing.assert_array_equal(radii, recorded[f"{tag}_radius"])


@pytest.mark.parametrize(("tag", "key"), [("n5_eps0.1", "E"), ("n20_eps0.1", "E20")])
def test_recorded_run_from_residuals_to_coverage(peer, tag, key):
    recorded, scores = peer("copulacpts"), np.abs(peer("inputs_600x5")[key])
    marginal, copula = scores[recorded[f"{tag}_idx_cal"]], scores[recorded[f"{tag}_idx_copula"]]
    u = pseudo_values(copula, marginal)
    np.testing.assert_allclose(u, recorded[f"{tag}_pseudo"], rtol=0, atol=1e-12)
    radii = threshold_radii(smooth_thresholds(u, 0.1), marginal)
    np.testing.assert_allclose(radii, recorded[f"{tag}_radius"], rtol=0, atol=1e-6)
    residuals = peer("inputs_600x5")[key][400:]
    region = CopulaRule().shape(None, (np.broadcast_to(radii, residuals.shape),), np.zeros(residuals.shape))
    assert region.contains(residuals).mean() == pytest.approx(recorded[f"{tag}_test_joint_cov"])


def test_skipping_flat_entries_changes_nothing():
    """The sparse loop equals automatic differentiation of the whole loss."""
    torch = pytest.importorskip("torch")
    u = np.random.default_rng(0).integers(0, 120, (80, 6)) / 120
    theta = torch.ones(6, requires_grad=True)
    optimiser = torch.optim.Adam([theta], lr=1e-3, weight_decay=1e-4)
    for _ in range(800):
        optimiser.zero_grad()
        share = torch.sigmoid(1000 * (theta - torch.as_tensor(u))).prod(1).mean()
        (share - 0.8).abs().backward()
        optimiser.step()
    np.testing.assert_allclose(smooth_thresholds(u, 0.2), theta.detach().numpy(), rtol=0, atol=1e-6)


def test_the_split_is_a_random_partition():
    marginal, copula = split_rows(101, 0.6, seed=4)
    assert (len(marginal), len(copula)) == (60, 41)
    np.testing.assert_array_equal(np.sort(np.concatenate([marginal, copula])), np.arange(101))
    assert not np.array_equal(marginal, split_rows(101, 0.6, seed=5)[0])


def test_pseudo_values_are_strict_shares():
    u = pseudo_values(np.array([[2.0], [0.0], [9.0]]), np.array([[1.0], [2.0], [2.0], [3.0]]))
    np.testing.assert_array_equal(u[:, 0], [0.25, 0.0, 1.0])


def test_coverage_on_exchangeable_rows_is_near_the_target_not_exact():
    """Mean joint coverage over replications is within 2.5 points of 90 % at m = 600, N = 5; no exact band holds."""
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(20):
        scores = np.abs(rng.standard_normal((2600, 5)) + rng.standard_normal((2600, 1)))
        radii = copula_radii(scores[:600], 0.1, seed=seed)
        covered.append((scores[600:] < radii).all(1).mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=0.025)


def test_the_smoothed_copula_is_wider_and_its_level_grows_with_the_sensors():
    rng = np.random.default_rng(1)
    scores = np.abs(rng.standard_normal((3000, 20)) + rng.standard_normal((3000, 1)))
    shares = []
    for n in (1, 3, 20):
        radii = kde_radii(scores[:1000, :n], 0.1)
        shares.append((scores[1000:, :1] <= radii[:1]).mean())
        assert (scores[1000:, :n] <= radii).all(1).mean() > 0.89
    assert shares == sorted(shares)


@pytest.mark.parametrize("radii", [copula_radii, kde_radii])
def test_half_widths_scale_with_their_sensor(radii):
    scores = np.abs(np.random.default_rng(2).standard_normal((200, 3)))
    scale = np.array([1.0, 4.0, 0.25])
    np.testing.assert_allclose(radii(scores * scale, 0.1), radii(scores, 0.1) * scale)
