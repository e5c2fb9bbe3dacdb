"""Facts that tell a data set from another or a damaged one, each measured on a panel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointset.datasets.sources.entry import Fact
from jointset.graph import dense, edge_count, symmetrize
from jointset.inputs.times import iso
from jointset.panel import Panel


def period(first: str, last: str) -> Fact:
    """First and last time stamp, ISO text of the source's clock."""

    def measure(panel: Panel) -> tuple[str, bool]:
        stamps = panel.timestamps
        ends = (iso(stamps[0]), iso(stamps[-1])) if stamps is not None and len(stamps) else ("none", "none")
        return " to ".join(ends), ends == (f"{first}Z", f"{last}Z")

    return Fact("period", f"{first}Z to {last}Z", measure)


def cadence(seconds: int, gaps: Sequence[tuple[str, int]] = ()) -> Fact:
    """Step between time stamps, and the known longer steps as (stamp before, seconds)."""

    def words(longer: Sequence[tuple[str, int]]) -> str:
        return "".join(f", {length} s after {start}" for start, length in longer) or ", no gap"

    def measure(panel: Panel) -> tuple[str, bool]:
        stamps = np.zeros(0, np.int64) if panel.timestamps is None else panel.timestamps
        steps = np.diff(stamps)
        found = [(iso(stamps[i]), int(steps[i])) for i in np.flatnonzero(steps != panel.cadence)]
        ok = panel.cadence == seconds and found == expected
        shown = words(found) if len(found) <= 3 else f", {len(found)} other steps"
        return f"every {panel.cadence} s{shown}", ok

    expected = [(f"{start}Z", length) for start, length in gaps]
    return Fact("cadence", f"every {seconds} s{words(expected)}", measure)


def share_of_zeros(percent: str) -> Fact:
    """Share of readings that are exactly zero, to the digits given."""
    digits = len(percent.partition(".")[2])

    def measure(panel: Panel) -> tuple[str, bool]:
        found = f"{100 * float((panel.values == 0).mean()):.{digits}f}"
        return f"{found} %", found == percent

    return Fact("zeros", f"{percent} %", measure)


def missing(cells: int, sentinels: Sequence[float] = ()) -> Fact:
    """Number of readings that are NaN or a sentinel."""

    def measure(panel: Panel) -> tuple[str, bool]:
        found = int(np.isnan(panel.values).sum() + np.isin(panel.values, list(sentinels)).sum())
        return f"{found:,} ({100 * found / panel.values.size:.3f} %)", found == cells

    words = f" or {', '.join(f'{s:g}' for s in sentinels)}" if sentinels else ""
    return Fact(f"missing (NaN{words})", f"{cells:,}", measure)


def rows_of_zeros(count: int) -> Fact:
    """Number of steps at which every sensor reads zero."""

    def measure(panel: Panel) -> tuple[str, bool]:
        found = int((panel.values == 0).all(axis=1).sum())
        return f"{found:,}", found == count

    return Fact("rows all zero", f"{count:,}", measure)


def directed_edges(count: int) -> Fact:
    """Number of entries above zero off the diagonal of the adjacency."""

    def measure(panel: Panel) -> tuple[str, bool]:
        if panel.adjacency is None:
            return "no graph", False
        found = edge_count(panel.adjacency)
        return f"{found:,}", found == count

    return Fact("directed edges", f"{count:,}", measure)


def road_kernel(scale: float) -> Fact:
    """A = exp(-(d / scale)^2) on every edge, scale being the sd of the road distances: d / sqrt(-ln A) is constant.

    Judged by the weights, since a float32 weight near one leaves few digits of its logarithm.
    """

    def measure(panel: Panel) -> tuple[str, bool]:
        d = panel.distances
        if panel.adjacency is None or d is None:
            return "no graph or no distances", False
        A = dense(panel.adjacency)
        edge = (A > 0) & (A < 1)
        if not edge.any():
            return "no edges", False
        found = float(np.median(d[edge] / np.sqrt(-np.log(A[edge]))))
        error = float(np.abs(A[edge] - np.exp(-((d[edge] / found) ** 2))).max())
        return f"{found:.2f} m, weights to {error:.0e}", abs(found - scale) < 0.05 and error < 1e-6

    return Fact("d / sqrt(-ln A)", f"{scale:.2f} m on every edge", measure)


def neighbours_alike() -> Fact:
    """Edges join sensors that move together: the values and the graph are in one sensor order."""

    def measure(panel: Panel) -> tuple[str, bool]:
        if panel.adjacency is None:
            return "no graph", False
        values = panel.values[:: max(1, panel.T // 5000)]
        varying = values.std(axis=0) > 0
        A = symmetrize(dense(panel.adjacency))[np.ix_(varying, varying)]
        correlation = np.corrcoef(values[:, varying].T)
        other = ~np.eye(len(A), dtype=bool)
        if not (A[other] > 0).any():
            return "no edges", False
        near, all_pairs = correlation[other & (A > 0)].mean(), correlation[other].mean()
        # Of randomly relabelled graphs the mean over edges scatters by about this much around that of all pairs.
        scatter = correlation[other].std() / np.sqrt((A[other] > 0).sum() / 2)
        return f"{near:.3f} over edges, {all_pairs:.3f} over all pairs", bool(near > all_pairs + 6 * scatter)

    return Fact("correlation", "higher over edges than over all pairs", measure)
