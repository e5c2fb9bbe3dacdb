"""sktime: its own checks, and what its intervals mean. In an environment of its own: `make test-sktime`."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sktime", reason="sktime wants older pandas than constraints.txt pins: make test-sktime")

import jointset
from jointset.adapters import JointForecaster


@pytest.fixture(scope="module")
def y():
    values = jointset.generate_grssf("A", n=8, length=600).panel.values[:, :3]
    return pd.DataFrame(values, columns=list("abc"))


def test_the_checks_of_sktime():
    from sktime.utils.estimator_checks import check_estimator

    found = check_estimator(JointForecaster, raise_exceptions=False, verbose=False)
    assert len(found) > 500 and {name: said for name, said in found.items() if said != "PASSED"} == {}


def test_intervals_are_the_ends_of_the_joint_set(y):
    forecaster = JointForecaster("kalman").fit(y, fh=[1, 3])
    found = forecaster.predict_interval(coverage=[0.8, 0.9])
    same = jointset.predictor("kalman", warmup=1).fit(y[:300]).calibrate(y[300:], horizon=3)
    np.testing.assert_allclose(found.xs(0.9, level=1, axis=1).iloc[0, ::2], same.predict().bounds[0], rtol=1e-9)
    assert list(found.index) == [600, 602]
    wider = found.xs(0.9, level=1, axis=1).to_numpy() - found.xs(0.8, level=1, axis=1).to_numpy()
    assert (wider[:, ::2] < 0).all() and (wider[:, 1::2] > 0).all()


def test_intervals_hold_all_series_at_once(y):
    forecaster, inside = JointForecaster("kalman", calibration_share=0.4).fit(y[:400], fh=[1]), []
    for t in range(400, 600, 2):
        found = forecaster.predict_interval(coverage=0.9)
        row = y.iloc[t].to_numpy()
        inside.append(((found.to_numpy()[0, ::2] <= row) & (row <= found.to_numpy()[0, 1::2])).all())
        forecaster.update(y[t : t + 2])
    assert np.mean(inside) > 0.85


def test_too_few_rows_give_infinite_intervals_and_say_so(y):
    forecaster = JointForecaster("kalman").fit(y[:20], fh=[1])
    with pytest.warns(UserWarning, match="intervals of 99 % are infinite: 10 calibration scores"):
        assert np.isinf(forecaster.predict_interval(coverage=0.99).to_numpy()).all()


def test_quantiles_and_variances(y):
    forecaster = JointForecaster("kalman").fit(y, fh=[1])
    quantiles = forecaster.predict_quantiles(alpha=[0.05, 0.5, 0.95]).to_numpy().reshape(3, 3)
    assert (np.diff(quantiles, axis=1) > 0).all()
    np.testing.assert_allclose(quantiles[:, 1], forecaster.predict().to_numpy()[0])
    assert (forecaster.predict_var().to_numpy() > 0).all()


def test_the_law_itself(y):
    pytest.importorskip("skpro", reason="predict_proba needs skpro, of the extra sktime")
    forecaster = JointForecaster("kalman").fit(y, fh=[1])
    law = forecaster.predict_proba()
    np.testing.assert_allclose(law.mean(), forecaster.predict())
    np.testing.assert_allclose(law.var(), forecaster.predict_var())
