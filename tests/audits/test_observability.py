"""Observability: closed form on the linear filter, and hidden directions that the laws do not see are found."""

from dataclasses import replace

import numpy as np
import pytest

from jointset import GNF, GraphLGSSM, generate_grssf
from jointset.audits.observability import observability
from jointset.errors import InputError


@pytest.fixture(scope="module")
def network():
    return generate_grssf("A", n=30, length=300).panel


def test_linear_filter_has_the_closed_form_ratio(network):
    """sum_l |A^l u|^2 for unit u, whatever the state and the length."""
    filter = GraphLGSSM().fit(network)
    found = observability(filter, network.values, anchors=5, directions=4, seed=3)
    a = filter.steady.closed_loop
    gains = np.sqrt(sum(a ** (2 * step) for step in range(11)))
    assert (found.ratios >= gains.min() - 1e-9).all() and (found.ratios <= gains.max() + 1e-9).all()
    rng = np.random.default_rng(3)
    u = rng.standard_normal((4, 30))
    u = (u / np.linalg.norm(u, axis=1, keepdims=True)) @ filter.spectrum[1]
    np.testing.assert_allclose(found.ratios[0], np.tile(np.sqrt((u**2) @ gains**2), (3, 1)), rtol=1e-6)
    assert found.verdict == "O3"
    assert found.percentile(5) <= found.percentile(50) <= found.percentile(90)


def test_directions_the_heads_do_not_see_weaken_the_verdict(network):
    filter = GNF(steps=3).fit(network)
    blind = replace(filter, weights=filter.weights._replace(head_weight=1e-4 * filter.weights.head_weight))
    assert observability(blind, network.values, anchors=4).verdict == "weak-quotient"
    seeing = observability(filter, network.values, anchors=4)
    half = filter.weights.head_weight.copy()
    half[: len(half) // 2] = 0.0
    weaker = replace(filter, weights=filter.weights._replace(head_weight=half))
    assert observability(weaker, network.values, anchors=4).percentile(5) < seeing.percentile(5)


def test_small_steps_agree_because_the_ratio_is_a_derivative(network):
    filter = GNF(node=True, steps=3, recipe="sharp").fit(network)
    found = observability(filter, network.values, anchors=4)
    np.testing.assert_allclose(found.by_length[0], found.by_length[1], rtol=0.05)


def test_same_seed_same_numbers_and_short_panels_are_refused(network):
    filter = GraphLGSSM().fit(network)
    a, b = (observability(filter, network.values, anchors=3, seed=1) for _ in range(2))
    np.testing.assert_array_equal(a.ratios, b.ratios)
    with pytest.raises(InputError, match="at least 12 rows"):
        observability(filter, network.values[:8])
