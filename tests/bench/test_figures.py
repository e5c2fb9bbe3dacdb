"""Pictures of a benchmark folder: drawn where there is data, labels apart, files the same each time."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from jointset.bench.figures import coverage_over_time, figures, headline, learning_curves, save, scale, write_figures
from jointset.bench.report_traces import rolling_window
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
            curve = {"curve": np.array([[150, 0.8], [300, 0.7], [600, 0.6]])} if method == "gnf" else {}
            write_trace(place, task, {method: {"inside": rng.random(900) < 0.9} | curve})
    (place / "_audits").mkdir()
    swept = {"t0": [0, 25, 50], "width_full": [3.2, 3.1, 3.1], "joint": [0.9, 0.9, 0.9]}
    audits = {"cell": "metr-la-20", "filter": "gnf", "warmup": swept}
    (place / "_audits" / "metr-la-20--gnf.json").write_text(json.dumps(audits))
    return place


def test_every_picture_is_written_as_png_and_svg(folder, tmp_path):
    names = {path.name for path in write_figures(folder, tmp_path)}
    stems = ("headline-text", "headline-volume-text", "scale-text", "coverage-text", "warmup", "learning-curves-text")
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


def one_row(place, cell, method, n=20, **given):
    """One finished row as a task of its own."""
    blank = {name: "" if name in WORDS else 0 if name in WHOLE else 1.0 for name in COLUMNS}
    usual = {"protocol": "text", "backbone": "gpvar", "alpha": 0.1, "status": "ok", "started": "2025", "joint": 0.9}
    task = f"{method}-{abs(hash(cell))}-{n}"
    write_rows(place, task, [blank | usual | {"cell": cell, "method": method, "n": n, "task": task} | given])
    return task


def title_of(figure):
    return figure.get_suptitle()


@pytest.mark.parametrize(("steps", "window"), [(100, 20), (900, 180), (1000, 500), (3000, 500)])
def test_coverage_is_a_course_over_a_window_that_fits_the_block_and_is_told(tmp_path, steps, window):
    task = one_row(tmp_path, "metr-la-20", "static")
    write_trace(tmp_path, task, {"static": {"inside": np.arange(steps) % 10 != 0}})
    figure = coverage_over_time(tmp_path, read_results(tmp_path), "text")
    assert f"over the last {window} steps" in title_of(figure) and rolling_window(steps) == window
    x, y = figure.axes[0].lines[-1].get_data()
    assert (x[0], x[-1], len(y)) == (window, steps, steps - window + 1)
    assert y == pytest.approx(0.9, abs=1 / window)


def test_windows_that_differ_are_told_in_their_panels(tmp_path):
    for cell, steps in (("metr-la-20", 100), ("ett-7", 2000)):
        task = one_row(tmp_path, cell, "static", n=int(cell[-1]) or 20)
        write_trace(tmp_path, task, {"static": {"inside": np.ones(steps, bool)}})
    figure = coverage_over_time(tmp_path, read_results(tmp_path), "text")
    assert {ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")} - {""} == {
        "metr-la-20, last 20 steps",
        "ett-7, last 500 steps",
    }
    assert "500" not in title_of(figure)


def test_steps_without_a_reading_do_not_count_as_misses(tmp_path):
    task = one_row(tmp_path, "metr-la-20", "static")
    gap = np.arange(1000) < 300
    score = np.where(gap, np.nan, 1.0)
    write_trace(tmp_path, task, {"static": {"inside": ~gap, "score": score, "radius": score}})
    figure = coverage_over_time(tmp_path, read_results(tmp_path), "text")
    x, y = figure.axes[0].lines[-1].get_data()
    assert set(y) == {1.0} and x[-1] == 1000


def test_a_limit_that_all_share_is_told_once(tmp_path):
    for method in ("static", "factor", "ewma"):
        one_row(tmp_path, "metr-la-20", method, limit_steps=150)
        one_row(tmp_path, "metr-la-207", method, n=207, limit_steps=150)
    for figure in (headline(read_results(tmp_path), "text"), scale(read_results(tmp_path), "text")):
        assert "cut to 150 steps" in title_of(figure)
        words = [text.get_text() for ax in figure.axes for text in ax.texts]
        words += [text.get_text() for text in figure.legends[0].get_texts()]
        assert not any("150" in word for word in words)
    one_row(tmp_path, "ett-7", "static", n=7)
    one_row(tmp_path, "ett-7", "factor", n=7, limit_steps=50)
    figure = headline(read_results(tmp_path), "text")
    assert "150" not in title_of(figure)
    words = {text.get_text() for ax in figure.axes for text in ax.texts}
    assert words == {"static", "factor", "ewma", "factor (50 steps)"}
    titles = [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")]
    assert "metr-la-20, 3 methods, cut to 150 steps" in titles


def test_the_line_at_the_target_ends_above_the_words(tmp_path):
    one_row(tmp_path, "metr-la-20", "static")
    for method in ("factor", "group", "ewma", "rolling", "local", "spectral"):
        one_row(tmp_path, "metr-la-20", method, joint=0.4)
    figure = headline(read_results(tmp_path), "text")
    figure.draw_without_rendering()
    (ax,) = figure.axes
    renderer = figure.canvas.get_renderer()
    words = next(text for text in ax.texts if "off the left" in text.get_text()).get_window_extent(renderer)
    line = next(line for line in ax.lines if line.get_linestyle() == "--").get_window_extent(renderer)
    room = ax.get_window_extent(renderer)
    assert line.y0 > words.y1 and room.x0 < words.x0 and words.x1 < room.x1


def test_sizes_of_the_users_own_file_are_one_series(tmp_path):
    for cell, n in (("file:a-1.csv", 40), ("file:a-1.csv?n=10", 10), ("file:a-1.csv?n=20", 20)):
        one_row(tmp_path, cell, "static", n=n, width_full=n**0.5)
        one_row(tmp_path, cell.replace("a-1", "b") + "&log=yes" * ("?" in cell), "static", n=n)
    figure = scale(read_results(tmp_path), "text")
    shown = {ax.get_title("left") or ax.get_title(): tuple(ax.lines[0].get_xdata()) for ax in figure.axes}
    assert shown == {"file:a-1.csv": (10, 20, 40), "file:b.csv?log=yes": (10, 20)}


def test_a_damaged_trace_is_named_and_the_other_pictures_are_drawn(folder, tmp_path):
    place = tmp_path / "copy"
    shutil.copytree(folder, place)
    whole, results = (place / "_traces" / "gnf-20.npz").read_bytes(), read_results(place)
    for damaged in (b"junk", b"", whole[: len(whole) // 2]):
        (place / "_traces" / "gnf-20.npz").write_bytes(damaged)
        with pytest.warns(UserWarning, match=r"gnf-20\.npz cannot be read"):
            assert len(coverage_over_time(place, results, "text").axes) == 2
    with pytest.warns(UserWarning, match=r"gnf-20\.npz cannot be read"):
        names = {name for name, _ in figures(place)}
    assert {"headline-text", "coverage-text", "scale-text"} <= names


def test_nothing_is_drawn_without_data(tmp_path):
    assert [*figures(tmp_path)] == []


def test_the_same_picture_gives_the_same_files(tmp_path):
    curves = {"pooled|ett|paper": [[100, 1.0], [200, 0.5]], "node|ett|other": [[100, 0.9], [200, 0.4]]}
    first = [path.read_bytes() for path in save(learning_curves(curves), tmp_path, "a")]
    assert first == [path.read_bytes() for path in save(learning_curves(curves), tmp_path, "b")]
