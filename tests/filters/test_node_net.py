"""The learned members of the default: laws step by step and at once, gaps, the clock, training and its guards."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

torch = pytest.importorskip("torch")

from jointset import GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf  # noqa: E402
from jointset.filters.likelihood import low_rank_terms  # noqa: E402
from jointset.filters.node_net import NodeNet  # noqa: E402
from jointset.filters.node_net_training import NodeNetModel, kept_patterns, outage_patterns  # noqa: E402
from jointset.filters.recipes import dropout_for  # noqa: E402
from jointset.filters.training import train  # noqa: E402

HOURS = 3600 * np.arange(400)


@pytest.fixture(scope="module")
def clocked():
    return Panel(generate_grssf("B", n=8, seed=1, length=400).panel.values, [f"s{i}" for i in range(8)], HOURS)


@pytest.fixture(scope="module")
def net(clocked):
    return NodeNet(steps=20).fit(clocked)


@pytest.mark.parametrize("gaps", [False, True])
def test_steps_are_the_run(net, clocked, gaps, same):
    values = clocked.values[:60].copy()
    if gaps:
        values[np.random.default_rng(0).random(values.shape) < 0.3] = np.nan
        values[20] = np.nan
    laws, after = net.run(values, net.start(), HOURS[:60])
    state = net.expect(net.start(), int(HOURS[0]))
    for t, y in enumerate(values):
        law = net.law(state)
        same(law.mean, laws.mean[t])
        same(law.factor, laws[t].factor)
        state = net.step(state, y)
    for one, other in zip(state, after, strict=True):
        same(one, other)


def test_blocks_of_a_run_change_no_digit(net, clocked, monkeypatch):
    whole = net.run(clocked.values[:60], net.start(), HOURS[:60])[0]
    monkeypatch.setattr("jointset.filters.node_net.CACHE", 1)
    np.testing.assert_array_equal(net.run(clocked.values[:60], net.start(), HOURS[:60])[0].mean, whole.mean)


def test_single_precision_is_the_network_of_the_training(net, clocked):
    """The laws are those of the same weights in double precision in PyTorch, to what single precision holds."""
    w = type(net.weights)(*(torch.tensor(np.asarray(x, float)) for x in net.weights))
    clock = torch.tensor(net.calendar.terms(HOURS[:41], 41))[None, :, None].repeat(2, 1, 1, 1)
    rows = torch.tensor(clocked.values[:40])[None, :, None].repeat(2, 1, 1, 1)
    model = NodeNetModel(8, clock.shape[-1], net.rank, net.width, net.shift, net.identities)
    mean = model.laws(w, rows, torch.zeros_like(rows, dtype=torch.bool), clock)[0]
    begin = net.start()._replace(last=clocked.values[0])  # the first change of a training window is none
    laws = replace(net, apart=True).run_laws(clocked.values[:40], begin, HOURS[:40])[0]
    for one, other in zip(laws, mean[:, :, 0].numpy(), strict=True):
        np.testing.assert_allclose(one.mean[1:], other[:-1], atol=1e-5)


def test_the_law_does_not_see_its_reading_but_the_next_one_does(net, clocked):
    values = clocked.values[:30].copy()
    values[10] += 3.0
    before, after = (net.run(rows, net.start(), HOURS[:30])[0] for rows in (clocked.values[:30], values))
    np.testing.assert_array_equal(before.mean[:11], after.mean[:11])
    assert np.abs(before.mean[11] - after.mean[11]).max() > 1.0


def test_the_clock_of_the_reading_to_come_matters(net):
    state = net.start()
    morning, evening = (net.law(net.expect(state, 3600 * hour)).mean for hour in (6, 18))
    assert np.abs(morning - evening).max() > 1e-6


def test_a_gap_keeps_the_last_value_and_says_that_it_is_old(net, clocked):
    state = net.run(clocked.values[:20], net.start(), HOURS[:20])[1]
    missing = clocked.values[20].copy()
    missing[3] = np.nan
    after = net.step(state, missing)
    assert after.last[3] == clocked.values[19, 3] and after.change[3] == 0.0
    assert after.seen.tolist() == [1, 1, 1, 0, 1, 1, 1, 1]


def test_members_without_identity_treat_sensors_alike(clocked):
    """Two sensors that swap their readings swap their laws, where the graph does not tell them apart."""
    panel = Panel(clocked.values[:, :2], ["a", "b"], HOURS, adjacency=1.0 - np.eye(2))
    alike, apart = (NodeNet(identities=(kind,), steps=10).fit(panel) for kind in (False, True))
    rows = panel.values[:30]
    for net, same in ((alike, True), (apart, False)):
        straight, swapped = (net.run(y, net.start(), HOURS[:30])[0].mean[-1] for y in (rows, rows[:, ::-1]))
        assert np.allclose(straight, swapped[::-1], atol=1e-9) == same


def test_pool_has_the_moments_of_its_members(net, clocked):
    whole = net.run(clocked.values[:40], net.start(), HOURS[:40])[0]
    parts = [one.run(clocked.values[:40], one.start(), HOURS[:40])[0] for one in net.split()]
    mean = (parts[0].mean + parts[1].mean) / 2
    np.testing.assert_allclose(whole.mean, mean, rtol=1e-5, atol=1e-6)  # single precision
    spread = (parts[0].mean - parts[1].mean) / 2
    covariance = (parts[0].dense() + parts[1].dense()) / 2 + spread[..., :, None] * spread[..., None, :]
    np.testing.assert_allclose(whole.dense(), covariance, rtol=1e-5, atol=1e-6)


def test_works_without_graph_and_clock_and_with_two_sensors():
    values = np.random.default_rng(0).standard_normal((120, 2)).cumsum(axis=0)
    net = NodeNet(steps=5).fit(Panel(values, ["a", "b"]))
    assert not net.follows_clock
    assert net.run(values[:9], net.start())[0].mean.shape == (9, 2)


def test_terms_and_their_derivatives_are_those_of_the_dense_law():
    rng = np.random.default_rng(0)
    e, d, L = (
        torch.tensor(x) for x in (rng.normal(size=(3, 5)), rng.uniform(0.5, 2, (3, 5)), rng.normal(size=(3, 5, 2)))
    )
    seen = torch.tensor(rng.integers(0, 2, (3, 5)).astype(float))
    for x in (e, d, L):
        x.requires_grad_()
    assert torch.autograd.gradcheck(lambda *x: low_rank_terms(*x, seen), (e, d, L))
    S = torch.diag_embed(d) + L @ L.mT
    distance, log_det = low_rank_terms(e, d, L)
    torch.testing.assert_close(distance, torch.einsum("ti,tij,tj->t", e, torch.linalg.inv(S), e))
    torch.testing.assert_close(log_det, torch.logdet(S))


def test_gaps_are_no_part_of_the_loss():
    """Readings that are not there may have been anything."""
    rng = np.random.default_rng(1)
    model = NodeNetModel(4, 0, 2, 8, None, (True,))
    weights = type(model.initial(rng))(*(torch.tensor(x)[None] for x in model.initial(rng)))
    windows = torch.tensor(np.concatenate([rng.normal(size=(1, 3, 13, 4)), np.zeros((1, 3, 13, 1))], -1))
    windows[0, 1, 5, 2] = float("nan")
    loss = model.loss(weights, windows, model.zero_state(1, 3), 2, True)[0]
    assert torch.isfinite(loss).all()
    changed = windows.clone()
    changed[0, 1, 12, 2] = float("nan")  # the last row is a target only
    assert model.loss(weights, changed, model.zero_state(1, 3), 2, True)[0] != loss


@pytest.mark.parametrize("gaps", [False, True])
def test_the_loss_is_the_density_of_student_s_t(gaps):
    """Mean of -log density over windows and steps after the first, a reading; of the sensors read where some were."""
    rng = np.random.default_rng(4)
    model = NodeNetModel(4, 0, 2, 8, None, (True,))
    weights = type(model.initial(rng))(*(torch.tensor(x)[None] for x in model.initial(rng)))
    values = rng.normal(size=(1, 3, 9, 4))
    values[0, :, 8, 1] = np.nan if gaps else 0.0  # a target only
    windows = torch.tensor(np.concatenate([values, np.zeros((1, 3, 9, 1))], -1))
    inputs = windows.transpose(1, 2)[:, :-1, :, :4]
    mean, scale, factor, tail = model.laws(weights, inputs, torch.isnan(inputs), windows.transpose(1, 2)[..., 4:4])
    found = []
    for t in range(2, 8):
        for b in range(3):
            m, d, L = (np.asarray(part[0, t, b]) for part in (mean, scale, scale[..., None] * factor))
            y = values[0, b, t + 1]
            S, read = np.diag(d**2) + L @ L.T, ~np.isnan(y)
            found.append(multivariate_t.logpdf(y[read], m[read], S[np.ix_(read, read)], float(tail[0])))
    loss = model.loss(weights, windows, model.zero_state(1, 3), 2, gaps)[0]
    np.testing.assert_allclose(float(loss[0]), -np.mean(found) / 4, rtol=1e-6)


def test_outages_hide_some_sensors_of_every_other_window():
    hidden = outage_patterns(50, 73, 0.1)
    failed = hidden.any(axis=1).mean(axis=1)
    assert not failed[::2].any() and abs(failed.mean() - 0.1) < 0.02
    assert outage_patterns(50, 73, 0.0) is None


def test_states_are_dropped_in_training_where_rows_are_few():
    assert [dropout_for(rows) for rows in (500, 3000, 4000, 5000, 40_000)] == [0.3, 0.3, 0.15, 0.0, 0.0]
    kept = kept_patterns(64, 0.3)
    assert abs((kept == 0).mean() - 0.3) < 0.01 and abs(kept.mean() - 1.0) < 0.02


def test_what_is_dropped_is_a_matter_of_the_window_and_of_the_sensor():
    """Sensors alike, without a graph: without dropout their laws are the same, with it they are not."""
    rng = np.random.default_rng(2)
    rows = torch.tensor(np.repeat(rng.normal(size=(1, 20, 3, 1)), 4, axis=-1))
    parts = rows, torch.zeros_like(rows, dtype=torch.bool), torch.zeros(1, 21, 3, 0, dtype=rows.dtype)
    begins = torch.tensor([[5, 5, 6]])
    for dropout in (0.0, 0.3):
        model = NodeNetModel(4, 0, 2, 8, None, (False,), dropout=dropout)
        weights = type(model.initial(rng))(*(torch.tensor(x)[None] for x in model.initial(rng)))
        plain, dropped = model.laws(weights, *parts)[1], model.laws(weights, *parts, begins)[1]
        assert torch.equal(plain, dropped) == (dropout == 0.0)
        assert torch.equal(dropped[..., 0], dropped[..., 1]) == (dropout == 0.0)
        shifted = model.laws(weights, *(torch.roll(x, 1, 2) for x in parts), torch.roll(begins, 1, 1))[1]
        torch.testing.assert_close(shifted, torch.roll(dropped, 1, 2))


def test_a_step_that_overflows_is_left_out(clocked):
    """Gradients of one seed that are not finite change neither its weights nor those of another."""

    class Odd(NodeNetModel):
        calls = 0

        def loss(self, *parts):
            loss, state = super().loss(*parts)
            self.calls += 1
            return loss * torch.tensor([float("inf") if self.calls == 3 else 1.0, 1.0]), state

    net = NodeNet(steps=10, identities=(True,))
    rows = np.hstack([clocked.values, np.arange(400)[:, None]])
    trained = train(Odd(8, 0, 2, 8, None, (True, True)), rows, net.schedule(400, 8), [0, 1])
    assert all(np.isfinite(x).all() for one in trained.weights for x in one)


def test_weights_that_are_kept_are_not_trained_again(clocked, tmp_path, monkeypatch):
    monkeypatch.setenv("JOINTSET_WEIGHTS", str(tmp_path))
    first = NodeNet(steps=5).fit_seeds(clocked, 2)
    monkeypatch.setattr("jointset.filters.training._Run.take", None)  # a step would fail
    again = NodeNet(steps=5).fit_seeds(clocked, 2)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.weights.out_weight, other.weights.out_weight)
    assert len(list(tmp_path.glob("*.npz"))) == 4
    with pytest.raises(TypeError):
        NodeNet(steps=6).fit(clocked)


def test_an_interrupted_training_ends_in_all_threads(clocked):
    """What the person at the terminal, or a progress function, raises ends the other member's training too."""

    def interrupt(step, total, loss):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NodeNet(steps=1_000_000, width=4, window=24, batch=2).fit(clocked, progress=interrupt)


def test_refuses_settings_that_make_no_filter():
    for options in (
        {"steps": 0},
        {"width": 0},
        {"identities": ()},
        {"skip": 72},
        {"seed": -1},
        {"outages": 1.5},
        {"dropout": 1.0},
    ):
        with pytest.raises(InputError):
            NodeNet(**options)
    with pytest.raises(InputError, match="not trained"):
        NodeNet().start()


@pytest.mark.slow
def test_comes_close_to_the_oracle():
    network = generate_grssf("A", n=8, seed=0, length=3000).panel
    start = 2200

    def nll(f):
        laws, _ = f.run(network.values, f.start())
        return laws[start:].nll(network.values[start:]).mean() / network.n_sensors

    learned = nll(NodeNet(steps=60, batch=8).fit(network[:start]))
    oracle = nll(GraphLGSSM().fit(network))
    assert oracle - 1e-3 < learned < oracle + 0.05


def test_goes_into_a_predictor(clocked, tmp_path):
    predictor = JointPredictor(NodeNet(steps=10)).fit(clocked[:250]).calibrate(clocked[250:350])
    predictor.save(tmp_path / "model")
    again = JointPredictor.load(tmp_path / "model")
    for one in (predictor, again):
        one.update(clocked.values[350])
    np.testing.assert_array_equal(predictor.predict().bounds, again.predict().bounds)
