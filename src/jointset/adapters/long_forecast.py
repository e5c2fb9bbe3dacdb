"""The Nixtla libraries: long data frames with unique_id, ds and y in, and with forecasts and their ends out."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import jointset
from jointset.contracts import Array
from jointset.errors import InputError, require, some
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
        self.calendar: Any = None  # frequency of pandas of times that are not even: months, working days, local days
        self.zone: Any = None  # of the column of times
        self.counted = False  # whether that column holds whole numbers
        self.ids: Any = None  # names of the series as they came, by name, and their type

    def __repr__(self) -> str:
        return f"LongForecast({self.method} at {self.level:g} %; {self.predictor or 'not fitted yet'})"

    def panel(self, df: pd.DataFrame) -> Panel:
        """The panel of a long data frame."""
        return Panel.from_long(df, time=self.time_col, sensor=self.id_col, value=self.target_col)

    def fit(self, df: pd.DataFrame, h: int = 1) -> Self:
        """Fit on the first rows and calibrate on the last, for forecasts of up to h steps."""
        import pandas as pd

        panel = self.panel(df)
        require(bool(panel.cadence), "two times or more are needed to know when the next one comes")
        times, ids = df[self.time_col], df[self.id_col]
        self.zone, whole = getattr(times.dtype, "tz", None), pd.api.types.is_integer_dtype(times)
        self.counted = whole and panel.timestamps is not None and int(times.max()) == int(panel.timestamps[-1])
        kept = pd.api.types.is_integer_dtype(ids) or isinstance(ids.dtype, pd.CategoricalDtype)
        self.ids = ({str(name).strip(): name for name in ids.unique()}, ids.dtype) if kept else None
        even = self.counted or len(panel) < 3 or (panel.is_regular and self.zone is None)
        self.calendar = None if even else _calendar(self._times(panel.timestamps))
        cut = round(len(panel) * (1.0 - self.calibration_share))
        alpha = round(1.0 - self.level / 100.0, 12)
        made = jointset.predictor(self.method, alpha=alpha, **self.options)
        self.predictor = made.fit(panel[:cut]).calibrate(panel[cut:], horizon=h)
        self.cadence = int(panel.cadence or 0)
        return self

    def update(self, df: pd.DataFrame) -> pd.DataFrame:
        """Take in rows that follow; what was forecast for each of them, with its reading and whether it was inside.

        A series without rows is missing, one that is not known is left aside.
        """
        import pandas as pd

        predictor, given = self._fitted(), self.panel(df)
        known = [name for name in predictor.sensors if name in given.sensors]
        require(bool(known), f"the rows are of other series: the forecast knows {some(predictor.sensors)}")
        values = np.full((len(given), len(predictor.sensors)), np.nan)
        values[:, [predictor.sensors.index(name) for name in known]] = given.select(known).values
        run = predictor.run(Panel(values, predictor.sensors, given.timestamps))
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
        steps = 1 if predictor.horizon is None else predictor.horizon.steps
        require(1 <= h <= steps, f"the forecast was fitted for 1 to {steps} steps, not {h}: fit(df, h={h})")
        if h == 1:
            region = predictor.predict()
            return self._long(self._next(1), *(part[None] for part in (region.center, *region.bounds)))
        sets = predictor.predict(horizon=steps)
        return self._long(self._next(h), *(part[:h] for part in (sets.mean, *sets.bounds)))

    def _next(self, h: int) -> Array:
        """Times of the next h rows in seconds since the epoch, on the calendar of the rows where they have one."""
        import pandas as pd

        last = int(self._fitted().last_time or 0)
        if self.calendar is None:
            return last + self.cadence * np.arange(1, h + 1)
        start = self._times([last])[0]
        later = pd.date_range(start, periods=h + 1, freq=self.calendar)
        return later[later > start][:h].as_unit("s").asi8

    def _times(self, stamps: Any) -> pd.DatetimeIndex:
        """Seconds since the epoch as times in the zone of the column of times."""
        import pandas as pd

        times = pd.to_datetime(stamps, unit="s")
        return times if self.zone is None else times.tz_localize("UTC").tz_convert(self.zone)

    def _fitted(self) -> JointPredictor:
        if self.predictor is None:
            raise InputError("the forecast is not fitted: call fit(df) first")
        return self.predictor

    def _long(self, stamps: Any, mean: Any, lower: Any, upper: Any) -> pd.DataFrame:
        """Arrays (T, N) as a long data frame, series by series."""
        import pandas as pd

        name, sensors = f"jointset-{self.method}", self._fitted().sensors
        times = stamps if self.counted else self._times(stamps)
        names, kind = ({}, None) if self.ids is None else self.ids
        columns = {name: mean, f"{name}-lo-{self.level:g}": lower, f"{name}-hi-{self.level:g}": upper}
        return pd.DataFrame(
            {
                self.id_col: pd.Series([names.get(sensor, sensor) for sensor in sensors for _ in times], dtype=kind),
                self.time_col: list(times) * len(sensors),
                **{column: part.T.reshape(-1) for column, part in columns.items()},
            }
        )


def _calendar(times: pd.DatetimeIndex) -> Any:
    """The frequency that pandas sees in times, None where there is none."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it will be an offset, which is as good
        return pd.infer_freq(times)
