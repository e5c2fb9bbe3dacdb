"""`bench` and `fit` mean the same by one name on a user's file: blocks, gaps, shapes, graph and units."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import Panel, generate_grssf
from jointset.bench.plan import tasks
from jointset.bench.results import read_results
from jointset.bench.task import run_task
from jointset.catalogue import LEARNED, bare
from jointset.cli import app
from jointset.datasets.cells import cell
from jointset.datasets.protocols import default_protocol
from jointset.methods import METHODS, predictor_for, three_blocks
from jointset.paper_rows import CATALOGUE
from jointset.writing import write_edges

EXTRA = ("kalman:box", "static:box+aci", "ewma+agaci", "spci+aci", "kalman+pid", "kalman-tuned+dtaci")
NAMES = tuple(dict.fromkeys([e.name for e in CATALOGUE if bare(e.name) not in LEARNED] + [*EXTRA]))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A file with gaps, readings of very different sizes, and its graph."""
    folder = tmp_path_factory.mktemp("own")
    panel = generate_grssf("D", n=8, seed=1, length=900).panel
    rng = np.random.default_rng(0)
    values = 1000.0 + panel.values * np.array([1.0, 3.0, 10.0, 0.2, 20.0, 1.0, 0.1, 5.0])
    values[rng.random(values.shape) < 0.03] = np.nan
    values[400:430, 2] = np.nan  # an outage, longer than what is filled with the last reading
    values[850:870, 1] = np.nan  # and one in the test block
    panel = panel.with_values(values)
    panel.to_pandas().to_csv(folder / "own.csv")
    write_edges(panel, folder / "edges.csv")
    return folder


@pytest.fixture(scope="module")
def benched(place):
    cell_name = f"file:{place / 'own.csv'}?graph={place / 'edges.csv'}"
    rows = [row for task in tasks([cell_name], NAMES, [0], protocols=(None,)) for row in run_task(task).rows]
    return {row["method"]: row for row in rows}


def test_all_methods_that_are_not_learned_are_compared(benched):
    assert {bare(name) for name in benched} == set(METHODS) - set(LEARNED)
    assert not [row["error"] for row in benched.values() if row["error"]]
    assert {row["protocol"] for row in benched.values()} == {"fit"}


@pytest.mark.parametrize("name", NAMES)
def test_bench_and_fit_give_the_same_numbers(name, place, benched):
    panel = Panel.read(place / "own.csv", graph=place / "edges.csv")
    train, calibration, test = three_blocks(panel)
    run = predictor_for(name).fit(train).calibrate(calibration).run(test, regions=False)
    row, fitted = benched[name], run.summary()
    assert row["n_test"] == len(test) == 90
    for key in ("joint", "marginal", "width", "width_full", "log_volume"):
        assert row[key] == pytest.approx(fitted[key], rel=1e-9, abs=1e-9), key


def test_the_two_commands_print_the_same(place, tmp_path):
    file, graph = place / "own.csv", place / "edges.csv"
    asked = ["--methods", "static:ellipsoid", "--out", str(tmp_path / "results"), "--jobs", "1"]
    done = CliRunner().invoke(app, ["bench", "--cells", f"file:{file}?graph={graph}", *asked])
    assert done.exit_code == 0, done.output
    row = read_results(tmp_path / "results").iloc[0]
    fit = ["fit", str(file), "--graph", str(graph), "--method", "static", "--out", str(tmp_path / "model")]
    printed = CliRunner().invoke(app, fit).stdout
    assert row["protocol"] == "fit" and f"{100 * row['joint']:.1f} % of the time" in printed
    assert re.search(rf"│ +{row['width']:.3f} +│ +{row['width_full']:.3f} ", printed)


# ---------------------------------------------------------------------- the cell


def test_a_file_is_left_as_it_is(place):
    own, name = Panel.read(place / "own.csv"), f"file:{place / 'own.csv'}"
    found = cell(name)
    assert found.protocol == default_protocol(name) == "fit" and default_protocol("metr-la-20") == "text"
    assert np.array_equal(found.panel.values, own.values, equal_nan=True)  # no gap filled, no unit changed
    blocks = [(block.start, block.stop) for block in found.blocks.values()]
    assert [*found.blocks] == ["train", "calibration", "test"] and blocks == [(0, 630), (630, 810), (810, 900)]
    assert found.panel.adjacency is None  # as in fit; graph=knn asks for one
    assert cell(f"{name}?graph=knn").panel.adjacency is not None


def test_gaps_are_never_scored_as_truth(place):
    """Readings that are missing in the test block leave no mark on a run: nothing stands in their place."""
    from jointset.experiments.rows import run_row

    found = cell(f"file:{place / 'own.csv'}")
    run = run_row("static", found)
    assert np.array_equal(np.isnan(run.values), np.isnan(Panel.read(place / "own.csv").values[810:]))


def test_the_protocols_of_the_paper_are_there_when_asked_for(place):
    for protocol in ("text", "table"):
        found = cell(f"file:{place / 'own.csv'}", protocol)
        assert not np.isnan(found.panel.values).any() and len(found.blocks) == 4
        assert found.panel.adjacency is not None
    masked = cell(f"file:{place / 'own.csv'}?missing=mask", "text")
    assert np.isnan(masked.panel.values).any()


def test_filling_and_protocol_fit_contradict_each_other(place):
    from jointset import InputError

    with pytest.raises(InputError, match="protocol fit leaves gaps as they are"):
        cell(f"file:{place / 'own.csv'}?missing=fill")


def test_sensors_codes_and_logarithms_of_a_file_work_in_it(place):
    found = cell(f"file:{place / 'own.csv'}?n=3&log=yes&sentinels=-99")
    assert found.panel.n_sensors == 3 and np.nanmax(found.panel.values) < 4.0
    assert found.preprocess.invert(found.panel.values)[0] == pytest.approx(found.raw.values[0], nan_ok=True)


def test_a_graph_from_correlations_is_the_same_in_both(place, tmp_path):
    file = place / "own.csv"
    fit = ["fit", str(file), "--graph", "knn", "--method", "group", "--out", str(tmp_path / "model")]
    printed = CliRunner().invoke(app, fit)
    assert printed.exit_code in (0, 3), printed.output
    from jointset.experiments.rows import run_row

    assert f"{100 * run_row('group', cell(f'file:{file}?graph=knn')).joint:.1f} % of the time" in printed.stdout
    bare = CliRunner().invoke(app, ["fit", str(file), "--method", "group", "--out", str(tmp_path / "other")])
    assert bare.exit_code == 2 and "knn" in bare.stderr


def test_audits_of_a_file_cell_and_named_cells_in_protocol_fit(place, tmp_path):
    asked = [
        "audit",
        "--filters",
        "kalman,static:ellipsoid",
        "--out",
        str(tmp_path),
        "--audits",
        "coverage,m_eff,plug_in,pit",
    ]
    done = CliRunner().invoke(app, [*asked, "--cells", f"file:{place / 'own.csv'}"])
    assert done.exit_code == 0 and "(fit, seed 0)" in done.stdout, done.output
    assert "a covariance from the calibration block itself" in " ".join(done.stdout.split())
    simulated = cell("grssf-a-30", "fit")
    assert len(simulated.test) == 800 and len(simulated.calibration) == 1600
