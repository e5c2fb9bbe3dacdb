"""The default: what it is made of, that its choices see held-out rows only, and what it does without clock or rows."""

import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from jointset import Panel, generate_grssf
from jointset.algebra.pooling import best_weights
from jointset.errors import InputError
from jointset.filters.default import DefaultFilter
from jointset.filters.held_out import held_out
from jointset.filters.kalman import GraphLGSSM
from jointset.filters.node_net import NodeNet
from jointset.filters.pool import PooledFilter
from jointset.filters.residual import ResidualFilter
from jointset.filters.var import VARFilter
from jointset.filters.whitened import WhitenedFilter
from jointset.laws import LowRankLaw
from jointset.methods import predictor_for

STEPS = 6  # of training


@pytest.fixture(scope="module")
def network():
    return generate_grssf("B", n=8, seed=0, length=1200).panel


@pytest.fixture(scope="module")
def equal():
    """Weights are not searched: every member is heard, also one that could not learn much in a few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jointset.filters.pool.best_weights", lambda laws, sizes, y, tried: tried[1])
        yield


@pytest.fixture(scope="module")
def fitted(network, equal):
    return DefaultFilter(steps=STEPS).fit(network[:900])


def test_it_is_a_pool_of_members_of_both_kinds_and_the_instant_experts(fitted):
    pool = pool_of(fitted)
    assert isinstance(pool, PooledFilter) and abs(pool.weights.sum() - 1) < 1e-9
    nets, *experts = pool.members
    assert nets.apart and nets.identities == (False, True)
    assert [type(getattr(one, "inner", one)) for one in experts] == [VARFilter, ResidualFilter, GraphLGSSM]


def test_of_many_sensors_every_law_is_of_low_rank(equal):
    wide = generate_grssf("B", n=70, seed=0, length=520).panel
    pool = pool_of(DefaultFilter(steps=2).fit(wide))
    assert [type(getattr(one, "inner", one)) for one in pool.members[1:]] == [VARFilter, ResidualFilter]
    assert all(isinstance(one.law(one.start()), LowRankLaw) for one in (pool, *pool.members[1:]))
    rows = wide.values[:5].copy()
    rows[1, :30], rows[3] = np.nan, np.nan
    laws, after = pool.run(rows, pool.start())
    state = pool.start()
    for t, y in enumerate(rows):
        np.testing.assert_allclose(pool.law(state).variance, laws[t].variance, rtol=1e-9)
        state = pool.step(state, y)
    np.testing.assert_allclose(pool.law(state).variance, pool.law(after).variance, rtol=1e-9)


def test_only_members_with_a_weight_are_kept(network, monkeypatch):
    monkeypatch.setattr("jointset.filters.pool.best_weights", best_weights)
    pool = pool_of(DefaultFilter(steps=2).fit(network[:900]))
    assert (pool.weights > 0).all() and len(pool.weights) < 5


def test_an_expert_that_cannot_be_fitted_is_left_out(network, equal, monkeypatch):
    def refuse(self, panel):
        raise InputError("no graph of this kind")

    monkeypatch.setattr(GraphLGSSM, "fit", refuse)
    with pytest.warns(UserWarning, match="left out of the pool: .*no graph of this kind"):
        pool = pool_of(DefaultFilter(steps=2).fit(network[:700]))
    assert [type(getattr(one, "inner", one)) for one in pool.members[1:]] == [VARFilter, ResidualFilter]


def test_one_pass_for_all_members_gives_what_each_alone_gives(network, fitted, same):
    pool = pool_of(fitted)
    nets, *experts = pool.members
    alone = replace(pool, members=(*nets.split(), *experts))
    rows = network.values[900:960]
    same(pool.run(rows, pool.start())[0].mean, alone.run(rows, alone.start())[0].mean)
    silent = replace(pool, weights=np.array([0.0, 0.4, 0.6, 0.0, 0.0]))
    few = replace(alone, weights=np.array([0.0, 0.4, 0.6, 0.0, 0.0]))
    same(silent.run(rows, pool.start())[0].mean, few.run(rows, alone.start())[0].mean)
    same(silent.law(silent.start()).mean, few.law(few.start()).mean)


def pool_of(fitted):
    return fitted.inner if isinstance(fitted, WhitenedFilter) else fitted


def test_members_do_not_see_the_rows_that_weigh_them(network, equal, monkeypatch):
    """Other readings in the held-out rows change the weights and the expert, never the members that are weighed."""
    rows = network[:900]
    early, _ = held_out(rows)
    changed = rows.values.copy()
    changed[len(early) :] *= 1.5
    monkeypatch.setattr("jointset.filters.members.trained_further", lambda nets, *_: nets)
    pools = [pool_of(DefaultFilter(steps=STEPS).fit(panel)) for panel in (rows, rows.with_values(changed))]
    first, second = (pool.members[0].weights.out_weight for pool in pools)
    np.testing.assert_array_equal(first, second)


def test_members_then_go_on_with_all_rows(network, fitted):
    """The steps on all rows change the weights a little, and those of sensors alike stay alike."""
    before = NodeNet(steps=STEPS).fit(held_out(network[:900])[0]).split()
    for one, then in zip(pool_of(fitted).members[0].split(), before, strict=True):
        moved = np.abs(one.weights.out_weight - then.weights.out_weight).max()
        assert 0 < moved < 0.1
        assert one.weights.identity.any() == then.weights.identity.any()


def test_a_fit_that_is_killed_goes_on_where_it_was(network, fitted, tmp_path, monkeypatch):
    """Killed in the run on all rows, it does not train on the first ones again; at the end nothing is left behind."""

    def killed(step, total, loss):
        assert total == STEPS + 2 + 1  # the last stands for what follows training
        if step > STEPS:
            raise KeyboardInterrupt

    file = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        DefaultFilter(steps=STEPS).fit(network[:900], progress=killed, checkpoint=file)
    assert file.exists()
    told = []
    again = DefaultFilter(steps=STEPS).fit(network[:900], progress=lambda *at: told.append(at), checkpoint=file)
    assert told[0][0] > STEPS and not list(tmp_path.iterdir())
    np.testing.assert_array_equal(
        pool_of(again).members[0].weights.out_weight, pool_of(fitted).members[0].weights.out_weight
    )


def test_few_rows_are_left_to_the_instant_experts(network):
    with pytest.warns(UserWarning, match="300 rows are too few to train on"):
        fitted = DefaultFilter().fit(network[:300])
    assert fitted.law(fitted.start()).mean.shape == (8,)


def test_two_sensors_without_graph_and_clock(network):
    bare = Panel(network.values[:, :2], ["a", "b"])
    predictor = predictor_for("default:box", training={"steps": 5}).fit(bare[:700]).calibrate(bare[700:1000])
    run = predictor.run(bare[1000:])
    assert 0.8 < run.joint <= 1.0 and np.ptp(run.radius) > 0  # the radius adapts


def test_all_members_start_at_the_row_after_the_training_rows(network, equal):
    hours = 3600 * np.arange(700)
    fitted = DefaultFilter(steps=2).fit(Panel(network.values[:700], network.sensors, hours))
    pool = pool_of(fitted)
    assert [state.next for state in pool.start().members[:2]] == [3600 * 700] * 2


def test_a_live_step_makes_few_calls(network, fitted):
    """On small networks a step is calls of small functions: their number is its time, and is the same everywhere."""
    filter_ = WhitenedFilter(PooledFilter(pool_of(fitted).members, np.full(5, 0.2), frozen=True))
    state, calls = filter_.start(), []
    for y in network.values[900:905]:
        calls.append(0)
        sys.setprofile(lambda frame, event, arg: calls.__setitem__(-1, calls[-1] + event.endswith("call")))
        filter_.law(state)
        state = filter_.step(state, y)
        sys.setprofile(None)
    assert calls[-1] < 660


@pytest.mark.parametrize("size", [1e10, 1e30])
def test_absurd_readings_leave_positive_definite_laws(network, fitted, size):
    """Members then disagree by so much that rounding swamps what else is in the covariance."""
    pool = pool_of(fitted)
    equal = PooledFilter(pool.members, np.full(5, 0.2), frozen=True)
    rows = network.values[900:940].copy()
    rows[10, 3] = size
    for filter_ in (equal, WhitenedFilter(equal)):
        laws, _ = filter_.run(rows, filter_.start())
        assert np.isfinite(laws.mahalanobis(rows)).all() and np.isfinite(laws.nll(rows)).all()


def test_whitening_finds_correlations_that_the_law_does_not_have():
    """Independent laws around readings with correlation 0.8: the running shape comes near to it."""
    rng = np.random.default_rng(0)
    noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 3000)
    inner = _Independent()
    white = WhitenedFilter(inner, 300.0, shrink=0.0)
    laws, _ = white.run(noise, white.start())
    last = laws[-1].covariance.matrix
    assert abs(last[0, 1] / np.sqrt(last[0, 0] * last[1, 1]) - 0.8) < 0.08
    again = white.start()
    for y in noise[:50]:
        law = white.law(again)
        again = white.step(again, y)
    np.testing.assert_allclose(law.covariance.matrix, laws[49].covariance.matrix, rtol=1e-10)


def test_whitening_with_gaps_moves_little_and_stays_whole():
    rng = np.random.default_rng(1)
    noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 6000)
    noise[rng.random(noise.shape) < 0.3] = np.nan
    noise[5] = np.nan
    white = WhitenedFilter(_Independent(), 300.0, shrink=0.0)
    laws, _ = white.run(noise, white.start())
    last = laws[-1].covariance.matrix
    assert abs(last[0, 1] / np.sqrt(last[0, 0] * last[1, 1]) - 0.8) < 0.15  # gaps make it a little weaker
    np.testing.assert_array_equal(laws[5].covariance.matrix, laws[6].covariance.matrix)


class _Independent:
    """Standard normal laws."""

    def start(self):
        return ()

    def law(self, state):
        from jointset.laws import LowRankLaw

        return LowRankLaw(np.zeros(2), np.ones(2), np.zeros((2, 0)))

    def step(self, state, y):
        return state

    def run(self, values, state):
        from jointset.laws import LowRankLaw

        return LowRankLaw(np.zeros(values.shape), np.ones(values.shape), np.zeros((*values.shape, 0))), state
