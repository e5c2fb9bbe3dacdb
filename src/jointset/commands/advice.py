"""What `fit` says of a fresh model: what training brought beside simple methods, and what to try where it fails."""

from __future__ import annotations

import math
from typing import Any

import typer

from jointset.catalogue import ONE_AT_A_TIME, PUBLISHED, TABLE
from jointset.errors import InputError
from jointset.joint_predictor import JointPredictor
from jointset.methods import Name, parse, predictor_for, rule_of
from jointset.panel import Panel
from jointset.predicting.promise import FAR, Promise, promise_of
from jointset.runs import Run
from jointset.terminal import counted, number, phases, show_table, sizes, stepped

SIMPLE = (("quick", None), ("ewma", "auto"))  # under the rule of the default
MOST = 300  # sensors up to which they take seconds
FEWEST = 50  # test rows that say something
SIZE = "log_mean_volume"  # the mean of log-volumes would reward a radius that shrinks and explodes
MORE = 1.0  # per cent of the rows that larger sets must hold more for it to be said
SLACK = 0.03  # coverage short of the target by more, or by more than half the miss rate, is another promise


def show_beside(found: dict[str, dict[str, float]], alpha: float) -> None:
    """A table of the fitted method and the simple ones on the same rows, and what it means in a sentence."""
    if found:
        rows = [[one, *sizes(summary), number(summary[SIZE])] for one, summary in found.items()]
        columns = ("method", "joint", "width", "width_full", "log-volume", "log mean volume")
        show_table(columns, rows, "On the same rows")
        typer.echo(verdict(found, alpha))


def beside(name: Name, run: Run, blocks: tuple[Panel, Panel, Panel], **how: Any) -> dict[str, dict[str, float]]:
    """Coverage and sizes of the fitted method and simple ones made the same way; none of few rows or many sensors."""
    train, calibrating, test = blocks
    if train.n_sensors > MOST or len(test) < FEWEST:
        return {}
    runs = {str(name): run}
    with phases(1) as started:
        for method, wrap in SIMPLE:
            leaning = name.geometry == "box" and "lean" in TABLE[method].geometries  # as those of the default do
            simple = str(Name(method, "lean" if leaning else name.geometry, wrap))
            try:
                predictor, what = predictor_for(simple, **how), f"{simple}, to compare"
                predictor.fit(train, progress=stepped(started, what))
                more = counted(started, what, len(calibrating) + len(test))
                predictor.calibrate(calibrating, progress=more)
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
    small, large = (own, best) if gain > 0.0 else (best, own)
    fewer = [100.0 * found[one]["joint"] for one in (small, large)]
    told = f", but held {fewer[0]:.1f} % of the rows, those of {large} {fewer[1]:.1f} %"
    though = told if fewer[1] > fewer[0] + MORE else ""
    if gain > 0.0:
        return f"Per sensor, the sets of {own} are {share:.0f} % smaller than those of {best}{though}."
    if though:
        return f"Per sensor, the sets of {best} are {share:.0f} % smaller here{though}."
    return f"Per sensor, the sets of {best} are {share:.0f} % smaller here: fit with --method {best} for that one."


FAR_OFF = 3  # exit code of `jointset fit` when the test block is far under the target
NAMED = 3  # things named at once
ROWS_A_SENSOR = 10  # training rows a sensor below which a covariance is a guess
GAPPY = 0.2  # share of rows with a gap from which the published methods suffer


def verdict_on(predictor: JointPredictor, run: Run, method: str, train: Panel, calibration: Panel) -> tuple[str, int]:
    """A warning where a test run did not keep the promise, empty where it did, and the exit code that goes with it."""
    promise = promise_of(predictor, run)
    if promise is None:
        return "", 0
    if promise.word == "kept":
        return uneven_hours(promise, run, method), 0
    try:
        drift = abs(predictor.trust().drift) >= 1.0
    except InputError:
        drift = False
    clock = run.clock
    tries = what_to_try(
        method,
        promise,
        rows=len(train),
        sensors=train.n_sensors,
        gaps=float((~calibration.mask).any(axis=1).mean()),
        drift=drift,
        uneven=clock is not None and bool(clock.words),
    )
    more = "; the sets are wider than they need be" if promise.word == "wide" else ""
    return f"{promise.sentence}{more}. Try {'; or '.join(tries)}", FAR_OFF if promise.word == "far" else 0


def uneven_hours(promise: Promise, run: Run, method: str) -> str:
    """A warning where the share of all rows is as promised but that of an hour or weekday is far under the target."""
    clock = run.clock
    if clock is None or not clock.worst <= promise.target - FAR:
        return ""
    tries = knowing_the_hour(parse(method))
    more = f". Try {tries}" if tries else ""
    return f"{100 * promise.seen:.1f} % inside hides hours or days that are missed far more often: {clock.words}{more}"


def knowing_the_hour(name: Name) -> str:
    """What to try where hours are missed; empty where radius and shape know them already.

    >>> knowing_the_hour(parse("ewma:box"))
    '--method=ewma:box+auto, whose radius knows the hour'
    """
    if rule_of(name) != "auto":
        return f"--method={name._replace(wrap='auto')}, whose radius knows the hour"
    return "" if name.method == "time-of-day" else "--method=time-of-day+auto, whose shape knows the hour too"


def what_to_try(
    method: str,
    promise: Promise,
    *,
    rows: int,
    sensors: int,
    gaps: float,
    drift: bool,
    uneven: bool,
) -> list[str]:
    """At most three things to try, the likeliest first.

    rows: of training · gaps: share of calibration rows with a gap · drift: scores have changed since calibration ·
    uneven: coverage differs by the hour.

    >>> from jointset.predicting.promise import Promise
    >>> far = Promise(0.9, 0.5, 400, 0.86, 0.94)
    >>> what_to_try("kalman", far, rows=9000, sensors=20, gaps=0.0, drift=True, uneven=False)[0]
    '--method=kalman+auto, whose radius follows the readings'
    """
    name = parse(method)
    wrapped = f"--method={name._replace(wrap='auto')}" if rule_of(name) == "split" else ""
    if promise.word == "wide":
        return [f"{wrapped}, whose radius follows the readings"] if wrapped else ["more rows to calibrate on"]
    found = []
    gappy = name.method in PUBLISHED and gaps > GAPPY
    if gappy:  # only complete rows move it: a wrap could not follow either
        share = f"{100 * gaps:.0f} % of the rows have a gap"
        found.append(f"--method=kalman-tuned, as {share}, which {name.method} was not made for")
    elif name.method in ONE_AT_A_TIME and wrapped:
        found.append(f"{wrapped}, which scales all intervals together")
    if rows < ROWS_A_SENSOR * sensors:
        found.append(f"more rows, or fewer sensors: {rows:,} rows are little for the covariance of {sensors:,} sensors")
    if uneven and knowing_the_hour(name):
        found.append(knowing_the_hour(name))
    elif wrapped and not gappy and name.method not in ONE_AT_A_TIME:
        found.append(f"{wrapped}, whose radius follows the readings")
    if drift and not wrapped and name.method != "ewma":
        found.append("--method=ewma+auto, whose shape follows the readings too")
    found.append("rows that are more like those to come" if drift else "another method: jointset bench compares them")
    return found[:NAMED]
