"""Pictures of a benchmark folder: drawn where there is data, labels apart, files the same each time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jointset.bench.figures import coverage_over_time, figures, headline, learning_curves, save, scale, write_figures
from jointset.bench.figures_courses import rolling_coverage
from jointset.bench.results import COLUMNS, WHOLE, WORDS, read_results, write_rows, write_trace

METHODS = ("gnf", "static", "copula", "per-group-factor+aci", "ewma", "rolling", "spectral", "group")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight methods with close widths on two sizes of a data set, with traces, a sweep and learning curves."""
    place = tmp_path_factory.mktemp("bench")
    rng = np.random.default_rng(0)
    for n in (20, 207):
        for i, method in enumerate(METHODS):
            task, rows = f"{method}-{n}", []
            for seed in range(3):
                blank = {name: "" if name in WORDS else 0 if name in WHOLE else 1.0 for name in COLUMNS}
                found = {
                    "cell": f"metr-la-{n}",
                    "n": n,
                    "protocol": "text",
                    "method": method,
                    "seed": seed,
                    "task": task,
                }
                backbone = "own" if method == "gnf" else "gpvar"
                sizes = {"width_full": n**0.4 + 0.05 * i + 0.01 * seed, "joint": 0.9 + 0.0005 * i, "alpha": 0.1}
                rows.append(blank | found | sizes | {"backbone": backbone, "status": "ok", "started": "2025"})
            write_rows(place, task, rows)
            write_trace(place, task, {method: {"inside": rng.random(900) < 0.9}})
    (place / "_audits").mkdir()
    swept = {"t0": [0, 25, 50], "width_full": [3.2, 3.1, 3.1], "joint": [0.9, 0.9, 0.9]}
    audits = {"cell": "metr-la-20", "filter": "gnf", "audits": {"warmup": swept}}
    (place / "_audits" / "metr-la-20--gnf.json").write_text(json.dumps(audits))
    (place / "_learning_curves.json").write_text(json.dumps({"pooled|ett|fast": [[150, 0.8], [300, 0.7], [600, 0.6]]}))
    return place


def test_every_picture_is_written_as_png_and_svg(folder, tmp_path):
    names = {path.name for path in write_figures(folder, tmp_path)}
    stems = ("headline-text", "headline-volume-text", "scale-text", "coverage-text", "warmup", "learning-curves")
    assert names == {f"{stem}.{form}" for stem in stems for form in ("png", "svg")}


def test_labels_cover_neither_each_other_nor_leave_the_panel(folder):
    figure = headline(read_results(folder), "text")
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        labels = [text for text in ax.texts if text.get_text() in METHODS]
        assert {text.get_text() for text in labels} == set(METHODS)
        boxes = [text.get_window_extent(renderer) for text in labels]
        room = ax.get_window_extent(renderer)
        assert all(box.x0 >= room.x0 - 1 and box.x1 <= room.x1 + 1 for box in boxes)
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_scale_shows_each_method_at_every_size(folder):
    (ax,) = scale(read_results(folder), "text").axes
    assert ax.get_xscale() == ax.get_yscale() == "log"
    sizes = {tuple(line.get_xdata()) for line in ax.lines}
    assert sizes == {(20, 207)}


def test_lines_differ_in_more_than_colour(folder):
    for figure in (scale(read_results(folder), "text"), coverage_over_time(folder, read_results(folder), "text")):
        handles = figure.legends[0].legend_handles
        looks = [(handle.get_marker(), str(handle.get_linestyle())) for handle in handles]
        assert len({marker for marker, _ in looks}) == len(looks)


def test_rolling_coverage_is_the_share_of_the_last_steps():
    inside = np.arange(1000) % 10 != 0
    assert rolling_coverage(inside, 500) == pytest.approx(0.9)
    assert rolling_coverage(inside[:7], 500) == pytest.approx([6 / 7])


def test_nothing_is_drawn_without_data(tmp_path):
    assert [*figures(tmp_path)] == []


def test_the_same_picture_gives_the_same_files(tmp_path):
    curves = {"pooled|ett|paper": [[100, 1.0], [200, 0.5]], "node|ett|other": [[100, 0.9], [200, 0.4]]}
    first = [path.read_bytes() for path in save(learning_curves(curves), tmp_path, "a")]
    assert first == [path.read_bytes() for path in save(learning_curves(curves), tmp_path, "b")]
