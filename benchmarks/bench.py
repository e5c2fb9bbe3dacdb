"""The benchmark itself: the deterministic rows against per-step loops, all rows on two cores, jobs, and Dask."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import show  # first: sets the number of threads

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jointset.backbones import GPVARBackbone
from jointset.experiments.rows import fitted_backbones, run_row
from jointset.residuals.shrinkage import schaefer_strimmer, to_diagonal
from jointset.inputs.communities import spectral_groups
from jointset.datasets.cells import cell
from jointset.graph import normalized_shift

SEVEN = ("static", "factor", "group+agaci", "per-group-factor+aci", "ewma", "rolling", "kalman")
ON = ("metr-la-20", "table") if os.environ.get("JOINTSET_DATA") else ("grssf-a-30", "text")  # tasks for the engines
AUTHORS = (5.0, 7.0)  # seconds a seed of the authors' own code for these rows on one core
NON_LEARNED = "static,conditional,factor+aci,group+agaci,per-group-factor+aci,kalman,kalman-tuned,copula"
SHORT = "static:ellipsoid,factor,group,per-group-factor,spectral,ewma,rolling,time-of-day,local,kalman"
ROWS = SHORT.count(",") + 1  # tasks a seed
ALPHA, GAMMAS, LOOKBACK, HALF_LIFE, WINDOW = 0.1, (0.001, 0.005, 0.01, 0.02, 0.05), 400, 288, 288


# ---------------------------------------------------------------------- the rows as loops over steps


def rank(scores: np.ndarray, level: float) -> float:
    """The radius at a level: sort what there is, take one."""
    k = int(np.ceil((len(scores) + 1) * (1 - level)))
    return float(np.sort(scores)[min(max(k, 1), len(scores)) - 1])


def root(S: np.ndarray, e: np.ndarray) -> float:
    return float(np.sqrt(e @ cho_solve(cho_factor(S, lower=True), e)))


def split_width(scores: np.ndarray, spreads: np.ndarray) -> float:
    return float(2 * rank(scores, ALPHA) * spreads.mean())


def residuals(one) -> list[np.ndarray]:
    """Residuals of pilot, calibration and test block, each predicted afresh."""
    backbone = GPVARBackbone().fit(one.train)
    found = []
    for block in (one.block("pilot"), one.calibration, one.test):
        means = backbone.predict(block.values)
        means[:2] = backbone.mean
        found.append(block.values - means)
    return found


def literal(one) -> dict[str, float]:
    """Mean full widths of the seven rows, a step at a time."""
    P, C, T = residuals(one)
    n = P.shape[1]
    widths: dict[str, float] = {}

    S = to_diagonal(P.T @ P / (len(P) - 1), 0.1)
    scores = np.array([root(S, e) for e in (*C, *T)])
    widths["static"] = split_width(scores[: len(C)], np.sqrt(S.diagonal()))

    B, sd, F = factors(P - P.mean(0))
    pairs = np.array([factor_scores(e - P.mean(0), B, sd, F) for e in (*C, *T)])
    q = [rank(pairs[: len(C), j], ALPHA / 2) for j in (0, 1)]
    widths["factor"] = float(np.mean([factor_width(q, B, sd, F) for _ in T]))

    groups = [list(group) for group in spectral_groups(one.panel.adjacency, 4, one.seed, starts=1)]
    centred = P - P.mean(0)
    shapes = [schaefer_strimmer(centred[:, g]) for g in groups]
    largest = [max(root(S, e[g]) for S, g in zip(shapes, groups, strict=True)) for e in (*C, *T) - P.mean(0)]
    radii = agaci(np.array(largest[: len(C)]), np.array(largest[len(C) :]))
    spreads = np.concatenate([np.sqrt(S.diagonal()) for S in shapes])
    widths["group+agaci"] = float(np.mean([2 * r * spreads.mean() for r in radii]))

    parts = [factors(centred[:, g]) for g in groups]
    pairs = np.array(
        [
            np.max([factor_scores(e[g], *part) for part, g in zip(parts, groups, strict=True)], axis=0)
            for e in (*C, *T) - P.mean(0)
        ]
    )
    widths["per-group-factor+aci"] = aci(pairs[: len(C)], pairs[len(C) :], parts, [len(g) for g in groups])

    w, jitter = 2 ** (-1 / HALF_LIFE), 1e-6 * np.eye(n)
    S = to_diagonal(P.T @ P / (len(P) - 1), 0.05)
    scores, spread = [], []
    for t, e in enumerate((*P, *C, *T)):
        if t >= len(P):
            scores.append(root(S + jitter, e))
            spread.append(np.sqrt(S.diagonal()).mean())
        S = w * S + (1 - w) * np.outer(e, e)
    widths["ewma"] = 2 * rank(np.array(scores[: len(C)]), ALPHA) * float(np.mean(spread[len(C) :]))

    window, scores, spread = P[-WINDOW:], [], []
    for e in (*C, *T):
        S = to_diagonal(window.T @ window / len(window), 0.05) + jitter
        scores.append(root(S, e))
        spread.append(np.sqrt(S.diagonal()).mean())
        window = np.vstack([window[1:], e])
    widths["rolling"] = 2 * rank(np.array(scores[: len(C)]), ALPHA) * float(np.mean(spread[len(C) :]))

    widths["kalman"] = kalman(one)
    return widths


def factors(E: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    B = np.linalg.svd(E, full_matrices=False)[2][:4].T
    F = np.atleast_2d(np.cov(E @ B, rowvar=False))
    return B, np.maximum((E - E @ B @ B.T).std(0), 1e-3), F


def factor_scores(e: np.ndarray, B: np.ndarray, sd: np.ndarray, F: np.ndarray) -> tuple[float, float]:
    f = B.T @ e
    return root(F, f), float(np.max(np.abs(e - B @ f) / sd))


def factor_width(q, B: np.ndarray, sd: np.ndarray, F: np.ndarray) -> float:
    return float(2 * np.mean(q[0] * np.sqrt(np.diag(B @ F @ B.T)) + q[1] * sd))


def agaci(calibration: np.ndarray, test: np.ndarray) -> list[float]:
    levels, weights, radii = np.full(len(GAMMAS), ALPHA), np.ones(len(GAMMAS)), []
    for t, score in enumerate(test):
        pool = np.concatenate([calibration, test[max(0, t - LOOKBACK) : t]])
        each = np.array([rank(pool, level) for level in levels])
        radii.append(float(weights @ each / weights.sum()))
        cost = each + 2 / ALPHA * np.maximum(score - each, 0)
        weights = weights * np.exp(-(cost - cost.min()))
        weights /= weights.sum()
        levels = np.clip(levels + np.array(GAMMAS) * (ALPHA - (score > each)), 1e-4, 1 - 1e-4)
    return radii


def aci(calibration: np.ndarray, test: np.ndarray, parts, sizes) -> float:
    level, widths = ALPHA, []
    for t, pair in enumerate(test):
        pool = np.concatenate([calibration, test[max(0, t - LOOKBACK) : t]])
        q = [rank(pool[:, j], level / 2) for j in (0, 1)]
        widths.append(np.average([factor_width(q, *part) for part in parts], weights=sizes))
        level = float(np.clip(level + 0.005 * (ALPHA - (pair > q).any()), 1e-4, 1 - 1e-4))
    return float(np.mean(widths))


def kalman(one) -> float:
    """The covariance recursion and its gain at every step, as a textbook writes them."""
    train = one.panel.values[: one.blocks["calibration"].start]
    n, unit = train.shape[1], np.eye(train.shape[1])
    v, rho = float(train.var(axis=0).mean()), 0.8
    shift = normalized_shift(one.panel.adjacency)
    A = rho * shift / np.abs(np.linalg.eigvalsh(shift)).max()
    Q, R = (1 - rho**2) * v * unit, 0.1 * v * unit

    def passes(rows, x, P):
        for y in rows:
            x, P = A @ x, A @ P @ A.T + Q
            S = P + R
            e = y - x
            yield e, S
            K = np.linalg.solve(S, P).T
            x, P = x + K @ e, (unit - K) @ P

    steps = list(passes(train[: len(train) // 5], np.zeros(n), v * unit))
    ratio = np.mean([e @ e for e, _ in steps]) / np.mean([np.trace(S) for _, S in steps])
    Q, R = ratio * Q, ratio * R
    rows = np.concatenate([train[-50:], one.calibration.values, one.test.values])
    steps = list(passes(rows, np.zeros(n), v * unit))[50:]
    scores = np.array([root(S, e) for e, S in steps])
    m = one.calibration.T
    return 2 * rank(scores[:m], ALPHA) * float(np.mean([np.sqrt(np.diag(S)).mean() for _, S in steps[m:]]))


def processor(work) -> float:
    """Seconds of processor time: what else the machine does matters less."""
    start = time.process_time()
    work()
    return time.process_time() - start


def seven_rows() -> None:
    one = cell("metr-la-20", "table", 0)
    ours = {}

    def rows() -> None:  # one mean for all rows, as in `jointset bench`
        mean = fitted_backbones("gpvar", one)[0]
        for name in SEVEN:
            run = run_row(name, one, backbone=None if name == "kalman" else mean)
            ours[name] = run.width_full.mean()

    fast = min(processor(rows) for _ in range(3))
    loops: dict[str, float] = {}
    slow = processor(lambda: loops.update(literal(one)))
    gaps = ", ".join(f"{name} {100 * (loops[name] / ours[name] - 1):+.1f} %" for name in SEVEN)
    low, high = (f"{s / fast:.0f}x" for s in AUTHORS)
    show(
        "METR-LA-20, protocol table, the seven deterministic rows of one seed",
        [
            ("ours", f"{fast:.2f} s", ""),
            ("the same rows as loops over steps", f"{slow:.2f} s", f"{slow / fast:.1f}x ours (wanted: 8x)"),
            ("the authors' code, measured apart", "5-7 s", f"{low} to {high} ours (wanted: 8x)"),
        ],
        f"widths of the loops against ours: {gaps}",
    )


# ---------------------------------------------------------------------- engines


def bench(folder: str, *options: str) -> tuple[float, float]:
    """Wall-clock seconds of `jointset bench` into a fresh folder: in all, and from the first file to the last."""
    shutil.rmtree(folder, ignore_errors=True)
    code = "from jointset.cli import main; main()"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, "bench", "--out", folder, *options], capture_output=True)
    took = time.perf_counter() - start
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    written = [file.stat().st_mtime for file in Path(folder).glob("*.parquet")]
    return took, max(written) - min(written)


def ceiling(rounds: int) -> float:
    """How much faster two copies of the same single-threaded work go side by side than one after the other."""
    code = "import bench; bench.seven_rows_quietly()"
    folder = os.path.dirname(os.path.abspath(__file__))

    def copies(count: int) -> float:
        start = time.perf_counter()
        running = [subprocess.Popen([sys.executable, "-c", code], cwd=folder) for _ in range(count)]
        assert all(process.wait() == 0 for process in running)
        return time.perf_counter() - start

    alone, together = (min(times) for times in zip(*((copies(1), copies(2)) for _ in range(rounds)), strict=True))
    return 2 * alone / together


def seven_rows_quietly() -> None:
    one = cell("metr-la-20", "table", 0)
    for name in SEVEN * 2:
        run_row(name, one)


def commands(folder: str, rounds: int, seeds: int) -> None:
    """All rows with one job and with two, in turn, the best of some rounds: the cores are shared with others."""
    options = ["--cells", "metr-la-20", "--protocol", "table", "--methods", NON_LEARNED, "--seeds", f"{seeds}"]
    took = [tuple(bench(folder, *options, "--jobs", jobs) for jobs in "12") for _ in range(rounds)]
    (one, one_on), (two, two_on) = (map(min, zip(*times, strict=True)) for times in zip(*took, strict=True))
    rows = [
        ("1 job", f"{one:.1f} s", f"{one_on:.1f} s from the first file to the last"),
        ("2 jobs", f"{two:.1f} s (wanted: at most 120 s for 10 seeds)", f"{two_on:.1f} s"),
        ("2 jobs against 1", f"{one / two:.2f}x as fast (wanted: 1.7x)", f"{one_on / two_on:.2f}x"),
        ("two copies of such work at once, no engine", f"{ceiling(rounds):.2f}x: the most these cores give", ""),
    ]
    title = "jointset bench: all non-learned rows of METR-LA-20, protocol table, start and end included"
    show(f"{title}, {seeds} seeds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", rows)


def engine(name: str, seeds: int) -> None:
    """Print seconds of all tasks through an engine, in all and from the first finished task to the last.

    Called in a process of its own, as a command is: to load the engine and to start and end its workers counts.
    """
    from jointset.bench.names import methods_named
    from jointset.bench.plan import tasks
    from jointset.bench.processes import starter
    from jointset.commands.bench import HERE, engine_named

    cells, protocol = ON
    planned = tasks([cells], methods_named(SHORT), range(seeds), protocols=[protocol])
    start = time.perf_counter()
    starter(*HERE[name])
    ends = [time.perf_counter() for _ in engine_named(name, 2)(planned)]
    assert len(ends) == len(planned) == ROWS * seeds
    print(time.perf_counter() - start, ends[-1] - ends[0])


def dask_overhead(rounds: int, tasks: int) -> None:
    folder, seeds = os.path.dirname(os.path.abspath(__file__)), max(1, tasks // ROWS)

    def took(name: str) -> list[float]:
        code = f"if __name__ == '__main__': import bench; bench.engine({name!r}, {seeds})"
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
        return [float(word) for word in done.stdout.split()]

    both = [(took("local"), took("dask")) for _ in range(rounds)]  # in turn, the best of them: shared cores
    (local, local_on), (dask, dask_on) = (map(min, zip(*times, strict=True)) for times in zip(*both, strict=True))
    rows = [
        ("local, 2 workers", f"{local:.1f} s", f"{local_on:.1f} s from the first task to the last"),
        ("Dask, 2 workers", f"{dask:.1f} s ({more(dask, local)})", f"{dask_on:.1f} s ({more(dask_on, local_on)})"),
    ]
    title = f"{ROWS * seeds} tasks on {ON[0]}, the import of the engine, the start and the end of its workers included"
    show(f"{title}, load {os.getloadavg()[0]:.1f}", rows, "wanted: at most +10 %")


def more(a: float, b: float) -> str:
    return f"{100 * (a / b - 1):+.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("rounds", 2), ("seeds", 2), ("tasks", 100)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    dask_overhead(asked.rounds, asked.tasks)
    if not os.environ.get("JOINTSET_DATA"):
        print("set JOINTSET_DATA to a folder with metr-la.npz for the rest")
        return
    seven_rows()
    with tempfile.TemporaryDirectory() as folder:
        commands(f"{folder}/out", asked.rounds, asked.seeds)


if __name__ == "__main__":
    main()
