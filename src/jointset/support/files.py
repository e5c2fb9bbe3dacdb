"""Files as they come: existence, suffix, rows of text, npz archives, and errors that name the file."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointset.errors import InputError, require

NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
MIB = 2**20
MARKS = {b"PAR1": ".parquet", b"PK\x03\x04": ".npz", b"\x1f\x8b": ".csv.gz"}  # first bytes of what a pipe may hold


def existing_file(path: str | Path) -> Path:
    """The path, refused when there is no such file, or when it is a folder or empty."""
    path = Path(path)
    require(path.exists(), f"no such file: {path}; check the path")
    require(path.is_file(), f"{path} is a folder, not a file: give the path of one file")
    require(path.stat().st_size > 0, f"{path} is empty: nothing to read")
    return path


@contextmanager
def readable_file(path: str | Path) -> Iterator[Path]:
    """The path of a file that can be read more than once, and whose suffix says what it is.

    /dev/stdin and other pipes are copied to a temporary file first; what they hold is told by its first bytes.
    """
    path = Path(path)
    if not path.exists() or path.is_dir() or (path.is_file() and not str(path).startswith("/dev/")):
        yield existing_file(path)
        return
    with tempfile.TemporaryDirectory() as folder, path.open("rb") as given:
        start = given.read(4)
        require(start != b"", f"{path} is empty: nothing to read")
        suffix = next((suffix for mark, suffix in MARKS.items() if start.startswith(mark)), ".csv")
        copy = Path(folder) / f"readings{suffix}"
        with copy.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(given, file)
        yield copy


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


def delimiter_of(header: str) -> str:
    """What separates the cells of a header: of ',', ';' and tab the most frequent outside quotes, ',' where they tie.

    >>> delimiter_of('time;"Main St, north"'), delimiter_of("time,a;b")
    (';', ',')
    """
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=bare.count)


def decimal_point(cell: str) -> str:
    """A number with a decimal comma written with a point; any other text as it is.

    >>> decimal_point("-1,5"), decimal_point("1,234,567")
    ('-1.5', '1,234,567')
    """
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def opened_text(path: Path) -> Any:
    """A text file (also .gz), open for reading."""
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def file_delimiter(path: Path) -> str:
    """What separates the cells of a file: tabs in a .tsv, else what its first line says."""
    if file_suffix(path) == ".tsv":
        return "\t"
    with opened_text(path) as file:
        return delimiter_of(file.readline())


def text_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row of a .csv or .tsv file (also .gz), all as long as the first one.

    Blank lines are skipped, except in a file of one column, where they are an empty cell.
    """
    delimiter = file_delimiter(path)
    with opened_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        width = 0
        for cells in reader:
            width = width or len(cells)
            require(width > 0, "line 1 is blank: start with the header")
            if width == 1 and not cells:
                cells = [""]
            if cells and len(cells) != width:
                found = f"line {reader.line_num} has {len(cells)} cells, line 1 has {width}"
                way = "give every row one cell per column" if width > 1 else "drop the lines above the header"
                raise InputError(f"{found}: {way}")
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


class CountedFile:
    """The bytes of a file; told are MiB, to what `counting` makes when it is given how many there are."""

    def __init__(self, path: Path, counting: Callable[..., Callable[[int], None]]) -> None:
        self._file = path.open("rb")
        self._more, self._rest = counting(-(-path.stat().st_size // MIB), "MiB"), 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found = self._file.read(size)
        whole, self._rest = divmod(self._rest + len(found), MIB)
        if whole:
            self._more(whole)
        return found

    def readable(self) -> bool:
        """It is."""
        return True

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._file.closed

    def close(self) -> None:
        """Read no more."""
        self._file.close()
