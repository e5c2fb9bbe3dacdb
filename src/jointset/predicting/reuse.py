"""A shape fitted on the very rows that calibrate it: what that costs in coverage, and the words for it.

The shape fits those rows better than any later ones, so that their scores, and the radius taken from them, are too
small. The loss is a matter of how many directions are fitted on how many rows (`plug_in_coverage`), not of the graph.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from jointset.contracts import Pieces
from jointset.errors import require_alpha
from jointset.panel import Panel
from jointset.storage import storable
from jointset.trust import HORIZON, Trust

HARMLESS = 0.01  # loss of coverage below which nothing is said


@storable
class Reuse(NamedTuple):
    """Sensors over rows that shape them, and the coverage lost; None where there is no formula for the shape."""

    ratio: float
    loss: float | None

    def note(self, alpha: float, adaptive: bool) -> str:
        """What to expect, in words."""
        amount = "" if self.loss is None else f"about {self.loss:.2f} "
        told = f"shape fitted on the calibration rows: N/m = {self.ratio:.2g}, expect {amount}less coverage"
        return f"{told} than the {1.0 - alpha:.2f} asked for{' until the radius has adapted' if adaptive else ''}"

    def corrected(self, trust: Trust, alpha: float, adaptive: bool) -> Trust:
        """The verdict with the note, its numbers less what a radius that stays as it is will lose."""
        lost = 0.0 if adaptive or self.loss is None else self.loss
        found = trust._replace(coverage=max(trust.coverage - lost, 0.0))
        return found._replace(
            band=found.band_over(HORIZON), verdict=f"{trust.verdict}; but {self.note(alpha, adaptive)}"
        )


def reuse(pieces: Pieces | None, n: int, m: int, alpha: float, share: float = 1.0) -> Reuse | None:
    """What it costs that of the m rows that shape n sensors some are this share of the calibration rows.

    About as much as if all were, times the share: rather less. None where that is next to nothing.
    """
    loss = None if pieces is None else share * expected_loss(pieces, m, alpha)
    return None if min(share, share if loss is None else loss) < HARMLESS else Reuse(n / m, loss)


def expected_loss(pieces: Pieces, m: int, alpha: float) -> float:
    """Coverage lost by reusing m rows, of a set whose covariances err independently, each at its share of alpha.

    >>> round(expected_loss([(30, 1.0)], 751, 0.1), 3), round(expected_loss([(80, 1 / 3)] * 3, 751, 0.1), 2)
    (0.044, 0.35)
    """
    fresh = math.prod(1.0 - share * alpha for _, share in pieces)
    return fresh - math.prod(plug_in_coverage(d, m, share * alpha) for d, share in pieces)


def plug_in_coverage(n: int, m: int, alpha: float = 0.1) -> float:
    """Coverage of an ellipsoid in n directions whose covariance is that of the very m residuals that calibrate it.

    Exact in the limit of large m for independent Gaussian residuals: scores of rows that made the covariance are
    (m - 1) Beta(n / 2, (m - n) / 2), that of a new row is (m - 1) X / (1 - X) with X ~ Beta(n / 2, (m - n + 1) / 2).

    >>> [round(plug_in_coverage(n, 751), 3) for n in (1, 30, 60, 120, 240)]
    [0.9, 0.856, 0.764, 0.43, 0.005]
    """
    from scipy.special import betainc, betaincinv  # here, so that importing jointset stays fast

    require_alpha(alpha)
    if n >= m:
        return 0.0
    top = float(betaincinv(n / 2, (m - n) / 2, 1.0 - alpha))
    return float(betainc(n / 2, (m - n + 1) / 2, top / (1.0 + top)))


def shared_rows(shaped: Panel, calibration: Panel) -> float:
    """Share of the calibration rows that the shape was fitted on: same readings, and same time stamps if both have any.

    Without stamps a row that repeats in either panel, such as one of zeros at night, says nothing.
    """
    if shaped.timestamps is not None and calibration.timestamps is not None:
        _, one, other = np.intersect1d(shaped.timestamps, calibration.timestamps, return_indices=True)
        pairs = zip(shaped.values[one], calibration.values[other], strict=True)
        same = sum(np.array_equal(*pair, equal_nan=True) for pair in pairs)
    else:
        same = len(_single_rows(shaped) & _single_rows(calibration))
    return same / max(len(calibration), 1)


def _single_rows(panel: Panel) -> set[bytes]:
    """The rows that occur once."""
    counts = Counter(row.tobytes() for row in panel.values)
    return {row for row, count in counts.items() if count == 1}
