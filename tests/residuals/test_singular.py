"""Duplicate sensors: rows whose covariance is singular add a ridge, say so once, and no set of theirs is flat."""

import itertools
import warnings

import numpy as np
import pytest

from jointset.methods import predictor_for, row
from jointset.panel import Panel
from jointset.residuals.shrinkage import RIDGE, SMALLEST, flat_spans, is_singular

TEXT = ("static", "factor", "group", "spectral", "per-group-factor", "time-of-day", "multidim-spci")
SHRUNK = ("table static", "table group")  # by data or by 0.1 to the diagonal: not singular
TABLE = ("table factor", "table spectral", "table per-group-factor")
COMPONENTS = ("factor", "group", "spectral", "per-group-factor")
STEPS, TRAIN, CALIBRATED = 1400, 700, 1100


def made(n, copies=(0,), noise=0.0):
    """n sensors on a chain, and copies of some of them beside them with the same neighbours."""
    rng = np.random.default_rng(0)
    values, links = np.zeros((STEPS, n)), np.eye(n, k=1) + np.eye(n, k=-1)
    for t in range(1, STEPS):
        values[t] = 0.5 * values[t - 1] + rng.standard_normal(n)
    values += 5.0
    kept = [*range(n), *copies]
    values = values[:, kept]
    values[:, n:] *= 1.0 + noise * rng.standard_normal((STEPS, len(copies)))
    sensors = [f"s{i}" for i in range(len(kept))]
    return Panel(values, sensors, timestamps=600 * np.arange(STEPS), adjacency=links[np.ix_(kept, kept)])


def predictor(name):
    protocol, _, plain = name.rpartition(" ")
    return row(plain, protocol=protocol) if protocol else predictor_for(plain)


def calibrated(name, panel):
    """A calibrated row, and what it warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = predictor(name).fit(panel[:TRAIN]).calibrate(panel[TRAIN:CALIBRATED])
    return made, [str(one.message) for one in told]


def coverage(made, panel, change):
    """Joint coverage of the test rows, the last sensor changed by that share."""
    values = panel.values[CALIBRATED:].copy()
    values[:, -1] *= 1.0 + change
    run = made.copy().run(panel[CALIBRATED:].with_values(values))
    assert np.isfinite(run.log_volume).all()
    return run.joint


@pytest.mark.parametrize("noise", [0.0, 1e-15], ids=["equal", "equal to rounding"])
@pytest.mark.parametrize("n", [3, 9])  # with three the difference of the two is a component of its own
@pytest.mark.parametrize("name", [*TEXT, *TABLE])
def test_duplicate_sensors_get_a_ridge_and_one_line(name, n, noise):
    panel = made(n, noise=noise)
    found, told = calibrated(name, panel)
    if name == "table per-group-factor" and n == 3:  # four groups of one sensor each: none is flat
        assert not told
    else:
        (line,) = told
        assert line.startswith(f"{name.split()[-1]}: the covariance of the residuals is singular")
        assert "ridge" in line and "\n" not in line
    plain = coverage(found, panel, 0.0)
    assert plain > 0.8
    for change in (1e-12, -1e-9):
        assert coverage(found, panel, change) == pytest.approx(plain, abs=0.03)
    if name in TEXT[:-1]:  # a twin that breaks is seen; boxes are wide, and multidim-spci follows its scores
        assert coverage(found, panel, 0.2) < 0.1


@pytest.mark.parametrize("name", SHRUNK)
def test_a_covariance_shrunk_to_its_diagonal_needs_none(name):
    panel = made(9)
    found, told = calibrated(name, panel)
    assert not told
    assert coverage(found, panel, 1e-12) == pytest.approx(coverage(found, panel, 0.0), abs=0.03)


@pytest.mark.parametrize("name", [*TEXT, *TABLE, *SHRUNK])
def test_other_sensors_get_no_ridge(name):
    assert calibrated(name, made(8, copies=()))[1] == []


@pytest.mark.parametrize("name", [*COMPONENTS, "static", "time-of-day", "multidim-spci"])
def test_small_units_are_no_duplicates(name):
    """Readings kept in their units: a sensor a million times smaller than the others is not flat."""
    panel = made(8, copies=())
    panel = panel.with_values(panel.values * np.where(np.arange(8) == 2, 1e-6, 1.0))
    options = {"standardize": False}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = predictor_for(name, **options).fit(panel[:TRAIN]).calibrate(panel[TRAIN:CALIBRATED])
    assert found.run(panel[CALIBRATED:], regions=False).joint > 0.8


@pytest.mark.parametrize("name", ["factor", "per-group-factor", "spectral", "table factor"])
def test_the_volume_of_duplicates_is_that_of_the_ridge(name):
    """As for static, whose one radius the difference of the two sensors shares; it is not that of rounding."""
    panel = made(3)
    volumes = [
        calibrated(one, panel)[0].run(panel[CALIBRATED:], regions=False).log_volume.mean() for one in ("static", name)
    ]
    assert volumes[1] == pytest.approx(volumes[0], abs=0.7)


@pytest.mark.parametrize("name", [*COMPONENTS, *TABLE])
def test_the_middle_of_a_set_with_a_ridge_is_inside_whatever_is_missing(name):
    """The least score of a component with a ridge is its radius too, also for rows with gaps."""
    panel = made(3)
    region = calibrated(name, panel)[0].predict()
    for missing in itertools.product([False, True], repeat=4):
        assert region.contains(np.where(missing, np.nan, region.center)) == (not all(missing)), missing


def test_the_ridge_has_the_documented_size():
    panel = made(3)
    whole = calibrated("static", panel)[0].filter.shape.covariance
    smallest = np.linalg.eigvalsh(whole)[0]
    assert smallest == pytest.approx(RIDGE * np.trace(whole) / 4, rel=1e-3)
    for name in ("factor", "group", "spectral", "per-group-factor"):
        parts = calibrated(name, panel)[0].filter.shape.covariances
        assert min(np.linalg.eigvalsh(S)[0] for S in parts) == pytest.approx(smallest, rel=1e-3)


def test_groups_without_a_pair_keep_their_covariance():
    """The twins are in two groups, and neither is flat: nothing to add, though the whole covariance is singular."""
    panel, links = made(6), np.zeros((7, 7))
    links[:3, :3] = links[3:, 3:] = 1.0
    np.fill_diagonal(links, 0.0)
    found, told = calibrated("group", panel.with_graph(links))
    assert not told and not any(found.filter.shape.least)


def test_flat_spans_are_those_of_the_correlations():
    rng = np.random.default_rng(1)
    sample = rng.standard_normal((200, 4)) * [1.0, 1e-6, 30.0, 1.0]
    S = sample.T @ sample
    turned = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert flat_spans(S, [np.eye(4), turned[:, :1], turned[:, 1:]]) == [False] * 3
    twin = sample[:, [0, 1, 2, 0]]
    S = twin.T @ twin
    difference = np.array([[1.0], [0.0], [0.0], [-1.0]]) / np.sqrt(2.0)
    others = np.linalg.qr(np.concatenate([difference, np.eye(4)[:, :3]], axis=1))[0][:, 1:]
    assert flat_spans(S, [np.eye(4), difference, others]) == [True, True, False]
    assert is_singular(S) and not is_singular(S + SMALLEST * 10 * np.diag(np.diag(S)))
