"""One light over all audits: green, amber or red, by rules that are written down here and on the page.

Only what coverage rests on moves the light. A predictive law that is not exactly right (`pit`, `trace_ratio`) does
not: calibration makes up for it, at the price of wider sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jointset.predicting.promise import FAR

Record = Mapping[str, Any]
UNEVEN = 0.05  # points under the target from which an hour or a weekday counts
SEASONAL = 0.2  # correlation of hits a day or a week apart from which it counts
BAND = 0.1  # half-width of the band of coverage from which a calibration is worth too little
FLOOR = 0.01  # share of variances near their floor
COLOURS = ("green", "amber", "red")
RULES = {  # for the page: what each colour says
    "green": "what was seen agrees with what was promised, and no audit below found a reason to doubt it.",
    "amber": (
        "use with care. One of: the share of rows inside lies outside the band that chance explains; an hour "
        "or a weekday lies 5 points or more under the target by more than chance; misses repeat every day or week; the "
        "calibration of a radius that stands still is worth so little that coverage may lie more than 10 points off; "
        "the warm-up is too short; a wrong start of the filter is not forgotten; variances sit at their floor; a "
        "sensor has no reading; an audit failed."
    ),
    "red": (
        "do not rely on the sets: the share of rows inside lies under that band and 15 points or more under the "
        "target, or that of an hour or a weekday lies so far under it by more than chance."
    ),
}
OPENING = {
    "green": "nothing speaks against these sets",
    "amber": "use these sets with care",
    "red": "do not rely on these sets",
    "grey": "nothing could be judged",
}


def _coverage(record: Record) -> str:
    if record.get("dead"):
        return {"far": "red"}.get(record["word"], "amber")
    return {"kept": "green", "far": "red"}.get(record["word"], "amber")


def _clock(record: Record) -> str:
    worst, target = record.get("value"), record["target"]
    if worst is None or worst > target - UNEVEN:
        return "green"
    return "red" if worst <= target - FAR else "amber"


def _season(record: Record) -> str | None:
    found = [one["correlation"] for one in (record.get("season") or {}).values() if one["clear"]]
    return "amber" if found and max(found) >= SEASONAL else None


def _forgets(record: Record) -> str:
    return "amber" if record.get("apart") or record.get("forgotten_after") is None else "green"


def _worth(record: Record) -> str | None:
    if record.get("adapts"):
        return None  # coverage does not rest on the size of the calibration
    band = record.get("coverage_band")
    return "amber" if band is None or (band[1] - band[0]) / 2 > BAND else "green"


def _spectrum(record: Record) -> str:
    return "amber" if (record.get("near_floor") or 0.0) > FLOOR else "green"


def _warmup(record: Record) -> str | None:
    return {True: "green", False: "amber"}.get(record.get("enough"))  # type: ignore[arg-type]


LIGHTS: dict[str, Callable[[Record], str | None]] = {
    "coverage": _coverage,
    "clock": _clock,
    "tau_int": _season,
    "rho_dG": _forgets,
    "m_eff": _worth,
    "spectrum": _spectrum,
    "warmup": _warmup,
}


def light_of(name: str, record: Record) -> str | None:
    """Colour of one audit; None where it says nothing on whether to rely on the sets.

    >>> light_of("m_eff", {"coverage_band": [0.85, 0.95]}), light_of("pit", {}), light_of("rho_dG", {"failed": "x"})
    ('green', None, 'amber')
    """
    if "failed" in record:
        return "amber"
    if "skipped" in record or name not in LIGHTS:
        return None
    return LIGHTS[name](record)


def overall(found: Mapping[str, Any]) -> dict[str, Any]:
    """The worst light of all audits, what it means, and the sentences of the audits that set it.

    Records of files written before there were lights get theirs here.
    """
    lights = {name: record.get("light") or light_of(name, record) for name, record in found.items()}
    seen = [light for light in lights.values() if light is not None]
    light = max(seen, key=COLOURS.index, default="grey")
    reasons = [_reason(name, found[name]) for name in found if lights[name] == light and light != "green"]
    if light == "green" and "coverage" in lights:
        reasons = [_reason("coverage", found["coverage"])]
    told = "; ".join([OPENING[light], *reasons])
    return {"light": light, "verdict": told.replace("; ", ": ", 1), "reasons": reasons}


def _reason(name: str, record: Record) -> str:
    failed = record.get("failed")
    return f"the audit {name} could not be done ({failed})" if failed else str(record.get("verdict") or name)
