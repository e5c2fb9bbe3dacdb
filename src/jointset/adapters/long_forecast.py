"""The Nixtla libraries: long data frames with unique_id, ds and y in, and with forecasts and their ends out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import jointset
from jointset.contracts import Region
from jointset.errors import InputError, require
from jointset.horizons.sets_ahead import AheadSets
from jointset.joint_predictor import JointPredictor
from jointset.panel import Panel

if TYPE_CHECKING:
    import pandas as pd


class LongForecast:
    """`fit(df)`, `predict(h)`, `update(df)` on long data frames; the ends of a level hold all series at once.

    Parameters
    ----------
    method
        Name from `jointset methods`.
    level
        Coverage of the whole row in per cent, as the Nixtla libraries count it.
    calibration_share
        Share of the rows, the last ones, that set the size and nothing else.
    id_col, time_col, target_col
        Names of the columns.
    """

    def __init__(
        self,
        method: str = "quick",
        *,
        level: float = 90.0,
        calibration_share: float = 0.3,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        **options: Any,
    ) -> None:
        require(0.0 < level < 100.0, f"level must lie between 0 and 100 per cent, got {level:g}")
        require(0.0 < calibration_share < 1.0, f"calibration_share must lie in (0, 1), got {calibration_share:g}")
        self.method, self.level, self.calibration_share, self.options = method, level, calibration_share, options
        self.id_col, self.time_col, self.target_col = id_col, time_col, target_col
        self.predictor: JointPredictor | None = None
        self.cadence = 0
        self.zone: Any = None  # of the column of times

    def __repr__(self) -> str:
        return f"LongForecast({self.method} at {self.level:g} %; {self.predictor or 'not fitted yet'})"

    def panel(self, df: pd.DataFrame) -> Panel:
        """The panel of a long data frame."""
        return Panel.from_long(df, time=self.time_col, sensor=self.id_col, value=self.target_col)

    def fit(self, df: pd.DataFrame, h: int = 1) -> Self:
        """Fit on the first rows and calibrate on the last, for forecasts of up to h steps."""
        panel = self.panel(df)
        require(bool(panel.cadence), "two times or more are needed to know when the next one comes")
        self.zone = getattr(df[self.time_col].dtype, "tz", None)
        cut = round(len(panel) * (1.0 - self.calibration_share))
        made = jointset.predictor(self.method, alpha=1.0 - self.level / 100.0, **self.options)
        self.predictor = made.fit(panel[:cut]).calibrate(panel[cut:], horizon=h)
        self.cadence = int(panel.cadence or 0)
        return self

    def update(self, df: pd.DataFrame) -> pd.DataFrame:
        """Take in rows that follow; what was forecast for each of them, with its reading and whether it was inside."""
        import pandas as pd

        predictor = self._fitted()
        run = predictor.run(self.panel(df).select(predictor.sensors))
        found = self._long(run.timestamps, run.mean, run.lower, run.upper)
        found[self.target_col] = run.values.T.reshape(-1)
        inside = [None if math.isnan(score) else hit for score, hit in zip(run.score, run.inside.tolist(), strict=True)]
        found["inside"] = pd.array(inside * len(run.sensors), dtype="boolean")
        return found

    def predict(self, h: int = 1) -> pd.DataFrame:
        """The next h steps: one row a series and step, its mean and the ends of the joint set of that step."""
        predictor = self._fitted()
        if predictor.last_time is None:
            raise InputError("the model does not know the time of its last row: fit it again")
        stamps = [predictor.last_time + self.cadence * step for step in range(1, h + 1)]
        sets: Region | AheadSets = predictor.predict() if h == 1 else predictor.predict(horizon=h)
        mean = sets.mean if isinstance(sets, AheadSets) else sets.center
        ends = (part.reshape(h, -1) for part in (mean, *sets.bounds))
        return self._long(stamps, *ends)

    def _fitted(self) -> JointPredictor:
        if self.predictor is None:
            raise InputError("the forecast is not fitted: call fit(df) first")
        return self.predictor

    def _long(self, stamps: Any, mean: Any, lower: Any, upper: Any) -> pd.DataFrame:
        """Arrays (T, N) as a long data frame, series by series."""
        import pandas as pd

        name, sensors = f"jointset-{self.method}", self._fitted().sensors
        times = pd.to_datetime(stamps, unit="s")
        times = times if self.zone is None else times.tz_localize("UTC").tz_convert(self.zone)
        columns = {name: mean, f"{name}-lo-{self.level:g}": lower, f"{name}-hi-{self.level:g}": upper}
        return pd.DataFrame(
            {
                self.id_col: [sensor for sensor in sensors for _ in times],
                self.time_col: list(times) * len(sensors),
                **{column: part.T.reshape(-1) for column, part in columns.items()},
            }
        )
