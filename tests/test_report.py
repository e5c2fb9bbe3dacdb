"""The demonstration and its report: files on disk, a page without a network, and pictures that show what they claim."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset.cli import app
from jointset.datasets import generate_grssf
from jointset.joint_predictor import Run
from jointset.pages.shell import png
from jointset.planes import most_correlated, section, shadow, telling_steps
from jointset.report.demo import METHODS, TRACKS, compare, methods_here, write_report
from jointset.report.figures import (
    coverage_figure,
    looks,
    overview_figure,
    pair_figure,
    rolling_share,
    score_figure,
    size_figure,
)

PICTURES = ("overview.png", "scores.png", "pair.png", "coverage.png", "sizes.png")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("demo") / "deep" / "report"
    options = ["--track", "b", "--n", "12", "--seed", "4", "--length", "1500", "--out", str(folder)]
    result = CliRunner().invoke(app, ["demo", "--compare", *options])
    assert result.exit_code == 0, result.output
    return result, folder


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return compare(generate_grssf("B", n=12, seed=4, length=1500).panel)


@pytest.fixture(scope="module")
def runs(results: dict[str, Any]) -> dict[str, Run]:
    return {method: result.run for method, result in results.items()}


# ---------------------------------------------------------------------- files


def test_demo_prints_a_row_for_every_method_and_says_what_to_open(demo: tuple[Any, Path]) -> None:
    result, folder = demo
    for column in ("method", "joint", "width", "log-volume", "seconds"):
        assert column in result.stdout
    for method in methods_here():
        assert re.search(rf"│ {re.escape(method)} +│ +\d+\.\d % │", result.stdout)
    assert f"Open {folder}/report.html" in result.stdout.replace("\n", "")


def test_the_folder_holds_page_pictures_and_numbers(demo: tuple[Any, Path]) -> None:
    _, folder = demo
    assert sorted(path.name for path in folder.iterdir()) == sorted(("report.html", "summary.json", *PICTURES))
    for name in PICTURES:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert (folder / "overview.png").stat().st_size < 200_000


def test_the_summary_can_be_computed_again(demo: tuple[Any, Path], runs: dict[str, Run]) -> None:
    summary = json.loads((demo[1] / "summary.json").read_text())
    assert [row["method"] for row in summary["rows"]] == list(methods_here())
    assert (summary["track"], summary["n"], summary["seed"], summary["length"]) == ("B", 12, 4, 1500)
    for row in summary["rows"]:
        expected = runs[row["method"]].summary()
        assert {key: row[key] for key in expected} == pytest.approx(expected)
        assert row["log_volume"] <= np.log(row["width"]) + 0.5 * np.log(2 * np.pi * np.e)  # Hadamard
        assert row["seconds"] > 0


class Loads(HTMLParser):
    """Everything a browser would fetch, and the text of the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "srcset", "data")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_no_network(demo: tuple[Any, Path]) -> None:
    page = (demo[1] / "report.html").read_text()
    loads = Loads(page)
    assert loads.tags.count("img") == 4
    assert all(address.startswith("data:") for address in loads.addresses)
    assert not {"script", "iframe", "object"} & set(loads.tags)
    for word in ("http://", "https://", "@import", "url("):
        assert word not in page


def test_the_page_tells_numbers_and_provenance(demo: tuple[Any, Path]) -> None:
    text = " ".join(Loads((demo[1] / "report.html").read_text()).text.split())
    for row in json.loads((demo[1] / "summary.json").read_text())["rows"]:
        assert f"{100 * row['joint']:.1f} %" in text
        assert f"{row['log_volume']:.3f}" in text
    assert "A network of 12 sensors was simulated for 1,500 steps." in text
    assert "jointset demo --compare --track B --n 12 --seed 4 --length 1500 --alpha 0.1" in text
    assert TRACKS["B"] in text


def test_what_is_written_into_the_page_is_escaped(results: dict[str, Any], tmp_path: Path) -> None:
    facts = {"track": "A", "about": "<script>alert(1)</script>", "n": 8, "seed": 0, "length": 800, "alpha": 0.1}
    page = write_report(tmp_path, results, {**facts, "command": "a & b", "created": "today"}).read_text()
    assert "<script>" not in page
    assert "a &amp; b" in page


def test_a_short_demo_is_refused_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--compare", "--n", "8", "--length", "400", "--out", f"{tmp_path}/d"])
    assert result.exit_code == 2
    assert "too few for alpha=0.1" in result.stderr


# ---------------------------------------------------------------------- what the pictures claim


@pytest.mark.parametrize("pair", [(0, 1), (7, 2), (3, 11)])
@pytest.mark.parametrize("method", ["kalman", "static"])
def test_a_pair_is_in_its_cut_exactly_when_the_reading_is_in_the_set(
    runs: dict[str, Run], method: str, pair: tuple[int, int]
) -> None:
    run = runs[method]
    inside = []
    for t in range(len(run.score)):
        cut = section(run.regions.law[t], run.radius[t], pair, run.values[t])
        e = run.values[t][list(pair)] - cut.center
        distance = e @ np.linalg.solve(cut.covariance, e)
        inside.append(bool(distance <= cut.radius))
        assert distance + run.radius[t] - cut.radius == pytest.approx(run.score[t])
    assert inside == run.inside.tolist()
    assert 0 < sum(inside) < len(inside)


def test_the_shadow_reaches_as_far_as_the_bounds(runs: dict[str, Run]) -> None:
    run, pair = runs["static"], (7, 2)
    outline = shadow(run.regions.law[5], run.radius[5], pair).outline(20_001)
    np.testing.assert_allclose(outline.min(axis=1), run.lower[5, list(pair)], rtol=1e-6)
    np.testing.assert_allclose(outline.max(axis=1), run.upper[5, list(pair)], rtol=1e-6)


def test_the_pair_shown_moves_together_most(runs: dict[str, Run]) -> None:
    run = runs["kalman"]
    correlation = np.abs(np.corrcoef((run.values - run.mean).T)) - np.eye(12)
    assert correlation[most_correlated(run)] == correlation.max()


def test_the_steps_shown_hold_one_miss(runs: dict[str, Run]) -> None:
    steps = telling_steps(runs["kalman"], 8)
    assert len(steps) == 8
    assert runs["kalman"].inside[steps.start : steps.stop].sum() == 7


def test_rolling_coverage_is_the_mean_of_its_window(runs: dict[str, Run]) -> None:
    run = runs["kalman"]
    steps, share = rolling_share(run, 30)
    assert [share[0], share[-1]] == pytest.approx([run.inside[:30].mean(), run.inside[-30:].mean()])
    assert (steps[0], steps[-1]) == (29, len(run.score) - 1)


def test_figures_can_be_drawn_with_gaps_and_without_misses() -> None:
    panel = generate_grssf("A", n=8, seed=1, length=1200).panel
    values = panel.values.copy()
    values[1080::5, 2] = np.nan
    values[1100] = np.nan
    results = compare(panel.with_values(values), {"kalman": False, "static": True}, alpha=0.05)
    runs = {method: result.run for method, result in results.items()}
    for figure in (score_figure(runs), pair_figure(runs), coverage_figure(runs, 0.05), size_figure(runs)):
        assert png(figure).startswith(b"\x89PNG")


def test_drawing_leaves_the_settings_of_matplotlib_alone(runs: dict[str, Run]) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    png(coverage_figure(runs, 0.1))
    assert dict(matplotlib.rcParams) == before


def test_no_two_methods_look_alike() -> None:
    several = [[*METHODS], [*METHODS, "ewma", "spci", "gnf-node"], [f"method {k}" for k in range(12)]]
    for names in several:
        given = looks(names)
        for part in ("color", "marker"):
            assert len({given[name][part] for name in names}) == len(names), (part, names)


def test_the_legend_of_the_overview_is_beside_the_scores(runs: dict[str, Run]) -> None:
    figure = overview_figure(runs["kalman"], 0.1)
    figure.canvas.draw()
    (ax,) = figure.subfigs[0].axes
    legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert not legend.overlaps(frame)
    assert legend.y0 >= 0 and legend.x1 <= figure.bbox.x1
    assert not legend.overlaps(ax.xaxis.get_label().get_window_extent())
