"""Calibration rules: past scores -> the radius of the next set.

`Split` keeps one radius; the others follow the misses they see, `Auto` without settings, and any of them by the clock
with `ByClock` around it. Each is a frozen configuration
with `start`, `radius`, `update`, `run` and `infinite_share`; states are plain values. A NaN score is a step at which
nothing was observed: a radius is emitted and the state stays as it is.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jointset.calibration.aci import ACI
from jointset.calibration.agaci import AgACI
from jointset.calibration.auto import Auto
from jointset.calibration.by_clock import ByClock
from jointset.calibration.contina import Contina
from jointset.calibration.decaying import Decaying
from jointset.calibration.dtaci import DtACI
from jointset.calibration.eci import ECI
from jointset.calibration.pid import PID
from jointset.calibration.quantiles import minimum_scores
from jointset.calibration.rescp import ResCP
from jointset.calibration.saocp import SAOCP
from jointset.calibration.sfogd import SFOGD
from jointset.calibration.split import Split
from jointset.calibration.window import Window
from jointset.contracts import Calibration
from jointset.errors import require

RULES: dict[str, type[Calibration[Any]]] = {
    "split": Split,
    "aci": ACI,
    "agaci": AgACI,
    "dtaci": DtACI,
    "pid": PID,
    "sfogd": SFOGD,
    "saocp": SAOCP,
    "decaying": Decaying,
    "eci": ECI,
    "window": Window,
    "contina": Contina,
    "rescp": ResCP,
    "auto": Auto,
}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {  # other forms of a rule that have a name
    "eci-integral": ("eci", {"form": "integral"}),
    "auto-alone": ("auto", {}),
    **{f"{name}-tail": (name, {"tail": True}) for name in ("split", "aci", "agaci", "dtaci")},
}
CLOCK, AUTO = "clock", "auto"  # `clock-aci` is aci by the clock; auto is by the clock anyway


def calibration(name: str, alpha: float = 0.1, **options: Any) -> Any:
    """The rule of that name.

    >>> calibration("aci", alpha=0.2, gamma=0.01).gamma
    0.01
    """
    require_rule(name, "calibration")
    inner = _within(name)
    base, form = FORMS.get(inner, (inner, {}))
    rule: Any = RULES[base]
    known = [field.name for field in fields(rule) if field.name != "alpha"]
    unknown = ", ".join(option for option in options if option not in known)
    require(not unknown, f"calibration {name!r} has no option {unknown}: it takes {', '.join(['alpha', *known])}")
    made = rule(alpha=alpha, **form | options)
    return ByClock(made) if name == AUTO or name != inner else made


def require_rule(name: str, what: str) -> None:
    """Refuse a name that no rule has."""
    known = [*RULES, *FORMS]
    choices = f"{', '.join(known)}, or {CLOCK}-RULE for one of them by the clock"
    require(_within(name) in known, f"unknown {what} {name!r}: choose one of {choices}")


def _within(name: str) -> str:
    """The rule that a clock goes around; the rule itself where there is none."""
    return AUTO if name == CLOCK else name.removeprefix(f"{CLOCK}-")


__all__ = [
    "ACI",
    "ECI",
    "FORMS",
    "PID",
    "RULES",
    "SAOCP",
    "SFOGD",
    "AgACI",
    "Auto",
    "ByClock",
    "Contina",
    "Decaying",
    "DtACI",
    "ResCP",
    "Split",
    "Window",
    "calibration",
    "minimum_scores",
    "require_rule",
]
