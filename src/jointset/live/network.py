"""One served network: a thread that takes readings in order, and answers once they are on the disk.

Requests that wait while a commit is under way share the next one. A request that is refused leaves everything as it
was; so does a commit that fails, for all that shared it.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from jointset.errors import InputError
from jointset.fleet import Fleet
from jointset.limits import UNLIMITED, Limits
from jointset.live.alarms import Alarms
from jointset.live.answers import Answer, answer_of
from jointset.live.formats import Batch, Reader, Whole
from jointset.live.happenings import Change, plain
from jointset.live.joining import Held, Rule, Single, hold, row_of
from jointset.live.snapshots import to_bytes
from jointset.live.standing import Standing, acted, parts_of, taken
from jointset.live.store import ACTION, LATE, ROW, Entry, Store, StoreError
from jointset.times import iso

WAITING = 1_000  # requests that may wait; more are told to come back
TOGETHER = 500  # rows that share a commit, about


class Settings(NamedTuple):
    """How a network is served."""

    keep: int = 100_000  # numbers of the log that stay
    every: int = 500  # numbers between two snapshots
    cadence: int | None = None  # seconds of a step, where the model has none or another one is wanted
    grace: int | None = None  # seconds to wait for single readings after a step; half a cadence unless given
    ignore_unknown: bool = False
    limits: Limits = UNLIMITED


AS_USUAL = Settings()


class Busy(Exception):
    """Too many requests wait already."""


class Post(NamedTuple):
    """A body of readings."""

    body: bytes
    kind: str
    precision: str
    done: Future[tuple[list[Answer], bool]]


class Act(NamedTuple):
    """Something an operator does: what goes into the log."""

    action: Answer
    done: Future[Answer]


class Network:
    """A predictor, its store, and the thread that moves both on. `standing` is the state that is on the disk."""

    def __init__(
        self, name: str, store: Store, standing: Standing, engine: Alarms, settings: Settings, lock: Any = None
    ) -> None:
        predictor = standing.predictor
        self.name, self.store, self.standing, self.engine, self.settings = name, store, standing, engine, settings
        self.lock = lock  # on the folder, as long as the network is served
        self.sensors, self.began = predictor.sensors, time.time()
        self.reader = Reader(self.sensors, Fleet(ignore_unknown=settings.ignore_unknown, left_out=predictor.left_out))
        cadence = settings.cadence or standing.usual.cadence
        grace = (cadence or 0) // 2 if settings.grace is None else settings.grace
        self.rule = Rule(cadence or 1, grace)
        self.held: Held = _held(store)
        self.last_score = math.nan
        self.trouble: str | None = None  # why the last commit failed
        self.counts = dict.fromkeys(("requests", "refused", "rows", "late", "repeated", "commits", "failed"), 0)
        self.listeners: list[Callable[[list[Entry], list[Any]], None]] = []
        self._jobs: queue.Queue[Post | Act | None] = queue.Queue(WAITING)
        self._snapshot = standing.number
        self._heard = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"jointset {name}", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ for any thread

    def post(self, body: bytes, kind: str, precision: str = "ns") -> Future[tuple[list[Answer], bool]]:
        """Take a body of readings; what comes back are its answers, and whether it was a list."""
        return self._put(Post(body, kind, precision, Future()))

    def act(self, action: Answer) -> Future[Answer]:
        """Take what an operator does."""
        return self._put(Act(action, Future()))

    def _put(self, job: Any) -> Any:
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Busy(f"{WAITING:,} requests to {self.name!r} wait already: try again in a second") from None
        return job.done

    def close(self) -> None:
        """Answer what waits, then stop."""
        self._jobs.put(None)
        self._thread.join()
        self.store.close()
        if self.lock is not None:
            self.lock.close()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        going = True
        while going:
            jobs, going = self._next()
            self.counts["requests"] += len(jobs)
            if jobs or self._idle():
                self._commit(jobs)

    def _next(self) -> tuple[list[Post | Act], bool]:
        """The requests that wait, so many as one commit shall hold; False: the last."""
        patience = 0.2 if self.held else None
        jobs: list[Post | Act] = []
        size = 0
        try:
            job = self._jobs.get(timeout=patience)
            while job is not None:
                jobs.append(job)
                size += job.body.count(b"\n") + job.body.count(b"{") // 2 + 1 if isinstance(job, Post) else 1
                if size >= TOGETHER:
                    return jobs, True
                job = self._jobs.get_nowait()
            return jobs, False
        except queue.Empty:
            return jobs, True

    def _idle(self) -> bool:
        """Whether nothing was read for so long that what is held shall count."""
        return bool(self.held) and time.monotonic() - self._heard > self.rule.cadence + self.rule.grace

    def _commit(self, jobs: list[Post | Act]) -> None:
        """Do the requests, bring all of it to the disk, and only then answer."""
        standing, held = self.standing, self.held
        results: list[tuple[Any, Any, bool]] = []  # future, result or error, whether it is an error
        entries: list[Entry] = []
        changes: list[Any] = []
        try:
            with self.store.writing():
                if not jobs:
                    work = Work(self, standing, held)
                    work.close_all()
                    work.flush()
                    standing, held = work.standing, work.held
                    entries += work.entries
                for job in jobs:
                    work = Work(self, standing, held)
                    try:
                        result = work.do(job)
                    except Exception as error:  # of this request alone: nothing of it was written
                        self.counts["refused"] += 1
                        results.append((job.done, error, True))
                        continue
                    work.flush()
                    standing, held = work.standing, work.held
                    entries += work.entries
                    changes += work.changes
                    results.append((job.done, result, False))
                due = standing.number // self.settings.every > self._snapshot // self.settings.every
                if due:
                    self.store.put_snapshot(standing.number, to_bytes(parts_of(standing)), self.settings.keep)
        except (StoreError, InputError) as error:
            self.counts["failed"] += 1
            self.trouble = str(error)
            failure = error if isinstance(error, StoreError) else StoreError(str(error))
            for job in jobs:
                job.done.set_exception(failure)
            return
        self.trouble = None
        self.standing, self.held = standing, held
        self._snapshot = standing.number if due else self._snapshot
        if entries or jobs:
            self._heard = time.monotonic()
        self.counts["commits"] += 1
        for kind, name in ((ROW, "rows"), (LATE, "late")):
            self.counts[name] += sum(entry.kind == kind for entry in entries)
        scores = [entry.answer["score"] for entry in entries if entry.kind == ROW and entry.answer["score"] is not None]
        self.last_score = scores[-1] if scores else self.last_score
        for done, result, failed in results:
            (done.set_exception if failed else done.set_result)(result)
        if entries:
            for listener in self.listeners:
                listener(entries, changes)


class Work:
    """What one request does, from a standing to the next; nothing is written before `flush`."""

    def __init__(self, network: Network, standing: Standing, held: Held) -> None:
        self.network, self.standing, self.held = network, standing, held
        self.entries: list[Entry] = []
        self.changes: list[tuple[int, Answer]] = []  # of alarms, each with its number of the log
        self._holding: list[tuple[int, int, int, float]] = []
        self._released: list[int] = []

    def do(self, job: Post | Act) -> Any:
        """The result of a request."""
        if isinstance(job, Act):
            return self._act(job.action)
        batch = self.network.reader.read(job.body, job.kind, job.precision)
        return self._batch(batch), batch.many

    def _batch(self, batch: Batch) -> list[Answer]:
        answers = [self._whole(i, row) for i, row in enumerate(batch.rows, 1)]
        for single in batch.singles:
            answers += self._single(single)
        return answers

    def _whole(self, place: int, row: Whole) -> Answer:
        known = self._known(row.seconds)
        if known is not None:
            self.network.counts["repeated"] += 1
            same = known.values is not None and known.values.tobytes() == row.values.tobytes()
            differs = {} if same else {"differs": True}
            return {**answer_of(known, self.network.sensors), "repeated": True, **differs}
        for step in sorted(step for step in self.held if step < row.seconds):
            self._close(step)
        try:
            return self._row(row)
        except (ValueError, ArithmeticError) as error:
            raise InputError(f"row {place} ({row.time}): {' '.join(str(error).split())}") from None

    def _row(self, row: Whole) -> Answer:
        """Count one row, or keep it as late."""
        network = self.network
        self.standing, entry, changes = taken(self.standing, network.engine, row, network.settings.limits)
        self._wrote(entry, changes)
        return answer_of(entry, network.sensors)

    def _act(self, action: Answer) -> Answer:
        """What an operator does about an alarm; its time is that of the last row."""
        now = self.standing.clock.latest
        action = {**action, "time": int(time.time()) if now is None else now}
        if "minutes" in action:
            action["until"] = action["time"] + 60 * action.pop("minutes")
        self.standing, changes = acted(self.standing, self.network.engine, action)
        self._wrote(Entry(self.standing.number, ACTION, None, None, None, action), changes)
        return {"row": self.standing.number, "changes": [plain(one) for one in changes]}

    def _wrote(self, entry: Entry, changes: list[Change]) -> None:
        self.entries.append(entry)
        self.changes += [(entry.number, plain(one)) for one in changes]

    def _known(self, seconds: int) -> Entry | None:
        """The row of this time that has counted, in this request or before."""
        for entry in self.entries:
            if entry.seconds == seconds and entry.kind == ROW:
                return entry
        return self.network.store.at(seconds)

    def _single(self, single: Single) -> list[Answer]:
        """Hold one reading; the answers of the rows that it makes whole."""
        rule = self.network.rule
        step = rule.step(single.seconds)
        answers = [self._close(one) for one in rule.over(self.held, single.seconds)]
        if step not in self.held and (self._known(step) is not None or self._is_past(step)):
            values = row_of({single.place: (single.seconds, single.value)}, len(self.network.sensors))
            known = self._known(step)
            if known is not None and known.values is not None and known.values[single.place] == single.value:
                self.network.counts["repeated"] += 1
                return answers
            late = self._row(Whole(values, step, iso(step))) if known is None else self._late(values, step)
            return [*answers, late]
        self.held = hold(self.held, step, single)
        self._holding.append((step, single.place, *self.held[step][single.place]))
        if len(self.held[step]) == len(self.network.sensors):
            answers.append(self._close(step))
        return answers

    def _is_past(self, step: int) -> bool:
        latest = self.standing.clock.latest
        return latest is not None and step <= latest

    def _late(self, values: Any, step: int) -> Answer:
        number = self.standing.number + 1
        self.standing = self.standing._replace(number=number)
        self.entries.append(Entry(number, LATE, step, iso(step), values, {"single": True}))
        return answer_of(self.entries[-1], self.network.sensors)

    def _close(self, step: int) -> Answer:
        """Make a row of what is held of a step."""
        readings = self.held[step]
        self.held = {one: rest for one, rest in self.held.items() if one != step}
        self._released.append(step)
        return self._row(Whole(row_of(readings, len(self.network.sensors)), step, iso(step)))

    def close_all(self) -> None:
        """Make rows of all that is held."""
        for step in sorted(self.held):
            self._close(step)

    def flush(self) -> None:
        """Write it, inside the transaction of the store that is open."""
        store = self.network.store
        store.append(self.entries)
        store.add_changes(self.changes)
        store.hold(reading for reading in self._holding if reading[0] in self.held)
        for step in self._released:
            store.release(step)


def _held(store: Store) -> Held:
    """What the store holds of single readings."""
    found: dict[int, dict[int, tuple[int, float]]] = {}
    for step, place, seconds, value in store.held():
        found.setdefault(step, {})[place] = (seconds, value)
    return found
