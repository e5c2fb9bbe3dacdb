"""What the command line shows: progress on stderr, tables, sentences and JSON on stdout."""

from __future__ import annotations

import inspect
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from jointset.errors import InputError
from jointset.support.how_far import Told, listening

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor
    from jointset.predicting.limits import Limits
    from jointset.report.demo import Result
    from jointset.runs import Run


PAUSE = 0.1  # seconds between two words on how far something is, at least


@contextmanager
def phases(total: int, *, alike: bool = False) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr, only on a terminal; call it with what starts now and by how much to advance.

    Where its steps are `alike`, such as rows, it also says how long it will take.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if alike else []),
        console=console,
        transient=True,
        speed_estimate_period=600.0,
        disable=not console.is_terminal,
    )
    with nullcontext() if bar.disable else bar:  # rich ends even a bar that is not shown with an empty line
        task = bar.add_task("", total=total)

        def started(what: str, by: int = 1) -> None:
            bar.update(task, description=what, advance=by, refresh=True)

        yield started


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """Say on a terminal what is at work, told by its name, how much of all is done and how long the rest will take."""
    what, last = "", (0, 1)
    with phases(1) as started:

        def told(step: int, steps: int, loss: float) -> None:
            nonlocal last
            last = step, steps
            shown(step, steps, loss)

        def begun(name: str) -> None:
            nonlocal what
            what = name
            shown(*last, math.nan)

        shown = stepped(started, lambda: what)
        with listening(told):
            yield begun


@contextmanager
def busy(what: str) -> Iterator[Callable[..., Callable[[int], None]]]:
    """Say on a terminal what is going on, and for how long, where that may take more than two seconds.

    Where there are rows to count, give what is yielded their number: it makes a progress function for them. Work that
    tells how far it is (`jointset.support.how_far`) is listened to.
    """
    with phases(1) as started, listening(stepped(started, lambda: what)):
        started(what, 0)
        yield partial(counted, started, what)


def counted(started: Callable[..., None], what: str, total: int, unit: str = "row") -> Callable[[int], None]:
    """A progress function for rows, or what `unit` calls them: it tells a bar of `phases` how many of all are done."""
    done, begun, told = 0, time.perf_counter(), -math.inf

    def more(rows: int) -> None:
        nonlocal done, told
        done, now = done + rows, time.perf_counter()
        if now - told < PAUSE:
            return
        told, left = now, (now - begun) / max(done, 1) * (total - done)
        started(f"{what}, {unit} {done} of {total}, {duration(left)} left", 0)

    return more


def stepped(started: Callable[..., None], what: str | Callable[[], str]) -> Told:
    """A progress function for a fit: it tells a bar of `phases` how much is done, and how long the rest will take."""
    at, shown, left = -math.inf, "", seconds_left()

    def step_done(step: int, total: int, loss: float) -> None:
        nonlocal at, shown
        now, name, rest = time.perf_counter(), what if isinstance(what, str) else what(), left(step, total)
        if now - at < PAUSE and name == shown:
            return
        at, shown = now, name
        started(f"{name}, {100 * step // total} %, {duration(rest)} left" if step else name, 0)

    return step_done


def seconds_left() -> Callable[[int, int], float]:
    """Seconds that steps of a total still take, by the pace since it was first asked: a run may go on with another."""
    begun, first = time.perf_counter(), -1

    def left(step: int, total: int) -> float:
        nonlocal begun, first
        now = time.perf_counter()
        if first < 0:
            begun, first, done, spent = now, step, step, now - begun
        else:
            done, spent = step - first, now - begun
        return spent / max(done, 1) * (total - step)

    return left


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(41.0), duration(200.0), duration(8000.0)
    ('41 s', '3 min', '2.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def several(count: int, what: str) -> str:
    """A number of things.

    >>> several(1, "row"), several(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def flowing(text: str | None) -> str:
    """A docstring whose paragraphs are one line each, so that a help text fills the terminal it is shown on.

    >>> flowing("Fit it.\\n\\n    A model ends\\n    with its file.\\n    ")
    'Fit it.\\n\\nA model ends with its file.'
    """
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))


def note(text: str) -> None:
    """A line for the person at the terminal, beside the results."""
    typer.echo(f"note: {text}", err=True)


def warn(text: str) -> None:
    """A line for the person at the terminal that should not be overlooked."""
    typer.echo(f"warning: {text}", err=True)


def tell_warnings() -> None:
    """Show warnings of the library as one-line notes instead of Python's two lines with a source path."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any) -> None:
        if category is UserWarning:
            note(str(message))
        else:
            usual(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]


def number(value: float) -> str:
    """A figure of a table: three decimals where these say enough, else four digits that count.

    >>> number(5.2), number(0.0), number(5.1813e-06), number(11039877.543)
    ('5.200', '0.000', '5.181e-06', '1.104e+07')
    """
    return f"{value:.3f}" if value == 0.0 or 0.1 <= abs(value) < 1e5 else f"{value:.4g}"


def sizes(summary: dict[str, Any]) -> list[str]:
    """Cells of a table: joint coverage, width, full width, log-volume."""
    joint = summary["joint"]
    return [
        "none" if math.isnan(joint) else f"{100 * joint:.1f} %",
        *(number(summary[key]) for key in ("width", "width_full", "log_volume")),
    ]


def show_results(results: Mapping[str, Result], alpha: float) -> None:
    """The table of the demonstration, a method a row."""
    run = next(iter(results.values())).run
    title = f"{len(run.sensors)} sensors, {len(run.score)} test steps, target {100 * (1 - alpha):g} %"
    columns = ("method", "joint", "width", "width_full", "log-volume", "seconds")
    rows = [[method, *sizes(result.row()), f"{result.seconds:.2f}"] for method, result in results.items()]
    show_table(columns, rows, title)
    for method, result in results.items():
        show_limits(result.row(), method)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    words: Sequence[str] = (),
    wide: int | None = None,
) -> None:
    """A table on stdout: the first column names things, those in `words` are text, the others are numbers.

    With `wide`, the columns of a table that goes to a file, only text is broken into lines.
    """
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in columns:
        first, text = name == columns[0], name in words
        whole = wide is not None and (first or not text)
        table.add_column(name, justify="left" if first or text else "right", no_wrap=whole, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else wide).print(table)


def show_summary(run: Run, alpha: float, where: str) -> None:
    """Coverage and sizes of a run as a table, and what they mean in a sentence."""
    summary, clock = run.summary(), run.clock
    show_table(("joint", "width", "width_full", "log-volume"), [sizes(summary)])
    if math.isnan(summary["joint"]):
        typer.echo(f"{where} there was no reading at all: none could be scored.")
        return
    share = f"{100 * summary['joint']:.1f} % of the time (target {100 * (1 - alpha):g} %)"
    uneven = f"; {clock.words}" if clock is not None and clock.words else ""
    typer.echo(f"{where} the set contained the whole reading {share}{uneven}.")
    show_limits(summary)


def show_limits(summary: dict[str, Any], method: str = "the calibration") -> None:
    """A sentence where a radius wanted to go further than it could."""
    if summary["infinite_share"]:
        share = f"{100 * summary['infinite_share']:.1f} % of the steps"
        typer.echo(f"The radius of {method} was infinite, clipped or extrapolated at {share}.")


def show_trust(predictor: JointPredictor) -> None:
    """The predictor's verdict on itself as a sentence; nothing where its method has none."""
    verdict = trust_words(predictor)
    if verdict:
        typer.echo(f"{verdict[0].upper()}{verdict[1:]}.")


def trust_words(predictor: JointPredictor) -> str:
    """The predictor's verdict on itself; empty where its method has none."""
    try:
        return predictor.trust().verdict
    except InputError:
        return ""


def show_region(predictor: JointPredictor, as_json: bool, limits: Limits) -> None:
    """The set for the next reading, and the band of every sensor by itself where the method has one."""
    from jointset.next_set import next_set, set_parts

    if as_json:
        show_json(next_set(predictor, limits))
        return
    mean, bands, facts = set_parts(predictor, limits)
    (lower, upper), alone = bands["bounds"], bands.get("own", ())
    columns = ("sensor", "lower", "mean", "upper", *("own lower", "own upper")[: len(alone)])
    cells = zip(predictor.sensors, lower, mean, upper, *alone, strict=True)
    show_table(columns, [[name, *(f"{x:.4g}" for x in row)] for name, *row in cells])
    typer.echo(", ".join(f"{name} {number:.4g}" for name, number in facts.items()))
    typer.echo("lower and upper are the outermost points of the set along each sensor; --json prints all digits.")
    if alone:
        typer.echo("own lower and own upper hold the readings of that one sensor as often as the set holds all.")


def show_json(value: object) -> None:
    """One JSON object on stdout; infinities are null."""
    from jointset.writing import json_ready

    typer.echo(json.dumps(json_ready(value), indent=1, allow_nan=False))
