"""PIT: right laws pass, every kind of wrong one is named."""

import numpy as np
import pytest
from scipy import stats

from jointset import InputError
from jointset.audits.pit import pit

STEPS = 3000
TIMES = 1_700_000_000 + 3600 * np.arange(STEPS)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_right_laws_pass_about_as_often_as_the_level_says(rng):
    """Bonferroni: over 200 panels of ten right sensors, some sensor fails in at most about 5 % of them."""
    failures = 0
    for _ in range(200):
        y = rng.standard_normal((200, 10))
        failures += not pit(np.zeros_like(y), np.ones_like(y), y).passed.all()
    assert failures <= stats.binom.ppf(0.999, 200, 0.05)


@pytest.mark.parametrize(
    ("shape", "make"),
    [
        ("biased", lambda z: z + 0.6),
        ("too narrow", lambda z: 1.6 * z),
        ("too wide", lambda z: 0.5 * z),
        ("heavy tails", lambda z: np.where(np.arange(len(z))[:, None] % 20 == 0, 6 * z, 0.8 * z)),
    ],
)
def test_every_kind_of_wrong_law_is_named(rng, shape, make):
    z = rng.standard_normal((STEPS, 2))
    y = np.column_stack([z[:, 0], make(z)[:, 1]])
    found = pit(np.zeros_like(y), np.ones_like(y), y)
    assert found.passed.tolist() == [True, False] and found.shape == ("", shape) and found.cause == ("", "")


def test_a_stuck_sensor_and_a_daily_regime_are_told_apart(rng):
    z = rng.standard_normal((STEPS, 3))
    day = (TIMES % 86400) // 3600 < 12
    z[:, 1] = np.where(rng.random(STEPS) < 0.1, -3.0, z[:, 1])
    z[:, 2] += np.where(day, 0.8, -0.8)
    found = pit(np.zeros_like(z), np.ones_like(z), z, TIMES)
    assert found.cause == ("", "ZF", "RG")
    assert pit(np.zeros_like(z), np.ones_like(z), z).cause == ("", "ZF", "")  # no clock, no regime


def test_chance_is_no_daily_regime(rng):
    """With few readings an hour, hours differ by chance: a law that is only too wide is not blamed on the clock."""
    y = 0.4 * rng.standard_normal((200, 8))
    found = pit(np.zeros_like(y), np.ones_like(y), y, TIMES[:200])
    assert found.shape == ("too wide",) * 8 and found.cause.count("RG") <= 1


def test_statistics_are_those_of_scipy_on_observed_readings(rng):
    y = rng.standard_normal((500, 2))
    y[:100, 0] = np.nan
    found = pit(np.zeros_like(y), np.full_like(y, 1.3), y)
    expected = stats.kstest(y[100:, 0] / np.sqrt(1.3), "norm")
    assert found.statistic[0] == pytest.approx(expected.statistic)
    assert found.p_value[0] == pytest.approx(min(1.0, 2 * expected.pvalue))
    assert found.histogram.mean() == pytest.approx(1.0)


def test_too_few_readings_are_refused():
    with pytest.raises(InputError, match="at least 20 readings"):
        pit(np.zeros((10, 1)), np.ones((10, 1)), np.zeros((10, 1)))
