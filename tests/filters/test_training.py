"""The training engine: gradients, independent seeds, repeatability, resuming, and a loss that blows up."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jointset.algebra import lowrank  # noqa: E402
from jointset.errors import InputError  # noqa: E402
from jointset.filters import recurrent_cells as cells  # noqa: E402
from jointset.filters.gnf_training import NodeModel, PooledModel  # noqa: E402
from jointset.filters.initial import orthogonal  # noqa: E402
from jointset.filters.likelihood import low_rank_nll  # noqa: E402
from jointset.filters.recipes import Recipe, rate_factor  # noqa: E402
from jointset.filters.recurrence import pooled_states  # noqa: E402
from jointset.filters.training import last_seen, train  # noqa: E402
from jointset.graph import normalized_shift  # noqa: E402

N = 5


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    values = np.zeros((300, N))
    for t in range(1, 300):
        values[t] = 0.7 * values[t - 1] + rng.normal(size=N)
    return values


@pytest.fixture(scope="module")
def shift():
    A = np.ones((N, N)) - np.eye(N)
    A[0, 3] = A[3, 0] = 0
    return normalized_shift(A)


MODELS = {"pooled": PooledModel, "node": NodeModel}


@pytest.fixture(params=MODELS)
def model(request, shift):
    return MODELS[request.param](N, 2, 8, shift)


def random_law(rank, seed=0):
    gen = torch.Generator().manual_seed(seed)
    e = torch.randn(3, 6, dtype=torch.double, generator=gen, requires_grad=True)
    d = (torch.rand(3, 6, dtype=torch.double, generator=gen) + 0.3).requires_grad_()
    L = torch.randn(3, 6, rank, dtype=torch.double, generator=gen, requires_grad=True)
    return e, d, L


@pytest.mark.parametrize("rank", [0, 1, 4])
@pytest.mark.parametrize("gaps", [False, True])
def test_likelihood_gradients_equal_finite_differences(rank, gaps):
    parts = random_law(rank)
    seen = torch.ones(3, 6, dtype=torch.double)
    seen[0, 2] = seen[1, 0] = 0
    assert torch.autograd.gradcheck(lambda *x: low_rank_nll(*x, seen if gaps else None), parts)


@pytest.mark.parametrize("rank", [1, 4])
def test_likelihood_equals_torch_dense_and_the_shared_algebra(rank):
    e, d, L = random_law(rank)
    constant = 0.5 * 6 * np.log(2 * np.pi)
    zero = torch.zeros(6, dtype=torch.double)
    reference = torch.distributions.LowRankMultivariateNormal(zero, L, d)
    torch.testing.assert_close(low_rank_nll(e, d, L), -reference.log_prob(e) - constant)
    dense = torch.distributions.MultivariateNormal(zero, torch.diag_embed(d) + L @ L.mT)
    torch.testing.assert_close(low_rank_nll(e, d, L), -dense.log_prob(e) - constant)
    ours = torch.autograd.grad(low_rank_nll(e, d, L).sum(), (e, d, L))
    theirs = torch.autograd.grad(-dense.log_prob(e).sum(), (e, d, L))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(low_rank_nll(e, d, L), lowrank.nll(e, 1 / d, L))


def test_the_float32_likelihood_does_not_cancel_at_the_floor():
    """With d at its floor and a strong factor, value and algebra in float32 stay near float64."""
    rng = np.random.default_rng(0)
    L = 10 * rng.normal(size=(200, 20, 4))
    e = (L @ rng.normal(size=(200, 4, 1)))[..., 0] + 0.01 * rng.normal(size=(200, 20))
    d = np.full((200, 20), 1e-4)
    exact = low_rank_nll(*(torch.tensor(x) for x in (e, d, L)))
    single = low_rank_nll(*(torch.tensor(x, dtype=torch.float32) for x in (e, d, L)))
    assert float((single - exact).abs().max()) < 2.0  # nats; the cancelling form is wrong by tens


def test_recurrence_equals_the_cell_step_by_step_with_its_gradients():
    gen = torch.Generator().manual_seed(0)
    gates = torch.randn(2, 5, 3, 12, dtype=torch.double, generator=gen, requires_grad=True)
    W = torch.randn(2, 4, 12, dtype=torch.double, generator=gen, requires_grad=True)

    def plain(gates, W):
        h, out = gates.new_zeros(2, 3, 4), []
        for t in range(5):
            h = cells.pooled_step(gates[:, t], h, W)
            out.append(h)
        return torch.stack(out, 1)

    torch.testing.assert_close(pooled_states(gates, W), plain(gates, W))
    assert torch.autograd.gradcheck(pooled_states, (gates, W))


def test_parameter_counts_are_the_papers():
    weights = PooledModel(20, 4, 32, None).initial(np.random.default_rng(0))
    count = {name: np.size(w) for name, w in weights._asdict().items()}
    assert count["graph_weight"] + count["graph_bias"] == 64
    assert count["input_weight"] + count["hidden_weight"] + count["gate_bias"] == 6240
    assert count["head_weight"] + count["head_bias"] == (2 * 20 + 20 * 4) * 32 + (2 * 20 + 20 * 4)


def test_initial_weights_follow_the_paper():
    rng = np.random.default_rng(0)
    weights = PooledModel(6, 4, 32, None).initial(rng)
    for part in np.split(weights.hidden_weight, 3, axis=1):
        np.testing.assert_allclose(part @ part.T, np.eye(32), atol=1e-12)
    assert np.abs(weights.input_weight).max() <= np.sqrt(6 / 64)
    np.testing.assert_array_equal(weights.gate_bias[0], np.repeat([0.0, 1.0, 0.0], 32))
    Q = orthogonal(rng, 7)
    np.testing.assert_allclose(Q @ Q.T, np.eye(7), atol=1e-12)


def equal(a, b, **tolerance):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, **(tolerance or {"rtol": 0, "atol": 0}))


RECIPE = Recipe(steps=120, batch=4, window=10, rate=5e-3, clip="norm")
SHORT = replace(RECIPE, steps=60)


def test_training_is_repeatable(model, series):
    a, b = (train(model, series, SHORT, [3]) for _ in range(2))
    equal(a.weights[0], b.weights[0])
    assert a.losses[-1, 0] < a.losses[0, 0]


def test_a_seed_does_not_depend_on_its_company(model, series):
    alone = train(model, series, SHORT, [3]).weights[0]
    company = train(model, series, SHORT, [0, 3, 7]).weights
    equal(alone, company[1], rtol=1e-4, atol=1e-5)  # products of several seeds may round differently
    assert not np.allclose(company[0][0], company[1][0])


@pytest.mark.parametrize(("rows", "parts"), [(11, 1), (20, 1), (21, 2), (30, 2), (31, 3), (200, 5)])
def test_a_part_in_order_has_whole_windows_and_the_row_after_each(rows, parts):
    assert Recipe(batch=5, window=10, in_order=True).for_rows(rows).batch == parts


class Killed(Exception):
    pass


@pytest.mark.parametrize("in_order", [False, True], ids=["windows", "in order"])
def test_a_killed_run_resumes_to_the_same_result(shift, series, tmp_path, in_order):
    model = NodeModel(N, 2, 8, shift)
    recipe = Recipe(steps=100, batch=1 if in_order else 4, window=10, in_order=in_order, skip_share=0.1)
    whole = train(model, series, recipe, [0, 1])
    path = tmp_path / "run.checkpoint"

    def kill(step, total, loss):
        if step > 60:
            raise Killed

    with pytest.raises(Killed):
        train(model, series, recipe, [0, 1], checkpoint=path, checkpoint_every=50, progress=kill)
    assert path.exists()
    resumed = train(model, series, recipe, [0, 1], checkpoint=path, checkpoint_every=50)
    for a, b in zip(whole.weights, resumed.weights, strict=True):
        equal(a, b)
    np.testing.assert_array_equal(whole.losses, resumed.losses)
    assert not path.exists()


def test_a_killed_run_goes_on_from_its_last_checkpoint(shift, series, tmp_path):
    model, recipe = NodeModel(N, 1, 4, shift), Recipe(steps=250, batch=1, window=4)
    path, begun = tmp_path / "run.checkpoint", []

    def kill(step, total, loss):
        if step > 150:
            raise Killed

    with pytest.raises(Killed):
        train(model, series, recipe, [0], checkpoint=path, checkpoint_every=100, progress=kill)
    train(model, series, recipe, [0], checkpoint=path, progress=lambda step, *_: begun.append(step))
    assert begun == [150, 200, 250]  # after 100 steps one was kept, the next would have been after 200


def test_a_checkpoint_of_another_run_is_refused(model, series, tmp_path):
    path = tmp_path / "run.checkpoint"

    def kill(step, total, loss):
        if step > 60:
            raise Killed

    with pytest.raises(Killed):
        train(model, series, RECIPE, [0], checkpoint=path, checkpoint_every=50, progress=kill)
    with pytest.raises(InputError, match="another run"):
        train(model, series, RECIPE, [1], checkpoint=path)
    other = type(model)(N, 2, 8, np.eye(N))
    with pytest.raises(InputError, match="another run"):
        train(other, series, RECIPE, [0], checkpoint=path)
    path.write_bytes(b"rubbish")
    with pytest.raises(InputError, match="cannot be read"):
        train(model, series, RECIPE, [0], checkpoint=path)


def test_a_loss_that_is_not_finite_stops_its_seed_and_keeps_the_last_good_weights(shift, series):
    class Fragile(PooledModel):
        """Seed 1 meets a broken loss after a while."""

        calls = 0

        def loss(self, weights, windows, state, skip, gaps):
            loss, after = super().loss(weights, windows, state, skip, gaps)
            self.calls += 1
            factor = torch.tensor([1.0, float("nan") if self.calls > 60 else 1.0])
            return loss * factor, after

    out = train(Fragile(N, 2, 8, shift), series, RECIPE, [0, 1])
    assert out.stopped == {1: 100}
    assert all(np.isfinite(w).all() for weights in out.weights for w in weights)
    calm = train(PooledModel(N, 2, 8, shift), series, RECIPE, [0, 1])
    equal(calm.weights[0], out.weights[0], rtol=1e-5, atol=1e-6)
    short = train(
        PooledModel(N, 2, 8, shift), series, Recipe(steps=50, batch=4, window=10, rate=5e-3, clip="norm"), [1]
    )
    equal(short.weights[0], out.weights[1], rtol=1e-5, atol=1e-6)


def test_missing_readings_train_like_their_marginal_law(model, series):
    gappy = series.copy()
    gappy[np.random.default_rng(1).random(gappy.shape) < 0.2] = np.nan
    out = train(model, gappy, SHORT, [0])
    assert not out.stopped and out.losses[-1, 0] < out.losses[0, 0]


def test_clipping_acts_on_each_seed_alone(model, series):
    tight = Recipe(steps=50, batch=4, window=10, clip="norm", limit=1e-3)
    equal(
        train(model, series, tight, [3]).weights[0],
        train(model, series, tight, [9, 3]).weights[1],
        rtol=1e-3,
        atol=1e-5,
    )


def test_schedules():
    assert rate_factor("constant", 7, 100) == 1.0
    curve = [rate_factor("cosine", step, 100) for step in range(100)]
    assert max(curve) == curve[4] == 1.0 and curve[0] == 0.2 and curve[-1] < 0.01


def test_a_series_shorter_than_a_window_is_refused(model, series):
    with pytest.raises(InputError, match="fewer than one window"):
        train(model, series[:10], RECIPE, [0])


def test_gaps_of_a_window_hold_the_last_reading_on_any_axis_of_time():
    values = torch.tensor([[float("nan"), 1.0], [2.0, float("nan")], [float("nan"), 3.0]])  # (time, sensor)
    wanted = torch.tensor([[0.0, 1.0], [2.0, 1.0], [2.0, 3.0]])
    windows = torch.stack([values, values.flip(0)])  # (batch, time, sensor)
    assert torch.equal(last_seen(windows[None], 2)[0, 0], wanted)
    assert torch.equal(last_seen(windows.transpose(0, 1)[None], 1)[0, :, 0], wanted)


@pytest.mark.parametrize("kind", [PooledModel, NodeModel])
def test_a_gap_in_a_training_window_is_its_predicted_mean_as_in_later_rows(kind):
    model, rng = kind(3, 2, 4, np.eye(3)), np.random.default_rng(0)
    weights = type(first := model.initial(rng))(*(torch.as_tensor(x)[None].double() for x in first))
    windows = torch.as_tensor(rng.normal(size=(1, 2, 5, 3)))
    state = model.zero_state(1, 2).double()
    mean = model.laws(weights, windows.transpose(1, 2)[:, :-1], state)[0]
    expected, gap = windows.clone(), windows.clone()
    expected[:, :, 2, 1], gap[:, :, 2, 1] = mean[:, 1, :, 1], torch.nan
    found, wanted = (model.loss(weights, rows, state, 2, True)[0] for rows in (gap, expected))  # of rows after the gap
    torch.testing.assert_close(found, wanted)
