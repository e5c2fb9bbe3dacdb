"""ETTh1 of the Informer release: a CSV with a date and seven channels.

A Parquet copy with the same columns (such as a Hugging Face one) is read too. The layout of witgaw/ETT, which the paper
names, could not be verified, so no link to it is given here.
"""

from __future__ import annotations

from jointset.datasets.sources import facts
from jointset.datasets.sources.entry import Dataset, Home, Paths, Remote, pick
from jointset.errors import require
from jointset.panel import Panel

PAGE = "https://github.com/zhouhaoyi/ETDataset"
CHANNELS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")


def parse(paths: Paths) -> Panel:
    """Panel of ETTh1.csv or ETTh1.parquet: `date` and the seven channels."""
    path = pick(paths, "ETTh1")
    panel = Panel.read(path, layout="wide", time_column="date")
    same = set(panel.sensors) == set(CHANNELS)
    require(same, f"{path}: expected the channels {', '.join(CHANNELS)}, found {', '.join(panel.sensors)}")
    return panel.select(list(CHANNELS))


ETT = Dataset(
    name="ett",
    title="Electricity transformer ETTh1, loads and oil temperature",
    source="an electricity transformer in China, released with Informer",
    licence="CC BY-ND 4.0",
    citation="Zhou, Zhang, Peng, Zhang, Li, Xiong and Zhang: Informer: Beyond Efficient Transformer for Long Sequence "
    "Time-Series Forecasting. AAAI 2021",
    url=PAGE,
    shape=(17_420, 7),
    cadence=3600,
    unit="MW, MVAr and degrees C",
    clock="local clock of a Chinese county as written; the release states no zone",
    sensor_word="channels",
    homes=(
        Home(
            "Informer CSV",
            PAGE,
            (
                Remote(
                    "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/ETT-small/ETTh1.csv",
                    "ETTh1.csv",
                    "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
                ),
            ),
            parse,
        ),
        Home("a copy in Parquet, placed by hand", PAGE, (Remote(None, "ETTh1.parquet"),), parse),
    ),
    facts=(
        facts.period("2016-07-01T00:00:00", "2018-06-26T19:00:00"),
        facts.cadence(3600),
        facts.missing(0),
        facts.share_of_zeros("0.996"),
    ),
)
