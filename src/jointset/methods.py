"""Methods by name, `METHOD[:GEOMETRY][+WRAP]`: predictors to fit, and saved ones to load.

`kalman-tuned` is a method in its own geometry with the split rule, `ewma:box+aci` boxes around the EWMA covariance with
a radius that adapts. `jointset.catalogue` lists them all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jointset.baselines.named import GEOMETRIES, Name, parse, require_geometry, row
from jointset.calibration import calibration as rule_named
from jointset.catalogue import FILTERS, METHODS, PUBLISHED, ROWS, TABLE
from jointset.errors import require, require_known
from jointset.panel import Panel
from jointset.predictor import JointPredictor
from jointset.scores import score_for

__all__ = [
    "FILTERS",
    "METHODS",
    "PUBLISHED",
    "filter_row",
    "load_predictor",
    "predictor_for",
    "published_row",
    "three_blocks",
    "whole_name",
]


def predictor_for(
    method: str,
    *,
    shape: str = "ellipsoid",
    calibration: str = "split",
    alpha: float = 0.1,
    warmup: int = 50,
    standardize: bool = True,
    training: dict[str, Any] | None = None,
) -> JointPredictor:
    """An unfitted predictor from names; `shape` and `calibration` are for a method that names none of its own.

    `training` holds settings of the learned filters (recipe, seed, device, steps); of the others the published methods
    take its seed.

    >>> predictor = predictor_for("kalman-tuned+aci", shape="box", alpha=0.2)
    >>> predictor.filter.tune, type(predictor.calibration).__name__, predictor.alpha
    (True, 'ACI', 0.2)
    """
    name = whole_name(method, shape, calibration)
    if name.method in ROWS:
        return row(str(name), alpha=alpha, warmup=warmup, standardize=standardize)
    if name.method in PUBLISHED:
        seed = (training or {}).get("seed", 0)
        return published_row(name, alpha=alpha, warmup=warmup, standardize=standardize, seed=seed)
    return filter_row(name, alpha=alpha, training=training, warmup=warmup, standardize=standardize)


def whole_name(method: str, shape: str = "ellipsoid", calibration: str = "split") -> Name:
    """The name of a method with what was asked for beside it.

    >>> str(whole_name("kalman", "box", "aci"))
    'kalman:box+aci'
    """
    name = parse(method)
    require_known(name.method, METHODS, f"unknown method {name.method!r}")
    require(shape in GEOMETRIES, f"unknown shape {shape!r}: choose one of {', '.join(GEOMETRIES)}")
    geometry = _one_of(method, name.geometry, shape, "ellipsoid")
    return Name(name.method, geometry, _one_of(method, name.wrap, calibration, "split"))


def _one_of(method: str, named: str | None, asked: str, usual: str) -> str | None:
    """The part of a method's name, or what was asked for beside it; None is the usual one."""
    require(
        named is None or asked in (named, usual), f"{method} and {asked} contradict each other: ask for one of them"
    )
    return named or (asked if asked != usual else None)


def filter_row(
    name: Name, *, protocol: str = "text", alpha: float = 0.1, training: dict[str, Any] | None = None, **options: Any
) -> JointPredictor:
    """An unfitted predictor around a filter; `training` goes to the learned ones, options to `JointPredictor`."""
    require_known(name.method, FILTERS, f"unknown method {name.method!r}")
    require_geometry(name)
    method = TABLE[name.method]
    filter_ = method.maker(protocol)()
    if method.learned and training:
        filter_ = replace(filter_, **training)
    score, rule = score_for(name.geometry or method.geometries[0]), rule_named(name.wrap or "split", alpha=alpha)
    return JointPredictor(filter_, score, rule, **options)


def published_row(name: Name, *, wrap: Any = None, alpha: float = 0.1, **options: Any) -> JointPredictor:
    """An unfitted published method; options as its maker takes them.

    A wrap scales the sets of the method (`jointset.baselines.published.rows`); `wrap` replaces the rule of the name.
    """
    require_geometry(name)
    rule = None if name.wrap is None else wrap or rule_named(name.wrap, alpha=alpha)
    return TABLE[name.method].make(alpha=alpha, wrap=rule, **options)


load_predictor = JointPredictor.load  # also `jointset.load`


def three_blocks(panel: Panel, train: float = 0.7, test: float = 0.1) -> tuple[Panel, Panel, Panel]:
    """Training, calibration and test rows of one panel in time order; calibration is what the other shares leave.

    >>> import numpy as np
    >>> [len(block) for block in three_blocks(Panel(np.zeros((100, 1)), ["a"]))]
    [70, 20, 10]
    """
    require(
        train > 0 and test >= 0 and train + test < 1,
        f"training share {train:g} and test share {test:g} must leave rows for calibration: their sum must be below 1",
    )
    first, middle, last = panel.split((train, 1.0 - train - test, test))
    require(len(first) > 0, f"{len(panel)} rows leave none for training: give more rows, or a larger training share")
    return first, middle, last
