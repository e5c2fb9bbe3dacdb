"""Tasks on Dask workers: a cluster on this machine, or a scheduler of the user's.

Readings travel once to every worker of a user's scheduler, those that join later included, and lie in its memory: such
workers need this package but no data. Workers on this machine read them once from disk, as those of the local engine.
Rows come back to this process, which alone writes, so a task that ran twice because its worker died is still counted
once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from logging import CRITICAL
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, LocalCluster, WorkerPlugin, as_completed
from distributed.scheduler import KilledWorker
from distributed.utils import silence_logging_cmgr

from jointset.bench.plan import Task
from jointset.bench.processes import THREADS, single_threaded, starter, unhurried
from jointset.bench.task import SOURCES, Done, failure, forget, message, run_task, source_of
from jointset.datasets.cells import RULES
from jointset.datasets.origins import Source
from jointset.errors import InputError
from jointset.inputs.graph_files import read_graph
from jointset.terminal import note

PLUGIN = "jointset-readings"
PATIENCE = "20s"  # until a scheduler answers
SENDINGS, PAUSE = 6, 0.5  # how often readings are sent while workers die of something else, and seconds between
GONE = "the Dask scheduler has gone: start it again, the same command goes on from what is finished"
SHORT, LARGEST = 5.0, 12  # weight of a short task, and how many of them travel together, to make their cell once
Bundle = tuple[Task, ...]
LEAN = {  # workers that neither watch what they do nor give back memory at every turn: both cost as much as the work
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.client.scheduler-info-interval": "10s",
    "distributed.scheduler.worker-saturation": 1.0,  # one task a worker: none is blamed for a death beside it
    "distributed.scheduler.no-workers-timeout": "120s",  # where no worker comes back, tasks fail instead of waiting
    "distributed.deploy.lost-worker-timeout": "120s",  # and so long a dead one has to start anew
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(THREADS, "1"),
}


def run_dask(tasks: Sequence[Task], jobs: int = 1, address: str | None = None) -> Iterator[Done]:
    """Finished tasks as they come, from `jobs` workers started here or from those of the scheduler at an address."""
    readings, lacking = ({}, {}) if address is None else readings_of(tasks)
    yield from (failure(task, lacking[task.cell]) for task in tasks if task.cell in lacking)
    able = [task for task in tasks if task.cell not in lacking]
    with connected(jobs, address) as client, brought(readings, client):
        numbers = count()

        def sent(bundle: Bundle) -> Any:
            i = next(numbers)  # keys are never used twice, and early ones go first
            key = f"{bundle[0].slug}-{i}-{uuid4().hex[:8]}"
            return client.submit(run_bundle, bundle, key=key, pure=False, priority=-i)

        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            note(f"no worker is connected to the Dask scheduler at {address} yet: waiting for one")
        waiting = {sent(bundle): bundle for bundle in bundles(able, workers)}
        finished = as_completed(list(waiting))
        try:
            for future in finished:
                bundle = waiting.pop(future)
                if len(bundle) > 1 and _killed(future):  # one of them may be to blame: each goes alone
                    alone = {sent((task,)): (task,) for task in bundle}
                    waiting |= alone
                    finished.update(list(alone))
                else:
                    yield from _results(future, bundle)
                future.release()
        finally:
            with suppress(Exception):  # of a scheduler that has gone: there is nothing to cancel
                client.cancel(list(waiting))


def run_bundle(bundle: Bundle) -> list[Done]:
    """Work of a worker: a few tasks one after the other."""
    return [run_task(task) for task in bundle]


def bundles(tasks: Sequence[Task], workers: int) -> list[Bundle]:
    """Short tasks of one cell in bundles, smaller ones to the end: a message each would take longer than it should.

    A bundle is at most half a worker's share of what is left, so that the workers end together.
    """
    made: list[Bundle] = []
    size = 0
    for i, task in enumerate(tasks):
        last = made[-1] if made else ()
        if last and len(last) < size and last[0].place == task.place and last[0].weight < SHORT:
            made[-1] = (*last, task)
        else:
            made.append((task,))
            size = min((len(tasks) - i) // (2 * max(workers, 1)), LARGEST)
    return made


def _killed(future: Any) -> bool:
    return future.status == "error" and isinstance(future.exception(), KilledWorker)


def _results(future: Any, bundle: Bundle) -> list[Done]:
    """The finished tasks; rows that say why, where their workers died."""
    if future.status == "cancelled":
        raise InputError(GONE)
    if future.status != "error":
        return future.result()
    reason = "several workers died of it: is there enough memory?" if _killed(future) else message(future.exception())
    return [failure(task, reason) for task in bundle]


class Readings(WorkerPlugin):
    """Worker plugin: puts readings where tasks look for them first."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.name = PLUGIN
        self.sources = dict(sources)

    def setup(self, worker: object) -> None:
        """Called by every worker as it starts, or at once on those that run."""
        forget()  # a worker that has served before may hold a file as it was then
        SOURCES.update(self.sources)

    def teardown(self, worker: object) -> None:
        """Called when the run ends: the memory is given back."""
        for name in self.sources:
            SOURCES.pop(name, None)


@contextmanager
def brought(readings: Mapping[str, Source], client: Any) -> Iterator[None]:
    """Readings in the memory of every worker, for as long as they are needed."""
    if not readings:
        yield
        return
    send(Readings(readings), client)
    try:
        yield
    finally:
        if client.status == "running":
            with suppress(Exception):  # of a worker that dies meanwhile: the others have been told
                client.unregister_worker_plugin(PLUGIN)


def send(readings: Readings, client: Any) -> None:
    """Readings to all workers; again, where one died meanwhile (those that join later have them from the scheduler)."""
    for left in reversed(range(SENDINGS)):
        try:
            client.register_plugin(readings, name=PLUGIN)
            return
        except OSError as error:
            if client.status != "running":
                raise
            if not left:
                reason = " ".join(str(error).split())
                raise InputError(f"readings do not reach the Dask workers ({reason}): do workers keep dying?") from None
            sleep(PAUSE)


def readings_of(tasks: Sequence[Task]) -> tuple[dict[str, Source], dict[str, str]]:
    """Readings of the cells of tasks, simulations left out (workers make their own); why, where they cannot be had."""
    readings: dict[str, Source] = {}
    lacking: dict[str, str] = {}
    kept: dict[str, Source] = {}  # cells of one data set share its readings, and travel as one object
    for name in dict.fromkeys(task.cell for task in tasks if not task.cell.startswith("grssf-")):
        try:
            source = with_graph(source_of(name, 0))
        except Exception as error:
            lacking[name] = message(error)
            continue
        base = name if name.startswith("file:") else name.rpartition("-")[0]
        shared = kept.setdefault(base, source)
        same = shared.panel.sensors == source.panel.sensors and shared.panel.T == source.panel.T
        readings[name] = source._replace(panel=shared.panel) if same else source
    return readings, lacking


def with_graph(source: Source) -> Source:
    """The source with a graph file read here, where it is."""
    rule = source.treatment.graph
    if rule is None or rule in RULES:
        return source
    adjacency = read_graph(
        Path(rule).expanduser(), source.panel.sensors, directed=source.treatment.directed, fleet=source.treatment.fleet
    )
    panel = source.panel.with_graph(adjacency, directed=True)
    return source._replace(panel=panel, treatment=source.treatment._replace(graph="source"))


@contextmanager
def connected(jobs: int, address: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of a cluster started here for as long as it is needed."""
    with reached(address) if address is not None else started(jobs) as client:
        yield client


@contextmanager
def reached(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address; when that goes away, the client says so and nothing else does."""
    with silence_logging_cmgr(CRITICAL):
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"no Dask scheduler answers at {address} ({reason}): check the address") from None
        try:
            yield client
        except (OSError, CancelledError):
            raise InputError(GONE) from None
        finally:
            with suppress(Exception):
                client.close()


@contextmanager
def started(jobs: int) -> Iterator[Any]:
    """A client of a cluster on this machine, which a Ctrl-C finds whole or not at all: half of one cannot be closed."""
    begun = {"distributed.worker.multiprocessing-method": starter("distributed").get_start_method()}
    options: dict[str, Any] = {"n_workers": jobs, "threads_per_worker": 1, "processes": True, "silence_logs": CRITICAL}
    with single_threaded(), dask.config.set(LEAN | begun):
        stack = ExitStack()
        try:
            with unhurried():
                cluster = LocalCluster(**options, dashboard_address=None, env=dict(os.environ))
                stack.enter_context(cluster)
                client = stack.enter_context(Client(cluster))
            yield client
        finally:
            with unhurried(), suppress(TimeoutError):  # of a worker slow to end: by then it has been killed
                stack.close()
