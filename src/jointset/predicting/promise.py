"""What was promised held against what was seen: the share of rows inside their set, and the band it should lie in."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from jointset.errors import InputError
from jointset.runs import Run
from jointset.trust import CONFIDENT, RECENT, band_over

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

FAR = 0.15  # a share this far under the target, and under the band, is no accident of the block


class Promise(NamedTuple):
    """Target and share of a block of rows, and the band that chance explains with confidence 90 %."""

    target: float
    seen: float
    steps: int  # rows with a reading
    low: float
    high: float

    @property
    def word(self) -> str:
        """`kept`, `wide` (above the band), `short` (under it) or `far` (under it and 15 points under the target).

        15 points under the target over 200 rows is `short` however wide the band, as it is an alarm of `trust`.
        """
        far = self.seen <= self.target - FAR
        if self.seen > self.high:
            return "wide"
        if not self.seen < self.low:
            return "short" if far and self.steps >= RECENT else "kept"
        return "far" if far else "short"

    @property
    def sentence(self) -> str:
        """What was seen beside what was to be expected.

        >>> Promise(0.9, 0.8, 400, 0.853, 0.947).sentence
        'only 80.0 % of the 400 rows were inside (target 90 %; chance explains 85 to 95 %)'
        """
        band = f"target {100 * self.target:g} %; chance explains {100 * self.low:.0f} to {100 * self.high:.0f} %"
        told = f"{100 * self.seen:.1f} % of the {self.steps:,} rows were inside ({band})"
        return {"short": "only ", "far": "only "}.get(self.word, "") + told


def promise_of(predictor: JointPredictor, run: Run) -> Promise | None:
    """The promise of a calibrated predictor and what a run made of it; None where no row had a reading.

    The band is as wide as that of `Trust.band_over`, but around the target: a method that was under it on its own
    calibration rows has promised no less. A model without a verdict on itself, as older ones are, counts its
    calibration rows and the rows of the run as independent.
    """
    steps = int((run.score == run.score).sum())
    if not steps:
        return None
    target, m = 1.0 - predictor.alpha, predictor.n_calibration
    half_width = CONFIDENT * math.sqrt(target * (1.0 - target) / m)
    steers = False
    with suppress(InputError):
        trust = predictor.trust()
        half_width, steers = max(half_width, trust.half_width), trust.steers
    return Promise(target, run.joint, steps, *band_over(steps, target, half_width, m, steers))
