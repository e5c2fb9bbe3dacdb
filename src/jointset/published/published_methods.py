"""The lines of the table of methods that stand for published ones; `jointset.catalogue` holds the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from jointset.contracts import Method

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

SUN, XU, XIE = "Sun and Yu 2024", "Xu et al. 2024", "Xu and Xie 2023"


def _published(maker: str, **form: Any) -> Callable[..., JointPredictor]:
    """What makes a published method; imported when it does, as most runs have none."""

    def make(**options: Any) -> JointPredictor:
        from jointset import published

        return getattr(published, maker)(**form, **options)

    return make


_boxes = partial(Method, family="published", mean="backbone", geometries=("box",), cost=10.0)
_balls = partial(
    Method,
    family="published",
    mean="backbone",
    geometries=("ellipsoid",),
    adaptive="own",
    cost=10.0,
    reference=XU,
)

PUBLISHED_METHODS = (
    _boxes(
        "copula",
        _published("CopulaCPTS"),
        paper="CopulaCPTS",
        prominence={"": 4},
        covariance="marginal scores and a copula",
        tuned="MLE",
        cost=2.0,
        reference=SUN,
    ),
    _boxes(
        "copula-kde",
        _published("CopulaCPTS", variant="kde"),
        paper="CopulaCPTS (text)",
        covariance="marginal scores and a kernel copula",
        cost=2.0,
        reference=SUN,
    ),
    _balls(
        "multidim-spci",
        _published("MultiDimSPCI"),
        paper="MultiDimSPCI",
        prominence={"": 10},
        covariance="one covariance, radius from past scores",
    ),
    _balls(
        "multidim-spci-empirical",
        _published("MultiDimSPCI", variant="empirical"),
        paper="MultiDimSPCI (empirical)",
        covariance="one covariance, radius from the last 100 scores",
        cost=1.0,
    ),
    _balls(
        "multidim-spci-network",
        _published("MultiDimSPCI", variant="network"),
        paper="MultiDimSPCI (text)",
        covariance="one covariance, radius from a network",
        tuned="pinball loss",
        package="torch",
    ),
    _boxes(
        "spci",
        _published("SPCI"),
        paper="SPCI",
        covariance="an interval a sensor from past residuals",
        adaptive="own",
        one_at_a_time=True,
        reference=XIE,
    ),
    _boxes(
        "spci-empirical",
        _published("SPCI", variant="empirical"),
        paper="SPCI (empirical)",
        covariance="an interval a sensor from the last 100 residuals",
        adaptive="own",
        one_at_a_time=True,
        cost=2.0,
        reference=XIE,
    ),
    _boxes(
        "hopcpt",
        _published("HopCPT"),
        paper="HopCPT",
        covariance="an interval a sensor from similar past residuals",
        tuned="1,000 updates, the paper has 10,000",
        package="torch",
        adaptive="own",
        one_at_a_time=True,
        reference="Auer et al. 2023",
    ),
    _boxes(
        "corel",
        _published("CoRel"),
        covariance="an interval a sensor from its past and that of related ones",
        tuned="pinball loss",
        adaptive="own",
        one_at_a_time=True,
        cost=2.0,
        reference="Cini et al. 2025",
    ),
)
