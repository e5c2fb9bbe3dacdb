"""A pool of filters: one law from theirs, with weights from rows that none of them was fitted on.

The last rows of the training panel are held out: members are fitted on the others, and weighed by the Student-t log
density of the held-out readings under their laws and the size of the sets that hold them. Then each is fitted on the
whole panel. Nothing else is looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jointset.abilities import Shaped, expecting, message_start
from jointset.algebra.law_blocks import concatenate
from jointset.algebra.law_tails import NORMAL, Tails
from jointset.algebra.pooling import best_weights, log_scores, mixture_weights, pooled, some_rows
from jointset.contracts import Array, Filter
from jointset.errors import InputError, require
from jointset.filters.held_out import (
    BLOCK,
    FEWEST,
    WARMUP,
    blocks_of_parts,
    enough,
    follows_clock,
    held_out,
    laws_of,
    parts_of,
    run_of,
)
from jointset.filters.remembered import Remembered
from jointset.filters.telling import Told, in_turn, tells
from jointset.filters.telling import fitted as fitted_on
from jointset.laws import AnyLaw, LowRankLaw
from jointset.panel import Panel
from jointset.storage import storable
from jointset.support.how_far import each

LONG = 5  # times as long as that of another takes the fit of a member that tells its progress; the search, twice that


@storable
class PooledState(NamedTuple):
    """The states of the members."""

    members: tuple[Any, ...]


@storable
@dataclass(frozen=True)
class PooledFilter(Remembered[PooledState, AnyLaw]):
    """A filter whose law is the geometric mean of its members' laws, weight by weight.

    Parameters
    ----------
    members
        Any filters whose sets have one radius; one that is a pool by itself stands for its parts.
    weights
        Of the members (K,), at least 0, with sum 1; None: set by `fit` or `weigh`. A number for every part.
    sizes
        What multiplies the members' covariances (K,); None: set with the weights.
    frozen
        The members are fitted already, in the units that `fit` will be given; `fit` leaves everything as it is, but for
        weights that are not there.
    alone_above
        Number of sensors above which the first member stands alone, where others would form matrices of all pairs.
    tails
        Of the law, set by `weigh`: the Student-t of the rows that it sees; None: the law is normal.

    >>> from jointset import GraphLGSSM, generate_grssf
    >>> pool = PooledFilter([GraphLGSSM(), GraphLGSSM(rho=0.5)]).fit(generate_grssf("A", n=10, length=1500).panel)
    >>> pool.weights.shape, round(float(pool.weights.sum()), 6)
    ((2,), 1.0)
    """

    members: tuple[Filter[Any], ...]
    weights: Array | None = None
    sizes: Array | None = None
    frozen: bool = False
    alone_above: int | None = None
    tails: Tails | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        require(bool(self.members), "a pool needs at least one member")
        for name in ("weights", "sizes"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, np.asarray(given, dtype=float))
        w, count = self.weights, len(self._owners)
        sound = w is None or (w.shape == (count,) and bool((w >= 0).all()) and abs(float(w.sum()) - 1.0) < 1e-6)
        require(sound, f"weights of a pool of {count} must be {count} numbers of at least 0 with sum 1, got {w}")

    def fit(self, panel: Panel, progress: Told | None = None) -> PooledFilter:
        """Weights on held-out rows, then members on all rows; a member that cannot be fitted is told and left out.

        `progress` is told of the steps of its members, and of the search for weights at its end.
        """
        early, late = held_out(panel)
        if self.frozen:
            return self if self.weights is not None else self.weigh(late)
        alone = self.alone_above is not None and panel.n_sensors > self.alone_above
        weighed, pairs, kept = self.weights is None and not alone, [], []
        members = self.members[:1] if alone else self.members
        long = [LONG if tells(member) else 1 for member in members for _ in range(1 + weighed)]
        told = in_turn(progress, [*long, *[2 * LONG] * weighed])
        for k, member in enumerate(members):
            before, after = told[k * (1 + weighed)], told[k * (1 + weighed) + weighed]
            try:
                pairs.append((fitted_on(member, early, before) if weighed else None, fitted_on(member, panel, after)))
                kept.append(k)
            except InputError as error:
                if k + 1 == len(self.members) and not pairs:
                    raise
                warnings.warn(f"left out of the pool: {message_start(member)}{error}", stacklevel=2)
        trial, fitted = zip(*pairs, strict=True)
        several = [one for one in fitted if isinstance(one, Shaped) and one.shares is not None]
        require(not several, f"{message_start(several[0]) if several else ''}sets of several radii cannot be pooled")
        if weighed:
            return replace(replace(self, members=trial).weigh(late), members=fitted)
        stay = np.isin(self._owners, kept)
        weights = np.ones(1) if alone or self.weights is None else self.weights[stay]
        sizes = None if alone or self.sizes is None else self.sizes[stay]
        require(weights.sum() > 0, "all members of the pool that have a weight were left out")
        return replace(self, members=fitted, weights=weights / weights.sum(), sizes=sizes)

    def weigh(self, panel: Panel) -> PooledFilter:
        """The pool of these fitted members with weights and sizes from rows they were not fitted on.

        From weights that maximise the likelihood of a mixture (EM) or equal ones a search goes to those whose pool
        makes the rows likely and has small sets (`pooling.cost`). Where rows are few, weights are equal.
        """
        count = len(self._owners)
        equal = np.full(count, 1.0 / count)
        if not enough(panel):
            return replace(self, weights=equal, sizes=np.ones(count))
        laws, y = self._held_out(panel)
        scores, tails = zip(*(log_scores(law, y) for law in laws), strict=True)
        sizes = np.array([one.size for one in tails])

        tried = mixture_weights(np.stack(scores, axis=1)), equal
        best = best_weights(laws, sizes, y, tried)
        return replace(self, weights=best, sizes=sizes, tails=log_scores(pooled(laws, best, sizes), y)[1])

    def _held_out(self, panel: Panel) -> tuple[list[AnyLaw], Array]:
        """Laws of every member and readings, of as many rows after the warm-up as fit into memory."""
        widest = max(_numbers(law) for member in self.members for law in laws_of(member, member.start()))
        kept = WARMUP + some_rows(len(panel) - WARMUP, max(FEWEST, BLOCK // widest))
        found = []
        for member in self.members:
            blocks = []
            for first, laws in blocks_of_parts(member, panel):
                own = kept[(kept >= first) & (kept < first + len(laws[0].mean))] - first
                blocks.append([law[own] for law in laws])
            found += [concatenate(list(part)) for part in zip(*blocks, strict=True)]
        return found, panel.values[kept]

    def start(self) -> PooledState:
        """The members' own starts."""
        if self.weights is None:
            raise InputError("the pool is not fitted: call fit(panel) first")
        return PooledState(tuple(member.start() for member in self.members))

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return any(follows_clock(member) for member in self.members)

    def expect(self, state: PooledState, when: int) -> PooledState:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        used, pairs = self._used, zip(self.members, state.members, strict=True)
        told = tuple(expecting(m, s, when) if k in used else s for k, (m, s) in enumerate(pairs))
        same = all(one is before for one, before in zip(told, state.members, strict=True))
        return state if same else PooledState(told)

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the law of a row holds: a matrix of every member."""
        return np.full(len(values), len(self._owners) * values.shape[1] ** 2)

    def _law(self, state: PooledState) -> AnyLaw:
        spoken = ((k, laws_of(self.members[k], state.members[k])) for k in self._used)
        return self._pooled([law for k, laws in spoken for law in self._heard(k, laws)])

    def step(self, state: PooledState, y: Array) -> PooledState:
        """State after one reading (N,), NaN = missing; members without weight stay where they are."""
        after = list(state.members)
        for k in self._used:
            after[k] = self.members[k].step(after[k], y)
        return PooledState(tuple(after))

    def run(self, values: Array, state: PooledState, times: Array | None = None) -> tuple[AnyLaw, PooledState]:
        """Laws of all rows (T, N) and the state after the last one; `times` (T,) where a member follows the clock."""
        laws: list[AnyLaw] = []
        after = list(state.members)
        for k in each(self._used):
            clock = (times,) if follows_clock(self.members[k]) else ()
            spoken, after[k] = run_of(self.members[k], values, after[k], *clock)
            laws += self._heard(k, spoken)
        return self._pooled(laws), PooledState(tuple(after))

    @cached_property
    def _owners(self) -> Array:
        """The member that every law, and every weight, belongs to."""
        return np.repeat(np.arange(len(self.members)), [parts_of(member) for member in self.members])

    @cached_property
    def _used(self) -> list[int]:
        """The members that have a weight."""
        assert self.weights is not None
        return np.unique(self._owners[self.weights > 0]).tolist()

    def _heard(self, k: int, laws: Sequence[AnyLaw]) -> list[AnyLaw]:
        """Those of a member's laws that have a weight."""
        return [laws[i] for i in self._places[k]]

    @cached_property
    def _places(self) -> list[list[int]]:
        """Of every member the places of those of its laws that have a weight."""
        assert self.weights is not None
        return [np.flatnonzero(self.weights[self._owners == k] > 0).tolist() for k in range(len(self.members))]

    def _pooled(self, laws: list[AnyLaw]) -> AnyLaw:
        """The one law of all that have a weight."""
        return pooled(laws, *self._shares).with_tails(self.tails or NORMAL)

    @cached_property
    def _shares(self) -> tuple[Array, Array | None]:
        """Weights that are not 0, and their sizes."""
        assert self.weights is not None
        heard = self.weights > 0
        return self.weights[heard], None if self.sizes is None else self.sizes[heard]


def _numbers(law: AnyLaw) -> int:
    """Numbers that the law of a row holds."""
    n = int(law.mean.size)
    return int(law.factor.size) + 2 * n if isinstance(law, LowRankLaw) else n**2
