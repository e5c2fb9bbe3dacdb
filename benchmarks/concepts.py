"""Draws the pictures of docs/concepts.md from sets of the library, counted on rows that neither fitted nor calibrated.

Usage: `python benchmarks/concepts.py`
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import jointset
from jointset.datasets.drift import with_drift

IMAGES = Path(__file__).parents[1] / "docs" / "images"
INK, LINE, MISS = "#333333", "#1f5fa8", "#c0392b"


def joint() -> Figure:
    """Coverage of all sensors by intervals of single ones and by one set; both sets for two sensors."""
    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    panel = jointset.generate_grssf("B", n=60, length=6000).panel
    sizes, alone, together = [1, 2, 5, 10, 20, 40, 60], [], []
    for n in sizes:
        train, calibration, test = panel.select(panel.sensors[:n]).split((0.5, 0.25, 0.25))
        model = jointset.predictor("static").fit(train).calibrate(calibration)
        seen = model.copy().run(calibration)
        off = np.sort(np.abs(seen.values - seen.mean), axis=0)
        ends = off[int(np.ceil((len(off) + 1) * 0.9)) - 1]
        run = model.copy().run(test)
        alone.append((np.abs(run.values - run.mean) <= ends).all(axis=1).mean())
        together.append(run.joint)
    left.plot(sizes, together, "o-", color=LINE, label="one joint set")
    left.plot(sizes, alone, "s-", color=MISS, label="a 90 % interval for each sensor")
    left.axhline(0.9, color=INK, linewidth=0.8, linestyle=":")
    left.set(xlabel="sensors", ylabel="rows with all sensors inside", ylim=(0, 1.02))
    left.legend(frameon=False)
    two(right)
    return figure


def two(ax) -> None:
    """A joint set and a box of two intervals, both at 90 %, for sensors with correlation 0.95."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 1)) * 0.95**0.5 + rng.normal(size=(3000, 2)) * 0.05**0.5
    panel = jointset.Panel(rows, ("one sensor", "its neighbour"))
    for name, colour in (("static", LINE), ("static:box", MISS)):
        model = jointset.predictor(name).fit(panel[:1500]).calibrate(panel[1500:2500])
        region, held = model.predict(), model.copy().run(panel[2500:]).joint
        grid = np.linspace(-3.6, 3.6, 400)
        mesh = np.stack(np.meshgrid(grid, grid), axis=-1)
        score = model.score.score(region.law, mesh)
        ax.contour(grid, grid, score, levels=[region.radius], colors=colour)
        words = "joint set" if name == "static" else "box"
        ax.plot([], [], color=colour, label=f"{words}: {held:.0%} inside, area {np.exp(2 * region.log_volume):.1f}")
    ax.plot(*rows[2500:].T, ".", color=INK, markersize=2, alpha=0.6)
    strange = (1.5, -1.5)
    ax.plot(*strange, "x", color=INK, markersize=9, markeredgewidth=2)
    ax.annotate("strange only as a pair", strange, (0.1, -3.0), arrowprops={"arrowstyle": "-"}, fontsize=9)
    ax.set(xlabel=panel.sensors[0], ylabel=panel.sensors[1], xlim=(-3.6, 3.6), ylim=(-3.6, 4.6))
    ax.legend(frameon=False, loc="upper left")


def drift() -> Figure:
    """Coverage of the last 100 rows when the readings jump, by rule."""
    figure = Figure(figsize=(9.2, 3.0), layout="constrained")
    ax = figure.subplots()
    panel = with_drift(jointset.generate_grssf("A", n=30, length=8000).panel, "jump")
    for rule, colour in (("split", MISS), ("aci", "#d68910"), ("auto", LINE)):
        model = jointset.predictor(f"kalman+{rule}").fit(panel[:5000]).calibrate(panel[5000:6800])
        inside = model.run(panel[6800:]).inside.astype(float)
        share = np.convolve(inside, np.full(100, 0.01), "valid")
        ax.plot(np.arange(99, len(inside)), share, color=colour, label={"split": "fixed", "aci": "ACI"}.get(rule, rule))
    ax.axvline(7600 - 6800, color=INK, linestyle="--", linewidth=0.9)
    ax.axhline(0.9, color=INK, linewidth=0.8, linestyle=":")
    ax.set(xlabel="row", ylabel="inside, last 100 rows", ylim=(-0.02, 1.03))
    ax.legend(frameon=False, loc="lower left")
    return figure


if __name__ == "__main__":
    joint().savefig(IMAGES / "concepts-joint.png", dpi=110)
    drift().savefig(IMAGES / "concepts-drift.png", dpi=110)
