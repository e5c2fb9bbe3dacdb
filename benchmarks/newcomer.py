"""The five commands of the quick start as they stand there, from no environment to a page, in an empty folder.

Usage: `python benchmarks/newcomer.py`. Needs Python and an index of packages; where pip reaches none it says
so and ends with 0. Fails where a command does, where they are more than five, or where they take over three minutes.
"""

import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "src")  # of a checkout
MOST, SECONDS = 5, 180
UNREACHED = ("No matching distribution found", "Could not find a version")


def commands() -> list[str]:
    """The commands of the quick start."""
    page = (ROOT / "docs" / "quickstart.md").read_text()
    return re.findall(r"```sh\n(.*?)```", page, re.S)[0].splitlines()


def write_readings(path: Path, rows: int = 3000, sensors: int = 12) -> None:
    """Hourly readings of a made-up network, by Python alone."""
    rng = random.Random(0)
    with path.open("w") as file:
        print("time", *(f"s{i:02d}" for i in range(sensors)), sep=",", file=file)
        for t in range(rows):
            moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(1_700_000_000 // 3600 * 3600 + 3600 * t))
            common = 10 * math.sin(2 * math.pi * t / 24) + rng.gauss(0, 2)
            print(moment, *(f"{20 + i + common + rng.gauss(0, 1):.3f}" for i in range(sensors)), sep=",", file=file)


def processor() -> float:
    """Seconds of a processor, of user and system, that finished commands have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    asked = commands()
    assert 1 <= len(asked) <= MOST, f"{len(asked)} commands, at most {MOST}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as place:
        folder, total, used = Path(place), 0.0, processor()
        for name in NEEDED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, folder / name)
        write_readings(folder / "readings.csv")
        for line in asked:
            start, before = time.perf_counter(), processor()
            done = subprocess.run(line.split(), cwd=folder, env=environment, capture_output=True, text=True)
            taken = time.perf_counter() - start
            total += taken
            print(f"{taken:6.1f} s, {processor() - before:5.1f} s of a processor  {line}", flush=True)
            if done.returncode and any(words in done.stderr for words in UNREACHED):
                print("skipped: pip reaches no index of packages here")
                return
            assert done.returncode == 0, done.stdout + done.stderr
        page = (folder / "model" / "report.html").read_text()
        assert re.search(r'"scores":"[^"]{99}', page), "the page has no scores to draw"
        assert not any((folder / "env").glob("lib/python*/site-packages/torch")), "torch came along"
    print(f"{total:6.1f} s, {processor() - used:5.1f} s of a processor  in all, at most {SECONDS} s")
    sys.exit(total > SECONDS)


if __name__ == "__main__":
    main()
