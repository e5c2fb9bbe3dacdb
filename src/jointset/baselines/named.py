"""Comparison rows by name: `METHOD[:GEOMETRY][+WRAP]`, as `static`, `ewma:box`, `factor+aci`, `group+agaci`.

A row is an unfitted predictor with the surface of `JointPredictor`. Its two protocols differ in shapes and scores, told
here, and in the blocks of a benchmark cell that it is fitted on, told in `jointset.baselines.rows`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from jointset.baselines.components import ComponentScore, FactorBox, GroupMaximum, SingleScore
from jointset.baselines.cost_agaci import CostAgACI
from jointset.baselines.residual_filter import ResidualFilter
from jointset.baselines.root_score import RootMahalanobis
from jointset.baselines.shapes import Constant
from jointset.baselines.static import StaticFilter
from jointset.calibration import RULES
from jointset.calibration import calibration as rule_named
from jointset.calibration.shared_level import SharedLevel
from jointset.catalogue import ROWS, TABLE
from jointset.errors import require, require_known
from jointset.predictor import JointPredictor
from jointset.scores import MaxStudentised, score_for

LOOKBACK = 400  # test scores in the pool of protocol `table`
GEOMETRIES = ("ellipsoid", "box")


class Name(NamedTuple):
    """The parts of a method's name; no geometry is the row's own, no wrap is the split rule."""

    method: str
    geometry: str | None
    wrap: str | None

    def __str__(self) -> str:
        """The name as it is written."""
        return self.method + (f":{self.geometry}" if self.geometry else "") + (f"+{self.wrap}" if self.wrap else "")


def parse(name: str) -> Name:
    """The parts of `METHOD[:GEOMETRY][+WRAP]`.

    >>> parse("gnf-node:box+aci")
    Name(method='gnf-node', geometry='box', wrap='aci')
    """
    front, plus, wrap = name.partition("+")
    method, colon, geometry = front.partition(":")
    require(
        not colon or geometry in GEOMETRIES, f"unknown geometry {geometry!r}: choose one of {', '.join(GEOMETRIES)}"
    )
    require(not plus or wrap in RULES, f"unknown wrap {wrap!r}: choose one of {', '.join(RULES)}")
    return Name(method, geometry or None, wrap or None)


def require_geometry(name: Name) -> None:
    """Refuse a geometry that the sets of a method cannot have."""
    fits = name.geometry in (None, *TABLE[name.method].geometries)
    refused = f"{name.method} has no {name.geometry} form, its sets have a shape of its own"
    require(fits, f"{refused}: leave the geometry out, or use static:{name.geometry}")


def row(
    name: str,
    *,
    protocol: str = "text",
    alpha: float = 0.1,
    warmup: int = 50,
    standardize: bool = True,
    seed: int = 0,
    backbone: Any = None,
) -> JointPredictor:
    """An unfitted row with a backbone's mean; `seed` draws the spectral groups of protocol `table`.

    >>> row("factor+aci").alpha
    0.1
    """
    method, geometry, wrap = parse(name)
    require_known(method, ROWS, f"unknown row {method!r}")
    require_geometry(parse(name))
    shape, table = TABLE[method].maker(protocol)(), protocol == "table"
    if isinstance(shape, GroupMaximum | FactorBox):
        shape = replace(shape, split=replace(shape.split, seed=seed))
    centred = isinstance(shape, GroupMaximum | FactorBox)
    options: dict[str, Any] = {"shape": shape, "centred": centred, "cold": table, "name": name}
    if backbone is not None:
        options["backbone"] = backbone
    filter_ = StaticFilter(**options) if isinstance(shape, Constant) else ResidualFilter(**options)
    kept: dict[str, Any] = {"warmup": warmup, "standardize": standardize}
    components = hasattr(shape, "scores")
    if components and not isinstance(shape, GroupMaximum):
        rule = row_rule(wrap, alpha, protocol, pooled=False)
        several = SharedLevel(rule, lookback=LOOKBACK * (table and wrap is not None))
        return JointPredictor(filter_, ComponentScore(), several, **kept)
    if components:
        score: Any = SingleScore()
    elif geometry == "box":
        score = MaxStudentised()
    else:
        score = RootMahalanobis() if table else score_for("ellipsoid")
    return JointPredictor(filter_, score, row_rule(wrap, alpha, protocol), **kept)


def row_rule(wrap: str | None, alpha: float, protocol: str, *, pooled: bool = True) -> Any:
    """The calibration rule of a wrap; in `table` its pool takes in test scores, unless the components do (`pooled`)."""
    if protocol != "table" or wrap in (None, "split", "pid"):
        return rule_named(wrap or "split", alpha=alpha)
    lookback = LOOKBACK if pooled else 0
    if wrap == "agaci":
        return CostAgACI(alpha, lookback=lookback)
    return rule_named(wrap, alpha=alpha, lookback=lookback)
