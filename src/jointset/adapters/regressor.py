"""scikit-learn: a regressor of several outputs with one joint set for all of them.

The mean is any regressor of scikit-learn; the shape is the covariance of its residuals; the size comes from the last
rows, which neither has seen. With the split rule this is exact for rows that are exchangeable. Rows are in time order.

>>> import numpy as np
>>> from sklearn.linear_model import LinearRegression
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(400, 3))
>>> Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, 2))
>>> model = JointRegressor(LinearRegression()).fit(X[:300], Y[:300])
>>> sets = model.predict_set(X[300:])
>>> bool(0.8 < sets.contains(Y[300:]).mean() < 1.0)
True
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np

from jointset.calibration import Split, calibration
from jointset.contracts import Array, Region
from jointset.errors import require
from jointset.inputs.labels import in_order
from jointset.laws import DenseLaw
from jointset.regions import named
from jointset.residuals.shrinkage import positive_definite, schaefer_strimmer
from jointset.scores import score_for
from jointset.support.extras import optional

optional("sklearn", "JointRegressor")
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

FLAT, ROUNDING = 1e-12, 1e-6  # least variance of residuals, of that of their output; of its level, what may be rounding


class Outcomes(NamedTuple):
    """What rows said, each held against the set before it: score, radius and whether it was inside (T,)."""

    score: Array
    radius: Array
    inside: Array


class JointRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A regressor for the mean, and one calibrated set for all outputs at once.

    Parameters
    ----------
    estimator
        Regressor of scikit-learn for the mean; None: `Ridge()`. It must take several outputs where y has them.
    geometry
        `ellipsoid` or `box`.
    rule
        How past scores become a radius: `split`, or a rule that follows its misses (`aci`, ...) as `update` is told.
    alpha
        Miss rate: 0.1 asks for 90 % coverage of the whole row.
    calibration_share
        Share of the rows, the last ones, that set the size and nothing else.
    """

    def __init__(
        self,
        estimator: object = None,
        *,
        geometry: str = "ellipsoid",
        rule: str = "split",
        alpha: float = 0.1,
        calibration_share: float = 0.3,
    ) -> None:
        self.estimator = estimator
        self.geometry = geometry
        self.rule = rule
        self.alpha = alpha
        self.calibration_share = calibration_share

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the mean and the shape on the first rows, and the radius on the last; rows are in time order."""
        names = tuple(str(name) for name in getattr(y, "columns", ()))
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        require(
            0.0 < self.calibration_share < 1.0, f"calibration_share must lie in (0, 1), got {self.calibration_share}"
        )
        self.n_outputs_, self.names_ = 1 if y.ndim == 1 else y.shape[1], names
        cut = min(max(round(len(y) * (1.0 - self.calibration_share)), 1), len(y) - 1)
        self.estimator_ = clone(Ridge() if self.estimator is None else self.estimator).fit(X[:cut], y[:cut])
        residuals = self._rows(y[:cut]) - self._mean(X[:cut])
        covariance = schaefer_strimmer(residuals) if cut > 2 else np.diag((residuals**2).mean(axis=0))
        level = np.maximum(np.diag(covariance), FLAT * _sizes(self._rows(y)))
        covariance[np.diag_indices_from(covariance)] = level
        self.covariance_ = positive_definite(covariance, "JointRegressor")
        self.score_, self.rule_ = score_for(self.geometry), calibration(self.rule, alpha=self.alpha)
        self.calibration_scores_ = np.atleast_1d(self.score_.score(self._law(X[cut:]), self._rows(y[cut:])))
        self.state_ = self.rule_.start(self.calibration_scores_)
        if math.isinf(self.rule_.radius(self.state_)):
            warnings.warn(
                f"{len(y) - cut} calibration rows are too few for alpha={self.alpha:g}: the set is the whole space",
                stacklevel=2,
            )
        return self

    def predict(self, X: object) -> Array:
        """Means (T,) or (T, N)."""
        check_is_fitted(self)
        return self.estimator_.predict(validate_data(self, X, reset=False))

    def predict_set(self, X: object, alpha: float | None = None) -> Region:
        """The joint sets of rows, each as the next one; with the split rule also at another miss rate."""
        check_is_fitted(self)
        radius = self.rule_.radius(self.state_)
        if alpha is not None:
            split = isinstance(self.rule_, Split)
            require(
                split, f"{self.rule} keeps to alpha={self.alpha:g}: fit with alpha={alpha:g}, or use the split rule"
            )
            radius = Split(alpha).radius(Split(alpha).start(self.calibration_scores_))
        law = self._law(validate_data(self, X, reset=False))
        return named(self.score_.region(law, radius), self.names_)

    def update(self, X: Any, y: Any) -> Outcomes:
        """Hold rows against their sets, one after the other, and let the rule follow; mean and shape stay.

        A data frame y goes by the names of its columns, where the one it was fitted on had such names.
        """
        check_is_fitted(self)
        y = in_order(y, self.names_) if self.names_ and hasattr(y, "columns") else y
        X, y = validate_data(self, X, y, reset=False, multi_output=True, y_numeric=True)
        scores = np.atleast_1d(self.score_.score(self._law(X), self._rows(y)))
        radii, self.state_ = self.rule_.run(self.state_, scores)
        return Outcomes(scores, radii, scores <= radii)

    def _rows(self, y: Array) -> Array:
        require(
            np.size(y) == len(y) * self.n_outputs_,
            f"y has {np.size(y) // max(len(y), 1)} outputs, the model was fitted on {self.n_outputs_}",
        )
        return np.asarray(y, dtype=float).reshape(-1, self.n_outputs_)

    def _mean(self, X: Array) -> Array:
        return np.asarray(self.estimator_.predict(X), dtype=float).reshape(-1, self.n_outputs_)

    def _law(self, X: Array) -> DenseLaw:
        return DenseLaw(self._mean(X), self.covariance_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _sizes(Y: Array) -> Array:
    """Variances (N,) of outputs (T, N); of one that does not vary that of its rounding, at 0 that of the largest."""
    own = np.maximum(np.var(Y, axis=0), (ROUNDING * np.mean(Y, axis=0)) ** 2)
    return np.where(own > 0.0, own, max(float(own.max()), 1e-300))
