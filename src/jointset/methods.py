"""Methods by name, `METHOD[:GEOMETRY][+WRAP]`: predictors to fit, and saved ones to load.

`kalman-tuned` is a method in its own geometry with the split rule, `ewma:box+aci` boxes around the EWMA covariance with
a radius that adapts. `jointset.catalogue` lists them all. The protocols of the benchmark differ in shapes and scores,
told here, and in the blocks of a cell that a method is fitted on, told in `jointset.experiments.rows`.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from jointset.abilities import Splitting
from jointset.calibration import AgACI, ByClock, require_rule
from jointset.calibration import calibration as rule_named
from jointset.calibration.any_rule import AnyRule
from jointset.calibration.cost_agaci import CostAgACI
from jointset.calibration.shared_level import SharedLevel
from jointset.catalogue import FILTERS, METHODS, PUBLISHED, ROWS, TABLE
from jointset.contracts import Calibration, Filter, Fittable, MeanModel, Score
from jointset.errors import InputError, require, require_known, some, suggest
from jointset.filters.residual import ResidualFilter
from jointset.filters.static import StaticFilter
from jointset.joint_predictor import JointPredictor
from jointset.panel import Panel
from jointset.residuals.shapes import Constant
from jointset.scores import SHAPES, ComponentScore, RootMahalanobis, SingleScore, score_for
from jointset.support.extras import require_extra

LOOKBACK = 400  # test scores in the pool of protocol `table`
LISTED = "`jointset methods` lists them"


class Name(NamedTuple):
    """The parts of a method's name; no geometry is the row's own, no wrap is the method's own rule (`rule_of`)."""

    method: str
    geometry: str | None
    wrap: str | None

    def __str__(self) -> str:
        """The name as it is written."""
        return self.method + (f":{self.geometry}" if self.geometry else "") + (f"+{self.wrap}" if self.wrap else "")


@lru_cache(maxsize=1024)
def parse(name: str) -> Name:
    """The parts of `METHOD[:GEOMETRY][+WRAP]`.

    >>> parse("gnf-node:box+aci")
    Name(method='gnf-node', geometry='box', wrap='aci')
    """
    front, plus, wrap = name.partition("+")
    method, colon, geometry = front.partition(":")
    require(not colon or geometry in SHAPES, f"unknown geometry {geometry!r}: choose one of {', '.join(SHAPES)}")
    if plus:
        require_rule(wrap, "wrap")
    return Name(method, geometry or None, wrap or None)


def rule_of(name: Name) -> str:
    """The calibration rule of a name: its wrap, or the method's own.

    >>> rule_of(parse("kalman")), rule_of(parse("quick")), rule_of(parse("quick+split"))
    ('split', 'auto', 'split')
    """
    return name.wrap or TABLE[name.method].rule


def require_geometry(name: Name) -> None:
    """Refuse a geometry that the sets of a method cannot have."""
    line = TABLE[name.method]
    instead = f"its boxes lean already: use {name.method}:box"
    if not line.leans:
        instead = f"its sets have a shape of its own: leave the geometry out, or use static:{name.geometry}"
    require(name.geometry in (None, *line.geometries), f"{name.method} has no {name.geometry} form, {instead}")


def predictor_for(
    method: str,
    *,
    shape: str = "ellipsoid",
    calibration: str | None = None,
    alpha: float = 0.1,
    warmup: int = 50,
    standardize: bool = True,
    training: dict[str, Any] | None = None,
) -> JointPredictor:
    """An unfitted predictor from names; `shape` and `calibration` are for a method that names none of its own.

    Without a calibration it is the method's own rule (`rule_of`).

    `training` holds settings of the learned filters (recipe, seed, device, steps); of the others the published methods
    take its seed.

    >>> predictor = predictor_for("kalman-tuned+aci", shape="box", alpha=0.2)
    >>> predictor.filter.tune, type(predictor.calibration).__name__, predictor.alpha
    (True, 'ACI', 0.2)
    """
    name = whole_name(method, shape, calibration)
    if TABLE[name.method].package:
        require_extra(TABLE[name.method].package, name.method)
    if name.method in ROWS:
        return row(str(name), alpha=alpha, warmup=warmup, standardize=standardize)
    if name.method in PUBLISHED:
        seed = (training or {}).get("seed", 0)
        return published_row(name, alpha=alpha, warmup=warmup, standardize=standardize, seed=seed)
    return filter_row(name, alpha=alpha, training=training, warmup=warmup, standardize=standardize)


def require_trained(method: str, training: dict[str, Any]) -> None:
    """Refuse settings of a training run for a method that has none; a published method draws with a seed."""
    line = TABLE[whole_name(method).method]
    asked = [name for name in training if not (name == "seed" and line.family == "published")]
    require(line.learned or not asked, f"{line.name} is not trained: leave {some(asked)} out")


def whole_name(method: str, shape: str = "ellipsoid", calibration: str | None = None) -> Name:
    """The name of a method with what was asked for beside it; its own rule is not written.

    >>> str(whole_name("kalman", "box", "aci")), str(whole_name("quick", calibration="split"))
    ('kalman:box+aci', 'quick+split')
    >>> str(whole_name("kalman", calibration="split")), str(whole_name("quick", calibration="auto"))
    ('kalman', 'quick')
    """
    name = parse(method)
    if name.method not in METHODS:
        raise InputError(f"unknown method {name.method!r}: {suggest(name.method, [*METHODS], LISTED)}")
    require(shape in SHAPES, f"unknown shape {shape!r}: choose one of {', '.join(SHAPES)}")
    geometry = _one_of(method, name.geometry, None if shape == "ellipsoid" else shape)
    own = calibration == TABLE[name.method].rule and name.wrap is None
    return Name(name.method, geometry, _one_of(method, name.wrap, None if own else calibration))


def _one_of(method: str, named: str | None, asked: str | None) -> str | None:
    """The part of a method's name, or what was asked for beside it; None is the usual one."""
    agreed = named is None or asked in (named, None)
    require(agreed, f"{method} and {asked} contradict each other: ask for one of them")
    return named or asked


def row(
    name: str,
    *,
    protocol: str = "text",
    alpha: float = 0.1,
    warmup: int = 50,
    standardize: bool = True,
    seed: int = 0,
    backbone: MeanModel | None = None,
) -> JointPredictor:
    """An unfitted row with a backbone's mean; `seed` draws the spectral groups of protocol `table`.

    >>> row("factor+aci").alpha
    0.1
    """
    method, geometry, wrap = parse(name)
    require_known(method, ROWS, f"unknown row {method!r}")
    require_geometry(parse(name))
    shape: Any = TABLE[method].maker(protocol)()  # of the two families it is a shape
    table = protocol == "table"
    components = isinstance(shape, Splitting)
    centred = getattr(shape, "centred", False)
    if components and centred:
        shape = replace(shape, split=replace(shape.split, seed=seed))
    options: dict[str, Any] = {"shape": shape, "centred": centred, "cold": table, "name": name}
    if backbone is not None:
        options["backbone"] = backbone
    filter_ = StaticFilter(**options) if isinstance(shape, Constant) else ResidualFilter(**options)
    kept: dict[str, Any] = {"warmup": warmup, "standardize": standardize}
    if components and not shape.one_radius:
        rule = row_rule(wrap, alpha, protocol, pooled=False)
        recent = table and wrap is not None and not getattr(rule, "ordered", False)
        several = SharedLevel(rule, lookback=LOOKBACK * recent)
        return JointPredictor(filter_, ComponentScore(), several, **kept)
    if components:
        score: Score[Any] = SingleScore()
    else:
        score = RootMahalanobis() if table and geometry in (None, "ellipsoid") else score_for(geometry or "ellipsoid")
    return JointPredictor(filter_, score, row_rule(wrap, alpha, protocol), **kept)


def row_rule(wrap: str | None, alpha: float, protocol: str, *, pooled: bool = True) -> Calibration[Any]:
    """The calibration rule of a wrap; in `table` its pool takes in test scores, unless the components do (`pooled`)."""
    rule = rule_named(wrap or "split", alpha=alpha)
    if protocol != "table":
        return rule
    lookback = LOOKBACK if pooled else 0
    return ByClock(_pooling(rule.rule, lookback)) if isinstance(rule, ByClock) else _pooling(rule, lookback)


def _pooling(rule: Calibration[Any], lookback: int) -> Calibration[Any]:
    """A rule that takes in so many test scores, where it has a pool."""
    if not hasattr(rule, "lookback"):
        return rule
    if isinstance(rule, AgACI):
        return CostAgACI(rule.alpha, lookback=lookback)
    return replace(cast("Any", rule), lookback=lookback)


def filter_row(
    name: Name, *, protocol: str = "text", alpha: float = 0.1, training: dict[str, Any] | None = None, **options: Any
) -> JointPredictor:
    """An unfitted predictor around a filter; `training` goes to the learned ones, options to `JointPredictor`."""
    require_known(name.method, FILTERS, f"unknown method {name.method!r}")
    require_geometry(name)
    method = TABLE[name.method]
    filter_ = cast("Filter[Any] | Fittable", method.maker(protocol)())
    if method.learned and training:
        filter_ = _trained_with(filter_, training, name.method)
    geometry = name.geometry or method.geometries[0]
    score = score_for("lean" if method.leans and geometry == "box" else geometry)
    return JointPredictor(filter_, score, rule_named(rule_of(name), alpha=alpha), **options)


def _trained_with(filter_: Any, training: dict[str, Any], name: str) -> Any:
    """A learned filter with these settings of its training; one that it has not is refused where it was asked for."""
    known = {one.name for one in fields(filter_)}
    unknown = [key for key, value in training.items() if key not in known and value not in (None, "cpu")]
    require(not unknown, f"{name} has no setting {some(unknown)}: leave it out")
    return replace(filter_, **{key: value for key, value in training.items() if key in known})


def taken_by_fit(filter_: Filter[Any], **options: Any) -> dict[str, Any]:
    """Those of the options that the `fit` of a filter takes.

    >>> taken_by_fit(TABLE["kalman"].make(), progress=print, checkpoint=None)
    {'progress': <built-in function print>}
    """
    known = inspect.signature(filter_.fit).parameters
    return {name: value for name, value in options.items() if name in known}


def published_row(name: Name, *, wrap: AnyRule | None = None, alpha: float = 0.1, **options: Any) -> JointPredictor:
    """An unfitted published method; options as its maker takes them.

    A wrap scales the sets of the method (`jointset.published.filter`); `wrap` replaces the rule of the name.
    """
    require_geometry(name)
    rule = None if name.wrap is None else wrap or rule_named(name.wrap, alpha=alpha)
    return cast("JointPredictor", TABLE[name.method].make(alpha=alpha, wrap=rule, **options))


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
