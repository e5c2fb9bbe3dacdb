"""Adaptive scale around any filter."""

import numpy as np
import pytest

from jointset import GraphLGSSM, JointPredictor, Panel, generate_grssf
from jointset.checks import check_predictor
from jointset.errors import InputError
from jointset.filters.residual import ResidualFilter
from jointset.filters.scaled import ScaledFilter, _typical, scaled
from jointset.laws import DenseLaw, LowRankLaw
from jointset.residuals.components import OrthogonalBlocks
from jointset.residuals.splits import ResidualSplit


@pytest.fixture(scope="module")
def panel():
    return generate_grssf("A", n=8, seed=0, length=3000).panel


def test_the_law_is_scaled_on_both_sides():
    rng = np.random.default_rng(0)
    law = LowRankLaw(rng.normal(size=(3, 4)), 1 + rng.random((3, 4)), rng.normal(size=(3, 4, 2)))
    dense, scale = DenseLaw(law.mean, law.dense()), 0.5 + rng.random((3, 4))
    expected = law.dense() * scale[:, :, None] * scale[:, None, :]
    np.testing.assert_allclose(scaled(law, scale).dense(), expected)
    np.testing.assert_allclose(scaled(dense, scale).covariance.matrix, expected)
    np.testing.assert_array_equal(scaled(law, scale).mean, law.mean)


def test_a_sensor_that_grows_noisy_gets_wider_bounds_alone(panel):
    fitted = ScaledFilter(GraphLGSSM(), 100.0, 0.0).fit(panel[:2000])
    values = panel.values[2000:].copy()
    values[200:, 3] += 5.0 * np.random.default_rng(1).standard_normal(800)
    laws, _ = fitted.run(values, fitted.start())
    plain, _ = fitted.inner.run(values, fitted.inner.start())
    ratio = (laws.variance / plain.variance)[-1] / (laws.variance / plain.variance)[200]
    assert ratio[3] > 3.0 and np.delete(ratio, 3).max() < 2.0


def test_the_whole_row_follows_a_storm_and_forgets_it(panel):
    fitted = ScaledFilter(GraphLGSSM(), 0.0, 12.0).fit(panel[:2000])
    values = panel.values[2000:].copy()
    values[300:400] *= 4.0
    laws, state = fitted.run(values, fitted.start())
    plain, _ = fitted.inner.run(values, fitted.inner.start())
    growth = (laws.variance / plain.variance).mean(axis=1)
    np.testing.assert_allclose(laws.variance / plain.variance, growth[:, None] * np.ones(8))  # one factor for all
    assert growth[399] > 4.0 * np.median(growth[:300]) and np.median(growth[500:]) < 1.5 * np.median(growth[:300])
    assert state.whole == pytest.approx(growth[-1], rel=0.3)


def test_half_lives_are_tried_on_the_laws_that_a_run_gives(panel):
    filter_ = ScaledFilter(GraphLGSSM().fit(panel[:2000]), 100.0, 0.0, frozen=True, sensors=np.ones(8))
    values = panel.values[2000:]
    laws, _ = filter_.run(values, filter_.start())
    ((tried, log_dets, counts),) = filter_._distances(panel[2000:], (100.0,))
    assert len(tried) > 500 and (counts == 8).all()
    np.testing.assert_allclose(tried, laws.mahalanobis(values)[-len(tried) :])
    np.testing.assert_allclose(log_dets, laws.log_det[-len(tried) :])


def test_no_scale_moves_where_none_has_to(panel):
    """The Kalman filter is the truth here: nothing is to be gained, and the law stays as it is."""
    chosen = ScaledFilter(GraphLGSSM()).fit(panel[:2500])
    assert (chosen.sensor_half_life, chosen.whole_half_life) == (0.0, 0.0)
    laws, _ = chosen.run(panel.values[2500:], chosen.start())
    plain, _ = chosen.inner.run(panel.values[2500:], chosen.inner.start())
    np.testing.assert_array_equal(laws.variance, plain.variance)


@pytest.mark.parametrize("read", [8, 4, 1])
def test_the_usual_scale_of_a_filter_that_is_right_is_one(panel, read):
    """Of distances each is divided by the number of sensors that were read."""
    gone = np.random.default_rng(6).random(panel.values.shape).argsort(axis=1) >= read
    rows = panel.with_values(np.where(gone, np.nan, panel.values))
    inner = GraphLGSSM().fit(panel[:2500])
    fitted = ScaledFilter(inner, 0.0, 12.0, frozen=True).fit(rows[:2500])
    assert abs(fitted.whole - 1.0) < 0.1 and (fitted.sensors == 1.0).all()


def test_storms_choose_a_short_half_life():
    rng = np.random.default_rng(2)
    storm = np.repeat(np.exp(rng.standard_normal(150)), 40)
    panel = Panel(storm[:, None] * rng.standard_normal((6000, 5)), tuple("abcde"))
    chosen = ScaledFilter(ResidualFilter(shape=_ewma(), name="ewma")).fit(panel)
    assert chosen.whole_half_life == 12.0


def _ewma():
    from jointset.residuals.shapes import EWMA

    return EWMA(500.0)


def test_half_lives_do_not_see_later_rows(panel):
    changed = panel.values.copy()
    changed[2000:] *= 30.0
    one, other = (ScaledFilter(GraphLGSSM()).fit(rows[:2000]) for rows in (panel, panel.with_values(changed)))
    np.testing.assert_array_equal(one.sensors, other.sensors)
    assert one.sensor_half_life == other.sensor_half_life and one.whole_half_life == other.whole_half_life


def test_what_was_not_read_moves_nothing(panel):
    fitted = ScaledFilter(GraphLGSSM(), 50.0, 12.0).fit(panel[:1000])
    _, state = fitted.run(panel.values[1000:1100], fitted.start())
    empty = fitted.step(state, np.full(8, np.nan))
    np.testing.assert_array_equal(empty.sensors, state.sensors)
    assert empty.whole == state.whole
    some = np.full(8, np.nan)
    some[1] = 4.0
    after = fitted.step(state, some)
    np.testing.assert_array_equal(np.delete(after.sensors, 1), np.delete(state.sensors, 1))
    assert after.sensors[1] != state.sensors[1] and after.whole != state.whole


def test_bad_half_lives_and_sets_of_several_radii_are_refused(panel):
    with pytest.raises(InputError, match="sensor_half_life"):
        ScaledFilter(GraphLGSSM(), -1.0)
    blocks = ResidualFilter(shape=OrthogonalBlocks(ResidualSplit("factor")), name="factor")
    with pytest.raises(InputError, match="several radii"):
        ScaledFilter(blocks, 100.0, 0.0).fit(panel[:500])


def test_it_keeps_the_contract():
    def scaled_kalman():
        return JointPredictor(ScaledFilter(GraphLGSSM(), 100.0, 12.0))

    check_predictor(scaled_kalman)


def test_a_sensor_that_stands_still_or_is_never_read_has_the_usual_scale():
    squares = np.array([[0.0, np.nan, 4.0], [0.0, np.nan, 4.0], [1.0, np.nan, 4.0]])
    np.testing.assert_array_equal(_typical(squares), [1.0, 1.0, 4.0])
