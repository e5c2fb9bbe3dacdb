"""Pictures as functions: they draw on the axes they are given, return them, and show the numbers of the run."""

import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import jointset
from jointset import Panel
from jointset.errors import InputError
from jointset.report.fan import fan


@pytest.fixture(scope="module")
def fitted():
    panel = jointset.generate_grssf("A", n=8, length=1200).panel
    predictor = jointset.predictor("kalman").fit(panel[:700]).calibrate(panel[700:1000])
    return predictor, predictor.copy().run(panel[1000:]), panel


@pytest.fixture
def ax():
    return Figure().subplots()


def line(ax, label):
    return next(one for one in ax.get_lines() if one.get_label() == label)


def test_scores_and_misses_are_those_of_the_run(fitted, ax):
    run = fitted[1]
    assert jointset.plot.score(run, ax) is ax
    assert len(line(ax, "score, outside").get_xdata()) == (~run.inside).sum() > 0
    np.testing.assert_array_equal(line(ax, "score, inside").get_ydata(), run.score[run.inside])
    np.testing.assert_array_equal(line(ax, "radius").get_ydata(), run.radius)
    assert line(ax, "radius").get_xdata()[0] == np.datetime64(int(run.timestamps[0]), "s")


def test_a_band_marks_what_is_beyond_its_ends(fitted, ax):
    run = fitted[1]
    i = int(np.argmax(((run.values < run.lower) | (run.values > run.upper)).sum(axis=0)))
    jointset.plot.band(run, run.sensors[i], ax)
    beyond = (run.values[:, i] < run.lower[:, i]) | (run.values[:, i] > run.upper[:, i])
    np.testing.assert_array_equal(line(ax, "reading, outside").get_ydata(), run.values[beyond, i])
    assert ax.get_ylabel() == run.sensors[i]
    with pytest.raises(InputError, match="unknown sensor 's00': did you mean 's00"):
        jointset.plot.band(run, "s00", ax)


def test_a_map_has_a_dot_a_sensor_and_a_line_an_edge(fitted, ax):
    predictor, run, panel = fitted
    blame = predictor.contributions(run.values[0])
    jointset.plot.map(predictor, dict(zip(predictor.sensors, blame, strict=True)), ax)
    (dots,) = ax.collections
    np.testing.assert_array_equal(dots.get_array(), blame)
    assert len(ax.get_lines()) == np.count_nonzero(np.triu(panel.adjacency, 1))
    placed = Panel(np.eye(3), tuple("abc"), coordinates=[[50.0, 8.0], [51.0, 8.5], [50.5, 9.0]])
    drawn = jointset.plot.map(placed, ax=Figure().subplots()).collections[0].get_offsets()
    assert drawn[1, 1] == 51.0 and drawn[2, 0] > drawn[1, 0] > drawn[0, 0]  # north is up and east is right


def test_the_cut_of_a_set_holds_the_pair_where_the_set_holds_the_reading(fitted):
    from matplotlib.path import Path

    run = fitted[1]
    seen = set()
    for t in range(40):
        ax = Figure().subplots()
        jointset.plot.region(jointset_region(run, t), run.sensors[:2], run.values[t], ax)
        cut = [patch for patch in ax.patches if patch.get_label() == "given the other sensors"]
        holds = bool(cut) and Path(cut[0].get_xy()).contains_point(run.values[t][:2])
        assert holds == run.inside[t]
        seen.add(holds)
    assert seen == {True, False}


@pytest.mark.parametrize("name", ["ewma:box", "ewma:lean"])
def test_the_cut_of_a_box_holds_the_pair_where_the_box_holds_the_reading(name, ax):
    panel = jointset.generate_grssf("A", n=8, length=900).panel
    run = jointset.predictor(name).fit(panel[:500]).calibrate(panel[500:700]).run(panel[700:])
    seen = set()
    for t in range(60):
        ax.clear()
        one = jointset_region(run, t)
        lower, upper = one.bounds
        jointset.plot.region(one, reading=run.values[t], ax=ax)
        x, y = ax.get_lines()[0].get_data()
        assert (min(x), max(x), min(y), max(y)) == (lower[0], upper[0], lower[1], upper[1])
        inside = (lower <= run.values[t]) & (run.values[t] <= upper)
        assert bool(ax.patches) == inside[2:].all()
        seen.add(bool(run.inside[t]))
    assert seen == {True, False}


def jointset_region(run, t):
    from jointset.regions import named

    return named(run.regions[t], run.sensors)


def test_what_cannot_be_drawn_is_refused(fitted, ax):
    predictor, run, _ = fitted
    with pytest.raises(InputError, match="only an ellipsoid or a box of one step"):
        jointset.plot.region(run.regions, ("s000", "s001"), ax=ax)
    with pytest.raises(InputError, match="two sensors are drawn, got 's000' twice"):
        jointset.plot.region(predictor.predict(), ("s000", "s000"), ax=ax)
    with pytest.raises(InputError, match="a map is of a panel or a predictor, got a Run"):
        jointset.plot.map(run, ax=ax)
    gappy = run.values[0].copy()
    gappy[5] = np.nan
    jointset.plot.region(predictor.predict(), ("s000", "s001"), gappy, ax)
    assert not ax.patches and len(ax.get_lines()) == 2  # shadow and reading: what was not read has no cut


def test_dates_do_not_run_into_each_other(fitted):
    figure = Figure(figsize=(12, 8))
    axes = figure.subplots(2, 2)
    for ax in (jointset.plot.score(fitted[1], axes[0, 0]), jointset.plot.band(fitted[1], "s001", axes[0, 1])):
        figure.canvas.draw()
        boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
        assert len(boxes) > 1
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_without_axes_a_figure_is_made(fitted):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = jointset.plot.score(fitted[1])
    assert ax.figure in [plt.figure(number) for number in plt.get_fignums()]
    plt.close(ax.figure)


def test_nothing_else_is_made_up():
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        jointset.plots  # noqa: B018


def test_names_are_never_read_as_formulas(fitted):
    name, other = r"$\frac$", "US$/CA$"
    panel = fitted[2].rename({"s000": name, "s001": other})
    predictor = jointset.predictor("kalman").fit(panel[:700]).calibrate(panel[700:1000], horizon=2)
    axes = Figure().subplots(2)
    jointset.plot.region(predictor.predict(), (name, other), ax=axes[0])
    jointset.plot.band(predictor.copy().run(panel[1000:]), name, axes[1])
    for figure in (axes[0].figure, fan(predictor.predict(horizon=2), name).figure):
        figure.canvas.draw()
