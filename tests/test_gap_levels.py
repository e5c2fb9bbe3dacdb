"""Strata of rows with as many gaps: each is missed as often as the rule allows; complete rows know nothing of it."""

from itertools import pairwise

import numpy as np
import pytest

from jointset import Panel
from jointset.algebra.partial import GapScale, stratum
from jointset.calibration import ACI, Split
from jointset.calibration.any_rule import course
from jointset.calibration.gap_levels import Strata, after_row, gaps_of, shares_of_strata
from jointset.methods import load_predictor, predictor_for
from jointset.scores import Mahalanobis
from jointset.storage import pack, unpack

N = 20


def rough_where_gaps(steps=6000, seed=0):
    """Noise that is 1.7 times as large in rows with gaps: a fifth of the rows each lacks 0, 1, 4, 9 or 18 sensors."""
    rng = np.random.default_rng(seed)
    values, missing = rng.normal(size=(steps, N)), rng.choice([0, 1, 4, 9, 18], steps)
    values[missing > 0] *= 1.7
    for row, count in zip(values, missing, strict=True):
        row[rng.permutation(N)[:count]] = np.nan
    return Panel(values, [f"s{i}" for i in range(N)]), missing


def test_strata_by_the_share_that_is_missing():
    y = np.zeros((7, 10))
    for row, count in zip(y, (0, 1, 2, 3, 4, 6, 10), strict=True):
        row[:count] = np.nan
    assert stratum(y).tolist() == [0, 1, 2, 2, 3, 3, 4]
    assert shares_of_strata(y) == (1 / 6, 1 / 6, 2 / 6, 2 / 6, 0.0)  # a row without a reading does not count
    assert shares_of_strata(y[-1:]) == (1.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("method", ["static+aci", "static:box+aci", "factor+aci", "copula+aci", "static+agaci"])
def test_every_stratum_is_covered_as_often_where_gaps_come_with_noise(method):
    panel, missing = rough_where_gaps()
    predictor = predictor_for(method).fit(panel[:2000]).calibrate(panel[2000:3500])
    run = predictor.run(panel[3500:], regions=False)
    found = {int(count): run.inside[missing[3500:] == count].mean() for count in np.unique(missing)}
    assert found == {count: pytest.approx(0.9, abs=0.025) for count in found}
    out = ((run.values < run.lower) | (run.values > run.upper)).any(axis=1)
    assert not (out & run.inside).any()
    if method in ("static:box+aci", "copula+aci"):  # whose sets are boxes: inside is within the bounds
        np.testing.assert_array_equal(run.inside, ~out)


def test_a_rule_that_does_not_adapt_has_no_strata():
    panel, _ = rough_where_gaps(2500)
    predictor = predictor_for("static").fit(panel[:1000]).calibrate(panel[1000:2000])
    predictor.run(panel[2000:])
    predictor.update(panel.values[0])
    assert not any(predictor.score.gaps.logs)


def test_complete_rows_are_those_of_the_rule():
    rng = np.random.default_rng(0)
    calibrated, scores = rng.chisquare(N, 500), rng.chisquare(N, 300)
    walk = Strata(Mahalanobis(GapScale(0.9, 28.0)), ACI(0.1), ACI(0.1).start(calibrated))
    found, shown = walk.course(scores, np.zeros((300, N)))
    expected, state = course(ACI(0.1), ACI(0.1).start(calibrated), scores)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert shown is scores and walk.state.level == state.level and walk.traced is walk.score


def test_what_is_common_to_all_rows_is_left_to_the_rule():
    always = GapScale(0.9, 1.0, shares=(0.0, 0.0, 1.0, 0.0, 0.0))
    assert after_row(always, 2, inside=False) is always
    rare = after_row(GapScale(0.9, 1.0), 2, inside=False)
    assert rare.logs[2] == pytest.approx(0.18) and sum(rare.shares) == pytest.approx(1.0)


def factor_of_complete_rows(scores):
    """What complete rows with these scores leave in the log of the announced radius where one row in fifty is so."""
    gaps = GapScale(0.9, 28.0, shares=(0.02, 0.98, 0.0, 0.0, 0.0))
    walk = Strata(Mahalanobis(gaps), ACI(0.1), ACI(0.1).start(np.random.default_rng(9).chisquare(N, 500)))
    found, _ = walk.course(scores, np.zeros((len(scores), N)))
    return np.log(gaps_of(walk.score).lift), found


@pytest.mark.parametrize("rows", [1, 4, 18])
def test_a_rough_spell_widens_the_announced_set_by_its_misses_and_no_further(rows):
    scores = np.random.default_rng(rows).chisquare(N, rows) * 9.0  # all three times as rough
    left, found = factor_of_complete_rows(scores)
    misses = (found.score > found.radius).sum()
    assert misses and 0.0 < left <= 0.2 * misses


@pytest.mark.parametrize("rows", [1, 5])
def test_chance_in_a_few_rows_of_a_rare_stratum_moves_the_announced_set_little(rows):
    """Where strata do not differ: no more than a walk whose steps have variance 0.2^2 alpha (1 - alpha)."""
    rng = np.random.default_rng(0)
    left = [factor_of_complete_rows(rng.chisquare(N, rows))[0] for _ in range(300)]
    assert np.sqrt(np.mean(np.square(left))) <= 0.2 * np.sqrt(0.09 * rows)


def test_run_and_steps_and_a_saved_model_agree_while_strata_move(tmp_path):
    panel, _ = rough_where_gaps(1300)
    predictor = predictor_for("static+aci").fit(panel[:500]).calibrate(panel[500:900])
    live, run = predictor.copy(), predictor.run(panel[900:])
    np.testing.assert_array_equal(run.regions.contains(panel.values[900:]), run.inside)
    np.testing.assert_array_equal(run.regions[7].contains(panel.values[907]), run.inside[7])
    for t, y in enumerate(panel.values[900:1000]):
        region, outcome = live.predict(), live.update(y)
        assert region.contains(y) == outcome.inside == run.inside[t]
        np.testing.assert_allclose((outcome.score, outcome.radius), (run.score[t], run.radius[t]), rtol=1e-12)
    live.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    assert any(gaps_of(loaded.score).logs) and gaps_of(loaded.score) == gaps_of(live.score)
    np.testing.assert_array_equal(loaded.run(panel[1000:]).radius, live.run(panel[1000:]).radius)


def test_a_scale_of_an_older_version_opens_without_its_counts_of_rows():
    gaps, arrays = GapScale(0.9, 28.0, logs=(0.3,) + (0.0,) * 7), {}
    tree = pack(gaps, arrays)
    tree["fields"]["seen"] = [19, 203, 355, 23, 0]
    assert unpack(tree, arrays, kind=GapScale) == gaps


def test_another_rule_starts_without_what_the_strata_learned():
    panel, _ = rough_where_gaps(1300)
    predictor = predictor_for("static+aci").fit(panel[:500]).calibrate(panel[500:900])
    fresh = predictor.rewrapped(ACI(0.1, gamma=0.02))
    expected = fresh.copy().run(panel[900:]).radius
    predictor.run(panel[900:])
    other = predictor.rewrapped(Split(0.1))
    assert any(predictor.score.gaps.logs) and not any(other.score.gaps.logs)
    assert len(expected) == 400 and np.ptp(expected) > 0


def walk_with_outages(steps, seed=0, between=(18, 30)):
    """Sensors that wander; so many rows apart all are out for 8."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(steps, 1)) + 0.5 * rng.normal(size=(steps, 6))
    for t in range(1, steps):
        values[t] += 0.98 * values[t - 1]
    for start in np.cumsum(rng.integers(*between, steps // between[0])):
        values[start : start + 8] = np.nan
    return Panel(values, [f"s{i}" for i in range(6)])


def test_rows_after_an_outage_are_covered_as_calibration_rows_after_outages_say():
    panel = walk_with_outages(3000)
    predictor = predictor_for("static+aci").fit(panel[:1000]).calibrate(panel[1000:2000])
    live, plain = predictor.copy(), predictor.copy()
    plain.score = plain.score.with_gaps(plain.score.gaps._replace(back=(0.0,) * 3, since=24))
    dark = np.isnan(panel.values[2000:]).all(axis=1)
    first = ~dark & np.append(False, dark[:-1])
    run, without = predictor.run(panel[2000:]), plain.run(panel[2000:])
    assert without.inside[first].mean() < 0.5 < 0.8 < run.inside[first].mean()
    np.testing.assert_array_equal(run.regions.contains(panel.values[2000:])[~dark], run.inside[~dark])
    for t, y in enumerate(panel.values[2000:2080]):
        region, outcome = live.predict(), live.update(y)
        np.testing.assert_allclose((outcome.radius, region.log_volume), (run.radius[t], run.log_volume[t]), rtol=1e-12)
        assert dark[t] or outcome.inside == run.inside[t]


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_in_which_a_filter_finds_back_after_an_outage_are_covered_as_well(seed):
    panel = walk_with_outages(6000, seed, between=(80, 120))
    run = predictor_for("kalman+aci").fit(panel[:1000]).calibrate(panel[1000:3000]).run(panel[3000:], regions=False)
    dark, place = np.isnan(panel.values[3000:]).all(axis=1), np.arange(3000)
    since = place - np.maximum.accumulate(np.where(dark, place, -99))
    assert 0.87 < run.inside[(since > 1) & (since < 7)].mean() < 0.93


def test_complete_calibration_rows_say_nothing_of_outages():
    panel = walk_with_outages(2000)
    whole = panel.with_values(np.where(np.isnan(panel.values), 0.0, panel.values))
    assert predictor_for("static+aci").fit(panel[:800]).calibrate(whole[800:]).score.gaps.back == (0.0,) * 3


def test_a_long_run_and_steps_know_the_same_of_strata_and_outages():
    panel, _ = rough_where_gaps(3600, seed=3)
    values = panel.values.copy()
    values[700:1400:60], values[1800:1830] = np.nan, np.where(np.isnan(values[1800:1830]), 0.0, values[1800:1830])
    values[2000:3600:37] = np.nan
    panel = panel.with_values(values)
    predictor = predictor_for("static+aci").fit(panel[:700]).calibrate(panel[700:1800])
    assert any(predictor.score.gaps.back)
    live, run = predictor.copy(), predictor.run(panel[1800:], regions=False)
    outcomes = [live.update(y) for y in values[1800:]]
    np.testing.assert_allclose([one.radius for one in outcomes], run.radius, rtol=1e-11)
    assert [one.inside for one in outcomes] == run.inside.tolist()
    for name in ("logs", "shares", "since"):
        mine, theirs = (getattr(one.score.gaps, name) for one in (predictor, live))
        np.testing.assert_allclose(mine, theirs, atol=1e-11)
    assert live.calibration_state[2:] == predictor.calibration_state[2:]


def test_complete_rows_before_the_first_gap_do_not_count():
    y = np.zeros((8, N))
    y[5, :3] = np.nan
    walk, gaps = (
        Strata(Mahalanobis(GapScale(0.9, 28.0)), ACI(0.1), ACI(0.1).start(np.arange(50.0))),
        GapScale(0.9, 28.0),
    )
    walk.course(np.full(8, 20.0), y)
    for row in y:
        gaps = after_row(gaps, int(stratum(row)), inside=True)
    found = gaps_of(walk.score)
    assert 0.0 < found.shares[2] == pytest.approx(gaps.shares[2])
    np.testing.assert_allclose((found.shares, found.logs[:5]), (gaps.shares, gaps.logs[:5]), rtol=1e-12)


def test_factors_of_rows_are_the_same_however_the_rows_are_cut():
    y = np.zeros((20, N))
    y[[9, 11, 16], :3] = np.nan
    traces = []
    for cuts in ([0, 20], [0, 6, 20], [0, 3, 6, 12, 20]):
        walk = Strata(Mahalanobis(GapScale(0.9, 28.0)), ACI(0.1), ACI(0.1).start(np.arange(50.0)))
        for start, stop in pairwise(cuts):
            walk.course(np.full(stop - start, 20.0), y[start:stop])
        traces.append(gaps_of(walk.traced).trace)
    assert traces[0].any() and not traces[0][:9].any()
    for other in traces[1:]:
        np.testing.assert_allclose(other, traces[0], rtol=1e-12)


@pytest.mark.parametrize("method", ["static+aci", "static:box+aci", "factor+aci"])
def test_a_run_through_no_rows_changes_nothing(method):
    panel, _ = rough_where_gaps(2500)
    predictor = predictor_for(method).fit(panel[:1000]).calibrate(panel[1000:])
    radius = predictor.radius
    assert len(predictor.run(panel[:0]).score) == 0 and predictor.radius == radius
