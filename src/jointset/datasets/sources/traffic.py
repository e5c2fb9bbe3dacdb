"""METR-LA and PEMS-BAY: two road networks, each at two public homes."""

from __future__ import annotations

import functools

from jointset.datasets.sources import dcrnn, facts, hugging_face
from jointset.datasets.sources.entry import Dataset, Home, Remote

DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
GRAPH = "https://raw.githubusercontent.com/liyaguang/DCRNN/602afd9d767d3aa1c9b3eac51710d6aeee12c227/data/sensor_graph"
PAGE = "https://github.com/liyaguang/DCRNN"
_freeways = functools.partial(  # what the two have in common
    Dataset,
    licence="MIT for the DCRNN code and graph files; no separate licence is stated for the readings",
    citation="Li, Yu, Shahabi and Liu: Diffusion Convolutional Recurrent Neural Network: Data-Driven Traffic "
    "Forecasting. ICLR 2018",
    url=PAGE,
    cadence=300,
    unit="mph",
    directed=True,
)


def _release(key: str, size: int, files: dict[str, str]) -> Home:
    """The DCRNN release: a store of readings of a known size, and files of the graph, each with its checksum."""
    (store, checksum), *graph = files.items()
    remotes = [Remote(f"{DRIVE}{key}", store, checksum, size)]
    remotes += [Remote(f"{GRAPH}/{file}", file, checksum) for file, checksum in graph]
    return Home("DCRNN release in HDF5", PAGE, tuple(remotes), dcrnn.parse, needs="h5py")


def _windows(name: str) -> Home:
    base = f"https://huggingface.co/datasets/witgaw/{name}"
    tables = [f"{part}.parquet" for part in ("train", "val", "test")]
    graph = ["adj_mx.npy", "adj_mx_mapping.json", "sensor_locations.csv", "distances.csv"]
    files = [*tables, *(f"sensor_graph/{file}" for file in graph)]
    remotes = tuple(Remote(f"{base}/resolve/main/{file}", file.rpartition("/")[2]) for file in files)
    return Home("Hugging Face windows in Parquet", base, remotes, hugging_face.parse)


METR_LA = _freeways(
    name="metr-la",
    title="METR-LA, freeway speeds of Los Angeles",
    source="loop detectors of the Los Angeles county freeways, released with DCRNN",
    shape=(34_272, 207),
    clock="Los Angeles clock as DCRNN wrote it, without a zone; regular through the clock change of 2012-03-11",
    notes="0 means no reading (8.1 % of the cells, 2,148 rows entirely); the paper's tables keep zeros as values. "
    "The adjacency has ones on its diagonal, which are not counted as edges",
    homes=(
        _release(
            "1pAGRfzMx6K9WWsfDcD1NMbIif0T0saFC",
            57_038_056,
            {
                "metr-la.h5": "64784b76d6fb8ec9bff4b6decafb354da2bb37840468fdccee5044e511277c05",
                "adj_mx.pkl": "a35687c6e15aa228dc45027b0ed2a0ea0f4ec78f573deb992c595092d12f61b3",
                "graph_sensor_locations.csv": "eb8ea96e07358b45d0e4ba3b89c2673fa20c54af50150249e627389e749ade6f",
                "distances_la_2012.csv": "a576a2a3e28dbb959be6da22688e24dd1b246b81264595e129147c256cd53de5",
            },
        ),
        _windows("METR-LA"),
    ),
    facts=(
        facts.period("2012-03-01T00:00:00", "2012-06-27T23:55:00"),
        facts.cadence(300),
        facts.missing(0),
        facts.share_of_zeros("8.109"),
        facts.rows_of_zeros(2_148),
        facts.directed_edges(1_515),
        facts.road_kernel(2584.45),
        facts.neighbours_alike(),
    ),
)

PEMS_BAY = _freeways(
    name="pems-bay",
    title="PEMS-BAY, freeway speeds of the San Francisco Bay Area",
    source="loop detectors of the California PeMS, released with DCRNN",
    shape=(52_116, 325),
    clock="California clock as DCRNN wrote it, without a zone; the hour skipped on 2017-03-12 is a gap",
    notes="January to June 2017 (the paper writes May). The adjacency has ones on its diagonal",
    homes=(
        _release(
            "1wD-mHlqAb2mtHOe_68fZvDh1LpDegMMq",
            135_930_936,
            {
                "pems-bay.h5": "65d69fb0a2323dba9867179eb7af47c8b814186bc459ff0a4937d21614153c8f",
                "adj_mx_bay.pkl": "116275f5704d0d492018e14c047f7ae5004385b450aa907f88424055a4a97370",
                "graph_sensor_locations_bay.csv": "276ee01059610774d4e59572507f7e32eaac21f1f5882fcd9e3d7d426a4b7a6c",
                "distances_bay_2017.csv": "e5feed06bfa1ba4c554a946d0e03d99f2018365eec5a8f28fd8504dea9d082b5",
            },
        ),
        _windows("PEMS-BAY"),
    ),
    facts=(
        facts.period("2017-01-01T00:00:00", "2017-06-30T23:55:00"),
        facts.cadence(300, gaps=[("2017-03-12T01:55:00", 3900)]),
        facts.missing(0),
        facts.share_of_zeros("0.00308"),
        facts.directed_edges(2_369),
        facts.road_kernel(3620.30),
        facts.neighbours_alike(),
    ),
)
