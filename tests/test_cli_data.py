import warnings

import numpy as np
import pytest
import typer
from matplotlib.image import imread
from typer.testing import CliRunner

from jointset import Panel, generate_grssf
from jointset.cli import Commands
from jointset.commands.data import data_app
from jointset.datasets import registry
from jointset.datasets.cells import cell
from jointset.datasets.sources.entry import DataWarning
from jointset.inputs.sensor_places import layout
from jointset.report.cell import cell_figure, last_week, telling_sensors

app = typer.Typer(cls=Commands)
app.add_typer(data_app, name="data")


def run(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def refusal(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty place for data, cache and pictures."""
    monkeypatch.setenv("JOINTSET_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.fixture
def own_file(elsewhere):
    rng = np.random.default_rng(0)
    values = 50 + rng.standard_normal((3000, 6)).cumsum(axis=0) / 10
    values[rng.random(values.shape) < 0.05] = np.nan
    panel = Panel(values, [f"pump {i}" for i in range(6)], timestamps=1_700_000_000 + 600 * np.arange(3000))
    return panel.to_npz(elsewhere / "pumps.npz")


# ---------------------------------------------------------------------- list, path, check, fetch


def test_list_names_every_set_and_where_it_is(elsewhere):
    Panel(np.zeros((52_560, 12)), [f"plant {i}" for i in range(12)]).to_npz(elsewhere / "data" / "solar.npz")
    lines = run("list").stdout.splitlines()
    rows = {line.split("│")[1].strip(): line for line in lines if line.startswith("│")}
    assert {"metr-la", "pems-bay", "aqi", "elec", "ett", "solar", "jena", "loop-seattle", "grssf-e"} <= rows.keys()
    assert "34,272" in rows["metr-la"] and "207" in rows["metr-la"] and "5 min" in rows["metr-la"]
    assert "download" in rows["metr-la"] and "generated" in rows["grssf-a"]
    assert "12 of 137 plants, local" in rows["solar"]
    assert "CC BY 4.0" in rows["aqi"]


def test_path_names_files_and_folders(elsewhere):
    assert run("path").stdout.split() == [str(elsewhere / "data"), str(elsewhere / "cache" / "jointset")]
    assert run("path", "aqi").stdout.strip() == str(elsewhere / "cache" / "jointset" / "aqi.npz")
    assert "unknown data set" in refusal("path", "aqo")


def test_check_passes_on_the_real_files(real_data):
    real_data("metr-la.npz")
    result = run("check", "metr-la")
    assert result.exit_code == 0
    assert all(fact in result.stdout for fact in ("34,272 x 207", "8.109 %", "2,148", "1,515"))
    assert "NO" not in result.stdout.split()


def test_check_fails_with_code_1_on_a_wrong_file(elsewhere):
    panel = generate_grssf("A", n=12, length=35_064).panel
    panel.with_graph(None).to_npz(elsewhere / "data" / "aqi.npz")
    result = run("check", "aqi")
    assert result.exit_code == 1
    assert "NO" in result.stdout.split()
    assert "not on this machine" in refusal("check", "jena")


def test_fetch_prints_the_path_and_tells_what_the_loader_warns_of(elsewhere, monkeypatch):
    asked = []

    def fetch(name, *, force=False):
        asked.append((name, force))
        warnings.warn("aqi: the published file may have changed", DataWarning, stacklevel=1)
        return elsewhere / "aqi.npz"

    monkeypatch.setattr(registry, "fetch", fetch)
    result = run("fetch", "aqi", "--force")
    assert asked == [("aqi", True)]
    assert result.stdout.strip() == str(elsewhere / "aqi.npz")
    assert result.stderr == "note: aqi: the published file may have changed\n"


def test_fetch_of_a_generated_set_is_refused(elsewhere):
    assert "generated" in refusal("fetch", "grssf-a")


# ---------------------------------------------------------------------- show


def test_show_describes_a_file_and_draws_it(own_file):
    result = run("show", f"file:{own_file}?n=4", "--out", "pumps.png")
    assert result.exit_code == 0, result.output
    for text in ("protocol fit", "train", "2,100", "calibration", "600", "test", "2023-11-14 22:13", "pump"):
        assert text in result.stdout
    assert "are missing and stay so" in result.stdout and "validation" not in result.stdout
    assert result.stdout.endswith("Wrote pumps.png.\n")
    picture = imread("pumps.png")
    assert picture.shape[1] > 1000 and picture.std() > 0.05


def test_show_follows_the_paper_when_asked_to(own_file):
    result = run("show", f"file:{own_file}?n=4", "--protocol", "text", "--out", "pumps.png")
    for text in ("validation", "mean degree", "were missing, and are filled in"):
        assert text in result.stdout


def test_show_names_the_picture_after_the_cell_and_follows_its_options(own_file):
    result = run("show", f"file:{own_file}", "--protocol", "table", "--missing", "mask", "--graph", "none", "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "pilot" in result.stdout and "seed 3" in result.stdout and "stay so" in result.stdout
    assert "graph: none" in result.stdout
    assert own_file.with_suffix(".png").exists()


def test_show_lists_all_sensors_when_asked(elsewhere):
    short, full = (run("show", "grssf-a-60", *more).stdout for more in ([], ["--all"]))
    assert "s029" in short and "s030" not in short and "30 more sensors" in short
    assert "s059" in full and "more sensors" not in full


def test_show_of_a_real_cell(real_data, tmp_path):
    real_data("metr-la.npz")
    result = run("show", "metr-la-20", "--out", tmp_path / "metr.svg")
    assert result.exit_code == 0, result.output
    assert "23,990" in result.stdout and "2012-05-23 07:05" in result.stdout and "31 edges" in result.stdout
    assert (tmp_path / "metr.svg").read_text().startswith("<?xml")


def test_show_refuses_in_one_line(own_file):
    assert "'metr-lo-20'" in refusal("show", "metr-lo-20")
    assert ".png" in refusal("show", "grssf-a", "--out", "picture.doc")
    assert "no folder" in refusal("show", "grssf-a", "--out", "nowhere/picture.png")
    assert "'tables'" in refusal("show", "grssf-a", "--protocol", "tables")
    assert "6 sensors" in refusal("show", f"file:{own_file}?n=7")
    assert not own_file.with_suffix(".png").exists()


# ---------------------------------------------------------------------- the picture


def test_every_kind_of_panel_can_be_drawn(own_file):
    panel = Panel.read(own_file)
    Panel(panel.values[:40], panel.sensors).to_npz("untimed.npz")
    panel.select([0]).to_npz("single.npz")
    for name in ("untimed.npz", "single.npz", f"{own_file}?graph=none", f"{own_file}?missing=mask"):
        found = cell(f"file:{name}")
        figure = cell_figure(found)
        assert len(figure.get_axes()) >= 2 + len(telling_sensors(found))


def test_a_week_is_a_week_and_stays_in_training(own_file):
    found = cell(f"file:{own_file}")
    assert last_week(found) == slice(2100 - 1008, 2100)
    calm_to_lively = found.scale[telling_sensors(found)]
    assert (np.diff(calm_to_lively) >= 0).all()


def test_layout_is_repeatable_and_keeps_sensors_apart():
    adjacency = np.zeros((12, 12))
    adjacency[:8, :8] = generate_grssf("A", n=8, length=20).panel.adjacency
    places = layout(adjacency)
    np.testing.assert_array_equal(places, layout(adjacency))
    gaps = np.linalg.norm(places[:, None] - places, axis=-1) + 10 * np.eye(12)
    assert gaps.min() > 0.2
