"""`jointset audit`: what a user types, reads and finds on disk."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import JointPredictor, generate_grssf
from jointset.audits.questions import DEFAULT
from jointset.cli import app
from jointset.filters import GraphLGSSM
from jointset.panel import Panel

QUICK = "rho_dG,m_eff,trace_ratio"


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def refusal(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model folder, later readings, and the place they are in."""
    place = tmp_path_factory.mktemp("audited")
    train, _, calibration, test = generate_grssf("A", n=8, seed=0, length=4000).panel.split()
    JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration).save(place / "model")
    test.to_npz(place / "later.npz")
    return place / "model", place / "later.npz", place


# ---------------------------------------------------------------------- a saved model


def test_a_model_gets_a_table_with_a_sentence_for_every_audit(saved):
    model, later, _ = saved
    result = run(model, later)
    assert result.exit_code == 0, result.output
    for name in DEFAULT:
        assert f"│ {name} " in result.stdout
    assert "expect coverage 0.90 ±" in result.stdout
    assert "skipped: needs the training block" in result.stdout


def test_json_is_one_strict_object_and_the_model_is_left_alone(saved):
    model, later, _ = saved
    before = {file.name: file.read_bytes() for file in model.iterdir()}
    result = run(model, later, "--json", "--audits", QUICK)

    def refuse(constant):
        raise AssertionError(constant)

    content = json.loads(result.stdout, parse_constant=refuse)
    assert {"rho_dG", "m_eff", "trace_ratio"} <= set(content) and content["filter"] == "model"
    assert content["rho_dG"]["value"] == pytest.approx(0.338, abs=0.01)
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before


def test_out_and_html_write_a_file_and_a_page_that_needs_no_network(saved, tmp_path):
    model, later, _ = saved
    page = tmp_path / "audits.html"
    result = run(model, later, "--audits", QUICK, "--out", tmp_path / "results", "--html", page)
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "results" / "_audits" / "later--model.json").read_text())
    assert "curve" in content["rho_dG"]
    text = page.read_text()
    HTMLParser().feed(text)
    assert text.count("<svg") == 1 and "expect coverage" in text
    assert "src=" not in text and "https://" not in text


def test_columns_in_another_order_are_matched(saved, tmp_path):
    model, later, _ = saved
    panel = Panel.read(later)
    panel.select(panel.sensors[::-1]).to_npz(tmp_path / "later.npz")
    files = (later, tmp_path / "later.npz")
    a, b = (json.loads(run(model, file, "--json", "--audits", QUICK).stdout) for file in files)
    assert a["trace_ratio"]["ratio"] == pytest.approx(b["trace_ratio"]["ratio"])


# ---------------------------------------------------------------------- cells


def test_cells_are_fitted_audited_and_not_done_twice(tmp_path):
    asked = ("--cells", "grssf-a-30,grssf-b-30", "--filters", "kalman,ewma", "--out", tmp_path, "--audits", QUICK)
    first = run(*asked)
    assert first.exit_code == 0, first.output
    folder = tmp_path / "_audits"
    names = {f"grssf-{track}-30--{method}.json" for track in "ab" for method in ("kalman", "ewma")}
    assert {file.name for file in folder.iterdir()} == names
    content = json.loads((folder / "grssf-a-30--kalman.json").read_text())
    assert (content["cell"], content["filter"], content["protocol"]) == ("grssf-a-30", "kalman", "text")
    assert content["trace_ratio"]["paper"] == 0.44
    stamps = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    (folder / "grssf-b-30--ewma.json").unlink()
    second = run(*asked, "--html", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("<h2 id=") == 4
    assert second.stdout.count("done before") == 3
    for name in names - {"grssf-b-30--ewma.json"}:
        assert (folder / name).stat().st_mtime_ns == stamps[name]
    assert (folder / "grssf-b-30--ewma.json").exists()
    third = json.loads(run(*asked, "--json").stdout)
    assert [(one["cell"], one["filter"]) for one in third][:2] == [("grssf-a-30", "kalman"), ("grssf-a-30", "ewma")]
    assert third[0]["trace_ratio"] == content["trace_ratio"] and third[0]["light"] in ("green", "yellow", "red")


def test_more_audits_join_those_that_are_there_and_again_redoes(tmp_path):
    file = tmp_path / "_audits" / "grssf-a-30--kalman.json"
    cell = ("--cells", "grssf-a-30", "--out", tmp_path)
    assert run(*cell, "--audits", "m_eff").exit_code == 0
    before = json.loads(file.read_text())
    assert run(*cell, "--audits", "trace_ratio").exit_code == 0
    after = json.loads(file.read_text())
    assert after["m_eff"] == before["m_eff"] and "trace_ratio" in after
    assert run(*cell, "--audits", "m_eff", "--again").exit_code == 0
    redone = json.loads(file.read_text())
    assert redone["trace_ratio"] == after["trace_ratio"] and redone["m_eff"]["value"] == before["m_eff"]["value"]
    assert "alpha 0.1, not 0.2" in refusal(*cell, "--audits", "m_eff", "--alpha", "0.2")
    assert run(*cell, "--audits", "m_eff", "--alpha", "0.2", "--again").exit_code == 0
    assert json.loads(file.read_text())["alpha"] == 0.2


def test_a_learned_filter_and_its_rank_sweep_run_on_request(tmp_path):
    pytest.importorskip("torch")
    result = run("--cells", "grssf-a-30", "--filters", "diag-gru", "--steps", 3, "--audits", "rank", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    other = ("--cells", "grssf-a-30", "--filters", "diag-gru", "--steps", 4, "--audits", "rank", "--out", tmp_path)
    assert "has steps 3, not 4" in refusal(*other)
    record = json.loads((tmp_path / "_audits" / "grssf-a-30--diag-gru.json").read_text())["rank"]
    assert record["rank"] == [0, 1, 2, 4, 8, 16] and "rank" in record["verdict"]


def test_what_cannot_be_audited_stops_nothing_else_and_the_exit_code_says_so(tmp_path):
    generate_grssf("A", n=8, length=60).panel.to_npz(tmp_path / "short.npz")
    cells = f"file:{tmp_path / 'short.npz'},grssf-a-30"
    result = run("--cells", cells, "--audits", "m_eff", "--out", tmp_path / "results")
    assert result.exit_code == 1 and "1 of 2 could not be audited: file:" in result.stderr
    assert [file.name for file in (tmp_path / "results" / "_audits").iterdir()] == ["grssf-a-30--kalman.json"]


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "_audits").mkdir()
    (tmp_path / "_audits" / "grssf-a-30--kalman.json").write_text("{")
    assert "grssf-a-30--kalman.json cannot be read" in refusal("--cells", "grssf-a-30", "--out", tmp_path)
    assert run("--cells", "grssf-a-30", "--out", tmp_path, "--audits", "m_eff", "--again").exit_code == 0


# ---------------------------------------------------------------------- refusals


def test_bad_requests_are_refused_in_one_line(saved, tmp_path):
    model, later, place = saved
    out = ("--out", tmp_path / "results")
    assert "unknown audit 'rho_dg'" in refusal(model, later, "--audits", "rho_dg")
    assert "no audit named" in refusal(model, later, "--audits", ",")
    assert "nothing to audit" in refusal()
    assert "nothing to audit" in refusal(model)
    assert "exclude each other" in refusal(model, later, "--cells", "grssf-a-30", *out)
    assert "needs --out" in refusal("--cells", "grssf-a-30")
    assert "unknown method 'kalmann'" in refusal("--cells", "grssf-a-30", "--filters", "kalmann", *out)
    assert "unknown cell 'nowhere-20'" in refusal("--cells", "nowhere-20", *out)
    assert "unknown protocol" in refusal("--cells", "grssf-a-30", "--protocol", "tables", *out)
    assert "alpha" in refusal("--cells", "grssf-a-30", "--alpha", "1.5", *out)
    assert "must end in .html" in refusal(model, later, "--html", tmp_path / "page.txt")
    assert "not a model folder" in refusal(place / "nothing", later)
    assert "no such file" in refusal(model, place / "nothing.csv")
    assert not (tmp_path / "results").exists()


def test_panels_that_are_too_short_or_of_other_sensors_are_refused(saved, tmp_path):
    model, later, _ = saved
    panel = Panel.read(later)
    panel[:60].to_npz(tmp_path / "short.npz")
    assert "60 rows are too few to audit" in refusal(model, tmp_path / "short.npz")
    Panel(panel.values[:, :7], panel.sensors[:7]).to_npz(tmp_path / "fewer.npz")
    assert run(model, tmp_path / "fewer.npz", "--audits", QUICK).exit_code == 0
    Panel(np.column_stack([panel.values, panel.values[:, 0]]), (*panel.sensors, "new")).to_npz(tmp_path / "more.npz")
    assert "unknown sensor 'new'" in refusal(model, tmp_path / "more.npz")
    assert run(model, tmp_path / "more.npz", "--audits", QUICK, "--ignore-unknown").exit_code == 0
