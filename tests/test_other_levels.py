"""A predictor at another level, by another rule or by the clock is the one that was made so from the start."""

import numpy as np
import pytest

import jointset
from jointset import ACI, Panel, Split
from jointset.calibration import ByClock
from jointset.residuals.conditional import Local

HOUR, FIRST = 3600, 1_700_000_000 // 86_400 * 86_400


def network(rows, gaps=0.0, outages=False, seed=0):
    """Six sensors that follow themselves, hourly, with heavy tails."""
    rng, n = np.random.default_rng(seed), 6
    noise = rng.standard_normal((rows, 2)) @ rng.normal(size=(2, n)) + rng.standard_normal((rows, n))
    noise /= np.sqrt(rng.chisquare(5, (rows, 1)) / 5)
    y = np.zeros((rows, n))
    for t in range(1, rows):
        y[t] = 0.7 * y[t - 1] + noise[t]
    y[rng.random((rows, n)) < gaps] = np.nan
    t = 20
    while outages and t < rows:
        y[t : t + int(rng.integers(1, 5))] = np.nan
        t += int(rng.integers(25, 50))
    A = np.eye(n, k=1) + np.eye(n, k=-1)
    return Panel(y, [f"s{i}" for i in range(n)], timestamps=FIRST + HOUR * np.arange(rows), adjacency=A)


@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_a_rule_of_another_level_holds_it_for_rows_with_gaps(alpha):
    panel = network(5000, gaps=0.15)
    fitted = jointset.predictor("static+aci").fit(panel[:1500]).calibrate(panel[1500:2500])
    other = fitted.rewrapped(ACI(alpha=alpha)).run(panel[2500:])
    direct = jointset.predictor("static+aci", alpha=alpha).fit(panel[:1500]).calibrate(panel[1500:2500])
    partial = np.isnan(panel.values[2500:]).any(axis=1)
    assert abs(other.inside[partial].mean() - (1 - alpha)) < 0.02
    assert abs(other.joint - direct.run(panel[2500:]).joint) < 0.01


def test_intervals_of_fills_and_bands_of_another_level_are_not_kept():
    panel = network(2000, gaps=0.1)
    fitted = jointset.predictor("static").fit(panel[:900]).calibrate(panel[900:1400], horizon=3)
    y = panel.values[1400].copy()
    y[2] = np.nan
    wide = fitted.impute(y)
    half = fitted.rewrapped(Split(alpha=0.5))
    narrow = half.impute(y)
    direct = jointset.predictor("static", alpha=0.5).fit(panel[:900]).calibrate(panel[900:1400]).impute(y)
    width = narrow.upper[2] - narrow.lower[2]
    assert width == pytest.approx(direct.upper[2] - direct.lower[2], rel=0.05)
    assert width < 0.6 * (wide.upper[2] - wide.lower[2])
    assert half.horizon is not None and half.horizon.own is None
    assert {score.gaps.level for score in half.horizon.scores} == {0.5}


def test_sets_ahead_of_a_rule_that_adapts_age_in_the_order_of_time_whichever_rule_was_first():
    panel = network(1500)
    fixed = jointset.predictor("static").fit(panel[:600]).calibrate(panel[600:1000], horizon=3)
    moving = jointset.predictor("static+aci").fit(panel[:600]).calibrate(panel[600:1000], horizon=3)
    one, other = fixed.rewrapped(ACI()).run(panel[1000:]).ahead, moving.run(panel[1000:]).ahead
    np.testing.assert_array_equal(one.radius, other.radius)


def test_a_fixed_radius_after_an_outage_is_that_of_the_run():
    panel = network(2400, outages=True, seed=1)
    dark = np.isnan(panel.values).all(axis=1)
    end = next(t for t in range(1800, 2000) if dark[t - 1])  # calibration ends in an outage
    fitted = jointset.predictor("static").fit(panel[:1000]).calibrate(panel[1000:end])
    assert any(fitted.score.gaps.back)  # else nothing is tested
    live, run = fitted.copy(), fitted.copy().run(panel[end : end + 100])
    radii = [live.update(y).radius for y in panel.values[end : end + 100]]
    np.testing.assert_allclose(radii, run.radius, rtol=1e-12)


def test_rows_since_an_outage_are_counted_under_every_rule():
    panel = network(2400, outages=True, seed=1)
    dark = np.isnan(panel.values).all(axis=1)
    end = next(t for t in range(1800, 2000) if dark[t - 1])
    fitted = jointset.predictor("static").fit(panel[:1000]).calibrate(panel[1000:end])
    run, live = fitted.copy(), fitted.copy()
    run.run(panel[end : end + 12])
    for y in panel.values[end : end + 12]:
        live.update(y)
    assert run.score.gaps.since == live.score.gaps.since != fitted.score.gaps.since
    later = run.rewrapped(ACI())
    assert later.score.gaps.since == run.score.gaps.since


def test_the_watch_of_sets_ahead_is_that_of_the_rule():
    panel = network(1400)
    fixed = jointset.predictor("static").fit(panel[:600]).calibrate(panel[600:1000], horizon=3)
    moving = jointset.predictor("static+aci").fit(panel[:600]).calibrate(panel[600:1000], horizon=3)
    other = fixed.rewrapped(ACI()).horizon
    assert other.watch.reference.coverage == moving.horizon.watch.reference.coverage
    assert other.watch.reference.tau_int == pytest.approx(moving.horizon.watch.reference.tau_int)


def test_another_level_by_the_clock_needs_the_times_of_the_scores():
    panel = network(1600)
    predictor = jointset.predictor("static+clock-split").fit(panel[:600]).calibrate(panel[600:1500])
    predictor.calibration_times = None  # as in models of older versions
    with pytest.raises(jointset.errors.InputError, match=r"calibrate it again for alpha=0\.3"):
        predictor.predict(alpha=0.3)


def test_one_far_row_does_not_blur_which_rows_are_near():
    rng = np.random.default_rng(0)
    means, centers = rng.normal(size=(2000, 5)), rng.normal(size=(50, 5))
    means[7] = 1e7
    local = Local(means=means, residuals=means)
    true = np.argsort(((centers[:, None] - means) ** 2).sum(axis=-1), axis=1)[:, :50]
    found = local._nearest(centers)
    assert np.mean([len({*a} & {*b}) / 50 for a, b in zip(true, found, strict=True)]) > 0.99


@pytest.mark.parametrize("name", ["static+clock-split", "factor+clock-split", "static"])
def test_asking_for_the_level_of_the_model_changes_nothing(name):
    panel = network(1600)
    rough = np.where(np.arange(1600) % 24 < 12, 1.0, 4.0)[:, None]
    panel = panel.with_values(panel.values * rough)
    predictor = jointset.predictor(name).fit(panel[:600]).calibrate(panel[600:1500])
    for t in range(1500, 1524):  # around the clock
        predictor.expect(int(panel.timestamps[t]))
        same, usual = predictor.predict(alpha=0.1), predictor.predict()
        np.testing.assert_allclose(same.half_width, usual.half_width, rtol=1e-12)
        assert (predictor.predict(alpha=0.3).half_width < usual.half_width).all()
        predictor.update(panel.values[t])


@pytest.mark.parametrize("name", ["factor+aci", "group+aci", "per-group-factor+auto"])
def test_shares_of_several_radii_add_up_to_the_score_with_gaps(name):
    panel = network(1400, gaps=0.1, seed=9)
    predictor = jointset.predictor(name).fit(panel[:600]).calibrate(panel[600:1000])
    for y in panel.values[1000:1200]:
        total = predictor.attribution(y).sum()
        assert predictor.update(y).score == pytest.approx(total, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("alpha", "rows"), [(0.1, 100), (0.1, 200), (0.05, 200), (0.01, 500)])
def test_a_clock_makes_nothing_of_chance_where_scores_are_few(alpha, rows):
    inside = []
    for seed in range(60):
        scores, times = np.random.default_rng(seed).chisquare(6, rows + 24), FIRST + HOUR * np.arange(rows + 24)
        rule = ByClock(Split(alpha))
        radii, _ = rule.run(rule.start(scores[:rows], times[:rows]), scores[rows:], times[rows:])
        inside.append((scores[rows:] <= radii).mean())
    assert np.mean(inside) > 1 - alpha - 3 * np.std(inside) / len(inside) ** 0.5
    assert np.mean(inside) > 1 - 1.4 * alpha


def test_equal_rows_are_as_near_in_a_run_as_step_by_step():
    counts = np.random.default_rng(0).poisson(0.5, (900, 4)).astype(float)
    panel = Panel(counts, list("abcd"))
    predictor = jointset.predictor("local+aci").fit(panel[:400]).calibrate(panel[400:700])
    run = predictor.copy().run(panel[700:])
    np.testing.assert_allclose([predictor.update(y).score for y in counts[700:]], run.score, rtol=1e-9)
