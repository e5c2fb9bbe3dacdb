"""METR-LA and PEMS-BAY as forecasting windows in Parquet (Hugging Face, witgaw/METR-LA and witgaw/PEMS-BAY).

`train.parquet`, `val.parquet` and `test.parquet` hold a row per sensor and window: `node_id` (0 .. N-1),
`t0_timestamp` (time of the last observed step), `x_t-11_d0` .. `x_t+0_d0` (speeds) and `y_t+1_d0` .. `y_t+12_d0` (the
next twelve); columns `_d1` are the time of day. `node_id` counts the sensors of `adj_mx_mapping.json`, which is also
the order of `adj_mx.npy`. The series is x_t+0 of every window, with the first eleven steps from the earliest window
and the last twelve from the latest: 34,249 windows give back the 34,272 steps of METR-LA.

The layout is that of the script that made the files and of public programs that read them; the files themselves were
not at hand when this was written. `t0_timestamp` may be ISO text or a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.datasets.sources.dcrnn import read_distances, read_locations
from jointset.datasets.sources.entry import Paths, pick
from jointset.datasets.sources.text_tables import clock_seconds, matrix, reading
from jointset.errors import InputError, require
from jointset.inputs.graph_files import read_graph
from jointset.panel import Panel

STEP = 300
TIME = "t0_timestamp"
BEFORE = [f"x_t-{k}_d0" for k in range(11, 0, -1)]
AFTER = [f"y_t+{k}_d0" for k in range(1, 13)]
NOW = "x_t+0_d0"


def parse(paths: Paths) -> Panel:
    """Panel of the three Parquet files and the four files of `sensor_graph/`."""
    sensors = read_sensors(pick(paths, "mapping"))
    values, stamps = read_series([path for name, path in paths.items() if name.endswith(".parquet")], sensors)
    return Panel(
        values,
        tuple(sensors),
        timestamps=stamps,
        adjacency=read_graph(pick(paths, "adj_mx.npy"), sensors, directed=True),
        directed=True,
        coordinates=read_locations(pick(paths, "locations"), sensors),
        distances=read_distances(pick(paths, "distances"), sensors),
    )


def read_sensors(path: Path) -> list[str]:
    """Sensor ids in the order of the graph and of `node_id`."""
    with reading(path):
        try:
            return [str(name) for name in json.loads(path.read_text())["sensor_ids"]]
        except (ValueError, KeyError, TypeError):
            raise InputError("no list sensor_ids in it: is it adj_mx_mapping.json?") from None


def read_series(paths: list[Path], sensors: list[str]) -> tuple[Array, Array]:
    """Values (T, N) in the order of `sensors` and seconds (T,), of all files together."""
    import pyarrow as pa

    parts = []
    for path in paths:
        with reading(path):
            try:
                parts.append(_windows(path, len(sensors)))
            except pa.ArrowException as error:
                raise InputError(f"not the Parquet file expected ({str(error).splitlines()[0][:120]})") from None
    stamps, step = np.unique(np.concatenate([part.seconds for part in parts]), return_inverse=True)
    values = np.full((len(BEFORE) + len(stamps) + len(AFTER), len(sensors)), np.nan)
    nodes = np.concatenate([part.nodes for part in parts])
    values[len(BEFORE) + step, nodes] = np.concatenate([part.speeds for part in parts])
    earliest, latest = min(parts, key=lambda part: part.first[0]), max(parts, key=lambda part: part.last[0])
    values[: len(BEFORE)] = _steps(earliest.path, earliest.first[1], BEFORE, len(sensors))
    values[-len(AFTER) :] = _steps(latest.path, latest.last[1], AFTER, len(sensors))
    before, after = np.arange(-len(BEFORE), 0), np.arange(1, len(AFTER) + 1)
    return values, np.concatenate([stamps[0] + STEP * before, stamps, stamps[-1] + STEP * after])


class Windows(NamedTuple):
    """The last observed step of every window of a file, and its first and last time as (seconds, as written)."""

    path: Path
    seconds: Array
    nodes: Array
    speeds: Array
    first: tuple[int, Any]
    last: tuple[int, Any]


def _windows(path: Path, n: int) -> Windows:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    for name in ("node_id", TIME, NOW, *BEFORE, *AFTER):
        require(name in schema.names, f"no column {name!r}: expected forecasting windows as witgaw/METR-LA has them")
    text = [TIME] if pa.types.is_string(schema.field(TIME).type) else []
    table = pq.read_table(path, columns=["node_id", TIME, NOW], read_dictionary=text)
    require(table.num_rows > 0, "no rows: nothing to read")
    written = pc.dictionary_encode(table.column(TIME)).combine_chunks()
    seconds = clock_seconds(written.dictionary)
    ends = (int(seconds.argmin()), int(seconds.argmax()))
    first, last = ((int(seconds[i]), written.dictionary[i].as_py()) for i in ends)
    nodes = _nodes(table, n)
    return Windows(path, seconds[written.indices.to_numpy()], nodes, table.column(NOW).to_numpy(), first, last)


def _nodes(table: Any, n: int) -> Array:
    nodes = table.column("node_id").to_numpy().astype(np.int64)
    low, high = nodes.min(), nodes.max()
    require(low >= 0 and high < n, f"node_id runs from {low} to {high}, the graph has sensors 0 to {n - 1}")
    return nodes


def _steps(path: Path, written: object, columns: Sequence[str], n: int) -> Array:
    """Values (len(columns), N) of the windows whose last observed step is at the time as written in the file."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["node_id", *columns], filters=[(TIME, "==", written)])
    values = np.full((len(columns), n), np.nan)
    values[:, _nodes(table, n)] = matrix(table, columns).T
    return values
