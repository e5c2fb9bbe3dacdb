"""Changes of alarms out, each at least once and in order, whatever is killed or cannot be reached meanwhile.

Changes lie in the store of their network, numbered. A way out remembers in a file of its own the number of the last one
that arrived; it goes on from there after a restart, and begins with what is new where it has never been. What cannot
be sent is tried again, ever less often, and keeps its place: nothing overtakes it. What waits is bounded by what the
store keeps.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from jointset.errors import InputError
from jointset.live.store import Store
from jointset.support.atomic import whole_file

FIRST, LONGEST = 1.0, 300.0  # seconds until it is tried again: doubled from the first to the longest
AT_ONCE = 100  # changes read from the store at a time
PARTING = 15.0  # seconds that a receiver in the middle of its answer may keep the service from stopping

Change = dict[str, Any]
Send = Callable[[str, Change], None]  # its name, the same whenever it is sent again, and the change; raises OSError


class Outbox(Protocol):
    """What is to be sent, oldest first, by numbers that only grow."""

    def pending(self) -> list[tuple[int, Change]]: ...  # noqa: D102

    def done(self, number: int) -> None: ...  # noqa: D102


class StoreOutbox:
    """The changes in a store that have not arrived yet; `mark` is the file that says which have."""

    def __init__(self, store: Store, mark: Path) -> None:
        self.store, self.mark = store, mark
        self._last = self._read()

    def _read(self) -> int:
        try:
            return int(json.loads(self.mark.read_text())["arrived"])
        except FileNotFoundError:
            newest = self.store.reader.execute("SELECT max(id) FROM changes").fetchone()[0] or 0
            self.done(newest)
            return int(newest)
        except (ValueError, KeyError, TypeError):  # damaged: again rather than never
            return 0

    def pending(self) -> list[tuple[int, Change]]:
        """The next changes to send."""
        found = self.store.changes(self._last, AT_ONCE)
        return [(number, {"row": row, **change}) for number, row, change in found]

    def done(self, number: int) -> None:
        """Remember that all up to this one arrived."""
        with whole_file(self.mark) as unfinished:
            unfinished.write_text(json.dumps({"arrived": number}))
        self._last = number


class Courier:
    """A thread that sends what an outbox holds, until it is closed; muted changes are sent to nobody."""

    def __init__(
        self, name: str, outbox: Outbox, send: Send, note: Callable[[str], None], first: float = FIRST
    ) -> None:
        self.name, self.outbox, self.send, self.note, self.first = name, outbox, send, note, first
        self.sent = self.failed = 0
        self._news, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"jointset {name}", daemon=True)
        self._thread.start()

    def wake(self, *news: Any) -> None:
        """There may be something to send."""
        self._news.set()

    def close(self) -> None:
        """Stop; what has not arrived is sent after the next start."""
        self._over.set()
        self._news.set()
        self._thread.join(PARTING)

    def _run(self) -> None:
        pause = self.first
        while not self._over.is_set():
            self._news.clear()
            try:
                while self._some():
                    pause = self.first
            except (OSError, InputError, sqlite3.Error) as error:
                self.failed += 1
                if pause == self.first:
                    self.note(f"{self.name}: {' '.join(str(error).split())}; tried again until it arrives")
                self._over.wait(pause)
                pause = min(2.0 * pause, LONGEST)
                continue
            self._news.wait()

    def _some(self) -> bool:
        """Send what is there; whether there was anything."""
        found = self.outbox.pending()
        for number, change in found:
            if self._over.is_set():
                return False
            if not change.get("muted"):
                self.send(str(number), change)
                self.sent += 1
            self.outbox.done(number)
        return bool(found)
