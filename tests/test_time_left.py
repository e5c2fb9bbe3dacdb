"""What takes more than two seconds says on a terminal how long it will take."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from jointset import GraphLGSSM, generate_grssf
from jointset.bench.engine_local import run_local
from jointset.bench.plan import Settings, Task
from jointset.cli import app
from jointset.filters.pool import PooledFilter
from jointset.filters.quick import quick
from jointset.filters.var import VARFilter
from jointset.methods import predictor_for
from jointset.support.how_far import each, in_rows, listening, part, tell, telling
from jointset.terminal import seconds_left
from jointset.writing import write_panel, write_table

sys.path.insert(0, f"{__file__.rpartition('/')[0]}/bench")
PANEL = generate_grssf("A", n=8, seed=1, length=900).panel


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with rows and a model, on a terminal that is told of everything."""
    write_panel(PANEL, tmp_path / "rows.csv")
    predictor_for("kalman").fit(PANEL[:400]).calibrate(PANEL[400:700]).save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "200")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("jointset.terminal.PAUSE", 0.0)
    monkeypatch.setattr("jointset.writing.PIECE", 300)
    monkeypatch.setattr("jointset.inputs.reading.LARGE", 0)
    monkeypatch.setattr("jointset.support.files.MIB", 1000)
    return tmp_path


COMMANDS = {
    "generate new.csv --n 8 --length 900": ["writing, row 600 of 900"],
    "generate new.csv --n 8 --length 2000 --track D": ["simulating, row 100 of 200", "writing, row 600 of 2000"],
    "predict model rows.csv --out out.csv": ["reading, MiB 158 of 159", "writing, row 600 of 900"],
    "predict model rows.csv --out out.json": ["writing, row 600 of 900"],
    "sensors model --drop s001 --rename s002=two --rows rows.csv --out other": ["calibrating, row 900 of 900"],
    "fit rows.csv --method quick --out quick": ["fitting, 2 %", "fitting, 12 %", "fitting, 68 %"],
    "demo --compare --length 900 --n 8": ["kalman-tuned, 100 %"],
    "fit rows.csv --method msr+auto --out msr": ["fitting, 5 %"],
    "fit rows.csv --method corel+auto --out corel": ["calibrating, row 11 of 180"],
    "fit rows.csv --method spci+auto --out spci": ["testing, row 11 of 90"],
    "fit rows.csv --method ewma+auto --horizon 3 --out ewma": ["calibrating, row 90 of 180"],
    "audit model rows.csv --audits coverage,pit": ["coverage, 50 %", "pit, 56 %"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_how_long_they_will_take(command, place):
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    for said in COMMANDS[command]:
        assert re.search(re.escape(said) + r", \d+ s left", done.output), said


def test_the_report_of_a_benchmark_says_how_long_it_will_take(place):
    from synthetic_results import write_folder

    results = str(write_folder(place / "results"))
    done = CliRunner().invoke(app, ["report", results])
    early, late = r"writing the page, 25 %, \d+ s left", r"writing the page, 7\d %, \d+ s left"
    assert re.search(early, done.output) and re.search(late, done.output)
    for audit in place.rglob("results/**/*.json"):  # one of them is damaged
        audit.unlink()
    done = CliRunner().invoke(app, ["tables", results])
    assert re.search(r"reading results, 20 %, \d+ s left", done.output)


def test_pictures_of_a_benchmark_say_how_long_they_will_take(place):
    from synthetic_results import write_folder

    results = write_folder(place / "results")
    for audit in results.rglob("*.json"):  # one of them is damaged
        audit.unlink()
    done = CliRunner().invoke(app, ["tables", str(results), "--out", "tables", "--figures"])
    assert re.search(r"drawing, picture 3 of \d+, \d+ s left", done.output)


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_table_written_in_pieces_is_the_one_written_whole(suffix, rows, tmp_path, monkeypatch):
    table = pd.DataFrame(
        {"time": pd.date_range("2026-01-01", periods=rows, freq="h"), "a": [0.1 * i for i in range(rows)]}
    )
    write_table(table, tmp_path / f"whole.{suffix}")
    monkeypatch.setattr("jointset.writing.PIECE", 3)
    write_table(table, tmp_path / f"pieces.{suffix}")
    whole = (tmp_path / f"whole.{suffix}").read_text()
    assert (tmp_path / f"pieces.{suffix}").read_text() == whole
    read = pd.read_json if suffix == "json" else pd.read_csv
    assert len(read(tmp_path / f"whole.{suffix}")) == rows


@pytest.mark.parametrize("filter_", [VARFilter(), quick(), PooledFilter([GraphLGSSM(), GraphLGSSM(rho=0.5)])])
def test_a_fit_tells_steps_that_only_go_on_and_is_the_same(filter_):
    told = []
    fitted = filter_.fit(PANEL[:400], progress=lambda step, steps, loss: told.append((step, steps)))
    steps = [step for step, _ in told]
    assert steps == sorted(steps) and len({total for _, total in told}) == 1 and 0 < steps[-1] <= told[0][1]
    plain = filter_.fit(PANEL[:400])
    assert (fitted.law(fitted.start()).mean == plain.law(plain.start()).mean).all()


def heard(work):
    """What is told of some work, as shares."""
    told = []
    with listening(lambda step, steps, loss: told.append(step / steps)):
        work()
    return told


def test_parts_of_parts_count_for_their_share():
    def work():
        for _ in each(range(2)):
            with part(1, 2):
                tell(1, 5)
        tell(1, 10)  # less than is known: not told

    assert heard(work) == [0.05, 0.25, 0.5, 0.55, 0.75, 1.0]


def test_who_is_left_out_half_way_leaves_the_whole_as_it_was():
    def work():
        with suppress(ValueError):
            for _ in each(range(4)):
                raise ValueError
        tell(1, 2)

    assert heard(work) == [0.5]


def test_other_threads_tell_only_through_what_was_made_here():
    def work():
        with ThreadPoolExecutor(1) as pool:
            pool.submit(tell, 1, 4).result()
            pool.submit(telling(), 3, 4, 0.0).result()

    assert heard(work) == [0.75]


def test_rows_told_are_all_rows_once():
    rows = []
    with listening(in_rows(rows.append, 7)):
        for _ in each(range(5)):
            pass
    assert sum(rows) == 7 and min(rows) > 0


@pytest.mark.parametrize("method", ["msr", "ewma", "corel+auto", "spci-empirical"])
def test_every_method_is_the_same_whether_somebody_listens_or_not(method):
    told = []
    loud = predictor_for(method).fit(PANEL[:400], progress=lambda step, steps, loss: told.append((step, steps)))
    loud.calibrate(PANEL[400:700], progress=lambda rows: told.append((rows, 300)))
    plain = predictor_for(method).fit(PANEL[:400]).calibrate(PANEL[400:700])
    assert sum(rows for rows, total in told if total == 300) == 300
    assert (loud.run(PANEL[700:]).upper == plain.run(PANEL[700:]).upper).all()


def test_a_single_task_of_a_benchmark_says_how_far_it_is():
    task = Task("grssf-a-30", "text", "own", ("var",), (0,), Settings())
    assert len(heard(lambda: list(run_local([task])))) > 3


def test_a_run_that_goes_on_is_timed_by_its_own_steps(monkeypatch):
    now = iter([0.0, 5.0, 6.0, 8.0])
    monkeypatch.setattr("jointset.terminal.time", SimpleNamespace(perf_counter=lambda: next(now)))
    left = seconds_left()
    assert left(2000, 3000) == pytest.approx(5.0 / 2000 * 1000)  # all it can know
    assert left(2050, 3000) == pytest.approx(1.0 / 50 * 950)
    assert left(2150, 3000) == pytest.approx(3.0 / 150 * 850)
