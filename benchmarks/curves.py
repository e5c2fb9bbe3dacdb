"""Learning curves of the recipes: validation likelihood and set size while the learned filter trains.

    python benchmarks/curves.py --data FOLDER --device cuda --out docs/data/learning_curves.json
    python benchmarks/curves.py --draw docs/data/learning_curves.json --out docs/images/learning_curves.png

Training needs numpy, scipy and torch alone. FOLDER holds metr-la.npz, ett.npz and aqi.npz. Results are added to what
the output file holds already, so that a run may do a part: `--only "node|ett|paper"`.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
import torch

from jointset.inputs.adjacency import correlation_knn
from jointset.filters.gnf_training import NodeModel, PooledModel
from jointset.filters.recipes import RECIPES, Recipe
from jointset.filters.training import _Run, usable_device
from jointset.graph import normalized_shift, symmetrize

RUNS = {  # cell recipe: seeds, steps between looks
    "pooled|paper": (10, 1000),
    "pooled|fast": (5, 150),
    "node|paper": (3, 1500),
    "node|fast": (3, 150),
    "node|sharp": (3, 500),
}
WARM, PIECE = 200, 50  # a piece of the validation block is filtered from a zero state this many steps before it


def prepared(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, int, int]:
    """z-scored series, graph, ends of the training and of the validation block."""
    with np.load(folder / {"metr-20": "metr-la.npz"}.get(name, f"{name}.npz")) as file:
        values = file["values"].astype(float)
        graph = symmetrize(file["adjacency"].astype(float)) if name == "metr-20" else None
    first, second = round(0.7 * len(values)), round(0.8 * len(values))
    for column in values.T:  # the last reading before a gap
        last = np.maximum.accumulate(np.where(np.isnan(column), -1, np.arange(len(column))))
        column[:] = np.where(last < 0, np.nanmean(column), column[np.maximum(last, 0)])
    if name == "metr-20":
        chosen = np.sort(np.argsort(-values.var(0), kind="stable")[:20])  # those of protocol `table`, seed 0
        values, graph = values[:, chosen], graph[np.ix_(chosen, chosen)]
    z = (values - values[:first].mean(0)) / values[:first].std(0)
    return z, correlation_knn(z[:first]) if graph is None else graph, first, second


def validation(model, weights: list, z: np.ndarray, first: int, second: int, device: torch.device) -> np.ndarray:
    """NLL per sensor, width_full and log-volume (no unit-ball constant) of the 90 % ellipsoid (3, S)."""
    stacked = type(weights[0])(
        *(torch.tensor(np.stack(x), dtype=torch.float32, device=device) for x in zip(*weights, strict=True))
    )
    S, N = len(weights), z.shape[1]
    starts = np.arange(first - WARM, second - WARM - PIECE, PIECE)
    parts = []
    with torch.no_grad():
        for some in np.array_split(starts, max(1, len(starts) // 64)):
            rows = torch.tensor(z[some[:, None] + np.arange(WARM + PIECE + 1)], dtype=torch.float32, device=device)
            rows = rows[None].expand(S, -1, -1, -1).transpose(1, 2)
            mean, d, L, _ = model.laws(stacked, rows[:, :-1], model.zero_state(S, len(some)).to(device))
            e, d, L = (rows[:, 1:] - mean)[:, WARM:].double(), d[:, WARM:].double(), L[:, WARM:].double()
            C = torch.eye(L.shape[-1], device=device, dtype=torch.double) + L.mT @ (L / d[..., None])
            R = torch.linalg.cholesky(C)
            u = torch.cholesky_solve(L.mT @ (e / d)[..., None], R)[..., 0]
            rest = e - (L @ u[..., None])[..., 0]
            score = (rest * rest / d).sum(-1) + (u * u).sum(-1)
            log_det = d.log().sum(-1) + 2 * R.diagonal(0, -2, -1).log().sum(-1)
            width = (2 * (d + (L * L).sum(-1)).sqrt()).mean(-1)
            parts.append(torch.stack([x.reshape(S, -1) for x in (score, log_det, width)]))
    score, log_det, width = torch.cat(parts, 2)
    q = score.quantile(0.9, dim=1)
    nll = 0.5 * (score + log_det).mean(1) / N + 0.5 * np.log(2 * np.pi)
    volume = 0.5 * q.log() + 0.5 * log_det.mean(1) / N
    return torch.stack([nll, q.sqrt() * width.mean(1), volume]).cpu().numpy()


def curve(folder: Path, name: str, kind: str, recipe: str, device: torch.device) -> list[list[float]]:
    """Rows of step, NLL per sensor, its standard deviation over seeds, width_full, log-volume."""
    z, graph, first, second = prepared(folder, name)
    model = (PooledModel if kind == "pooled" else NodeModel)(z.shape[1], 4, 32, normalized_shift(graph))
    seeds, every = RUNS[f"{kind}|{recipe}"]
    run = _Run(model, z[:first], Recipe(**RECIPES[recipe][kind]).for_rows(first), list(range(seeds)), device)
    rows, start = [], time.perf_counter()
    while run.step < run.total:
        run.advance(min(run.step + 50 - run.step % 50, run.total))
        if run.step % every == 0 or run.step == run.total:
            nll, width, volume = validation(model, run.result().weights, z, first, second, device)
            rows.append([run.step, *(round(float(x), 4) for x in (nll.mean(), nll.std(), width.mean(), volume.mean()))])
    print(f"{kind}|{name}|{recipe}: {time.perf_counter() - start:.0f} s, last {rows[-1]}", flush=True)
    return rows


def draw(curves: dict[str, list[list[float]]], out: Path) -> None:
    """One panel a cell, one line a filter and recipe; readable in grey."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = {"metr-20": "METR-LA-20", "ett": "ETT-7", "aqi": "AQI-12"}
    styles = {"paper": ("0.55", "-"), "fast": ("black", "-"), "sharp": ("black", "--")}
    figure, panels = plt.subplots(1, 3, figsize=(12, 4), constrained_layout=True)
    for panel, (cell, title) in zip(panels, cells.items(), strict=True):
        for key, rows in curves.items():
            kind, name, recipe = key.split("|")
            if name != cell:
                continue
            steps, nll = np.array([row[:2] for row in rows]).T
            colour, line = styles[recipe]
            mark = "o" if kind == "node" else "s"
            label = f"{'node-wise' if kind == 'node' else kind}, {recipe}"
            panel.plot(steps, nll, line, color=colour, marker=mark, markevery=[-1], label=label)
        panel.set(title=title, xscale="log", xlabel="optimiser steps (log scale)")
        panel.set_ylim(top=min(2.0, panel.get_ylim()[1]))
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("validation NLL per sensor")
    panels[-1].legend(fontsize=8, frameon=False)
    figure.savefig(out, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="comma-separated KIND|CELL|RECIPE")
    parser.add_argument("--draw", type=Path, help="draw a file of curves instead of training")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.draw:
        draw(json.loads(args.draw.read_text()), args.out)
        return
    curves = json.loads(args.out.read_text()) if args.out.exists() else {}
    keys = [f"{pair.split('|')[0]}|{cell}|{pair.split('|')[1]}" for pair in RUNS for cell in ("metr-20", "ett", "aqi")]
    for key in args.only.split(",") if args.only else keys:
        kind, cell, recipe = key.split("|")
        curves[key] = curve(args.data, cell, kind, recipe, usable_device(args.device))
        args.out.write_text(json.dumps(curves))


if __name__ == "__main__":
    main()
