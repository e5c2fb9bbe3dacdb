"""A network with empty cells in every row: every method of the table learns from it, calibrates on it and goes on."""

import warnings

import numpy as np
import pytest

from jointset import Panel, generate_grssf
from jointset.catalogue import METHODS, TABLE
from jointset.checks import STEPS, _hasten
from jointset.errors import InputError
from jointset.methods import predictor_for

N, ROWS, TRAINING, CALIBRATION = 12, 900, slice(0, 450), slice(450, 780)
MOVING = ("ewma", "rolling", "var", "multidim-spci-empirical", "spci-empirical")


@pytest.fixture(scope="module")
def network():
    """Long blocks of a quarter of all cells are empty, no row is complete, and the first sensor dies."""
    made, rng = generate_grssf("B", n=N, seed=1, length=ROWS).panel, np.random.default_rng(0)
    values = 50.0 + 7.0 * made.values
    for column in values.T:
        while np.isnan(column).mean() < 0.25:
            start = rng.integers(ROWS)
            column[start : start + rng.integers(20, 120)] = np.nan
    rows = np.arange(ROWS)
    values[rows, 1 + rows // 30 % (N - 1)] = np.nan
    values[600:, 0] = np.nan
    assert np.isnan(values).any(axis=1).all()
    return Panel(values, made.sensors, timestamps=3600 * rows, adjacency=made.adjacency)


SLOW = pytest.param("default", marks=pytest.mark.slow)


@pytest.mark.parametrize("method", [SLOW if name == "default" else name for name in METHODS])
def test_fits_calibrates_and_streams(network, method):
    predictor = predictor_for(method, training={"steps": STEPS} if TABLE[method].learned else None)
    _hasten(predictor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows
        predictor.fit(network[TRAINING]).calibrate(network[CALIBRATION])
    test = network[CALIBRATION.stop :]
    live, run = predictor.copy(), predictor.run(test)
    assert np.isfinite(run.upper - run.lower).all() and (run.upper > run.lower).all()
    assert not np.isnan(run.score[~np.isnan(test.values).all(axis=1)]).any()
    for t in range(5):
        np.testing.assert_allclose(live.predict().bounds_for(test.values[t]), (run.lower[t], run.upper[t]), rtol=1e-7)
        live.update(test.values[t])
    if method in MOVING:  # one dead sensor does not stop the others
        width = (run.upper - run.lower)[:, 5]
        assert np.ptp(width) > 0.01 * width.mean()


def test_hours_of_the_day_differ_also_where_no_row_is_complete(network):
    hourly = predictor_for("time-of-day").fit(network[TRAINING]).filter.shape
    assert len(hourly.covariances) == 1  # fewer than two residuals a sensor and hour
    fewer = predictor_for("time-of-day")
    fewer.filter = type(fewer.filter)(shape=type(hourly)(bins=4), name="time-of-day")
    assert len(fewer.fit(network[TRAINING]).filter.shape.covariances) == 5


@pytest.mark.parametrize("method", ["copula", "spci-empirical"])
def test_a_sensor_without_any_reading_is_named_with_its_block(network, method):
    predictor = predictor_for(method).fit(network[TRAINING])
    named = f"{method}: fewer than two readings of '{network.sensors[0]}' in the calibration rows"
    with pytest.raises(InputError, match=named):
        predictor.calibrate(network[CALIBRATION.start + 200 :])


def test_a_pilot_block_without_a_sensor_is_named(network):
    named = f"static: the pilot rows .*fewer than two readings of '{network.sensors[0]}'"
    with pytest.raises(InputError, match=named):
        predictor_for("static").fit(network[TRAINING], pilot=network[650:])
