"""The report in words: what came out, as sentences computed from the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from jointset.bench.measures import coin
from jointset.bench.report_groups import Group, Panel, reference
from jointset.terminal import several

NAMED = 4  # methods named in a sentence before "and N more"


class Verdict(NamedTuple):
    """What is said about one panel: a heading and sentences."""

    name: str
    about: str
    sentences: tuple[str, ...]


def opening(panels: Sequence[Panel]) -> str:
    """How much was run and what went wrong, in one or two sentences."""
    if not panels:
        return "No benchmark was run into this folder: it holds audits only."
    cells = len({panel.cell for panel in panels})
    methods = len({group.method for panel in panels for group in panel.groups})
    well = sum(len(group.rows) for panel in panels for group in panel.groups)
    failed = sum(len(group.failed) for panel in panels for group in panel.groups)
    sentence = f"{several(methods, 'method')} on {several(cells, 'cell')}: {several(well, 'result')}"
    return sentence + (f", and {failed:,} that failed." if failed else ", none failed.")


def verdict(panel: Panel) -> Verdict:
    """What came out on one panel: the sharpest sets at target, who missed it, the worst stretch."""
    target = f"{100 * (1 - panel.alpha):g} %"
    facts = [f"{panel.largest('n'):,} sensors", f"{panel.largest('n_test'):,} test steps", f"target {target}"]
    facts += [f"data limited to {panel.limit_steps:,} steps"] if panel.limit_steps else []
    done = panel.done
    if not done:
        return Verdict(panel.name, "", (f"No method gave a result: {panel.groups[0].failed[0]['error']}",))
    sharp = [(label, group) for label, group in done if group.at_target and math.isfinite(group.mean("width"))]
    if sharp:
        sentences = [sharpest(panel, sharp)]
    else:
        label, group = max(done, key=lambda pair: pair[1].mean("joint"))
        best = f"{label} with {percent(group.mean('joint'))}"
        endless = any(group.at_target for _, group in done)
        what = "reached the target with sets of finite size" if endless else "reached the target"
        sentences = [f"No method {what}; the highest joint coverage was that of {best}."]
    sentences += [missed(panel, target), reused(panel)]
    worst = [(label, group) for label, group in (sharp or done) if math.isfinite(group.mean("worst_window"))]
    if worst:
        sentences += [worst_stretch(panel, worst, bool(sharp))]
    return Verdict(panel.name, ", ".join(facts), tuple(filter(None, sentences)))


def sharpest(panel: Panel, sharp: Sequence[tuple[str, Group]]) -> str:
    """The narrowest and the smallest sets at target, each against the static reference."""
    label, group = min(sharp, key=lambda pair: pair[1].mean("width"))
    text = f"On {panel.name} the sharpest method at target was {label}: {against(panel, group)}"
    text += f" with joint coverage of {percent(group.mean('joint'))}."
    sized = [(name, one) for name, one in sharp if math.isfinite(one.mean("log_mean_volume"))]
    if not sized:
        return text
    name, smallest = min(sized, key=lambda pair: pair[1].mean("log_mean_volume"))
    if name == label:
        return (
            text
            + f" Its sets were also the smallest by volume (log mean volume {fixed(smallest.mean('log_mean_volume'))})."
        )
    pair = f"width {fixed(smallest.mean('width'))}, log mean volume {fixed(smallest.mean('log_mean_volume'))}"
    mine = f"width {fixed(group.mean('width'))}, log mean volume {fixed(group.mean('log_mean_volume'))}"
    return text + f" By volume the smallest sets were those of {name} ({pair}; {label}: {mine})."


def against(panel: Panel, group: Group) -> str:
    """The width of a group in words, beside the static reference where there is another one."""
    width, other = group.mean("width"), reference(panel, group)
    if other is None or not math.isfinite(other.mean("width")) or other.mean("width") <= 0:
        return f"sets of width {fixed(width)},"
    if other == group:
        return f"sets of width {fixed(width)} (it is the static reference itself),"
    change = 100 * (1 - width / other.mean("width"))
    if abs(change) < 0.5:
        return "sets as wide as those of the static reference,"
    missing = "" if other.at_target else " (which missed the target)"
    side = "narrower" if change > 0 else "wider"
    return f"sets {abs(change):.0f} % {side} than the static reference{missing},"


def missed(panel: Panel, target: str) -> str:
    """Who missed the target, who gave no result, whose sets had no end."""
    below = sorted((pair for pair in panel.done if not pair[1].at_target), key=lambda pair: pair[1].mean("joint"))
    text = f"All {len(panel.done)} methods reached the target." if len(panel.done) > 1 else ""
    if below:
        named = [f"{label} ({percent(group.mean('joint'))})" for label, group in below]
        text = f"{len(below)} of {several(len(panel.done), 'method')} missed the target of {target}: {listed(named)}."
    broken = [label for label, group in zip(panel.labels, panel.groups, strict=True) if not group.rows]
    text += f" No result from {listed(broken)}." if broken else ""
    endless = [(label, share) for label, group in panel.done if (share := group.mean("infinite_share")) >= 0.001]
    shares = [f"{label} ({percent(share)} of the steps)" for label, share in sorted(endless, key=lambda pair: -pair[1])]
    return text + (f" Sets without an end, or clipped to a largest size: {listed(shares)}." if shares else "")


def reused(panel: Panel) -> str:
    """Whose shapes were fitted on the calibration rows, with what is to be expected of them."""
    notes = [f"{label}: {group.note}" for label, group in panel.done if group.note]
    return f"† {'; '.join(notes)}." if notes else ""


def worst_stretch(panel: Panel, groups: Sequence[tuple[str, Group]], at_target: bool) -> str:
    """The worst window of the sharpest method and of the steadiest one."""
    label, group = min(groups, key=lambda pair: pair[1].mean("width"))
    steady, best = max(groups, key=lambda pair: pair[1].mean("worst_window"))
    steps = min(500, panel.largest("n_test"))
    ideal, hour = coin(panel.largest("n_test"), group.alpha), group.mean("worst_hour")
    text = (
        f"In its worst {steps} steps {label} covered {percent(group.mean('worst_window'), 0)} "
        f"(an ideal coin {percent(ideal['worst_window'], 0)})"
    )
    if math.isfinite(hour):
        text += f", at its lowest hour of the day {percent(hour, 0)} (the coin {percent(ideal['worst_hour'], 0)})"
    if steady == label:
        return text + (", the best of all at target." if at_target and len(groups) > 1 else ".")
    among = "at target " if at_target else ""
    return text + f"; the steadiest {among}was {steady} with {percent(best.mean('worst_window'), 0)}."


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more.

    >>> listed(["a", "b"]), listed(list("abcdef"))
    ('a and b', 'a, b, c, d and 2 more')
    """
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}f} %"


def fixed(value: float) -> str:
    """A size with three or four digits.

    >>> fixed(2.8371), fixed(183.2), fixed(float("inf"))
    ('2.84', '183', 'infinite')
    """
    if not math.isfinite(value):
        return "infinite" if value > 0 else "none"
    return (f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}").replace("-", "−")
