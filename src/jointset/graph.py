"""The graph of a panel: its files, its checks, its normalised shift and its modes.

An adjacency is a dense float64 array (N, N) of weights >= 0 in the panel's sensor order; `A[i, j]` is the weight of
the edge from sensor i to sensor j and 0 means no edge. Files are read by `read_graph`, whatever their own order.
"""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointset.errors import InputError, require

Array = NDArray[np.float64]

ROUNDING = 1e-6  # a float32 file may be asymmetric by its rounding, relative to its largest weight
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)
EDGE_ENDS = {"source": "target", "from": "to"}
EDGE_WEIGHTS = ("weight", "cost")


def symmetrize(adjacency: ArrayLike) -> Array:
    """(A + A') / 2: both directions of an edge get their mean weight.

    >>> symmetrize([[0.0, 1.0], [0.0, 0.0]])
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    A = np.asarray(adjacency, dtype=np.float64)
    return (A + A.T) / 2.0


def normalized_shift(adjacency: ArrayLike) -> Array:
    """D^-1/2 (A + I) D^-1/2 (N, N), D the row sums of A + I: symmetric, eigenvalues in (-1, 1], the largest 1.

    Self loops of A are dropped first, so that a file with ones on its diagonal (METR-LA) does not count them twice;
    a directed A is replaced by (A + A') / 2.

    >>> normalized_shift([[0.0, 1.0], [1.0, 0.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    A = symmetrize(adjacency)
    np.fill_diagonal(A, 1.0)
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    return A * np.outer(scale, scale)


def modes(shift: ArrayLike) -> tuple[Array, Array]:
    """Eigenvalues (N,), ascending, and orthonormal eigenvectors (N, N) in columns, of a symmetric shift.

    >>> modes([[0.5, 0.5], [0.5, 0.5]])[0].round(12) + 0.0
    array([0., 1.])
    """
    values, vectors = np.linalg.eigh(np.asarray(shift, dtype=np.float64))
    return values, vectors


def check_adjacency(
    adjacency: ArrayLike, n: int, directed: bool = False, *, sensors: Sequence[str] | None = None
) -> Array:
    """The adjacency as float64 (n, n), refused when it is of another size, not finite, negative or asymmetric.

    Asymmetry is allowed when `directed`, and up to float32 rounding always. `sensors` only serves the messages.

    >>> check_adjacency([[0, 1], [1, 0]], 2).dtype
    dtype('float64')
    """
    A = np.asarray(adjacency)
    require(A.dtype.kind in "biuf", f"adjacency must hold numbers, got dtype {A.dtype}: give edge weights")
    require(
        A.shape == (n, n),
        f"adjacency has shape {A.shape}, expected ({n}, {n}) for {n} sensors: give one row and column per sensor",
    )
    A = A.astype(np.float64)
    for wrong, fault in ((~np.isfinite(A), "not a finite number"), (A < 0, "negative")):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            edge = f"({i}, {j})" if sensors is None else f"from {sensors[i]!r} to {sensors[j]!r}"
            raise InputError(f"adjacency is {fault} {edge}: {A[i, j]:g}; use 0 for no edge, weights > 0 otherwise")
    gap = np.abs(A - A.T).max(initial=0.0)
    require(
        directed or gap <= ROUNDING * A.max(initial=0.0),
        f"adjacency is not symmetric, max |A - A'| = {gap:.4g}: use symmetrize=True for (A + A')/2, or directed=True",
    )
    return A


def read_graph(path: str | Path, sensors: Sequence[str], *, directed: bool = False) -> Array:
    """Adjacency (N, N) from a file, in the order of `sensors`.

    - Edge list (.csv, .tsv): header `source,target[,weight]` or `from,to[,cost]`; weight 1 when the column is absent.
      A row fills both directions unless `directed`; sensors without a row are isolated. Weights are used as given.
    - Matrix (.csv, .tsv): names in the first line and the first column, in any order; or bare N x N numbers in sensor
      order.
    - `.npy`: N x N in sensor order. `.npz`: key `adjacency`, in the order of key `sensors` where there is one.

    A named graph over more sensors than asked for is restricted to them; a sensor it lacks is refused. A matrix comes
    back as it is, symmetric or not: the panel it goes to decides.
    """
    path = existing_file(path)
    suffix = file_suffix(path)
    names: Sequence[str] | None = None
    with naming(path):
        if suffix in (".csv", ".tsv"):
            rows = list(text_rows(path))
            if _is_edge_list(rows[0][1]):
                return _from_edges(rows, sensors, directed)
            matrix, names = _from_matrix(rows)
        elif suffix == ".npy":
            matrix = np.asarray(_load(path))
        elif suffix == ".npz":
            arrays = load_npz(path)
            require("adjacency" in arrays, f"no 'adjacency' among its arrays ({', '.join(arrays)}): add one (N, N)")
            matrix = arrays["adjacency"]
            names = [str(name) for name in arrays["sensors"]] if "sensors" in arrays else None
        else:
            raise InputError(f"cannot read a graph from {suffix or 'this'}: use .csv, .tsv, .npy or .npz")
        order = range(len(sensors)) if names is None else _order(names, sensors)
        n = len(sensors) if names is None else len(names)
        return check_adjacency(matrix, n, directed=True, sensors=names)[np.ix_(order, order)]


def _is_edge_list(header: list[str]) -> bool:
    cells = [cell.strip().lower() for cell in header]
    return any(start in cells and end in cells for start, end in EDGE_ENDS.items())


def _from_edges(rows: list[tuple[int, list[str]]], sensors: Sequence[str], directed: bool) -> Array:
    """Adjacency of an edge list; a repeated edge must repeat its weight."""
    header = [cell.strip().lower() for cell in rows[0][1]]
    start = next(name for name in EDGE_ENDS if name in header)
    ends = header.index(start), header.index(EDGE_ENDS[start])
    weight = next((header.index(name) for name in EDGE_WEIGHTS if name in header), None)
    extra = [name for i, name in enumerate(header) if i not in (*ends, weight)]
    require(not extra, f"unknown columns {some(extra)} in the edge list: keep {start}, {EDGE_ENDS[start]} and weight")
    index = {name: i for i, name in enumerate(sensors)}
    A = np.zeros((len(sensors), len(sensors)))
    seen: dict[tuple[int, int], int] = {}
    for line, cells in rows[1:]:
        pair = tuple(cells[end].strip() for end in ends)
        for name in pair:
            require(name in index, f"line {line}: sensor {name!r} is not in the data: drop the edge or fix the name")
        i, j = index[pair[0]], index[pair[1]]
        w = 1.0 if weight is None else _number(cells[weight], line, header[weight])
        for edge in {(i, j)} if directed else {(i, j), (j, i)}:
            require(
                edge not in seen or A[edge] == w,
                f"line {line}: edge {pair[0]!r} - {pair[1]!r} has weight {w:g} but {A[edge]:g} in line "
                f"{seen.get(edge)}: keep one" + ("" if directed else ", or use directed=True if rows are one-way"),
            )
            seen[edge], A[edge] = line, w
    return check_adjacency(A, len(sensors), directed, sensors=sensors)


def _from_matrix(rows: list[tuple[int, list[str]]]) -> tuple[Array, list[str] | None]:
    """Matrix and its names, None when the file is bare numbers."""
    if NUMBER.fullmatch(rows[0][1][0].strip()):
        return np.array([[_number(cell, line, None) for cell in cells] for line, cells in rows]), None
    columns = [cell.strip() for cell in rows[0][1][1:]]
    names = [cells[0].strip() for _, cells in rows[1:]]
    require(
        set(names) == set(columns) and len(names) == len(columns),
        "neither an edge list (header source,target,weight) nor a matrix whose first line and first column hold the "
        "same sensor names nor bare numbers: use one of these",
    )
    place = _order(columns, names)
    matrix = np.array([[_number(cell, line, None) for cell in cells[1:]] for line, cells in rows[1:]])
    return matrix[:, place], names


def _order(names: Sequence[str], sensors: Sequence[str]) -> list[int]:
    """Place of every sensor among the names of a graph."""
    index = {name: i for i, name in enumerate(names)}
    twice = sorted({name for name in names if names.count(name) > 1}) if len(index) < len(names) else []
    require(not twice, f"graph names sensors more than once: {some(twice)}; keep one row and column for each")
    lacking = [name for name in sensors if name not in index]
    require(not lacking, f"sensors not in the graph: {some(lacking)}; add them, or select the others in the data")
    return [index[name] for name in sensors]


def _number(cell: str, line: int, column: str | None) -> float:
    if not NUMBER.fullmatch(cell.strip()):
        where = f"line {line}" if column is None else f"line {line}, column {column!r}"
        raise InputError(f"{where}: {cell!r} is not a number: write an edge weight >= 0")
    return float(cell)


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first few names, quoted, and how many more.

    >>> some(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(repr(str(name)) for name in names[:limit]) + more


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
    archive = _load(path)
    require(not isinstance(archive, np.ndarray), "holds one bare array, not named ones: write it with numpy.savez")
    with archive:
        arrays = {}
        for key in archive.files:
            try:
                arrays[key] = archive[key]
            except ValueError:
                raise InputError(f"array {key!r} holds pickled objects, which are never loaded: store text") from None
        return arrays


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except ValueError:  # numpy takes any other content for a pickle
        raise InputError("not a NumPy file (damaged, or a pickle, which is never loaded): write it again") from None
