"""Files that are whole or not there: written under a temporary name, brought to the disk, then renamed."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jointset.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def writing_to(path: str | Path) -> Iterator[None]:
    """Make InputErrors of failed writes."""
    try:
        yield
    except OSError as error:
        advice = "make room and try again" if error.errno in FULL else "choose a place you can write to"
        raise InputError(f"cannot write {path} ({error.strerror or error}): {advice}") from None


def identity(path: Path) -> tuple[int, int] | None:
    """Which file a name stands for; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary name to write to; it becomes `path` when the block ends well and disappears when it does not.

    A link stays a link: what it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    with writing_to(path):
        try:
            yield unfinished
            sync(unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        sync_folder(target.parent)


@contextmanager
def held(lock: Path, busy: str = "", patience: float = 0.0) -> Iterator[bool]:
    """A file locked by this process alone: others wait, or are refused after so many seconds with what is said of it.

    False where the system or the disk has no locks: the work goes on without.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        if not lock.exists():
            raise
        descriptor = os.open(lock, os.O_RDONLY)  # another user's
    try:
        alone = _locked(descriptor, busy, time.monotonic() + patience)
        try:
            yield alone
        finally:
            if alone:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, busy: str, until: float) -> bool:
    while fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                raise InputError(busy) from None
            time.sleep(0.001)
        except OSError:
            break
    return False


def sync(path: Path) -> None:
    """Bring a file to the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can: a rename lasts only then."""
    with suppress(OSError):  # Windows opens no folder, some network file systems sync none
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
