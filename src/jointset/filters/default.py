"""The default method: learned members and the instant experts in one pool, with weights from held-out rows.

Of the rows it is fitted on, the first part trains the members; the last part, which they have not seen, weighs them
against each other and decides whether the pooled law is corrected by the correlations of its residuals. Then a short
run on all of them brings the members up to date. Nothing else is looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from jointset.abilities import message_start
from jointset.algebra.law_blocks import concatenate
from jointset.algebra.law_tails import Tails
from jointset.algebra.pooling import distances, student_scores
from jointset.backbones.interface import seed_list
from jointset.contracts import Array, Filter
from jointset.errors import InputError, require
from jointset.filters.held_out import blocks_of_laws, enough, held_out
from jointset.filters.node_net import NodeNet, Progress, joined
from jointset.filters.pool import PooledFilter
from jointset.filters.quick import experts, quick
from jointset.filters.whitened import WhitenedFilter
from jointset.laws import AnyLaw
from jointset.panel import Panel

FEW = 400  # rows below which nothing is trained
DENSE = 64  # sensors up to which a law is a matrix
TRAINING = 20  # times as long as the rest of a fit
GAIN = 0.002  # log density a reading that correlations of residuals must bring: less may be chance
HALF_LIVES = (500.0, 2000.0)  # of the correlations of residuals, in rows, that are tried

Fitted = WhitenedFilter[Any] | PooledFilter


@dataclass(frozen=True)
class DefaultFilter:
    """What `jointset fit` uses: `fit` gives the fitted pool, which is a filter of another class.

    Parameters
    ----------
    net
        The learned members and how they are trained.
    seed, device, steps
        Of the training run; steps: None for the usual number.
    """

    net: NodeNet = field(default_factory=NodeNet)
    seed: int = 0
    device: str = "cpu"
    steps: int | None = None

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"the seed must be a whole number >= 0, got {self.seed}")
        require(self.steps is None or self.steps >= 1, f"steps must be 1 or more, got {self.steps}")

    @property
    def _net(self) -> NodeNet:
        return replace(self.net, device=self.device, steps=self.steps or self.net.steps)

    def fit(self, panel: Panel, *, progress: Progress | None = None, checkpoint: str | Path | None = None) -> Fitted:
        """The fitted pool, with correlations of its residuals where they help; that of `quick` where rows are few."""
        return self.fit_seeds(panel, [self.seed], progress=progress, checkpoint=checkpoint)[0]

    def fit_seeds(
        self,
        panel: Panel,
        seeds: int | Sequence[int],
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> list[Fitted]:
        """Independent pools for several seeds (0 .. k - 1 for a number k), trained in one program."""
        seeds = seed_list(seeds)
        if len(panel) < FEW:
            warnings.warn(f"{len(panel)} rows are too few to train on, {FEW} are needed: this is quick", stacklevel=2)
            return [quick().fit(panel)] * len(seeds)
        early, late = held_out(panel)
        from jointset.filters.members import delete_checkpoints, further_steps, trained_further  # these import torch

        net, more = self._net, further_steps(self._net.steps)
        rest = max(1, (net.steps + more) // TRAINING)  # counted as steps, so that the time left is that of all
        again = None if checkpoint is None else f"{checkpoint}.further"
        nets = net.fit_seeds(
            early, seeds, progress=_part(progress, 0, more + rest), checkpoint=checkpoint, keep_checkpoint=True
        )
        after = trained_further(nets, panel, _part(progress, net.steps, rest), again)
        known, final = _instant(early, panel)
        fitted: list[Fitted] = [
            _composed((*one.split(), *known), also.split(), final, late) for one, also in zip(nets, after, strict=True)
        ]
        for file in (checkpoint, again):
            delete_checkpoints(file, self.device)
        return fitted


def _part(progress: Progress | None, before: int, after: int) -> Progress | None:
    """Progress of a part of the training, so many steps before and after it."""
    if progress is None:
        return None
    return lambda step, total, loss: progress(before + step, before + total + after, loss)


def _instant(early: Panel, panel: Panel) -> tuple[list[Filter[Any]], list[Filter[Any]]]:
    """The instant experts as they stand before the held-out rows, and after all; who cannot be fitted is left out."""
    known: list[Filter[Any]] = []
    final: list[Filter[Any]] = []
    for expert in experts(low_rank=panel.n_sensors > DENSE):
        try:
            both = expert.fit(early), expert.fit(panel)
        except InputError as error:
            warnings.warn(f"left out of the pool: {message_start(expert)}{error}", stacklevel=3)
            continue
        known.append(both[0])
        final.append(both[1])
    return known, final


def _composed(known: Sequence[Filter[Any]], nets: list[NodeNet], instant: Sequence[Filter[Any]], late: Panel) -> Fitted:
    """The pool with its weights and correlations chosen on rows that its members have not seen.

    `known` are its members as they stand before these rows, `nets` and `instant` those that have seen all.
    """
    members = tuple(_recorded(one, late) if late.n_sensors <= DENSE else one for one in known)
    trial = PooledFilter(members, frozen=True).weigh(late)
    pool = _final_pool(trial, [_starting_after(late, net) for net in nets], instant)
    white = _whitening(trial, late)
    return pool if white is None else replace(white.after(late), inner=pool)


def _final_pool(trial: PooledFilter, nets: list[NodeNet], instant: Sequence[Filter[Any]]) -> PooledFilter:
    """The pool of those members with a weight, as they are when they have seen all rows; learned ones in one pass."""
    assert trial.weights is not None and trial.sizes is not None
    heard = trial.weights > 0
    learned = [net for net, kept in zip(nets, heard, strict=False) if kept]
    others = [one for one, kept in zip(instant, heard[len(nets) :], strict=True) if kept]
    members = (*([joined(learned)] if learned else ()), *others)
    return replace(trial, members=members, weights=trial.weights[heard], sizes=trial.sizes[heard])


def _starting_after(panel: Panel, net: NodeNet) -> NodeNet:
    """The member with its clock at the end of a panel, where that of the experts stands."""
    followed = panel.timestamps is not None and net.cadence > 0
    return replace(net, first_time=int(panel.timestamps[-1]) + net.cadence) if followed else net  # type: ignore[index]


def _whitening(pool: PooledFilter, late: Panel) -> WhitenedFilter[Any] | None:
    """The pool with the correlations that make the held-out rows likeliest; None: they are better left alone."""
    if not 2 <= late.n_sensors <= DENSE or not enough(late):
        return None
    alone = _gain(pool, late)[0]
    tried = [WhitenedFilter(pool, life) for life in HALF_LIVES]
    found = [_gain(one, late) for one in tried]
    best = max(range(len(tried)), key=lambda k: found[k][0])
    return replace(tried[best], tails=found[best][1]) if found[best][0] > alone + GAIN else None


def _gain(filter_: Filter[Any], panel: Panel) -> tuple[float, Tails]:
    """Log density a reading of a panel's rows under the laws of a filter, the first tenth left out, and its tails."""
    parts = [distances(laws, panel.values[at : at + len(laws.mean)]) for at, laws in blocks_of_laws(filter_, panel)]
    distance, log_det, count = (np.concatenate(part)[len(panel) // 10 :] for part in zip(*parts, strict=True))
    scores, tails = student_scores(distance, log_det, count)
    return float(np.nansum(scores) / count.sum()), tails


@dataclass(frozen=True)
class _Recorded:
    """The laws of a filter on some rows, given out again row by row: what is tried around it need not run it again."""

    laws: AnyLaw

    def fit(self, panel: Panel) -> Self:
        """It is what it is."""
        return self

    def start(self) -> int:
        """Before the first row."""
        return 0

    def law(self, state: int) -> AnyLaw:
        """Law of a row."""
        return self.laws[state]

    def step(self, state: int, y: Array) -> int:
        """One row on."""
        return state + 1

    def run(self, values: Array, state: int) -> tuple[AnyLaw, int]:
        """Laws of the next rows."""
        return self.laws[state : state + len(values)], state + len(values)


def _recorded(filter_: Filter[Any], panel: Panel) -> _Recorded:
    return _Recorded(concatenate([laws for _, laws in blocks_of_laws(filter_, panel)]))
