"""The rows behind docs/results.md in one file: every seed of every row, and the commands that made them.

    python benchmarks/results_file.py FOLDER [FOLDER@COMMIT ...] [--since]

Merges result folders of `jointset bench` into docs/data/results.parquet; a row that was run again stands as the last
run gave it. With `--since` into docs/data/since/results.parquet: rows of methods that have changed since the grid was
run, of which not all could be run again; the page shows them apart. `FOLDER@COMMIT` names the commit of rows made from
a copy of the source that could not tell it. To start anew, delete the file. Quick looks and rows of a user's own files
are left out. The recipe of a learned filter is named also where it is the default; the column `run` is the place of the
row's command in the list under `runs` of the file's metadata. `jointset tables docs/data` reads the file as any other
folder of results.
"""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from jointset.methods import parse
from jointset.catalogue import LEARNED
from jointset.bench.results import COLUMNS, LATER, UNIT, WHOLE, WORDS, in_order, read_results, read_runs
from jointset.methods import FILTERS
from jointset.writing import whole_file

FILE = Path(__file__).parents[1] / "docs" / "data" / "results.parquet"
SINCE = FILE.parent / "since" / FILE.name
DECIMALS = dict.fromkeys(("joint", "infinite_share", "worst_window", "worst_hour"), 6)
DECIMALS |= {"width": 3} | dict.fromkeys(("width_full", "log_volume", "log_mean_volume", "joint_score"), 4)
LEFT_OUT = {"task": "", "version": ""}  # columns that are kept empty, for a small file
LEFT_OUT |= dict.fromkeys(("marginal", "winkler", "fit_seconds", "predict_seconds", "peak_mb"), float("nan"))


def read_file(path: Path = FILE) -> tuple[pd.DataFrame, list[dict]]:
    """Rows of the file, and the commands that made them."""
    table = parquet.read_table(path)
    rows = table.to_pandas()
    later = {
        name: blank for name, blank in LATER.items() if name not in rows
    }  # a file from before there was the column
    return rows.assign(**later), json.loads(table.schema.metadata[b"runs"])


def rows_of(folder: str) -> tuple[pd.DataFrame, list[dict]]:
    """Rows of a folder, each with the place of its run in the list of runs."""
    place, _, commit = folder.partition("@")
    rows, runs = read_results(place), [told(run) for run in read_runs(place)]
    rows = rows[rows["limit_steps"].eq(0) & ~rows["cell"].str.startswith("file:")].copy()
    if commit:
        rows["commit"] = commit
        runs = [run | {"commit": commit} for run in runs]
    rows["recipe"] = [recipe_of(method, recipe) for method, recipe in zip(rows["method"], rows["recipe"], strict=True)]
    begun = [pd.Timestamp(run["started"]) for run in runs]
    rows["run"] = [sum(at <= pd.Timestamp(started) for at in begun) - 1 for started in rows["started"]]
    return rows, runs


def told(run: dict) -> dict:
    """What is kept of a run: its command, without the folder it wrote to, and where and when it ran."""
    command = re.sub(r"(--out)[ =]\S+", r"\1 results", run["command"])
    return {"command": command} | {key: run[key] for key in ("started", "commit", "machine")}


def recipe_of(method: str, recipe: str) -> str:
    """The recipe by name, the default one too; empty for what is not trained by one."""
    base = parse(method).method
    return (recipe or getattr(FILTERS[base](), "recipe", "")) if base in LEARNED else ""


def merged(parts: list[tuple[pd.DataFrame, list[dict]]]) -> tuple[pd.DataFrame, list[dict]]:
    """Rows of several parts, one a unit: the last that went well; runs without a row are dropped."""
    runs: list[dict] = []
    tables = []
    for rows, of in parts:
        tables.append(rows.assign(run=rows["run"] + len(runs)))
        runs += of
    table = pd.concat(tables, ignore_index=True)
    table = table.assign(_ok=table["status"].eq("ok")).sort_values(["_ok", "started"], kind="stable")
    table = in_order(table.drop_duplicates(subset=[*UNIT], keep="last").drop(columns="_ok"))
    kept = sorted(set(table["run"]), key=lambda place: runs[place]["started"])
    return table.assign(run=table["run"].map({place: i for i, place in enumerate(kept)})), [runs[i] for i in kept]


def write_file(table: pd.DataFrame, runs: list[dict], path: Path = FILE) -> None:
    """Write the rows, rounded to a digit more than is shown of them."""
    table = table.round(DECIMALS).assign(**LEFT_OUT)
    types = {name: pa.string() if name in WORDS else pa.int64() if name in WHOLE else pa.float64() for name in COLUMNS}
    schema = pa.schema([*types.items(), ("run", pa.int16())], metadata={"runs": json.dumps(runs)})
    made = pa.Table.from_pandas(table[[*types, "run"]], schema=schema, preserve_index=False)
    with whole_file(path) as unfinished:
        parquet.write_table(
            made.replace_schema_metadata(schema.metadata), unfinished, compression="zstd", compression_level=19
        )


def main() -> None:
    folders = [word for word in sys.argv[1:] if word != "--since"]
    file = FILE if folders == sys.argv[1:] else SINCE
    parts = [read_file(file)] if file.exists() else []
    table, runs = merged([*parts, *(rows_of(folder) for folder in folders)])
    write_file(table, runs, file)
    print(f"{len(table):,} rows of {len(runs)} runs in {file}: {file.stat().st_size / 1024:,.0f} KiB")


if __name__ == "__main__":
    main()
