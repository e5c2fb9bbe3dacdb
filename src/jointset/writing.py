"""Panels, graphs and results to files, whole or not there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.errors import require
from jointset.graph import weighted_edges
from jointset.joint_predictor import Run
from jointset.panel import Panel
from jointset.predicting.passes import Counting, silent
from jointset.support.atomic import identity
from jointset.support.atomic import whole_file as whole_file
from jointset.support.atomic import writing_to as writing_to
from jointset.support.folders import model_place

if TYPE_CHECKING:
    import pandas as pd

ISO_SECONDS = "%Y-%m-%dT%H:%M:%SZ"
PIECE = 10_000  # rows written between two words on how long it will take
TABLES = (".csv", ".json", ".parquet")


def new_folder(path: str | Path) -> Path:
    """The folder, made if it is not there, refused at once when nothing can be written to it."""
    folder = Path(path)
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    return folder


def model_folder(path: str | Path) -> Path:
    """The folder of a model to be saved, refused at once when something else is there or nothing can be written."""
    folder = model_place(path)
    new_folder(folder if folder.is_dir() else folder.parent)
    return folder


def output_file(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    """The path of a file to be written, refused at once when its suffix is unknown or its folder cannot take it."""
    path = Path(path)
    require(path.suffix.lower() in suffixes, f"cannot write {path}: its name must end in {' or '.join(suffixes)}")
    require(path.parent.is_dir(), f"cannot write {path}: there is no folder {path.parent}; create it first")
    require(not path.is_dir(), f"cannot write {path}: it is a folder; give a file name")
    return path


def require_apart(written: Mapping[str, Path | None], read: Sequence[Path | None] = ()) -> None:
    """Refuse results, by their options, that would be written over each other or over a file that is read."""
    kept = {_file_of(path) for path in read if path is not None}
    taken: dict[object, str] = {}
    for option, path in written.items():
        if path is None:
            continue
        place = _file_of(path)
        require(place not in kept, f"{option} would overwrite {path}, which is read: give another name")
        other = taken.setdefault(place, option)
        require(other == option, f"{option} and {other} would both write {path}: give two names")


def _file_of(path: Path) -> object:
    """Which file a name stands for, also where it is not there yet."""
    return identity(path) or os.path.realpath(path)


def write_panel(panel: Panel, path: str | Path, counting: Counting = silent) -> None:
    """Write .npz (everything) or .csv (wide, ISO UTC times; the graph goes to a file of its own)."""
    path = output_file(path, (".npz", ".csv"))
    if path.suffix.lower() == ".npz":
        panel.to_npz(path)
        return
    with whole_file(path) as unfinished:
        _write_csv(panel.to_pandas(), unfinished, panel.timestamps is not None, counting)


def write_edges(panel: Panel, path: str | Path) -> None:
    """Write the graph of a panel as an edge list `source,target,weight`; both directions where it is directed."""
    import pandas as pd

    path = output_file(path, (".csv",))
    require(panel.adjacency is not None, "the panel has no graph to write")
    ends, weights = weighted_edges(panel.adjacency)
    listed = np.full(len(ends), True) if panel.directed else ends[:, 0] <= ends[:, 1]
    i, j = ends[listed].T
    names = np.array(panel.sensors, dtype=object)
    with whole_file(path) as unfinished:
        edges = pd.DataFrame({"source": names[i], "target": names[j], "weight": weights[listed]})
        edges.to_csv(unfinished, index=False)


def write_run(run: Run, path: str | Path, counting: Counting = silent) -> None:
    """Write one row a step: time, score, radius, inside, then lower and upper bound of every sensor."""
    table = run.to_pandas(bounds=True)
    write_table(table if run.timestamps is None else table.reset_index(), path, counting)


def write_table(table: pd.DataFrame, path: str | Path, counting: Counting = silent) -> None:
    """Write a table as .csv, .json or .parquet; times, or their text, in a column `time`."""
    path = output_file(path, TABLES)
    with whole_file(path) as unfinished:
        if path.suffix.lower() == ".parquet":
            table.to_parquet(unfinished, index=False)
        elif path.suffix.lower() == ".csv":
            _write_csv(table, unfinished, False, counting)
        else:
            _write_json(table, unfinished, counting)


def _write_csv(table: pd.DataFrame, path: Path, index: bool, counting: Counting) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for part in _pieces(table, counting):
            part.to_csv(file, index=index, header=file.tell() == 0, date_format=ISO_SECONDS)


def _write_json(table: pd.DataFrame, path: Path, counting: Counting) -> None:
    with path.open("w", encoding="utf-8") as file:
        for part in _pieces(table, counting):
            text = json.dumps([json_ready(row) for row in _records(part)], indent=1)
            file.write(text[:-2] if file.tell() == 0 else f",{text[1:-2]}")
        file.write("\n]\n" if len(table) else "[]\n")


def _pieces(table: pd.DataFrame, counting: Counting) -> Iterator[pd.DataFrame]:
    """The rows of a table, so many at a time, and at least one piece; it tells how many of them are written."""
    more = counting(len(table))
    for start in range(0, max(len(table), 1), PIECE):
        part = table.iloc[start : start + PIECE]
        yield part
        more(len(part))


def _records(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    import pandas as pd

    for row in table.to_dict("records"):
        cells: dict[str, Any] = {str(name): None if cell is pd.NA else cell for name, cell in row.items()}
        if "time" in cells and not isinstance(cells["time"], str):
            cells["time"] = cells["time"].strftime(ISO_SECONDS)
        yield cells


def json_ready(value: object) -> Any:
    """The value with NaN and infinities as None, which is all JSON has for them.

    >>> json_ready({"a": [1.0, float("inf")]})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
