"""Arrow tables to the parts of a panel: which columns are time, sensor and readings, and what they hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import BadRow, InputError, require
from jointset.inputs.layout import SENSOR_NAMES, TIME_NAMES, Kind, Layout, Plan, cell_kind, plain, plan_columns
from jointset.inputs.times import column_seconds, iso, no_nulls
from jointset.support.files import NUMBER

Choose = Callable[[Sequence[str]], list[int]]  # places of the columns to read, from the names of all
Parts = tuple[dict[str, Any], list[str]]  # what a panel is made of, and the names of all columns there were
MISSING = ("", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None")
EPOCH = (10**9, 4 * 10**9)  # seconds, from 2001 to 2096, that a column of numbers may be
WIDEST = 10**8  # cells of a long file's table from which a nearly empty one is refused


class Look(NamedTuple):
    """How the columns of a table are to be taken."""

    layout: Layout = "auto"
    time_column: str | None = None
    day_first: bool = False
    counting: Callable[..., Callable[[int], None]] | None = None  # given the MiB of a text file, makes what is told


def all_columns(names: Sequence[str]) -> list[int]:
    """The places of all columns."""
    return [*range(len(names))]


def not_a_number(where: str, column: str, cell: str) -> InputError:
    """What is wrong with a cell that is no number."""
    what = f"{where}, column {column!r}: {cell[:40]!r} is not a number"
    return InputError(f"{what}: write one, or nothing where a reading is missing; --drop leaves the column out")


def chosen(plan: Plan, columns: Sequence[str], choose: Choose) -> Plan:
    """The plan without the columns of a wide table that are left out: what they hold is never looked at."""
    return plan if plan.sensor is not None else plan._replace(values=[plan.values[k] for k in choose(columns)])


def from_table(table: Any, look: Look, choose: Choose = all_columns) -> Parts:
    """Parts of a panel from an Arrow table of any column types."""
    import pyarrow as pa

    require(table.num_rows > 0, "no rows: nothing to read")
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    table = _with_regular_index(table, look)
    names = [name.strip() for name in table.column_names]
    kinds = [_column_kind(column) for column in table.columns]
    index = _index(table)
    allowed = TIME_NAMES | SENSOR_NAMES | {plain(look.time_column or "")}
    for name, kind in zip(names, kinds, strict=True):
        labels = name in index and kind == "number" and plain(name) not in allowed
        require(not labels, "the data frame's index holds no times: use reset_index(drop=True), or name it 'time'")
    plan = plan_columns(names, kinds, look.layout, look.time_column)
    columns = [names[i] for i in plan.values]
    plan = chosen(plan, columns, choose)
    for i in plan.values:
        table = table.set_column(i, names[i], _readings(table.column(i), names[i]))
    return assemble(table, names, plan, columns, choose, look)


def _index(table: Any) -> list[Any]:
    """What is known of the index of the data frame that a table was: names of columns, or a range in words."""
    return [*(table.schema.pandas_metadata or {}).get("index_columns", [])]


def _with_regular_index(table: Any, look: Look) -> Any:
    """The table with an index of times that is a range: numbers at equal steps are no column of their own."""
    import pyarrow as pa

    for part in _index(table):
        name = str(part["name"]) if isinstance(part, dict) and part.get("kind") == "range" else ""
        if name and name not in table.column_names and (plain(name) in TIME_NAMES or name == look.time_column):
            steps = range(part["start"], part["stop"], part["step"])
            if len(steps) == table.num_rows:
                table = table.append_column(name, pa.array(steps, pa.int64()))
    return table


def _column_kind(column: Any) -> Kind:
    import pyarrow as pa

    if pa.types.is_temporal(column.type):
        return "time"
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return cell_kind(next((cell for cell in column[:1000].to_pylist() if cell and cell.strip() not in MISSING), ""))
    return "number"


def _readings(column: Any, name: str) -> Any:
    """Arrow column as float64; text is parsed, and the first cell that is no number is named."""
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        cells = [None if cell is None or cell.strip() in MISSING else cell.strip() for cell in column.to_pylist()]
        for row, cell in enumerate(cells):
            if cell is not None and not NUMBER.fullmatch(cell):
                raise not_a_number(f"row {row} (from 0)", name, cell)
        return pa.chunked_array([pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())])
    try:
        return column.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise InputError(f"column {name!r} holds {column.type}, not numbers: convert it, or drop it") from None


def assemble(table: Any, names: list[str], plan: Plan, columns: list[str], choose: Choose, look: Look) -> Parts:
    """Parts of a panel from an Arrow table whose readings are float64, and the names of all its columns of readings."""
    stamps = None
    if plan.time is not None:
        stamps = column_seconds(table.column(plan.time), names[plan.time], look.day_first)
    names_column = None if plan.sensor is None else table.column(plan.sensor)
    batches = table.select(plan.values).to_batches()
    del table  # for a text file the last reference: `_matrix` can then free each batch
    matrix = _matrix(batches, len(plan.values))
    if plan.sensor is None or stamps is None:
        if plan.time is None:
            warn_epochs(matrix, [names[i] for i in plan.values])
        return {"values": matrix, "sensors": [names[i] for i in plan.values], "timestamps": stamps}, columns
    parts = _pivot(stamps, names_column, names[plan.sensor], matrix[:, 0])
    columns, kept = parts["sensors"], choose(parts["sensors"])
    if len(kept) < len(columns):
        parts |= {"values": parts["values"][:, kept], "sensors": [columns[i] for i in kept]}
    return parts, columns


def warn_epochs(values: Array, names: list[str]) -> None:
    """Tell of a column that only goes up in whole numbers of the size of times, in a table without a time column."""
    for name, column in zip(names, values.T, strict=True):
        sized = len(column) > 2 and EPOCH[0] <= column[0] and column[-1] < EPOCH[1]
        if sized and bool((np.diff(column) >= 1.0).all()) and bool((column % 1.0 == 0.0).all()):  # no gaps either
            warnings.warn(
                f"column {name!r} is taken for a sensor and looks like epoch seconds: if it is the time, "
                f"call it 'time' or say --time-column (time_column={name!r})",
                stacklevel=2,
            )


def _matrix(batches: list[Any], n: int) -> Array:
    """Read-only float64 (T, n) from Arrow record batches, given back as they are copied: two copies need not fit."""
    import pyarrow as pa

    row = sum(len(batch) for batch in batches)
    out = np.empty((row, n))
    while batches:
        batch = batches.pop()
        row -= len(batch)
        for j, column in enumerate(batch.columns):
            out[row : row + len(batch), j] = column.to_numpy(zero_copy_only=False)
        if len(batches) % 16 == 0:
            pa.default_memory_pool().release_unused()
    out.flags.writeable = False  # a panel then takes it without a copy
    return out


def _pivot(stamps: Array, column: Any, name: str, readings: Array) -> dict[str, Any]:
    """Long to wide: sensors in order of appearance, all time stamps sorted, absent pairs missing."""
    import pyarrow as pa

    no_nulls(column, name, "sensor name")
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    sensors = [name.strip() for name in coded.dictionary.to_pylist()]
    times, step = np.unique(stamps, return_inverse=True)
    size = len(times) * len(sensors)
    sparse = f"{len(sensors)} sensors share few of their {len(times)} time stamps"
    require(size < max(WIDEST, 100 * len(readings)), f"{sparse}: round the times to a common cadence")
    cell = step * len(sensors) + coded.indices.to_numpy()
    order = np.argsort(cell, kind="stable")
    again = order[1:][np.diff(cell[order]) == 0]
    if again.size:
        row = int(again.min())
        first = int(np.flatnonzero(cell == cell[row])[0])
        pair = f"sensor {sensors[cell[row] % len(sensors)]!r} at {iso(stamps[row])}"
        raise BadRow(lambda place: f"two readings of {pair}, {place(first)} and {place(row)}: keep one")
    values = np.full(size, np.nan)
    values[cell] = readings
    return {"values": values.reshape(len(times), -1), "sensors": sensors, "timestamps": times}
