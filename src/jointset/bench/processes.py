"""How worker processes are started: soon, with one thread, and deaf to a Ctrl-C, which is for the parent alone.

On Linux they are forked from a process that does nothing else: it loads what they need once, while the parent still
plans, and a worker is there at once. Elsewhere every worker starts from nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
FORKS = sys.platform == "linux"
NEEDED = [
    *("__main__", "jointset.bench.engine_local", "jointset.datasets.registry", "jointset.experiments.rows"),
    *("threadpoolctl", "scipy.special"),
]


def starter(*more: str) -> Any:
    """What makes processes and lines to them; on Linux their origin begins to load modules at once, `more` besides.

    A program has one such origin: what else it starts by `forkserver` afterwards has one thread and no Ctrl-C too.
    """
    if not FORKS:
        return multiprocessing.get_context("spawn")
    from multiprocessing.forkserver import ensure_running

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*NEEDED, *more])
    try:
        with single_threaded(), deaf():
            ensure_running()
    except ChildProcessError:  # the origin is that of a process this one was forked from
        return multiprocessing.get_context("spawn")
    return context


@contextmanager
def single_threaded() -> Iterator[None]:
    """Processes started here have one thread each: set before they load any library."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def deaf() -> Iterator[None]:
    """Processes started here do not hear a Ctrl-C, from their first moment; this one hears it a little later."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # a process of Python's own, whose start would give the signals free again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def unhurried() -> Iterator[None]:
    """A Ctrl-C is heard when what is begun here is done; a second one at once."""
    if threading.current_thread() is not threading.main_thread():  # it hears none
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


def take(environment: dict[str, str]) -> None:
    """In a worker: the parent's environment as it is now, and no Ctrl-C."""
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
