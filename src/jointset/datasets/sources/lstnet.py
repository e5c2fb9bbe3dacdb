"""Files of the LSTNet release: plain numbers in gzip, a row per step, without names or times."""

from __future__ import annotations

from jointset.datasets.sources import facts
from jointset.datasets.sources.entry import Dataset, Home, Paths, Remote, pick
from jointset.datasets.sources.text_tables import matrix, read_table, reading, regular
from jointset.panel import Panel

PAGE = "https://github.com/laiguokun/multivariate-time-series-data"
RAW = "https://raw.githubusercontent.com/laiguokun/multivariate-time-series-data/master"
CITATION = (
    "Lai, Chang, Yang and Liu: Modeling Long- and Short-Term Temporal Patterns with Deep Neural Networks. SIGIR 2018"
)


def parse_electricity(paths: Paths) -> Panel:
    """Hourly loads from 2012-01-01 on; clients are numbered from 0 in the order of the file."""
    return _numbered(paths, "client", "2012-01-01", 3600)


def parse_solar(paths: Paths) -> Panel:
    """Ten-minute power from 2006-01-01 on, the year the source gives; plants are numbered from 0."""
    return _numbered(paths, "plant", "2006-01-01", 600)


def _numbered(paths: Paths, word: str, start: str, step: int) -> Panel:
    with reading(pick(paths, ".txt.gz")) as path:
        table = read_table(path, header=False)
        columns = [name for name in table.column_names if table.column(name).null_count < table.num_rows]
        values = matrix(table, columns)  # without the empty column that a comma at the end of the lines would make
        names = tuple(f"{word}_{i}" for i in range(len(columns)))
        return Panel(values, names, timestamps=regular(start, step, len(values)))


ELEC = Dataset(
    name="elec",
    title="Electricity, hourly loads of 321 clients",
    source="UCI repository 321, made hourly by LSTNet",
    licence="CC BY 4.0 (UCI 321); the LSTNet repository states none",
    citation=f"{CITATION}; Trindade: ElectricityLoadDiagrams20112014. UCI, 2015. doi:10.24432/C58C86",
    url=PAGE,
    shape=(26_304, 321),
    cadence=3600,
    unit="kWh",
    clock="Portuguese clock; the file has no times, 2012-01-01 to 2014-12-31 is what its release says",
    sensor_word="clients",
    notes="Hourly, though the paper writes 15 min; an hour of zeros at the spring clock change",
    homes=(
        Home(
            "LSTNet gzip",
            PAGE,
            (
                Remote(
                    f"{RAW}/electricity/electricity.txt.gz",
                    "electricity.txt.gz",
                    "3c4c069588198c1fcc95cace7bb69c99922129edfd673b7286661dad20badefa",
                    17_993_794,
                ),
            ),
            parse_electricity,
        ),
    ),
    facts=(facts.period("2012-01-01T00:00:00", "2014-12-31T23:00:00"), facts.cadence(3600), facts.missing(0)),
)

SOLAR = Dataset(
    name="solar",
    title="Solar power of 137 plants in Alabama",
    source="NREL Solar Power Data for Integration Studies, 2006, through LSTNet",
    licence="free to use with credit to NREL; the LSTNet repository states none",
    citation=CITATION,
    url=PAGE,
    shape=(52_560, 137),
    cadence=600,
    unit="MW",
    clock="not stated; the file has no times, its 52,560 rows are the ten-minute steps of 2006 from 1 January",
    sensor_word="plants",
    notes="Modelled plants; more than half of the readings are the zeros of the nights",
    homes=(
        Home("LSTNet gzip", PAGE, (Remote(f"{RAW}/solar-energy/solar_AL.txt.gz", "solar_AL.txt.gz"),), parse_solar),
    ),
    facts=(facts.period("2006-01-01T00:00:00", "2006-12-31T23:50:00"), facts.cadence(600), facts.missing(0)),
)
