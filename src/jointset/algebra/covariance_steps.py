"""Covariances of many steps: shared by some, of steps that a filter went through, and one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.contracts import Array, Index

CLOSE = 1e-9  # of a standard deviation: residuals that are one another's, through other units and back


class StepOf(Covariance):
    """One of the covariances of steps that a filter has gone through."""

    lasting = False
    shared = True

    def __init__(self, batch: Any, place: int) -> None:
        self.batch, self.place, self.shape = batch, place, batch.shape[1:]

    @property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrix."""
        return self.batch.matrix[self.place]

    @property
    def base(self) -> Covariance:
        """The same in the units of the filter."""
        steps = self.batch.steps
        return Covariance(steps.below[self.place] + steps.number * np.eye(self.shape[0]))

    def rescale(self, scale: Array) -> Covariance:
        """Covariance of scale * Y."""
        return StepOf(self.batch._times(scale), self.place)

    def bare(self) -> Covariance:
        """As it is."""
        return self


class Steps(NamedTuple):
    """What a filter knows of the steps it went through, in its own units; residuals are NaN where missing."""

    below: Sequence[Array]  # T covariances (N, N),
    number: float  # less this on their diagonals
    variance: Array  # (T, N)
    log_det: Array  # (T,)
    residuals: Array  # (T, N)
    distances: Array  # (T,)

    def cut(self, index: slice) -> Steps:
        """Some of the steps."""
        return self._replace(**{name: getattr(self, name)[index] for name in self._fields if name != "number"})


class Walked(Covariance):
    """Covariances (T, N, N) of steps that a filter went through, formed when asked for; scale (N,): of other units."""

    lasting = False

    def __init__(self, steps: Steps, scale: Array | None = None) -> None:
        self.steps, n = steps, steps.residuals.shape[1]
        self.scale, self.shape = np.ones(n) if scale is None else scale, (len(steps.residuals), n, n)

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrices."""
        within = np.array(self.steps.below) + self.steps.number * np.eye(len(self.scale))
        return within * (self.scale[:, None] * self.scale)

    @cached_property
    def log_det(self) -> Array:
        """log det (T,)."""
        return self.steps.log_det + 2.0 * np.log(np.abs(self.scale)).sum()

    @cached_property
    def variance(self) -> Array:
        """Diagonals (T, N)."""
        return self.steps.variance * self.scale**2

    def _times(self, scale: Array) -> Walked:
        return Walked(self.steps, self.scale * scale)

    def bare(self) -> Covariance:
        """The same without what can be computed again."""
        return Walked(self.steps, self.scale)

    def __getitem__(self, index: Index) -> Covariance:
        return Walked(self.steps.cut(index), self.scale) if isinstance(index, slice) else super().__getitem__(index)

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (T,) of residuals (T, N)."""
        return self.steps.distances if self._own(e) else super().distance(e)

    def observed(self, missing: Array) -> Any:
        """Covariances with missing sensors (T, N) left out."""
        return Seen(self, missing)

    def _own(self, e: Array) -> bool:
        """Whether residuals, NaN where missing, are those of the steps, through other units and back."""
        if e.shape != self.steps.residuals.shape:
            return False
        close = np.abs(e / self.scale - self.steps.residuals) <= CLOSE * np.sqrt(self.steps.variance)
        return bool((close | np.isnan(e) & np.isnan(self.steps.residuals)).all())


class Seen:
    """The marginal laws of steps that a filter has gone through, for residuals (T, N) that are zero where missing."""

    def __init__(self, whole: Walked, missing: Array) -> None:
        self.whole, self.missing = whole, missing

    @cached_property
    def _plain(self) -> Covariance:
        return Covariance.observed(self.whole, self.missing)

    def distance(self, e: Array) -> Array:
        """Squared distances (T,)."""
        own = self.whole._own(np.where(self.missing, np.nan, e))
        return self.whole.steps.distances if own else self._plain.distance(e)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


class StepCovariances(Covariance):
    """Covariances of T steps in parts: how many steps, and the one they share or a batch (k, N, N) of theirs."""

    lasting = False
    shared = False

    def __init__(self, parts: Sequence[tuple[int, Covariance]]) -> None:
        self.parts = [(count, S) for count, S in parts if count]
        n = self.parts[0][1].shape[-1] if self.parts else 0
        self.shape = (sum(count for count, _ in self.parts), n, n)

    @cached_property
    def each(self) -> list[Covariance]:
        """The covariance of every step."""
        return [S for one in self.groups() for S in [one[2]] * (one[1] - one[0])]

    @property
    def matrix(self) -> Array:  # type: ignore[override]
        """All matrices (T, N, N), formed."""
        return np.concatenate([np.broadcast_to(S.matrix, (count, *S.shape[-2:])) for count, S in self.parts])

    @property
    def root(self) -> Array:
        """All Cholesky factors (T, N, N)."""
        return np.concatenate([np.broadcast_to(S.root, (count, *S.shape[-2:])) for count, S in self.parts])

    @cached_property
    def variance(self) -> Array:
        """Diagonals (T, N)."""
        return np.concatenate([np.broadcast_to(S.variance, (count, S.shape[-1])) for count, S in self.parts])

    @cached_property
    def log_det(self) -> Array:
        """Log-determinants (T,)."""
        return np.concatenate([np.broadcast_to(S.log_det, count) for count, S in self.parts])

    def groups(self) -> Iterator[tuple[int, int, Covariance]]:
        """Consecutive steps that share a covariance: the first, the one after the last, the covariance."""
        for start, stop, S in self.batches():
            if S.shared:
                yield start, stop, S
            else:
                yield from ((start + k, start + k + 1, StepOf(S, k)) for k in range(stop - start))

    def batches(self) -> Iterator[tuple[int, int, Covariance]]:
        """The parts, by the first step and the one after the last."""
        start = 0
        for count, S in self.parts:
            yield start, start + count, S
            start += count

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (T, N) amount to, and all (T,)."""
        pairs = [S.effective_sensors(seen[start:stop]) for start, stop, S in self.batches()]
        some, every = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return some, every

    def _mapped(self, function: Any) -> StepCovariances:
        made: dict[int, Covariance] = {}
        for _, one in self.parts:
            if id(one) not in made:
                made[id(one)] = function(one)
        return StepCovariances([(count, made[id(one)]) for count, one in self.parts])

    def _times(self, scale: Array) -> Covariance:
        return self._mapped(lambda one: one.rescale(scale))

    def select(self, places: Array) -> Covariance:
        """Covariances of the sensors at these places."""
        return self._mapped(lambda one: one.select(places))

    def bare(self) -> Covariance:
        """The same without what can be computed again."""
        return self._mapped(lambda one: one.bare())

    def __getitem__(self, index: Index) -> Covariance:
        chosen = np.arange(self.shape[0])[index]
        if chosen.ndim == 0:
            return self.each[int(chosen)]
        if not isinstance(index, slice) or index.step not in (None, 1) or not len(chosen):
            return StepCovariances([(1, self.each[t]) for t in chosen.tolist()])
        first, last, cut = int(chosen[0]), int(chosen[-1]) + 1, []
        for start, stop, S in self.batches():
            a, b = max(first, start), min(last, stop)
            cut.append((max(b - a, 0), S if S.shared or a >= b else S[a - start : b - start]))
        return StepCovariances(cut)
