"""Reading a wide CSV file of 10^6 rows and 50 sensors: time and peak memory, against pandas in the same run."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from table import show  # first: sets the number of threads

import numpy as np

SENSORS = 50
CHUNK = 100_000
OURS = "from jointset import Panel; values = Panel.read(path).values"
PEER = "import pandas; values = pandas.read_csv(path, index_col=0, parse_dates=True).to_numpy()"
MEASURE = """
import sys, time
import numpy
path, start = sys.argv[1], time.perf_counter()
{read}
seconds = time.perf_counter() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, int(peak.split()[1]) * 1024, values.nbytes, float(numpy.nansum(values)))
"""


class Reading(NamedTuple):
    seconds: float  # imports included
    peak: float  # bytes the process held at most, interpreter and libraries included
    array: float  # bytes of the readings
    total: float  # sum of the readings, to see that both read the same


def write(path: Path, rows: int) -> None:
    """A file of numbers with four decimals, a minute apart, one in a hundred missing."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    names = ["time", *(f"s{i:02d}" for i in range(SENSORS))]
    schema = pa.schema([("time", pa.timestamp("s")), *((name, pa.float64()) for name in names[1:])])
    with csv.CSVWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            stamps = pa.array((60 * (start + np.arange(n))).astype("datetime64[s]"))
            values = rng.normal(50, 10, (n, SENSORS)).round(4)
            values[rng.random(values.shape) < 0.01] = np.nan
            columns = [pa.array(column, from_pandas=True) for column in values.T]
            writer.write_table(pa.table([stamps, *columns], schema=schema))


def measure(read: str, path: Path) -> Reading:
    """Read the file in a fresh process."""
    code = MEASURE.format(read=read)
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    return Reading(*map(float, done.stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.csv"
        write(path, rows)
        size = path.stat().st_size
        measure(OURS, path)  # warm the file cache
        ours, peer = measure(OURS, path), measure(PEER, path)
    np.testing.assert_allclose(ours.total, peer.total)
    show(
        f"CSV of {rows:,} rows x {SENSORS} sensors, {size / 1e6:.0f} MB",
        [
            ("Panel.read", f"{ours.seconds:.1f} s", f"{ours.seconds / peer.seconds:.2f}x pandas' time (limit 10 s)"),
            ("pandas.read_csv", f"{peer.seconds:.1f} s", ""),
            ("Panel.read, peak", f"{ours.peak / 1e6:.0f} MB", f"{ours.peak / ours.array:.2f}x the array (limit 3x)"),
            ("pandas.read_csv, peak", f"{peer.peak / 1e6:.0f} MB", f"{peer.peak / peer.array:.2f}x the array"),
        ],
        "each in a fresh process, imports included",
    )


if __name__ == "__main__":
    main()
