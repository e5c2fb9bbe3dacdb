"""Drift put on a panel: what changes, when, and what stays."""

import numpy as np
import pytest

from jointset.datasets import generate_grssf
from jointset.datasets.drift import DRIFTS, PERIOD, with_drift
from jointset.errors import InputError

PANEL = generate_grssf("A", n=8, seed=0, length=2000).panel


@pytest.mark.parametrize("kind", DRIFTS)
def test_only_a_season_begins_before_the_test_block(kind):
    values = with_drift(PANEL, kind).values
    assert values.shape == PANEL.values.shape
    assert np.allclose(values[:1800], PANEL.values[:1800]) == (kind != "season")
    assert not np.allclose(values[1800:], PANEL.values[1800:])


def test_sizes_of_the_changes():
    quiet = PANEL.values.std(axis=0)
    jump, ramp, season, outage = (with_drift(PANEL, kind).values for kind in ("jump", "ramp", "season", "outage"))
    mean = PANEL.values[:1800].mean(axis=0)
    np.testing.assert_allclose(jump[1900:] - mean, 2 * (PANEL.values[1900:] - mean))
    np.testing.assert_allclose(ramp[1900] - mean, 1.5 * (PANEL.values[1900] - mean))
    np.testing.assert_allclose(season[PERIOD // 4] - mean, 2 * (PANEL.values[PERIOD // 4] - mean))
    changed = (outage != PANEL.values).any(axis=1)
    assert (changed.sum(), np.flatnonzero(changed)[0]) == (40, 1900)
    assert ((outage[1900, :2] - mean[:2]) / quiet[:2]).round() == pytest.approx(-4.0)


def test_an_unknown_drift_is_refused():
    with pytest.raises(InputError, match="unknown drift 'flood'"):
        with_drift(PANEL, "flood")
