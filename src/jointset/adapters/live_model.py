"""river: rows as dicts, one at a time; the model gathers its first rows, fits itself on them and goes on from there.

>>> import numpy as np
>>> model = LiveModel("kalman", fit_after=200, calibrate_on=100)
>>> for row in np.random.default_rng(0).normal(size=(310, 2)):
...     model.learn_one({"a": row[0], "b": row[1]})
>>> model.ready, sorted(model.predict_one())
(True, ['a', 'b'])
>>> bool(model.score_one({"a": 9.0, "b": -9.0}) > 1.0)
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import jointset
from jointset.contracts import Region
from jointset.errors import InputError, require
from jointset.inputs.labels import reading_of
from jointset.joint_predictor import JointPredictor
from jointset.panel import Panel


class LiveModel:
    """A predictor under the verbs of river: `predict_one`, `score_one`, `learn_one`.

    Parameters
    ----------
    method
        Name from `jointset methods`.
    alpha
        Miss rate: 0.1 asks for 90 % coverage.
    fit_after, calibrate_on
        Rows gathered to fit on, and rows after them to calibrate on. Nothing is predicted before. Where these rows
        are refused, a sensor that stands still in them, the next row says so too, until the last ones can be used.
    """

    def __init__(
        self, method: str = "quick", *, alpha: float = 0.1, fit_after: int = 1000, calibrate_on: int = 300
    ) -> None:
        require(fit_after >= 3, f"fit_after must be 3 rows or more, got {fit_after}")
        require(calibrate_on >= 1, f"calibrate_on must be 1 row or more, got {calibrate_on}")
        self.method, self.alpha, self.fit_after, self.calibrate_on = method, alpha, fit_after, calibrate_on
        jointset.predictor(method, alpha=alpha)  # a name that nothing has is refused now, not after the last row
        self._rows: list[dict[str, float]] = []
        self.predictor: JointPredictor | None = None

    def __repr__(self) -> str:
        gathered = f"{len(self._rows):,} of {self.fit_after + self.calibrate_on:,} rows gathered"
        return f"LiveModel({self.method}; {self.predictor or gathered})"

    @property
    def ready(self) -> bool:
        """Whether it has gathered enough rows to predict."""
        return self.predictor is not None

    def learn_one(self, y: Mapping[str, Any]) -> None:
        """Take in a row; a sensor without an entry, or with None or NaN, is missing."""
        if self.predictor is not None:
            self.predictor.update(y)
            return
        names = tuple(dict.fromkeys(str(name) for name in y))
        self._rows.append(dict(zip(names, reading_of(y, names).tolist(), strict=True)) if names else {})
        self._rows = self._rows[-(self.fit_after + self.calibrate_on) :]
        if len(self._rows) == self.fit_after + self.calibrate_on:
            self._start()

    def predict_one(self) -> dict[str, float]:
        """Mean of the next row, sensor by sensor; empty until ready."""
        return {} if self.predictor is None else self._by_name(self.predictor.predict().center)

    def predict_set(self) -> Region:
        """The joint set of the next row."""
        if self.predictor is None:
            lacking = self.fit_after + self.calibrate_on - len(self._rows)
            more = f"{lacking} more are needed" if lacking else "learn_one says why the last ones were refused"
            raise InputError(f"the model has not seen enough rows for a set: {more}")
        return self.predictor.predict()

    def score_one(self, y: Mapping[str, object]) -> float:
        """How far out a row is: its score in units of the radius, above 1 outside the set; 0 until ready.

        NaN where the row has no reading.
        """
        if self.predictor is None:
            return 0.0
        outcome = self.predictor.copy().update(y)
        return outcome.score / outcome.radius if outcome.radius > 0 else math.inf

    def blame_one(self, y: Mapping[str, object]) -> dict[str, float]:
        """What each sensor adds to the score of a row; empty until ready."""
        return {} if self.predictor is None else self._by_name(self.predictor.contributions(y))

    def _start(self) -> None:
        """Fit on the first rows and calibrate on the rest."""
        names = tuple(dict.fromkeys(name for row in self._rows for name in row))
        panel = Panel(np.array([[row.get(name, math.nan) for name in names] for row in self._rows]), names)
        warmup = min(50, max(self.calibrate_on // 4, 1))
        made = jointset.predictor(self.method, alpha=self.alpha, warmup=warmup)
        self.predictor = made.fit(panel[: self.fit_after]).calibrate(panel[self.fit_after :])
        self._rows = []

    def _by_name(self, numbers: object) -> dict[str, float]:
        assert self.predictor is not None
        return dict(zip(self.predictor.sensors, np.asarray(numbers).tolist(), strict=True))
