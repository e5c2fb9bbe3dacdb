"""The set for the next reading in numbers: mean, bounds, sizes, and the band of every sensor by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jointset.contracts import Array
from jointset.limits import UNLIMITED, Limits

if TYPE_CHECKING:
    from jointset.predictor import JointPredictor

Bands = dict[str, tuple[Array, Array]]


def set_parts(predictor: JointPredictor, limits: Limits = UNLIMITED) -> tuple[Array, Bands, dict[str, Any]]:
    """Mean (N,), bands by name (of the set, and of the sensors alone where the method has them), radius and sizes."""
    region, own = predictor.predict(), predictor.own_bounds()
    bands = {"bounds": limits.clip(region.bounds)} | ({} if own is None else {"own": limits.clip(own)})
    radius = getattr(region, "radius", None)
    facts = {} if radius is None else {"radius": radius}
    facts |= {"width": region.width, "width_full": region.width_full, "log_volume": region.log_volume}
    return limits.inside(region.center), bands, facts


def next_set(predictor: JointPredictor, limits: Limits = UNLIMITED) -> dict[str, Any]:
    """The set as one object, as `jointset predict --json` prints it."""
    mean, bands, facts = set_parts(predictor, limits)
    names = predictor.sensors
    ends = {key: dict(zip(names, zip(*band, strict=True), strict=True)) for key, band in bands.items()}
    infinite = {"infinite": True} if facts.get("radius") == float("inf") else {}
    return {**facts, **infinite, "mean": dict(zip(names, mean, strict=True)), **ends}
