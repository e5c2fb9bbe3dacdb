"""Engines: the same rows whoever works them out, and no row lost or doubled when a worker dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pandas as pd
import pytest

from jointset.bench import engine_local, processes
from jointset.bench.engine_local import TRIES, run_local
from jointset.bench.plan import Settings, Task, tasks
from jointset.bench.results import MEASURED, read_results
from jointset.bench.runner import fill
from jointset.bench.task import run_task
from jointset.commands.bench import engine_named
from jointset.datasets import generate_grssf
from jointset.errors import InputError
from jointset.writing import write_edges, write_panel

METHODS = ["static", "factor", "factor+aci", "kalman"]


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readings")
    panel = generate_grssf("A", n=8, seed=1, length=1500).panel
    write_panel(panel, folder / "readings.csv")
    write_edges(panel, folder / "edges.csv")
    return folder


@pytest.fixture
def planned(readings: Path) -> list[Task]:
    cell = f"file:{readings}/readings.csv?n=5&graph={readings}/edges.csv"
    return tasks([cell], METHODS, range(2), protocols=["text", "table"])


@pytest.fixture(scope="module")
def expected(readings: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Rows worked out here, one task after the other."""
    cell = f"file:{readings}/readings.csv?n=5&graph={readings}/edges.csv"
    whole = tasks([cell], METHODS, range(2), protocols=["text", "table"])
    return filled_by(tmp_path_factory.mktemp("expected"), whole, lambda given: map(run_task, given))


def filled_by(folder: Path, planned: list[Task], engine) -> pd.DataFrame:
    """What a folder holds after an engine went through the tasks, without what differs from run to run."""
    seen: list[str] = []
    fill(folder, planned, engine, finished=lambda done: seen.append(done.task.slug))
    assert sorted(seen) == sorted(task.slug for task in planned)  # none lost, none twice
    table = read_results(folder)
    assert (table["status"] == "ok").all(), table["error"].tolist()
    return table.drop(columns=[*MEASURED])


@pytest.mark.parametrize(("jobs", "forks"), [(1, True), (2, True), (2, False)])
def test_local_processes_give_the_same_bits_in_the_same_order(jobs, forks, planned, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "FORKS", processes.FORKS and forks)
    table = filled_by(tmp_path, planned, lambda given: run_local(given, jobs))
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


@pytest.mark.parametrize("forks", [True, False])
def test_a_killed_local_worker_costs_nothing(forks, planned, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "FORKS", processes.FORKS and forks)

    def engine(given):
        finished = run_local(given, 2)
        yield from islice(finished, 2)
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)
        yield from finished

    pd.testing.assert_frame_equal(filled_by(tmp_path, planned, engine), expected, check_exact=True)


@dataclass(frozen=True)
class Deadly(Task):
    """A task that takes its worker down."""

    @property
    def cell_seed(self) -> int:
        if multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


def test_a_task_that_kills_every_worker_is_an_error_and_the_rest_goes_on(planned):
    deadly = deadly_like(planned[0])
    found = {done.task: done for done in run_local([planned[1], deadly, planned[2]], 2)}
    assert {row["status"] for row in found[deadly].rows} == {"error"}
    assert f"{TRIES} worker processes died" in found[deadly].rows[0]["error"]
    assert all(row["status"] == "ok" for task in planned[1:3] for row in found[task].rows)


def deadly_like(task: Task) -> Deadly:
    return Deadly(task.cell, task.protocol, task.backbone, task.names, task.seeds, Settings())


def test_only_workers_that_never_start_are_blamed_on_a_script(planned, monkeypatch):
    (done,) = run_local([deadly_like(planned[0])])
    assert done.rows[0]["error"] == engine_local.DIED
    monkeypatch.setattr(engine_local, "serve", os._exit)  # a process that ends before it says a word
    (done,) = run_local(planned[:1])
    assert done.rows[0]["error"] == engine_local.NEVER


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_waits_for_what_must_not_be_left_half_done_and_a_second_one_does_not(number):
    whole = []

    def stopped(times: int) -> None:
        with processes.unhurried():
            for _ in range(times):
                signal.raise_signal(number)
            whole.append(times)

    before = signal.signal(number, signal.default_int_handler)
    try:
        for times in (1, 2):
            with pytest.raises(KeyboardInterrupt):
                stopped(times)
        assert whole == [1]
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_no_process_is_left_when_a_run_is_dropped(planned):
    finished = run_local(planned, 2)
    next(finished)
    assert len(multiprocessing.active_children()) == 2
    finished.close()
    assert not multiprocessing.active_children()


@dataclass(frozen=True)
class Telling(Task):
    """A task that tells what the environment of its worker is."""

    @property
    def cell_seed(self) -> int:
        if multiprocessing.parent_process() is not None:
            raise InputError(f"{os.environ.get('JOINTSET_DATA')} {os.environ['OMP_NUM_THREADS']}")
        return 0


def test_workers_take_the_environment_as_it_is_when_the_run_begins(planned, monkeypatch):
    telling = Telling(planned[0].cell, "text", "gpvar", ("static",), (0,), Settings())
    for place in ("here", "there"):
        monkeypatch.setenv("JOINTSET_DATA", place)
        (done,) = run_local([telling])
        assert done.rows[0]["error"] == f"{place} 1"  # one thread each, whatever it is here


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_workers_here_find_files_from_the_folder_the_run_begins_in(engine, readings, monkeypatch):
    monkeypatch.chdir(readings)
    if engine == "dask":
        pytest.importorskip("distributed")
    (done,) = engine_named(engine, 1)(tasks(["file:readings.csv?graph=edges.csv"], ["ewma"], [0]))
    assert done.rows[0]["error"] == ""


def test_a_dask_worker_that_is_killed_or_slow_to_end_costs_nothing(planned, expected, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from jointset.bench import engine_dask

    class Slow(distributed.LocalCluster):
        def close(self, timeout=None):
            super().close(timeout)
            raise TimeoutError  # as on a busy machine, when the last worker has been killed but is not gone yet

    monkeypatch.setattr(engine_dask, "LocalCluster", Slow)

    def engine(given):
        finished = engine_dask.run_dask(given, 2)
        yield from islice(finished, 2)
        pids = distributed.default_client().run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        yield from finished

    pd.testing.assert_frame_equal(filled_by(tmp_path, planned, engine), expected, check_exact=True)


def test_a_dask_worker_has_as_long_to_come_back_as_its_tasks_wait_for_one():
    """Dask gives up a worker that takes 15 s to start anew: on a busy machine the tasks would wait for none."""
    pytest.importorskip("distributed")
    from dask.utils import parse_timedelta

    from jointset.bench.engine_dask import LEAN

    names = ("deploy.lost-worker", "scheduler.no-workers")
    back, wait = (LEAN.get(f"distributed.{name}-timeout", "15s") for name in names)
    assert parse_timedelta(back) >= parse_timedelta(wait) > 60


def test_readings_travel_to_dask_workers_that_have_no_data(readings, tmp_path, monkeypatch):
    """Workers sit in an empty folder, where the relative path of the cell and of its graph leads nowhere."""
    pytest.importorskip("distributed")
    from jointset.bench.engine_dask import run_dask, started

    monkeypatch.chdir(tmp_path)
    with started(1) as client:
        monkeypatch.chdir(readings)
        planned = tasks(["file:readings.csv?graph=edges.csv", "grssf-a-8"], ["static", "ewma"], [0])
        rows = [row for done in run_dask(planned, address=client.scheduler.address) for row in done.rows]
    assert [row["error"] for row in rows] == [""] * 4


@pytest.mark.slow
def test_a_task_that_kills_every_dask_worker_takes_no_other_with_it(planned):
    pytest.importorskip("distributed")
    from jointset.bench.engine_dask import bundles, run_dask

    first = planned[0]
    deadly = Deadly(first.cell, first.protocol, first.backbone, first.names, first.seeds, Settings(alpha=0.2))
    more = [replace(task, settings=Settings(alpha=alpha)) for alpha in (0.1, 0.3) for task in planned]
    given = [more[0], deadly, *more[1:]]
    bundled = bundles(given, 1)
    assert [task for bundle in bundled for task in bundle] == given
    assert any(deadly in bundle and len(bundle) > 1 for bundle in bundled)
    found = {done.task: done for done in run_dask(given, 1)}
    assert len(found) == len(given)
    assert {row["status"] for row in found[deadly].rows} == {"error"}
    assert "workers died" in found[deadly].rows[0]["error"]
    assert all(row["status"] == "ok" for task in more for row in found[task].rows)


def test_a_scheduler_that_is_not_there_is_one_line(planned, monkeypatch):
    pytest.importorskip("distributed")
    from jointset.bench import engine_dask

    monkeypatch.setattr(engine_dask, "PATIENCE", "1s")
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 "):
        list(engine_dask.run_dask(planned[:1], address="tcp://127.0.0.1:1"))


def test_a_worker_that_served_before_takes_the_readings_it_is_given(tmp_path):
    pytest.importorskip("distributed")
    from jointset.bench.engine_dask import Readings
    from jointset.bench.task import SOURCES, cell_of
    from jointset.datasets.origins import file_source

    file = tmp_path / "readings.csv"
    widths = []
    for seed in (1, 2):
        write_panel(generate_grssf("A", n=8, seed=seed, length=400).panel, file)
        name = f"file:{file}"
        served = Readings({name: file_source(name)})
        served.setup(None)
        widths.append(cell_of(Task(name, "text", "gpvar", ("static",), (0,), Settings())).panel.values.std())
        served.teardown(None)
    assert widths[0] != widths[1] and name not in SOURCES


class Client:
    """A Dask client as far as readings are concerned; workers die while the first ones are sent."""

    def __init__(self, deaths: int) -> None:
        self.status, self.deaths, self.told = "running", deaths, []

    def register_plugin(self, plugin, name):
        self.told.append("sent")
        if len(self.told) <= self.deaths:
            raise OSError("Stream is closed")

    def unregister_worker_plugin(self, name):
        self.told.append("taken back")
        raise OSError("Stream is closed")


def test_readings_are_sent_again_where_a_worker_died_meanwhile(monkeypatch):
    pytest.importorskip("distributed")
    from jointset.bench import engine_dask

    monkeypatch.setattr(engine_dask, "PAUSE", 0.0)
    client = Client(deaths=2)
    with engine_dask.brought({"cell": None}, client):
        assert client.told == ["sent"] * 3
    assert client.told[3:] == ["taken back"]  # a death at that moment is no error
    with pytest.raises(InputError, match="do workers keep dying"), engine_dask.brought({"cell": None}, Client(99)):
        pass


def test_a_scheduler_that_goes_away_is_one_line(planned, capfd):
    distributed = pytest.importorskip("distributed")
    from jointset.bench.engine_dask import GONE, run_dask

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        finished = run_dask(planned, address=cluster.scheduler_address)
        next(finished)
        capfd.readouterr()
        cluster.close()
        with pytest.raises(InputError) as caught:
            list(finished)
    assert str(caught.value) == GONE
    assert capfd.readouterr().err == ""
