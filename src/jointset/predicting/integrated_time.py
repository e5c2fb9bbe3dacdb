"""Integrated autocorrelation time: over how many steps a dependent series says one independent thing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require

LAGS = 30  # K_max of the paper
WINDOW = 5.0  # Sokal's rule: the window is at least this many integrated times


class IntegratedTime(NamedTuple):
    """Integrated autocorrelation time, the number of lags summed, and the standard error of the estimate."""

    tau: float  # NaN where the series does not vary
    window: int
    standard_error: float
    automatic: bool  # whether the window was chosen from the series


def autocovariance(x: Array, lags: int | None = None) -> Array:
    """Sample autocovariance (lags + 1,) of a series (m,), divided by m at every lag; by fast Fourier transform.

    >>> autocovariance(np.array([1.0, -1.0, 1.0, -1.0]), 2)
    array([ 1.  , -0.75,  0.5 ])
    """
    x = np.asarray(x, dtype=float)
    require(x.ndim == 1 and len(x) > 0, f"an autocovariance needs a series of numbers, got shape {x.shape}")
    m = len(x)
    most = m - 1 if lags is None else min(lags, m - 1)
    size = 1 << int(2 * m - 1).bit_length()  # padded, so that the ends do not meet
    spectrum = np.fft.rfft(x - x.mean(), size)
    return np.fft.irfft(spectrum * spectrum.conj(), size)[: most + 1] / m


def integrated_time(x: Array, lags: int | None = None) -> IntegratedTime:
    """tau_int of a series (m,): with a number of lags the plain sum (the paper takes 30), else an automatic window.

    The automatic window is the smallest M with M >= 5 tau(M) (Sokal 1997), at most a tenth of the series. The standard
    error is tau sqrt(2 (2 M + 1) / m) (Madras and Sokal 1988). NaN entries are left out.

    >>> integrated_time(np.tile([1.0, 1.0, 0.0, 0.0, 1.0, 0.0], 50), lags=0).tau
    1.0
    """
    x = np.asarray(x, dtype=float)
    x = x[~np.isnan(x)]
    require(lags is None or lags >= 0, f"the number of lags must be at least 0, got {lags}")
    require(len(x) > 0, "an integrated time needs at least one number")
    m, most = len(x), max(1, len(x) // 10) if lags is None else min(lags, len(x) - 1)
    gamma = autocovariance(x, most)
    if np.ptp(x) == 0:
        return IntegratedTime(float("nan"), 0, float("nan"), lags is None)
    sums = 2.0 * np.cumsum(gamma / gamma[0]) - 1.0
    window = len(sums) - 1
    if lags is None:
        enough = np.flatnonzero(np.arange(len(sums)) >= WINDOW * sums)
        window = int(enough[0]) if len(enough) else window
    tau = float(sums[window])
    return IntegratedTime(tau, window, abs(tau) * float(np.sqrt(2.0 * (2 * window + 1) / m)), lags is None)
