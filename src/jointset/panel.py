"""Panel: the readings of a network of sensors, with their names, times and graph in one sensor order."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from jointset import graph as graphs
from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.graph import Adjacency
from jointset.inputs import panel_checks as checks
from jointset.inputs.times import Time, epoch_seconds, iso
from jointset.support.atomic import whole_file
from jointset.support.notebook import listed, shown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

DROP_ADVICE = "leave them out with --drop-dead or --drop, in Python with panel.drop"


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Readings of N sensors at T steps; every per-sensor array is in the order of `sensors`.

    values (T, N) float64, NaN = missing · sensors N names · timestamps (T,) int64 seconds since the epoch (UTC),
    strictly increasing, or None · adjacency (N, N) weights >= 0, kept as given, dense or of scipy.sparse, symmetric
    unless `directed`, or None · coordinates (N, 2) and distances (N, N), inf = no road, or None. Arrays are read-only;
    data frames go by the names of sensors in their labels, where they have these.

    >>> panel = Panel([[1.0, 2.0], [3.0, float("nan")]], ("a", "b"), timestamps=[0, 300])
    >>> panel.select(["b"])
    Panel(1 sensor x 2 steps, 1970-01-01T00:00:00Z to 1970-01-01T00:05:00Z every 300 s, 50.0 % missing, no graph)
    """

    values: Array
    sensors: tuple[str, ...]
    timestamps: Array | None = None
    adjacency: Adjacency | None = None
    directed: bool = False
    coordinates: Array | None = None
    distances: Array | None = None

    if TYPE_CHECKING:  # what is taken; the fields are what it becomes

        def __init__(
            self,
            values: ArrayLike,
            sensors: Sequence[str],
            timestamps: ArrayLike | None = None,
            adjacency: Adjacency | None = None,
            directed: bool = False,
            coordinates: ArrayLike | None = None,
            distances: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        freeze = object.__setattr__
        freeze(self, "sensors", checks.sensor_names(self.sensors))
        values = graphs.by_label(self.values, self.sensors, "columns")
        freeze(self, "values", checks.numbers(values, "values"))
        T, n = checks.check_shape(self.values, self.sensors)
        freeze(self, "timestamps", None if self.timestamps is None else checks.stamps(self.timestamps, T))
        checks.check_finite(self.values, self.timestamps, self.sensors)
        if self.adjacency is not None:
            checked = graphs.check_adjacency(self.adjacency, n, self.directed, sensors=self.sensors)
            freeze(self, "adjacency", checks.read_only(checked))
        for name, shape in (("coordinates", (n, 2)), ("distances", (n, n))):
            freeze(self, name, checks.shaped(getattr(self, name), name, shape, self.sensors))

    @classmethod
    def read(cls, path: str | Path, **options: Any) -> Panel:
        """Panel of a file; the same as `jointset.inputs.reading.read_panel`, which lists the options."""
        from jointset.inputs.reading import read_panel

        return read_panel(path, **options)

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame, **options: Any) -> Panel:
        """Panel of a data frame, wide or long; options `layout` and `time_column` as for files."""
        from jointset.inputs.reading import panel_from_pandas

        return panel_from_pandas(frame, **options)

    @classmethod
    def from_long(
        cls, frame: pd.DataFrame, *, time: str = "time", sensor: str = "sensor", value: str = "value"
    ) -> Panel:
        """Panel of a data frame with one reading a row; the names of its columns may be others."""
        from jointset.inputs.labelled_arrays import panel_from_long

        return panel_from_long(frame, time, sensor, value)

    @classmethod
    def from_xarray(
        cls, data: xr.DataArray | xr.Dataset, *, time: str = "time", sensor: str = "sensor", variable: str | None = None
    ) -> Panel:
        """Panel of an array over two axes, time and sensor; of a data set, that of its only or named variable."""
        from jointset.inputs.labelled_arrays import panel_from_xarray

        return panel_from_xarray(data, time, sensor, variable)

    def to_xarray(self) -> xr.DataArray:
        """Array over time and sensor (extra `xarray`)."""
        from jointset.inputs.labelled_arrays import array_of

        return array_of(self)

    @property
    def T(self) -> int:
        """Number of time steps."""
        return len(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_sensors(self) -> int:
        """Number of sensors."""
        return len(self.sensors)

    @property
    def mask(self) -> Array:
        """Boolean (T, N), True where a reading was observed."""
        return ~np.isnan(self.values)

    @property
    def missing_share(self) -> float:
        """Share of missing readings, 0 for an empty panel."""
        return float(np.isnan(self.values).mean()) if self.values.size else 0.0

    @property
    def cadence(self) -> int | None:
        """Most common step between time stamps in seconds (the shortest of several); None without two stamps."""
        if self.timestamps is None or self.T < 2:
            return None
        steps, counts = np.unique(np.diff(self.timestamps), return_counts=True)
        return int(steps[counts.argmax()])

    @property
    def is_regular(self) -> bool:
        """Whether there are time stamps and all their steps are equal."""
        return self.timestamps is not None and bool((np.diff(self.timestamps) == self.cadence).all())

    def rows(self, start: int | None = None, stop: int | None = None) -> Panel:
        """Steps start .. stop - 1, as a Python slice counts them."""
        return self[start:stop]

    def __getitem__(self, index: slice) -> Panel:
        require(isinstance(index, slice), f"index a panel by a slice of time steps, such as panel[3:4], not {index!r}")
        require(index.step is None or index.step > 0, f"a panel keeps its time order: slice step {index.step} < 1")
        stamps = None if self.timestamps is None else self.timestamps[index]
        return self._with(values=self.values[index], timestamps=stamps)

    def _with(self, **parts: Array | None) -> Panel:
        """The same with other parts that are known to be sound: a graph is not looked through again."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **parts)
        return made

    def between(self, start: Time | None = None, stop: Time | None = None) -> Panel:
        """Steps with start <= time < stop; ISO text, datetime or epoch seconds, UTC where no offset is given."""
        if self.timestamps is None:
            raise InputError("the panel has no time stamps to select by: use rows(start, stop), or give timestamps")
        ends = [None if when is None else epoch_seconds(when) for when in (start, stop)]
        if ends[0] is not None and ends[1] is not None:
            require(ends[0] <= ends[1], f"start {start} is after stop {stop}: swap them")
        return self[slice(*(None if end is None else int(self.timestamps.searchsorted(end)) for end in ends))]

    def select(self, sensors: str | Sequence[str] | Sequence[int] | Sequence[bool] | Array) -> Panel:
        """Sensors by name, index or boolean mask, in the order given; graph, coordinates and distances follow."""
        index = checks.sensor_index(sensors, self.sensors)
        square = np.ix_(index, index)
        return dataclasses.replace(
            self,
            values=checks.read_only(self.values.take(index, axis=1)),
            sensors=tuple(self.sensors[i] for i in index),
            adjacency=None if self.adjacency is None else self.adjacency[square],
            coordinates=None if self.coordinates is None else self.coordinates[index],
            distances=None if self.distances is None else self.distances[square],
        )

    def drop(self, sensors: Sequence[str]) -> Panel:
        """All sensors but these, which may be none; an unknown name is refused."""
        gone = set(checks.sensor_index(sensors, self.sensors).tolist()) if np.size(sensors) else set()
        kept = [i for i in range(self.n_sensors) if i not in gone]
        require(bool(kept), f"all {self.n_sensors} sensors would be left out: keep at least one")
        return self.select(kept)

    def rename(self, names: Mapping[str, str]) -> Panel:
        """Other names by the old ones; sensors without an entry keep theirs.

        >>> Panel([[1.0, 2.0]], ("a", "b")).rename({"a": "north"}).sensors
        ('north', 'b')
        """
        return dataclasses.replace(self, sensors=tuple(names.get(name, name) for name in self.sensors))

    def split(self, fractions: Sequence[float] = (0.7, 0.1, 0.1, 0.1)) -> tuple[Panel, ...]:
        """Consecutive blocks that cover every step once; by default training, validation, calibration and test.

        Block k ends at round(T * (f_1 + .. + f_k)), halves to the even number; the product is first rounded to 6
        decimals, so that halves are halves.

        >>> [len(block) for block in Panel(np.zeros((15, 1)), ["a"]).split()]
        [10, 2, 2, 1]
        """
        total = math.fsum(fractions)
        require(
            len(fractions) > 0 and min(fractions) >= 0 and abs(total - 1) < 1e-9,
            f"split fractions must be >= 0 and sum to 1, got {tuple(fractions)} with sum {total:g}",
        )
        ends = [round(round(self.T * math.fsum(fractions[: k + 1]), 6)) for k in range(len(fractions))]
        return tuple(self[start:stop] for start, stop in zip([0, *ends[:-1]], ends, strict=True))

    def with_graph(self, adjacency: Adjacency | None, *, directed: bool = False, symmetrize: bool = False) -> Panel:
        """The same readings with another graph (N, N) in sensor order; `symmetrize` makes it (A + A')/2."""
        if symmetrize and adjacency is not None:
            adjacency = graphs.check_adjacency(adjacency, self.n_sensors, directed=True, sensors=self.sensors)
            adjacency, directed = graphs.symmetrize(adjacency), False
        if adjacency is None:
            return dataclasses.replace(self, adjacency=None, directed=False)
        return dataclasses.replace(self, adjacency=adjacency, directed=directed)

    def with_values(self, values: ArrayLike) -> Panel:
        """The same sensors, times and graph with other readings (T, N)."""
        given = np.asarray(checks.unmasked(graphs.by_label(values, self.sensors, "columns")))
        shapes = f"values have shape {given.shape}, the panel {self.values.shape}"
        require(given.shape == self.values.shape, f"{shapes}: give a reading for every cell")
        return dataclasses.replace(self, values=given)

    def constant_sensors(self) -> tuple[str, ...]:
        """Names of the sensors whose observed readings are all equal, or that have none."""
        low = np.fmin.reduce(self.values, axis=0, initial=np.inf)
        high = np.fmax.reduce(self.values, axis=0, initial=-np.inf)
        return tuple(self.sensors[i] for i in np.flatnonzero(~(high > low)))

    def level_and_scale(self) -> tuple[Array, Array]:
        """Mean and population standard deviation (N,) of the readings of every sensor: what z-scores are made with."""
        return np.nanmean(self.values, axis=0), np.nanstd(self.values, axis=0)

    def require_varying(self) -> Self:
        """The panel itself, refused when a sensor is constant: its scale is zero and no law fits it."""
        silent = [name for name, seen in zip(self.sensors, np.asarray(self.mask.any(axis=0)), strict=True) if not seen]
        require(not silent, f"sensors without any reading in {self.T} steps: {some(silent)}; {DROP_ADVICE}")
        require(self.T > 2, f"too short to fit anything on: {self.T} row{'s' * (self.T != 1)}, give more")
        constant = self.constant_sensors()
        require(not constant, f"constant sensors (no change in {self.T} steps): {some(constant)}; {DROP_ADVICE}")
        return self

    def to_pandas(self) -> pd.DataFrame:
        """Wide data frame: a column per sensor, indexed by UTC time (or by step)."""
        import pandas as pd

        index = None
        if self.timestamps is not None:
            index = pd.to_datetime(self.timestamps, unit="s", utc=True).rename("time")
        return pd.DataFrame(self.values, index=index, columns=list(self.sensors), copy=True)

    def to_npz(self, path: str | Path) -> Path:
        """Write an npz file that `read` gives back unchanged; arrays are float32 where that loses nothing."""
        path = Path(path)
        require(path.suffix.lower() == ".npz", f"{path} must end in .npz: rename it")
        require(path.parent.is_dir(), f"no such folder: {path.parent}; create it first")
        arrays = {name: getattr(self, name) for name in ("values", "timestamps", "coordinates", "distances")}
        arrays = {name: _narrow(array) for name, array in arrays.items() if array is not None}
        if self.adjacency is not None:
            arrays |= {name: _narrow(array) for name, array in graphs.stored(self.adjacency).items()}
        arrays["sensors"] = np.array(self.sensors, dtype=str)
        if self.directed:
            arrays["directed"] = np.array(True)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **arrays)
        return path

    def describe(self) -> str:
        """One line: size, period, cadence, missing share, graph."""
        parts = [f"{self.n_sensors} sensor{'s' * (self.n_sensors != 1)} x {self.T} step{'s' * (self.T != 1)}"]
        if self.timestamps is not None and self.T:
            how = "every" if self.is_regular else "mostly every"
            every = "" if self.cadence is None else f" {how} {self.cadence} s"
            parts.append(f"{iso(self.timestamps[0])} to {iso(self.timestamps[-1])}{every}")
        parts.append(f"{100 * self.missing_share:.1f} % missing")
        return ", ".join([*parts, self._describe_graph()])

    def _describe_graph(self) -> str:
        if self.adjacency is None:
            return "no graph"
        count = graphs.edge_count(self.adjacency) // (1 if self.directed else 2)
        return f"{count} {'directed ' * self.directed}edge{'s' * (count != 1)}"

    def __repr__(self) -> str:
        return f"Panel({self.describe()})"

    def _repr_html_(self) -> str:
        return shown("Panel", {"readings": self.describe(), "sensors": listed(self.sensors)})

    def __eq__(self, other: object) -> bool:
        """Same names, times, graph and readings, NaN equal to NaN."""
        if not isinstance(other, Panel):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))


def _narrow(array: Array) -> Array:
    """The array as float32 when that is exact, else as it is."""
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    return single if np.array_equal(single, array, equal_nan=True) else array


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if graphs.is_sparse(a) and graphs.is_sparse(b):
        a, b = graphs.stored(a), graphs.stored(b)
        return all(_same(a[name], b[name]) for name in a)
    return type(a) is type(b) and bool(a == b)
