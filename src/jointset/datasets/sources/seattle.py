"""Seattle loop detectors of 2015: a pickled pandas table, an adjacency in NumPy's format, and a list of mileposts.

The pickle is read without running anything in it (`pickles.read_frame`), in the layout pandas had when it was made. It
was not at hand when this was written; where it is of another layout, a table converted once is read in its place:

    pandas.read_pickle("speed_matrix_2015").to_csv("speed_matrix_2015.csv", index_label="time")

or `.to_hdf("speed_matrix_2015.h5", key="speed")`. Sensors and adjacency share the order of the table's columns, as the
release says of its list of mileposts, which is compared where it is there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jointset.datasets.sources import facts
from jointset.datasets.sources.dcrnn import read_store
from jointset.datasets.sources.entry import Dataset, Home, Paths, Remote, pick
from jointset.datasets.sources.pickles import read_frame
from jointset.datasets.sources.text_tables import clock_seconds, read_table, reading
from jointset.errors import InputError, require
from jointset.inputs.graph_files import read_graph
from jointset.panel import Panel

PAGE = "https://github.com/zhiyongc/Seattle-Loop-Data"
CONVERT = 'convert it once: pandas.read_pickle("{0}").to_csv("{0}.csv", index_label="time")'


def parse(paths: Paths) -> Panel:
    """Panel of `speed_matrix_2015` (pickle), `.csv` or `.h5`, with `Loop_Seattle_2015_A.npy`."""
    path = pick(paths, "speed_matrix")
    panel = Panel.read(path, layout="wide") if path.suffix == ".csv" else _speeds(path)
    if "nodes_loop_mp_list.csv" in paths:
        _compare(paths["nodes_loop_mp_list.csv"], panel.sensors)
    adjacency = read_graph(pick(paths, "Loop_Seattle_2015_A"), panel.sensors, directed=True)
    return panel.with_graph(adjacency, directed=True)


def _speeds(path: Path) -> Panel:
    if path.suffix == ".h5":
        values, sensors, stamps = read_store(path)
        return Panel(values, tuple(sensors), timestamps=stamps)
    with reading(path):
        try:
            values, sensors, index = read_frame(path)
        except InputError as error:
            raise InputError(f"{error}; {CONVERT.format(path.name)}") from None
        return Panel(values, tuple(sensors), timestamps=_seconds(index))


def _seconds(index: np.ndarray) -> np.ndarray:
    """Seconds of an index of times or of text."""
    import pyarrow as pa

    if index.dtype.kind == "M":
        return index.astype("datetime64[s]").astype(np.int64)
    return clock_seconds(pa.array([str(label) for label in index]))


def _compare(path: Path, sensors: tuple[str, ...]) -> None:
    with reading(path):
        table = read_table(path, keep=["milepost"], text=["milepost"])
        same = tuple(table.column("milepost").to_pylist()) == sensors
        require(same, "its mileposts are not the columns of the speeds, in their order: are they of one release?")


def _home(title: str, filename: str, *more: str, needs: str | None = None) -> Home:
    files = (filename, "Loop_Seattle_2015_A.npy", *more)
    return Home(title, PAGE, tuple(Remote(None, file) for file in files), parse, needs)


LOOP_SEATTLE = Dataset(
    name="loop-seattle",
    title="Seattle loop detectors, year 2015",
    source="Washington State freeways I-5, I-405, I-90 and SR-520, released by Cui et al.",
    licence="for research only, as its page says",
    citation="Cui, Henrickson, Ke and Wang: Traffic Graph Convolutional Recurrent Neural Network: A Deep Learning "
    "Framework for Network-Scale Traffic Learning and Forecasting. IEEE T-ITS, 2019. arXiv:1802.07007",
    url=PAGE,
    shape=(105_120, 323),
    cadence=300,
    unit="mph",
    clock="Seattle clock as written, 288 steps every day; the release states no zone",
    directed=True,
    notes="Speeds, though the paper writes flow. The release is a Google Drive folder without direct links. The year "
    "has 105,120 steps; the paper writes 87,648",
    homes=(
        _home("release, placed by hand", "speed_matrix_2015", "nodes_loop_mp_list.csv"),
        _home("release converted to CSV, placed by hand", "speed_matrix_2015.csv"),
        _home("release converted to HDF5, placed by hand", "speed_matrix_2015.h5", needs="h5py"),
    ),
    facts=(
        facts.period("2015-01-01T00:00:00", "2015-12-31T23:55:00"),
        facts.cadence(300),
        facts.missing(0),
        facts.neighbours_alike(),
    ),
)
