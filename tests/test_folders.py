"""Model folders: killed, crowded, full, linked and old, they hold a model that loads."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointset import ACI, GraphLGSSM, InputError, JointPredictor, generate_grssf
from jointset.methods import load_predictor
from jointset.support import atomic
from jointset.support import folders as module

PANEL = generate_grssf("A", n=8, seed=3, length=300).panel
OLD = JointPredictor(GraphLGSSM(), calibration=ACI(0.1)).fit(PANEL[:150]).calibrate(PANEL[150:])
NEW = OLD.copy()
NEW.update(PANEL.values[0])
FIRST_FORMAT = Path(__file__).parent / "data" / "model-format-1"


def bounds(predictor: Any) -> list[list[float]]:
    return np.array(predictor.predict().bounds).tolist()


BOTH = [bounds(OLD), bounds(NEW)]


def start(work: Callable[[], object]) -> int:
    """A process of its own that does the work and nothing else; its exit code is 0 when all went well."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def save_for_ever(folder: Path) -> None:
    while True:
        NEW.save(folder)
        OLD.save(folder)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


# ---------------------------------------------------------------------- kills


def test_fifty_random_kills_leave_a_model_that_loads(tmp_path: Path) -> None:
    folder, rng = tmp_path / "model", np.random.default_rng(15)
    OLD.save(folder)
    for _ in range(50):
        child = start(lambda: save_for_ever(folder))
        time.sleep(rng.uniform(0.0, 0.04))
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        assert bounds(JointPredictor.load(folder)) in BOTH
    OLD.save(folder)
    assert len(names(folder)) == 2 and names(tmp_path) == ["model"]  # nothing of the kills is left


def killed_at(step: int, folder: Path) -> int:
    """Exit code of a process that saves and is dead before its system call number `step` that changes a folder."""

    def work() -> None:
        seen = 0

        def count(event: str, arguments: Any) -> None:
            nonlocal seen
            changes = event in ("os.mkdir", "os.rename", "os.remove") or (event == "open" and arguments[1] != "r")
            seen += changes
            if changes and seen > step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        NEW.save(folder)

    return ended(start(work))


@pytest.mark.parametrize("first", ["none", "old", "format 1"])
def test_a_kill_at_any_step_leaves_the_old_model_or_the_new(first: str, tmp_path: Path) -> None:
    folder, kills = tmp_path / "model", 0
    kept = [bounds(JointPredictor.load(FIRST_FORMAT)), BOTH[1]] if first == "format 1" else BOTH
    for step in range(30):
        shutil.rmtree(folder, ignore_errors=True)
        if first == "old":
            OLD.save(folder)
        elif first == "format 1":
            shutil.copytree(FIRST_FORMAT, folder)
        if killed_at(step, folder) == 0:
            break
        kills += 1
        if first == "none" and not (folder / "model.json").exists():
            with pytest.raises(InputError):
                JointPredictor.load(folder)
        else:
            assert bounds(JointPredictor.load(folder)) in kept
        NEW.save(folder)  # over what was left
        assert bounds(JointPredictor.load(folder)) == BOTH[1] and len(names(folder)) == 2
    assert 4 <= kills < 29 and bounds(JointPredictor.load(folder)) == BOTH[1]


def test_an_interrupt_right_after_the_switch_keeps_the_new_model(tmp_path: Path, monkeypatch: Any) -> None:
    OLD.save(tmp_path / "model")
    real = os.replace

    def interrupted(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        NEW.save(tmp_path / "model")
    assert bounds(JointPredictor.load(tmp_path / "model")) == BOTH[1]


# ---------------------------------------------------------------------- readers and writers at once


def test_no_load_fails_beside_a_writer(tmp_path: Path) -> None:
    folder, met = tmp_path / "model", set()
    OLD.save(folder)
    child = start(lambda: save_for_ever(folder))
    try:
        for _ in range(400):
            met.add(BOTH.index(bounds(load_predictor(folder))))
    finally:
        os.kill(child, signal.SIGKILL)
        ended(child)
    assert met == {0, 1}


def test_a_reader_whose_arrays_are_replaced_reads_again(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "model"
    OLD.save(folder)
    header, left = module._header, [3]

    def overtaken(text: bytes) -> Any:
        if left[0]:
            left[0] -= 1
            monkeypatch.setattr(module, "_header", header)
            NEW.save(folder)
            monkeypatch.setattr(module, "_header", overtaken)
        return header(text)

    monkeypatch.setattr(module, "_header", overtaken)
    assert bounds(JointPredictor.load(folder)) == BOTH[1] and left == [0]


def test_three_writers_wait_for_each_other(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(25):
            OLD.save(tmp_path / "model")
            JointPredictor.load(tmp_path / "model")

    assert [ended(child) for child in [start(work) for _ in range(3)]] == [0, 0, 0]
    assert len(names(tmp_path / "model")) == 2


def test_a_writer_that_never_ends_is_reported(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    OLD.save(tmp_path)
    with atomic.held(tmp_path / ".lock"), pytest.raises(InputError, match="another process has been saving"):
        NEW.save(tmp_path)
    assert bounds(JointPredictor.load(tmp_path)) == BOTH[0] and len(names(tmp_path)) == 2


@pytest.mark.parametrize("without", ["module", "file system"])
def test_without_locks_fresh_files_of_others_are_left_alone(without: str, tmp_path: Path, monkeypatch: Any) -> None:
    if without == "module":
        monkeypatch.setattr(atomic, "fcntl", None)
    else:
        monkeypatch.setattr(atomic.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no locks")))
    fresh, stale = (tmp_path / f"arrays-{digit * 16}.safetensors" for digit in "ab")
    for path in (fresh, stale):
        path.touch()
    os.utime(stale, (0, 0))
    OLD.save(tmp_path)
    NEW.save(tmp_path)
    assert bounds(JointPredictor.load(tmp_path)) == BOTH[1]
    assert fresh.exists() and not stale.exists()


# ---------------------------------------------------------------------- what else is there


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    OLD.save(tmp_path)
    own = {"notes.txt": "mine", ".hidden": "mine", "arrays-of-mine.safetensors": "mine", "model.json.bak": "mine"}
    for name, text in own.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "a.png").write_bytes(b"mine")
    NEW.save(tmp_path)
    assert bounds(JointPredictor.load(tmp_path)) == BOTH[1]
    assert {name: (tmp_path / name).read_text() for name in own} == own and (tmp_path / "plots" / "a.png").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text("a home, say")
    with pytest.raises(InputError, match="is not a model folder"):
        OLD.save(tmp_path)
    assert names(tmp_path) == [".profile"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    OLD.save(tmp_path / "v3")
    (tmp_path / "current").symlink_to("v3")
    NEW.save(tmp_path / "current")
    assert os.readlink(tmp_path / "current") == "v3"
    assert bounds(JointPredictor.load(tmp_path / "v3")) == BOTH[1]
    (tmp_path / "next").symlink_to("v4")
    NEW.save(tmp_path / "next")
    assert bounds(JointPredictor.load(tmp_path / "v4")) == BOTH[1]


def test_only_the_folder_itself_is_written_to(tmp_path: Path) -> None:
    """A mounted volume cannot be renamed, and its parent may belong to someone else."""
    folder = tmp_path / "volume"
    (folder / "lost+found").mkdir(parents=True)
    before = folder.stat().st_ino, tmp_path.stat().st_mtime_ns
    for predictor in (OLD, NEW):
        predictor.save(folder)
    assert (folder.stat().st_ino, tmp_path.stat().st_mtime_ns) == before
    command = [sys.executable, "-c", "from jointset.writing import model_folder; model_folder('volume')"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (folder.stat().st_ino, tmp_path.stat().st_mtime_ns) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_an_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    OLD.save(tmp_path / "model")
    (tmp_path / "model").chmod(0o555)
    with pytest.raises(InputError, match=r"cannot write .*Permission denied"):
        NEW.save(tmp_path / "model")
    assert bounds(JointPredictor.load(tmp_path / "model")) == BOTH[0]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: the write ends in the middle, with an error of the system."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def full_at(count: int) -> Iterator[None]:
    """The disk is full when the count-th file is brought to it."""
    calls = iter(range(1, 100))

    def sync(path: Path) -> None:
        if next(calls) == count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jointset.support.atomic.sync", sync)
        patch.setattr("jointset.support.folders.sync", sync)
        yield


@pytest.mark.parametrize("full", [lambda: room_for(0), lambda: room_for(2000), lambda: full_at(1), lambda: full_at(2)])
def test_a_full_disk_is_one_line_and_keeps_the_old_model(full: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    OLD.save(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with full(), pytest.raises(InputError, match=r"cannot write .*(too large|No space).*: make room") as caught:
        NEW.save(folder)
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_all_files_have_the_mode_of_the_umask(umask: int, tmp_path: Path) -> None:
    usual = os.umask(umask)
    try:
        OLD.save(tmp_path / "model")
    finally:
        os.umask(usual)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert modes == {0o666 & ~umask}


# ---------------------------------------------------------------------- folders of before


def test_a_folder_of_format_1_loads_and_a_save_brings_it_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(FIRST_FORMAT, folder)
    predictor = load_predictor(folder)
    lower, upper = bounds(predictor)
    np.testing.assert_allclose(lower[:2], [-7.7548124, -6.87447745], rtol=1e-7)  # as the version that wrote it said
    np.testing.assert_allclose(upper[:2], [5.2001982, 4.70842946], rtol=1e-7)
    assert predictor.fitted_rows == 0 and predictor.left_out == ()  # that version did not count them
    predictor.save(folder)
    assert json.loads((folder / "model.json").read_text())["format"] == 2
    assert not (folder / "arrays.safetensors").exists() and len(names(folder)) == 2
    assert bounds(load_predictor(folder)) == [lower, upper]
