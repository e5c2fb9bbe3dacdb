"""Steps ahead on the command line: fit, predict, pictures, stream."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from typer.testing import CliRunner

from jointset import generate_grssf, load
from jointset.bench.results import read_results
from jointset.cli import app
from jointset.report.fan import fan
from jointset.writing import write_panel

PANEL = generate_grssf("A", n=8, seed=1, length=900).panel


def invoke(*arguments, code=0, **options):
    result = CliRunner().invoke(app, [str(one) for one in arguments], **options)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model fitted on the first 850 rows with a horizon of 4, its folder, and what `fit` said."""
    folder = tmp_path_factory.mktemp("ahead")
    write_panel(PANEL[:850], folder / "rows.csv")
    write_panel(PANEL[850:], folder / "later.csv")
    said = invoke("fit", folder / "rows.csv", "--out", folder / "model", "--method", "static+aci", "--horizon", 4)
    return folder, said.stdout


def test_fit_tells_coverage_by_step_and_what_windows_are_worth(model):
    _, said = model
    assert "4 steps ahead" in said and "together" in said
    assert "windows that overlap is worth about" in said and "--horizon 4" in said


def test_predict_shows_and_writes_both_kinds_of_set(model):
    folder, _ = model
    said = invoke("predict", folder / "model", "--horizon", 4, "--out", folder / "sets.csv").stdout
    assert "The next 4 steps" in said and "upper +4" in said
    table = pd.read_csv(folder / "sets.csv")
    sets = load(folder / "model").predict(horizon=4)
    np.testing.assert_allclose(table["upper"], sets.bounds[1].reshape(-1))
    np.testing.assert_allclose(table["together_lower"], sets.bounds_together[0].reshape(-1))
    assert table["time"].iloc[0] == "1970-01-03T22:50:00Z" and table["step"].iloc[-1] == 4
    found = json.loads(invoke("predict", folder / "model", "--horizon", 4, "--json", "--max", 0.0).stdout)
    assert max(found["steps"]["upper"]["s000"]) == 0.0 and len(found["together"]["lower"]["s007"]) == 4


def test_predict_goes_through_rows_first_and_draws_a_fan_for_every_sensor(model):
    folder, _ = model
    said = invoke("predict", folder / "model", folder / "later.csv", "--horizon", 4, "--fan", folder / "fans").stdout
    assert "8 pictures" in said and "4 steps ahead" in said
    pictures = sorted(path.name for path in (folder / "fans").iterdir())
    assert pictures[0] == "000-s000.png" and len(pictures) == 8
    found = json.loads(invoke("predict", folder / "model", folder / "later.csv", "--horizon", 4, "--json").stdout)
    assert [one["step"] for one in found["tested"]] == [1, 2, 3, 4, "together"] and 0.5 < found["tested"][0][
        "joint"
    ] <= 1.0


def test_a_fan_has_the_bands_of_its_sensor():
    from jointset.methods import predictor_for

    predictor = predictor_for("kalman").fit(PANEL[:500]).calibrate(PANEL[500:], horizon=6)
    sets = predictor.predict(horizon=6)
    ax = fan(sets, "s003", PANEL.values)
    assert isinstance(ax, Axes) and ax.get_title(loc="left") == "s003"
    wide, middle, own = (band.get_paths()[0].vertices for band in ax.collections)
    assert np.isclose(wide[:, 1].max(), sets.bounds_together[1][:, 3].max())
    assert np.isclose(middle[:, 1].min(), sets.bounds[0][:, 3].min())
    assert np.isclose(own[:, 1].max(), sets.own_bounds[1][:, 3].max())


def test_every_answer_of_a_stream_can_hold_the_next_steps(model):
    folder, _ = model
    lines = (folder / "later.csv").read_text().splitlines()[:4]
    said = invoke("stream", folder / "model", "--ahead", input="\n".join(lines) + "\n").stdout
    answers = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert len(answers) == 3 and len(answers[-1]["ahead"]["mean"]["s002"]) == 4
    predictor = load(folder / "model")
    predictor.run(PANEL[850:853], regions=False)
    expected = predictor.predict(horizon=4).mean[:, 2]
    np.testing.assert_allclose(answers[-1]["ahead"]["mean"]["s002"], expected, rtol=1e-9)


def test_what_cannot_be_asked_for_is_one_line(model):
    folder, _ = model
    rows = folder / "rows.csv"
    assert "for a horizon of 4, not 5" in invoke("predict", folder / "model", "--horizon", 5, code=2).stderr
    assert "give --horizon too" in invoke("predict", folder / "model", "--fan", folder / "f", code=2).stderr
    asked = ("fit", rows, "--out", folder / "other", "--method", "static", "--horizon", 0)
    assert "a horizon must be 1 to 1000 steps, got 0" in invoke(*asked, code=2).stderr
    assert not (folder / "other").exists()
    invoke("fit", rows, "--out", folder / "plain", "--method", "static")
    assert "has no sets for steps ahead" in invoke("stream", folder / "plain", "--ahead", code=2, input="").stderr


def test_bench_measures_steps_ahead_and_tables_show_them(tmp_path):
    write_panel(PANEL, tmp_path / "rows.csv")
    asked = ("bench", "--cells", f"file:{tmp_path / 'rows.csv'}", "--methods", "kalman,kalman+aci", "--jobs", 1)
    asked = (*asked, "--out", tmp_path / "results")
    said = invoke(*asked, "--horizon", 3, "--json")
    assert '"ahead_joint"' in said.stdout
    rows = read_results(tmp_path / "results")
    assert (rows["horizon"] == 3).all() and rows["ahead_joint"].between(0.6, 1.0).all()
    assert (rows["ahead_lowest"] <= rows["ahead_highest"]).all()
    assert "0 to do" in invoke(*asked).stderr  # rows with steps ahead hold those of the next step too
    assert "2 to do" in invoke(*asked, "--horizon", 2).stderr
    told = invoke("tables", tmp_path / "results", "--only", "ahead").stdout
    assert "Sets for the steps ahead" in told and "kalman+aci" in told
