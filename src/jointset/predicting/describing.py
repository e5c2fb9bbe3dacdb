"""What a predictor is and what it stands on, in words: its method, the rows it was fitted and calibrated on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointset.abilities import follows_clock, message_start
from jointset.algebra.law_tails import tails_of
from jointset.calibration.any_rule import rule_within
from jointset.calibration.fixed import Fixed
from jointset.inputs.times import iso
from jointset.score_abilities import sets_of
from jointset.support.notebook import listed

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

NEXT_CALL = {"fitted on": "call fit(panel)", "calibrated on": "call calibrate(panel)"}


def facts_of(predictor: JointPredictor) -> dict[str, str]:
    """Method, shape and rule, and what they were fitted on, calibrated on and have seen."""
    filter_, score, rule = predictor.filter, predictor.score, rule_within(predictor.calibration)
    name = "its own rule" if isinstance(rule, Fixed) else type(rule).__name__
    clock = " by the clock" if follows_clock(predictor.calibration) else ""
    facts = {
        "filter": message_start(filter_).partition(":")[0].partition("+")[0] or type(filter_).__name__,
        "sets": sets_of(score),
        "rule": f"{name}{clock} at {100 * (1 - predictor.alpha):g} %",
    }
    if not predictor.sensors:
        return facts | {"fitted on": f"nothing yet: {NEXT_CALL['fitted on']}"}
    rows = f"{predictor.fitted_rows:,} rows of " if predictor.fitted_rows else ""
    facts |= {"fitted on": f"{rows}{len(predictor.sensors):,} sensors", "sensors": listed(predictor.sensors)}
    if predictor.calibration_state is None:
        return facts | {"calibrated on": f"nothing yet: {NEXT_CALL['calibrated on']}"}
    facts |= {"calibrated on": f"{predictor.n_calibration:,} scores"}
    tails = tails_of(predictor._ahead()[0])
    facts |= {"tails": f"of a Student-t with {tails.freedom:g} degrees of freedom"} if tails.heavy else {}
    return facts if predictor.last_time is None else facts | {"last row seen": iso(predictor.last_time)}


def line_of(predictor: JointPredictor) -> str:
    """The same in one line."""
    facts = facts_of(predictor)
    what = ", ".join(facts.pop(name) for name in ("filter", "sets", "rule"))
    facts.pop("sensors", None)
    stands = ", ".join(f"{name} {text.removesuffix(': ' + NEXT_CALL.get(name, ''))}" for name, text in facts.items())
    return f"{type(predictor).__name__}({what}; {stands})"
