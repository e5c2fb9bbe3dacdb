"""Tasks on this machine: worker processes that live as long as the run, one task each at a time.

A worker keeps to the cell it has at hand while there is work on it. One that dies (out of memory, killed) takes only
its task with it: the task goes to a new worker, and after a third death becomes an error. When this process is gone,
whatever ended it, a worker ends by itself after its present task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from jointset.bench.plan import Task
from jointset.bench.processes import deaf, single_threaded, starter, take
from jointset.bench.task import Done, failure, run_task
from jointset.support.how_far import FINE, listening, tell

TRIES = 3  # workers a task may take down before it is given up
STARTED = "started"  # the first word of a worker
DIED = f"{TRIES} worker processes died of it: is there enough memory?"
NEVER = f"{TRIES} worker processes did not start: scripts must guard what they run with if __name__ == '__main__'"


class Worker:
    """A process and the line to it; `task` is what it works on."""

    def __init__(self, context: Any) -> None:
        self.line, far = context.Pipe()
        with single_threaded(), deaf():
            self.process = context.Process(target=serve, args=(far, dict(os.environ)), daemon=True)
            self.process.start()
        far.close()  # so that a dead worker ends the line
        self.task: Task | None = None
        self.share = 0.0  # of the task that is done
        self.place: tuple[str, str, int] | None = None  # the cell it has at hand

    def give(self, task: Task) -> None:
        """Hand a task over; a worker that is already dead is noticed when its answer is read."""
        self.task, self.place, self.share = task, task.place, 0.0
        with suppress(OSError):
            self.line.send(task)

    def answer(self) -> Done | str | float | None:
        """The finished task, STARTED once before the first, how much of one is done, or None where the worker died."""
        try:
            return self.line.recv()
        except (EOFError, OSError):
            return None

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.line.close()
        self.process.kill()
        self.process.join()


def serve(line: Connection, environment: dict[str, str]) -> None:
    """Work of a worker process: tasks in, finished ones out, until the line ends."""
    take(environment)

    def told(step: int, steps: int, loss: float) -> None:
        with suppress(OSError):
            line.send(step / steps)

    with suppress(EOFError, OSError):
        line.send(STARTED)
        while True:
            task = line.recv()
            with listening(told):
                done = run_task(task)
            line.send(done)


def run_local(tasks: Sequence[Task], jobs: int = 1) -> Iterator[Done]:
    """Finished tasks as they come from `jobs` processes."""
    context = starter()
    waiting, deaths = list(tasks), dict.fromkeys(tasks, 0)
    whole, worked = sum(task.weight for task in tasks), 0.0
    workers: list[Worker] = []
    started = False
    try:
        while waiting or any(worker.task for worker in workers):
            while waiting and len(workers) < jobs:
                workers.append(Worker(context))
                workers[-1].give(_next(waiting, workers[-1], workers))
            ready = wait([worker.line for worker in workers if worker.task])
            for worker in [worker for worker in workers if worker.line in ready]:
                task, done = worker.task, worker.answer()
                assert task is not None
                started = started or done is not None
                if isinstance(done, str):
                    continue
                if isinstance(done, float):
                    worker.share = done
                    at_work = sum(one.share * one.task.weight for one in workers if one.task)
                    tell(int(FINE * (worked + at_work) / whole), FINE)
                    continue
                worker.task = None
                if done is None:
                    worker.stop()
                    workers.remove(worker)
                    deaths[task] += 1
                    if deaths[task] < TRIES:
                        waiting.insert(0, task)
                        continue
                    done = failure(task, DIED if started else NEVER)
                elif waiting:  # before the rows are written: a worker does not wait for that
                    worker.give(_next(waiting, worker, workers))
                worked += task.weight
                yield done
            for worker in workers:  # those that had nothing to do until a task came back
                if worker.task is None and waiting:
                    worker.give(_next(waiting, worker, workers))
    finally:
        for worker in workers:
            worker.stop()


def _next(waiting: list[Task], worker: Worker, workers: Sequence[Worker]) -> Task:
    """The first task on the cell the worker has at hand, else the first on a cell no other has, else the first."""
    elsewhere = {other.place for other in workers if other is not worker and other.task}
    own = (i for i, task in enumerate(waiting) if task.place == worker.place)
    free = (i for i, task in enumerate(waiting) if task.place not in elsewhere)
    return waiting.pop(next(own, next(free, 0)))
