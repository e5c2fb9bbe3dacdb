"""One task worked out in one process: its cell, its rows, their numbers. Nothing is written, nothing printed.

A process keeps the readings and the cells it used last, so that tasks of one cell share them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from jointset.abilities import ByRecipe
from jointset.bench.measures import measures, trace
from jointset.bench.plan import OWN, SEEDLESS, Task
from jointset.bench.results import FIGURES, SPENT
from jointset.catalogue import LEARNED, TABLE, bare
from jointset.contracts import Array, MeanModel
from jointset.datasets.cells import Cell, build_cell
from jointset.datasets.origins import Source, file_source, named_source
from jointset.datasets.sources.entry import DataWarning
from jointset.errors import InputError
from jointset.filters.recipes import Recipe
from jointset.support.how_far import each, telling

NAN = float("nan")
SOURCES: dict[str, Source] = {}  # readings that were brought here; others are looked for on this machine


class Done(NamedTuple):
    """Rows of a task (all but version, commit and task filled), arrays over time of its first seed, and warnings.

    notes: what was done to the readings of a file, or is to be known of them.
    """

    task: Task
    rows: list[dict[str, Any]]
    traces: dict[str, dict[str, Array]]
    warned: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def run_task(task: Task) -> Done:
    """All rows of a task; what fails is a row with status `error` and its message."""
    one_thread()
    reset_peak()
    began = datetime.now(UTC).isoformat(timespec="milliseconds")
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")  # what a cell has to tell stands in its notes
            warnings.filterwarnings("always", category=UserWarning, module="jointset")
            warnings.simplefilter("ignore", DataWarning)
            cell = cell_of(task)
            found, failed, traces = _rows(task, cell)
        n, notes = cell.panel.n_sensors, cell.notes if task.cell.startswith("file:") else ()
    except Exception as error:
        found, traces, n, notes = {}, {}, 0, ()
        failed = dict.fromkeys([(name, seed) for seed in task.seeds for name in task.names], message(error))
    peak = peak_mb()
    rows = []
    for seed in task.seeds:
        for name in task.names:
            numbers = found.get((name, seed)) or {"n": n, "error": failed[name, seed]}
            rows.append(filled(task, name, seed, numbers | {"started": began, "peak_mb": peak}))
    warned = dict.fromkeys(" ".join(str(one.message).split()) for one in caught)
    return Done(task, rows, traces, tuple(warned), tuple(notes))


def failure(task: Task, text: str) -> Done:
    """A task none of whose rows could be had."""
    began = datetime.now(UTC).isoformat(timespec="milliseconds")
    units = [(name, seed) for seed in task.seeds for name in task.names]
    return Done(task, [filled(task, name, seed, {"error": text, "started": began}) for name, seed in units], {})


def filled(task: Task, name: str, seed: int, known: Mapping[str, object]) -> dict[str, Any]:
    """A row of a task with what is known of it; the rest is empty, and without numbers it is an error."""
    unit = dict(zip(("cell", "protocol", "backbone", "method", "seed"), task.unit(name, seed), strict=False))
    trained = bare(name) in LEARNED or task.backbone not in (OWN, *SEEDLESS)
    return {
        **unit,
        "alpha": task.settings.alpha,
        **dict.fromkeys((*FIGURES, *SPENT), NAN),
        **dict.fromkeys(("n", "n_calibration", "n_test"), 0),
        "limit_steps": task.settings.limit_steps,
        "recipe": task.recipe_of(name),
        "pilot": task.pilot_of(name),
        "horizon": task.settings.horizon,
        "device": task.settings.device if trained else "cpu",
        "data": task.data,
        "error": "",
        "note": "",
        **known,
        "status": "error" if known.get("error") else "ok",
    }


Found = dict[tuple[str, int], dict[str, Any]]


def _rows(task: Task, cell: Cell) -> tuple[Found, dict[tuple[str, int], str], dict[str, dict[str, Array]]]:
    """Numbers of the rows that went well and messages of the others, by name and seed; traces by name."""
    found: Found = {}
    failed: dict[tuple[str, int], str] = {}
    traces: dict[str, dict[str, Array]] = {}
    measured: dict[str, tuple[Any, dict[str, Any]]] = {}
    means, seconds = _backbones(task, cell)
    for method in each([*dict.fromkeys(bare(name) for name in task.names)]):
        names = [name for name in task.names if bare(name) == method]
        curve: list[tuple[int, float]] = []  # of a learned filter: step and loss, mean over seeds
        for name, seed, result in _attempts(task, cell, names, means, curve):
            if isinstance(result, str):
                failed[name, seed] = result
                continue
            run, timing = result
            if measured.get(name, (None,))[0] is not run:  # a run that serves several seeds is measured once
                measured[name] = run, measures(run, task.settings.alpha)
            alone = timing._replace(fit_seconds=timing.fit_seconds + seconds)  # as if its mean were fitted for it
            found[name, seed] = measured[name][1] | alone._asdict()
            if seed == min(task.seeds):
                traces[name] = trace(run)
                recipe = _recipe(task, name) if curve and name == names[0] else None
                if recipe is not None:
                    traces[name]["curve"] = _learning_curve(recipe, cell, curve)
    return found, failed, traces


def _attempts(
    task: Task, cell: Cell, names: list[str], means: list[MeanModel] | None, curve: list[tuple[int, float]]
) -> Iterator[tuple[str, int, Any]]:
    """(name, seed, run and timing) of the rows of one method, or a message in their place; `curve` is filled.

    Where a pass through all names fails, each name and seed is tried alone: one bad row costs no other.
    """
    from jointset.experiments.rows import run_rows

    heard = telling()

    def told(step: int, total: int, loss: float) -> None:
        curve.append((step, loss))
        heard(step, total, loss)

    alpha, lacking = task.settings.alpha, [(name, seed) for name in names for seed in task.seeds]
    try:
        options: dict[str, Any] = {"backbone": means, "pilot": task.settings.pilot or None, "progress": told}
        options |= {"training": _training(task, names[0], cell), "horizon": task.settings.horizon or 1}
        for name, seed, run, timing in run_rows(names, cell, alpha, task.seeds, **options):
            lacking.remove((name, seed))
            yield name, seed, (run, timing)
    except Exception as error:
        if len(names) == len(task.seeds) == 1:
            yield names[0], task.seeds[0], message(error)
            return
        for name, seed in lacking:
            alone = replace(task, names=(name,), seeds=(seed,))
            mean = None if means is None else [means[task.seeds.index(seed)]]
            yield from _attempts(alone, cell, [name], mean, [])


def _backbones(task: Task, cell: Cell) -> tuple[list[MeanModel] | None, float]:
    """The fitted mean of every seed, made once for all rows, and its seconds; None: rows have means of their own."""
    from jointset.backbones import LearnedBackbone, backbone

    if task.backbone == OWN:
        return None, 0.0
    if task.backbone in SEEDLESS:
        linear, seconds = _linear(task.backbone, *task.place)
        return [linear] * len(task.seeds), seconds
    begin = time.perf_counter()
    mean, limit = backbone(task.backbone), task.settings.limit_steps
    assert isinstance(mean, LearnedBackbone)
    steps = min(limit, mean.steps) if limit else mean.steps
    trained = replace(mean, steps=steps, device=task.settings.device).fit_seeds(cell.fitting, list(task.seeds))
    return list(trained), (time.perf_counter() - begin) / len(task.seeds)


@lru_cache(maxsize=4)
def _linear(mean: str, name: str, protocol: str, seed: int) -> tuple[MeanModel, float]:
    """A linear mean of a cell, kept as its readings are, and the seconds it took."""
    from jointset.backbones import backbone

    begin = time.perf_counter()
    return backbone(mean).fit(_cell(name, protocol, seed).fitting), time.perf_counter() - begin


def _training(task: Task, name: str, cell: Cell) -> dict[str, Any] | None:
    """Settings of a learned filter: device, recipe, and its steps where they are limited."""
    method, limit = bare(name), task.settings.limit_steps
    if method not in LEARNED:
        return None
    training: dict[str, Any] = {"device": task.settings.device}
    if task.settings.recipe:
        training["recipe"] = task.settings.recipe
    if limit:
        recipe = _recipe(task, name)
        training["steps"] = limit if recipe is None else min(limit, recipe.total(cell.train.T))
    return training


def _recipe(task: Task, name: str) -> Recipe | None:
    """How the filter is trained; None where that is the filter's own affair."""
    made: Any = TABLE[bare(name)].make()
    if task.settings.recipe:
        made = replace(made, recipe=task.settings.recipe)
    return made.training_recipe if isinstance(made, ByRecipe) else None


def _learning_curve(recipe: Recipe, cell: Cell, told: list[tuple[int, float]]) -> Array:
    """Step and training NLL per sensor and reading (K, 2), mean over seeds; windows that only warm up are left out."""
    steps, losses = np.array(told, dtype=float).T
    nll = losses / (cell.panel.n_sensors * (recipe.window - recipe.skip))
    return np.stack([steps, nll], axis=1)[losses != 0.0].astype(np.float32)


# ---------------------------------------------------------------------- cells


def cell_of(task: Task) -> Cell:
    """The cell of a task, its test block cut where steps are limited."""
    cell = _cell(*task.place)
    limit, test = task.settings.limit_steps, cell.blocks["test"]
    if not limit or test.stop - test.start <= limit:
        return cell
    cut = {**cell.blocks, "test": slice(test.start, test.start + limit)}
    return replace(cell, blocks=MappingProxyType(cut))


@lru_cache(maxsize=4)
def _cell(name: str, protocol: str, seed: int) -> Cell:
    source = source_of(name, seed)
    return build_cell(source, name, protocol, seed, source.missing)


def source_of(name: str, seed: int) -> Source:
    """Readings of a cell: brought here, kept from the last task, or read from disk."""
    if name in SOURCES:
        return SOURCES[name]
    return _source(name, seed if name.startswith("grssf-") else 0)


@lru_cache(maxsize=2)
def _source(name: str, seed: int) -> Source:
    return file_source(name) if name.startswith("file:") else named_source(name, seed)


def forget() -> None:
    """Drop all cells and readings this process keeps: those of another run may be others under the same name."""
    for kept in (_cell, _linear, _source):
        kept.cache_clear()


# ---------------------------------------------------------------------- the process


def message(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, InputError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


@lru_cache(maxsize=1)
def one_thread() -> None:
    """Hold this process to one thread: parallel work is done by several processes, and numbers do not depend on it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)


def reset_peak() -> None:
    """Start the measurement of memory afresh, where the system lets us; else it is that of the process so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Largest resident memory of this process since `reset_peak`, in MB."""
    try:
        status = Path("/proc/self/status").read_text()
        return float(status.split("VmHWM:")[1].split()[0]) / 1024.0
    except (OSError, IndexError, ValueError):
        return _peak_so_far()


def _peak_so_far() -> float:
    try:
        import resource
        import sys
    except ImportError:  # not on this system
        return NAN
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
