"""The DCRNN release of METR-LA and PEMS-BAY: speeds in HDF5, the graph in a pickle, places and road metres in CSV.

`metr-la.h5` and `pems-bay.h5` are pandas "fixed" stores, read here block by block with h5py (extra `hdf5`), for today's
pandas no longer opens files of Python 2. The graph is put in the order of the speeds by sensor id, never by position.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.datasets.sources.entry import Paths, pick
from jointset.datasets.sources.pickles import read_arrays
from jointset.datasets.sources.text_tables import matrix, read_table, reading
from jointset.errors import InputError, require, some
from jointset.panel import Panel
from jointset.support.extras import optional

UNITS = {"ns": 10**9, "us": 10**6, "ms": 10**3, "s": 1}


def parse(paths: Paths) -> Panel:
    """Panel of `*.h5`, `adj_mx*.pkl`, `graph_sensor_locations*.csv` and `distances_*.csv`."""
    values, sensors, stamps = read_store(pick(paths, ".h5"))
    return Panel(
        values,
        tuple(sensors),
        timestamps=stamps,
        adjacency=read_adjacency(pick(paths, "adj_mx"), sensors),
        directed=True,
        coordinates=read_locations(pick(paths, "locations"), sensors),
        distances=read_distances(pick(paths, "distances"), sensors),
    )


def read_store(path: Path) -> tuple[Array, list[str], Array]:
    """Values (T, N), column names and seconds (T,) of the one data frame in a pandas "fixed" HDF5 store."""
    with reading(path):
        h5py = optional("h5py", "an HDF5 file")
        with h5py.File(path, "r") as file:
            frames = [group for group in file.values() if "block0_values" in group]
            require(len(frames) == 1, f"expected one pandas table, found {len(frames)}: is it the right file?")
            try:
                return _frame(frames[0])
            except KeyError as error:
                raise InputError(f"not a table pandas wrote in its fixed format ({error}): convert it") from None


def _frame(group: Any) -> tuple[Array, list[str], Array]:
    columns, stamps = _labels(group["axis0"]), _seconds(group["axis1"])
    place = {name: j for j, name in enumerate(columns)}
    values = np.full((len(stamps), len(columns)), np.nan)
    for key in [key for key in group if re.fullmatch(r"block\d+_values", key)]:
        items = _labels(group[key.replace("values", "items")])
        values[:, [place[name] for name in items]] = group[key][:]
    return values, columns, stamps


def _labels(node: Any) -> list[str]:
    return [_text(label) for label in node[:].tolist()]


def _seconds(node: Any) -> Array:
    """Index of a store as whole seconds; its unit is nanoseconds unless its kind names another."""
    kind = _text(node.attrs.get("kind", ""))
    match = re.search(r"datetime64(?:\[(ns|us|ms|s)\])?", kind)
    if match is None:
        raise InputError(f"the rows are labelled by {kind or 'something'}, not by times: is it the right file?")
    ticks, unit = np.asarray(node[:], dtype=np.int64), UNITS[match[1] or "ns"]
    require(not (ticks % unit).any(), "times finer than a second: is it the right file?")
    return ticks // unit


def _text(attribute: object) -> str:
    return attribute.decode("latin-1") if isinstance(attribute, bytes) else str(attribute)


def read_adjacency(path: Path, sensors: list[str]) -> Array:
    """Adjacency (N, N) of DCRNN's (ids, id to index, matrix), in the order of `sensors`."""
    with reading(path):
        content = read_arrays(path)
        plain = isinstance(content, (list, tuple)) and len(content) == 3 and isinstance(content[2], np.ndarray)
        require(plain, "expected (sensor ids, index, matrix): is it a graph of DCRNN?")
        ids, matrix_ = [str(name) for name in content[0]], content[2]
        require(matrix_.shape == (len(ids), len(ids)), f"{len(ids)} sensor ids for a matrix {matrix_.shape}")
        order = in_order(ids, sensors)
        return np.asarray(matrix_, dtype=np.float64)[np.ix_(order, order)]


def read_locations(path: Path, sensors: list[str]) -> Array:
    """Latitude and longitude (N, 2): `index,sensor_id,latitude,longitude`, or three columns without a header."""
    with reading(path):
        names = None if _has_header(path) else ["sensor_id", "latitude", "longitude"]
        table = read_table(path, names=names, text=["sensor_id"])
        require("sensor_id" in table.column_names, "no column sensor_id: is it a list of sensor locations?")
        order = in_order(table.column("sensor_id").to_pylist(), sensors)
        return matrix(table, ["latitude", "longitude"])[order]


def read_distances(path: Path, sensors: list[str]) -> Array:
    """Road metres (N, N) from each sensor to each, inf where there is no row: `from,to,cost`, header or not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with reading(path):
        names = None if _has_header(path) else ["from", "to", "cost"]
        table = read_table(path, names=names, text=["from", "to"])
        require({"from", "to"} <= set(table.column_names), "no columns from and to: is it a list of distances?")
        known = pa.array(sensors)
        ends = [pc.fill_null(pc.index_in(table.column(end), known), -1).to_numpy() for end in ("from", "to")]
        ours = (ends[0] >= 0) & (ends[1] >= 0)
        metres = np.full((len(sensors), len(sensors)), np.inf)
        metres[ends[0][ours], ends[1][ours]] = matrix(table, ["cost"])[ours, 0]
        return metres


def in_order(names: list[str], sensors: list[str]) -> list[int]:
    """Place of every sensor among the names of another file."""
    place = {name: i for i, name in enumerate(names)}
    lacking = [name for name in sensors if name not in place]
    require(not lacking, f"sensors of the speeds that it lacks: {some(lacking)}; is it of the same data set?")
    return [place[name] for name in sensors]


def _has_header(path: Path) -> bool:
    with path.open("rb") as file:
        return not file.readline().split(b",")[0].strip().isdigit()
