"""Saving: kills during saves, loads and writers beside a writer, and what a safe save costs beside a plain one.

python benchmarks/saving.py [--kills 2000] [--loads 10000] [--sensors 30]
"""

import argparse
import json
import mmap
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import seconds, show  # first: sets the number of threads

import numpy as np

from jointset import ACI, GraphLGSSM, JointPredictor, generate_grssf


def two_models(sensors: int) -> tuple[JointPredictor, JointPredictor]:
    """A model and the same one a row later."""
    panel = generate_grssf("A", n=sensors, length=1200).panel
    old = JointPredictor(GraphLGSSM(), calibration=ACI(0.1)).fit(panel[:600]).calibrate(panel[600:])
    new = old.copy()
    new.update(panel.values[0])
    return old, new


def center(predictor: JointPredictor) -> list[float]:
    return predictor.predict().center.tolist()


def start(work: Callable[[], None]) -> int:
    """A process that does the work as long as this one lives."""
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            while os.getppid() == parent:
                work()
        finally:
            os._exit(1)
    return child


def kill(child: int) -> int:
    """End a process; its exit code is -9 unless it had failed by itself."""
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(folder: Path, known: list[list[float]]) -> str:
    """What a load gives: the old model, the new one, another, or none."""
    try:
        found = center(JointPredictor.load(folder))
    except Exception:
        return "failed"
    return ("old", "new")[known.index(found)] if found in known else "wrong"


def killed(folder: Path, models: tuple[JointPredictor, JointPredictor], kills: int) -> dict[str, int]:
    """Outcomes of a load after every kill of a process that saves both models in turns."""
    counts = dict.fromkeys(("old", "new", "wrong", "failed"), 0)
    known, rng = [center(model) for model in models], np.random.default_rng(0)
    models[0].save(folder)
    longest = 4 * seconds(lambda: models[0].save(folder), 21)  # a few saves
    for _ in range(kills):
        child = start(lambda: [model.save(folder) for model in reversed(models)])
        time.sleep(rng.uniform(0.0, longest))
        kill(child)
        counts[outcome(folder, known)] += 1
    return counts


def crowded(folder: Path, models: tuple[JointPredictor, JointPredictor], loads: int) -> dict[str, Any]:
    """Outcomes of loads beside two processes that save without a pause, their saves, and how many of them failed."""
    counts = dict.fromkeys(("old", "new", "wrong", "failed"), 0)
    known, saved = [center(model) for model in models], mmap.mmap(-1, 8 * len(models))
    models[0].save(folder)

    def save(which: int) -> None:
        models[which].save(folder)
        place = slice(8 * which, 8 * which + 8)
        saved[place] = (int.from_bytes(saved[place], "little") + 1).to_bytes(8, "little")

    writers = [start(lambda one=which: save(one)) for which in range(len(models))]
    for _ in range(loads):
        counts[outcome(folder, known)] += 1
    stopped = sum(kill(writer) != -signal.SIGKILL for writer in writers)
    each = [int.from_bytes(saved[place : place + 8], "little") for place in (0, 8)]
    return counts | {"saves": each, "writers stopped": stopped}


def plain(folder: Path) -> Callable[[], None]:
    """Two plain writes of as many bytes as the model has."""
    files = [path for path in folder.iterdir() if path.suffix]
    contents = [path.read_bytes() for path in files]
    return lambda: [(folder / f"plain{i}").write_bytes(content) for i, content in enumerate(contents)]


def main() -> None:
    options = argparse.ArgumentParser()
    for name, usual in (("kills", 2000), ("loads", 10_000), ("sensors", 30)):
        options.add_argument(f"--{name}", type=int, default=usual)
    options.add_argument("--place", help="folder of the file system to write to")
    asked = options.parse_args()
    models = two_models(asked.sensors)
    with tempfile.TemporaryDirectory(dir=asked.place, ignore_cleanup_errors=True) as place:
        folder, begin = Path(place) / "model", time.perf_counter()
        after = killed(folder, models, asked.kills)
        beside = crowded(folder, models, asked.loads)
        taken = time.perf_counter() - begin
        left = len(list(folder.iterdir()))
        models[0].save(folder)
        safe, bare = seconds(lambda: models[0].save(folder), 51), seconds(plain(folder), 51)
        loading = seconds(lambda: JointPredictor.load(folder), 51)
        tidy = len([path for path in folder.iterdir() if not path.name.startswith("plain")])
    rows = [
        (f"{asked.kills:,} kills during saves", json.dumps(after), "loads after them"),
        (f"{asked.loads:,} loads beside two writers", json.dumps(beside), ""),
        ("files left by the last kills, and after one more save", f"{left}, {tidy}", "model.json, arrays, .lock are 3"),
        ("a save", f"{1e3 * safe:.2f} ms", f"{safe / bare:.0f} times two plain writes of the same bytes"),
        ("a load", f"{1e3 * loading:.2f} ms", ""),
    ]
    show(f"Saving a model of {asked.sensors} sensors, {taken:.0f} s", rows)
    raise SystemExit(
        after["failed"] + after["wrong"] + beside["failed"] + beside["wrong"] + beside["writers stopped"] > 0
    )


if __name__ == "__main__":
    main()
