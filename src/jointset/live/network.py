"""One served network: a thread that takes readings in order, and answers once they are on the disk.

Requests that wait while a commit is under way share the next one. A request that is refused leaves everything as it
was; so does a commit that fails, for all that shared it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from jointset.errors import InputError
from jointset.inputs.fleet import AS_IT_IS, Fleet
from jointset.live.alarms import Alarms
from jointset.live.answers import Answer
from jointset.live.formats import Reader
from jointset.live.joining import Held, Rule
from jointset.live.standing import Standing, parts_of
from jointset.live.store import LATE, ROW, Entry, Store, StoreError
from jointset.live.work import Act, Post, Work
from jointset.predicting.limits import UNLIMITED, Limits
from jointset.storage import to_bytes

WAITING = 1_000  # requests that may wait; more are told to come back
WAITING_BYTES = 128 * 2**20  # of their bodies
COUNTED = ("requests", "refused", "rows", "late", "repeated", "commits", "failed", "mqtt_received", "mqtt_refused")
TOGETHER = 500  # rows that share a commit, about


class Settings(NamedTuple):
    """How a network is served."""

    keep: int = 100_000  # numbers of the log that stay
    every: int = 500  # numbers between two snapshots
    cadence: int | None = None  # seconds of a step, where the model has none or another one is wanted
    grace: int | None = None  # seconds to wait for single readings after a step; half a cadence unless given
    fleet: Fleet = AS_IT_IS  # names that readings come by
    limits: Limits = UNLIMITED


AS_USUAL = Settings()


class Busy(Exception):
    """Too many requests wait already."""


class Network:
    """A predictor, its store, and the thread that moves both on. `standing` is the state that is on the disk."""

    def __init__(
        self, name: str, store: Store, standing: Standing, engine: Alarms, settings: Settings, lock: Any = None
    ) -> None:
        predictor = standing.predictor
        self.name, self.store, self.standing, self.engine, self.settings = name, store, standing, engine, settings
        self.lock = lock  # on the folder, as long as the network is served
        self.sensors, self.began = predictor.sensors, time.time()
        self.reader = Reader(self.sensors, settings.fleet._replace(left_out=predictor.left_out))
        cadence = settings.cadence or standing.usual.cadence
        grace = (cadence or 0) // 2 if settings.grace is None else settings.grace
        self.rule = Rule(cadence or 1, grace)
        self.held: Held = _held(store)
        self.newest = store.newest()  # time of a row that counted: what is later was not answered yet
        self.last_score = store.last_score()
        self.trouble: str | None = None  # why the last commit failed
        self.counts = dict.fromkeys(COUNTED, 0)
        self.listeners: list[Callable[[list[Entry], list[Any]], None]] = []
        self._jobs: queue.Queue[Post | Act | None] = queue.Queue(WAITING)
        self._counting, self._waiting = threading.Lock(), 0  # bytes of bodies in it
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
        with self._counting:
            if self._waiting + size_of(job) > WAITING_BYTES and self._waiting:
                raise Busy(f"{self._waiting:,} bytes to {self.name!r} wait already: try again in a second")
            try:
                self._jobs.put_nowait(job)
            except queue.Full:
                raise Busy(f"{WAITING:,} requests to {self.name!r} wait already: try again in a second") from None
            self._waiting += size_of(job)
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
                with self._counting:
                    self._waiting -= size_of(job)
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
        """Do the requests, bring all of it to the disk, and only then answer; senders that have gone are left out."""
        jobs = [job for job in jobs if job.done.set_running_or_notify_cancel()]
        standing, engine, held, newest = self.standing, self.engine, self.held, self.newest
        results: list[tuple[Any, Any, bool]] = []  # future, result or error, whether it is an error
        entries: list[Entry] = []
        changes: list[Any] = []
        try:
            with self.store.writing():
                if self._idle():
                    work = Work(self, standing, engine, held, newest)
                    work.close_all()
                    work.flush()
                    standing, held, newest = work.standing, work.held, work.newest
                    entries += work.entries
                    changes += work.changes
                for job in jobs:
                    work = Work(self, standing, engine, held, newest)
                    try:
                        result = work.do(job)
                    except Exception as error:  # of this request alone: nothing of it was written
                        self.counts["refused"] += 1
                        results.append((job.done, error, True))
                        continue
                    work.flush()
                    standing, engine, held = work.standing, work.engine, work.held
                    entries += work.entries
                    changes += work.changes
                    newest = work.newest
                    results.append((job.done, result, False))
                calibrated = any(isinstance(job, Act) and job.action["action"] == "recalibrate" for job in jobs)
                due = calibrated or standing.number // self.settings.every > self._snapshot // self.settings.every
                if due:
                    self.store.put_snapshot(standing.number, to_bytes(parts_of(standing)), self.settings.keep)
        except Exception as error:  # whatever it is, it must not end the thread
            self._fail(jobs, error)
            return
        self.trouble = None
        self.standing, self.engine, self.held, self.newest = standing, engine, held, newest
        self._snapshot = standing.number if due else self._snapshot
        if entries or not all(failed for _, _, failed in results):
            self._heard = time.monotonic()
        self.counts["commits"] += 1
        for kind, name in ((ROW, "rows"), (LATE, "late")):
            self.counts[name] += sum(entry.kind == kind for entry in entries)
        scores = [entry.answer["score"] for entry in entries if entry.kind == ROW and entry.answer["score"] is not None]
        self.last_score = scores[-1] if scores else self.last_score
        for done, result, failed in results:
            (done.set_exception if failed else done.set_result)(result)
        for listener in self.listeners if entries else ():
            try:
                listener(entries, changes)
            except RuntimeError:  # a loop that is closed: the service is about to stop
                pass
            except Exception as error:  # whoever listens, rows must go on
                logging.getLogger("jointset").error("%s: somebody could not be told", self.name, exc_info=error)

    def _fail(self, jobs: list[Post | Act], error: Exception) -> None:
        """Answer requests whose commit failed; everything stands as it stood."""
        self.counts["failed"] += 1
        if isinstance(error, (StoreError, InputError)):
            failure = error if isinstance(error, StoreError) else StoreError(str(error))
        else:
            logging.getLogger("jointset").error("a commit of %s failed", self.name, exc_info=error)
            failure = StoreError("the commit failed for a reason that is in the log of the service")
        self.trouble = str(failure)
        for job in jobs:
            job.done.set_exception(failure)


def size_of(job: Post | Act) -> int:
    """Bytes of the body of a request."""
    return len(job.body) if isinstance(job, Post) else 0


def _held(store: Store) -> Held:
    """What the store holds of single readings."""
    found: dict[int, dict[int, tuple[int, float]]] = {}
    for step, place, seconds, value in store.held():
        found.setdefault(step, {})[place] = (seconds, value)
    return found
