"""Calibration rules: past scores -> the radius of the next set.

`Split` keeps one radius; `ACI`, `AgACI`, `DtACI` and `PID` follow the misses they see. Each is a frozen configuration
with `start`, `radius`, `update`, `run` and `infinite_share`; states are plain values. A NaN score is a step at which
nothing was observed: a radius is emitted and the state stays as it is.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jointset.calibration.aci import ACI
from jointset.calibration.agaci import AgACI
from jointset.calibration.dtaci import DtACI
from jointset.calibration.pid import PID
from jointset.calibration.quantiles import minimum_scores
from jointset.calibration.split import Split
from jointset.errors import require

RULES: dict[str, type[Split] | type[ACI] | type[AgACI] | type[DtACI] | type[PID]] = {
    "split": Split,
    "aci": ACI,
    "agaci": AgACI,
    "dtaci": DtACI,
    "pid": PID,
}


def calibration(name: str, alpha: float = 0.1, **options: Any) -> Split | ACI | AgACI | DtACI | PID:
    """The rule of that name.

    >>> calibration("aci", alpha=0.2, gamma=0.01).gamma
    0.01
    """
    require(name in RULES, f"unknown calibration {name!r}: choose one of {', '.join(RULES)}")
    rule = RULES[name]
    known = [field.name for field in fields(rule) if field.name != "alpha"]
    unknown = ", ".join(option for option in options if option not in known)
    require(not unknown, f"calibration {name!r} has no option {unknown}: it takes {', '.join(['alpha', *known])}")
    return rule(alpha=alpha, **options)


__all__ = ["ACI", "PID", "RULES", "AgACI", "DtACI", "Split", "calibration", "minimum_scores"]
