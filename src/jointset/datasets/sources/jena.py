"""The weather station of the MPI for Biogeochemistry in Jena: half-year zips, each with a CSV in latin-1."""

from __future__ import annotations

import re
import warnings

import numpy as np

from jointset.datasets.sources import facts
from jointset.datasets.sources.entry import Dataset, DataWarning, Home, Paths, Remote
from jointset.datasets.sources.text_tables import clock_seconds, matrix, member, read_table, reading, without_repeats
from jointset.errors import require
from jointset.panel import Panel

PAGE = "https://www.bgc-jena.mpg.de/wetter/weather_data.html"
TIME = "Date Time"
SENTINEL = -9999.0


def parse(paths: Paths) -> Panel:
    """All half-years in the order of their names: every channel as published, -9999 included.

    Of rows with the same time stamp the first is kept and a `DataWarning` tells; a gap stays a gap.
    """
    halves = [_half(paths, name) for name in sorted(paths)]
    names = halves[0][0]
    for name, half in zip(sorted(paths), halves, strict=True):
        require(half[0] == names, f"{name} has other channels than {min(paths)}: are they of one station?")
    stamps, values, note = without_repeats(
        np.concatenate([half[1] for half in halves]), np.concatenate([half[2] for half in halves])
    )
    if note:
        warnings.warn(f"jena: {note}", DataWarning, stacklevel=2)
    return Panel(values, names, timestamps=stamps)


def _half(paths: Paths, name: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Channel names, seconds (T,) and values (T, N) of one zip."""
    with reading(paths[name]) as path, member(path, ".csv") as file:
        table = read_table(file, encoding="latin-1", text=[TIME])
        require(table.column_names[0] == TIME, f"the first column is not {TIME!r}: is it the right file?")
        channels = table.column_names[1:]
        stamps = clock_seconds(table.column(TIME), "%d.%m.%Y %H:%M:%S")
        return tuple(plain_name(channel) for channel in channels), stamps, matrix(table, channels)


def plain_name(channel: str) -> str:
    """Name of a channel in plain letters: quantity, underscore, unit.

    >>> [plain_name(name) for name in ("T (degC)", "rh (%)", "rho (g/m**3)", "max. PAR (µmol/m²/s)")]
    ['T_degC', 'rh_pct', 'rho_gm3', 'maxPAR_umolm2s']
    """
    quantity, _, unit = channel.partition("(")
    unit = unit.replace("%", "pct").replace("µ", "u").replace("²", "2")
    return "_".join(re.sub(r"[^A-Za-z0-9]", "", part) for part in (quantity, unit))


JENA = Dataset(
    name="jena",
    title="Jena weather station, year 2020",
    source="Max Planck Institute for Biogeochemistry, Jena, station on the institute's roof",
    licence="CC BY 4.0",
    citation="Max Planck Institute for Biogeochemistry, Jena: weather station data, mpi_roof, 2020",
    url=PAGE,
    shape=(52_695, 21),
    cadence=600,
    unit="a unit per channel, in its name",
    clock="clock of the station as written; the files state no zone, and no hour is skipped or doubled",
    sensor_word="channels",
    sentinels=(SENTINEL,),
    notes="The files have 52,696 rows: the stamp 2020-05-12 06:00 occurs twice (the first row is kept) and 2020-05-29 "
    "misses 100 minutes, which stay a gap. -9999 means no reading. The paper's T = 52,704 is the full year",
    homes=(
        Home(
            "MPI zips",
            PAGE,
            tuple(
                Remote(f"https://www.bgc-jena.mpg.de/wetter/{name}", name)
                for name in ("mpi_roof_2020a.zip", "mpi_roof_2020b.zip")
            ),
            parse,
        ),
    ),
    facts=(
        facts.period("2020-01-01T00:10:00", "2021-01-01T00:00:00"),
        facts.cadence(600, gaps=[("2020-05-29T09:30:00", 6000)]),
        facts.missing(81, sentinels=(SENTINEL,)),
    ),
)
