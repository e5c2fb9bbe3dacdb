"""sktime: a forecaster of several series whose intervals hold all of them at once."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import jointset
from jointset.contracts import Array, Region
from jointset.errors import InputError, require
from jointset.panel import Panel
from jointset.support.extras import optional

optional("sktime", "JointForecaster")
from sktime.forecasting.base import BaseForecaster  # noqa: E402


class JointForecaster(BaseForecaster):
    """A method of jointset as a forecaster: intervals of a coverage hold all series of a step at once.

    They are the outermost points of the joint set of that step, wider than intervals of single series. Quantiles are
    the ends of such intervals; variances are those of the predictive law, before calibration. Where rows are too few
    for a coverage the intervals are infinite, with a warning.

    Parameters
    ----------
    method
        Name from `jointset methods`.
    calibration_share
        Share of the rows, the last ones, that set the size and nothing else. Rows of `update` join them.
    warmup
        First calibration row whose score counts.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from jointset.adapters import JointForecaster
    >>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    >>> forecaster = JointForecaster("kalman").fit(y, fh=[1, 2])
    >>> forecaster.predict_interval(coverage=0.9).shape
    (2, 4)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["the jointset developers"],
        "capability:multivariate": True,
        "y_inner_mtype": "pd.DataFrame",
        "X_inner_mtype": "pd.DataFrame",
        "capability:exogenous": False,
        "requires-fh-in-fit": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:update": True,
    }

    def __init__(self, method: str = "kalman", calibration_share: float = 0.5, warmup: int = 1) -> None:
        self.method = method
        self.calibration_share = calibration_share
        self.warmup = warmup
        super().__init__()

    def _fit(self, y: pd.DataFrame, X: object, fh: object) -> JointForecaster:
        """Fit on the first rows; the others, and those that come later, calibrate."""
        share = self.calibration_share
        require(0.0 < share < 1.0, f"calibration_share must lie in (0, 1), got {share:g}")
        cut = max(round(len(y) * (1.0 - share)), 3)
        self._training, self._later = _panel(y[:cut]), y[cut:]
        self.filter_ = jointset.predictor(self.method, warmup=self.warmup).fit(self._training).filter
        return self

    def _update(self, y: pd.DataFrame, X: object = None, update_params: bool = True) -> JointForecaster:
        """Rows that come later are calibrated on; what was fitted stays."""
        self._later = pd.concat([self._later, y[~y.index.isin(self._later.index)]])
        return self

    def _predict(self, fh: Any, X: Any) -> pd.DataFrame:
        """Means of the steps of the horizon."""
        mean = np.stack([region.center for region in self._regions(0.5, fh)])
        return pd.DataFrame(mean, index=fh.to_absolute_index(self.cutoff), columns=self._later.columns)

    def _predict_interval(self, fh: Any, X: Any, coverage: list[float]) -> pd.DataFrame:
        """Ends of the joint set of every step, at every coverage."""
        names = list(self._get_varnames())
        columns = pd.MultiIndex.from_product([names, coverage, ["lower", "upper"]])
        ends = np.stack([self._ends(share, fh) for share in coverage], axis=1)  # (2, coverages, H, N)
        numbers = ends.transpose(2, 3, 1, 0).reshape(ends.shape[2], -1)
        return pd.DataFrame(numbers, index=fh.to_absolute_index(self.cutoff), columns=columns)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> pd.DataFrame:
        """Lower end of the interval that leaves out 2 alpha where alpha is below a half, else the upper end."""
        columns = pd.MultiIndex.from_product([list(self._get_varnames()), alpha])
        ends = [self._ends(round(abs(1.0 - 2.0 * level), 12), fh)[int(level > 0.5)] for level in alpha]
        numbers = np.stack(ends, axis=-1)  # (H, N, levels)
        return pd.DataFrame(numbers.reshape(len(numbers), -1), index=fh.to_absolute_index(self.cutoff), columns=columns)

    def _predict_var(self, fh: Any, X: Any = None, cov: bool = False) -> pd.DataFrame:
        """Variances of the predictive law of every step and series."""
        require(not cov, "covariances between series are not given in this form: leave cov out")
        variance = np.stack([region.law.variance for region in self._regions(0.5, fh)])
        return pd.DataFrame(variance, index=fh.to_absolute_index(self.cutoff), columns=list(self._get_varnames()))

    def _ends(self, share: float, fh: Any) -> Array:
        """Lower and upper ends (2, H, N) of the sets of the steps at a coverage; the mean twice at 0."""
        if share == 0.0:
            return np.stack([[region.center for region in self._regions(0.5, fh)]] * 2)
        try:
            return np.stack([region.bounds for region in self._regions(1.0 - share, fh)], axis=1)
        except InputError as error:
            warnings.warn(f"intervals of {100 * share:g} % are infinite: {error}", stacklevel=2)
            reach = np.full((len(fh), len(self._later.columns)), np.inf)
            return np.stack([-reach, reach])

    def _regions(self, alpha: float, fh: Any) -> list[Any]:
        """The sets of the steps of a horizon at a miss rate, calibrated on all rows since training."""
        steps = np.asarray(fh.to_relative(self.cutoff), dtype=int)
        most, predictor = int(steps.max()), jointset.predictor(self.method, alpha=alpha, warmup=self.warmup)
        predictor.filter = self.filter_
        predictor.fit(self._training, frozen=True).calibrate(_panel(self._later), horizon=most)
        regions: list[Region] = [predictor.predict()] if most == 1 else [*predictor.predict(horizon=most).steps.parts]
        return [regions[step - 1] for step in steps]

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings that the checks of sktime run with."""
        return [{"method": "kalman"}, {"method": "kalman:box", "calibration_share": 0.6}]


def _panel(y: pd.DataFrame) -> Panel:
    """The rows of a data frame as a panel, with times where its index has them."""
    index = y.index
    times = index.as_unit("s").asi8 if isinstance(index, pd.DatetimeIndex) else None
    return Panel(y.to_numpy(dtype=float), tuple(str(name) for name in y.columns), times)
