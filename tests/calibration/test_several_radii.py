"""A rule for several radii, row by row: the plain numbers of `stepping` are those of `score`, `radii` and `update`."""

import numpy as np
import pytest

from jointset.calibration import ACI, PID, Auto, ByClock, DtACI
from jointset.calibration.shared_level import SharedLevel

SHARES = (0.6, 0.4)
RULES = {
    "ACI": SharedLevel(ACI(0.1, gamma=0.05), SHARES),
    "without bounds": SharedLevel(ACI(0.1, gamma=0.2, clip=None), SHARES),
    "pools that move": SharedLevel(ACI(0.1, gamma=0.05), SHARES, lookback=30),
    "past the pool": SharedLevel(PID(0.1), SHARES),
    "experts": SharedLevel(DtACI(0.1), SHARES),
    "by size": SharedLevel(Auto(0.1), SHARES),
    "by the clock": SharedLevel(ByClock(ACI(0.1)), SHARES),
}


@pytest.mark.parametrize("name", RULES)
def test_rows_on_plain_numbers_are_steps(name):
    rule, rng = RULES[name], np.random.default_rng(4)
    scores = rng.chisquare(3, (700, 2)) * np.repeat([1.0, 4.0, 0.2], [500, 100, 100])[:, None]
    scores[[520, 633]] = np.nan
    scores[560], scores[561, 1] = 0.0, 0.0
    times = 3600 * np.arange(700) if rule.follows_clock else None
    state = rule.start(scores[:400], None if times is None else times[:400])
    clock = None if times is None else times[400:].tolist()
    step, after = rule.stepping(state, clock)
    for t, row in enumerate(scores[400:]):
        state = state if clock is None else rule.expect(state, clock[t])
        np.testing.assert_allclose(
            step(row.tolist()), (rule.score(state, row[None])[0], rule.radius(state)), rtol=1e-12
        )
        radii = rule.radii(state)
        np.testing.assert_allclose(after()[0].radii[-1], radii, rtol=1e-11)
        state = rule.update(state, row)
    course, ended = after()
    assert (ended.steps, ended.limited) == (state.steps, state.limited)
    np.testing.assert_allclose(rule.radii(ended), rule.radii(state), rtol=1e-11)
    read = ~np.isnan(scores[400:]).any(axis=1)
    inside = (scores[400:] <= course.radii).all(axis=1)
    np.testing.assert_array_equal(inside[read], (course.score <= course.radius)[read])
    assert 0 < inside[read].sum() < read.sum()
