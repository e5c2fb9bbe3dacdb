"""The mean-channel swap: one filter's covariance around another's mean."""

import numpy as np
import pytest

from jointset import JointPredictor, generate_grssf
from jointset.backbones import SwappedMean, backbone
from jointset.filters import GNF
from jointset.filters.static import StaticFilter

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


def test_mean_of_one_and_covariance_of_the_other(swapped, panel):
    laws, _ = swapped.run(panel.values, swapped.start())
    own, _ = swapped.filter.run(panel.values, swapped.filter.start())
    np.testing.assert_array_equal(laws.mean, swapped.backbone.predict(panel.values))
    np.testing.assert_array_equal(laws.variance, own.variance)
    np.testing.assert_array_equal(laws.log_det, own.log_det)


def test_frozen_parts_stay_as_they_are(swapped, panel):
    frozen = SwappedMean(swapped.filter, swapped.backbone, frozen=True)
    assert frozen.fit(panel) is frozen


def test_calibrated_anew_it_covers(swapped, panel):
    """300 test rows at 90 %: within four binomial standard deviations."""
    predictor = JointPredictor(swapped, standardize=False).fit(panel[:600]).calibrate(panel[600:900])
    assert abs(predictor.run(panel[900:]).joint - 0.9) < 4 * np.sqrt(0.09 / 300) + 0.02
