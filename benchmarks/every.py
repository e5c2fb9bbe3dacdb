"""The speed of everything, script by script, each in a process of its own and within a limit: what `make bench` runs.

These measure a time or a ratio against a peer in the same run, and take a few minutes of one core together. The other
scripts beside this one make results, pages and pictures from hours of work, and are named where their numbers stand.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from table import show  # first: sets the number of threads

HERE = Path(__file__).parent
SCRIPTS = {  # and what makes each short
    "imports": (),
    "lowrank": (),
    "kalman": (),
    "aci": (),
    "reading": ("--rows", "300000"),
    "saving": ("--kills", "100", "--loads", "500"),
    "stream": (),
    "rows": (),
    "published": (),
    "gnf": ("--steps", "60"),
    "bench": ("--rounds", "1", "--seeds", "1", "--tasks", "50"),
}


def ended(name: str, limit: float) -> str:
    """How a script ended: `ok`, its exit code, or that its time was over."""
    command = [sys.executable, str(HERE / f"{name}.py"), *SCRIPTS[name]]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that it has started too
    return "ok" if code == 0 else f"exit code {code}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*SCRIPTS], metavar="name", help=f"some of {', '.join(SCRIPTS)}")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = []
    for name in asked.names:
        begin = time.perf_counter()
        how = ended(name, asked.limit)
        rows.append((name, f"{time.perf_counter() - begin:.0f} s", how))
    show("make bench", rows)
    sys.exit(any(how != "ok" for _, _, how in rows))


if __name__ == "__main__":
    main()
