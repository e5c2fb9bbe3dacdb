"""The one table of methods: what makes each, what it is called, what it needs. Everything else reads it here.

A package of someone else adds a line with an entry point of the group `jointset.methods` that names a
`jointset.contracts.Method`; the method then works wherever a name does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from jointset.contracts import Method, Shape
from jointset.filters import GNF, GraphLGSSM
from jointset.filters.default import DefaultFilter
from jointset.filters.quick import quick
from jointset.filters.var import VARFilter
from jointset.parts import plugins
from jointset.published.published_methods import PUBLISHED_METHODS
from jointset.residuals.components import FactorBox, GroupMaximum, OrthogonalBlocks
from jointset.residuals.conditional import Local, TimeOfDay
from jointset.residuals.linear_heads import LinearHeads
from jointset.residuals.shapes import EWMA, Constant, Rolling
from jointset.residuals.splits import ResidualSplit
from jointset.residuals.topology import Topology

PAPER = "this paper"
FAMILIES = ("static", "conditional", "filter", "published")


def without_wrap(name: str) -> str:
    """METHOD[:GEOMETRY] of METHOD[:GEOMETRY][+WRAP], known or not."""
    return name.partition("+")[0]


def bare(name: str) -> str:
    """METHOD of METHOD[:GEOMETRY][+WRAP], known or not.

    >>> bare("gnf-node:box+aci")
    'gnf-node'
    """
    return without_wrap(name).partition(":")[0]


def _split(shape: Callable[[ResidualSplit], Shape], kind: str, **options: Any) -> Callable[[], Shape]:
    """What makes a shape of several components."""
    return lambda: shape(ResidualSplit(kind, **options))


_static = partial(Method, family="static", mean="backbone", pilot="calibration", reference=PAPER)
_components = partial(_static, geometries=("ellipsoid",))
_conditional = partial(Method, family="conditional", mean="backbone", reference=PAPER)
_kalman = partial(
    Method, mean="own LGSSM", covariance="linear Kalman filter on the graph", family="filter", reference=PAPER
)
_var = partial(Method, make=VARFilter, mean="own VAR with calendar", tuned="held-out training rows", cost=8.0)
_neural = partial(Method, family="filter", tuned="MLE", learned=True, package="torch", cost=10.0, reference=PAPER)

OWN = (
    _static(
        "static",
        Constant,
        paper="CGIF-joint",
        prominence={"": 2},
        covariance="one covariance of the residuals",
        in_table=lambda: Constant(shrink=0.1),
        reference="Johnstone and Cox 2021",
    ),
    _components(
        "factor",
        _split(OrthogonalBlocks, "factor"),
        paper="FactorCGIF",
        wraps={"aci": "ACI-FactorCGIF"},
        covariance="rank-4 factors and the rest, alpha shared",
        in_table=_split(FactorBox, "factor", rest=False),
    ),
    _components(
        "group",
        _split(OrthogonalBlocks, "group"),
        paper="GroupCGIF",
        wraps={"agaci": "AgACI-GroupCGIF"},
        prominence={"agaci": 9},
        covariance="one covariance a community, alpha shared",
        needs=("graph",),
        in_table=_split(GroupMaximum, "group", grouping="spectral"),
        cost=2.0,
    ),
    _components(
        "per-group-factor",
        _split(OrthogonalBlocks, "group-factor"),
        paper="PerGroupFactorCGIF",
        wraps={"aci": "ACI-PerGroupFactorCGIF"},
        prominence={"aci": 3},
        covariance="factors and rest in each community",
        needs=("graph",),
        in_table=_split(FactorBox, "group-factor", rest=False, grouping="spectral"),
    ),
    _components(
        "spectral",
        _split(OrthogonalBlocks, "spectral"),
        paper="SpectralCGIF",
        covariance="three bands of graph frequencies, alpha shared",
        needs=("graph",),
    ),
    _static(
        "staci",
        Topology,
        covariance="one covariance, mixed with the graph's",
        tuned="held-out pilot rows",
        needs=("graph",),
        pilot="validation",
        reference="Zhang et al. 2025",
    ),
    _conditional(
        "ewma",
        EWMA,
        paper="EWMA Sigma_t",
        prominence={"": 11},
        covariance="exponentially weighted residuals, half-life 288",
        pilot="validation",
    ),
    _conditional("rolling", Rolling, paper="Rolling Sigma_t", covariance="the last 288 residuals", pilot="validation"),
    _conditional(
        "time-of-day",
        TimeOfDay,
        paper="Time-of-day Sigma_t",
        covariance="one covariance an hour of the day",
        needs=("time stamps",),
    ),
    _conditional(
        "local",
        Local,
        paper="Local ellipsoid",
        covariance="residuals at the 50 nearest past moments",
        reference="Messoudi et al. 2022",
        cost=4.0,
    ),
    _conditional(
        "msr",
        LinearHeads,
        covariance="diagonal plus low rank, linear in calendar and level",
        tuned="MLE, held-out training rows",
        reference="Braun et al. 2025",
        cost=20.0,
    ),
    _kalman(
        "kalman",
        GraphLGSSM,
        paper="CGIF-filtered",
        prominence={"": 13},
        in_table=lambda: GraphLGSSM(obs_noise_frac=0.1),
    ),
    _kalman(
        "kalman-tuned",
        lambda: GraphLGSSM(tune=True),
        paper="CGIF-filtered (tuned)",
        prominence={"": 6},
        tuned="validation NLL",
        cost=4.0,
    ),
    _var("var", covariance="scales of the moment, moving correlations"),
    _var(
        "space",
        covariance="that of var, radius from a window that stands",
        adaptive="window and ACI",
        rule="window",
        reference="SPACE, in words",
    ),
    Method(
        "quick",
        quick,
        mean="pool of instant experts",
        covariance="pool of instant experts",
        tuned="held-out training rows",
        adaptive="auto, by the clock",
        pilot="validation",
        rule="auto",
        geometries=("ellipsoid", "box"),
        leans=True,
        cost=20.0,
    ),
    _neural(
        "default",
        DefaultFilter,
        tuned="Student-t MLE, held-out rows",
        mean="pool of learned members and VAR",
        covariance="the same pool, correlations of residuals",
        adaptive="auto, by the clock",
        pilot="validation",
        rule="auto",
        geometries=("ellipsoid", "box"),
        leans=True,
        reference="-",
    ),
    _neural(
        "diag-gru",
        lambda: GNF(graph=False, rank=0),
        paper="NeuralSSM",
        wraps={"aci": "NeuralSSM + ACI"},
        prominence={"": 12},
        mean="own GRU",
        covariance="diagonal head",
        in_table=lambda: GNF(pool=False, graph=False, rank=0, width=64),
    ),
    _neural(
        "gcn-rank0",
        lambda: GNF(rank=0),
        paper="GCN, rank 0",
        mean="own GCN-GRU",
        covariance="diagonal head",
        needs=("graph",),
    ),
    _neural(
        "gnf",
        GNF,
        paper="GraphNeuralSSM",
        wraps={"aci": "GraphNeuralSSM + ACI"},
        prominence={"": 1, "aci": 5},
        mean="own GCN-GRU",
        covariance="diagonal plus low-rank head",
        needs=("graph",),
    ),
    _neural(
        "gnf-node",
        lambda: GNF(node=True, recipe="sharp"),
        paper="GraphNeuralSSM (code)",
        wraps={"aci": "GraphNeuralSSM (code) + ACI"},
        printed_as="gnf",
        prominence={"": 7, "aci": 8},
        mean="own node-wise GRU",
        covariance="heads shared by nodes",
        needs=("graph",),
    ),
    *PUBLISHED_METHODS,
)


def with_others(own: Iterable[Method], others: Iterable[Any]) -> dict[str, Method]:
    """Methods by name, those of other packages last; what is no method, or takes a name, is told and left out."""
    table = {method.name: method for method in own}
    for method in others:
        name = getattr(method, "name", method)
        if not isinstance(method, Method) or method.family not in FAMILIES or set(name) & set(":+,"):
            warnings.warn(f"{name!r} is no Method of jointset.contracts with a plain name and a family", stacklevel=2)
        elif name in table:
            warnings.warn(f"the method {name!r} is there already: the one of another package is left out", stacklevel=2)
        else:
            table[name] = method
    return table


TABLE = with_others(OWN, plugins().values())
METHODS = tuple(TABLE)
ROWS = tuple(name for name, method in TABLE.items() if method.family in ("static", "conditional"))
FILTERS = {name: method.make for name, method in TABLE.items() if method.family == "filter"}
PUBLISHED = tuple(name for name, method in TABLE.items() if method.family == "published")
LEARNED = tuple(name for name, method in TABLE.items() if method.learned)  # trained, and so dependent on a seed
PROMINENT = tuple(  # of figures with room for a few methods, the first of all first
    name + (f"+{wrap}" if wrap else "")
    for _, name, wrap in sorted((place, name, wrap) for name in TABLE for wrap, place in TABLE[name].prominence.items())
)
ONE_AT_A_TIME = tuple(name for name, method in TABLE.items() if method.one_at_a_time)
