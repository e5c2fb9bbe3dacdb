"""What every predictor promises, a check each: given one from `jointset.checks.calibrated`, it may move it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jointset.checks.blocks import CALIBRATION, HOUR, block, block_with_gaps
from jointset.errors import InputError
from jointset.joint_predictor import JointPredictor, Run
from jointset.methods import load_predictor
from jointset.panel import Panel
from jointset.streaming import Stream

TOLERANCE = 1e-8  # of a step against a run, which may refactor a matrix at another time
ROUNDING = 1e-12  # of two runs, which may add in another order
SETS = ("lower", "upper", "log_volume", "radius")  # what a set is, in a run
Check = Callable[[JointPredictor], None]


# ---------------------------------------------------------------------- one set of numbers


def steps_are_the_run(predictor: JointPredictor) -> None:
    """Predicting and updating row by row gives the numbers of a run, gaps included."""
    test, whole = block_with_gaps(), predictor.copy()
    run = whole.run(test)
    for t, y in enumerate(test.values):
        region, outcome = predictor.predict(), predictor.update(y)
        close(region.bounds_for(y), (run.lower[t], run.upper[t]), f"the bounds of step {t} are not those of the run")
        close(region.log_volume, run.log_volume[t], f"the volume of step {t} is not that of the run")
        close(outcome.score, run.score[t], f"the score of step {t} is not that of the run")
        close(outcome.radius, run.radius[t], f"the radius of step {t} is not that of the run")
        expect(outcome.inside == run.inside[t], f"step {t} and the run differ on whether the row is inside")
    expect(predictor.trust() == whole.trust(), "the verdict after steps is not that after the run")


def two_runs_are_one(predictor: JointPredictor) -> None:
    """Running through two halves gives the sets of the whole, and regions are kept only where asked for."""
    whole, test = predictor.copy().run(block()), block()
    first, second = predictor.run(test[:7]), predictor.run(test[7:], regions=False)
    for part in SETS:
        both = np.concatenate([getattr(first, part), getattr(second, part)])
        close(both, getattr(whole, part), f"{part} of two runs is not that of one")
    expect(second.regions is None, "a run without regions has some")


def sets_do_not_see_their_reading(predictor: JointPredictor) -> None:
    """Other readings from step t on leave the sets up to t alone, to the order in which a run adds numbers."""
    t, values = 9, block().values.copy()
    values[t:] = 50.0 * np.random.default_rng(1).normal(size=values[t:].shape)
    run, other = predictor.copy().run(block()), predictor.run(block().with_values(values))
    for part in SETS:
        seen = getattr(run, part)[: t + 1], getattr(other, part)[: t + 1]
        close(*seen, f"{part} up to a step depends on the reading of that step or on later ones", ROUNDING)


def asking_changes_nothing(predictor: JointPredictor) -> None:
    """Looking at the set, the verdict and what a reading would contribute leaves the predictor as it was."""
    untouched, y = predictor.copy(), block().values[0]
    for _ in range(2):
        predictor.predict()
        predictor.trust()
        predictor.contributions(y)
        predictor.attribution(y)
        predictor.neighbourhoods(y)
        predictor.given_others(y)
        predictor.own_bounds()
    _goes_on_as(predictor, untouched, "a predictor that was asked")


# ---------------------------------------------------------------------- copies and files


def a_copy_is_independent(predictor: JointPredictor) -> None:
    """What a copy sees does not move the predictor it was made from."""
    expected, other = predictor.copy().run(block()), predictor.copy()
    other.update(50.0 + block().values[0])
    other.run(block_with_gaps())
    _same_runs(predictor.run(block()), expected, "a predictor whose copies went on")


def a_saved_model_goes_on(predictor: JointPredictor) -> None:
    """A predictor that is saved after some rows and loaded again gives bit-equal sets from there on."""
    predictor.run(block_with_gaps(8))
    with tempfile.TemporaryDirectory() as folder:
        predictor.save(Path(folder, "model"))
        loaded = load_predictor(Path(folder, "model"))
    expect(loaded.sensors == predictor.sensors, "a loaded model has other sensors")
    expect(loaded.trust() == predictor.trust(), "a loaded model has another verdict")
    _goes_on_as(loaded, predictor, "a loaded model")


# ---------------------------------------------------------------------- live use


def a_stream_answers_as_the_run(predictor: JointPredictor) -> None:
    """Rows on lines get the sets and scores of a run; a line that is refused changes nothing."""
    test = block_with_gaps(8)
    run = predictor.copy().run(test)
    lines = [_line(test, t) for t in range(len(test))]
    lines[3:3] = [json.dumps({test.sensors[0]: bad}) for bad in ("warm", 1.7e308)]
    answers = list(Stream(predictor, trust=True).answers(lines))
    refused, answers[3:5] = answers[3:5], []
    expect(all("error" in answer for answer in refused), "a stream takes text, or what is too large to be squared")
    for t, answer in enumerate(answers):
        expect("error" not in answer, f"a stream refuses a good row: {answer.get('error')}")
        inside = bool(run.inside[t]) if answer["observed"] else None
        expect(answer["inside"] is inside, f"row {t} of a stream and the run differ on whether it is inside")
        for part in ("score", "radius"):
            found = np.nan if answer[part] is None else answer[part]
            close(found, getattr(run, part)[t], f"the {part} of row {t} of a stream is not that of the run")
        ends = np.array([answer["bounds"][name] for name in test.sensors], dtype=float).T
        close(ends, (run.lower[t], run.upper[t]), f"the bounds of row {t} of a stream are not those of the run")
        expect(bool(answer["trust"]["verdict"]), "a stream that was asked for it has no verdict")


def _line(panel: Panel, t: int) -> str:
    """One row as a stream reads it."""
    values = [None if np.isnan(value) else float(value) for value in panel.values[t]]
    return json.dumps({"time": HOUR * (CALIBRATION.stop + t), **dict(zip(panel.sensors, values, strict=True))})


def trust_gives_a_verdict(predictor: JointPredictor) -> None:
    """A verdict in words with sound numbers, at once and after some rows; rows without a reading do not count."""
    fresh = predictor.trust()
    expect(bool(np.isnan(fresh.recent_coverage)) and fresh.drift == 0, "there is drift before the first row")
    run = predictor.run(block_with_gaps())
    later, scored = predictor.trust(), ~np.isnan(run.score)
    close(later.recent_coverage, run.inside[scored].mean(), "the recent coverage is not that of rows with a reading")
    same(later.infinite_share, run.infinite_share, "the verdict and the run count other infinite radii")
    for trust in (fresh, later):
        expect(bool(trust.verdict) and "\n" not in trust.verdict, "the verdict is no line of words")
        expect(trust.n_calibration == predictor.n_calibration > 0, "the verdict counts other scores than there are")
        expect(1.0 <= trust.effective_size <= trust.n_calibration, "calibration scores are worth more than they are")
        low, high = trust.band
        expect(0.0 <= low <= trust.coverage <= high <= 1.0, "the coverage to expect is outside its band")


def the_sensor_that_left_is_named(predictor: JointPredictor) -> None:
    """One sensor far off the middle of the set contributes most, and the reading is outside."""
    y = np.array(predictor.predict().center)
    y[2] += 50.0 * predictor.scale[2]
    expect(int(predictor.contributions(y).argmax()) == 2, "the one sensor that is far off does not contribute most")
    expect(not predictor.update(y).inside, "a reading far off is inside")


def shares_add_up_to_the_score(predictor: JointPredictor) -> None:
    """Those of the sensors and those of the neighbourhoods, with gaps and without; what is missing has none."""
    for y in block_with_gaps(8).values:
        shares, around = predictor.attribution(y), predictor.neighbourhoods(y)
        expect(bool((shares[np.isnan(y)] == 0).all()), "a sensor without a reading has a share in the score")
        score = np.nan_to_num(predictor.update(y).score)
        close(shares.sum(), score, "the shares of the sensors do not add up to the score")
        close(sum(one.share for one in around), score, "the shares of the neighbourhoods do not add up to the score")


# ---------------------------------------------------------------------- sets


def sets_have_a_size(predictor: JointPredictor) -> None:
    """Bounds are finite and in order, the centre between them, widths positive, the volume a number."""
    run = predictor.run(block())
    expect(bool(np.isfinite([run.lower, run.upper, run.mean]).all()), "bounds are not finite")
    expect(bool((run.lower <= run.upper).all()), "a lower bound is above its upper bound")
    centre = run.regions[3].center
    expect(bool((run.lower[3] <= centre).all() and (centre <= run.upper[3]).all()), "the centre is out of bounds")
    expect(bool((run.width > 0).all() and np.isfinite(run.log_volume).all()), "a set has no width or no volume")


def inside_is_score_at_most_radius(predictor: JointPredictor) -> None:
    """At every step, with gaps and after a jump of the noise: `contains`, `inside` and score <= radius are one."""
    test = block_with_gaps(100, jump=4.0)
    run = predictor.run(test)
    scored = ~np.isnan(run.score)
    same(run.inside[scored], (run.score <= run.radius)[scored], "inside is not score <= radius")
    same(run.regions.contains(test.values)[scored], run.inside[scored], "the set and the run differ on what it holds")


def the_middle_is_inside(predictor: JointPredictor) -> None:
    """Whatever is missing, unless the set is empty; a set with a hole promises it for rows with gaps."""
    rng = np.random.default_rng(1)
    predictor.run(block(4))
    for y in block(12).values[4:]:
        region = predictor.predict()
        middle = np.array(region.center)
        hole = bool(getattr(region, "log_volume_filled", region.log_volume) > region.log_volume)  # in its middle
        middle[rng.permutation(len(middle))[: rng.integers(hole, len(middle))]] = np.nan
        expect(bool(region.contains(middle)) or not np.all(region.half_width > 0), "the middle of a set is outside")
        predictor.update(y)


# ---------------------------------------------------------------------- gaps and refusals


def gaps_are_scored(predictor: JointPredictor) -> None:
    """A row with gaps has a score, and what is missing contributes nothing."""
    y = block().values[0].copy()
    y[[1, 4]] = np.nan
    contributions = predictor.contributions(y)
    expect(bool(np.isfinite(contributions).all()), "a row with gaps has contributions that are no numbers")
    expect(bool((contributions[[1, 4]] == 0).all()), "a sensor without a reading contributes to the score")
    outcome = predictor.update(y)
    expect(bool(np.isfinite(outcome.score)), "a row with gaps has no score")
    expect(outcome.observed == len(y) - 2, "the readings of a row with gaps are counted wrongly")


def a_dead_sensor_stops_nothing(predictor: JointPredictor) -> None:
    """With a sensor that never reads again, others coming and going, every row has a score and the next set a size."""
    values = block(40).values.copy()
    values[:, 3] = np.nan
    values[np.random.default_rng(2).random(values.shape) < 0.2] = np.nan
    run = predictor.run(block(40).with_values(values))
    read = ~np.isnan(values).all(axis=1)
    expect(bool(np.isfinite(run.score[read]).all()), "rows without a dead sensor have no score")
    out = (values < run.lower) | (values > run.upper)
    expect(not out[run.inside].any(), "a row is inside, and a reading of it out of the bounds")
    lower, upper = predictor.predict().bounds
    expect(bool(np.isfinite([lower, upper]).all() and (lower < upper).all()), "after a dead sensor a set has no size")


def an_empty_row_moves_no_radius(predictor: JointPredictor) -> None:
    """Rows without any reading, three days of them, have no score and leave the verdict and the radius alone."""
    predictor.run(block(4))
    trust, radius = predictor.trust(), predictor.copy().update(block().values[4]).radius
    outcome = predictor.update(np.full(len(predictor.sensors), np.nan))
    expect(bool(np.isnan(outcome.score)) and not outcome.inside, "an empty row has a score, or is inside")
    expect(outcome.observed == 0, "an empty row has readings")
    empty = block(4 + 3 * 24)  # so that the next row is at the same hour
    predictor.run(empty.with_values(np.full_like(empty.values, np.nan)), regions=False)
    expect(predictor.trust() == trust, "empty rows move the verdict")
    expect(predictor.update(block().values[4]).radius == radius, "empty rows move the radius")


def refused_input_changes_nothing(predictor: JointPredictor) -> None:
    """A reading of another length, an infinite one, an unknown sensor, a panel of others: refused in one line."""
    untouched, sensors, test = predictor.copy(), predictor.sensors, block()
    values = test.values[0]
    other = Panel(test.values, tuple(f"other {name}" for name in sensors), timestamps=test.timestamps)
    for bad, act in {
        "a reading of another length": lambda: predictor.update(values[:-1]),
        "an infinite reading": lambda: predictor.update(np.r_[values[:-1], np.inf]),
        "a reading too large to be squared": lambda: predictor.update(np.r_[values[:-1], 1e200]),
        "a reading of an unknown sensor": lambda: predictor.update({sensors[0]: 1.0, "no such sensor": 2.0}),
        "a panel of other sensors": lambda: predictor.run(other),
        "a panel with an infinite reading": lambda: predictor.run(_with_infinity(test)),
        "a calibration on other sensors": lambda: predictor.calibrate(other),
        "a calibration on too few rows": lambda: predictor.calibrate(test[:1]),
    }.items():
        try:
            act()
        except InputError as error:
            expect("\n" not in str(error), f"the message on {bad} has several lines")
        else:
            raise AssertionError(f"{bad} is not refused")
    _goes_on_as(predictor, untouched, "a predictor that refused its input")


def _with_infinity(panel: Panel) -> Panel:
    values = panel.values.copy()
    values[3, 0] = np.inf
    return panel.with_values(values)


CHECKS: tuple[Check, ...] = (
    steps_are_the_run,
    two_runs_are_one,
    sets_do_not_see_their_reading,
    asking_changes_nothing,
    a_copy_is_independent,
    a_saved_model_goes_on,
    a_stream_answers_as_the_run,
    trust_gives_a_verdict,
    the_sensor_that_left_is_named,
    shares_add_up_to_the_score,
    sets_have_a_size,
    inside_is_score_at_most_radius,
    the_middle_is_inside,
    gaps_are_scored,
    a_dead_sensor_stops_nothing,
    an_empty_row_moves_no_radius,
    refused_input_changes_nothing,
)


# ---------------------------------------------------------------------- comparing


def expect(holds: bool, broken: str) -> None:
    """Raise AssertionError with the broken promise unless it holds."""
    if not holds:
        raise AssertionError(broken)


def same(one: object, other: object, broken: str) -> None:
    """Two arrays are bit-equal, gaps included."""
    expect(np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True), broken)


def close(one: Any, other: Any, broken: str, tolerance: float = TOLERANCE) -> None:
    """Two arrays are equal to the tolerance, gaps included."""
    equal = np.allclose(np.asarray(one), np.asarray(other), rtol=tolerance, atol=tolerance, equal_nan=True)
    expect(bool(equal), broken)


def _same_runs(one: Run, other: Run, who: str) -> None:
    for part in (*SETS, "score"):
        same(getattr(one, part), getattr(other, part), f"{who} goes on with another {part}")


def _goes_on_as(predictor: JointPredictor, other: JointPredictor, who: str) -> None:
    """Bit-equal for a step, then for a run; both are moved."""
    same(predictor.predict().bounds, other.predict().bounds, f"{who} has another next set")
    same(predictor.update(block().values[0]), other.update(block().values[0]), f"{who} scores a reading otherwise")
    _same_runs(predictor.run(block()[1:]), other.run(block()[1:]), who)
