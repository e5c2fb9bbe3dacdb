"""How far a benchmark is: a bar with the time left on a terminal, else one line for every finished task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jointset.bench.plan import Task
from jointset.bench.task import Done
from jointset.support.how_far import listening
from jointset.terminal import duration, note


@contextmanager
def shown(tasks: Sequence[Task]) -> Iterator[Callable[[Done], None]]:
    """Something to call with every finished task; all of it goes to stderr."""
    console = Console(stderr=True)
    with _bar(tasks, console) if console.is_terminal else _lines(tasks) as finished:
        yield finished


@contextmanager
def _bar(tasks: Sequence[Task], console: Console) -> Iterator[Callable[[Done], None]]:
    columns = (TextColumn("{task.fields[count]}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"))
    bar = Progress(*columns, TimeRemainingColumn(), TextColumn("{task.description}"), console=console, transient=True)
    total, whole = len(tasks), sum(task.weight for task in tasks)
    work = bar.add_task("", total=whole, count=f"0/{total}")
    count, worked, told = 0, 0.0, set[str]()

    def heard(step: int, steps: int, loss: float) -> None:
        bar.update(work, completed=max(worked, whole * step / steps))

    bar.advance(work, 1e-9 * whole)  # the time left is reckoned from the first to the last that was told
    with bar, listening(heard):

        def finished(done: Done) -> None:
            nonlocal count, worked
            count, worked = count + 1, worked + done.task.weight
            so_far = max(worked, bar.tasks[0].completed)
            bar.update(work, description=what(done.task), completed=so_far, count=f"{count}/{total}")
            if (state := _state(done, told)) != "ok":
                bar.console.print(f"{what(done.task)}: {state}", markup=False, highlight=False)
            for text in _notes(done, told):
                bar.console.print(f"note: {text}", markup=False, highlight=False)

        yield finished


@contextmanager
def _lines(tasks: Sequence[Task]) -> Iterator[Callable[[Done], None]]:
    began, whole, worked, count = time.monotonic(), sum(task.weight for task in tasks), 0.0, 0
    told: set[str] = set()

    def finished(done: Done) -> None:
        nonlocal worked, count
        count, worked = count + 1, worked + done.task.weight
        left = (time.monotonic() - began) / worked * max(whole - worked, 0.0)
        state = _state(done, told)
        typer.echo(f"[{count}/{len(tasks)}] {what(done.task)}: {state} ({duration(left)} left)", err=True)
        for text in _notes(done, told):
            note(text)

    yield finished


def _state(done: Done, told: set[str]) -> str:
    """`ok`, or the messages of a task; one that was told before is not told again."""
    errors = list(dict.fromkeys(row["error"] for row in done.rows if row["error"]))
    if not errors:
        return "ok"
    new = [text for text in errors if text not in told]
    told.update(new)
    return f"error: {'; '.join(new)}" if new else "error, as before"


def _notes(done: Done, told: set[str]) -> list[str]:
    """What a task has to say besides, and what is to be known of its readings; once for all seeds of a cell."""
    place = f"{done.task.cell} {done.task.protocol}"
    about = [*(f"{done.task.cell}: {text}" for text in done.notes), *(f"{place}: {text}" for text in done.warned)]
    new = [text for text in dict.fromkeys(about) if text not in told]
    told.update(new)
    return new


def what(task: Task) -> str:
    """A task in a few words."""
    seeds = f"seed {task.seeds[0]}" if len(task.seeds) == 1 else f"seeds {task.seeds[0]}-{task.seeds[-1]}"
    mean = "" if task.backbone in ("own", "gpvar") else f" around {task.backbone}"
    return f"{task.cell} {task.protocol} {', '.join(task.names)}{mean}, {seeds}"
