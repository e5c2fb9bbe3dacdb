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

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import BadRow, InputError, require, some
from jointset.graph import by_label, is_sparse
from jointset.inputs.fleet import AS_IT_IS, Fleet, Notice, kept_columns, match_columns, warn
from jointset.inputs.graph_files import read_graph, stored_graph
from jointset.inputs.layout import Layout, Plan, cell_kind, plan_columns
from jointset.inputs.panel_checks import read_only
from jointset.inputs.reading_tables import (
    MISSING,
    Choose,
    Look,
    Parts,
    assemble,
    chosen,
    from_table,
    not_a_number,
)
from jointset.panel import Panel
from jointset.support.files import (
    NUMBER,
    CountedFile,
    decimal_point,
    file_delimiter,
    file_suffix,
    load_npz,
    naming,
    readable_file,
    text_rows,
)

if TYPE_CHECKING:
    import pandas as pd


LARGE = 128 * 2**20  # bytes of a file from which on it takes seconds, so that one is told how much of it was read
TEXT = (".csv", ".tsv")
NULLS = [space + mark for space in ("", " ") for mark in MISSING]


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
    counting: Callable[..., Callable[[int], None]] | None = None,
) -> Panel:
    """Panel of a .csv, .tsv (also .gz), .parquet or .npz file; the module's first lines give the rules.

    `graph`, a file for `read_graph` or an array (N, N) in sensor order, also of scipy.sparse, or a data frame with the
    names of sensors, replaces the adjacency of an npz file. An asymmetric one needs `symmetrize`, which makes it
    (A + A')/2, or `directed`, which keeps it.
    `fleet` says which columns are renamed or dropped, in a graph file too. With `sensors`, those of a model, the panel
    has just these, in their order, missing where the file has none, and no graph. `notice` is told what was left out or
    is missing. With `day_first` times may be written 31/12/2012 23:55 or 31.12.2012, without it 12/31/2012 11:55 PM.
    The path may be /dev/stdin or another pipe. Of a text file `counting` is given how many MiB it has, and makes the
    function that is told of so many more.
    """
    look = Look(layout, time_column, day_first, counting)

    def choose(names: Sequence[str]) -> list[int]:
        kept = kept_columns(names, fleet, notice) if sensors is None else match_columns(names, sensors, fleet, notice)
        return [*kept]

    with readable_file(path) as file, naming(Path(path)), naming_lines(file):
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
    given: Any
    if isinstance(graph, (str, Path)):
        ways = {"directed": directed, "symmetrize": symmetrize}
        given = read_graph(graph, panel.sensors, **ways, columns=columns, fleet=fleet, notice=notice)
    else:
        given = by_label(graph, panel.sensors, "index", "columns")
        if np.shape(given) == (len(columns), len(columns)):
            kept = [columns.index(name) for name in panel.sensors]
            given = (given.tocsr() if is_sparse(given) else np.asarray(given))[np.ix_(kept, kept)]
    return panel.with_graph(given, directed=directed, symmetrize=symmetrize)


@contextmanager
def naming_lines(file: Path) -> Iterator[None]:
    """In errors about rows of a text file, name its lines."""
    try:
        yield
    except BadRow as error:
        if file_suffix(file) not in TEXT:
            raise
        lines = dict(enumerate(line for line, _ in islice(text_rows(file), 1, None)))  # of the rows after the header
        raise InputError(error.say(lambda row: f"line {lines.get(row, row + 2)}")) from None


def _like_model(panel: Panel, sensors: Sequence[str]) -> Panel:
    """The panel with one column for every sensor of a model, missing where it has none."""
    place = {name: i for i, name in enumerate(sensors)}
    values = np.full((len(panel), len(sensors)), np.nan)
    values[:, [place[name] for name in panel.sensors]] = panel.values
    return Panel(read_only(values), tuple(sensors), panel.timestamps)


def panel_from_pandas(
    frame: pd.DataFrame, *, layout: Layout = "auto", time_column: str | None = None, day_first: bool = False
) -> Panel:
    """Panel of a data frame, wide or long, by the same rules; time may be its index or a column.

    One of another library (polars, pyarrow) is taken by its `to_pandas`.
    """
    import pyarrow as pa

    given: Any = frame
    frame = given if hasattr(given, "iloc") or not hasattr(given, "to_pandas") else given.to_pandas()
    require(hasattr(getattr(frame, "columns", None), "nlevels"), f"a data frame is needed, got {type(given).__name__}")
    require(frame.columns.nlevels == 1, "the data frame has several levels of column names: flatten them first")
    frame = frame.rename(columns=str)
    twice = [str(name) for name in frame.columns[frame.columns.duplicated()]]
    require(not twice, f"duplicated columns: {some(twice)}; rename or drop the repeats")
    for name in [name for name, dtype in frame.dtypes.items() if dtype == "object"]:
        try:
            pa.array(frame[name], from_pandas=True)
        except pa.ArrowException:  # numbers and text mixed: as text, the cell to blame can be named
            frame[name] = frame[name].map(str, na_action="ignore")
    try:
        table = pa.Table.from_pandas(frame)
    except pa.ArrowException as error:
        raise InputError(
            f"the data frame cannot be read ({_first_line(error)}): convert that column, or drop it"
        ) from None
    return Panel(**from_table(table, Look(layout, time_column, day_first))[0])


def _read_npz(path: Path) -> dict[str, Any]:
    arrays = load_npz(path)
    for key in ("values", "sensors"):
        require(key in arrays, f"no {key!r} among its arrays ({', '.join(arrays)}): a panel needs values and sensors")
    known = ("values", "sensors", "timestamps", "directed", "coordinates", "distances")
    graph = stored_graph(arrays, len(arrays["sensors"]))
    return {key: arrays[key] for key in known if key in arrays} | ({} if graph is None else {"adjacency": graph})


def _read_parquet(path: Path, look: Look, choose: Choose) -> Parts:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"not a readable Parquet file ({_first_line(error)}): write it again") from None
    return from_table(table, look, choose)


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
    plan = chosen(plan, columns, choose)
    table = _arrow_table(path, form, skip, names, plan, width, look)
    return assemble(table, names, plan, columns, choose, look)


class Form(NamedTuple):
    """How the numbers of a text file are written."""

    delimiter: str
    decimal: str

    def plain(self, cell: str) -> str:
        """A cell with a point in its number."""
        return decimal_point(cell) if self.decimal == "," else cell


def _form(path: Path, first: list[list[str]]) -> Form:
    """The form of a file from its first rows: decimal commas where ';' separates cells and no number has a point.

    Where these have neither, the first number that has one decides.
    """
    delimiter = file_delimiter(path)
    if delimiter != ";":
        return Form(delimiter, ".")
    marks = {_mark(cell.strip()) for row in first for cell in row}
    if not marks & {".", ","}:
        rest = (_mark(cell.strip()) for _, row in islice(text_rows(path), 1 + len(first), None) for cell in row)
        marks = {next((mark for mark in rest if mark), ",")}
    return Form(delimiter, "." if "." in marks else ",")


def _mark(cell: str) -> str:
    """The decimal mark of a number; empty where it has none."""
    found = "." if "." in cell else "," if "," in cell else ""
    return found if found and NUMBER.fullmatch(cell.replace(",", ".", 1)) else ""


def _check_header(names: list[str], plan: Plan) -> None:
    """Refuse a first line that is data; names made of digits are names when they are distinct."""
    sensors = [names[i] for i in plan.values]
    numbers = all(NUMBER.fullmatch(name) for name in sensors) and plan.sensor is None
    distinct = all(name.isdigit() for name in sensors) and len(set(sensors)) == len(sensors)
    dated = plan.time is not None and cell_kind(names[plan.time]) != "text" and names[plan.time] != ""
    found = f"the first line holds data ({some(names, 3)}), not names"
    require(not dated and (distinct or not numbers), f"{found}: add a header line with the sensor names")


def _arrow_table(path: Path, form: Form, skip: int, names: list[str], plan: Plan, row_bytes: int, look: Look) -> Any:
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
        large = path.suffix != ".gz" and path.stat().st_size > LARGE
        return csv.read_csv(CountedFile(path, look.counting) if large and look.counting else path, **options)
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
                return not_a_number(f"line {line}", names[i], cells[i])
    return InputError(f"cannot be read ({_first_line(error)}): check the file")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


READERS: dict[str, Callable[[Path, Look, Choose], Parts]] = {
    **dict.fromkeys(TEXT, _read_text),
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
}
