"""The mean-channel swap: one filter's covariance around another's mean."""

import numpy as np
import pytest

from jointset import JointPredictor, generate_grssf
from jointset.backbones import SwappedMean, backbone
from jointset.baselines import StaticFilter
from jointset.filters import GNF
from jointset.storage import pack, unpack

MEANS = {
    "gpvar": backbone("gpvar"),
    "gru": backbone("gru", width=8, window=6, steps=50),
    "stgnn": backbone("stgnn", width=4, dilations=(1, 2), adaptive=2, steps=50),
}
FILTERS = {"gnf": GNF(steps=30), "static": StaticFilter()}


@pytest.fixture(scope="module")
def panel():
    return generate_grssf("B", n=8, seed=1, length=1200).panel


@pytest.fixture(scope="module", params=[("gnf", "gpvar"), ("gnf", "gru"), ("gnf", "stgnn"), ("static", "gru")])
def swapped(request, panel):
    filter, mean = request.param
    return SwappedMean(FILTERS[filter], MEANS[mean]).fit(panel[:600])


def gappy(values):
    values = values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.05] = np.nan
    values[50:60] = np.nan
    return values


def test_mean_of_one_and_covariance_of_the_other(swapped, panel):
    laws, _ = swapped.run(panel.values, swapped.start())
    own, _ = swapped.filter.run(panel.values, swapped.filter.start())
    np.testing.assert_array_equal(laws.mean, swapped.backbone.predict(panel.values))
    np.testing.assert_array_equal(laws.variance, own.variance)
    np.testing.assert_array_equal(laws.log_det, own.log_det)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
def test_run_equals_stepping_and_can_be_cut(swapped, panel, gaps):
    values = (gappy(panel.values) if gaps else panel.values)[:150]
    laws, last = swapped.run(values, swapped.start())
    state = swapped.start()
    for t, y in enumerate(values):
        law = swapped.law(state)
        np.testing.assert_allclose(law.mean, laws.mean[t], atol=1e-11)
        np.testing.assert_allclose(law.variance, laws.variance[t], rtol=1e-11)
        state = swapped.step(state, y)
    np.testing.assert_array_equal(state.history, last.history)
    first, middle = swapped.run(values[:55], swapped.start())
    second, _ = swapped.run(values[55:], middle)
    np.testing.assert_allclose(np.concatenate([first.mean, second.mean]), laws.mean, atol=1e-11)


@pytest.mark.parametrize("t", [0, 1, 100])
def test_a_law_never_sees_its_own_reading(swapped, panel, t):
    changed = panel.values.copy()
    changed[t:] = 1e6
    before, after = (swapped.run(values, swapped.start())[0] for values in (panel.values, changed))
    np.testing.assert_array_equal(before.mean[: t + 1], after.mean[: t + 1])
    np.testing.assert_array_equal(before.variance[: t + 1], after.variance[: t + 1])


def test_frozen_parts_stay_as_they_are(swapped, panel):
    frozen = SwappedMean(swapped.filter, swapped.backbone, frozen=True)
    assert frozen.fit(panel) is frozen


def test_calibrated_anew_it_covers_and_survives_storage(swapped, panel, tmp_path):
    """300 test rows at 90 %: within four binomial standard deviations; a saved predictor goes on the same way."""
    predictor = JointPredictor(swapped, standardize=False).fit(panel[:600]).calibrate(panel[600:900])
    arrays = {}
    state = unpack(pack(predictor.filter_state, arrays), arrays)
    np.testing.assert_array_equal(state.history, predictor.filter_state.history)
    predictor.save(tmp_path / "model")
    back = JointPredictor.load(tmp_path / "model")
    run = predictor.run(panel[900:])
    np.testing.assert_array_equal(back.run(panel[900:]).lower, run.lower)
    assert abs(run.joint - 0.9) < 4 * np.sqrt(0.09 / 300) + 0.02
