"""Files as they come: existence, suffix, rows of text, npz archives, and errors that name the file."""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointset.errors import InputError, require

NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)


def existing_file(path: str | Path) -> Path:
    """The path, refused when there is no such file, or when it is a folder or empty."""
    path = Path(path)
    require(path.exists(), f"no such file: {path}; check the path")
    require(path.is_file(), f"{path} is a folder, not a file: give the path of one file")
    require(path.stat().st_size > 0, f"{path} is empty: nothing to read")
    return path


def file_suffix(path: Path) -> str:
    """Lower-case suffix of a file, that of the file inside for `.gz`.

    >>> file_suffix(Path("Speeds.CSV.gz"))
    '.csv'
    """
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the path in front of every InputError raised inside, and make InputErrors of failed reads."""
    damaged = (OSError, EOFError, csv.Error, zlib.error, zipfile.BadZipFile)
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text: save it with UTF-8 encoding") from None
    except damaged as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: cannot be read ({reason}): is it damaged or cut short?") from None


def text_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row of a .csv or .tsv file (also .gz), all as long as the first one.

    Blank lines are skipped, except in a file of one column, where they are an empty cell.
    """
    delimiter = "\t" if file_suffix(path) == ".tsv" else ","
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        width = 0
        for cells in reader:
            width = width or len(cells)
            require(width > 0, "line 1 is blank: start with the header")
            if width == 1 and not cells:
                cells = [""]
            if cells and len(cells) != width:
                found = f"line {reader.line_num} has {len(cells)} cells, line 1 has {width}"
                raise InputError(f"{found}: give every row one cell per column")
            if cells:
                yield reader.line_num, cells
    require(width > 0, "no lines: nothing to read")


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an npz file; pickled objects are never loaded."""
    archive = load_numpy(path)
    require(not isinstance(archive, np.ndarray), "holds one bare array, not named ones: write it with numpy.savez")
    with archive:
        arrays = {}
        for key in archive.files:
            try:
                arrays[key] = archive[key]
            except ValueError:
                raise InputError(f"array {key!r} holds pickled objects, which are never loaded: store text") from None
        return arrays


def load_numpy(path: Path) -> Any:
    """A NumPy file; pickles are never loaded."""
    try:
        return np.load(path, allow_pickle=False)
    except ValueError:  # numpy takes any other content for a pickle
        raise InputError("not a NumPy file (damaged, or a pickle, which is never loaded): write it again") from None
