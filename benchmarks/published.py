"""Seconds of the published rows, against the same methods computed literally at every step.

Run: python benchmarks/published.py
"""

from __future__ import annotations

from table import seconds, show  # first: it sets one thread before NumPy is imported

import numpy as np

from jointset.published.copula import copula_radii, pseudo_values, smooth_thresholds, split_rows
from jointset.published.forest import ForestSettings, ForestState, forest_intervals, grow
from jointset.published.hopcpt import HopCPTRule
from jointset.published.multidim import REFIT, MultiDimRule
from jointset.published.shortest_intervals import levels, shortest, sliding_intervals

M, STEPS = 3_000, 1_000
FEW = 20  # steps on which the slow literal form is timed, then scaled


def residuals(n: int, rows: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    noise = rng.standard_normal((rows, n)) + 0.7 * rng.standard_normal((rows, 1))
    for t in range(1, rows):
        noise[t] += 0.5 * noise[t - 1]
    return noise


def autograd_thresholds(u: np.ndarray, steps: int) -> np.ndarray:
    """The copula's loss on the whole array, by automatic differentiation."""
    import torch

    torch.set_num_threads(1)
    pseudo = torch.as_tensor(u)
    theta = torch.ones(u.shape[1], requires_grad=True)
    optimiser = torch.optim.Adam([theta], lr=1e-3, weight_decay=1e-4)
    for _ in range(steps):
        optimiser.zero_grad()
        (torch.sigmoid(1000 * (theta - pseudo)).prod(1).mean() - 0.9).abs().backward()
        optimiser.step()
    return theta.detach().numpy()


def copula_rows() -> list[tuple[str, str, str]]:
    rows = []
    for n in (5, 20, 50, 200):
        scores = np.abs(residuals(n, M))
        marginal, copula = split_rows(M, 0.6, 0)
        u = pseudo_values(scores[copula], scores[marginal])
        gap = np.abs(autograd_thresholds(u, 100) - smooth_thresholds(u, 0.1, 100)).max()
        ours = seconds(lambda scores=scores: copula_radii(scores, 0.1))
        whole = seconds(lambda u=u: autograd_thresholds(u, 100), repeats=1) * 8
        rows.append((f"CopulaCPTS N = {n}, m = {M:,}", f"{ours:.2f} s", f"autograd {whole:.2f} s (gap {gap:.0e})"))
    return rows


def literal_percentiles(past: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, ...]:
    low, high = levels(0.1)
    series = np.concatenate([past, new])
    windows = [series[t : t + len(past)] for t in range(len(new) + 1)]
    return shortest(*(np.array([np.quantile(w, q) for w in windows]) for q in (low, high)))


def forest_rows() -> list[tuple[str, str, str]]:
    scores = np.sqrt((residuals(5, M + STEPS) ** 2).sum(1))
    state = ForestState(scores[:M], 0, None)
    each = ForestSettings(0.1, 10, 10, 2, 1, 0)
    literal = seconds(lambda: forest_intervals(state, scores[M : M + FEW - 1], each)) * STEPS / FEW
    rows = [(f"forest w = 10, grown at every step (timed on {FEW}, scaled)", f"{literal:.1f} s", "1x")]
    for refit in (25, REFIT, 100):
        settings = each._replace(refit=refit)
        ours = seconds(lambda settings=settings: forest_intervals(state, scores[M:-1], settings))
        note = " (default)" if refit == REFIT else ""
        rows.append((f"forest w = 10, grown every {refit} steps{note}", f"{ours:.2f} s", f"{literal / ours:.0f}x"))
    past, new = scores[:M], scores[M:-1]
    slow = seconds(lambda: literal_percentiles(past, new), repeats=1)
    fast = seconds(lambda: sliding_intervals(past, new, 0.1))
    gap = np.abs(literal_percentiles(past, new)[1] - sliding_intervals(past, new, 0.1)[1]).max()
    rows.append(
        (f"empirical quantiles of the last {M:,}", f"{fast:.3f} s", f"{slow / fast:.0f}x sorting (gap {gap:.0e})")
    )
    return rows


def tree_rows() -> list[tuple[str, str, str]]:
    """Ten trees of depth 2 against scikit-learn's, to the same sum of squares."""
    from sklearn.tree import DecisionTreeRegressor

    rows = []
    for name, series in (("normal", residuals(1, M)[:, 0]), ("heavy tails", np.random.default_rng(0).standard_t(2, M))):
        x, y = np.lib.stride_tricks.sliding_window_view(series, 10)[:-1], series[10:]
        copies = grow(x, y, 10, 2, (0,), 1, 0).copies[:-1].astype(float)
        ours = seconds(lambda x=x, y=y: grow(x, y, 10, 2, (0,), 1, 0))
        peer = seconds(
            lambda x=x, y=y, copies=copies: [DecisionTreeRegressor(max_depth=2).fit(x, y, c) for c in copies.T]
        )
        rows.append((f"10 trees, {name}", f"{1e3 * ours:.1f} ms", f"{peer / ours:.1f}x scikit-learn"))
    return rows


def row_times() -> list[tuple[str, str, str]]:
    rows = []
    for n in (5, 20, 50, 200):
        data = residuals(n, M + STEPS)
        for variant in ("forest", "empirical"):
            rule = MultiDimRule(variant)
            taken = seconds(lambda rule=rule, data=data: rule.radii(rule.start(data[:M]), data[M:]), repeats=1)
            rows.append((f"MultiDimSPCI {variant} N = {n}", f"{taken:.2f} s", "calibration and test"))
    data = residuals(4, M + STEPS)
    hopcpt = HopCPTRule()
    taken = seconds(lambda: hopcpt.radii(hopcpt.start(data[:M]), data[M:]), repeats=1) / 4
    rows.append(("HopCPT, a sensor", f"{taken:.2f} s", f"{hopcpt.updates:,} updates and test"))
    return rows


def main() -> None:
    show("CopulaCPTS, all of calibration", copula_rows(), "autograd on the whole array: 100 of 800 steps, scaled")
    show(f"A forest on {M:,} scores", tree_rows())
    show(f"Radii of {STEPS:,} steps after {M:,}", forest_rows())
    show(f"Whole rules, {M:,} calibration and {STEPS:,} test steps", row_times())


if __name__ == "__main__":
    main()
