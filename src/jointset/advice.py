"""What to try when a model misses its target, chosen by what the readings look like."""

from __future__ import annotations

from jointset.catalogue import ONE_AT_A_TIME, PUBLISHED
from jointset.errors import InputError
from jointset.joint_predictor import JointPredictor
from jointset.methods import parse
from jointset.panel import Panel
from jointset.predicting.promise import FAR, Promise, promise_of
from jointset.runs import Run

FAR_OFF = 3  # exit code of `jointset fit` when the test block is far under the target
MOST = 3  # things named at once
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
    known = parse(method).method == "time-of-day"
    more = "" if known else ". Try --method=time-of-day+aci, which knows the hour"
    return f"{100 * promise.seen:.1f} % inside hides hours or days that are missed far more often: {clock.words}{more}"


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
    '--method=kalman+aci, whose radius follows the readings'
    """
    name = parse(method)
    wrapped = f"--method={method}+aci" if name.wrap is None else ""
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
    if uneven and name.method != "time-of-day":
        found.append("--method=time-of-day+aci, which knows the hour")
    if wrapped and not gappy and name.method not in ONE_AT_A_TIME:
        found.append(f"{wrapped}, whose radius follows the readings")
    if drift and not wrapped and name.method != "ewma":
        found.append("--method=ewma+aci, whose shape follows the readings too")
    found.append("rows that are more like those to come" if drift else "another method: jointset bench compares them")
    return found[:MOST]
