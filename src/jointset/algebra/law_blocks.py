"""Laws of consecutive blocks of rows: put together as one, and kept without what serves one step only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_steps import StepCovariances
from jointset.contracts import Forecast
from jointset.laws import AnyLaw, DenseLaw, LowRankLaw


@runtime_checkable
class Joining(Protocol):
    """Laws of a kind of their own, which can be put together."""

    def joined(self, others: Sequence[object]) -> Any:
        """One law of these rows and of those that follow."""
        ...


@overload
def concatenate(laws: Sequence[LowRankLaw]) -> LowRankLaw: ...
@overload
def concatenate(laws: Sequence[AnyLaw]) -> AnyLaw: ...
def concatenate(laws: Sequence[AnyLaw]) -> AnyLaw:
    """One law from several consecutive batches of one kind."""
    first = laws[0]
    if len(laws) == 1:
        return first
    if isinstance(first, Joining):
        joined: AnyLaw = first.joined(laws[1:])
        return joined
    mean, tails = np.concatenate([law.mean for law in laws]), first.tails.joined([law.tails for law in laws[1:]])
    if isinstance(first, LowRankLaw):
        diagonal, factor = (np.concatenate([getattr(law, k) for law in laws]) for k in ("diagonal", "factor"))
        return LowRankLaw(mean, diagonal, factor, tails)
    dense = [law for law in laws if isinstance(law, DenseLaw)]
    if all(law.covariance is first.covariance for law in dense):
        return DenseLaw(mean, first.covariance, tails)
    if all(law.covariance.shared or isinstance(law.covariance, StepCovariances) for law in dense):
        return DenseLaw(mean, StepCovariances([part for law in dense for part in _parts(law)]), tails)
    shapes = [(*law.mean.shape, law.mean.shape[-1]) for law in dense]
    matrices = [np.broadcast_to(law.covariance.matrix, shape) for law, shape in zip(dense, shapes, strict=True)]
    return DenseLaw(mean, Covariance(np.concatenate(matrices)), tails)


def _parts(law: DenseLaw) -> list[tuple[int, Covariance]]:
    """The covariances by how many steps they serve."""
    S = law.covariance
    return S.parts if isinstance(S, StepCovariances) else [(len(law), S)]


def bare(law: Forecast) -> Forecast:
    """The law without factorisations of covariances that serve one step only: what is worth keeping for long."""
    return DenseLaw(law.mean, law.covariance.bare(), law.tails) if isinstance(law, DenseLaw) else law
