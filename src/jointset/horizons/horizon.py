"""What a predictor knows of its next H steps: the law of a window, a radius for every set, the windows under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from jointset.abilities import LooksAhead, Spread
from jointset.algebra.partial import GapScale
from jointset.algebra.window_laws import WindowLaw
from jointset.calibration.late import LateACI
from jointset.calibration.pool import ScorePool
from jointset.contracts import Array, Forecast, Region, Score
from jointset.horizons.direct import DirectLaw
from jointset.storage import storable, storable_not_finite
from jointset.trust import Watch, start_watch

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

CHUNK = 4_000_000  # numbers that the laws of a block of windows may hold


class Centred(Protocol):
    """What is asked of the law of rows (T, N) here: its mean, and where it has one its variance."""

    @property
    def mean(self) -> Array:
        """Means (T, N)."""
        ...


@storable
class Announced(NamedTuple):
    """A window whose outcome is not all known: its law, and the radii (H + 1,) of its sets, that of all steps last."""

    law: WindowLaw
    radii: Array


@storable_not_finite("rows")
@dataclass(frozen=True)
class Horizon:
    """Sets for the next `steps` rows: one for each step, and one for all readings together, which comes last.

    model: the learned law; None: the filter has its own · scores, pools: of every set how it is scored, and past
    scores · levels (H + 1,): miss rates asked for now · before (2, N): the last two rows, last first, gaps
    filled · clock, cadence: time of the next row and usual interval, 0 without · windows: those under way, the oldest
    first · rows: readings since that began · watch: of the scores of all steps together · own (H, N): standard
    deviations that hold a sensor by itself, as often as a set holds all.
    """

    steps: int
    model: DirectLaw | None
    rule: LateACI
    scores: tuple[Score[Any], ...]
    pools: tuple[ScorePool, ...]
    levels: Array
    before: Array
    clock: int
    cadence: int
    windows: tuple[Announced, ...]
    rows: Array
    watch: Watch | None = None
    own: Array | None = None

    @property
    def lateness(self) -> tuple[int, ...]:
        """Steps after which the outcome of every set is known (H + 1,)."""
        return (*range(1, self.steps + 1), self.steps)

    def radii(self) -> Array:
        """Radii of the sets of the window that begins now (H + 1,)."""
        return radii_at(self.rule, self.pools, self.levels, self.lateness)

    def laws(
        self, predictor: JointPredictor, law: Centred, before: Array, times: Array | None
    ) -> Iterator[tuple[int, WindowLaw]]:
        """Laws of windows, a few at a time, with the place of the first; from those of the next row (T, N)."""
        size = max(1, CHUNK // (self.steps * before.shape[-1]))
        if self.model is None:
            assert isinstance(predictor.filter, LooksAhead)
            whole = cast("Forecast", law)  # of a filter that looks ahead, as it was emitted
            for rows, window in predictor.filter.ahead(whole, self.steps, predictor.shift, predictor.scale):
                yield from ((rows.start + at, window[at : at + size]) for at in range(0, len(window), size))
            return
        variances = variances_of(law)
        for at in range(0, len(law.mean), size):
            own = slice(at, at + size)
            stamps = None if times is None else times[own]
            spread = None if variances is None else variances[own]
            yield at, self.model.law(law.mean[own], spread, before[own], stamps)

    def next_law(self, predictor: JointPredictor, law: Forecast) -> WindowLaw:
        """Law of the window that begins now, from that of the next row (N,)."""
        if self.model is None:
            assert isinstance(predictor.filter, LooksAhead)
            return next(iter(predictor.filter.ahead(law, self.steps, predictor.shift, predictor.scale)))[1]
        variances = variances_of(law)
        spread = None if variances is None else variances[None]
        return self.model.law(law.mean[None], spread, self.before[None], np.array([self.clock]))[0]

    def expecting(self, when: int) -> Horizon:
        """The same when the next row is known to come at this time."""
        return replace(self, clock=int(when))

    def regions(self, law: WindowLaw) -> list[Region]:
        """The sets of the window that begins now, that of all steps last."""
        trios = zip(self.scores, law.with_steps(), self.radii().tolist(), strict=True)
        return [score.region(one, radius) for score, one, radius in trios]

    def rewrapped(self, rule: LateACI) -> Horizon:
        """The same under another rule, as after calibration."""
        pasts = [pool.recent if len(pool.recent) else pool.scores for pool in self.pools]
        pools = tuple(rule.start(past) for past in pasts)
        other = replace(self, rule=rule, pools=pools, levels=np.full(self.steps + 1, rule.alpha))
        radii = other.radii().tolist()
        if len(self.pools[-1].recent):  # older models with a fixed rule do not know the order of time
            watch = start_watch(pasts[-1], radii[-1], 1.0 - rule.alpha if rule.gamma else None)
            other = replace(other, watch=watch)
        if rule.alpha == self.rule.alpha:
            return other
        pairs = zip(self.scores, radii, strict=True)
        scores = tuple(score.with_gaps(GapScale(1.0 - rule.alpha, radius)) for score, radius in pairs)
        return replace(other, scores=scores, own=None)

    @property
    def note(self) -> str:
        """What the calibration is worth, in words."""
        m = len(self.pools[-1].scores)
        worth = m / max(self.steps, 1 if self.watch is None else self.watch.reference.tau_int)
        return (
            f"sets for {self.steps} steps ahead: calibration of {m:,} windows that overlap is worth about "
            f"{worth:,.0f} that do not"
        )


def radii_at(rule: LateACI, pools: Sequence[ScorePool], levels: Array, lateness: Sequence[int]) -> Array:
    """Radii of sets at these levels."""
    trios = zip(pools, levels.tolist(), lateness, strict=True)
    return np.array([rule.radius(*trio) for trio in trios])


def variances_of(law: object) -> Array | None:
    """Variances (..., N) of a law that has them."""
    return np.asarray(law.variance) if isinstance(law, Spread) else None
