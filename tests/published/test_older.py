"""Model folders of published methods that older versions wrote."""

from dataclasses import replace

import numpy as np
import pytest

from jointset.methods import load_predictor, predictor_for
from jointset.published.older import STORED, WrappedRule, WrappedState
from jointset.support.folders import save_folder


@pytest.mark.parametrize("name", ["copula", "spci-empirical+aci", "multidim-spci-empirical+split"])
def test_a_folder_of_an_older_version_goes_on(panel, name, tmp_path):
    """The parts such a folder held, made from a predictor of today whose rule works in the units of the data."""
    today = predictor_for(name, standardize=False).fit(panel[:600]).calibrate(panel[600:1200])
    state, rule = today.filter_state, today.filter.rule
    if "+" in name:
        rule = WrappedRule(rule, today.calibration)
        state = WrappedState(state.own, today.calibration_state, today.calibration_scores, state.least)
    else:
        state = state.own
    scale, history = np.full(4, 2.0), today.filter_state.history / 2.0  # its backbone works in units of its own
    backbone = replace(today.filter.backbone, mean=today.filter.backbone.mean / 2.0)
    theta = backbone.model.theta.copy()
    theta[-1] /= 2.0
    parts = {
        "rule": rule,
        "backbone": replace(backbone, model=replace(backbone.model, theta=theta)),
        "warmup": 50,
        "standardize": True,
        "cold": False,
        "sensors": today.sensors,
        "shift": np.zeros(4),
        "scale": scale,
        "history": history,
        "seen": 2,
        "state": state,
        "usual": None,
    }
    assert set(parts) == set(STORED)
    save_folder(tmp_path / "model", parts)
    old = load_predictor(tmp_path / "model")
    assert old.filter.name == name.partition("+")[0]
    expected, found = today.run(panel[1200:1230]), old.run(panel[1200:1230])
    np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-9)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-9)
    np.testing.assert_array_equal(found.inside, expected.inside)
    old.save(tmp_path / "model")
    np.testing.assert_allclose(load_predictor(tmp_path / "model").predict().bounds, old.predict().bounds)
