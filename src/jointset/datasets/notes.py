"""Notes of a cell: one sentence for every repair, approximation or oddity a user should know of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from jointset.datasets.preprocess import Preprocess, Repairs
from jointset.datasets.sources.entry import DataWarning
from jointset.errors import some
from jointset.inputs.communities import components
from jointset.inputs.times import iso
from jointset.panel import Panel

MANY = 0.3  # share of missing readings from which a sensor is named


@contextmanager
def data_warnings() -> Iterator[list[str]]:
    """Collect what data sets warn of as sentences instead; other warnings go where they would."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        yield told
    for warning in caught:
        if issubclass(warning.category, DataWarning):
            told.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def time_notes(panel: Panel) -> tuple[str, ...]:
    """What is odd about the time stamps.

    >>> time_notes(Panel(np.zeros((4, 1)), ["a"], timestamps=[0, 300, 600, 4500]))
    ('1 of 3 steps between time stamps is not 300 s (the longest, 3900 s, after 1970-01-01T00:10:00Z): ...)
    """
    if panel.timestamps is None:
        return ("there are no time stamps: steps are taken one after the other, and nothing can depend on the hour",)
    if panel.is_regular or panel.T < 2:
        return ()
    steps = np.diff(panel.timestamps)
    odd, longest = int((steps != panel.cadence).sum()), int(steps.argmax())
    which = f"the longest, {steps[longest]} s, after {iso(panel.timestamps[longest])}"
    verb = "is" if odd == 1 else "are"
    return (
        f"{odd} of {len(steps)} steps between time stamps {verb} not {panel.cadence} s ({which}): "
        "no rows were added, the readings follow one another as they come",
    )


def reading_notes(
    raw: Panel, repairs: Mapping[str, Repairs], blocks: Mapping[str, slice], steps: Preprocess, *, zeros: bool
) -> tuple[str, ...]:
    """What became of sentinels, gaps and zeros, and which sensors hardly report."""
    notes = []
    readings, coded, carried, median, missing = (sum(column) for column in zip(*repairs.values(), strict=True))
    found = [f"{code:g}" for code in steps.sentinels if (raw.values == code).any()]
    codes = f", {coded} of them written as a code for no reading ({', '.join(found)})" if coded else ""
    if carried or median:
        how = f"{carried} with the sensor's last reading (at most 3 in a row), {median} with its training median"
        notes.append(f"{_share(carried + median, readings)} were missing{codes}, and are filled in: {how}")
    if missing:
        notes.append(f"{_share(missing, readings)} are missing and stay so{codes}")
    if zeros and 0.0 not in steps.sentinels:
        count = sum(int((raw.values[block] == 0).sum()) for block in blocks.values())
        advice = "kept as values; missing='mask' makes gaps of them"
        if count:
            notes.append(f"{_share(count, readings)} are exactly 0, which this source writes for no reading: {advice}")
    train = raw.values[blocks["train"]]
    gone = (np.isnan(train) | np.isin(train, steps.sentinels)).mean(axis=0)
    rare = [name for name, share in zip(raw.sensors, gone, strict=True) if share > MANY]
    if rare:
        notes.append(f"missing in more than {100 * MANY:.0f} % of the training block: {some(rare)}")
    if steps.log:
        notes.append("readings are log10(1 + x) before scaling")
    return tuple(notes)


def graph_notes(panel: Panel, rule: str, *, directed: bool) -> tuple[str, ...]:
    """Where the graph comes from, and what is odd about it."""
    if panel.n_sensors == 1:
        return ("one sensor: its sets are intervals and there is no graph",)
    if panel.adjacency is None:
        return ("no graph: every sensor is on its own",)
    notes = []
    if rule == "knn":
        notes.append("the graph joins sensors by correlation over the training block (k 8, tau 0.3)")
    if directed:
        notes.append("the graph is directed: the mean of both directions, (A + A')/2, is used")
    alone = sum(len(group) == 1 for group in components(panel.adjacency))
    if alone:
        verb = "has" if alone == 1 else "have"
        notes.append(f"{alone} of {panel.n_sensors} sensors {verb} no edge")
    return tuple(notes)


def _share(count: int, total: int) -> str:
    return f"{count} readings ({100 * count / total:.2f} %)"
