"""Cost of a live row in the formats a stream takes, JSON and long CSV against wide CSV, at N = 1,000 sensors."""

import argparse
import json
import time
from collections.abc import Sequence

from table import show  # first: sets the number of threads

import numpy as np
from jointset.methods import predictor_for
from jointset.panel import Panel
from jointset.joint_predictor import JointPredictor
from jointset.streaming import Stream
from jointset.inputs.live_cells import Options
from jointset.inputs.live_rows import readings

LIMIT = 1.5  # a JSON row against a CSV row, all told
ROUNDS = 7  # the best counts


def network(n: int, rows: int) -> tuple[JointPredictor, Panel]:
    """A calibrated predictor of n independent sensors, and rows that follow."""
    values = np.random.default_rng(0).normal(50, 10, (600 + rows, n)).round(3)
    panel = Panel(values, [f"sensor_{i:04d}" for i in range(n)])
    return predictor_for("kalman").fit(panel[:300]).calibrate(panel[300:600]), panel[600:]


def formats(panel: Panel) -> dict[str, list[str]]:
    """The same rows as lines in every format; the first line of CSV is its header."""
    rows = panel.values.tolist()
    objects = [dict(zip(panel.sensors, row, strict=True)) for row in rows]
    cells = [f"{t},{name},{value}" for t, row in enumerate(objects) for name, value in row.items()]
    return {
        "CSV": [",".join(("time", *panel.sensors)), *(",".join(map(str, (t, *row))) for t, row in enumerate(rows))],
        "long CSV": ["time,sensor,value", *cells],
        "JSON object": [json.dumps({"time": t, "values": row}) for t, row in enumerate(objects)],
        "JSON list": [json.dumps({"time": t, "values": row}) for t, row in enumerate(rows)],
    }


def per_row(predictor: JointPredictor, lines: Sequence[str], rows: int) -> float:
    """Seconds a row: read, scored, answered and written as JSON."""
    begin = time.perf_counter()
    for answer in Stream(predictor).answers(lines):
        json.dumps(answer)
    return (time.perf_counter() - begin) / rows


def parsing(predictor: JointPredictor, lines: Sequence[str]) -> float:
    """Seconds to read one row, without scoring it."""
    begin = time.perf_counter()
    rows = sum(1 for _ in readings(lines, predictor.sensors, Options(), print))
    return (time.perf_counter() - begin) / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=40)
    asked = parser.parse_args()
    predictor, live = network(asked.n, asked.rows)
    lines = formats(live)
    whole, read = dict.fromkeys(lines, np.inf), dict.fromkeys(lines, np.inf)
    for _ in range(ROUNDS):  # in turns, so that other work on the machine slows all of them
        for name, text in lines.items():
            whole[name] = min(whole[name], per_row(predictor, text, asked.rows))
            read[name] = min(read[name], parsing(predictor, text))
    table = []
    for name in lines:
        ratio = f"{whole[name] / whole['CSV']:.2f}x CSV" + (f" (limit {LIMIT}x)" if "JSON" in name else "")
        table += [
            (f"{name}, a row answered", f"{1e3 * whole[name]:.2f} ms", ratio),
            (f"{name}, of that reading", f"{1e3 * read[name]:.2f} ms", f"{read[name] / read['CSV']:.2f}x CSV"),
        ]
    show(f"Live rows of {asked.n:,} sensors, method kalman", table)


if __name__ == "__main__":
    main()
