"""What a predictor says of a reading before it takes it in, who is to blame and what fills its gaps, and of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from jointset.abilities import TellsOneFromOthers, follows_clock, message_start
from jointset.algebra.law_tails import tails_of
from jointset.calibration.any_rule import AnyRule, adapts, rule_within
from jointset.calibration.fixed import Fixed
from jointset.calibration.own_bands import own_ends, studentised
from jointset.contracts import Array, Filter, Forecast, Reading, Readings, Score
from jointset.errors import InputError
from jointset.inputs.graph_edges import Edges
from jointset.inputs.sensor_health import Health, Usual, ailing, unknown_usual
from jointset.inputs.times import iso
from jointset.panel import Panel
from jointset.predicting.attribution import Explained, Neighbourhood, attribution, explained, neighbourhoods
from jointset.predicting.imputation import Filling, FillQuantiles, Imputed, fill_quantiles, impute_row, start_filling
from jointset.predicting.passes import Counting, Progress
from jointset.predicting.reuse import Reuse
from jointset.score_abilities import sets_of
from jointset.support.notebook import listed
from jointset.trust import Trust, Watch

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

NEXT_CALL = {"fitted on": "call fit(panel)", "calibrated on": "call calibrate(panel)"}


class Explains(ABC):
    """Questions to a predictor that leave its sets as they are; y is a reading (N,), NaN = missing, or by label."""

    score: Score[Any]
    calibration: AnyRule
    calibration_state: Any
    sensors: tuple[str, ...]
    graph: Edges | None
    usual: Usual | None
    calibrated_on: Panel | None
    fill_quantiles: FillQuantiles | None
    filling: Filling | None
    health: Health | None
    watch: Watch | None
    reuse: Reuse | None
    filter: Filter[Any]

    @property
    @abstractmethod
    def alpha(self) -> float:
        """Target miss rate."""

    @property
    @abstractmethod
    def infinite_share(self) -> float:
        """Share of the steps so far whose set had no end."""

    @abstractmethod
    def _ahead(self) -> tuple[Forecast, Array | float, float]:
        """The next law, what cuts out its set, and that as one number."""

    @abstractmethod
    def _reading(self, y: Reading) -> Array:
        """A reading in the order of the sensors."""

    @abstractmethod
    def _panel(self, data: Readings) -> Panel:
        """Readings as a panel of the sensors."""

    @abstractmethod
    def _require_calibrated(self) -> None:
        """Refuse a predictor without a radius."""

    def contributions(self, y: Reading) -> Array:
        """How much each sensor of a reading adds to its score under the next law (N,); 0 where missing."""
        return self.score.contributions(self._ahead()[0], self._reading(y))

    def attribution(self, y: Reading) -> Array:
        """Shares (N,) of the sensors in the score of a reading under the next law: they add up to it; 0 where missing.

        Which sensor is to blame is told by `contributions`; a share may be negative (`jointset.algebra.shares`).
        """
        return attribution(self, self._ahead()[0], self._reading(y))

    def neighbourhoods(self, y: Reading, shares: Array | None = None, count: int | None = None) -> list[Neighbourhood]:
        """Neighbourhoods of the graph, the one most to blame for a reading first, with shares that add up to the score.

        Without a graph every sensor is one; a law without a covariance gives none. `shares` are those of `attribution`,
        where they are known; `count` how many are wanted.
        """
        return neighbourhoods(self, self._ahead()[0], self._reading(y), shares, count)

    def explained(self, y: Reading, score: float) -> Explained:
        """Contributions, shares and what each reading should be given all others, of a reading of this score."""
        return explained(self, self._ahead()[0], self._reading(y), score)

    def given_others(self, y: Reading) -> tuple[Array, Array] | None:
        """Mean and sd of each reading of a row (N,) given all others, under the next law; None where there is no law.

        NaN where missing.
        """
        law, y = self._ahead()[0], self._reading(y)
        return law.given_others(y) if isinstance(law, TellsOneFromOthers) else None

    def errors(self, y: Reading) -> Array | None:
        """Errors of a reading (N,) in sd of the next law, NaN where missing; None where that has no variances."""
        return studentised(self._ahead()[0], self._reading(y))

    def own_bounds(self) -> tuple[Array, Array] | None:
        """Ends of the band of each sensor by itself (N,), at the same level; None where the method has none."""
        return None if self.usual is None else own_ends(self._ahead()[0], self.usual.own)

    def trust(self, *, sensors: bool = True) -> Trust:
        """What the calibration is worth, the coverage to expect, drift of the scores since; cheap at every step.

        With the names of the sensors that are silent or stuck, unless that is of no interest.
        """
        self._require_calibrated()
        if self.watch is None:
            raise InputError(
                f"{message_start(self.filter)}an older version saved no scores to judge by: calibrate the model again"
            )
        found = self.watch.trust(self.infinite_share)
        if self.reuse is not None:
            found = self.reuse.corrected(found, self.alpha, adapts(self.calibration))
        return found.naming(**self.ailing()) if sensors else found

    def ailing(self) -> dict[str, list[str]]:
        """Names of the sensors that are `silent`, and of those that are `stuck`; outages of all do not count."""
        if self.health is None:
            return {"silent": [], "stuck": []}
        single = self.health._replace(gap=self.health.gap - self.health.empty)
        return ailing(single, self.usual or unknown_usual(len(self.sensors)), self.sensors)

    def impute(self, y: Reading) -> Imputed:
        """The reading with its gaps filled given what was read of it, and an interval for each.

        Ask before `update`, which from then on keeps up what fills are told from. The first call looks at the
        calibration rows again, unless `learn_to_fill` has.
        """
        if self.fill_quantiles is None:
            rows = self.calibrated_on
            if rows is None:
                raise InputError("the model has not learned to fill gaps: fit it with --impute, or call learn_to_fill")
            self.learn_to_fill(rows)
        one = cast("JointPredictor", self)
        self.filling = start_filling(one) if self.filling is None else self.filling
        assert self.fill_quantiles is not None
        return impute_row(one, self.fill_quantiles, self.filling, self._reading(y))

    def learn_to_fill(self, panel: Readings, counting: Counting | None = None) -> Self:
        """Calibrate the intervals of `impute` on readings of these rows that are hidden on purpose.

        `counting` is given how many rows that takes, and makes the function that is told of so many more.
        """
        self._require_calibrated()
        one = cast("JointPredictor", self)
        self.fill_quantiles = fill_quantiles(one, self._panel(panel), counting)
        return self

    def with_sensors(
        self,
        drop: Iterable[str] = (),
        rename: Mapping[str, str] | None = None,
        add: Iterable[str] | Mapping[str, Mapping[str, float]] = (),
        rows: Readings | None = None,
        *,
        progress: Progress | None = None,
    ) -> JointPredictor:
        """Another predictor without some sensors, with new names or new sensors (`jointset.predicting.membership`)."""
        from jointset.predicting.membership import with_sensors  # imports every filter that can grow

        self._require_calibrated()
        one = cast("JointPredictor", self)
        return with_sensors(one, drop, rename, add, rows, progress)


def facts_of(predictor: JointPredictor) -> dict[str, str]:
    """Method, shape and rule, and what they were fitted on, calibrated on and have seen."""
    filter_, score, rule = predictor.filter, predictor.score, rule_within(predictor.calibration)
    name = "its own rule" if isinstance(rule, Fixed) else type(rule).__name__
    clock = " by the clock" if follows_clock(predictor.calibration) else ""
    facts = {
        "filter": message_start(filter_).partition(":")[0].partition("+")[0] or type(filter_).__name__,
        "sets": sets_of(score),
        "rule": f"{name}{clock} at {100 * (1 - predictor.alpha):g} %",
    }
    if not predictor.sensors:
        return facts | {"fitted on": f"nothing yet: {NEXT_CALL['fitted on']}"}
    rows = f"{predictor.fitted_rows:,} rows of " if predictor.fitted_rows else ""
    facts |= {"fitted on": f"{rows}{len(predictor.sensors):,} sensors", "sensors": listed(predictor.sensors)}
    if predictor.calibration_state is None:
        return facts | {"calibrated on": f"nothing yet: {NEXT_CALL['calibrated on']}"}
    facts |= {"calibrated on": f"{predictor.n_calibration:,} scores"}
    tails = tails_of(predictor._ahead()[0])
    facts |= {"tails": f"of a Student-t with {tails.freedom:g} degrees of freedom"} if tails.heavy else {}
    return facts if predictor.last_time is None else facts | {"last row seen": iso(predictor.last_time)}


def line_of(predictor: JointPredictor) -> str:
    """What the predictor is and what it stands on, in one line."""
    facts = facts_of(predictor)
    what = ", ".join(facts.pop(name) for name in ("filter", "sets", "rule"))
    facts.pop("sensors", None)
    stands = ", ".join(f"{name} {text.removesuffix(': ' + NEXT_CALL.get(name, ''))}" for name, text in facts.items())
    return f"{type(predictor).__name__}({what}; {stands})"
