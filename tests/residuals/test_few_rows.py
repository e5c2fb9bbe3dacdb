"""Components with fewer rows than directions: a shrunk covariance instead of a refusal, and sets that still cover."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf as peer

from jointset import generate_grssf
from jointset.methods import predictor_for
from jointset.residuals.shrinkage import ledoit_wolf

N = 60


@pytest.fixture(scope="module")
def blocks():
    panel = generate_grssf("A", n=N, seed=1, length=2000).panel
    return panel[:60], panel[60:1000], panel[1000:]


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_shrinkage_equals_scikit_learn(shape):
    rows = np.random.default_rng(0).normal(size=shape) * np.linspace(0.3, 3, shape[1])
    S, weight = ledoit_wolf(rows)
    wanted, wanted_weight = peer(rows, assume_centered=True)
    assert weight == pytest.approx(wanted_weight, rel=1e-9)
    np.testing.assert_allclose(S, wanted * len(rows) / (len(rows) - 1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "rows"), [("factor", 45), ("group", 14), ("spectral", 14), ("per-group-factor", 14)]
)
def test_fewer_rows_than_directions_are_enough(method, rows, blocks):
    train, calibration, test = blocks
    predictor = predictor_for(method)
    with pytest.warns(UserWarning, match="shrunk"):
        predictor.fit(train[:rows])
    run = predictor.calibrate(calibration).run(test)
    assert 0.86 < run.joint < 0.95  # fresh calibration scores: 0.9, and the spread of 1,000 test rows
    assert np.isfinite(run.log_volume).all()


def test_enough_rows_are_not_shrunk(recwarn):
    panel = generate_grssf("A", n=20, seed=1, length=500).panel
    predictor_for("factor").fit(panel)
    assert not any("shrunk" in str(one.message) for one in recwarn)


@pytest.mark.filterwarnings("ignore:.*shrunk")
def test_the_order_of_the_sensors_does_not_matter(blocks):
    """Directions in which the rows do not vary have no axes of their own: whichever are taken, the set is the same."""
    order = np.random.default_rng(0).permutation(N)
    plain, turned = (
        predictor_for("factor").fit(pick(blocks[0])).calibrate(pick(blocks[1])).run(pick(blocks[2]))
        for pick in (lambda panel: panel, lambda panel: panel.select(order))
    )
    np.testing.assert_allclose(turned.score, plain.score, rtol=1e-7)
    np.testing.assert_allclose(turned.upper, plain.upper[:, order], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(turned.log_volume, plain.log_volume, rtol=1e-9)
