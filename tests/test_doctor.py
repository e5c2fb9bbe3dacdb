"""`jointset doctor`, `--json` wherever a table is printed, shell completion, and how long things will take."""

import importlib
import importlib.metadata
import inspect
import json
import os
import pkgutil
import sys

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from jointset import commands as parts
from jointset import terminal
from jointset.bench.tables.model import Column, Number, Table
from jointset.bench.tables.render import as_data, comma_separated
from jointset.cli import app
from jointset.commands import bench, doctor
from jointset.datasets import generate_grssf
from jointset.terminal import counted, phases
from jointset.writing import write_panel

REQUIRED = ["numpy>=1.26", "pandas>=99", "no-such-package>=1", 'torch>=2.4; extra == "learn"', 'h5py; extra == "hdf5"']


def jointset(*words):
    return CliRunner().invoke(app, [*words])


def answer(*words):
    """The JSON that a command prints, alone on stdout."""
    done = jointset(*words)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


# ---------------------------------------------------------------------- doctor


def test_doctor_names_what_is_missing_and_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: REQUIRED)
    monkeypatch.setenv("JOINTSET_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "torch", None)
    done = jointset("doctor", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1  # packages that it cannot do without
    assert found["packages"]["numpy"]["fits"] and not found["packages"]["pandas"]["fits"]
    assert found["packages"]["no-such-package"] == {"needs": ">=1", "version": None, "fits": False}
    assert found["missing"][:2] == [
        "pandas: pip install 'pandas>=99'",
        "no-such-package: pip install 'no-such-package>=1'",
    ]
    assert "jointset[learn]" in found["devices"]["cuda"]
    assert found["folders"]["JOINTSET_DATA"]["state"] == "not there"
    assert found["data"]["ett"] == "download" and found["missing"][-1].endswith(": jointset data fetch NAME")
    assert found["missing"][-1].startswith("data sets ") and "ett, " in found["missing"][-1]
    text = jointset("doctor")
    assert f"{pd.__version__}, too old" in text.stdout and "not installed" in text.stdout
    assert text.stdout.count("jointset data fetch NAME") == 1 and text.exit_code == 1


def test_doctor_is_content_where_nothing_lacks(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: REQUIRED[:1])
    monkeypatch.setattr(doctor, "data_sets", lambda: {"grssf-a": "generated"})
    done = jointset("doctor")
    assert done.exit_code == 0 and done.stdout.rstrip().endswith("missing: nothing")


def test_every_extra_that_a_user_may_want_is_explained():
    import tomllib
    from pathlib import Path

    extras = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(doctor.PURPOSES) == set(extras) - {"dev", "docs"}


# ---------------------------------------------------------------------- JSON instead of tables


def commands(group, name=()):
    """Every command with the words that call it."""
    for key, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*name, key)) or [((*name, key), command)]
        if not getattr(command, "commands", None):
            yield (*name, key), command


def reached(function):
    """Names that a function of the commands uses, itself or through others of them."""
    modules = [importlib.import_module(f"jointset.commands.{one.name}") for one in pkgutil.iter_modules(parts.__path__)]
    known = {name: one for module in (terminal, *modules) for name, one in vars(module).items()}
    found, ahead = set(), [function.__code__]
    while ahead:
        code = ahead.pop()
        ahead += [one for one in code.co_consts if inspect.iscode(one)]
        new = {*code.co_names} - found
        found |= new
        ahead += [known[name].__code__ for name in new if inspect.isfunction(known.get(name))]
    return found


def test_every_command_that_prints_a_table_has_json():
    flags = {name: [flag for p in one.params for flag in p.opts] for name, one in commands(typer.main.get_command(app))}
    uses = {name: reached(inspect.unwrap(one.callback)) for name, one in commands(typer.main.get_command(app))}
    tables = {name for name, used in uses.items() if {"show_table", "Table", "render"} & used}
    assert tables >= {("fit",), ("predict",), ("tables",), ("methods",), ("doctor",), ("store", "check")}
    assert not {("serve",), ("generate",), ("data", "path")} & tables
    assert [name for name in tables if "--json" not in flags[name]] == []


@pytest.fixture
def readings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_panel(generate_grssf("A", n=8, length=600).panel, tmp_path / "readings.csv")
    return tmp_path


def test_fit_and_demo_in_numbers(readings, monkeypatch):
    monkeypatch.setattr("jointset.report.demo.METHODS", {"kalman": False, "static": True})
    monkeypatch.setattr("jointset.report.demo.write_report", lambda folder, *rest: folder / "report.html")
    found = answer("fit", "readings.csv", "--out", "model", "--method", "kalman", "--json")
    assert found["rows"] == {"training": 420, "calibration": 120, "test": 60} and found["scores"] == 71
    assert found["method"] == "kalman" and len(found["sensors"]) == 8 and 0.5 < found["test"]["joint"] <= 1.0
    shown = answer("demo", "--compare", "--json", "--n", "8", "--length", "800")
    assert shown["methods"]["static"]["steps"] == 80 and shown["page"] == "demo/report.html"


def test_data_in_numbers(readings):
    listed = answer("data", "list", "--json")
    assert {"name": "metr-la", "steps": 34272, "sensors": 207, "cadence": 300}.items() <= listed[0].items()
    shown = answer("data", "show", "file:readings.csv", "--json", "--out", "cell.png")
    assert shown["blocks"]["train"]["steps"] == 420 and len(shown["sensors"]) == 8 and os.path.exists("cell.png")
    assert shown["sensors"][0].keys() == {"sensor", "mean", "sd", "gaps", "neighbours"}


def test_bench_in_numbers():
    row = {"cell": "c", "protocol": "fit", "method": "kalman", "backbone": "own"}
    row |= {"status": "ok", "note": "", "horizon": 1}
    numbers = [dict.fromkeys(bench.SHOWN, size) for size in (1.0, 3.0)]
    results = pd.DataFrame([row | one for one in (*numbers, dict.fromkeys(bench.SHOWN, 9.0) | {"status": "error"})])
    bench_of_run = bench.of_run
    try:
        bench.of_run = lambda rows, keys: [True] * len(rows)
        (found,) = bench.rows_shown(results, set())
    finally:
        bench.of_run = bench_of_run
    assert found["seeds"] == 2 and found["joint"] == 2.0 and found["method"] == "kalman"


def test_a_table_as_data_has_the_columns_of_its_csv():
    rows = (("a", Number(1.25, 0.5, rank="best"), "word"), ("b", Number(float("inf")), None))
    table = Table("t", "A table", ("method",), (Column("width", "metr-la"), Column("said")), rows, ("a note",))
    found = as_data(table)
    assert list(found["rows"][0]) == comma_separated(table).splitlines()[0].split(",")
    assert found["rows"][0] == {
        "method": "a", "metr-la width": 1.25, "metr-la width sd": 0.5, "metr-la width mark": "best", "said": "word"
    }  # fmt: skip
    assert found["rows"][1]["said"] is None and found["notes"] == ["a note"]


# ---------------------------------------------------------------------- completion and progress


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fit --method kalman-", "kalman-tuned"),
        ("fit --method ewma+dt", "ewma+dtaci ewma+dtaci-tail"),
        ("fit --shape b", "box"),
        ("fit --calibration spl", "split split-tail"),
        ("fit --recipe p", "paper"),
        ("fit --layout w", "wide"),
        ("audit --audits coverage,rho_d", "coverage,rho_dG"),
        ("tables --only her", "hero"),
        ("bench --methods kal", "kalman kalman-tuned"),
        ("bench --methods kalman,kal", "kalman,kalman-tuned"),
        ("bench --methods ewma,pub", "ewma,published"),
        ("bench --cells grssf-a-30,metr", "grssf-a-30,metr-la-20 grssf-a-30,metr-la-207 grssf-a-30,metr-la"),
        ("audit --cells sol", "solar-20 solar"),
        ("audit --filters ewma,gnf-n", "ewma,gnf-node"),
        ("data fetch elec", "elec elec-uci"),
        ("data show aq", "aqi-12 aqi"),
    ],
)
def test_a_shell_completes_names_also_in_a_list(typed, offered):
    words = f"jointset {typed}".split()
    asked = {"COMP_CWORD": str(len(words) - 1), "COMP_WORDS": " ".join(words)}
    found = CliRunner().invoke(app, prog_name="jointset", env=asked | {"_JOINTSET_COMPLETE": "complete_bash"})
    assert found.stdout.split() == offered.split()


def test_rows_say_how_long_they_will_take(monkeypatch):
    told, clock = [], iter([0.0, 30.0, 60.0])
    monkeypatch.setattr("jointset.terminal.time.perf_counter", lambda: next(clock))
    more = counted(lambda text, by: told.append(text), "testing", 400)
    more(100)
    more(100)
    assert told == ["testing, row 100 of 400, 90 s left", "testing, row 200 of 400, 60 s left"]


@pytest.mark.parametrize("alike", [True, False])
def test_a_bar_of_rows_has_the_time_left(alike, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with phases(10, alike=alike) as started:
        started("rows", 5)
    assert ("left" in capsys.readouterr().err) == alike
