"""Comparison rows: moving covariances against a factorisation a step, neighbours against a search a step, all rows."""

import os
import time
from pathlib import Path

from table import show  # first: sets the number of threads

import numpy as np

from jointset import Panel, generate_grssf
from jointset.residuals.conditional import Local
from jointset.contracts import Pilot
from jointset.catalogue import ROWS
from jointset.experiments.rows import run_row
from jointset.residuals.shapes import EWMA, Rolling
from jointset.residuals.shrinkage import to_diagonal

STEPS, SAMPLE = 3840, 150


def residuals(n: int, real: bool = True) -> tuple[str, np.ndarray]:
    """Differences of METR-LA's first n sensors where the file is at hand, else of a synthetic network."""
    path = Path(os.environ.get("JOINTSET_DATA", ".")) / "metr-la.npz"
    if real and path.exists():
        name, values = "METR-LA", Panel.read(path, directed=True).values[:, :n]
    else:
        name, values = "synthetic network", generate_grssf("A", n=n, length=12_000).panel.values
    values = (values - values.mean(0)) / values.std(0)
    return name, np.diff(values, axis=0)[:9000]


def pilot(E: np.ndarray, means: np.ndarray | None = None) -> Pilot:
    return Pilot(E, E if means is None else means, None, None, None, "row")


def scored(shape, E: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores, half-widths at radius 1 and log-determinants of all rows, a block at a time as a predictor does it."""
    state, scores, log_dets = shape.start(), [], []
    size = max(1, 16_000_000 // E.shape[1] ** 2) if isinstance(shape, Local) else len(E)
    for start in range(0, len(E), size):
        block = slice(start, start + size)
        law, state = shape.run(E[block], centers[block], None, state)
        scores.append(law.mahalanobis(centers[block] + E[block]))
        log_dets.append(law.log_det)
        np.sqrt(law.variance)
    return np.concatenate(scores), np.concatenate(log_dets)


def literal(E: np.ndarray, matrices) -> tuple[np.ndarray, np.ndarray]:
    """A covariance and its Cholesky factor at every step, by the fastest calls that do it."""
    from scipy.linalg import cho_factor, cho_solve

    scores, log_dets = np.empty(len(E)), np.empty(len(E))
    for t, (e, S) in enumerate(zip(E, matrices, strict=False)):
        factor = cho_factor(S, lower=True, check_finite=False)
        scores[t] = e @ cho_solve(factor, e, check_finite=False)
        log_dets[t] = 2 * np.log(factor[0].diagonal()).sum()
        np.sqrt(S.diagonal())
    return scores, log_dets


def plain(E: np.ndarray, matrices) -> None:
    """The same in the usual words."""
    from scipy.linalg import solve_triangular

    for e, S in zip(E, matrices, strict=False):
        root = np.linalg.cholesky(S)
        z = solve_triangular(root, e, lower=True)
        z @ z
        2 * np.log(np.diag(root)).sum()
        np.sqrt(np.diag(S))


def ewma_matrices(shape: EWMA, E: np.ndarray):
    S, w, jitter = shape.covariance, shape.decay, shape.jitter * np.eye(E.shape[1])
    for e in E:
        yield S + jitter
        S = w * S + (1 - w) * np.outer(e, e)


def rolling_matrices(shape: Rolling, E: np.ndarray):
    window = shape.residuals
    for e in E:
        S = window.T @ window / len(window)
        yield to_diagonal(S, shape.shrink) + shape.jitter * np.eye(E.shape[1])
        window = np.vstack([window[1:], e])


def local_matrices(shape: Local, centers: np.ndarray):
    for center in centers:
        near = np.argsort(((shape.means - center) ** 2).sum(axis=1))[: shape.k]
        S = to_diagonal(shape.residuals[near].T @ shape.residuals[near] / shape.k, shape.shrink)
        yield S + shape.floor * np.eye(len(center))


def processor(work) -> float:
    """Seconds of processor time: what else the machine does matters less."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(
    what: str, shape, matrices, E: np.ndarray, centers: np.ndarray, wanted: int, checked: int = STEPS
) -> tuple[str, str, str]:
    """All sides in turn, medians of nine rounds; differences over the first `checked` steps."""
    scores, log_dets = (found[:checked] for found in scored(shape, E, centers))
    exact_scores, exact_log_dets = literal(E[:checked], matrices())
    rounds = [
        (
            processor(lambda: scored(shape, E, centers)) / len(E),
            processor(lambda: literal(E[:SAMPLE], matrices())) / SAMPLE,
            processor(lambda: plain(E[:SAMPLE], matrices())) / SAMPLE,
        )
        for _ in range(9)
    ]
    fast = np.median([one for one, _, _ in rounds])
    lean, usual = (np.median([sides[k] / sides[0] for sides in rounds]) for k in (1, 2))
    some = exact_scores > 0  # a step at which no sensor moves scores 0
    gaps = np.abs(scores[some] / exact_scores[some] - 1)
    log_det_gap = np.abs(log_dets - exact_log_dets).max() / E.shape[1]
    differences = (
        f"scores off by {np.median(gaps):.0e} (median), {np.quantile(gaps, 0.99):.0e} (99 of 100), "
        f"log-det / N by at most {log_det_gap:.0e}"
    )
    return (
        what,
        f"{1e6 * fast:.0f} us a step",
        f"{lean:.1f}x a factorisation a step by cho_factor and cho_solve without their checks, {usual:.1f}x by NumPy's "
        f"cholesky and solve_triangular (wanted: {wanted}x); {differences}",
    )


def main() -> None:
    name, E = residuals(207)
    zero = np.zeros((STEPS, 207))
    ewma, rolling = EWMA().fit(pilot(E[:4000])), Rolling().fit(pilot(E[:4000]))
    test = E[4000 : 4000 + STEPS]
    rows = [
        compare("EWMA, N = 207", ewma, lambda: ewma_matrices(ewma, test), test, zero, 20),
        compare("rolling, N = 207", rolling, lambda: rolling_matrices(rolling, test), test, zero, 1),
    ]
    means = np.cumsum(E[:, :50], axis=0)
    local = Local().fit(pilot(E[:4000, :50], means[:4000]))
    test, centers = E[4000 : 4000 + STEPS, :50], means[4000 : 4000 + STEPS]
    few = SAMPLE  # later, in outages, more than k moments are equally near
    rows.append(compare("local (k = 50), N = 50", local, lambda: local_matrices(local, centers), test, centers, 5, few))
    show(f"{name}: scores, variances and log-determinants of {STEPS} steps", rows)

    if name == "METR-LA":
        from jointset.datasets.cells import cell

        methods = [*ROWS, "kalman", "kalman-tuned", "factor+aci", "group+agaci", "per-group-factor+aci"]
        lines = []
        for protocol in ("text", "table"):
            one = cell("metr-la-20", protocol)
            start = time.perf_counter()
            for method in methods:
                run_row(method, one)
            lines.append((f"protocol {protocol}", f"{time.perf_counter() - start:.1f} s", "limit 12 s"))
        show(f"METR-LA-20, one seed, {len(methods)} rows", lines)


if __name__ == "__main__":
    main()
