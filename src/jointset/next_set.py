"""The set for the next reading in numbers: mean, bounds, sizes, and the band of every sensor by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.algebra.law_tails import tails_of
from jointset.contracts import Array
from jointset.predicting.limits import UNLIMITED, Limits

if TYPE_CHECKING:
    from jointset.horizons.sets_ahead import AheadSets
    from jointset.joint_predictor import JointPredictor

Bands = dict[str, tuple[Array, Array]]


def set_parts(predictor: JointPredictor, limits: Limits = UNLIMITED) -> tuple[Array, Bands, dict[str, Any]]:
    """Mean (N,), bands by name (of the set, and of the sensors alone where the method has them), radius and sizes."""
    region, own = predictor.predict(), predictor.own_bounds()
    bands = {"bounds": limits.clip(region.bounds)} | ({} if own is None else {"own": limits.clip(own)})
    radius = getattr(region, "radius", None)
    facts = {} if radius is None else {"radius": radius}
    facts |= {"width": region.width, "width_full": region.width_full, "log_volume": region.log_volume}
    tails = tails_of(predictor._ahead()[0])
    facts |= {"degrees_of_freedom": tails.freedom} if tails.heavy else {}
    return limits.inside(region.center), bands, facts


def next_set(predictor: JointPredictor, limits: Limits = UNLIMITED) -> dict[str, Any]:
    """The set as one object, as `jointset predict --json` prints it."""
    mean, bands, facts = set_parts(predictor, limits)
    names = predictor.sensors
    ends = {key: dict(zip(names, zip(*band, strict=True), strict=True)) for key, band in bands.items()}
    infinite = {"infinite": True} if facts.get("radius") == float("inf") else {}
    return {**facts, **infinite, "mean": dict(zip(names, mean, strict=True)), **ends}


def next_sets(predictor: JointPredictor, sets: AheadSets, limits: Limits = UNLIMITED) -> dict[str, Any]:
    """Sets of the next steps as `jointset predict --horizon H --json` prints them, but for infinities.

    Lists over the steps, sensor by sensor; `steps` are those of single steps, `together` is the one for all.
    """
    (lower, upper), (all_lower, all_upper) = limits.clip(sets.bounds), limits.clip(sets.bounds_together)

    def each(values: Any) -> dict[str, list[float]]:
        return {name: values[:, i].tolist() for i, name in enumerate(sets.sensors)}

    stamps, own = times_ahead(predictor, sets.horizon), sets.own_bounds
    alone = None if own is None else limits.clip(own)
    return {
        "horizon": sets.horizon,
        **({} if stamps is None else {"times": stamps}),
        "mean": each(limits.inside(sets.mean)),
        "steps": {"lower": each(lower), "upper": each(upper), "log_volume": sets.steps.log_volume.tolist()},
        "together": {
            "lower": each(all_lower),
            "upper": each(all_upper),
            "radius": sets.together.radius,
            "log_volume": float(sets.together.log_volume),
        },
        **({} if alone is None else {"own": {"lower": each(alone[0]), "upper": each(alone[1])}}),
    }


def times_ahead(predictor: JointPredictor, steps: int) -> list[str] | None:
    """Times of the next rows as ISO 8601, where the model knows its interval."""
    horizon = predictor.horizon
    if horizon is None or not horizon.cadence:
        return None
    stamps = horizon.clock + horizon.cadence * np.arange(steps)
    return [f"{stamp}Z" for stamp in stamps.astype("datetime64[s]").astype(str)]


def announced(predictor: JointPredictor, limits: Limits = UNLIMITED) -> list[dict[str, Any]]:
    """Ends of the sets of the next steps in sensor order, and of the bands of sensors alone.

    Without a horizon there is one step. None where a band has no end.
    """
    if predictor.horizon is None:
        _, bands, _ = set_parts(predictor, limits)
        return [_ends(bands["bounds"], bands.get("own"))]
    sets = predictor.predict(horizon=predictor.horizon.steps)
    own, joint = sets.own_bounds, limits.clip(sets.bounds)
    alone = None if own is None else limits.clip(own)
    return [
        _ends((joint[0][h], joint[1][h]), None if alone is None else (alone[0][h], alone[1][h]))
        for h in range(sets.horizon)
    ]


def _ends(joint: tuple[Array, Array], own: tuple[Array, Array] | None) -> dict[str, Any]:
    lower, upper = (_numbers(end) for end in joint)
    return {"lower": lower, "upper": upper, "own": None if own is None else [_numbers(end) for end in own]}


def _numbers(values: Array) -> list[float | None]:
    """Numbers with the digits that a picture needs; None where they are not finite."""
    return [float(f"{x:.6g}") if np.isfinite(x) else None for x in values.tolist()]
