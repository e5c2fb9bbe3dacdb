"""The learned filter on a CUDA device: kernels against float64, CPU against GPU, the paper's recipe for ten seeds.

    python benchmarks/gpu.py --data FOLDER [--quick] [--out docs/data/gpu_h200.json]
    python benchmarks/gpu.py --draw docs/data/gpu_h200.json --out docs/images/cost_against_n.png

Needs numpy, scipy and torch with Triton, nothing else: it runs from a source checkout. FOLDER holds metr-la.npz.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
import torch

from jointset.filters import recurrent_cells as cells
from jointset.filters.gnf_training import NodeModel, PooledModel
from jointset.filters.recipes import RECIPES, Recipe
from jointset.filters.training import train
from jointset.graph import normalized_shift, symmetrize


def metr_la(folder: Path, k: int) -> tuple[np.ndarray, np.ndarray]:
    """z-scored training rows of the k busiest sensors, and their graph."""
    with np.load(folder / "metr-la.npz") as file:
        values, adjacency = file["values"].astype(float), symmetrize(file["adjacency"].astype(float))
    rows = round(0.7 * len(values))
    chosen = np.sort(np.argsort(-values[:rows].mean(0), kind="stable")[:k])
    values = values[:rows, chosen]
    return (values - values.mean(0)) / values.std(0), adjacency[np.ix_(chosen, chosen)]


def ring(n: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A synthetic network of any size: sensors on a ring."""
    A = np.zeros((n, n), dtype=np.float32)
    i = np.arange(n)
    A[i, (i + 1) % n] = A[(i + 1) % n, i] = 1.0
    return np.random.default_rng(0).standard_normal((rows, n)), A


def kernel_errors(folder: Path) -> dict[str, float]:
    """Relative error of the float32 loss and gradients on the GPU against float64 on the CPU."""
    z, A = metr_la(folder, 20)
    model = PooledModel(20, 4, 32, normalized_shift(A))
    drawn = [model.initial(np.random.default_rng(s)) for s in range(3)]
    starts = np.random.default_rng(0).integers(0, len(z) - 30, (3, 64))
    windows = z[starts[..., None] + np.arange(25)]
    results = []
    for device, dtype in (("cpu", torch.float64), ("cuda", torch.float32)):
        stacked = [torch.tensor(np.stack(x), dtype=dtype, device=device) for x in zip(*drawn, strict=True)]
        weights = cells.PooledWeights(*(w.requires_grad_() for w in stacked))
        state = model.zero_state(3, 64).to(device, dtype)
        loss, _ = model.loss(weights, torch.tensor(windows, dtype=dtype, device=device), state, 0, False)
        loss.sum().backward()
        results.append([loss.detach().cpu().double(), *(w.grad.cpu().double() for w in weights)])
    names = ("loss", *cells.PooledWeights._fields)
    return {name: float((a - b).norm() / a.norm()) for name, a, b in zip(names, *results, strict=True)}


def cpu_against_gpu(folder: Path, model_class: type, dtype: torch.dtype = torch.float32) -> dict[str, float]:
    """Largest difference of the mean loss over the first 100 steps of the `paper` recipe, relative and per reading."""
    z, A = metr_la(folder, 20)
    model = model_class(20, 4, 32, normalized_shift(A))
    recipe = Recipe(**RECIPES["paper"]["node" if model_class is NodeModel else "pooled"] | {"steps": 100})
    cpu, gpu = (train(model, z, recipe, [0, 1], device=d, dtype=dtype).losses for d in ("cpu", "cuda"))
    apart = np.abs(cpu - gpu)
    return {"relative": float(np.max(apart / np.abs(cpu))), "per reading": float(apart.max() / (20 * recipe.window))}


def timed(model: PooledModel, z: np.ndarray, recipe: Recipe, seeds: int) -> float:
    """Seconds end to end: compile, capture, train."""
    start = time.perf_counter()
    train(model, z, recipe, list(range(seeds)), device="cuda")
    torch.cuda.synchronize()
    return time.perf_counter() - start


def copy_rate() -> float:
    """Bytes per second of a device-to-device copy, read and written."""
    x = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    for _ in range(3):
        y.copy_(x)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        y.copy_(x)
    torch.cuda.synchronize()
    return 2 * 20 * x.numel() / (time.perf_counter() - start)


def draw(found: dict[str, float], out: Path) -> None:
    """Cost of a training step against the number of sensors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    start = "ms a step, N = "
    n, ms = np.array([(int(key.removeprefix(start)), value) for key, value in found.items() if key.startswith(start)]).T
    figure, panel = plt.subplots(figsize=(6.5, 4), constrained_layout=True)
    panel.loglog(n, ms, "o-", color="black", label="measured")
    panel.loglog(n[2:], ms[2] * n[2:] / n[2], "--", color="0.5", label="linear in N")
    panel.set(
        xlabel="sensors N", ylabel="ms a training step", title=f"Cost of a training step, one seed, {found['device']}"
    )
    panel.legend(frameon=False)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draw", type=Path, help="draw recorded figures instead of measuring")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the epochs, scaled in the report")
    args = parser.parse_args()
    if args.draw:
        draw(json.loads(args.draw.read_text()), args.out)
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    found: dict[str, object] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    found["copy TB/s"] = round(copy_rate() / 1e12, 2)
    found["kernel errors"] = kernel_errors(args.data)
    for name, kind in (("pooled", PooledModel), ("node-wise", NodeModel)):
        for dtype in (torch.float32, torch.float64):
            found[f"CPU vs GPU, {name}, {dtype}"] = cpu_against_gpu(args.data, kind, dtype)
    print(json.dumps(found, indent=1), flush=True)

    share = 10 if args.quick else 1
    for k, limit in ((20, 60), (50, 90), (207, 180)):
        z, A = metr_la(args.data, k)
        model = PooledModel(k, 4, 32, normalized_shift(A))
        recipe = Recipe(epochs=60 // share)
        seconds = timed(model, z, recipe, 10) * share
        steps = recipe.total(len(z)) * share
        found[f"paper recipe, N = {k}"] = seconds
        print(f"paper recipe, N = {k}: 10 seeds x 60 epochs {seconds:.1f} s (limit {limit}), ", end="")
        print(f"{1e3 * seconds / steps:.3f} ms a step", flush=True)
    for n in (20, 50, 207, 1000, 8600):
        z, A = ring(n, 2000)
        model = PooledModel(n, 4, 32, normalized_shift(A))
        timed(model, z, Recipe(steps=50), 1)
        seconds = timed(model, z, Recipe(steps=150), 1) - timed(model, z, Recipe(steps=50), 1)
        memory = torch.cuda.max_memory_allocated() / 2**30
        found[f"ms a step, N = {n}"] = 10 * seconds
        print(f"N = {n}: {10 * seconds:.3f} ms a step, peak {memory:.2f} GiB so far", flush=True)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
