"""A file that tells how much of it was read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MIB = 2**20


class CountedFile:
    """The bytes of a file; told are MiB, to what `counting` makes when it is given how many there are."""

    def __init__(self, path: Path, counting: Callable[..., Callable[[int], None]]) -> None:
        self._file = path.open("rb")
        self._more, self._rest = counting(-(-path.stat().st_size // MIB), "MiB"), 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found = self._file.read(size)
        whole, self._rest = divmod(self._rest + len(found), MIB)
        if whole:
            self._more(whole)
        return found

    def readable(self) -> bool:
        """It is."""
        return True

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._file.closed

    def close(self) -> None:
        """Read no more."""
        self._file.close()
