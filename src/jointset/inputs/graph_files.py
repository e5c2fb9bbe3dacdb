"""Graph files: edge lists, matrices, .npy and .npz, brought into the order of the sensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.graph import Adjacency, check_adjacency, of_edges, thinned
from jointset.inputs.fleet import AS_IT_IS, LISTED, Fleet, Notice, warn
from jointset.support.files import NUMBER, existing_file, file_suffix, load_npz, load_numpy, naming, text_rows

EDGE_ENDS = {"source": "target", "from": "to"}
EDGE_WEIGHTS = ("weight", "cost")
BOTH_WAYS = ", or say --directed if rows are one-way, --symmetrize for their mean (directed=True, symmetrize=True)"


def read_graph(
    path: str | Path,
    sensors: Sequence[str],
    *,
    directed: bool = False,
    symmetrize: bool = False,
    columns: Sequence[str] | None = None,
    fleet: Fleet = AS_IT_IS,
    notice: Notice = warn,
) -> Adjacency:
    """Adjacency (N, N) from a file, in the order of `sensors`.

    - Edge list (.csv, .tsv): header `source,target[,weight]` or `from,to[,cost]`; weight 1 when the column is absent.
      A row fills both directions unless `directed`; sensors without a row are isolated. Weights are used as given;
      with `symmetrize` an edge whose two directions have a row each gets their mean.
    - Matrix (.csv, .tsv): names in the first line and the first column, in any order; or bare N x N numbers in sensor
      order.
    - `.npy`: N x N in sensor order. `.npz`: key `adjacency`, in the order of key `sensors` where there is one; or keys
      `edges` (E, 2), places of sensors, and `weights` (E,).

    A named graph over more sensors than asked for is restricted to them; a sensor it lacks is refused. A matrix comes
    back as it is, symmetric or not: the panel it goes to decides. Names may be the old ones of a fleet. Edges to
    sensors that are dropped are left out, and so are edges to others that are not in the data where the fleet ignores
    unknown names. A matrix without names may be in the order of `columns` instead, all those of the readings. From
    1,000 sensors on a graph with few edges comes back sparse (of scipy.sparse).
    """
    path = existing_file(path)
    suffix = file_suffix(path)
    names: Sequence[str] | None = None
    matrix: Adjacency
    with naming(path):
        if suffix in (".csv", ".tsv"):
            rows = list(text_rows(path))
            if _is_edge_list(rows[0][1]):
                return _from_edges(rows, sensors, directed, symmetrize, fleet, notice)
            matrix, names = _from_matrix(rows)
        elif suffix == ".npy":
            matrix = np.asarray(load_numpy(path))
        elif suffix == ".npz":
            arrays = load_npz(path)
            names = [str(name) for name in arrays["sensors"]] if "sensors" in arrays else None
            matrix = stored_graph(arrays, len(sensors if names is None else names))
            require(matrix is not None, f"no 'adjacency' among its arrays ({', '.join(arrays)}): add one (N, N)")
        else:
            raise InputError(f"cannot read a graph from {suffix or 'this'}: use .csv, .tsv, .npy or .npz")
        if names is None:
            names = columns if columns is not None and matrix.shape[:1] == (len(columns),) else sensors
        else:
            names = [fleet.rename.get(name, name) for name in names]
        order = _order(names, sensors)
        return thinned(check_adjacency(matrix, len(names), directed=True, sensors=names)[np.ix_(order, order)])


def stored_graph(arrays: Mapping[str, Array], n: int) -> Adjacency | None:
    """The adjacency (n, n) among the arrays of an npz file, or of the edges among them; None where there is none."""
    if "edges" not in arrays:
        return arrays.get("adjacency")
    edges = arrays["edges"]
    weights = arrays.get("weights", np.ones(edges.shape[:1]))
    sound = edges.ndim == 2 and edges.shape[1] == 2 and edges.dtype.kind in "iu" and weights.shape == (len(edges),)
    have = f"'edges' have shape {edges.shape} and dtype {edges.dtype}, 'weights' shape {weights.shape}"
    require(sound, f"{have}: give places of sensors (E, 2), whole numbers, and weights (E,)")
    require(weights.dtype.kind in "biuf", f"'weights' must be numbers, got dtype {weights.dtype}")
    require(bool(((edges >= 0) & (edges < n)).all()), f"an edge ends at no sensor: the places of {n} are 0 to {n - 1}")
    return of_edges(edges, weights, n)


def _is_edge_list(header: list[str]) -> bool:
    cells = [cell.strip().lower() for cell in header]
    return any(start in cells and end in cells for start, end in EDGE_ENDS.items())


def _from_edges(
    rows: list[tuple[int, list[str]]],
    sensors: Sequence[str],
    directed: bool,
    symmetrize: bool,
    fleet: Fleet,
    notice: Notice,
) -> Adjacency:
    """Adjacency of an edge list; a repeated edge must repeat its weight."""
    header = [cell.strip().lower() for cell in rows[0][1]]
    start = next(name for name in EDGE_ENDS if name in header)
    ends = header.index(start), header.index(EDGE_ENDS[start])
    weight = next((header.index(name) for name in EDGE_WEIGHTS if name in header), None)
    extra = [name for i, name in enumerate(header) if i not in (*ends, weight)]
    require(not extra, f"unknown columns {some(extra)} in the edge list: keep {start}, {EDGE_ENDS[start]} and weight")
    index = {name: i for i, name in enumerate(sensors)}
    weights: dict[tuple[int, int], float] = {}
    seen: dict[tuple[int, int], int] = {}
    given: set[tuple[int, int]] = set()
    unknown: list[str] = []
    for line, cells in rows[1:]:
        pair = [name for end in ends if (name := fleet.called(cells[end].strip())) is not None]
        strange = [name for name in pair if name not in index]
        if strange and not fleet.ignore_unknown:
            advice = "fix the name, or drop the edge; --ignore-unknown, in a cell ignore_unknown=yes, leaves it out"
            raise InputError(f"line {line}: sensor {strange[0]!r} is not in the data: {advice}")
        unknown += strange
        if strange or len(pair) < 2:
            continue
        i, j = index[pair[0]], index[pair[1]]
        w = 1.0 if weight is None else _number(cells[weight], line, header[weight])
        for edge in {(i, j)} if directed or symmetrize else {(i, j), (j, i)}:
            if edge in seen and weights[edge] != w:
                has = f"edge {pair[0]!r} - {pair[1]!r} has weight {w:g} but {weights[edge]:g} in line {seen[edge]}"
                raise InputError(f"line {line}: {has}: keep one{'' if (i, j) in given else BOTH_WAYS}")
            seen[edge], weights[edge] = line, w
        given.add((i, j))
    if unknown:
        notice(f"edges to sensors that are not in the data are left out: {some(sorted(set(unknown)), LISTED)}")
    if symmetrize and not directed:
        for i, j in given:
            weights[i, j] = weights[j, i] = (weights[i, j] + weights[j, i]) / 2.0 if (j, i) in given else weights[i, j]
    n = len(sensors)
    A = of_edges(np.array(list(weights), dtype=int).reshape(-1, 2), np.array(list(weights.values())), n)
    return check_adjacency(thinned(A), n, directed, sensors=sensors)


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
    require(not lacking, f"sensors not in the graph: {some(lacking)}; add them, or leave them out with --drop")
    return [index[name] for name in sensors]


def _number(cell: str, line: int, column: str | None) -> float:
    if not NUMBER.fullmatch(cell.strip()):
        where = f"line {line}" if column is None else f"line {line}, column {column!r}"
        raise InputError(f"{where}: {cell!r} is not a number: write an edge weight >= 0")
    return float(cell)
