"""First-order recursions against the loop they stand for."""

import numpy as np
import pytest

from jointset.algebra.recursion import first_order


@pytest.mark.parametrize("steps", [1, 2, 64, 65, 300])
def test_equals_the_loop(steps):
    rng = np.random.default_rng(0)
    decay, inputs, before = rng.uniform(-0.99, 0.99, 7), rng.normal(size=(7, steps)), rng.normal(size=7)
    kept = inputs.copy()
    y, states = before, []
    for x in inputs.T:
        y = decay * y + x
        states.append(y)
    np.testing.assert_allclose(first_order(decay, inputs, before), np.transpose(states), rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(inputs, kept)


def test_no_steps_and_no_past():
    assert first_order(np.array([0.5, 0.1]), np.empty((2, 0)), np.ones(2)).shape == (2, 0)
    np.testing.assert_array_equal(first_order(np.array([0.5]), np.array([[2.0, 1.0]])), [[2.0, 2.0]])


@pytest.mark.parametrize("steps", [60, 200])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_not_finite_spoils_nothing_before_it(steps, bad):
    inputs = np.ones((2, steps))
    inputs[0, 40] = bad
    y = first_order(np.array([0.5, 0.5]), inputs)
    assert np.isfinite(y[0, :40]).all()
    assert not np.isfinite(y[0, 40:]).any()
    assert np.isfinite(y[1]).all()
