"""docs/results.md and README.md come from docs/data/results.parquet, and from nothing else."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from synthetic_results import row

from jointset.bench.results import read_results, write_rows, write_run

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import results_file
import results_page

MACHINE = {"cpu": "a processor", "cores": 2, "python": "3.11"}


def filled(folder, day, **values):
    """A folder of one run on a day: `static` and `gnf-node` on two seeds."""
    folder.mkdir()
    command = f"jointset bench --cells metr-la-20 --methods static --out {folder}"
    at = f"2026-01-{day:02}T03:04:05+00:00"
    write_run(folder, {"command": command, "started": at, "commit": "abc1234", "machine": MACHINE})
    made = [
        row("metr-la-20", method, seed, method, n=20, started=f"2026-01-{day:02}T04:00:00.000+00:00", **values)
        for method in ("static", "gnf-node")
        for seed in (0, 1)
    ]
    write_rows(folder, "rows", made)
    return str(folder)


def test_the_pages_are_what_the_file_gives():
    for path, text in results_page.pages().items():
        assert path.read_text() == text, f"{path.name} was edited by hand, or the file changed: run `make results`"


def test_no_measured_number_is_typed_into_the_prose():
    for template in results_page.TEMPLATES.iterdir():
        prose = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", template.read_text(), flags=re.S)
        assert re.findall(r"\d*\.\d+", prose) == [], template.name


@pytest.mark.parametrize("page", results_page.PARTS)
def test_every_template_of_a_part_has_its_place(page):
    named = {found[1] for found in results_page.PART.findall(results_page.PARTS[page].read_text())}
    assert named == {path.stem for path in results_page.TEMPLATES.glob(f"{page}_*.md")} != set()


def test_commands_are_complete():
    runs = results_file.read_file()[1]
    assert runs and not any("..." in run["command"] or "…" in run["command"] for run in runs)
    assert all(run["command"].startswith("jointset bench ") and " --cells " in run["command"] for run in runs)
    assert all(run["machine"]["cores"] for run in runs)


def test_folders_are_merged_and_the_last_run_of_a_row_stands(tmp_path):
    first, second = filled(tmp_path / "a", 1, joint=0.8), filled(tmp_path / "b", 2, joint=0.9)
    write_rows(tmp_path / "b", "bad", [row("metr-la-20", "ewma", 0, "bad", n=20, status="error", error="no memory")])
    table, runs = results_file.merged([results_file.rows_of(second), results_file.rows_of(first)])
    assert set(table.loc[table["status"].eq("ok"), "joint"]) == {0.9}
    assert len(runs) == 1 and runs[0]["command"].endswith("--out results")  # nothing of the first run is left
    assert table.set_index("method")["error"]["ewma"] == "no memory"
    assert dict(zip(table["method"], table["recipe"], strict=True)) == {"static": "", "ewma": "", "gnf-node": "sharp"}


def test_the_file_comes_back_and_is_a_folder_of_results_by_itself(tmp_path):
    table, runs = results_file.merged([results_file.rows_of(f"{filled(tmp_path / 'a', 1)}@9f9d386")])
    (tmp_path / "data").mkdir()
    results_file.write_file(table, runs, tmp_path / "data" / "results.parquet")
    rows, back = results_file.read_file(tmp_path / "data" / "results.parquet")
    assert back == runs and set(rows["commit"]) == {"9f9d386"} == {run["commit"] for run in runs}
    pd.testing.assert_series_equal(rows["width_full"], table["width_full"])
    assert read_results(tmp_path / "data")["method"].tolist() == rows["method"].tolist()


def test_tables_follow_the_rows():
    sizes = {"static": (0.9, 0.5), "gnf-node": (0.9, 0.3), "ewma": (0.8, 0.1)}
    made = [
        row("metr-la-20", name, seed, "t", n=20, joint=joint, log_mean_volume=size + 0.01 * seed)
        for name, (joint, size) in sizes.items()
        for seed in (0, 1)
    ]
    results = results_page.Results(pd.DataFrame(made), [])
    line = results_page.winners_table(results, "ellipsoid").splitlines()[2]
    assert line.startswith("| metr-la-20 | `gnf-node` | gpvar | 2 | 0.305 ± 0.007 | 0.900 |")
    assert line.endswith("| `static` 0.505 ± 0.007 |")
    best = results_page.best_table(results, "ellipsoid", ("metr-la-20",)).splitlines()
    assert {"| `gnf-node` | **0.305** |", "| `static` | 0.505 |", "| `ewma` | – |"} <= {*best}
    with pytest.raises(LookupError, match="no row kalman"):
        results.row(("text", "metr-la-20"), "kalman")


def test_a_claim_that_is_no_longer_true_stops_the_page():
    assert results_page.holds(True, "narrower") == "narrower"
    with pytest.raises(ValueError, match="no longer true"):
        results_page.holds(False, "narrower")
