"""What every filter must keep: run equals stepping, laws never see their own reading, states are values."""

import functools

import numpy as np
import pytest

from jointset.datasets import generate_grssf
from jointset.filters import GNF, GraphLGSSM, PooledFilter
from jointset.filters.bounded import BoundedFilter
from jointset.filters.residual import ResidualFilter
from jointset.filters.scaled import ScaledFilter
from jointset.filters.static import StaticFilter
from jointset.filters.var import VARFilter
from jointset.residuals.conditional import Local
from jointset.residuals.correlations import FactorCorrelations
from jointset.residuals.shapes import EWMA, Rolling
from jointset.storage import pack, unpack

FILTERS = {
    "kalman": GraphLGSSM(),
    "kalman from data": GraphLGSSM(obs_noise_frac=0.1),
    "kalman tuned": GraphLGSSM(tune=True),
    "static": StaticFilter(),
    "ewma": ResidualFilter(shape=EWMA(half_life=50, refresh=64), name="ewma"),
    "rolling": ResidualFilter(shape=Rolling(window=100, refresh=32), name="rolling"),
    "local": ResidualFilter(shape=Local(k=30), name="local"),
    "pool": PooledFilter([GraphLGSSM(), ResidualFilter(shape=EWMA(half_life=50), name="ewma")], [0.3, 0.7]),
    "pool of learned": PooledFilter([GNF(node=True, rank=r, steps=3) for r in (0, 2)], [0.5, 0.5]),
    "var": VARFilter(),
    "var of factors": VARFilter(FactorCorrelations()),
    "bounded": BoundedFilter(GraphLGSSM()),
    "bounded ewma": BoundedFilter(ResidualFilter(shape=EWMA(half_life=50), name="ewma")),
    "scaled": ScaledFilter(GraphLGSSM(), 50.0, 12.0),
    "scaled whole": ScaledFilter(ResidualFilter(shape=EWMA(half_life=50), name="ewma"), 0.0, 12.0),
    "gnf": GNF(steps=8),
    "gnf-node": GNF(node=True, steps=8),
    "diag-gru": GNF(graph=False, rank=0, steps=8),
    "diag-gru of all sensors": GNF(pool=False, graph=False, rank=0, steps=8),
}


@pytest.fixture(scope="module")
def panel():
    return generate_grssf("B", n=10, seed=1, length=300).panel


@pytest.fixture(scope="module")
def filter_of(panel):
    """The filter of a name, fitted once for all that ask."""
    return functools.cache(lambda name: FILTERS[name].fit(panel))


@pytest.fixture(params=FILTERS)
def fitted(request, filter_of):
    return filter_of(request.param)


def gappy(values):
    values = values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.05] = np.nan
    values[100:102] = np.nan
    return values


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
def test_run_equals_stepping(fitted, panel, gaps):
    values = gappy(panel.values) if gaps else panel.values
    laws, last = fitted.run(values, fitted.start())
    state, steps = fitted.start(), []
    for y in values:
        law = fitted.law(state)
        steps.append((law.mean, law.variance, law.log_det))
        state = fitted.step(state, y)
    mean, variance, log_det = map(np.array, zip(*steps, strict=True))
    np.testing.assert_allclose(mean, laws.mean, atol=1e-11)
    np.testing.assert_allclose(variance, laws.variance, rtol=1e-11)
    np.testing.assert_allclose(log_det, laws.log_det, rtol=1e-11)
    np.testing.assert_allclose(fitted.law(state).mean, fitted.law(last).mean, atol=1e-11)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
def test_run_can_be_cut_anywhere(fitted, panel, gaps):
    values = gappy(panel.values) if gaps else panel.values
    whole, _ = fitted.run(values, fitted.start())
    for cut in (0, 1, 101, 299, 300):
        first, state = fitted.run(values[:cut], fitted.start())
        second, _ = fitted.run(values[cut:], state)
        np.testing.assert_allclose(np.concatenate([first.mean, second.mean]), whole.mean, atol=1e-11)
        np.testing.assert_allclose(np.concatenate([first.variance, second.variance]), whole.variance, rtol=1e-11)


@pytest.mark.parametrize("change", [1e6, np.nan], ids=["another reading", "missing"])
def test_a_law_never_sees_its_own_reading(fitted, panel, change):
    """Changing Y_t and everything after it leaves the laws up to t bit-equal, in run and in step."""
    before, _ = fitted.run(panel.values, fitted.start())
    state = fitted.start()
    for t, y in enumerate(panel.values):
        if t in (0, 1, 150, 299):
            changed = panel.values.copy()
            changed[t:] = change
            after, _ = fitted.run(changed, fitted.start())
            np.testing.assert_array_equal(before.mean[: t + 1], after.mean[: t + 1])
            np.testing.assert_array_equal(before.variance[: t + 1], after.variance[: t + 1])
            np.testing.assert_array_equal(before.log_det[: t + 1], after.log_det[: t + 1])
            law = fitted.law(state)
            fitted.step(state, changed[t])
            np.testing.assert_array_equal(fitted.law(state).mean, law.mean)
        state = fitted.step(state, y)


def test_states_are_values(fitted, panel):
    state = fitted.start()
    for y in gappy(panel.values)[:120]:
        state = fitted.step(state, y)
    arrays = {}
    copied = unpack(pack(state, arrays), arrays)
    y = panel.values[120]
    np.testing.assert_array_equal(fitted.law(fitted.step(state, y)).mean, fitted.law(fitted.step(copied, y)).mean)


def test_a_fitted_filter_survives_storage(fitted, panel):
    arrays = {}
    back = unpack(pack(fitted, arrays), arrays)
    np.testing.assert_array_equal(
        back.run(panel.values, back.start())[0].mean, fitted.run(panel.values, fitted.start())[0].mean
    )


# the pooled heads are drawn sensor by sensor: for them another order is another seed
@pytest.mark.parametrize(
    "fitted", [name for name in FILTERS if name != "gnf" and not name.startswith("diag-gru")], indirect=True
)
def test_permuted_sensors_give_permuted_laws(request, fitted, panel):
    trained = {type(one) for one in getattr(fitted, "members", [fitted])} == {GNF}
    tolerance = 1e-3 if trained else 1e-9  # trained in float32
    order = np.random.default_rng(0).permutation(panel.n_sensors)
    permuted = panel.select(order)
    other = FILTERS[request.node.callspec.params["fitted"]].fit(permuted)
    laws, _ = fitted.run(panel.values, fitted.start())
    laws_permuted, _ = other.run(permuted.values, other.start())
    np.testing.assert_allclose(laws_permuted.mean, laws.mean[:, order], atol=tolerance)
    np.testing.assert_allclose(laws_permuted.variance, laws.variance[:, order], rtol=tolerance)
