"""Rows with gaps: the mean is always inside, and what was read is covered as often as complete rows are."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from jointset import Panel
from jointset.algebra.partial import GapScale
from jointset.datasets.cells import cell
from jointset.laws import DenseLaw, LowRankLaw
from jointset.methods import predictor_for
from jointset.regions import Box, Ellipsoid
from jointset.scores import BlockMaximum, Mahalanobis, MaxStudentised, RootMahalanobis

LEVEL = 0.9


def correlated(n=20, steps=()):
    return DenseLaw(np.zeros((*steps, n)), np.eye(n) + 0.5)


def with_gaps(rng, values, missing):
    """Each row without `missing` sensors of its own."""
    values = values.copy()
    for row in values:
        row[rng.permutation(len(row))[:missing]] = np.nan
    return values


@pytest.mark.parametrize("read", [1, 2, 10, 19])
@pytest.mark.parametrize("radius", [1e-6, 0.1, 5.8, 28.0])
def test_a_perfect_reading_is_inside(read, radius):
    y = np.zeros(20)
    y[read:] = np.nan
    law = DenseLaw(np.zeros(20), np.eye(20))
    assert Ellipsoid(law, radius).contains(y)
    assert Box(law, radius).contains(y)
    assert Mahalanobis(GapScale(0.9, 28.0)).score(law, y) == 0.0
    assert MaxStudentised(GapScale(0.9, 28.0)).score(law, y) == 0.0


@pytest.mark.parametrize("score", [Mahalanobis(), MaxStudentised(), BlockMaximum((np.arange(8), np.arange(8, 20)))])
@pytest.mark.parametrize("missing", [1, 5, 10, 15])
@pytest.mark.parametrize("scale", [0.01, 50.0])
def test_coverage_of_what_was_read_whatever_the_scale_of_the_law(score, missing, scale):
    """Readings are `scale` times as wide as the law says; the radius is that of complete rows."""
    rng, steps = np.random.default_rng(missing), 6000
    law = correlated(steps=(steps,))
    score = score.with_gaps(GapScale(LEVEL))
    radius = np.sort(score.score(law, scale * law.sample(rng)))[int(LEVEL * (steps + 1))]
    partial = with_gaps(rng, scale * law.sample(rng), missing)
    plain = np.mean(score.score(law, partial) <= radius)
    ranked = np.mean(score.with_gaps(GapScale(LEVEL, radius)).score(law, partial) <= radius)
    assert plain == pytest.approx(LEVEL, abs=0.02 if isinstance(score, BlockMaximum) else 0.012)  # blocks: correlated
    assert ranked == pytest.approx(plain, abs=1e-3)  # the same decision at the radius


@pytest.mark.parametrize("inner", [Mahalanobis(), MaxStudentised()])
@pytest.mark.parametrize("read", [[0], [1], [0, 2]])
def test_blocks_that_are_read_stand_for_those_that_are_not(inner, read):
    rng, steps = np.random.default_rng(0), 3000
    blocks = (np.arange(3), np.arange(3, 8), np.arange(8, 20))
    law = DenseLaw(np.zeros((steps, 20)), np.eye(20))
    score = BlockMaximum(blocks, inner).with_gaps(GapScale(LEVEL))
    radius = np.quantile(score.score(law, law.sample(rng)), LEVEL)
    partial = np.full((steps, 20), np.nan)
    for block in read:
        partial[:, blocks[block]] = law.sample(rng)[:, blocks[block]]
    for placed in (score, score.with_gaps(GapScale(LEVEL, radius))):
        found = placed.score(law, partial) <= radius
        np.testing.assert_array_equal(found, placed.region(law, radius).contains(partial))
        assert found.mean() == pytest.approx(LEVEL, abs=0.015)


ROOTS = BlockMaximum((np.arange(3), np.arange(3, 8)), RootMahalanobis())
SHAPES = [Mahalanobis(), RootMahalanobis(), MaxStudentised(), ROOTS, replace(ROOTS, inner=Mahalanobis())]


@pytest.mark.parametrize("score", [*SHAPES, replace(ROOTS, inner=MaxStudentised())])
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.9])
def test_bounds_of_what_was_read_end_where_its_score_is_the_radius(score, factor):
    """Along the axis that touches the end of an ellipsoid, or of a box; also under the factor of a stratum."""
    rng, n = np.random.default_rng(0), 8
    half = rng.standard_normal((n, n))
    law = DenseLaw(rng.standard_normal(n), half @ half.T + np.eye(n))
    missing = np.array([0, 0, 1, 0, 1, 0, 1, 0], dtype=bool)
    gaps = GapScale(LEVEL, 5.0, logs=(0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 0.0, 0.0))
    region = score.with_gaps(gaps).region(law, 5.0 * factor)
    y = np.where(missing, np.nan, law.mean)
    lower, upper = region.bounds_for(y)
    np.testing.assert_array_equal(lower[missing], region.bounds[0][missing])
    for i in np.flatnonzero(~missing):
        block = np.arange(n) if not isinstance(score, BlockMaximum) else next(b for b in score.blocks if i in b)
        axis = np.zeros(n)
        if isinstance(getattr(score, "inner", score), MaxStudentised):
            axis[i] = 1.0
        else:
            axis[block] = law.covariance.matrix[block, i] / law.variance[i]
        for end in (lower, upper):
            reach = (end[i] - law.mean[i]) * axis
            assert region.contains(y + 0.999999 * reach) and not region.contains(y + 1.000001 * reach)


def test_bounds_for_complete_and_empty_readings_are_those_of_the_set():
    region = MaxStudentised(GapScale(LEVEL, 2.0, logs=(0.1,) * 8)).region(correlated(4), 3.0)
    for y in (np.zeros(4), np.full(4, np.nan)):
        np.testing.assert_array_equal(region.bounds_for(y), region.bounds)


@pytest.mark.parametrize("radius", [-1.0, 0.0, np.inf])
@pytest.mark.parametrize("shape", [Ellipsoid, Box])
def test_bounds_for_a_row_with_gaps_of_sets_without_a_size(shape, radius):
    region = shape(correlated(4), radius, GapScale(LEVEL, 2.0))
    np.testing.assert_array_equal(region.bounds_for([0.0, np.nan, 1.0, 2.0]), region.bounds)


@pytest.mark.parametrize("method", ["static", "static:box", "spci"])
def test_calibration_rows_with_gaps_are_gone_through_once(method, monkeypatch):
    rng, passes = np.random.default_rng(0), []
    values = rng.standard_normal((700, 4))
    values[300:][rng.random((400, 4)) < 0.1] = np.nan
    panel = Panel(values, list("abcd"))
    predictor = predictor_for(method).fit(panel[:300])
    kind, name = type(predictor.filter), "calibrate" if method == "spci" else "run"
    run = getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda *given: passes.append(name) or run(*given))
    predictor.calibrate(panel[300:])
    assert passes == [name]


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_scores_of_rows_with_gaps_rank_as_complete_ones(scale):
    """With the radius known, all quantiles agree: ranks that `trust` watches, and levels that ACI moves to."""
    rng, n = np.random.default_rng(0), 20
    law = correlated(n, (20_000,))
    gaps = GapScale(LEVEL, scale**2 * chi2(n).ppf(LEVEL))
    y = scale * law.sample(rng)
    y[rng.random(y.shape) < 0.5] = np.nan
    scores = Mahalanobis(gaps).score(law, y) / scale**2
    assert kstest(scores, chi2(n).cdf).statistic < 0.015  # three times the noise level of this sample size
    plain = law.mahalanobis(y)
    assert (np.diff(scores[np.lexsort((plain, np.isnan(y).sum(1)))]) >= 0).mean() > 0.99  # increasing for equal counts


@pytest.mark.parametrize("score", [Mahalanobis, MaxStudentised])
@pytest.mark.parametrize("far", [1e3, 1e8])
def test_a_far_reading_is_far_whatever_is_missing(score, far):
    law = correlated()
    y = np.full(20, np.nan)
    y[3] = far
    assert score(GapScale(0.9, 5.0)).score(law, y) > 100.0
    assert np.isfinite(score(GapScale(0.9, 5.0)).score(law, y))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("n", [5, 20, 200])
def test_boxes_of_correlated_sensors(n, correlation):
    """Partial rows are covered as complete ones, and complete ones by a radius that came from partial ones."""
    rng, steps, level = np.random.default_rng(n), 4000, 0.8
    common = rng.standard_normal((2, steps, 1))
    values = np.sqrt(1 - correlation) * rng.standard_normal((2, steps, n)) + np.sqrt(correlation) * common
    law = DenseLaw(np.zeros((steps, n)), (1 - correlation) * np.eye(n) + correlation)
    score = MaxStudentised(GapScale(level))
    gappy = np.where(rng.random((steps, n)) < rng.choice([0.2, 0.5, 0.8], (steps, 1)), np.nan, values[0])
    partial, complete = score.score(law, gappy), score.score(law, values[1])
    partial = partial[~np.isnan(partial)]
    assert np.mean(partial <= np.quantile(complete, level)) == pytest.approx(level, abs=0.02)
    assert np.mean(complete <= np.quantile(partial, level)) == pytest.approx(level, abs=0.02)


def structures(n):
    """Correlations that are not all alike: chains, blocks, factors, one half alike."""
    places, group = np.arange(n), np.arange(n) % 4
    yield 0.9 ** np.abs(places[:, None] - places)
    yield np.where(group[:, None] == group, 0.8, 0.1) + 0.2 * np.eye(n)
    L = np.random.default_rng(0).standard_normal((n, 4))
    yield L @ L.T + np.eye(n)
    alike = places < n // 2
    yield 0.9 * np.outer(alike, alike) + np.diag(1.0 - 0.9 * alike)


@pytest.mark.parametrize("which", range(4), ids=["chain", "blocks", "factors", "half"])
@pytest.mark.parametrize("read", [3, 15, 50])
def test_boxes_of_other_correlations(which, read):
    rng, n, steps = np.random.default_rng(read), 60, 6000
    S = [*structures(n)][which]
    law, score = DenseLaw(np.zeros((steps, n)), S), MaxStudentised(GapScale(LEVEL))
    radius = np.quantile(score.score(law, law.sample(rng)), LEVEL)
    partial = with_gaps(rng, law.sample(rng), n - read)
    assert np.mean(score.score(law, partial) <= radius) == pytest.approx(LEVEL, abs=0.04)


def test_effective_sensors_of_a_low_rank_law_are_those_of_the_dense_one():
    rng = np.random.default_rng(1)
    law = LowRankLaw(np.zeros((5, 7)), rng.uniform(0.5, 2.0, (5, 7)), rng.standard_normal((5, 7, 2)))
    seen = rng.random((5, 7)) < 0.6
    dense = DenseLaw(law.mean, law.dense())
    for mine, theirs in zip(law.effective_sensors(seen), dense.effective_sensors(seen), strict=True):
        np.testing.assert_allclose(mine, theirs)
    assert DenseLaw(np.zeros(4), np.eye(4)).effective_sensors(np.array([1, 1, 0, 1], bool)) == (3.0, 4.0)


RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["static", "static:box", "factor", "group", "spectral", "kalman", "copula"])
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_rows_with_gaps_in_calibration_and_test(method, correlation):
    """Exchangeable normal rows, 20 % of the cells empty: coverage hardly depends on how many sensors are missing."""
    root = np.linalg.cholesky((1 - correlation) * np.eye(6) + correlation)
    inside, counts = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = rng.standard_normal((1400, 6)) @ root.T
        values[400:][rng.random((1000, 6)) < 0.2] = np.nan
        panel = Panel(values, [f"s{i}" for i in range(6)], adjacency=RING)
        run = predictor_for(method).fit(panel[:400]).calibrate(panel[400:800]).run(panel[800:], regions=False)
        seen = ~np.isnan(run.score)
        inside.append(run.inside[seen])
        counts.append(np.isnan(run.values).sum(axis=1)[seen])
    inside, counts = np.concatenate(inside), np.concatenate(counts)
    found = [inside[counts == k].mean() for k in range(4)]  # 3 missing: about 650 rows
    most = 0.97 if method == "copula" else 0.95  # its intervals are those of complete rows
    assert all(0.875 <= share <= most for share in found), found


CELLS = ("metr-la-20", "aqi-12", "ett-7", "jena-20", "elec-20", "solar-12")


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_partial_rows_of_real_networks(name, real_data):
    """Four filters, half of the test rows with 1 sensor, 25, 50 or 90 % of them: covered as complete rows are."""
    from jointset.experiments.rows import fitted_row

    real_data({"elec-20": "elec.npz"}.get(name, name.rpartition("-")[0] + ".npz"))
    data = cell(name)
    n, rng = data.test.n_sensors, np.random.default_rng(0)
    values, kind = data.test.values.copy(), rng.integers(-4, 4, len(data.test))  # below 0: complete
    reads = [1, max(1, round(0.25 * n)), round(0.5 * n), round(0.9 * n)]
    for t in np.flatnonzero(kind >= 0):
        values[t, rng.permutation(n)[reads[kind[t]] :]] = np.nan
    for method in ("kalman", "kalman-tuned", "static", "static:box"):
        run = fitted_row(method, data).run(data.test.with_values(values), regions=False)
        complete = run.inside[kind < 0].mean()
        for which, read in enumerate(reads):
            share = run.inside[kind == which].mean()
            assert share >= min(complete, LEVEL) - 0.05, (
                f"{method}: {share:.3f} with {read} read, {complete:.3f} with all"
            )


def test_a_row_with_a_gap_that_lies_near_the_mean_of_a_narrow_law_keeps_a_score_of_its_own():
    """Half of what is usual where the law is too narrow: ranks there differ from 1 by less than a float can tell."""
    law = DenseLaw(np.zeros(200), np.eye(200))
    score = Mahalanobis().with_gaps(GapScale(0.9, 500.0))
    rows = np.sqrt(np.linspace(0.05, 1.2, 100))[:, None] * np.ones((1, 200))
    rows[:, 0] = np.nan
    found = score.score(law, rows)
    assert found[0] > 0.0 and (np.diff(found) > 0.0).all()
    assert found == pytest.approx(199 * np.linspace(0.05, 1.2, 100), rel=0.05)
