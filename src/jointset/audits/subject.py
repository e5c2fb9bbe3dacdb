"""What is audited: a calibrated predictor with its frozen filter, and the readings the filter is taken through.

With a cell the readings are its calibration and test block, passed through once from a fresh state (Algorithm 1). With
a saved model they are later rows, and the filter goes on from where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.abilities import Differentiable, Linear, Named, OwnSetting, Spread, follows_clock
from jointset.calibration.quantiles import score_quantile
from jointset.contracts import Array, Filter, Forecast
from jointset.errors import InputError, require
from jointset.filters import GraphLGSSM
from jointset.joint_predictor import JointPredictor
from jointset.panel import Panel
from jointset.runs import Run
from jointset.score_abilities import OfOneLaw, sets_of

if TYPE_CHECKING:
    from jointset.audits.contraction import Contraction
    from jointset.audits.dependence import IndicatorDependence, Season
    from jointset.datasets.cells import Cell

SHORTEST = 120  # rows below which the trajectories of the audits do not fit
LAWS = 400  # emitted laws that are kept whole
BLOCK = 8_000_000  # numbers a block of covariances may hold
COUPLED = 400  # training rows kept for coupled runs


class Skip(Exception):
    """An audit that has no meaning here; the text says why."""


class Emitted(NamedTuple):
    """Laws of all rows in the filter's units: means and variances (T, N), and a sample of whole laws in batches."""

    mean: Array
    variance: Array
    sample: tuple[Forecast, ...]


@dataclass(frozen=True)
class Subject:
    """A calibrated predictor and its readings.

    start: filter state before the first row · calibrating: how many first rows were the calibration block (0: none) ·
    cell, method, training: where the predictor was fitted, for audits that fit again.
    """

    predictor: JointPredictor
    panel: Panel = field(repr=False)
    start: Any = field(repr=False)
    calibrating: int = 0
    cell: Cell | None = None
    method: str = ""
    seed: int = 0
    training: dict[str, Any] | None = None
    progress: Callable[[str], None] | None = None

    @property
    def filter(self) -> Filter[Any]:
        """The frozen filter, refused where there is none."""
        found = self.predictor.filter
        if isinstance(found, OwnSetting):
            raise Skip("the method is no filter with a predictive law")
        return found

    @property
    def state_space(self) -> Filter[Any]:
        """The frozen filter, refused where it has no state to perturb."""
        if not (self.is_linear or isinstance(self.filter, Differentiable)):
            name = self.filter.name if isinstance(self.filter, Named) else "this method"
            raise Skip(f"needs a filter with a hidden state; {name} has none")
        return self.filter

    @property
    def is_linear(self) -> bool:
        """Whether the filter is the linear one."""
        return isinstance(self.filter, Linear)

    @property
    def linear(self) -> GraphLGSSM:
        """The linear filter, refused where it is another."""
        if not isinstance(self.filter, GraphLGSSM):
            raise Skip("holds for the linear Kalman filter only")
        return self.filter

    @property
    def variance_floor(self) -> float:
        """What no eigenvalue of an emitted covariance is below; NaN where that is not known."""
        if isinstance(self.filter, Linear):
            return float(self.filter.sigma_r**2)  # P^- + R is never below R
        return float(self.filter.variance_floor) if isinstance(self.filter, Differentiable) else float("nan")

    @property
    def fitted_on(self) -> Cell:
        """The cell, refused where there is none."""
        if self.cell is None:
            raise Skip("needs the training block: use --cells")
        return self.cell

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        return float(self.predictor.alpha)

    @property
    def n(self) -> int:
        """Number of sensors."""
        return self.panel.n_sensors

    @cached_property
    def values(self) -> Array:
        """The readings (T, N) in the filter's units."""
        return self._standardised(self.panel.values)

    @cached_property
    def coupled_values(self) -> Array:
        """Inputs of coupled runs: the end of the training block as in the paper, else the readings themselves."""
        return self.values if self.cell is None else self._standardised(self.cell.train.values[-COUPLED:])

    def _standardised(self, values: Array) -> Array:
        return (values - self.predictor.shift) / self.predictor.scale

    @property
    def calibration_rows(self) -> Panel:
        """The calibration block; of a saved model, the first half of the readings."""
        return self.panel[: self.calibrating or len(self.panel) // 2]

    @property
    def test_rows(self) -> Panel:
        """The rows after `calibration_rows`."""
        return self.panel[self.calibrating or len(self.panel) // 2 :]

    @property
    def scores(self) -> Array:
        """Calibration scores in time order, one a step."""
        scores = self.predictor.calibration_scores
        if scores.ndim != 1:
            raise Skip("needs one score a step; this set has several radii")
        if not len(scores):
            raise Skip("the method keeps no calibration scores")
        return scores

    @property
    def radius(self) -> float:
        """The split radius of the calibration scores: the threshold that dependence is looked at."""
        return score_quantile(np.sort(self.scores), self.alpha)

    @property
    def squared(self) -> bool:
        """Whether scores are squared distances."""
        score = self.predictor.score
        return isinstance(score, OfOneLaw) and score.sets == "ellipsoids" and score.power == 0.5

    @property
    def ellipsoid(self) -> bool:
        """Whether scores are distances in the metric of the law, squared or not."""
        return sets_of(self.predictor.score) == "ellipsoids"

    @cached_property
    def contraction(self) -> Contraction:
        """Coupled pairs of the frozen filter, run once for all audits that read them."""
        from jointset.audits.contraction import contraction

        return contraction(self.state_space, self.coupled_values, seed=self.seed)

    @cached_property
    def dependence(self) -> IndicatorDependence:
        """Autocovariance of the hits of calibration, computed once."""
        from jointset.audits.dependence import indicator_dependence

        return indicator_dependence(self.scores, self.radius, squared=self.squared)

    @cached_property
    def season(self) -> dict[str, Season]:
        """Daily and weekly correlation of the hits of calibration, at the cadence of the readings."""
        from jointset.audits.dependence import season_of

        return season_of((self.scores <= self.radius).astype(float), self.panel.cadence)

    @cached_property
    def run(self) -> Run:
        """The sets of the rows after calibration, and what these said."""
        return self.predictor.copy().run(self.panel[self.calibrating :], regions=False)

    def silent(self, rows: slice, fewer: int = 1) -> list[str]:
        """Sensors with fewer readings than that in these rows."""
        seen = self.panel[rows].mask.sum(axis=0)
        return [name for name, count in zip(self.panel.sensors, seen, strict=True) if count < fewer]

    @cached_property
    def emitted(self) -> Emitted:
        """All laws of one pass through the readings."""
        step = max(1, len(self.values) // LAWS)
        means, variances, sample, at = [], [], [], 0
        for law in self._laws():
            if not isinstance(law, Spread):
                raise Skip("the set is made of several components: it has no single predictive law")
            means.append(law.mean)
            variances.append(law.variance)
            sample.append(law[(-at) % step :: step])
            at += len(law.mean)
        return Emitted(np.concatenate(means), np.concatenate(variances), tuple(sample))

    def _laws(self) -> Iterator[Forecast]:
        filter_, state = self.filter, self.start
        size = max(1, BLOCK // self.n**2)
        times = self.panel.timestamps if follows_clock(filter_) else None
        for first in range(0, len(self.values), size):
            rows = slice(first, first + size)
            clock = () if times is None else (times[rows],)
            law, state = filter_.run(self.values[rows], state, *clock)
            yield law


def subject_of_cell(predictor: JointPredictor, cell: Cell, method: str, **options: Any) -> Subject:
    """A predictor fitted on a cell, audited on its calibration and test block."""
    calibration, test = cell.blocks["calibration"], cell.blocks["test"]
    panel = cell.panel[calibration.start : test.stop]
    steps = calibration.stop - calibration.start
    start = None if isinstance(predictor.filter, OwnSetting) else predictor.filter.start()
    return _checked(Subject(predictor, panel, start, steps, cell, method, **options))


def subject_of_model(predictor: JointPredictor, panel: Panel, **options: Any) -> Subject:
    """A calibrated predictor audited on later readings."""
    calibrated = predictor.calibration_state is not None
    require(calibrated, "the predictor is not calibrated: call calibrate(panel) first")
    if tuple(panel.sensors) != tuple(predictor.sensors):
        raise InputError(
            "the readings have other sensors, or another order, than the model: panel.select(predictor.sensors)"
        )
    return _checked(Subject(predictor, panel, predictor.filter_state, **options))


def _checked(subject: Subject) -> Subject:
    rows = len(subject.panel)
    require(rows >= SHORTEST, f"{rows} rows are too few to audit: at least {SHORTEST} are needed")
    return subject
