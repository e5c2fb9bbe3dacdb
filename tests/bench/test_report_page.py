"""The report page as text: what it says, that it is whole, small and needs no network, and that no name is markup."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from synthetic_results import ATTACK, FILE_CELL, row, trace, write_cell, write_folder
from typer.testing import CliRunner

from jointset.bench.measures import worst_window
from jointset.bench.report import render, write_report
from jointset.bench.report_groups import METRICS, panels
from jointset.bench.report_traces import course
from jointset.bench.report_words import opening, verdict
from jointset.bench.results import write_rows, write_trace
from jointset.cli import app
from jointset.paper_rows import CATALOGUE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def page(folder):
    return render(folder)


def data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def words(rows):
    return " ".join(verdict(panels(rows)[0]).sentences)


def test_command_writes_page_and_says_where(folder, tmp_path):
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0 and str(folder / "report.html") in done.output.replace("\n", "")
    done = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0 and (tmp_path / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("arguments", [["{}/nowhere"], ["{}"], ["{}", "--out", "{}/page.pdf"]])
def test_bad_input_is_one_line_and_code_2(tmp_path, arguments):
    done = CliRunner().invoke(app, ["report", *(part.format(tmp_path) for part in arguments)])
    assert done.exit_code == 2
    assert done.output.startswith("error: ") and done.output.count("\n") == 1


def test_summary_names_sharpest_missers_and_worst_window():
    made = [("static", 0.90, 2.5, 0.7), ("gnf-node+aci", 0.899, 1.8, 0.71), ("kalman", 0.8, 1.0, 0.5)]
    rows = [row("metr-la-20", m, s, "t", joint=j, width=w, worst_window=v) for m, j, w, v in made for s in (0, 1)]
    text = words(rows)
    assert "the sharpest method at target was gnf-node+aci: sets 28 % narrower than the static reference" in text
    assert "1 of 3 methods missed the target of 90 %: kalman (80.0 %)" in text
    assert "In its worst 500 steps gnf-node+aci covered 71 %" in text


def test_summary_gives_width_and_volume_side_by_side():
    boxes = row("a", "copula", 0, "t", width=1.0, log_mean_volume=0.9, log_volume=0.1)
    ellipsoids = row("a", "static", 0, "t", width=2.0, log_mean_volume=0.3, log_volume=0.2)
    text = words([boxes, ellipsoids])
    assert "static (width 2.00, log mean volume 0.30; copula: width 1.00, log mean volume 0.90)" in text


def test_summary_when_nobody_reached_the_target_or_nothing_worked():
    assert "No method reached the target" in words([row("a", "static", 0, "t", joint=0.5)])
    failed = row("a", "static", 0, "t", status="error", error="no graph", joint=float("nan"))
    assert words([failed]) == "No method gave a result: no graph"
    assert opening(panels([failed, row("a", "ewma", 0, "t")])).endswith("and 1 that failed.")


def test_a_shape_from_the_calibration_rows_is_told(tmp_path):
    note = "shape fitted on the calibration rows: N/m = 0.32"
    rows = [row("a", "static", 0, "t", joint=0.1, note=note), row("a", "static", 0, "t", joint=0.9, pilot="train")]
    assert words(rows).count("†") == 1 and f"† static: {note}." in words(rows)
    write_rows(tmp_path, "t", rows)
    assert [group["note"] for group in data(render(tmp_path))["groups"]] == [note, ""]


def test_at_target_allows_half_a_point_of_the_mean_over_seeds():
    group = panels([row("a", "static", s, "t", joint=j) for s, j in enumerate((0.885, 0.905))])[0].groups[0]
    assert group.at_target
    assert not group._replace(rows=(row("a", "static", 0, "t", joint=0.8949),)).at_target


def test_settings_are_told_apart():
    rows = [row("a", "static", 0, "t", backbone=backbone) for backbone in ("gpvar", "gru")]
    assert panels(rows)[0].labels == ("static (gpvar)", "static (gru)")
    rows = [row("a", "static", 0, "t", pilot=pilot) for pilot in ("", "validation")]
    assert panels(rows)[0].labels == ("static", "static (shape from validation)")
    rows = [row("a", "static", 0, "t", protocol=protocol) for protocol in ("text", "table")]
    assert [panel.name for panel in panels(rows)] == ["a (text)", "a (table)"]
    rows = [row(f"file:/{place}/x.csv", "static", 0, "t") for place in "ab"]
    assert len({panel.name for panel in panels(rows)}) == 2


def test_page_needs_no_network(page):
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", page)
    assert "url(" not in page and "@import" not in page and "default-src 'none'" in page


def test_page_has_all_parts(page):
    for part in ("summary", "results", "figures", "course", "audits", "provenance"):
        assert f'id="{part}"' in page
    assert "jointset bench --cells metr-la-20 --out results" in page and "abc1234" in page and "a processor" in page
    assert "broken.json cannot be read" in page


def test_no_name_becomes_markup(page):
    assert "<img" not in page and page.count("<script") == 2
    found = data(page)
    assert FILE_CELL in [panel["cell"] for panel in found["panels"]]
    assert any(ATTACK in text for group in found["groups"] for _, text in group["errors"])
    assert any(ATTACK in names for names in found["sensors"])


def test_a_method_with_its_course_weighs_little(tmp_path):
    for k in range(2):  # ten cells with 25 methods each stay below 3 MB
        write_cell(tmp_path, f"cell-{k}", [entry.name for entry in CATALOGUE], seeds=2, steps=5000, sensors=100)
    assert write_report(tmp_path).stat().st_size < 2 * len(CATALOGUE) * 12_000


def test_numbers_keep_the_digits_that_are_shown(tmp_path):
    for value in (19.20494, 19.2045001, 1.23449, 123.4499, 0.90449, 1234567.4):
        write_rows(tmp_path, "one", [row("a", "static", seed, "one", width=value) for seed in (0, 1)])
        group = data(render(tmp_path))["groups"][0]
        for shown in (group["mean"][METRICS.index("width")], group["seeds"][0][1 + METRICS.index("width")]):
            assert all(
                f"{shown:.{digits}f}" == f"{value:.{digits}f}" for digits in range(4) if value < 1000 or not digits
            )


@pytest.mark.parametrize("damage", ["junk", "nothing", "cut", "lengths"])
def test_a_damaged_trace_is_skipped_with_one_line_that_names_it(tmp_path, damage):
    write_cell(tmp_path, "a", ["static", "ewma"], seeds=1, steps=300)
    file = tmp_path / "_traces" / "a-text-0.npz"
    whole = file.read_bytes()
    if damage == "lengths":
        write_trace(tmp_path, "a-text-0", {"static": {"score": np.ones(3), "radius": np.ones(2), "inside": np.ones(3)}})
    else:
        file.write_bytes({"junk": b"junk", "nothing": b"", "cut": whole[: len(whole) // 2]}[damage])
    with pytest.warns(UserWarning, match=r"a-text-0\.npz cannot be read") as told:  # a note at the terminal
        done = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "page.html")])
    notes = [str(one.message) for one in told if one.category is UserWarning]
    assert done.exit_code == 0 and len(notes) == 1 and len(notes[0].splitlines()) == 1
    groups = data((tmp_path / "page.html").read_text())["groups"]
    assert {group["method"]: group["trace"] is None for group in groups} == {"static": True, "ewma": False}


def test_results_without_traces_or_audits_make_a_page(tmp_path):
    write_rows(tmp_path, "one", [row("a", "static", 0, "one")])
    page = render(tmp_path)
    assert 'id="audits"' not in page and data(page)["groups"][0]["trace"] is None


def test_hours_and_weekdays_are_counted_and_a_bad_hour_is_named(tmp_path):
    made = trace(24 * 60, ["a", "b"])
    made["timestamps"] = 345_600 + 3600 * np.arange(24 * 60)  # from a Monday
    made["inside"] = made["timestamps"] % 86_400 != 5 * 3600
    write_rows(tmp_path, "one", [row("a", "static", 0, "one"), row("a", "ewma", 0, "one")])
    write_trace(tmp_path, "one", {"static": made, "ewma": made | {"inside": np.ones(24 * 60, bool)}})
    found = data(render(tmp_path))
    first, second = (one["clock"] for one in found["traces"])
    assert first["rows"] == second["rows"] and np.sum(found["clocks"][first["rows"]]) == 24 * 60
    assert np.sum(first["missed"], axis=0)[5] == np.sum(first["missed"]) == 60
    assert "0 % at 05 h" in first["words"] and second["words"] == ""
    write_trace(tmp_path, "one", {"static": {key: made[key] for key in ("score", "radius", "inside")}})
    assert data(render(tmp_path))["traces"][0]["clock"] is None


@pytest.mark.parametrize("steps", [1, 7, 60, 4200, 30_000])
def test_envelope_loses_no_peak_and_counts_every_miss(steps):
    made = trace(steps, ["a", "b"], adaptive=True)
    made["score"][steps // 3] = np.nan  # a step without a reading
    made["score"][steps // 2] = 1e6
    made["inside"] = made["score"] <= made["radius"]
    found = course(made, 0.1, bins=200)
    seen = ~np.isnan(made["score"])
    assert len(found["missed"]) <= 200 and sum(found["missed"]) == (~made["inside"] & seen).sum()
    assert found["score"] == 1_000_000 or max(v for v in found["score"][1] if v is not None) == 1e6


def test_worst_window_is_the_one_of_the_row_and_windows_do_not_overlap():
    made = trace(4200, ["a"])
    found = course(made, 0.1, bins=200)
    assert found["worst"][0][2] == pytest.approx(worst_window(made["inside"]), abs=1e-4)
    for start, stop, share in found["worst"]:
        assert share == pytest.approx(made["inside"][start:stop].mean(), abs=1e-4)
    spans = sorted(one[:2] for one in found["worst"])
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_infinite_radius_and_flat_radius():
    made = trace(100, ["a"])
    assert course(made, 0.1, bins=50)["radius"] == 13.4
    made["radius"][10] = np.inf
    assert "inf" in course(made, 0.1, bins=50)["radius"][1]
