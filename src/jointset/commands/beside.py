"""The default method beside simple ones on the same rows, so that a user sees what training has brought."""

from __future__ import annotations

import math
from typing import Any

import typer

from jointset.catalogue import TABLE
from jointset.errors import InputError
from jointset.methods import Name, predictor_for
from jointset.panel import Panel
from jointset.runs import Run
from jointset.terminal import busy, show_table, sizes

SIMPLE = (("quick", None), ("ewma", "aci"))
MOST = 300  # sensors up to which they take seconds
FEWEST = 50  # test rows that say something
SIZE = "log_mean_volume"  # the mean of log-volumes would reward a radius that shrinks and explodes
SLACK = 0.03  # coverage short of the target by more, or by more than half the miss rate, is another promise


def show_beside(found: dict[str, dict[str, float]], alpha: float) -> None:
    """A table of the fitted method and the simple ones on the same rows, and what it means in a sentence."""
    if found:
        rows = [[one, *sizes(summary), f"{summary[SIZE]:.3f}"] for one, summary in found.items()]
        columns = ("method", "joint", "width", "width_full", "log-volume", "log mean volume")
        show_table(columns, rows, "On the same rows")
        typer.echo(verdict(found, alpha))


def beside(name: Name, run: Run, blocks: tuple[Panel, Panel, Panel], **how: Any) -> dict[str, dict[str, float]]:
    """Coverage and sizes of the fitted method and simple ones made the same way; none of few rows or many sensors."""
    train, calibrating, test = blocks
    if train.n_sensors > MOST or len(test) < FEWEST:
        return {}
    runs = {str(name): run}
    with busy("simple methods, to compare") as counting:
        more = counting(len(SIMPLE) * (len(calibrating) + len(test)))
        for method, wrap in SIMPLE:
            leaning = name.geometry == "box" and "lean" in TABLE[method].geometries  # as those of the default do
            simple = str(Name(method, "lean" if leaning else name.geometry, wrap))
            try:
                predictor = predictor_for(simple, **how).fit(train).calibrate(calibrating, progress=more)
                runs[simple] = predictor.run(test, regions=False, progress=more)
            except InputError:  # it cannot be fitted on such rows: there is nothing to compare with
                continue
    return {one: other.summary() for one, other in runs.items()}


def verdict(found: dict[str, dict[str, float]], alpha: float) -> str:
    """Which of the methods, the first being the fitted one, has the smallest sets, and how to have it.

    >>> one, other = {"joint": 0.9, "log_mean_volume": 0.0}, {"joint": 0.9, "log_mean_volume": 0.1}
    >>> verdict({"default": one, "quick": other}, 0.1)
    'Per sensor, the sets of default are 10 % smaller than those of quick.'
    """
    own = next(iter(found))
    held = [one for one in found if found[one]["joint"] > 1.0 - alpha - min(SLACK, alpha / 2.0)]
    if own not in held:
        return f"{own} held less than {100 * (1 - alpha):g} % of these rows: its sets are too small to compare."
    if held == [own]:
        return f"No simple method held {100 * (1 - alpha):g} % of these rows."
    best = min(held[1:], key=lambda one: found[one][SIZE])
    gain = found[best][SIZE] - found[own][SIZE]
    share = 100.0 * (1.0 - math.exp(-abs(gain)))
    if math.isnan(gain) or share < 0.5:
        return f"The sets of {own} and {best} are of one size here."
    if gain > 0.0:
        return f"Per sensor, the sets of {own} are {share:.0f} % smaller than those of {best}."
    return f"Per sensor, the sets of {best} are {share:.0f} % smaller here: fit with --method {best} for that one."
