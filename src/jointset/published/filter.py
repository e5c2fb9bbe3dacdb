"""What the published methods share: a filter whose sets follow from past residuals of a mean backbone.

A **rule** is a frozen dataclass with three functions of residual arrays (rows are steps, columns sensors):

- `start(residuals)`: the state after the calibration residuals (m, N);
- `radii(state, residuals)`: the parameters of the next T + 1 sets, entry j from the state and the first j of the T
  residuals only, and the state after all of them;
- `shape(state, parameters, mean)`: the regions with these parameters around means (..., N).

`PublishedFilter` emits the rule's own set as its law, `OwnScore` says by which factor that set must be scaled about its
centre to hold a reading, and a calibration rule gives the factor: 1 for ever without a wrap, else what the wrap learns.

With a wrap the first half of the calibration residuals starts the rule, and its sets for the second half give the
scores that the wrap starts from. So a split wrap repairs the level of a method that has none of its own (SPCI, HopCPT)
and, where the own sets do not move after their half of the rows (CopulaCPTS), covers exactly as every split rule does;
an adaptive one follows the misses. Without a wrap all residuals start the rule, and the set that follows them is held
against them for what `trust` compares with.

Gaps: the backbone fills them with the last reading; calibration residuals are made complete
(`jointset.residuals.incomplete`) to start the sets, and scored as they were read. So are those of later rows that have
a reading, to move the sets: a row without any leaves them where they are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack, runtime_checkable

import numpy as np

from jointset.algebra.partial import UNCALIBRATED, GapScale
from jointset.calibration import minimum_scores
from jointset.calibration.any_rule import AnyRule
from jointset.calibration.fixed import Fixed
from jointset.contracts import Array, Index, Law, MeanModel, OwnSet, Region, SetRule
from jointset.errors import InputError, require
from jointset.filters.residual import gpvar
from jointset.joint_predictor import JointPredictor
from jointset.panel import Panel
from jointset.published.sets import IntervalBox, ScaledSet
from jointset.residuals.incomplete import complete_around, complete_residuals, covariance_with_gaps
from jointset.storage import storable
from jointset.support.how_far import part

SHARE = 0.5  # of the calibration residuals that start the rule, where a wrap is calibrated on the others
LEAST = 1e-3  # of a sensor's residual sd: an interval of no length cannot be scaled


@dataclass(frozen=True)
class OwnSets:
    """The law of a published method: means (..., N), and the sets it puts around them in the filter's units.

    A reading is held against a set in the units in which the rule made it, so that a score equal to a radius stays so.
    """

    mean: Array
    own: OwnSet
    shift: Array | float = 0.0  # of the units of the means and readings
    scale: Array | float = 1.0

    def rescale(self, shift: Array, scale: Array) -> OwnSets:
        """Those of shift + scale * Y."""
        return OwnSets(shift + scale * self.mean, self.own, shift + scale * self.shift, scale * self.scale)

    def inner(self, y: Array) -> Array:
        """Readings in the filter's units."""
        return (np.asarray(y, dtype=float) - self.shift) / self.scale

    def as_normal(self) -> Law:
        """A normal law of the same spread."""
        return self.region.as_normal()

    @property
    def region(self) -> OwnSet:
        """The sets in the units of the readings."""
        return self.own.rescale(np.asarray(self.shift), np.asarray(self.scale))

    def __getitem__(self, index: Index) -> OwnSets:
        return replace(self, mean=self.mean[index], own=self.own[index])

    def __len__(self) -> int:
        return len(self.mean)


@storable
@dataclass(frozen=True)
class OwnScore:
    """The least factor by which an own set must be scaled to hold a reading; `scaled`: by a wrap, else only at 1.

    At factor 1 it is the method's own set that counts, with its hole or without its edge.
    """

    scaled: bool = False
    gaps: GapScale = UNCALIBRATED

    def with_gaps(self, gaps: GapScale) -> OwnScore:
        """The score with another scale for rows with gaps: own sets know one, a wrap adds that of the strata."""
        return replace(self, gaps=gaps) if self.scaled else self

    def score(self, law: OwnSets, y: Array) -> Array:
        """Factor (...); NaN where nothing is observed."""
        inner = law.inner(y)
        growth = np.asarray(law.own.growth(inner))
        if self.scaled:
            return self.gaps.levelled(growth, np.asarray(y, dtype=float))[()]
        edge = np.where(law.own.contains(inner), np.fmin(growth, 1.0), np.fmax(growth, np.nextafter(1.0, 2.0)))
        return np.where(np.isnan(y).all(-1), np.nan, edge)[()]

    def measure(self, law: OwnSets, y: Array) -> Array:
        """The score: own sets know what to make of gaps."""
        return self.score(law, y)

    def place(self, measured: Array) -> Array:
        """As measured."""
        return measured

    def region(self, law: OwnSets, radius: Array | float) -> Region:
        """The own sets, scaled where a wrap says so."""
        return ScaledSet(law.region, radius, self.gaps) if self.scaled else law.region

    def grown(self, law: OwnSets, radius: Array | float) -> ScaledSet:
        """The own sets scaled about their centres, a wrap or none."""
        return ScaledSet(law.region, radius, self.gaps)

    def contributions(self, law: OwnSets, y: Array) -> Array:
        """What each sensor adds (..., N); 0 where missing."""
        return law.own.contributions(law.inner(y))

    def shares(self, law: OwnSets, y: Array) -> Array:
        """See `Dividing`: those of the own set."""
        return law.own.shares(law.inner(y))


@storable
class PublishedState(NamedTuple):
    """Last readings (lags, N), gaps filled, and how many were seen; the rule's state; parameters of the next set.

    least: half-widths (N,) that sets have at the least, and correlations: squared ones of the residuals (N, N); both
    where a wrap scales the sets. covariance: of the calibration residuals (N, N), by which rows with gaps are made
    complete, and filled: how many were; models of older versions have none, and such rows move nothing.
    """

    history: Array
    seen: int
    own: object
    ahead: tuple[Array, ...]
    least: Array | None = None
    correlations: Array | None = None
    covariance: Array | None = None
    filled: int = 0


@runtime_checkable
class Cautious(Protocol):
    """A rule that knows beforehand when its sets hold too few rows."""

    def shortfall(self, rows: int, n: int) -> str:
        """Why sets from so many rows of n sensors hold rows too seldom, in a line; empty where nothing says so."""


@storable
@dataclass(frozen=True)
class PublishedFilter:
    """A rule around the mean of a backbone, calibrated before it emits its first set.

    cold: predict the training mean until `lags` readings were seen, as in protocol `table`. unit: of the residuals that
    the rule works on (N,); models of older versions have one.
    """

    rule: SetRule
    name: str
    backbone: MeanModel = field(default_factory=gpvar)
    wrapped: bool = False
    cold: bool = False
    unit: Array | None = None

    def fit(self, panel: Panel, **options: Any) -> PublishedFilter:
        """A copy with the backbone fitted on the panel."""
        return replace(self, backbone=self.backbone.fit(panel, **options))

    def start(self) -> PublishedState:
        """Refused: the sets begin with the calibration rows."""
        raise InputError(f"{self.name} has no set before it is calibrated: call calibrate(panel) first")

    @property
    def needed(self) -> int:
        """Fewest calibration residuals: for the rule in its share, and for a finite factor in the rest."""
        if not self.wrapped:
            return int(self.rule.needed)
        return int(np.ceil(max(self.rule.needed / SHARE, minimum_scores(self.rule.alpha) / (1.0 - SHARE)))) + 1

    def calibrate(self, values: Array, warmup: int) -> tuple[Array, PublishedState]:
        """Scores of calibration rows (T, N), and the state after the last; the first warmup - 1 are left out."""
        means, state = self._means(values, PublishedState(self.backbone.start(), 0, None, ()))
        read = (values - means)[warmup - 1 :]
        read = read[~np.isnan(read).all(axis=1)]
        residuals = complete_residuals(read, f"{self.name}: the calibration rows")
        require(
            len(residuals) >= self.needed,
            f"{self.name}: {len(residuals)} calibration rows with readings (of {len(values)}, warm-up {warmup}) are "
            f"too few, at least {self.needed} are needed: calibrate on more rows",
        )
        state = state._replace(covariance=covariance_with_gaps(residuals))
        if not self.wrapped:
            if isinstance(self.rule, Cautious) and (short := self.rule.shortfall(*residuals.shape)):
                warnings.warn(f"{self.name}: {short}", stacklevel=6)
            parameters, own = self.rule.radii(self.rule.start(residuals), residuals[:0])
            state = state._replace(own=own, ahead=tuple(np.array(part[-1:]) for part in parameters))
            sets = OwnSets(
                np.zeros_like(residuals),
                self._sets(state, tuple(part[0] for part in state.ahead), np.zeros_like(residuals)),
            )
            return OwnScore().score(sets, read), state
        cut = int(SHARE * len(residuals))
        least = LEAST * np.sqrt(np.mean(residuals[:cut] ** 2, axis=0))
        with np.errstate(invalid="ignore"):  # a sensor that stands still has no correlations
            correlations = np.nan_to_num(np.corrcoef(residuals[:cut].T)) ** 2
        with part(1, 2):
            begun = self.rule.start(residuals[:cut])
        with part(2, 2):
            parameters, own = self.rule.radii(begun, residuals[cut:])
        ahead = tuple(np.array(part[-1:]) for part in parameters)
        state = state._replace(own=own, ahead=ahead, least=least, correlations=np.atleast_2d(correlations))
        later = self._sets(state, tuple(part[:-1] for part in parameters), np.zeros_like(residuals[cut:]))
        return np.asarray(later.growth(read[cut:])), state

    def law(self, state: PublishedState) -> OwnSets:
        """The next set."""
        cold = self.cold and state.seen < self.backbone.lags
        mean = np.asarray(self.backbone.mean) if cold else self.backbone.next_mean(state.history)
        return OwnSets(mean, self._sets(state, tuple(part[0] for part in state.ahead), mean))

    def step(self, state: PublishedState, y: Array) -> PublishedState:
        """State after one reading (N,), NaN = missing."""
        return self.run(np.asarray(y, dtype=float)[None], state)[1]

    def run(self, values: Array, state: PublishedState) -> tuple[OwnSets, PublishedState]:
        """Sets of all rows (T, N) and the state after the last one."""
        means, after = self._means(values, state)
        residuals = values - means if self.unit is None else self.unit * (values - means)
        residuals, filled = self._filled(residuals, state)
        moves: Array = np.asarray(~np.isnan(residuals).any(axis=1))
        parameters, own = self.rule.radii(state.own, residuals[moves])
        seen = np.cumsum(moves) - moves  # rows before each row that moved the sets
        after = after._replace(own=own, ahead=tuple(np.array(part[-1:]) for part in parameters), filled=filled)
        return OwnSets(means, self._sets(after, tuple(part[seen] for part in parameters), means)), after

    def _filled(self, residuals: Array, state: PublishedState) -> tuple[Array, int]:
        """Residuals (T, N), those of rows with gaps and a reading made complete, and how many such rows there were."""
        gaps = np.flatnonzero(np.isnan(residuals).any(axis=1) & ~np.isnan(residuals).all(axis=1))
        if state.covariance is None or not len(gaps) or getattr(self.rule, "still", False):
            return residuals, state.filled
        numbers = range(state.filled, state.filled + len(gaps))
        drawn = np.stack([np.random.default_rng(number).standard_normal(residuals.shape[1]) for number in numbers])
        residuals = residuals.copy()
        residuals[gaps] = complete_around(residuals[gaps], drawn, state.covariance)
        return residuals, state.filled + len(gaps)

    def restart(self, state: PublishedState) -> PublishedState:
        """The state with an empty history: predictions start afresh, the sets go on."""
        return state._replace(history=self.backbone.start(), seen=0)

    def law_sizes(self, values: Array) -> Array:
        """Nothing to speak of: all rows are run at a time."""
        return np.zeros(len(values))

    def _sets(self, state: PublishedState, parameters: tuple[Array, ...], mean: Array) -> OwnSet:
        """The rule's sets, fit to be scaled where a wrap does that."""
        own = self.rule.shape(state.own, parameters, mean if self.unit is None else self.unit * mean)
        if state.least is not None:
            own = own.scalable(state.least, state.correlations, 1.0 - self.rule.alpha)
        return own if self.unit is None else own.rescale(np.zeros(len(self.unit)), 1.0 / self.unit)

    def _means(self, values: Array, state: PublishedState) -> tuple[Array, PublishedState]:
        """Means (T, N), and the state with the history at the end."""
        means, lags = np.asarray(self.backbone.predict(values, state.history), dtype=float), self.backbone.lags
        if self.cold:
            means[: max(lags - state.seen, 0)] = self.backbone.mean
        history = self.backbone.fill(values, state.history)[-lags:].copy()
        return means, state._replace(history=history, seen=min(state.seen + len(values), lags))


class IntervalRule:
    """What rules with an interval a sensor share; each sensor is at level alpha, or all together (`bonferroni`)."""

    alpha: float
    bonferroni: bool

    def each(self, n: int) -> float:
        """Miss rate of each of n intervals."""
        return self.alpha / n if self.bonferroni else self.alpha

    def shortfall(self, rows: int, n: int) -> str:
        """See `Cautious`."""
        if self.bonferroni or n == 1:
            return ""
        level = 1.0 - self.alpha
        each = f"each of {n} sensors has an interval of {level:.0%} and all are inside in fewer rows"
        return f"{each}, {level**n:.1%} if their errors are independent: add +auto for a joint set"

    def shape(self, state: object, parameters: tuple[Array, ...], mean: Array) -> IntervalBox:
        """Boxes around the means, not symmetric in general."""
        return IntervalBox(mean + parameters[0], mean + parameters[1])


class RowOptions(TypedDict, total=False):
    """What every published method takes beside its own settings."""

    backbone: MeanModel | None  # of the mean: the graph autoregression by default
    wrap: AnyRule | None  # a rule that scales the sets of the method
    warmup: int
    standardize: bool


def published(rule: SetRule, name: str, **row: Unpack[RowOptions]) -> JointPredictor:
    """An unfitted predictor of a published rule."""
    backbone, wrap, warmup = row.get("backbone"), row.get("wrap"), row.get("warmup", 50)
    require(warmup >= 1, f"{name}: warmup must be at least 1 (keep all scores), got {warmup}")
    filter_ = PublishedFilter(rule, name, gpvar() if backbone is None else backbone, wrapped=wrap is not None)
    how: dict[str, Any] = {"warmup": warmup, "standardize": row.get("standardize", True)}
    return JointPredictor(filter_, OwnScore(wrap is not None), Fixed(rule.alpha) if wrap is None else wrap, **how)
