"""Gaps filled, held against readings that were hidden on purpose, beside the last value and the mean of the neighbours.

    python benchmarks/imputation.py                                      # METR-LA-20, AQI-12 and a simulated river
    python benchmarks/imputation.py --cells river --methods kalman-tuned+aci --draws 3

A fifth of the readings of the test block is hidden, one by one (`cells`) or for twelve rows each (`spells`). RMSE is in
the units of the readings. The mean of the neighbours is weighted by the graph, of the sensors that were read, in the
units of the readings or of their training mean and sd, whichever is better. METR-LA has its zeros masked. The river is
a tree of 31 gauges with the dynamics of GRSSF, its noise correlated along the water. Intervals ask for 90 %; with
several draws of what is hidden, the share inside is that of all, with the smallest and the largest of a draw.
"""

import argparse

from table import show  # first: sets the number of threads

import numpy as np

from jointset import Panel
from jointset.datasets.cells import cell
from jointset.graph import normalized_shift
from jointset.predicting.imputation import impute_rows
from jointset.methods import predictor_for, three_blocks

SHARE, SPELL = 0.2, 12
MOST = {"train": 8000, "calibration": 1500, "test": 1200}  # rows of a block


def river(gauges: int = 31, rows: int = 6000, rho: float = 0.95, noise: float = 0.5) -> Panel:
    """H_{t+1} = F H_t + xi, Y = H + eta on a binary tree; xi has correlation 0.8^d at d edges along the water."""
    rng, A = np.random.default_rng(0), np.zeros((gauges, gauges))
    for i in range(1, gauges):
        A[i, (i - 1) // 2] = A[(i - 1) // 2, i] = 1.0
    distance = np.where(A > 0, 1.0, np.inf)
    np.fill_diagonal(distance, 0.0)
    for k in range(gauges):
        distance = np.minimum(distance, distance[:, [k]] + distance[[k]])
    root, F = np.linalg.cholesky(0.8**distance), rho * normalized_shift(A)
    h, out = np.zeros(gauges), []
    for _ in range(rows + 200):
        h = F @ h + root @ rng.standard_normal(gauges)
        out.append(h + noise * rng.standard_normal(gauges))
    return Panel(np.array(out)[200:], [f"gauge{i}" for i in range(gauges)], 900 * np.arange(rows), A)


def blocks(name: str) -> list[Panel]:
    """Training, calibration and test rows; the last ones, of the test block the first."""
    if name == "river":
        return [*three_blocks(river())[:2], three_blocks(river())[2][: MOST["test"]]]
    place = cell(name, missing="mask") if name.startswith("metr-la") else cell(name)
    train, calibration, test = (place.panel[place.blocks[key]] for key in MOST)
    return [train[-MOST["train"] :], calibration[-MOST["calibration"] :], test[: MOST["test"]]]


def hidden(values: np.ndarray, length: int, draw: int = 1) -> np.ndarray:
    """Which readings to hide (T, N): spells of this length, a fifth of all."""
    rng, out = np.random.default_rng(draw), np.zeros(values.shape, dtype=bool)
    for i in range(values.shape[1]):
        t = int(rng.geometric(SHARE / (1.0 - SHARE) / length))
        while t < len(values):
            out[t : t + length, i] = True
            t += length + int(rng.geometric(SHARE / (1.0 - SHARE) / length))
    return out & ~np.isnan(values)


def last_value(values: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Gaps at the last reading, from the rows before on."""
    rows = np.concatenate([before, values])
    for t in range(1, len(rows)):
        rows[t] = np.where(np.isnan(rows[t]), rows[t - 1], rows[t])
    return rows[len(before) :]


def neighbours(values: np.ndarray, adjacency: np.ndarray) -> np.ndarray:
    """Weighted mean of the neighbours that were read; of all that were read where there is none."""
    W = np.maximum(adjacency, adjacency.T) * (1.0 - np.eye(len(adjacency)))
    read = ~np.isnan(values)
    known = np.where(read, values, 0.0)
    weight, every = read @ W, read.sum(axis=1, keepdims=True)
    total = known.sum(axis=1, keepdims=True) / np.maximum(every, 1)
    return np.where(weight > 0, (known @ W) / np.where(weight > 0, weight, 1.0), total)


def measure(name: str, method: str, kinds: list[str], draws: int) -> None:
    """One line for each way of hiding."""
    train, calibration, test = blocks(name)
    predictor = predictor_for(method).fit(train).calibrate(calibration).learn_to_fill(calibration)
    mean, sd, A = np.nanmean(train.values, axis=0), np.nanstd(train.values, axis=0), train.adjacency
    lines = []
    for kind in kinds:
        squares, inside = [], []
        for draw in range(1, draws + 1):
            where = hidden(test.values, SPELL if kind == "spells" else 1, draw)
            shown = np.where(where, np.nan, test.values)
            found = impute_rows(predictor, test.with_values(shown))
            around = neighbours(shown, A), mean + sd * neighbours((shown - mean) / sd, A)
            guesses = found.values, last_value(shown, calibration.values), *around
            squares.append([np.mean((test.values - guess)[where] ** 2) for guess in guesses])
            inside.append(((found.lower <= test.values) & (test.values <= found.upper))[where].mean())
        own, last, *near = np.sqrt(np.mean(squares, axis=0))
        against = f"last value {last:.3f} ({100 * (own / last - 1):+.0f} %), "
        against += f"neighbours {min(near):.3f} ({100 * (own / min(near) - 1):+.0f} %)"
        spread = f" ({min(inside):.3f} to {max(inside):.3f})" if draws > 1 else ""
        lines.append((kind, f"RMSE {own:.3f}, {np.mean(inside):.3f}{spread} in their interval", against))
    show(f"{name}, {method}, {train.n_sensors} sensors", lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="metr-la-20,aqi-12,river")
    parser.add_argument("--methods", default="quick,ewma+aci,kalman-tuned+aci")
    parser.add_argument("--kinds", default="cells,spells")
    parser.add_argument("--draws", type=int, default=1, help="of what is hidden")
    asked = parser.parse_args()
    for name in asked.cells.split(","):
        for method in asked.methods.split(","):
            measure(name, method, asked.kinds.split(","), asked.draws)
