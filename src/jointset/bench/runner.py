"""A benchmark from plan to folder: what is missing is run by an engine, and every finished task is written at once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jointset
from jointset.bench.plan import Task
from jointset.bench.results import (
    keys_of,
    read_results,
    read_runs,
    without_horizon,
    write_rows,
    write_run,
    write_trace,
)
from jointset.bench.task import Done
from jointset.errors import require
from jointset.support.atomic import held
from jointset.support.extras import optional
from jointset.writing import new_folder

Engine = Callable[[Sequence[Task]], Iterator[Done]]
LOCK = "_lock"


def done_units(folder: str | Path) -> set[tuple]:
    """Keys of the rows of a folder that went well, with the data they are of; others are done again."""
    if not Path(folder).is_dir():
        return set()
    table = read_results(folder)
    keys = set(keys_of(table[table["status"].eq("ok")]))
    return keys | {without_horizon(key) for key in keys}


def fill(
    folder: str | Path,
    tasks: Sequence[Task],
    engine: Engine,
    *,
    told: Mapping[str, Any] | None = None,
    finished: Callable[[Done], None] | None = None,
) -> int:
    """Run tasks and write each as it finishes; the number of rows that failed.

    `told` goes into the folder's record of runs, `finished` is called after a task is on disk.
    """
    fresh, place = not Path(folder).exists(), new_folder(folder)
    read_runs(place)  # a record that cannot be continued is refused now, not after the first task
    facts = {"version": jointset.__version__, "commit": commit()}
    failed = 0
    begun, record = False, run_record(told or {}) | facts
    try:
        busy = f"another run is filling {place}: wait for it, or choose another folder"
        with held(place / LOCK, busy):
            for done in engine(tasks):
                if not begun:
                    write_run(place, record)
                    begun = True
                rows = [row | facts | {"task": done.task.slug} for row in done.rows]
                write_trace(place, done.task.slug, done.traces)  # first: a task is done when its rows are there
                write_rows(place, done.task.slug, rows)
                failed += sum(row["status"] != "ok" for row in rows)
                if finished is not None:
                    finished(done)
    finally:
        if fresh and not begun:  # an engine that cannot begin leaves nothing behind
            (place / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                place.rmdir()
    return failed


# ---------------------------------------------------------------------- provenance


def run_record(told: Mapping[str, Any]) -> dict[str, Any]:
    """What is written down of a run: command, time and machine."""
    return {
        "command": " ".join(["jointset", *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(told.get("arguments", {}).get("device", "cpu")),
        **told,
    }


def machine(device: str = "cpu") -> dict[str, Any]:
    """The machine in words that do not name it; its GPU where that is the device."""
    facts: dict[str, Any] = {"cpu": _cpu(), "cores": cores(), "memory_gb": _memory_gb(), "system": platform.system()}
    facts["python"] = platform.python_version()
    for package in ("numpy", "torch"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    if device == "cuda":
        import torch

        facts["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "of the workers"
    return facts


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


@lru_cache(maxsize=1)
def commit() -> str:
    """Commit of the source this package runs from, `+` where it was changed; empty for an installed package."""
    package = Path(jointset.__file__).parent
    if package.parent.name != "src":
        return ""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(package), *words], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")) != package.parents[1]:
            return ""
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def require_device(device: str, here: bool = True) -> None:
    """Refuse an unknown device, or one that is not there where the work is done here."""
    require(device in ("cpu", "cuda"), f"unknown device {device!r}: choose cpu or cuda")
    if device == "cuda" and here:
        torch = optional("torch", "--device cuda")
        require(torch.cuda.is_available(), "no CUDA device here: leave --device out, or run on a machine with one")
