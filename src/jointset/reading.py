"""Files to panels: CSV and TSV (also .gz), Parquet, npz and pandas, by rules that can be foreseen.

Layout. Wide: at most one time column, every other column a sensor. Long: exactly three columns, time, sensor and
value. `layout="auto"` takes a table for long when it has three columns, one of them time and one named like a sensor
(sensor, station, id, ...); it refuses to guess when a table looks like both; everything else is wide.

Time. The column named like time (time, timestamp, date, ...), else the only one that holds dates. Cells are ISO 8601
text, an offset is converted to UTC and no offset means UTC, but a file mixes no two kinds; or whole numbers since
the epoch: seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, nanoseconds above. Times finer than
a second are refused. Dates that begin with the day are read where that is asked for. Empty cells, NA, NaN and null are
missing readings.

Cells of text are separated by ',', ';' or tabs, whichever is most frequent in the header; where it is ';', numbers may
have decimal commas.

Names. Text files start with a header. Sensor names made of numbers only must be distinct whole numbers ("773869");
any other line of numbers is taken for data, and the file is refused for lack of a header.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.files import (
    NUMBER,
    decimal_point,
    file_delimiter,
    file_suffix,
    load_npz,
    naming,
    readable_file,
    text_rows,
)
from jointset.fleet import AS_IT_IS, Fleet, Notice, kept_columns, match_columns, warn
from jointset.graph_files import read_graph
from jointset.layout import SENSOR_NAMES, TIME_NAMES, Kind, Layout, Plan, cell_kind, plain, plan_columns
from jointset.panel import Panel
from jointset.panel_checks import read_only
from jointset.times import column_seconds, iso, no_nulls

if TYPE_CHECKING:
    import pandas as pd

Choose = Callable[[Sequence[str]], list[int]]  # places of the columns to read, from the names of all
Parts = tuple[dict[str, Any], list[str]]  # what a panel is made of, and the names of all columns there were

MISSING = ("", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None")
NULLS = [space + mark for space in ("", " ") for mark in MISSING]
WIDEST = 10**8  # cells of a long file's table from which a nearly empty one is refused


class Look(NamedTuple):
    """How the columns of a table are to be taken."""

    layout: Layout = "auto"
    time_column: str | None = None
    day_first: bool = False


def read_panel(
    path: str | Path,
    *,
    graph: str | Path | Array | None = None,
    layout: Layout = "auto",
    time_column: str | None = None,
    day_first: bool = False,
    symmetrize: bool = False,
    directed: bool = False,
    fleet: Fleet = AS_IT_IS,
    sensors: Sequence[str] | None = None,
    notice: Notice = warn,
) -> Panel:
    """Panel of a .csv, .tsv (also .gz), .parquet or .npz file; the module's first lines give the rules.

    `graph`, a file for `read_graph` or an array (N, N) in sensor order, replaces the adjacency of an npz file. An
    asymmetric one needs `symmetrize`, which makes it (A + A')/2, or `directed`, which keeps it. `fleet` says which
    columns are renamed or dropped, in a graph file too. With `sensors`, those of a model, the panel has just these, in
    their order, missing where the file has none, and no graph. `notice` is told what was left out or is missing.
    With `day_first` times may be written 31/12/2012 23:55 or 31.12.2012. The path may be /dev/stdin or another pipe.
    """
    look = Look(layout, time_column, day_first)

    def choose(names: Sequence[str]) -> list[int]:
        kept = kept_columns(names, fleet, notice) if sensors is None else match_columns(names, sensors, fleet, notice)
        return [*kept]

    with readable_file(path) as file, naming(Path(path)):
        require(layout in ("auto", "wide", "long"), f"unknown layout {layout!r}: use 'auto', 'wide' or 'long'")
        suffix = file_suffix(file)
        if suffix == ".npz":
            parts = _read_npz(file)
            columns = [str(name) for name in parts["sensors"]]
        else:
            known = f"cannot read {suffix or 'a file without suffix'}: use .csv, .tsv, .parquet, .npz"
            require(suffix in READERS, known)
            parts, columns = READERS[suffix](file, look, choose)
        own, stored = parts.pop("adjacency", None), bool(parts.pop("directed", False))
        panel = Panel(**parts)
        if graph is None:
            panel = panel.with_graph(own, directed=directed or stored, symmetrize=symmetrize)
        if suffix == ".npz" and (fleet != AS_IT_IS or sensors is not None):
            panel = panel.select(choose(columns))
        panel = panel.rename(fleet.rename)
    if sensors is not None:
        return _like_model(panel, sensors)
    if graph is None:
        return panel
    columns = [fleet.rename.get(name, name) for name in columns]
    if isinstance(graph, (str, Path)):
        graph = read_graph(graph, panel.sensors, directed=directed, columns=columns, fleet=fleet, notice=notice)
    elif np.shape(graph) == (len(columns), len(columns)):
        kept = [columns.index(name) for name in panel.sensors]
        graph = np.asarray(graph)[np.ix_(kept, kept)]
    return panel.with_graph(graph, directed=directed, symmetrize=symmetrize)


def _like_model(panel: Panel, sensors: Sequence[str]) -> Panel:
    """The panel with one column for every sensor of a model, missing where it has none."""
    place = {name: i for i, name in enumerate(sensors)}
    values = np.full((len(panel), len(sensors)), np.nan)
    values[:, [place[name] for name in panel.sensors]] = panel.values
    return Panel(read_only(values), tuple(sensors), panel.timestamps)


def _all(names: Sequence[str]) -> list[int]:
    return [*range(len(names))]


def panel_from_pandas(
    frame: pd.DataFrame, *, layout: Layout = "auto", time_column: str | None = None, day_first: bool = False
) -> Panel:
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
    return Panel(**_from_table(pa.Table.from_pandas(frame), Look(layout, time_column, day_first))[0])


def _read_npz(path: Path) -> dict[str, Any]:
    arrays = load_npz(path)
    for key in ("values", "sensors"):
        require(key in arrays, f"no {key!r} among its arrays ({', '.join(arrays)}): a panel needs values and sensors")
    known = ("values", "sensors", "timestamps", "adjacency", "directed", "coordinates", "distances")
    return {key: arrays[key] for key in known if key in arrays}


def _read_parquet(path: Path, look: Look, choose: Choose) -> Parts:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"not a readable Parquet file ({_first_line(error)}): write it again") from None
    return _from_table(table, look, choose)


def _read_text(path: Path, look: Look, choose: Choose) -> Parts:
    """Parts of a panel from delimited text: look at the first rows, plan, then let Arrow read typed columns."""
    rows = text_rows(path)
    skip, header = next(rows)
    names = [name.strip() for name in header]
    first = [cells for _, cells in islice(rows, 100)]
    require(len(first) > 0, "only a header, no rows: nothing to read")
    form = _form(path, first)
    first = [[form.plain(cell) for cell in row] for row in first]
    kinds = [cell_kind(next((row[i] for row in first if row[i].strip() not in MISSING), "")) for i in range(len(names))]
    plan = plan_columns(names, kinds, look.layout, look.time_column)
    _check_header(names, plan)
    width = sum(len(cell) + 1 for cell in first[0])
    columns = [names[i] for i in plan.values]
    plan = _chosen(plan, columns, choose)
    return _assemble(_arrow_table(path, form, skip, names, plan, row_bytes=width), names, plan, columns, choose, look)


class Form(NamedTuple):
    """How the numbers of a text file are written."""

    delimiter: str
    decimal: str

    def plain(self, cell: str) -> str:
        """A cell with a point in its number."""
        return decimal_point(cell) if self.decimal == "," else cell


def _form(path: Path, first: list[list[str]]) -> Form:
    """The form of a file from its first rows: decimal commas where ';' separates cells and no number has a point."""
    delimiter = file_delimiter(path)
    points = any(NUMBER.fullmatch(cell.strip()) and "." in cell for row in first for cell in row)
    return Form(delimiter, "," if delimiter == ";" and not points else ".")


def _check_header(names: list[str], plan: Plan) -> None:
    """Refuse a first line that is data; names made of digits are names when they are distinct."""
    sensors = [names[i] for i in plan.values]
    numbers = all(NUMBER.fullmatch(name) for name in sensors) and plan.sensor is None
    distinct = all(name.isdigit() for name in sensors) and len(set(sensors)) == len(sensors)
    dated = plan.time is not None and cell_kind(names[plan.time]) != "text" and names[plan.time] != ""
    found = f"the first line holds data ({some(names, 3)}), not names"
    require(not dated and (distinct or not numbers), f"{found}: add a header line with the sensor names")


def _arrow_table(path: Path, form: Form, skip: int, names: list[str], plan: Plan, row_bytes: int) -> Any:
    """Arrow table with float64 readings and text elsewhere."""
    import pyarrow as pa
    from pyarrow import csv

    keys = [str(i) for i in range(len(names))]  # names may repeat in a bad file, numbers do not
    readings = set(plan.values)
    types = {key: pa.float64() if i in readings else pa.string() for i, key in enumerate(keys)}
    # Few rows a block would make one Arrow chunk per handful of rows when there are thousands of sensors.
    block = min(max(1 << 20, 4096 * row_bytes), 1 << 26)
    marks: dict[str, Any] = {"null_values": NULLS, "strings_can_be_null": True, "decimal_point": form.decimal}
    options = {
        "read_options": csv.ReadOptions(column_names=keys, skip_rows=skip, block_size=block),
        "parse_options": csv.ParseOptions(delimiter=form.delimiter, ignore_empty_lines=len(names) > 1),
        "convert_options": csv.ConvertOptions(column_types=types, **marks),
    }
    try:
        return csv.read_csv(path, **options)
    except pa.ArrowException as error:
        raise _explain(path, form, names, plan, options, error) from None


def _explain(
    path: Path, form: Form, names: list[str], plan: Plan, options: dict[str, Any], error: Exception
) -> InputError:
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
            cell = form.plain(cells[i].strip())
            mixed = form.decimal == "," and "." in cells[i]
            if cell not in MISSING and (mixed or not NUMBER.fullmatch(cell)):
                return _not_a_number(f"line {line}", names[i], cells[i])
    return InputError(f"cannot be read ({_first_line(error)}): check the file")


def _not_a_number(where: str, column: str, cell: str) -> InputError:
    what = f"{where}, column {column!r}: {cell[:40]!r} is not a number"
    return InputError(f"{what}: write one, or nothing where a reading is missing; --drop leaves the column out")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def _chosen(plan: Plan, columns: Sequence[str], choose: Choose) -> Plan:
    """The plan without the columns of a wide table that are left out: what they hold is never looked at."""
    return plan if plan.sensor is not None else plan._replace(values=[plan.values[k] for k in choose(columns)])


def _from_table(table: Any, look: Look, choose: Choose = _all) -> Parts:
    """Parts of a panel from an Arrow table of any column types."""
    import pyarrow as pa

    require(table.num_rows > 0, "no rows: nothing to read")
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    names = [name.strip() for name in table.column_names]
    kinds = [_column_kind(column) for column in table.columns]
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    allowed = TIME_NAMES | SENSOR_NAMES | {plain(look.time_column or "")}
    for name, kind in zip(names, kinds, strict=True):
        labels = name in index and kind == "number" and plain(name) not in allowed
        require(not labels, "the data frame's index holds no times: use reset_index(drop=True), or name it 'time'")
    plan = plan_columns(names, kinds, look.layout, look.time_column)
    columns = [names[i] for i in plan.values]
    plan = _chosen(plan, columns, choose)
    for i in plan.values:
        table = table.set_column(i, names[i], _readings(table.column(i), names[i]))
    return _assemble(table, names, plan, columns, choose, look)


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
                raise _not_a_number(f"row {row} (from 0)", name, cell)
        return pa.chunked_array([pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())])
    try:
        return column.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise InputError(f"column {name!r} holds {column.type}, not numbers: convert it, or drop it") from None


def _assemble(table: Any, names: list[str], plan: Plan, columns: list[str], choose: Choose, look: Look) -> Parts:
    """Parts of a panel from an Arrow table whose readings are float64, and the names of all its columns of readings."""
    stamps = None
    if plan.time is not None:
        stamps = column_seconds(table.column(plan.time), names[plan.time], look.day_first)
    names_column = None if plan.sensor is None else table.column(plan.sensor)
    batches = table.select(plan.values).to_batches()
    del table  # for a text file the last reference: `_matrix` can then free each batch
    matrix = _matrix(batches, len(plan.values))
    if plan.sensor is None or stamps is None:
        return {"values": matrix, "sensors": [names[i] for i in plan.values], "timestamps": stamps}, columns
    parts = _pivot(stamps, names_column, names[plan.sensor], matrix[:, 0])
    columns, kept = parts["sensors"], choose(parts["sensors"])
    if len(kept) < len(columns):
        parts |= {"values": parts["values"][:, kept], "sensors": [columns[i] for i in kept]}
    return parts, columns


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
        raise InputError(f"two readings of {pair}, rows {first} and {row} (from 0): keep one")
    values = np.full(size, np.nan)
    values[cell] = readings
    return {"values": values.reshape(len(times), -1), "sensors": sensors, "timestamps": times}


READERS: dict[str, Callable[[Path, Look, Choose], Parts]] = {
    **dict.fromkeys((".csv", ".tsv"), _read_text),
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
}
