"""A sensor far outside what training saw leaves the others in proportion: a plant that trips, a gauge that reads 0."""

import numpy as np
import pytest

from jointset import JointPredictor, NodeNet, Panel
from jointset.backbones.interface import known_range
from jointset.backbones.var import VARBackbone
from jointset.methods import predictor_for

N, AT = 8, (2000, 2600, 2800, 3000)  # ends of training and calibration, begin and end of the trip


def plants(seed=0):
    """Sensors that wander together, and one at full load that trips for 200 rows."""
    rng, x = np.random.default_rng(seed), np.zeros((3200, N))
    for t in range(1, len(x)):
        x[t] = 0.95 * x[t - 1] + rng.normal(size=N) + 0.5 * rng.normal()
    x[:, 0] = 700.0 + 1.4 * rng.normal(size=len(x))
    x[AT[2] : AT[3], 0] = 0.0
    return Panel(x, [f"s{i}" for i in range(N)], 3600 * np.arange(len(x)))


def widths_of_the_others(run):
    """Mean width of the other sensors in calm rows, in the trip but for its first rows, and well after it."""
    width = (run.upper - run.lower)[:, 1:].mean(axis=1)
    begin, end = AT[2] - AT[1], AT[3] - AT[1]
    return width[:begin].mean(), np.median(width[begin + 5 : end]), np.median(width[end + 5 :])


@pytest.mark.parametrize(("method", "most"), [("var+auto", 2.0), ("quick", 15.0)])
def test_a_trip_of_one_sensor_leaves_the_sets_of_the_others_in_proportion(method, most):
    """They were 200 times as wide; in `quick` the experts of other kinds still err on the one and share its radius."""
    panel = plants()
    predictor = predictor_for(method).fit(panel[: AT[0]]).calibrate(panel[AT[0] : AT[1]])
    calm, tripped, after = widths_of_the_others(predictor.run(panel[AT[1] :]))
    assert tripped < most * calm and after < 2.0 * calm


def test_what_lies_in_the_known_range_is_not_touched():
    panel = plants()
    fitted = VARBackbone(clock=True, curved=True).fit(panel[: AT[0]])
    free = VARBackbone.__new__(VARBackbone)
    free.__dict__.update(fitted.__dict__ | {"known": None})
    calm, times = panel.values[AT[0] : AT[2]], panel.timestamps[AT[0] : AT[2]]
    np.testing.assert_array_equal(fitted.predict(calm, times=times), free.predict(calm, times=times))
    trip, times = panel.values[AT[2] - 1 : AT[3]], panel.timestamps[AT[2] - 1 : AT[3]]
    bound, loose = (one.predict(trip, times=times)[3:] - trip[2:-1] for one in (fitted, free))
    assert np.abs(bound[:, 1:]).mean() < 2.0 < 10.0 < np.abs(loose[:, 1:]).mean()


def test_the_range_is_half_as_far_out_again_and_a_sensor_without_readings_has_none():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    np.testing.assert_array_equal(known_range(values), [[0.0, 5.0, -np.inf], [4.0, 5.0, np.inf]])


def test_a_network_sees_no_farther_than_its_training_rows_and_keeps_that_on_disk(tmp_path):
    pytest.importorskip("torch")
    panel = plants()
    predictor = JointPredictor(NodeNet(steps=3, window=16)).fit(panel[:600]).calibrate(panel[600:900])
    net, z = predictor.filter, (panel.values - predictor.shift) / predictor.scale
    far = z[1000:1010].copy()
    far[:, 0] = -500.0
    further = far.copy()
    further[:, 0] = -700.0
    one, other = (net.run(rows, net.run(z[900:1000], net.start())[1])[0] for rows in (far, further))
    np.testing.assert_array_equal(one.mean[2:, 1:], other.mean[2:, 1:])
    np.testing.assert_array_equal(one.variance[2:], other.variance[2:])
    np.testing.assert_allclose(one.mean[2:, 0] - other.mean[2:, 0], 200.0)  # around the last reading
    predictor.save(tmp_path / "model")
    np.testing.assert_array_equal(JointPredictor.load(tmp_path / "model").filter.known, net.known)


def test_one_glitch_does_not_widen_the_sets_of_quick_for_days():
    rng, x = np.random.default_rng(1), np.zeros((3000, 6))
    for t in range(1, len(x)):
        x[t] = 0.7 * x[t - 1] + rng.normal(size=6)
    x[2700, 2] += 10_000.0
    panel = Panel(x, [f"s{i}" for i in range(6)], 600 * np.arange(len(x)))
    run = predictor_for("quick").fit(panel[:2000]).calibrate(panel[2000:2600]).run(panel[2600:])
    width = (run.upper - run.lower)[:, 2]
    assert np.median(width[150:]) < 1.6 * np.median(width[:100])  # it was a thousand times as wide
