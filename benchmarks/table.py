"""Timing and printing shared by the benchmark scripts: every figure is a ratio measured in one run."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core, set before NumPy is imported

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any


def seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    """Median wall-clock seconds of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def show(title: str, rows: Sequence[tuple[str, str, str]], note: str = "") -> None:
    """Print rows of (what, measured, against) under a title."""
    print(f"\n{title}  ({platform.machine()}, Python {platform.python_version()}, one core)")
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    if note:
        print(f"  note: {note}")
