"""Tables in text files and zips, and the few steps from their columns to the arrays of a panel."""

from __future__ import annotations

import csv
import gzip
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.inputs.times import iso
from jointset.support.files import existing_file, naming

LARGEST_MEMBER = 2 << 30  # bytes a file in a zip may unpack to


def read_table(
    source: Path | IO[bytes],
    *,
    names: Sequence[str] | None = None,
    header: bool = True,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    text: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> Any:
    """Arrow table of delimited text (also .gz by file name): numbers, but for the columns named in `text`.

    Without a header columns are called `names`, or f0, f1, ...; `keep` reads only these columns. NA is missing.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with _opened(source) as file:
        columns = list(names or _first_line(file, header, delimiter, encoding))
        for name in (*keep, *text):
            require(name in columns, f"no column {name!r} among {some(columns)}: is it the right file?")
        # Types are given, not guessed: a column may begin with a year of whole zeros.
        types = {name: pa.string() if name in text else pa.float64() for name in keep or columns}
        try:
            return arrow_csv.read_csv(
                file,
                read_options=arrow_csv.ReadOptions(column_names=columns, encoding=encoding, block_size=1 << 24),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, include_columns=list(keep), null_values=["", "NA", "NaN"], decimal_point=decimal
                ),
            )
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0][:160]
            raise InputError(f"not the table expected ({reason}): is it the right file?") from None


@contextmanager
def _opened(source: Path | IO[bytes]) -> Iterator[Any]:
    """A stream of bytes that can be read from its start again."""
    if not isinstance(source, Path):
        yield source
    else:
        with gzip.open(source) if source.suffix == ".gz" else source.open("rb") as file:
            yield file


def _first_line(file: IO[bytes], header: bool, delimiter: str, encoding: str) -> list[str]:
    """Column names from a header, which is then behind us, or f0, f1, ... for a first line of data."""
    cells = next(csv.reader([file.readline().decode(encoding).lstrip("\ufeff")], delimiter=delimiter), [])
    if header:
        return [cell.strip() for cell in cells]
    file.seek(0)
    return [f"f{i}" for i in range(len(cells))]


def matrix(table: Any, names: Sequence[str]) -> Array:
    """Read-only float64 (T, N) of the named columns of an Arrow table, nulls as NaN."""
    import pyarrow as pa

    out = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        require(name in table.column_names, f"no column {name!r} among {some(table.column_names)}")
        out[:, j] = table.column(name).cast(pa.float64()).to_numpy()
    out.flags.writeable = False  # a panel then takes it without a copy
    return out


def clock_seconds(column: Any, pattern: str | None = None) -> Array:
    """Int64 seconds of wall-clock text (`pattern` as for strptime, default ISO), read as if it were UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        times = column.cast(pa.timestamp("ns")) if pattern is None else pc.strptime(column, pattern, "s")
        times = times.cast(pa.timestamp("s"))
    except pa.ArrowException as error:
        raise InputError(f"a time cannot be read ({str(error).splitlines()[0][:120]}): is it the right file?") from None
    require(times.null_count == 0, "a row has no time: is the file cut short?")
    return times.cast(pa.int64()).to_numpy()


def regular(start: str, step: int, length: int) -> Array:
    """Int64 seconds of `length` stamps every `step` seconds from an ISO date, for files without times.

    >>> regular("1970-01-02", 3600, 2)
    array([86400, 90000])
    """
    return int(np.datetime64(start, "s").astype(np.int64)) + step * np.arange(length, dtype=np.int64)


def without_repeats(stamps: Array, values: Array) -> tuple[Array, Array, str]:
    """Stamps and rows with the first of every run of equal stamps, and a sentence on what was dropped."""
    again = np.flatnonzero(np.diff(stamps) == 0) + 1
    if not again.size:
        return stamps, values, ""
    same = np.array_equal(values[again], values[again - 1], equal_nan=True)
    rows = f"{again.size} row{'s' * (again.size > 1)} with a repeated time stamp dropped, the first kept"
    note = f"{rows}: {iso(stamps[again[0]])}, {'same' if same else 'other'} values"
    return np.delete(stamps, again), np.delete(values, again, axis=0), note


@contextmanager
def member(source: Path | IO[bytes], ending: str) -> Iterator[IO[bytes]]:
    """The one file of a zip whose name ends so, opened."""
    with zipfile.ZipFile(source) as archive:
        names = members(archive, ending)
        require(len(names) == 1, f"expected one {ending} in the zip, found {len(names)}: is it the right file?")
        with archive.open(names[0]) as file:
            yield file


def members(archive: zipfile.ZipFile, ending: str) -> list[str]:
    """Names in a zip that end so, sorted; a file that would unpack to more than 2 GiB is refused."""
    found = [info for info in archive.infolist() if info.filename.endswith(ending) and "__MACOSX" not in info.filename]
    for info in found:
        require(info.file_size <= LARGEST_MEMBER, f"{info.filename} in the zip would unpack to {info.file_size} bytes")
    return sorted(info.filename for info in found)


@contextmanager
def reading(path: Path) -> Iterator[Path]:
    """An existing file whose name goes in front of every complaint about it."""
    path = existing_file(path)
    with naming(path):
        yield path
