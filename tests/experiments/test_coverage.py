"""Coverage and size on data whose answer is known: exchangeable residuals, and Gaussian ones of known covariance."""

import numpy as np
import pytest
from scipy.stats import chi2

from jointset.algebra.volumes import unit_ball_log_volume
from jointset.backbones import GPVARBackbone
from jointset.calibration import ACI, Split
from jointset.calibration.shared_level import SharedLevel
from jointset.methods import row
from jointset.panel import Panel

REPLICATIONS, M, TEST, N = 48, 239, 240, 6  # of many test steps: as exact as 120 of 60
GRAPH = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))


def flat_backbone():
    """A mean that is a constant: residuals of independent readings are then exchangeable."""
    return GPVARBackbone(ridge=1e15)


def coverage(name):
    """Joint coverage over replications, and that of single components where there are any."""
    rng = np.random.default_rng(11)
    mixing = rng.normal(size=(N, N))
    names = [f"s{i}" for i in range(N)]
    joint, single = [], []
    for _ in range(REPLICATIONS):
        values = rng.standard_t(5, size=(160 + M + TEST, N)) @ mixing
        panel = Panel(values, names, timestamps=3600 * np.arange(len(values)), adjacency=GRAPH)
        predictor = row(name, warmup=1, standardize=False, backbone=flat_backbone())
        predictor.fit(panel[:80], panel[80:160]).calibrate(panel[160 : 160 + M])
        run = predictor.run(panel[160 + M :])
        joint.append(run.joint)
        if hasattr(run.regions, "radii"):
            single.append(np.mean(run.regions.law.scores(run.values) <= run.regions.radii, axis=0))
    return np.mean(joint), np.mean(single, axis=0) if single else None


def band(level):
    """Three standard errors of the mean over replications: coverage is Beta(k, m + 1 - k), counts are binomial."""
    variance = level * (1 - level) / (M + 2)
    return 3 * np.sqrt((variance + (level * (1 - level) - variance) / TEST) / REPLICATIONS)


@pytest.mark.parametrize("name", ["static", "static:box", "local", "time-of-day"])
def test_one_radius_covers_exactly(name):
    assert coverage(name)[0] == pytest.approx(0.9, abs=band(0.9))


@pytest.mark.parametrize(("name", "shares"), [("factor", 2), ("group", 2), ("spectral", 3), ("per-group-factor", 4)])
def test_each_component_covers_exactly_and_all_together_enough(name, shares):
    joint, single = coverage(name)
    level = 1 - 0.1 / shares
    np.testing.assert_allclose(single, level, atol=band(level))
    assert 0.9 - band(0.9) <= joint <= level


@pytest.mark.parametrize("name", ["static", "ewma", "rolling", "time-of-day"])
def test_ellipsoids_have_the_volume_of_the_oracle(name):
    """Gaussian residuals, m = 4,000: within 2 % of the log-volume of the true 90 % ellipsoid."""
    rng = np.random.default_rng(5)
    mixing = 6.0 * np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))).T
    values = rng.normal(size=(13_000, N)) @ mixing
    panel = Panel(values, [f"s{i}" for i in range(N)], timestamps=300 * np.arange(len(values)))
    predictor = row(name, warmup=1, standardize=False, backbone=flat_backbone())
    run = predictor.fit(panel[:8000]).calibrate(panel[8000:12_000]).run(panel[12_000:])
    half_log_det = np.log(np.abs(np.linalg.det(mixing)))
    oracle = (unit_ball_log_volume(N) + half_log_det) / N + 0.5 * np.log(chi2(N).ppf(0.9))
    assert oracle > 1.0
    assert run.log_volume.mean() == pytest.approx(oracle, rel=0.02)


# ---------------------------------------------------------------------- one level for several components


@pytest.fixture(scope="module")
def scores():
    return np.random.default_rng(0).exponential(size=(500, 3))


def test_a_split_level_is_bonferroni(scores):
    rule = SharedLevel(Split(0.1), (0.5, 0.3, 0.2))
    radii = rule.radii(rule.start(scores))
    ordered = np.sort(scores, axis=0)
    ranks = [int(np.ceil(501 * (1 - 0.1 * share) - 1e-9)) for share in rule.shares]
    np.testing.assert_array_equal(radii, [ordered[rank - 1, j] for j, rank in enumerate(ranks)])


@pytest.mark.parametrize("lookback", [0, 50])
def test_inside_is_the_same_on_both_scales(scores, lookback):
    """The nominal score is within its radius exactly when every component score is within its own."""
    rng = np.random.default_rng(1)
    rule = SharedLevel(ACI(0.1, gamma=0.05), (0.5, 0.3, 0.2), lookback)
    new = np.concatenate([rng.exponential(1.3, size=(400, 3)), scores[:100]])
    (radii, nominal, levels), last = rule.run(rule.start(scores), new)
    np.testing.assert_array_equal(nominal <= levels, (new <= radii).all(axis=1))
    state = rule.start(scores)
    for t, s in enumerate(new):
        np.testing.assert_array_equal(rule.radii(state), radii[t])
        state = rule.update(state, s)
    assert rule.radius(state) == rule.radius(last)
    assert state.steps == last.steps == 500


@pytest.mark.parametrize("lookback", [0, 50])
def test_an_infinite_radius_is_the_whole_space_also_where_a_component_was_always_zero(scores, lookback):
    rule = SharedLevel(ACI(0.1, gamma=0.05, clip=None), (0.5, 0.3, 0.2), lookback)
    scores = scores * [1.0, 0.0, 1.0]
    new = np.random.default_rng(3).exponential(3.0, size=(40, 3)) * [1.0, 0.0, 1.0]
    state = rule.start(scores)
    (radii, nominal, levels), _ = rule.run(state, new)
    assert np.isinf(levels).any() and (radii[np.isinf(levels)] == np.inf).all()
    np.testing.assert_array_equal(nominal <= levels, (new <= radii).all(axis=1))
    for t, s in enumerate(new):
        np.testing.assert_array_equal(rule.radii(state), radii[t])
        state = rule.update(state, s)


def test_aci_moves_the_one_level(scores):
    """alpha_{t+1} = alpha_t + gamma (alpha - miss_t), whatever the number of components."""
    rule = SharedLevel(ACI(0.1, gamma=0.005), (0.5, 0.3, 0.2))
    new = np.random.default_rng(2).exponential(1.2, size=(300, 3))
    (radii, _, levels), _ = rule.run(rule.start(scores), new)
    misses = (new > radii).any(axis=1)
    expected = 0.1 + 0.005 * np.concatenate([[0], np.cumsum(0.1 - misses)[:-1]])
    np.testing.assert_allclose(1 - levels, expected, atol=1.01e-4)  # levels are multiples of 1e-4
