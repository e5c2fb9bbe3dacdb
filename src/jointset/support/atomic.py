"""Files that are whole or not there: written under a temporary name, brought to the disk, then renamed."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jointset.errors import InputError

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
def held(lock: Path, busy: str = "") -> Iterator[None]:
    """A file locked by this process alone: others wait, or are refused with what is said of it.

    Where the system or the disk has no locks, the work goes on without.
    """
    with lock.open("w") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise InputError(busy) from None
        except (ImportError, OSError):
            pass
        yield


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
