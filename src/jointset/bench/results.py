"""The folder of a benchmark: one Parquet file for every finished task, traces over time beside it, and how it was run.

`DIR/TASK.parquet` holds the rows of a task, `DIR/_traces/TASK.npz` the course of its first seed, `DIR/_run.json` the
commands that filled the folder. Every file is written to a temporary name and renamed, so each is whole or not there.
Names that begin with `_` or `.` are no tables: `pandas.read_parquet(DIR)` reads all rows, those that `read_results`
leaves out as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.writing import json_ready, whole_file

if TYPE_CHECKING:
    import pandas as pd

WORDS = (
    *("cell", "protocol", "backbone", "method", "status", "error"),
    *("version", "commit", "started", "recipe", "pilot", "device", "data", "note", "task"),
)
WHOLE = ("seed", "n", "n_calibration", "n_test", "limit_steps", "horizon")
AHEAD = ("ahead_joint", "ahead_log_volume", "ahead_lowest", "ahead_highest", "ahead_rmse")  # of `bench --horizon`
STEADY = (  # coverage over time: of rolling windows, and of misses in a row
    *(f"gap_{window}{what}" for window in (30, 100, 500) for what in ("", "_p90")),
    "off_30",
    "longest_misses",
)
FIGURES = (  # of a run
    *("joint", "marginal", "width", "width_full", "log_volume"),
    "log_mean_volume",  # log of the mean volume^(1/N)
    "winkler",
    "joint_score",  # interval score of the joint sets, in units of volume^(1/N)
    "infinite_share",
    "worst_window",
    "worst_hour",  # lowest coverage of an hour of the day (UTC), where rows have times
    *STEADY,
    *AHEAD,  # sets of the steps ahead: all at once, and the steps that are covered least and most
)
SPENT = ("fit_seconds", "predict_seconds", "peak_mb")
COLUMNS = (
    *("cell", "protocol"),
    "backbone",  # `own`: the row has a mean of its own
    "method",  # METHOD[:GEOMETRY][+WRAP]
    "seed",
    "n",  # sensors; 0 where the cell could not be had
    *("alpha", *FIGURES, "n_calibration", "n_test", *SPENT),
    "status",  # ok or error
    *("error", "version", "commit"),
    "started",  # ISO 8601, UTC
    "limit_steps",  # 0: none
    "recipe",  # '': the default
    "pilot",  # block that the shape is fitted on; '': the protocol's own
    "horizon",  # steps ahead that there are sets for; 0: the next one alone
    "device",
    "data",  # a file of one's own: short digest of it and of its graph file; '': other cells, or not known
    "note",  # what is to be known of the row, in words
    "task",
)
UNIT = ("cell", "protocol", "backbone", "method", "seed", "alpha", "limit_steps", "recipe", "pilot")  # one row
KEY = (*UNIT, "horizon", "data")  # a row as a task asks for it: with its steps ahead, of the file as it is now
LATER: dict[str, Any] = {
    **dict.fromkeys(("pilot", "data", "note"), ""),
    **dict.fromkeys(("log_mean_volume", "joint_score", "worst_hour", *STEADY, *AHEAD), float("nan")),
    "horizon": 0,
}  # columns that older files lack, and what stands for them
MEASURED = (*SPENT, "version", "commit", "started", "task")  # differ by run
TRACES, RUNS = "_traces", "_run.json"


def read_results(folder: str | Path) -> pd.DataFrame:
    """All rows of the finished tasks of a folder in the order of cells and methods, one row a unit: the last one.

    A file that has changed has rows of several contents: those of the content that was run last are kept.
    """
    import pyarrow as pa

    files = sorted(file for file in existing_folder(folder).glob("*.parquet") if file.name[0] not in "._")
    tables = [_table(file) for file in files]
    if not tables:
        return empty()
    table = _of_last_data(pa.concat_tables(tables).to_pandas())
    # a row that went well stands before one that failed, whichever came last
    table = table.assign(_ok=table["status"].eq("ok")).sort_values(["_ok", "started"], kind="stable")
    table = table.drop_duplicates(subset=[*UNIT], keep="last").drop(columns="_ok")
    return in_order(table)


def _of_last_data(table: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of a file as it was before: rows of different readings never stand under one cell.

    A file that could not be read has errors without a digest: they tell nothing of what it holds, and hide no row.
    """
    unread = table["data"].eq("") & table["status"].ne("ok")
    left_out: list[Any] = []
    known = table[table["cell"].str.startswith("file:") & ~unread].sort_values("started", kind="stable")
    last = known.drop_duplicates(subset="cell", keep="last")
    for cell, data, started in zip(last["cell"], last["data"], last["started"], strict=True):
        other = table["cell"].eq(cell) & table["data"].ne(data) & ~(unread & table["started"].gt(started))
        left_out += table.index[other].tolist()
    return table.drop(index=left_out)


def empty() -> pd.DataFrame:
    """A table without rows."""
    import pandas as pd

    kinds = {name: "str" if name in WORDS else "int64" if name in WHOLE else "float64" for name in COLUMNS}
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows sorted by unit, methods as in the catalogue: an order that does not depend on who finished first."""
    from jointset.paper_rows import CATALOGUE

    place = {entry.name: i for i, entry in enumerate(CATALOGUE)}
    keyed = table.assign(_place=[place.get(name, len(place)) for name in table["method"]])
    keys = ["cell", "protocol", "backbone", "_place", "method", "alpha", "limit_steps", "recipe", "pilot", "seed"]
    return keyed.sort_values(keys, kind="stable").drop(columns="_place").reset_index(drop=True)


def read_trace(folder: str | Path, task: str) -> dict[str, dict[str, Array]]:
    """Arrays over time of every method of a task (its first seed), by method and name; empty where there are none.

    score, radius, inside, width_full and, where there are, timestamps (T,); outside, blame and sensors (N,).
    """
    file = Path(folder) / TRACES / f"{task}.npz"
    if not file.is_file():
        return {}
    traces: dict[str, dict[str, Array]] = {}
    with np.load(file, allow_pickle=False) as stored:
        for key in stored.files:
            method, _, name = key.rpartition("|")
            traces.setdefault(method, {})[name] = stored[key]
    return traces


def read_runs(folder: str | Path) -> list[dict[str, Any]]:
    """The commands that filled a folder, oldest first, with version, machine and time."""
    file = Path(folder) / RUNS
    if not file.is_file():
        return []
    try:
        runs = json.loads(file.read_text())
    except ValueError as error:
        raise InputError(f"{file} is not valid JSON ({error}): delete it, the results do not depend on it") from None
    require(isinstance(runs, list), f"{file} holds no list of runs: delete it, the results do not depend on it")
    return runs


def write_rows(folder: str | Path, task: str, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write the rows of a task, all columns given."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, _arrow(pa, name)) for name in COLUMNS])
    table = pa.Table.from_pylist([{name: row[name] for name in COLUMNS} for row in rows], schema=schema)
    path = Path(folder) / f"{task}.parquet"
    with whole_file(path) as unfinished:
        parquet.write_table(table, unfinished)
    return path


def write_trace(folder: str | Path, task: str, traces: Mapping[str, Mapping[str, Array]]) -> None:
    """Write the arrays over time of a task, by method and name."""
    if not traces:
        return
    target = Path(folder) / TRACES / f"{task}.npz"
    target.parent.mkdir(exist_ok=True)
    arrays = {f"{method}|{name}": array for method, parts in traces.items() for name, array in parts.items()}
    # higher levels take twice as long and save 2 %
    with whole_file(target) as unfinished, ZipFile(unfinished, "w", ZIP_DEFLATED, compresslevel=1) as stored:
        for name, array in arrays.items():
            with stored.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.asarray(array), allow_pickle=False)


def write_run(folder: str | Path, run: Mapping[str, object]) -> None:
    """Append one command to those that filled a folder."""
    runs = [*read_runs(folder), dict(run)]
    with whole_file(Path(folder) / RUNS) as unfinished:
        unfinished.write_text(json.dumps(json_ready(runs), indent=1) + "\n")


def existing_folder(folder: str | Path) -> Path:
    """The folder, refused where there is none."""
    path = Path(folder)
    require(path.is_dir(), f"no folder {path}: `jointset bench --out {path}` makes one")
    return path


def _table(file: Path) -> Any:
    """The Arrow table of one file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)  # small: threads take longer
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file} cannot be read ({reason}): delete it, the next run does its rows again") from None
    present = set(table.column_names)
    for name in set(LATER) - present:
        table = table.append_column(name, pa.array([LATER[name]] * len(table), _arrow(pa, name)))
    gone = [name for name in COLUMNS if name not in present and name not in LATER]
    require(not gone, f"{file} has no column {', '.join(gone)}: it is no result of `jointset bench`; move it elsewhere")
    return table.select([*COLUMNS])


def _arrow(pa: Any, name: str) -> Any:
    return pa.string() if name in WORDS else pa.int64() if name in WHOLE else pa.float64()


def keys_of(table: pd.DataFrame) -> list[tuple]:
    """The key of every row, in the order of `KEY`."""
    return list(table[[*KEY]].itertuples(index=False, name=None))


def without_horizon(key: tuple) -> tuple:
    """The key of the same row for the next step alone, which a row with steps ahead holds too."""
    return (*key[:-2], 0, key[-1])
