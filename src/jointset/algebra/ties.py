"""Scores that are equal but for rounding made equal: a frozen sensor repeats its reading, and so must its score."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from jointset.contracts import Array

BITS = 42
ROUNDING = 2.0**-BITS  # most that a score is moved by, as a share of it


def settled(scores: Array | float) -> Array:
    """Scores rounded to 42 bits, 2e-13 of their size.

    In an outage readings repeat for hours, and so do their scores, each time with other last bits. Where the radius is
    one of them, whether those hours count as inside must not hang on these bits: as equals of the radius they do.

    >>> bool(settled(0.1 + 0.2) == settled(0.3)), bool(settled(1.0 + 1e-11) == settled(1.0))
    (True, False)
    """
    if isinstance(scores, float) and abs(scores) < 1e300:  # one number, as every live row has
        part, power = math.frexp(scores)
        return cast(Array, np.float64(math.ldexp(round(part * 2.0**BITS), power - BITS)))
    share, exponent = np.frexp(scores)
    return np.ldexp(np.rint(share * 2.0**BITS), exponent - BITS)
