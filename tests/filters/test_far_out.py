"""A sensor far outside what training saw takes nothing from the others: a plant that trips, a gauge that reads 0."""

import numpy as np
import pytest

from jointset import GraphLGSSM, JointPredictor, NodeNet, Panel
from jointset.backbones.interface import known_range, within
from jointset.backbones.var import VARBackbone
from jointset.filters.bounded import BoundedFilter
from jointset.filters.residual import ResidualFilter
from jointset.methods import predictor_for
from jointset.residuals.shapes import EWMA

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


@pytest.mark.parametrize("method", ["var+auto", "quick"])
def test_a_trip_of_one_sensor_leaves_the_sets_of_the_others_as_they_are(method):
    """They were 200 times as wide."""
    panel = plants()
    predictor = predictor_for(method).fit(panel[: AT[0]]).calibrate(panel[AT[0] : AT[1]])
    calm, tripped, after = widths_of_the_others(predictor.run(panel[AT[1] :]))
    assert tripped < 1.2 * calm and after < 1.2 * calm


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
    known = known_range(values)
    np.testing.assert_array_equal(known, [[0.0, 5.0, -np.inf], [2.0, 5.0, 0.0], [4.0, 5.0, np.inf]])
    rows = np.array([[3.9, 5.0, 1e9], [4.1, np.nan, -1e9], [-4.0, 5.1, 0.0], [-4.1, 4.9, np.nan]])
    cut = [[3.9, 5.0, 1e9], [4.0, np.nan, -1e9], [0.0, 5.0, 0.0], [2.0, 5.0, np.nan]]
    np.testing.assert_array_equal(within(rows, known), cut)
    assert within(rows, None) is rows


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


@pytest.mark.parametrize("inner", [GraphLGSSM(), ResidualFilter(shape=EWMA(half_life=50), name="ewma")])
def test_a_bounded_filter_is_its_own_within_the_range_and_keeps_the_last_reading_far_beyond(inner, same):
    panel = plants()
    panel = panel.with_values((panel.values - panel.values[:1000].mean(axis=0)) / panel.values[:1000].std(axis=0))
    bounded, own = BoundedFilter(inner).fit(panel[:1000]), inner.fit(panel[:1000])
    values = panel.values[AT[2] - 60 : AT[2] + 40].copy()
    values[70:73, 0], values[75] = np.nan, np.nan  # out, and nothing read
    laws, after = bounded.run(values, bounded.start())
    calm = own.run(values[:60], own.start())[0]
    np.testing.assert_array_equal(laws[:61].mean[:60], calm.mean)
    assert np.abs(laws.mean[62:, 0] - values[61, 0]).max() < 2.0  # the Kalman filter alone is off by a hundred
    state = bounded.start()
    for t, y in enumerate(values):
        same(bounded.law(state).mean, laws.mean[t])
        np.testing.assert_allclose(bounded.law(state).variance, laws.variance[t], rtol=1e-12)
        state = bounded.step(state, y)
    same(state.beyond, after.beyond)


def test_sets_of_the_next_steps_are_as_they_were_for_the_others():
    panel = plants()
    fitted = predictor_for("quick").fit(panel[: AT[0]]).calibrate(panel[AT[0] : AT[1]], horizon=3)
    calm, tripped = (fitted.copy(), fitted.copy())
    calm.run(panel[AT[1] : AT[2] - 20])
    tripped.run(panel[AT[1] : AT[2] + 60])
    for before, during in zip(calm.predict(horizon=3).steps, tripped.predict(horizon=3).steps, strict=True):
        assert during.half_width[1:].mean() < 1.2 * before.half_width[1:].mean()
        assert abs(during.center[0]) < 2.0 and np.abs(during.center[1:] - panel.values[AT[2] + 59, 1:]).max() < 3.0
