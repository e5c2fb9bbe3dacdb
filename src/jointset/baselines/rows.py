"""Comparison rows by name, and a row run through a benchmark cell as its protocol says.

`METHOD[:GEOMETRY][+WRAP]`: `static`, `ewma:box`, `factor+aci`, `group+agaci`. A row is an unfitted predictor with the
surface of `JointPredictor`; its two protocols differ in shapes and scores (`row`) and in blocks (`run_row`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from jointset.baselines.components import FactorBox, GroupMaximum, OrthogonalBlocks, SingleScore
from jointset.baselines.conditional import Local, TimeOfDay
from jointset.baselines.cost_agaci import CostAgACI
from jointset.baselines.residual_filter import ResidualFilter
from jointset.baselines.root_score import RootMahalanobis
from jointset.baselines.row_predictor import ComponentPredictor, RowPredictor
from jointset.baselines.shapes import EWMA, Constant, Rolling
from jointset.baselines.shared_level import SharedLevel
from jointset.baselines.splits import ResidualSplit
from jointset.baselines.static import StaticFilter
from jointset.calibration import RULES
from jointset.calibration import calibration as rule_named
from jointset.errors import require, suggest
from jointset.predictor import JointPredictor, Run
from jointset.scores import MaxStudentised, score_for

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

LOOKBACK = 400  # test scores in the pool of protocol `table`
WARM = 50  # steps before the calibration block on which a filter is warmed up in protocol `table`
GEOMETRIES = ("ellipsoid", "box")
PLUG_IN = ("static", "factor", "group", "spectral", "per-group-factor")  # `text`: shape from the calibration block
BEFORE = ("ewma", "rolling")  # `text`: shape from the validation block, which ends where calibration begins


class Name(NamedTuple):
    """The parts of a method's name; no geometry is the row's own, no wrap is the split rule."""

    method: str
    geometry: str | None
    wrap: str | None


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


def _shapes(protocol: str, seed: int) -> dict[str, Callable[[], Any]]:
    """What each row makes of the residuals."""
    conditional: dict[str, Callable[[], Any]] = {
        "ewma": EWMA,
        "rolling": Rolling,
        "time-of-day": TimeOfDay,
        "local": Local,
        "spectral": lambda: OrthogonalBlocks(ResidualSplit("spectral")),
    }
    if protocol == "table":
        groups: dict[str, Any] = {"grouping": "spectral", "seed": seed}
        return conditional | {
            "static": lambda: Constant(shrink=0.1),
            "rolling": lambda: Rolling(refresh=8),
            "factor": lambda: FactorBox(ResidualSplit("factor", rest=False)),
            "group": lambda: GroupMaximum(ResidualSplit("group", **groups)),
            "per-group-factor": lambda: FactorBox(ResidualSplit("group-factor", rest=False, **groups)),
        }
    return conditional | {
        "static": Constant,
        "factor": lambda: OrthogonalBlocks(ResidualSplit("factor")),
        "group": lambda: OrthogonalBlocks(ResidualSplit("group")),
        "per-group-factor": lambda: OrthogonalBlocks(ResidualSplit("group-factor")),
    }


ROWS = tuple(_shapes("text", 0))


def row(
    name: str,
    *,
    protocol: str = "text",
    alpha: float = 0.1,
    warmup: int = 50,
    standardize: bool = True,
    seed: int = 0,
    backbone: Any = None,
) -> RowPredictor:
    """An unfitted row with a backbone's mean; `seed` draws the spectral groups of protocol `table`.

    >>> row("factor+aci").alpha
    0.1
    """
    method, geometry, wrap = parse(name)
    require(method in ROWS, f"unknown row {method!r}: {suggest(method, ROWS)}")
    shape, table = _shapes(protocol, seed)[method](), protocol == "table"
    centred = table and method in ("factor", "group", "per-group-factor")
    options: dict[str, Any] = {"shape": shape, "centred": centred, "cold": table, "name": name}
    if backbone is not None:
        options["backbone"] = backbone
    filter_ = StaticFilter(**options) if isinstance(shape, Constant) else ResidualFilter(**options)
    kept: dict[str, Any] = {"warmup": warmup, "standardize": standardize}
    components = hasattr(shape, "scores")
    require(
        not (components and geometry == "box"),
        f"{method} has no box form: its set is a product of its own; leave :box out, or use static:box",
    )
    if components and not isinstance(shape, GroupMaximum):
        rule = _rule(wrap, alpha, protocol, pooled=False)
        return ComponentPredictor(filter_, SharedLevel(rule, lookback=LOOKBACK * (table and wrap is not None)), **kept)
    if components:
        score: Any = SingleScore()
    elif geometry == "box":
        score = MaxStudentised()
    else:
        score = RootMahalanobis() if table else score_for("ellipsoid")
    return RowPredictor(filter_, score, _rule(wrap, alpha, protocol), **kept)


def _rule(wrap: str | None, alpha: float, protocol: str, *, pooled: bool = True) -> Any:
    """The calibration rule of a wrap; in `table` its pool takes in test scores, unless the components do (`pooled`)."""
    if protocol != "table" or wrap in (None, "split", "pid"):
        return rule_named(wrap or "split", alpha=alpha)
    lookback = LOOKBACK if pooled else 0
    if wrap == "agaci":
        return CostAgACI(alpha, lookback=lookback)
    return rule_named(wrap, alpha=alpha, lookback=lookback)


def run_row(
    method: str,
    cell: Cell,
    alpha: float = 0.1,
    seed: int = 0,
    *,
    backbone: Any = None,
    pilot: str | None = None,
    regions: bool = False,
) -> Run:
    """A row fitted, calibrated and tested on the blocks of a cell, as the cell's protocol says.

    `seed` is that of a filter's training; the spectral groups of `table` are drawn with the cell's own. A `backbone`
    replaces the graph autoregression in rows that have one, and `pilot` names the block their shape is fitted on
    instead of the protocol's: `train`, `validation` (fresh calibration scores) or `calibration` (plug-in).
    """
    return fitted_row(method, cell, alpha, seed, backbone=backbone, pilot=pilot).run(cell.test, regions=regions)


def fitted_row(
    method: str, cell: Cell, alpha: float = 0.1, seed: int = 0, *, backbone: Any = None, pilot: str | None = None
) -> JointPredictor:
    """The calibrated predictor of a row, at the start of the cell's test block."""
    base = parse(method).method
    if base not in ROWS:
        return _fitted_other(method, cell, alpha, seed, backbone)
    table = cell.protocol == "table"
    predictor = row(
        method,
        protocol=cell.protocol,
        alpha=alpha,
        warmup=1 if table else 50,
        standardize=False,  # cells hold z-scores, or a simulation in its own units
        seed=cell.seed,
        backbone=backbone,
    )
    block = pilot or pilot_block(base, cell.protocol)
    skip = {"pilot": 0, "calibration": predictor.warmup - 1}.get(block)
    predictor.fit(cell.train, None if block == "train" else cell.block(block), skip).calibrate(cell.calibration)
    if table:
        predictor.restart()
    return predictor


def pilot_block(method: str, protocol: str) -> str:
    """The block whose residuals give a row its shape."""
    if protocol == "table":
        return "pilot"
    return "calibration" if method in PLUG_IN else "validation" if method in BEFORE else "train"


def _fitted_other(method: str, cell: Cell, alpha: float, seed: int, backbone: Any) -> Any:
    """Published methods, and filters; in `table` a filter trains on training + pilot, its last steps warm it up."""
    from jointset.methods import PUBLISHED, filter_row, published_row

    name = parse(method)
    if name.method in PUBLISHED:
        published = published_row(name, alpha=alpha, seed=seed, backbone=backbone, standardize=False)
        return published.fit(cell.train).calibrate(cell.calibration)
    table = cell.protocol == "table"
    predictor = filter_row(name, protocol=cell.protocol, alpha=alpha, training={"seed": seed})
    predictor.standardize = False
    if not table:
        return predictor.fit(cell.train).calibrate(cell.calibration)
    predictor.calibration = _rule(name.wrap, alpha, "table")
    if name.geometry != "box":
        predictor.score = RootMahalanobis()
    start, stop = cell.blocks["calibration"].start, cell.blocks["calibration"].stop
    warm = min(WARM, start)
    predictor.warmup = warm + 1  # no calibration score is dropped
    return predictor.fit(cell.panel[:start]).calibrate(cell.panel[start - warm : stop])
