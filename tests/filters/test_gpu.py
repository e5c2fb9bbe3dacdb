"""The GPU path equals the CPU path. Needs a CUDA device with Triton; skipped elsewhere."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no CUDA device here", allow_module_level=True)

from jointset.filters import recurrent_cells as cells  # noqa: E402
from jointset.filters.gnf_training import NodeModel, PooledModel  # noqa: E402
from jointset.filters.recipes import RECIPES, Recipe  # noqa: E402
from jointset.filters.training import train  # noqa: E402
from jointset.graph import normalized_shift  # noqa: E402

N = 20


@pytest.fixture(scope="module")
def shift():
    A = np.triu((np.random.default_rng(0).random((N, N)) < 0.2).astype(float), 1)
    return normalized_shift(A + A.T)


@pytest.fixture(scope="module")
def series():
    return np.random.default_rng(1).normal(size=(2000, N)).cumsum(0) * 0.05


def losses_and_gradients(model, windows, device, dtype):
    drawn = [model.initial(np.random.default_rng(s)) for s in range(3)]
    stacked = [torch.tensor(np.stack(x), dtype=dtype, device=device) for x in zip(*drawn, strict=True)]
    weights = cells.PooledWeights(*(w.requires_grad_() for w in stacked))
    state = model.zero_state(3, windows.shape[1]).to(device, dtype)
    loss, _ = model.loss(weights, torch.tensor(windows, dtype=dtype, device=device), state, 0, False)
    loss.sum().backward()
    return [loss.detach().cpu().double(), *(w.grad.cpu().double() for w in weights)]


@pytest.mark.parametrize("rank", [0, 2, 4])
def test_kernels_equal_float64(series, shift, rank):
    model = PooledModel(N, rank, 32, shift)
    starts = np.random.default_rng(2).integers(0, 1900, (3, 64))
    windows = series[starts[..., None] + np.arange(25)]
    exact = losses_and_gradients(model, windows, "cpu", torch.float64)
    fused = losses_and_gradients(model, windows, "cuda", torch.float32)
    for a, b in zip(exact, fused, strict=True):
        assert float((a - b).norm() / a.norm()) < 1e-4


def test_losses_agree_with_the_cpu_over_the_first_steps(series, shift):
    model = PooledModel(N, 4, 32, shift)
    cpu, gpu = (train(model, series, Recipe(steps=100), [0, 1], device=d).losses for d in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu, cpu, rtol=1e-4)


NODE = {"batch": 4, "window": 16, "in_order": True, "clip": "norm", "weight_decay": 1e-4}


def test_node_wise_losses_agree_with_the_cpu(series, shift):
    model = NodeModel(N, 4, 32, shift)
    cpu, gpu = (
        train(model, series, Recipe(steps=100, **NODE), [0, 1], device=d, dtype=torch.float64).losses
        for d in ("cpu", "cuda")
    )
    np.testing.assert_allclose(gpu, cpu, rtol=1e-4)


def test_node_wise_losses_in_float32_agree_with_the_cpu(series, shift):
    noisy = series + np.random.default_rng(3).normal(size=series.shape)
    recipe = Recipe(**RECIPES["paper"]["node"] | {"steps": 100})
    cpu, gpu = (train(NodeModel(N, 4, 32, shift), noisy, recipe, [0, 1], device=d).losses for d in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu, cpu, rtol=1e-4)


@pytest.mark.parametrize("model_class", [PooledModel, NodeModel])
def test_a_seed_does_not_depend_on_its_company(series, shift, model_class):
    model, options = model_class(N, 4, 32, shift), NODE if model_class is NodeModel else {}
    together = train(model, series, Recipe(steps=60, **options), [0, 1, 2], device="cuda").weights[1]
    alone = train(model, series, Recipe(steps=60, **options), [1], device="cuda").weights[0]
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)  # float32 products of another batch size


def test_resumed_training_equals_uninterrupted(series, shift, tmp_path):
    model, path = NodeModel(N, 4, 32, shift), tmp_path / "run.checkpoint"

    class Killed(Exception):
        pass

    def kill(step, total, loss):
        if step >= 150:
            raise Killed

    whole = train(model, series, Recipe(steps=200, **NODE), [0, 1], device="cuda").weights
    with pytest.raises(Killed):
        train(
            model,
            series,
            Recipe(steps=200, **NODE),
            [0, 1],
            device="cuda",
            checkpoint=path,
            checkpoint_every=100,
            progress=kill,
        )
    resumed = train(model, series, Recipe(steps=200, **NODE), [0, 1], device="cuda", checkpoint=path).weights
    for a, b in zip(whole, resumed, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-6)
