"""One line of the table of methods: what a method is called, what makes it, what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing import Any

    from jointset.contracts import Filter, Fittable, Shape
    from jointset.joint_predictor import JointPredictor

Made: TypeAlias = "Filter[Any] | Fittable | Shape[Any] | JointPredictor"


@dataclass(frozen=True)
class Method:
    """One line of the table of methods (`jointset.catalogue`), and all that the rest of the house knows of a method.

    Parameters
    ----------
    name
        Ours, without geometry and wrap.
    make
        Gives what is to be fitted, by family: an unfitted `Filter` (`filter`), the shape of a backbone's residuals
        (`static`, `conditional`), or the predictor for `alpha`, `wrap`, `seed`, `backbone` and so on (`published`).
    family
        `static`, `conditional`, `filter` or `published`.
    mean, covariance, tuned, adaptive, reference
        In words: where the centre comes from, what gives the set its shape, how settings are chosen, its own online
        rule, and who proposed it.
    paper, wraps
        Its name in the paper, and its names there with a wrap (`{"aci": "ACI-FactorCGIF"}`).
    printed_as
        The method whose row in the paper's tables it shares, where they have one for both.
    prominence
        Its place among the methods of a figure with room for a few, by wrap (`{"": 1, "aci": 5}`); none: not drawn.
    needs
        `graph`, `time stamps`.
    geometries
        The shapes its sets can have, the usual one first: `ellipsoid`, `box`, and `lean`, a box that may lean.
    leans
        Its boxes may lean; it then has no form of its own for that.
    package
        What `fit` needs beyond the packages of every installation, `torch`; a fitted one is used without it.
    learned
        Trained, with a field `seed`; with `steps`, `device` and `recipe` where it has these fields.
    one_at_a_time
        Each interval aims at the target by itself: together they hold far less.
    pilot
        Block of a benchmark that the shape is fitted on in protocol `text`; a filter of which it is `validation` is
        fitted on that block too.
    rule
        The calibration rule of its radius where the name has no wrap.
    in_table
        `make` in protocol `table`, where that is another.
    cost
        Rough work of a row in those of `static`; of a learned one, for each seed.
    """

    name: str
    make: Callable[..., Made]
    family: str = "filter"
    mean: str = "own"
    covariance: str = "own"
    tuned: str = ""
    adaptive: str = ""
    reference: str = "-"
    paper: str = "-"
    wraps: Mapping[str, str] = field(default_factory=dict)
    printed_as: str = ""
    prominence: Mapping[str, int] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    geometries: tuple[str, ...] = ("ellipsoid", "box", "lean")
    leans: bool = False
    package: str = ""
    learned: bool = False
    one_at_a_time: bool = False
    pilot: str = "train"
    rule: str = "split"
    in_table: Callable[..., Made] | None = None
    cost: float = 1.0

    def maker(self, protocol: str = "text") -> Callable[..., Made]:
        """What makes it in a protocol."""
        return self.in_table if protocol == "table" and self.in_table is not None else self.make
