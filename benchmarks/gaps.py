"""What missing sensors cost: a live row of the graph Kalman filter against the textbook update, and runs of any method.

Without arguments, or with sizes of networks, live rows of the Kalman filter; with `run` and then sizes and methods,
rows of `run` with gaps beside complete ones: `python benchmarks/gaps.py run 20 static ewma+aci`.
"""

import resource
import sys
from collections.abc import Callable

from table import show  # first: sets the number of threads

import numpy as np

from jointset import GraphLGSSM, JointPredictor, Panel
from jointset.methods import predictor_for

ROWS, SETTLED = 80, 20  # live rows, and the first that counts


def network(n: int, steps: int = 200, neighbours: int = 6) -> Panel:
    """Noise on a plane: every sensor is joined to its nearest ones."""
    rng = np.random.default_rng(0)
    place = rng.random((n, 2))
    nearest = np.argsort(((place[:, None] - place) ** 2).sum(-1), axis=1)[:, 1 : neighbours + 1]
    A = np.zeros((n, n))
    A[np.repeat(np.arange(n), neighbours), nearest.ravel()] = 1.0
    times = 300 * np.arange(steps)
    return Panel(rng.normal(size=(steps, n)), [f"s{i}" for i in range(n)], times, adjacency=np.maximum(A, A.T))


def textbook(F: np.ndarray, P: np.ndarray, mean: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Score of a reading, and mean and covariance after it, with Q = R = I: as written in every book."""
    seen = np.flatnonzero(~np.isnan(y))
    S = P[np.ix_(seen, seen)] + np.eye(len(seen))
    e = y[seen] - mean[seen]
    score = e @ np.linalg.solve(S, e)
    gain = np.linalg.solve(S, P[seen]).T
    return F @ (mean + gain @ e), F @ (P - gain @ P[seen]) @ F.T + np.eye(len(P)), float(score)


def live(predictor: JointPredictor, rows: np.ndarray) -> np.ndarray:
    """Median processor seconds of a live row, its bounds and its score, once gaps leave as fast as they come.

    The first are the program's, the second those of the system on its behalf: it hands out memory.
    """

    def row(y: np.ndarray) -> None:
        predictor.predict().bounds
        predictor.update(y)

    return np.median([processor_seconds(row, y) for y in rows][SETTLED:], axis=0)


def processor_seconds(function: Callable[..., object], *arguments: object) -> list[float]:
    """Processor seconds of a call, the program's and the system's."""
    start = resource.getrusage(resource.RUSAGE_SELF)
    function(*arguments)
    end = resource.getrusage(resource.RUSAGE_SELF)
    return [end.ru_utime - start.ru_utime, end.ru_stime - start.ru_stime]


def with_gaps(values: np.ndarray, missing: int) -> np.ndarray:
    """Rows with this many sensors missing at random."""
    rng, values = np.random.default_rng(1), values.copy()
    for row in values:
        row[rng.choice(len(row), missing, replace=False)] = np.nan
    return values


def measure(n: int, missing: int, plain: int = 3) -> tuple[str, str, str]:
    """A row of the table: live rows with so many missing sensors in each, against `plain` textbook updates."""
    panel = network(n)
    predictor = JointPredictor(GraphLGSSM(), standardize=False).fit(panel).calibrate(panel[:100])
    rows = with_gaps(panel.values[100 : 100 + ROWS], missing)
    f = predictor.filter
    own, system = 1e3 * live(predictor, rows)
    what = f"N = {n}, {missing} missing in every row" if missing else f"N = {n}, complete rows"
    if not plain:
        return what, f"{own:.1f} + {system:.1f} ms", ""
    F, P, mean = f.transition, f.prior, np.zeros(n)
    slow = 1e3 * np.median([processor_seconds(textbook, F, P, mean, rows[0]) for _ in range(plain)], axis=0)
    _check(f, rows[:4])
    return what, f"{own:.1f} + {system:.1f} ms", f"textbook {slow[0]:.1f} + {slow[1]:.1f} ms"


def _check(f: GraphLGSSM, rows: np.ndarray) -> None:
    """The filter gives the numbers of the textbook."""
    state, mean, P = f.start(), np.zeros(rows.shape[1]), f.prior
    for y in rows:
        law = f.law(state)
        mean, P, score = textbook(f.transition, P, mean, y)
        np.testing.assert_allclose(law.mahalanobis(y), score, rtol=1e-8)
        state = f.step(state, y)
        np.testing.assert_allclose(state.mean, mean, atol=1e-8)
        np.testing.assert_allclose(f.law(state).variance, P.diagonal() + 1.0, rtol=1e-8)


def run_costs(method: str, n: int, repeats: int = 5) -> tuple[str, str, str]:
    """Median processor time of a row of `run`: complete, a fifth of the readings missing, one sensor dead."""
    panel = network(n, 5500)
    predictor = predictor_for(method).fit(panel[:2000]).calibrate(panel[2000:3500])
    test, rng = panel[3500:], np.random.default_rng(3)
    dead = test.values.copy()
    dead[:, 3] = np.nan

    def row_of(values: np.ndarray) -> float:
        rows = test.with_values(values)
        times = [sum(processor_seconds(lambda: predictor.copy().run(rows, regions=False))) for _ in range(repeats)]
        return 1e6 * float(np.median(times)) / len(test)

    whole, dead_one = row_of(test.values), row_of(dead)
    fifth = row_of(np.where(rng.random(dead.shape) < 0.2, np.nan, test.values))
    ratios = f"a fifth missing {fifth:.1f} ({fifth / whole:.1f}x), one dead {dead_one:.1f} ({dead_one / whole:.1f}x)"
    return f"{method}, N = {n}", f"complete {whole:.1f} us", ratios


def main(sizes: tuple[int, ...] = (200, 1000, 5000)) -> None:
    rows = []
    for n in sizes:
        cases = (0, 1, n // 100, n // 4) if n < 5000 else (0, 1)
        rows += [measure(n, k, 3 if n < 5000 else 0) for k in cases]
    note = f"processor time, medians of {ROWS - SETTLED} rows: the program's own + the system's for it (fresh memory)"
    show("A live row of the graph Kalman filter: bounds, score and update", rows, note)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        sizes = [int(word) for word in sys.argv[2:] if word.isdigit()] or [20]
        methods = [word for word in sys.argv[2:] if not word.isdigit()] or ["static", "ewma", "rolling", "kalman"]
        costs = [run_costs(method, n) for n in sizes for method in methods]
        show("A row of run", costs, "processor time, medians of 5 runs of 2,000 rows")
        sys.exit()
    main(tuple(int(n) for n in sys.argv[1:]) or (200, 1000, 5000))
