"""HopCPT: the algebra of the attention, its training, and the coverage of its intervals."""

import numpy as np
import pytest

from jointset.published.forest import weighted_quantiles
from jointset.published.hopcpt import HopCPTRule, attended_intervals, attention_weights, encode, train

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def volatile():
    """Residuals whose spread follows a slow wave: the recent ones tell how large the next will be."""
    rng = np.random.default_rng(0)
    spread = np.exp(np.sin(2 * np.pi * np.arange(1600) / 200))[:, None] * np.array([1.0, 5.0])
    return rng.standard_normal((1600, 2)) * spread, spread


def test_weights_are_a_softmax():
    rng = np.random.default_rng(1)
    queries, keys = rng.standard_normal((5, 3)), rng.standard_normal((40, 3))
    weights = attention_weights(queries, keys, 2.0)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights > 0).all()
    logits = 2.0 * queries @ keys.T
    np.testing.assert_allclose(np.log(weights[:, 1] / weights[:, 0]), logits[:, 1] - logits[:, 0])
    np.testing.assert_allclose(attention_weights(queries, keys, 1e-12), 1 / 40)
    sharp = attention_weights(queries, keys, 1e4)
    np.testing.assert_array_equal(sharp.argmax(axis=1), logits.argmax(axis=1))
    np.testing.assert_allclose(sharp.max(axis=1), 1.0)


def test_masked_memory_has_no_weight_and_large_logits_do_not_overflow():
    valid = np.array([[True, False, True]])
    weights = attention_weights(np.array([[1e4]]), np.array([[1.0], [9.0], [1.0]]), 1.0, valid)
    np.testing.assert_allclose(weights, [[0.5, 0.0, 0.5]])


def test_intervals_are_weighted_quantiles_of_the_memory(volatile):
    residuals, _ = volatile
    attention = train(residuals[:300], 8, 5, 0)
    q = np.array([0.05, 0.95])
    ends = attended_intervals(attention, 1, residuals[:320, 1], 300, q)
    for j in (0, 7, 20):
        memory = residuals[j : 300 + j, 1]
        contexts = np.lib.stride_tricks.sliding_window_view(memory, 8)
        queries, keys = encode(attention, 1, contexts)
        weights = attention_weights(queries[-1:], keys[:-1], 0.25)[0]
        order = np.argsort(memory[8:])
        np.testing.assert_allclose(ends[j], weighted_quantiles(memory[8:][order], weights[order], q))


def test_training_makes_the_intervals_follow_the_spread(volatile):
    residuals, spread = volatile
    rule = HopCPTRule(window=24, updates=400)
    (lower, upper), _ = rule.radii(rule.start(residuals[:1000]), residuals[1000:-1])
    untrained = HopCPTRule(window=24, updates=0)
    (plain_lower, plain_upper), _ = untrained.radii(untrained.start(residuals[:1000]), residuals[1000:-1])
    for i in range(2):
        follows = np.corrcoef(upper[:, i] - lower[:, i], spread[1000:, i])[0, 1]
        assert follows > 0.5
        assert follows > np.corrcoef(plain_upper[:, i] - plain_lower[:, i], spread[1000:, i])[0, 1]
    inside = (residuals[1000:] >= lower) & (residuals[1000:] <= upper)
    np.testing.assert_allclose(inside.mean(axis=0), 0.9, atol=0.04)


def test_sensors_are_separate_models(volatile):
    """Nothing of another sensor enters an interval."""
    residuals, _ = volatile
    rule = HopCPTRule(window=8, updates=20)
    both, _ = rule.radii(rule.start(residuals[:200]), residuals[200:210])
    other = residuals.copy()
    other[:, 1] = np.random.default_rng(9).standard_normal(len(other))
    changed, _ = rule.radii(rule.start(other[:200]), other[200:210])
    np.testing.assert_allclose(both[1][:, 0], changed[1][:, 0], rtol=1e-5)
    assert not np.allclose(both[1][:, 1], changed[1][:, 1])
