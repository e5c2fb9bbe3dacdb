"""UCI repository: Beijing air quality (501) and electricity load diagrams (321), both in zips."""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Callable
from typing import IO

import numpy as np

from jointset.datasets.sources import facts
from jointset.datasets.sources.entry import Dataset, Home, Paths, Remote, pick
from jointset.datasets.sources.text_tables import clock_seconds, matrix, member, members, read_table, reading
from jointset.errors import require
from jointset.panel import Panel

AIR = "https://archive.ics.uci.edu/dataset/501/beijing+multi+site+air+quality+data"
LOAD = "https://archive.ics.uci.edu/dataset/321/electricityloaddiagrams20112014"
INNER = "PRSA2017_Data_20130301-20170228.zip"
TIME_COLUMNS = ("year", "month", "day", "hour")


def parse_air(paths: Paths) -> Panel:
    """PM2.5 of every station in the zip of zips, stations by name; NA is missing."""
    with reading(pick(paths, ".zip")) as path, member(path, INNER) as file:
        with zipfile.ZipFile(io.BytesIO(file.read())) as archive:
            names = members(archive, ".csv")
            require(len(names) > 0, "no CSV in the inner zip: is it the right file?")
            stations = [_station(archive.open(name)) for name in names]
        names, stamps, columns = zip(*sorted(stations, key=lambda station: station[0]), strict=True)
        alike = all(np.array_equal(stamps[0], other) for other in stamps)
        require(alike, "the stations do not share their hours: is it the right file?")
        return Panel(np.column_stack(columns), names, timestamps=stamps[0])


def _station(file: IO[bytes]) -> tuple[str, np.ndarray, np.ndarray]:
    """Name, seconds (T,) and PM2.5 (T,) of one station."""
    with file:
        table = read_table(file, keep=[*TIME_COLUMNS, "PM2.5", "station"], text=["station"])
    names = table.column("station").unique().to_pylist()
    require(len(names) == 1, f"a station file names {len(names)} stations: is it the right file?")
    numbers = matrix(table, [*TIME_COLUMNS, "PM2.5"])
    year, month, day, hour = numbers[:, :4].astype(np.int64).T
    months = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    days = months.astype("datetime64[D]") + (day - 1)
    return names[0], days.astype("datetime64[s]").astype(np.int64) + 3600 * hour, numbers[:, 4]


def parse_load(paths: Paths) -> Panel:
    """Quarter-hour loads of all clients: cells divided by `;`, decimals by a comma, no name over the times."""
    with reading(pick(paths, ".zip")) as path, member(path, "LD2011_2014.txt") as file:
        table = read_table(file, delimiter=";", decimal=",", text=[""])
        clients = table.column_names[1:]
        require(table.column_names[0] == "" and len(clients) > 0, "the first line is not a list of clients")
        return Panel(matrix(table, clients), tuple(clients), timestamps=clock_seconds(table.column(0)))


def _zip(file: str, digest: str, size: int, page: str, parse: Callable[[Paths], Panel]) -> tuple[Home, ...]:
    """The home of a set of the repository: one archive."""
    remote = Remote(f"https://archive.ics.uci.edu/static/public/{file}", file.rpartition("/")[2], digest, size)
    return (Home("UCI zip", page, (remote,), parse),)


_uci = functools.partial(Dataset, licence="CC BY 4.0")

AQI = _uci(
    name="aqi",
    title="Beijing multi-site air quality, PM2.5",
    source="Beijing Municipal Environmental Monitoring Center, UCI repository 501",
    citation="Chen: Beijing Multi-Site Air Quality. UCI Machine Learning Repository, 2017. doi:10.24432/C5RK5G; "
    "Zhang, Guo, Dong, He, Xu and Chen: Cautionary tales on air-quality improvement in Beijing. Proc. R. Soc. A, 2017",
    url=AIR,
    shape=(35_064, 12),
    cadence=3600,
    unit="ug/m3",
    clock="Beijing time, UTC+8 all year: subtract 8 hours for UTC",
    sensor_word="stations",
    notes="The zip has no places of the stations. The paper speaks of 37 stations and 17,520 hours; this public set "
    "has 12 stations and 35,064 hours",
    homes=_zip(
        "501/beijing+multi+site+air+quality+data.zip",
        "b04da438b2f331ac0ffd45aebdfec0d20d2367feb5f6948c4b1f7ce1191e33c4",
        8_192_212,
        AIR,
        parse_air,
    ),
    facts=(
        facts.period("2013-03-01T00:00:00", "2017-02-28T23:00:00"),
        facts.cadence(3600),
        facts.missing(8_739),
        facts.share_of_zeros("0.000"),
    ),
)

ELEC_UCI = _uci(
    name="elec-uci",
    title="Electricity load diagrams, quarter hours of all 370 clients",
    source="Elergone, Portugal, UCI repository 321",
    citation="Trindade: ElectricityLoadDiagrams20112014. UCI Machine Learning Repository, 2015. doi:10.24432/C58C86",
    url=LOAD,
    shape=(140_256, 370),
    cadence=900,
    unit="kW",
    clock="Portuguese clock with 96 quarter hours every day: in March the skipped hour is zero, in October the doubled "
    "hour is summed; a stamp ends its quarter hour",
    sensor_word="clients",
    notes="Clients that came later read zero before. The paper's cell is `elec`, the hourly series of 321 clients that "
    "LSTNet made of this file by a rule that was not published in full",
    homes=_zip(
        "321/electricityloaddiagrams20112014.zip",
        "f6c4d0e0df12ecdb9ea008dd6eef3518adb52c559d04a9bac2e1b81dcfc8d4e1",
        261_335_609,
        LOAD,
        parse_load,
    ),
    facts=(facts.period("2011-01-01T00:15:00", "2015-01-01T00:00:00"), facts.cadence(900), facts.missing(0)),
)
