"""The graph Kalman filter on METR-LA-207: whole-sequence run against a Riccati loop, and live latency."""

import os
import statistics
import time
from pathlib import Path

from table import seconds, show  # first: sets the number of threads

import numpy as np

from jointset import GraphLGSSM, JointPredictor, Panel, generate_grssf

SAMPLE = 150


def network() -> tuple[str, Panel]:
    """METR-LA where the file is at hand, else a synthetic network of its size."""
    path = Path(os.environ.get("JOINTSET_DATA", ".")) / "metr-la.npz"
    if path.exists():
        return "METR-LA", Panel.read(path, symmetrize=True)
    return "synthetic network of METR-LA's size", generate_grssf("A", n=207, length=34_272).panel


def riccati_loop(f: GraphLGSSM, values: np.ndarray) -> np.ndarray:
    """The literal recursion: an N x N inverse at every step; returns squared Mahalanobis scores."""
    n = values.shape[1]
    F, Q, R = f.transition, f.sigma_q**2 * np.eye(n), f.sigma_r**2 * np.eye(n)
    mean, P, scores = np.zeros(n), f.prior, np.empty(len(values))
    for t, y in enumerate(values):
        e, inverse = y - mean, np.linalg.inv(P + R)
        scores[t] = e @ inverse @ e
        gain = P @ inverse
        mean = F @ (mean + gain @ e)
        P = F @ (P - gain @ P) @ F.T + Q
    return scores


def main() -> None:
    name, panel = network()
    z = (panel.values - panel.values.mean(0)) / panel.values.std(0)
    panel = panel.with_values(z)
    T = len(z)

    def run() -> None:
        f = GraphLGSSM().fit(panel)  # eigenbasis and steady state included
        laws, _ = f.run(z, f.start())
        results["run"] = laws.mahalanobis(z)

    results: dict[str, np.ndarray] = {}
    f = GraphLGSSM().fit(panel)
    fast = seconds(run)
    slow = seconds(lambda: results.update(loop=riccati_loop(f, z[:SAMPLE])), 1) * T / SAMPLE
    np.testing.assert_allclose(results["run"][:SAMPLE], results["loop"], rtol=1e-8)

    predictor = JointPredictor(GraphLGSSM()).fit(panel[:24_000]).calibrate(panel[24_000:27_000])
    live = []
    for y in z[27_000:29_000]:
        start = time.perf_counter()
        predictor.predict().bounds
        predictor.update(y)
        live.append(time.perf_counter() - start)
    show(
        f"{name}, N = {z.shape[1]}, {T} steps: fit + run + score",
        [
            ("run", f"{fast:.2f} s", f"{slow / fast:.0f}x faster (wanted: 100x, and at most 1.5 s)"),
            ("Riccati loop", f"{slow:.0f} s", ""),
            ("live predict + update", f"{1e6 * statistics.median(live):.0f} us median", "limit 300 us"),
        ],
        f"loop measured on {SAMPLE} steps and scaled",
    )


if __name__ == "__main__":
    main()
