"""Tables of a benchmark folder: exact numbers in every format, beside the paper's, and words where there are none."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from typer.testing import CliRunner

from jointset.bench.results import COLUMNS, STEADY, WHOLE, WORDS, write_rows
from jointset.bench.tables import NAMES, render, tables, tables_named, write_tables
from jointset.bench.tables.measured import absence
from jointset.bench.tables.model import Column, Number, Table
from jointset.cli import app
from jointset.errors import InputError


def row(**given):
    blank = {name: "" if name in WORDS else 0 if name in WHOLE else float("nan") for name in COLUMNS}
    usual = {"cell": "metr-la-20", "n": 20, "protocol": "text", "backbone": "gpvar", "alpha": 0.1, "status": "ok"}
    return blank | usual | {"started": "2025-01-01T00:00:00Z", "infinite_share": 0.0, "winkler": 9.0} | given


def seeded(method, widths, joints, **given):
    pairs = enumerate(zip(widths, joints, strict=True))
    sizes = [
        (s, w, j, {"log_volume": w - 3, "log_mean_volume": w - 2.9, "width": w / 2, "worst_window": j - 0.1})
        for s, (w, j) in pairs
    ]
    return [row(method=method, seed=s, width_full=w, joint=j, **more, **given) for s, w, j, more in sizes]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """gnf 2.9 ± 0.1, static 4 ± 0, factor over, kalman under target; one failure; a file of the user's own."""
    monkeypatch.setenv("JOINTSET_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    runs = {
        "gnf": seeded("gnf", [2.8, 2.9, 3.0], [0.90, 0.91, 0.92], backbone="own"),
        "static": seeded(
            "static", [4.0, 4.0, 4.0], [0.9, 0.9, 0.9], fit_seconds=1.5, predict_seconds=0.25, peak_mb=80.0
        ),
        "factor": seeded("factor", [4.2, 4.4], [0.92, 0.92]),
        "copula": seeded("copula", [3.7], [0.895]),
        "kalman": seeded("kalman", [1.0], [0.8949], backbone="own"),
        "failed": [
            row(method="group", seed=0, status="error", error="no graph_1: give one & run again, with all of it")
        ],
        "own": seeded("static", [5.0], [0.93], cell="file:my_speeds.csv?n=3", n=3),
        "table": seeded("gnf-node", [3.0], [0.9], protocol="table", backbone="own"),
        "sharp": seeded("gnf", [2.7], [0.9], backbone="own", recipe="sharp"),
    }
    for task, rows in runs.items():
        write_rows(tmp_path, task, rows)
    return tmp_path


def table_of(folder, name, **options):
    return next(table for table in tables(folder, only=[name.removesuffix("-text")], **options) if table.name == name)


def cells(table, method):
    """Entries of a row by group and column."""
    first = len(table.labels)
    found = next(one for one in table.rows if method in one[:first])
    names = [(column.group, column.name) for column in table.columns]
    return dict(zip(names, found[first:], strict=True))


# ---------------------------------------------------------------------- numbers


def test_means_and_spreads_over_seeds(folder):
    found = cells(table_of(folder, "baselines-text"), "gnf")
    width, joint = found["metr-la-20", "width"], found["metr-la-20", "joint"]
    assert (width.value, width.spread) == pytest.approx((2.9, 0.1))
    assert (joint.value, joint.spread) == pytest.approx((0.91, 0.01))
    assert found["metr-la-20", "vs static %"].value == pytest.approx(-27.5)
    assert cells(table_of(folder, "log-volume-text"), "gnf")["metr-la-20", "vs static"].value == pytest.approx(-1.1)


def test_ranks_by_volume_are_not_moved_by_a_radius_that_swings(folder):
    wild = seeded("group+agaci", [3.5], [0.9])
    write_rows(folder, "wild", [wild[0] | {"log_volume": -9.0, "log_mean_volume": 2.0}])
    table = table_of(folder, "log-volume-text")
    ranks = {m: cells(table, m)["metr-la-20", "log mean vol"].rank for m in ("gnf (sharp)", "gnf", "group+agaci")}
    assert ranks == {"gnf (sharp)": "best", "gnf": "second", "group+agaci": ""}


def test_differences_from_the_paper(folder):
    found = cells(table_of(folder, "hero-text", paper=True), "gnf")
    assert found["metr-la-20", "paper width"][:3] == (3.05, 0.13, 2)
    assert found["metr-la-20", "diff %"].value == pytest.approx(100 * (2.9 / 3.05 - 1))
    assert found["metr-la-20", "paper joint"].value == 0.910
    found = cells(table_of(folder, "log-volume-text", paper=True), "gnf")
    assert found["metr-la-20", "diff"].value == pytest.approx(-0.1 - 1.18)


def test_coverage_is_marked_and_the_best_at_target_ranked(folder):
    table = table_of(folder, "baselines-text")
    marks = {m: cells(table, m)["metr-la-20", "joint"].mark for m in ("gnf", "factor", "copula", "kalman")}
    assert marks == {"gnf": "", "factor": "over", "copula": "", "kalman": "under"}
    ranks = {m: cells(table, m)["metr-la-20", "width"].rank for m in ("gnf (sharp)", "gnf", "copula", "kalman")}
    assert ranks == {"gnf (sharp)": "best", "gnf": "second", "copula": "", "kalman": ""}


def test_hero_names_the_best_row_without_a_filter(folder):
    table = table_of(folder, "hero-text")
    assert cells(table, "best non-filter")["metr-la-20", "width"].value == 3.7
    assert any("copula on metr-la-20" in note for note in table.notes)


def test_the_best_row_without_a_filter_is_sought_among_quick_looks_where_there_is_nothing_else(tmp_path):
    for method, width in (("static", 4.0), ("copula", 3.5)):
        write_rows(tmp_path, method, seeded(method, [width], [0.9], limit_steps=150))
    for paper in (False, True):
        found = cells(table_of(tmp_path, "hero-text", paper=paper), "best non-filter (150 steps)")
        assert found["metr-la-20", "width"].value == 3.5
    write_rows(tmp_path, "whole", seeded("factor", [3.9], [0.9]))
    assert cells(table_of(tmp_path, "hero-text"), "best non-filter")["metr-la-20", "width"].value == 3.9


def test_no_row_without_a_filter_at_target_is_said(tmp_path):
    write_rows(tmp_path, "static", seeded("static", [4.0], [0.5], limit_steps=150))
    found = cells(table_of(tmp_path, "hero-text", paper=True), "best non-filter (150 steps)")
    assert found["metr-la-20", "width"] == "none at target"


def test_a_row_is_compared_with_static_on_the_seeds_both_have(folder):
    write_rows(folder, "static", seeded("static", [5.8, 5.8, 5.8, 1.0], [0.9] * 4))
    assert cells(table_of(folder, "baselines-text"), "gnf")["metr-la-20", "vs static %"].value == pytest.approx(-50)


def test_a_quick_look_is_not_ranked_among_whole_runs(folder):
    write_rows(folder, "quick", seeded("ewma", [0.5], [0.9], limit_steps=500))
    found = cells(table_of(folder, "baselines-text"), "ewma (500 steps)")["metr-la-20", "width"]
    everything = cells(table_of(folder, "all"), "ewma (500 steps)")["", "width_full"]
    assert (found.value, found.rank) == (0.5, "") and everything.value == 0.5
    assert cells(table_of(folder, "baselines-text"), "gnf (sharp)")["metr-la-20", "width"].rank == "best"
    assert cells(table_of(folder, "all"), "gnf (sharp)")["", "width_full"].rank == "best"


def test_a_recipe_and_a_quick_look_are_told_apart(folder):
    write_rows(folder, "quick", seeded("ewma", [4.5], [0.9], limit_steps=500))
    table = table_of(folder, "baselines-text")
    assert cells(table, "ewma (500 steps)")["metr-la-20", "width"].value == 4.5
    assert any("cut to 500 steps" in note for note in table.notes)
    write_rows(folder, "whole", seeded("ewma", [4.6], [0.9]))
    assert cells(table_of(folder, "baselines-text"), "ewma")["metr-la-20", "width"].value == 4.6


def test_a_shape_from_the_calibration_rows_is_marked_and_one_from_others_told_apart(folder):
    note = "shape fitted on the calibration rows: N/m = 0.08"
    write_rows(folder, "plug-in", seeded("spectral", [4.1], [0.85], note=note))
    write_rows(folder, "fresh", seeded("spectral", [4.7], [0.9], pilot="validation"))
    for name, group in (("baselines-text", "metr-la-20"), ("all", "")):
        table = table_of(folder, name)
        joint = [cells(table, method)[group, "joint"] for method in ("spectral", "spectral (shape from validation)")]
        assert [(one.value, one.suffix) for one in joint] == [(0.85, "†"), (0.9, "")]
        assert f"† {note}: spectral on metr-la-20." in table.notes
        assert "0.850†↓" in render(table, "text") and r"$^\dagger$" in render(table, "latex")
    lines = list(csv.DictReader(io.StringIO(render(table_of(folder, "all"), "csv"))))
    marks = {line["method"]: line["joint mark"] for line in lines if line["method"].startswith("spectral")}
    assert marks == {"spectral": "under reused", "spectral (shape from validation)": ""}


def test_simulated_networks_stand_side_by_side_by_size(folder):
    for n, joint in ((30, 0.85), (240, 0.01)):
        given = {"cell": f"grssf-a-{n}", "n": n}
        write_rows(folder, f"g{n}", seeded("static", [n / 2.0], [joint], note="reused", **given))
        write_rows(folder, f"f{n}", seeded("static", [n / 1.5], [0.9], pilot="validation", **given))
    table = table_of(folder, "grssf-scale-text")
    assert [row[0] for row in table.rows] == ["static", "static (shape from validation)"]
    assert cells(table, "static")["grssf-a-240", "joint"].value == 0.01
    assert cells(table, "static (shape from validation)")["grssf-a-240", "width"].rank == ""  # alone at target
    assert any(note == "† reused: static on grssf-a-30, static on grssf-a-240." for note in table.notes)


def test_whole_graphs_are_found_under_either_name(folder):
    write_rows(folder, "full", seeded("static", [11.0], [0.9], cell="metr-la", n=207))
    assert cells(table_of(folder, "scale-text"), "static")["metr-la-207", "width"].value == 11.0


def test_seed_by_seed(folder):
    table = table_of(folder, "seeds-text", paper=True)
    by_seed = {one[1]: one for one in table.rows if one[0] == "metr-la-20"}
    assert [*by_seed] == ["0", "1", "2", "3"]
    names = [(column.group, column.name) for column in table.columns]
    second = dict(zip(names, by_seed["1"][2:], strict=True))
    assert (second["gnf", "width"].value, second["gnf", "paper width"].value) == (2.9, 2.894)
    assert second["gnf", "diff %"].value == pytest.approx(100 * (2.9 / 2.894 - 1))


def test_backbones_are_matched_exactly_and_the_best_named(folder):
    for backbone, width in (("gru", 3.3), ("transformer", 3.1)):
        write_rows(folder, f"c{backbone}", seeded("copula", [width], [0.9], backbone=backbone, cell="ett", n=7))
        write_rows(folder, f"g{backbone}", seeded("gnf+aci", [width + 1], [0.9], backbone=backbone, cell="ett", n=7))
    found = cells(table_of(folder, "backbones-nontraffic-text"), "ett-7")
    assert found["copula, best backbone", "width"][:1] == (3.1,)
    assert found["copula, best backbone", "width"].suffix == " (transformer)"
    assert found["gnf+aci, GRU (no graph)", "width"].value == 4.3
    assert found["copula, best backbone", "width"].rank == "best"


def test_everything_holds_the_users_own_file(folder):
    table = table_of(folder, "all")
    own = next(one for one in table.rows if one[0] == "file:my_speeds.csv?n=3")
    assert own[3] == "static" and own[table.labels.index("method") + 2].value == 5.0


# ---------------------------------------------------------------------- words


def test_what_was_not_run_and_what_cannot_be_is_said(folder):
    table = table_of(folder, "hero-text", paper=True)
    assert cells(table, "diag-gru")["pems-bay-50", "width"] == "data not available"
    assert cells(table, "diag-gru")["pems-bay-50", "paper width"].value == 2.88
    assert absence("grssf-a-60") == "not run"


def test_without_the_paper_only_what_was_run_is_shown(folder):
    table = table_of(folder, "hero-text")
    assert {column.group for column in table.columns} == {"metr-la-20"}
    assert "diag-gru" not in [one[0] for one in table.rows]
    assert not list(tables(folder, only=["crossover", "contraction", "rank"]))


def test_a_failure_is_shown_with_its_message(folder):
    table = table_of(folder, "baselines-text")
    assert cells(table, "group")["metr-la-20", "width"].startswith("failed: no graph_1: give one")
    message = "no graph_1: give one & run again, with all of it"
    assert any(note == f"group on metr-la-20, seed 0, failed: {message}" for note in table.notes)
    everything = table_of(folder, "all")
    assert next(one for one in everything.rows if one[3] == "group")[-1] == message


def test_the_protocol_decides_which_graph_filter_the_paper_means(folder):
    found = {table.name: table for table in tables(folder, paper=True, only=["hero"])}
    assert "gnf-node" in [one[0] for one in found["hero-table"].rows]
    assert "gnf-node" not in [one[0] for one in found["hero-text"].rows]


def test_an_empty_folder_still_tells_what_the_paper_prints(tmp_path):
    table = next(iter(tables(tmp_path, paper=True, only=["hero"])))
    assert table.name == "hero-table" and cells(table, "static")["metr-la-20", "paper width"].value == 3.99
    assert [*tables(tmp_path)] == []


def test_footnotes_on_what_the_paper_got_wrong(folder):
    assert any("Hadamard" in note for note in table_of(folder, "log-volume-text", paper=True).notes)
    assert any("0.338" in note for note in table_of(folder, "contraction", paper=True).notes)
    widths = [table for table in tables(folder, paper=True) if any(c.name == "width" for c in table.columns)]
    assert all(any("vol" in c.name for c in table.columns) for table in widths)


# ---------------------------------------------------------------------- audits


def test_audits_are_read_and_gaps_are_dashes(folder):
    (folder / "_audits").mkdir()
    flat = {
        "cell": "metr-la",
        "filter": "kalman",
        "n": 20,
        "seed": 0,
        "rho_dG": {"value": 0.34},
        "theory": {"sigma_1": 0.338},
    }
    (folder / "_audits" / "metr-la-20--kalman.json").write_text(json.dumps(flat))
    swept = {"ranks": [0, 4], "width_full": [5.0, 3.0], "joint": [0.93, 0.9]}
    other = {"cell": "metr-la-20", "filter": "gnf", "rho_dG": {"value": 0.5}, "rank": swept, "tau_int": {"value": None}}
    (folder / "_audits" / "metr-la-20--gnf.json").write_text(json.dumps(other))
    table = table_of(folder, "contraction")
    assert cells(table, "kalman")["", "sigma_1"].value == 0.338
    assert cells(table, "gnf")["", "rho_score"] is None
    ranges = table_of(folder, "diagnostics")
    assert [cells(ranges, "rho_dG")["ours", end].value for end in ("from", "to", "audits")] == [0.34, 0.5, 2]
    ranks = table_of(folder, "rank", paper=True)
    four = next(one for one in ranks.rows if one[2] == "4")
    assert four[3].value == 3.0 and four[5].value == pytest.approx(100 * (3.0 / 3.04 - 1))


def test_a_warm_up_of_one_keeps_every_score_as_the_papers_zero(folder):
    (folder / "_audits").mkdir()
    swept = {"warmup": [1, 25], "width_full": [3.2, 3.1], "joint": [0.91, 0.9]}
    audits = {"cell": "metr-la-20", "filter": "gnf-node", "warmup": swept}
    (folder / "_audits" / "metr-la-20--gnf-node.json").write_text(json.dumps(audits))
    table = table_of(folder, "warmup", paper=True)
    assert [one[2] for one in table.rows] == ["0", "25", "50", "100", "200"]
    assert table.rows[0][3].value == 3.2 and table.rows[0][4].value == 3.19
    assert table.rows[2][3] == "data not available"


def test_a_broken_audit_is_named(folder):
    (folder / "_audits").mkdir()
    (folder / "_audits" / "x--gnf.json").write_text("{")
    with pytest.raises(InputError, match=r"x--gnf\.json cannot be read"):
        list(tables(folder))


# ---------------------------------------------------------------------- formats

SMALL = Table(
    "small-text",
    "A title with_underscore & more",
    ("method",),
    (Column("width", "cell_1"), Column("joint", "cell_1"), Column("note")),
    (
        ("gnf", Number(2.9, 0.1, 2, rank="best"), Number(0.91, None, 3), "50 % of $x"),
        ("a_b", Number(3.0, 0.2, 2, rank="second"), Number(0.92, None, 3, "over"), None),
        ("c", Number(float("inf"), None, 2), Number(0.5, None, 3, "under"), "failed: no_graph #1"),
    ),
    ("100 % of {notes}_here",),
)


def test_text():
    lines = render(SMALL, "text").splitlines()
    assert lines[0] == SMALL.title
    assert [line.split() for line in lines[5:8]] == [
        ["gnf", "2.90±0.10*", "0.910", "50", "%", "of", "$x"],
        ["a_b", "3.00±0.20°", "0.920↑", "-"],
        ["c", "∞", "0.500↓", "failed:", "no_graph", "#1"],
    ]


def test_markdown():
    lines = render(SMALL, "markdown").splitlines()
    assert lines[2:4] == ["| method | cell_1 width | cell_1 joint | note |", "| :-- | --: | --: | --: |"]
    assert lines[4] == "| gnf | **2.90±0.10** | 0.910 | 50 % of $x |"
    assert lines[5] == "| a_b | <u>3.00±0.20</u> | 0.920↑ | - |"


def test_latex():
    text = render(SMALL, "latex")
    assert r"gnf & \textbf{\boldmath $2.90{\scriptstyle\pm0.10}$} & $0.910$ & 50 \% of \$x \\" in text
    assert r"a\_b & \underline{$3.00{\scriptstyle\pm0.20}$} & $0.920\,\uparrow$ & -- \\" in text
    assert r"c & $\infty$ & $0.500\,\downarrow$ & failed: no\_graph \#1 \\" in text
    assert r"\multicolumn{2}{c}{cell\_1}" in text and r"\cmidrule(lr){2-3}" in text


def test_csv():
    rows = list(csv.reader(io.StringIO(render(SMALL, "csv"))))
    assert rows[0] == [
        "method",
        "cell_1 width",
        "cell_1 width sd",
        "cell_1 width mark",
        "cell_1 joint",
        "cell_1 joint mark",
        "note",
    ]
    assert rows[1] == ["gnf", "2.9", "0.1", "best", "0.91", "", "50 % of $x"]
    assert rows[3] == ["c", "inf", "", "", "0.5", "under", "failed: no_graph #1"]


def test_every_table_is_well_formed_latex(folder):
    for table in tables(folder, paper=True):
        text = render(table, "latex")
        comment, _, text = text.partition("\n")
        assert comment == r"% needs \usepackage{booktabs}"
        for name in ("table", "tabular"):
            assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") >= 1
        assert not re.search(r"(?<!\\)[_#%]", re.sub(r"\\label\{[^}]*\}", "", text).replace("{\\scriptstyle", "{"))
        assert text.isascii() or not re.search("[±↑↓°∞]", text)
        for block in re.findall(
            r"\\begin\{tabular\}\{([lrp]+)\}(.*?)\\end\{tabular\}", text.replace("p{4.5cm}", "p"), re.S
        ):
            lines = [line for line in block[1].split("\n") if line.endswith(r"\\")]
            for line in lines:
                spans = [int(size) for size in re.findall(r"\\multicolumn\{(\d+)\}", line)]
                assert len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans) - len(spans) == len(block[0])


LONG = "the readings of this file cannot be used because " + "of many words " * 20


def failing(folder, rows):
    """So many failed rows with one long message, on one cell."""
    names = [f"method-{i}" for i in range(rows)]
    error = {"status": "error", "error": LONG, "cell": "file:own.csv", "n": 0}
    write_rows(folder, "many", [row(method=name, seed=0, **error) for name in names])
    return table_of(folder, "all")


def test_a_long_table_runs_over_pages_in_latex(folder):
    text = render(failing(folder, 50), "latex")
    assert text.startswith("% needs \\usepackage{booktabs,longtable}\n") and r"\begin{table}" not in text
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1
    assert text.count(r"\endfirsthead") == text.count(r"\endhead") == text.count(r"\endfoot") == 1
    assert text.count(r"\caption{") == text.count(r"\label{tab:all}") == text.count(r"\caption[]{") == 1
    body = text.partition(r"\endfoot")[2].partition(r"\end{longtable}")[0].strip().split("\n")
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {13} and all(line.endswith(r"\\") for line in body)


def test_messages_are_cut_in_a_column_of_paragraphs_in_latex(folder):
    text = render(failing(folder, 3), "latex")
    assert r"\begin{tabular}{llllrrrrrrrrrp{4.5cm}}" in text
    messages = [line.rpartition("&")[2] for line in text.split("\n") if line.startswith("file:own.csv")]
    assert len(messages) == 3 and all(r"of many \dots{}" in one and len(one) < 120 for one in messages)


def test_messages_are_a_list_below_the_table_in_text(folder):
    text = render(failing(folder, 6), "text")
    assert max(map(len, text.splitlines())) <= 160
    words = " ".join(text.split())
    told = f"- failure: file:own.csv, method-0, method-1, method-2, method-3 and 2 more, 6 rows: {LONG.strip()}"
    assert words.count(LONG.strip()) == words.count(told) == 1
    assert "- failure: metr-la-20, group: no graph_1: give one & run again, with all of it" in words
    assert "failure" not in text.partition("- failure")[0]


def test_wide_tables_are_cut_between_groups_and_repeat_their_labels(folder):
    text = render(table_of(folder, "scale-text", paper=True), "text")
    assert max(map(len, text.splitlines())) <= 160
    assert text.count("method  ") == 4


def test_windows_have_the_coin_of_their_cell_beside(tmp_path):
    steady = dict.fromkeys(STEADY, 0.05)
    write_rows(tmp_path, "a", [row(method="ewma", seed=s, joint=0.9, n_test=900, **steady) for s in (0, 1)])
    write_rows(tmp_path, "b", [row(method="static", seed=0, joint=0.9, n_test=900)])  # of an older version
    table = table_of(tmp_path, "windows")
    assert [line[3] for line in table.rows] == ["ewma", "independent coin, 900 steps"]
    gap = next(place for place, head in enumerate(table.columns, len(table.labels)) if "30 steps" in str(head))
    assert table.rows[0][gap].value == 0.05
    assert 0.03 < table.rows[1][gap].value < 0.06


# ---------------------------------------------------------------------- command


def test_command_prints_and_writes(folder, tmp_path):
    run = CliRunner()
    shown = run.invoke(app, ["tables", str(folder), "--only", "hero", "--format", "markdown"])
    assert shown.exit_code == 0 and "| gnf | <u>2.900±0.100</u> |" in shown.output
    out = tmp_path / "written"
    done = run.invoke(app, ["tables", str(folder), "--only", "hero,all", "--paper", "--out", str(out)])
    assert done.exit_code == 0
    names = {f"{stem}.{form}" for stem in ("hero-text", "hero-table", "all") for form in ("txt", "md", "tex", "csv")}
    assert {path.name for path in out.iterdir()} == names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--only", "heros"], "no table 'heros': did you mean 'hero'"),
        (["--format", "html"], "unknown format 'html'"),
        (["--figures"], "--figures needs --out"),
    ],
)
def test_command_refuses_with_one_line(folder, given, message):
    done = CliRunner().invoke(app, ["tables", str(folder), *given])
    assert done.exit_code == 2 and message in done.output and len(done.output.splitlines()) == 1


def test_command_says_when_there_is_nothing(tmp_path):
    done = CliRunner().invoke(app, ["tables", str(tmp_path)])
    assert done.exit_code == 2 and "no finished rows" in done.output


def test_names_and_files(folder):
    assert tables_named("") == [*NAMES]
    found = [*tables(folder)]
    assert len({table.name for table in found}) == len(found)
    assert len(write_tables(found, folder / "out")) == 4 * len(found)
