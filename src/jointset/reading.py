"""Files to panels: CSV and TSV (also .gz), Parquet, npz and pandas, by rules that can be foreseen.

Layout. Wide: at most one time column, every other column a sensor. Long: exactly three columns, time, sensor and
value. `layout="auto"` takes a table for long when it has three columns, one of them time and one named like a sensor
(sensor, station, id, ...); it refuses to guess when a table looks like both; everything else is wide.

Time. The column named like time (time, timestamp, date, ...), else the only one that holds dates. Cells are ISO 8601
text, an offset is converted to UTC and no offset means UTC, but a file mixes no two kinds; or whole numbers since
the epoch: seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, nanoseconds above. Times finer than
a second are refused. Empty cells, NA, NaN and null are missing readings.

Names. Text files start with a header. Sensor names made of numbers only must be distinct whole numbers ("773869");
any other line of numbers is taken for data, and the file is refused for lack of a header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointset.errors import InputError, require
from jointset.graph import NUMBER, existing_file, file_suffix, load_npz, naming, read_graph, some, text_rows
from jointset.panel import Panel, iso, suggest

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
Layout = Literal["auto", "wide", "long"]
Kind = Literal["number", "time", "text"]

MISSING = ("", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None")
NULLS = [space + mark for space in ("", " ") for mark in MISSING]
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(?P<zone>Z|[+-]\d\d(:?\d\d)?)?)?")
DIGIT_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d([0-5]\d)?)?")
TIME_NAMES = {"time", "times", "timestamp", "timestamps", "date", "datetime", "utc", "timeutc", "datetimeutc"}
SENSOR_NAMES = {
    *("sensor", "sensors", "sensorid", "sensorname", "station", "stationid", "stationname", "id", "name", "node"),
    *("nodeid", "detector", "detectorid", "device", "deviceid", "site", "siteid", "location", "series", "uniqueid"),
}
VALUE_NAMES = {"value", "values", "reading", "readings", "measurement", "y"}
WIDEST = 10**8  # cells of a long file's table from which a nearly empty one is refused


def read_panel(
    path: str | Path,
    *,
    graph: str | Path | Array | None = None,
    layout: Layout = "auto",
    time_column: str | None = None,
    symmetrize: bool = False,
    directed: bool = False,
) -> Panel:
    """Panel of a .csv, .tsv (also .gz), .parquet or .npz file; the module's first lines give the rules.

    `graph`, a file for `read_graph` or an array (N, N) in sensor order, replaces the adjacency of an npz file. An
    asymmetric one needs `symmetrize`, which makes it (A + A')/2, or `directed`, which keeps it.
    """
    path = existing_file(path)
    suffix = file_suffix(path)
    readers = {".csv": _read_text, ".tsv": _read_text, ".parquet": _read_parquet, ".pq": _read_parquet}
    with naming(path):
        require(layout in ("auto", "wide", "long"), f"unknown layout {layout!r}: use 'auto', 'wide' or 'long'")
        if suffix == ".npz":
            parts = _read_npz(path)
        else:
            require(
                suffix in readers, f"cannot read {suffix or 'a file without suffix'}: use .csv, .tsv, .parquet, .npz"
            )
            parts = readers[suffix](path, layout, time_column)
        own, stored = parts.pop("adjacency", None), bool(parts.pop("directed", False))
        panel = Panel(**parts)
        if graph is None:
            return panel.with_graph(own, directed=directed or stored, symmetrize=symmetrize)
    adjacency = read_graph(graph, panel.sensors, directed=directed) if isinstance(graph, (str, Path)) else graph
    return panel.with_graph(adjacency, directed=directed, symmetrize=symmetrize)


def panel_from_pandas(frame: pd.DataFrame, *, layout: Layout = "auto", time_column: str | None = None) -> Panel:
    """Panel of a data frame, wide or long, by the same rules; time may be its index or a column."""
    import pyarrow as pa

    require(frame.columns.nlevels == 1, "the data frame has several levels of column names: flatten them first")
    frame = frame.rename(columns=str)
    twice = [str(name) for name in frame.columns[frame.columns.duplicated()]]
    require(not twice, f"duplicated columns: {some(twice)}; rename or drop the repeats")
    for name in [name for name, dtype in frame.dtypes.items() if dtype == "object"]:
        try:
            pa.array(frame[name], from_pandas=True)
        except pa.ArrowException:  # numbers and text mixed: as text, the cell to blame can be named
            frame[name] = frame[name].map(str, na_action="ignore")
    return Panel(**_from_table(pa.Table.from_pandas(frame), layout, time_column))


def _read_npz(path: Path) -> dict[str, Any]:
    arrays = load_npz(path)
    for key in ("values", "sensors"):
        require(key in arrays, f"no {key!r} among its arrays ({', '.join(arrays)}): a panel needs values and sensors")
    known = ("values", "sensors", "timestamps", "adjacency", "directed", "coordinates", "distances")
    return {key: arrays[key] for key in known if key in arrays}


def _read_parquet(path: Path, layout: Layout, time_column: str | None) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"not a readable Parquet file ({_first_line(error)}): write it again") from None
    return _from_table(table, layout, time_column)


def _read_text(path: Path, layout: Layout, time_column: str | None) -> dict[str, Any]:
    """Parts of a panel from delimited text: look at the first rows, plan, then let Arrow read typed columns."""
    rows = text_rows(path)
    skip, header = next(rows)
    names = [name.strip() for name in header]
    hint = "cells are separated by ';': save the file with ',' instead"
    require(len(names) > 1 or ";" not in names[0] or file_suffix(path) == ".tsv", hint)
    first = [cells for _, cells in islice(rows, 100)]
    require(len(first) > 0, "only a header, no rows: nothing to read")
    kinds = [_kind(next((row[i] for row in first if row[i].strip() not in MISSING), "")) for i in range(len(names))]
    plan = _plan(names, kinds, layout, time_column)
    _check_header(names, plan)
    width = sum(len(cell) + 1 for cell in first[0])
    return _assemble(_arrow_table(path, skip, names, plan, row_bytes=width), names, plan)


def _check_header(names: list[str], plan: Plan) -> None:
    """Refuse a first line that is data; names made of digits are names when they are distinct."""
    sensors = [names[i] for i in plan.values]
    numbers = all(NUMBER.fullmatch(name) for name in sensors) and plan.sensor is None
    distinct = all(name.isdigit() for name in sensors) and len(set(sensors)) == len(sensors)
    dated = plan.time is not None and _kind(names[plan.time]) != "text" and names[plan.time] != ""
    found = f"the first line holds data ({some(names, 3)}), not names"
    require(not dated and (distinct or not numbers), f"{found}: add a header line with the sensor names")


def _arrow_table(path: Path, skip: int, names: list[str], plan: Plan, row_bytes: int) -> Any:
    """Arrow table with float64 readings and text elsewhere."""
    import pyarrow as pa
    from pyarrow import csv

    keys = [str(i) for i in range(len(names))]  # names may repeat in a bad file, numbers do not
    readings = set(plan.values)
    types = {key: pa.float64() if i in readings else pa.string() for i, key in enumerate(keys)}
    # Few rows a block would make one Arrow chunk per handful of rows when there are thousands of sensors.
    block = min(max(1 << 20, 4096 * row_bytes), 1 << 26)
    delimiter = "\t" if file_suffix(path) == ".tsv" else ","
    options = {
        "read_options": csv.ReadOptions(column_names=keys, skip_rows=skip, block_size=block),
        "parse_options": csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=len(names) > 1),
        "convert_options": csv.ConvertOptions(column_types=types, null_values=NULLS, strings_can_be_null=True),
    }
    try:
        return csv.read_csv(path, **options)
    except pa.ArrowException as error:
        raise _explain(path, names, plan, options, error) from None


def _explain(path: Path, names: list[str], plan: Plan, options: dict[str, Any], error: Exception) -> InputError:
    """The error that names the first bad row or cell; only rows from the block that Arrow refused are looked at."""
    import pyarrow as pa
    from pyarrow import csv

    good = 0
    try:
        for batch in csv.open_csv(path, **options):
            good += len(batch)
    except pa.ArrowException:
        pass
    for line, cells in islice(text_rows(path), good + 1, None):  # the header too; a ragged row raises
        for i in plan.values:
            if cells[i].strip() not in MISSING and not NUMBER.fullmatch(cells[i].strip()):
                return _not_a_number(f"line {line}", names[i], cells[i])
    return InputError(f"cannot be read ({_first_line(error)}): check the file")


def _not_a_number(where: str, column: str, cell: str) -> InputError:
    what = f"{where}, column {column!r}: {cell[:40]!r} is not a number"
    return InputError(f"{what}: write a number, or leave the cell empty where a reading is missing")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


class Plan(NamedTuple):
    """What each column of a table is, by position; `sensor` is None in a wide table."""

    time: int | None
    sensor: int | None
    values: list[int]


def _kind(cell: str) -> Kind:
    """Kind of a column from its first cell that is not missing."""
    cell = cell.strip()
    if not cell or NUMBER.fullmatch(cell):
        return "number"
    return "time" if DATE.fullmatch(cell) else "text"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _plan(names: Sequence[str], kinds: Sequence[Kind], layout: Layout, time_column: str | None) -> Plan:
    time = _time_index(names, kinds, time_column)
    rest = [i for i in range(len(names)) if i != time]
    sensor = _sensor_index(names, kinds, rest)
    if layout == "auto":
        layout = _detect_layout(names, time, rest, sensor)
    if layout == "wide":
        for i in rest:
            advice = "call it 'time' if it holds times, name it after its sensor, or drop it"
            require(names[i] != "", f"column {i + 1} (from 1) has no name: {advice}")
        require(len(rest) > 0, "a time column but no sensors: nothing to read")
        return Plan(time, None, rest)
    require(
        time is not None and len(rest) == 2,
        f"a long table has three columns, time, sensor and value; found {some(names)}: use layout='wide'?",
    )
    sensor = rest[0] if sensor is None else sensor
    return Plan(time, sensor, [i for i in rest if i != sensor])


def _time_index(names: Sequence[str], kinds: Sequence[Kind], time_column: str | None) -> int | None:
    """Place of the time column: the one asked for, else the one named like time, else the only one with dates."""
    if time_column is not None:
        require(time_column in names, f"no column {time_column!r} for time: {suggest(time_column, names)}")
        return names.index(time_column)
    found = [i for i, name in enumerate(names) if _plain(name) in TIME_NAMES]
    found = found or [i for i, kind in enumerate(kinds) if kind == "time"]
    several = some([names[i] for i in found])
    require(len(found) < 2, f"more than one time column ({several}): join or drop one, or pass time_column=")
    return found[0] if found else None


def _sensor_index(names: Sequence[str], kinds: Sequence[Kind], rest: list[int]) -> int | None:
    """Place of the column that names sensors: by its name, else the only one with text."""
    named = [i for i in rest if _plain(names[i]) in SENSOR_NAMES]
    texts = [i for i in rest if kinds[i] == "text"]
    return next((found[0] for found in (named, texts) if len(found) == 1), None)


def _detect_layout(names: Sequence[str], time: int | None, rest: list[int], sensor: int | None) -> Layout:
    named = sensor is not None and _plain(names[sensor]) in SENSOR_NAMES
    valued = any(_plain(names[i]) in VALUE_NAMES for i in rest)
    if named and time is not None and len(rest) == 2:
        return "long"
    three = time is not None and len(rest) == 2 and (sensor is not None or valued)
    require(
        not three and not (named and valued),
        f"columns {some(names)} could be a wide or a long table: pass layout='wide' (a column per sensor) or "
        "layout='long' (time, sensor, value)",
    )
    return "wide"


def _from_table(table: Any, layout: Layout, time_column: str | None) -> dict[str, Any]:
    """Parts of a panel from an Arrow table of any column types."""
    import pyarrow as pa

    require(table.num_rows > 0, "no rows: nothing to read")
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    names = [name.strip() for name in table.column_names]
    kinds = [_column_kind(column) for column in table.columns]
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    allowed = TIME_NAMES | SENSOR_NAMES | {_plain(time_column or "")}
    for name, kind in zip(names, kinds, strict=True):
        labels = name in index and kind == "number" and _plain(name) not in allowed
        require(not labels, "the data frame's index holds no times: use reset_index(drop=True), or name it 'time'")
    plan = _plan(names, kinds, layout, time_column)
    for i in plan.values:
        table = table.set_column(i, names[i], _readings(table.column(i), names[i]))
    return _assemble(table, names, plan)


def _column_kind(column: Any) -> Kind:
    import pyarrow as pa

    if pa.types.is_temporal(column.type):
        return "time"
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _kind(next((cell for cell in column[:1000].to_pylist() if cell and cell.strip() not in MISSING), ""))
    return "number"


def _readings(column: Any, name: str) -> Any:
    """Arrow column as float64; text is parsed, and the first cell that is no number is named."""
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        cells = [None if cell is None or cell.strip() in MISSING else cell.strip() for cell in column.to_pylist()]
        for row, cell in enumerate(cells):
            if cell is not None and not NUMBER.fullmatch(cell):
                raise _not_a_number(f"row {row} (from 0)", name, cell)
        return pa.chunked_array([pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())])
    try:
        return column.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise InputError(f"column {name!r} holds {column.type}, not numbers: convert it, or drop it") from None


def _assemble(table: Any, names: list[str], plan: Plan) -> dict[str, Any]:
    """Parts of a panel from an Arrow table whose readings are float64."""
    stamps = None if plan.time is None else _epoch_seconds(table.column(plan.time), names[plan.time])
    names_column = None if plan.sensor is None else table.column(plan.sensor)
    batches = table.select(plan.values).to_batches()
    del table  # for a text file the last reference: `_matrix` can then free each batch
    matrix = _matrix(batches, len(plan.values))
    if plan.sensor is None or stamps is None:
        return {"values": matrix, "sensors": [names[i] for i in plan.values], "timestamps": stamps}
    return _pivot(stamps, names_column, names[plan.sensor], matrix[:, 0])


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

    _no_nulls(column, name, "sensor name")
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
        raise InputError(f"two readings of {pair}, rows {first} and {row} (from 0): keep one")
    values = np.full(size, np.nan)
    values[cell] = readings
    return {"values": values.reshape(len(times), -1), "sensors": sensors, "timestamps": times}


def _no_nulls(column: Any, name: str, what: str) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"row {row} (from 0) has no {what} in column {name!r}: fill it, or drop the row")


def _epoch_seconds(column: Any, name: str) -> Array:
    """Time column as int64 seconds since the epoch (UTC)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _no_nulls(column, name, "time")
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text:
        column = pc.utf8_trim_whitespace(column)
    if not pa.types.is_temporal(column.type):
        try:
            return _scaled(column.cast(pa.int64()).to_numpy(), name)
        except pa.ArrowException:
            require(text, f"column {name!r} holds {column.type}, no times: use ISO 8601 or whole epoch seconds")
            column = _parse_iso(column, name)
    try:
        return column.cast(pa.timestamp("s", getattr(column.type, "tz", None))).cast(pa.int64()).to_numpy()
    except pa.ArrowException:
        raise InputError(f"column {name!r} has times finer than a second: average to whole seconds") from None


def _scaled(numbers: Array, name: str) -> Array:
    """Whole numbers since the epoch as seconds, their unit judged by their size."""
    first = str(numbers[0])
    require(
        not DIGIT_DATE.fullmatch(first),
        f"{first} in time column {name!r} looks like a date written in digits: write it like 2012-03-01T00:05:00Z",
    )
    largest = int(np.abs(numbers).max())
    unit = next(unit for unit, limit in ((1, 1e11), (10**3, 1e14), (10**6, 1e17), (10**9, 1e20)) if largest < limit)
    require(not (numbers % unit).any(), f"column {name!r} has times finer than a second: average to whole seconds")
    return numbers // unit


def _parse_iso(column: Any, name: str) -> Any:
    """ISO text as Arrow time stamps: all without offset, or all with one."""
    import pyarrow as pa

    for zone in (None, "UTC"):
        try:
            return column.cast(pa.timestamp("ns", zone))
        except pa.ArrowException:
            continue
    kinds: dict[bool, str] = {}
    for row, cell in enumerate(column.to_pylist()):
        where = f"row {row} (from 0), column {name!r}: {cell[:40]!r}"
        match = ISO.fullmatch(cell)
        if match is None or not _is_date(cell):
            raise InputError(
                f"{where} is not an ISO 8601 time: write it like 2012-03-01T00:05:00Z, or as whole epoch seconds"
            )
        kinds.setdefault(match["zone"] is not None, where)
        if len(kinds) == 2:
            raise InputError(f"{kinds[True]} has a UTC offset, {kinds[False]} has none: give all of them one, or none")
    raise InputError(f"column {name!r} holds times before 1678 or after 2261: check them")


def _is_date(cell: str) -> bool:
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True
