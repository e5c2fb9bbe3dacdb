"""The live verdict: alarms soon after a change, hardly ever without one, and its band holds."""

import json
from functools import cache

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, chi2
from typer.testing import CliRunner

from jointset import GraphLGSSM, JointPredictor, Panel, generate_grssf
from jointset.cli import app
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import fitted_row
from jointset.methods import predictor_for, row
from jointset.storage import pack, unpack
from jointset.trust import HORIZON, RECENT, start_watch


def calibrated(track, seed, n=30, length=8000, **options):
    train, _, calibration, test = generate_grssf(track, n=n, seed=seed, length=length).panel.split()
    return JointPredictor(GraphLGSSM(), standardize=False, **options).fit(train).calibrate(calibration), test


def alarms(watch, scores, inside=None):
    """Whether the alarm is on after each step (T,)."""
    on = []
    inside = np.ones(len(scores), bool) if inside is None else inside
    for score, hit in zip(scores.tolist(), inside.tolist(), strict=True):
        watch = watch.update(score, hit)
        on.append(watch.trust(0.0).drift_alarm)
    return np.array(on)


def first_alarm(watch, scores, inside=None):
    on = alarms(watch, scores, inside)
    return int(on.argmax()) if on.any() else None


def run_through(predictor, test):
    """The watch before the test block, scores and hits in it."""
    watch, run = predictor.watch, predictor.copy().run(test, regions=False)
    return watch, run.score, run.inside


def rolling(inside):
    """Coverage of the last 200 steps (T,), NaN before there are so many."""
    total = np.cumsum(np.concatenate([[0], inside]))
    share = (total[RECENT:] - total[:-RECENT]) / RECENT
    return np.concatenate([np.full(RECENT - 1, np.nan), share])


def autoregression(rho, shape, seed=0):
    """Gaussian series (..., T) of unit variance."""
    noise = np.random.default_rng(seed).standard_normal((*shape[:-1], 500 + shape[-1]))
    return lfilter([np.sqrt(1 - rho**2)], [1, -rho], noise)[..., 500:]


# ------------------------------------------------------------------ drift


@pytest.mark.parametrize("seed", range(8))
def test_alarm_within_200_steps_of_a_jump_and_not_before(seed):
    predictor, test = calibrated("E", seed)
    jump = 400  # the middle of the test block
    found = first_alarm(*run_through(predictor, test))
    assert found is not None and jump <= found < jump + 200
    predictor.run(test)
    trust = predictor.trust()
    assert trust.drift_alarm and trust.drift >= 1 and trust.recent_coverage < 0.5
    assert "drift: scores have grown" in trust.verdict


def stationary(name, track, seed):
    """A calibrated predictor of a stationary network whose shape comes from rows of its own, and the test block."""
    train, pilot, calibration, test = generate_grssf(track, n=8, seed=seed).panel.split()
    if name == "kalman":
        return JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration), test
    return row(name, standardize=False).fit(train, pilot).calibrate(calibration), test


def test_false_alarms_on_stationary_networks_are_at_most_one_in_a_hundred_test_blocks():
    units = [
        (name, track, 10_000 + seed) for name in ("kalman", "static", "ewma") for track in "ABC" for seed in range(12)
    ]
    count = sum(first_alarm(*run_through(*stationary(*unit))) is not None for unit in units)
    assert count <= binom.ppf(0.999, len(units), 0.01)  # 5 of 108


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_dependent_scores_are_not_taken_for_drift(rho):
    runs, m = 50, 1500
    series = autoregression(rho, (runs, m + HORIZON))
    found = [first_alarm(start_watch(s[:m], 1.28), s[m:], s[m:] <= 1.28) is not None for s in series]
    assert sum(found) <= binom.ppf(0.999, runs, 0.01)
    shifted = [first_alarm(start_watch(s[:m], 1.28), s[m:] + 2.5) for s in series[:10]]
    assert all(t is not None for t in shifted)


def test_ranks_that_depend_strongly_are_not_taken_for_drift():
    runs, m = 50, 1500
    series = autoregression(0.9, (runs, m + HORIZON))
    assert sum(first_alarm(start_watch(s[:m], 1.28), s[m:]) is not None for s in series) <= binom.ppf(0.999, runs, 0.01)


def test_scores_that_shrink_are_announced_as_such_and_an_alarm_ends_after_the_drift():
    rng = np.random.default_rng(0)
    scores = rng.chisquare(5, 1000)
    watch = start_watch(scores, 9.2).run(0.3 * rng.chisquare(5, 400), np.ones(400, bool))
    assert watch.trust(0.0).drift <= -1 and "shrunk" in watch.trust(0.0).verdict
    back = watch.run(rng.chisquare(5, 500), np.ones(500, bool)).trust(0.0)
    assert not back.drift_alarm and "no drift" in back.verdict


# ------------------------------------------------------------------ coverage that is seen


def calm(rho, m=3000, seed=0):
    """A watch whose calibration hits depend on each other, and a score that says nothing on drift."""
    scores = autoregression(rho, (m,), seed)
    return start_watch(scores, np.sort(scores)[int(np.ceil(0.9 * (m + 1))) - 1]), float(np.median(scores))


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.995])
def test_coverage_15_points_too_low_over_200_steps_is_always_an_alarm_and_one_that_ends(rho):
    watch, middle = calm(rho)
    rng = np.random.default_rng(1)
    for share in (0.0, 0.3, 0.6, 0.74):
        inside = np.concatenate([rng.random(n) < p for n, p in ((300, 0.92), (600, share), (500, 0.92))])
        on = alarms(watch, np.full(len(inside), middle), inside)
        low = rolling(inside) <= 0.75
        assert low.any() and on[low].all()  # on at once, not only within 100 steps
        assert on[:300].sum() == 0 and on[-250:].sum() == 0


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.995])
def test_the_verdict_compares_what_was_seen_with_the_band_of_so_many_readings(rho):
    watch, middle = calm(rho)
    for count in (3, 20, 200):
        for hits in range(count + 1):
            inside = np.arange(count) < hits
            trust = watch.run(np.full(count, middle), inside).trust(0.0)
            few = hits / count < trust.band_over(count)[0] or trust.coverage_alarm
            assert trust.recent_coverage == hits / count
            assert few == ("too few inside" in trust.verdict)
            assert ("no drift" in trust.verdict) == (not few and hits / count >= trust.band[0])
            assert trust.coverage_alarm == trust.drift_alarm == (few and "not yet an alarm" not in trust.verdict)
            assert f"{hits} of the last {count} readings were inside" in trust.verdict
            assert ("expect coverage" in trust.verdict) is not trust.drift_alarm
    fresh = watch.trust(0.0)
    assert "drift" not in fresh.verdict and "inside" not in fresh.verdict and not fresh.coverage_alarm


def test_scores_that_have_grown_while_the_radius_kept_up_are_told_with_what_was_seen():
    rng = np.random.default_rng(0)
    trust = start_watch(rng.chisquare(5, 1000), 9.2).run(2 * rng.chisquare(5, 400), rng.random(400) < 0.9).trust(0.0)
    assert trust.drift_alarm and not trust.coverage_alarm
    assert "scores have grown" in trust.verdict and "of the last 200 readings were inside" in trust.verdict
    assert "too few" not in trust.verdict and "no drift" not in trust.verdict


def test_a_rule_that_adapts_is_held_to_its_target_not_to_the_surplus_of_several_radii():
    rng = np.random.default_rng(0)
    common = 3 * rng.standard_normal((1500, 1))  # groups miss together, so that an equal share for each is too much
    panel = Panel(common + rng.standard_normal((1500, 9)), [f"s{i}" for i in range(9)])
    panel = panel.with_graph(np.kron(np.eye(3), np.ones((3, 3))) - np.eye(9))
    fixed, adaptive = (row(name).fit(panel[:500]).calibrate(panel[500:]).trust() for name in ("group", "group+aci"))
    assert fixed.coverage > 0.91 and adaptive.coverage == 0.9


@pytest.mark.parametrize("method", ["kalman", "kalman-tuned", "static", "time-of-day", "ewma"])
@pytest.mark.parametrize("name", ["aqi-12", "jena-20"])
def test_real_cells_alarm_when_their_coverage_falls(name, method, real_data):
    real_data(f"{name.partition('-')[0]}.npz")
    predictor, test = fitted_row(method, place(name)), place(name).test
    watch, scores, inside = run_through(predictor, test)
    on, low = alarms(watch, scores, inside), rolling(inside) <= 0.75
    assert low.any() and on[low].all()
    recovered = rolling(inside) >= 0.87
    assert (~on[recovered]).any()


@cache
def place(name):
    return cell(name)


def test_a_shape_fitted_on_the_calibration_rows_themselves_is_found_out():
    train, _, calibration, test = generate_grssf("A", n=60, seed=0, length=3000).panel.split()
    with pytest.warns(UserWarning, match="shape fitted on the calibration rows"):
        predictor = row("static", standardize=False).fit(train, calibration).calibrate(calibration)
    before = predictor.trust()
    watch, scores, inside = run_through(predictor, test)
    assert before.band[0] <= inside.mean() <= before.band[1] < 0.7
    assert first_alarm(watch, scores, inside) < 100
    predictor.run(test)
    assert "too few inside" in predictor.trust().verdict


# ------------------------------------------------------------------ the band


@pytest.mark.parametrize("filter_", [GraphLGSSM(), GraphLGSSM(rho=0.3, sigma_q=0.3)], ids=["exact", "wrong"])
def test_coverage_lies_in_the_band_of_each_runs_own_tau(filter_):
    runs, confidence = 150, 0.9
    long_run = tested = short = 0
    for seed in range(runs):
        panel = generate_grssf("A", n=8, seed=seed, length=1400).panel
        predictor = JointPredictor(filter_, standardize=False).fit(panel[:100]).calibrate(panel[100:750])
        trust = predictor.trust()
        # scores of the exact filter are chi^2 with 8 degrees of freedom: the coverage of this very radius is known
        exact = chi2.cdf(predictor.calibration.radius(predictor.calibration_state), 8)
        long_run += within(exact, trust.band_over(np.inf))
        inside = predictor.run(panel[750:], regions=False).inside
        tested += within(inside.mean(), trust.band_over(len(inside)))
        short += within(inside[:100].mean(), trust.band_over(100))
    enough = binom.ppf(0.001, runs, confidence)
    assert tested >= enough and short >= enough
    assert long_run >= enough or filter_.rho != 0.8  # those of the wrong one are dependent and of no known law
    assert tested <= 0.97 * runs  # no wider than it needs to be


def slow_volatility(size, rho, quick, shape, seed=0):
    """Scores (..., T) times exp(size v), v an autoregression: those of ten sensors, or quick ones that depend."""
    plain = np.random.default_rng(seed + 1).chisquare(10, shape)
    return np.exp(size * autoregression(rho, shape, seed)) * (
        np.exp(autoregression(quick, shape, seed + 2)) if quick else plain
    )


@pytest.mark.parametrize(
    ("size", "rho", "quick"), [(0.0, 0.0, 0.0), (0.1, 0.99, 0.0), (0.1, 0.995, 0.0), (0.2, 0.99, 0.0), (0.5, 0.99, 0.5)]
)
def test_coverage_lies_in_the_band_where_the_spread_of_scores_wanders_slowly(size, rho, quick):
    runs, m, n = 150, 3000, 1000
    held, widths = 0, []
    for scores in slow_volatility(size, rho, quick, (runs, m + n)):
        radius = np.sort(scores[:m])[int(np.ceil(0.9 * (m + 1))) - 1]
        trust = start_watch(scores[:m], radius).trust(0.0)
        held += within((scores[m:] <= radius).mean(), trust.band_over(n))
        widths.append(trust.half_width)
    assert held >= binom.ppf(0.001, runs, 0.9)
    assert size or np.mean(widths) < 1.25 * 1.645 * np.sqrt(0.09 / m)  # and no wider than it needs to be


def within(share, band):
    return band[0] <= share <= band[1]


def test_the_band_narrows_to_that_of_the_long_run_and_stays_a_share():
    trust = start_watch(autoregression(0.9, (3000,)), 1.28).trust(0.0)
    widths = [high - low for low, high in map(trust.band_over, (1, 50, 200, HORIZON, 1e9))]
    assert widths == sorted(widths, reverse=True) and widths[-1] == pytest.approx(2 * trust.half_width, rel=1e-3)
    assert trust.band == trust.band_over(HORIZON) and trust.band_over(1) == (0.0, 1.0)
    assert f"({trust.band[0]:.2f} to {trust.band[1]:.2f} over 1,000 steps)" in trust.verdict


def test_dependence_shrinks_the_effective_size_and_widens_the_band():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(20_000)
    loose, tied = (start_watch(lfilter([1], [1, -rho], noise), 1.0).trust(0.0) for rho in (0.0, 0.9))
    assert loose.tau_int < 1.5 and tied.tau_int > 5
    assert tied.effective_size == tied.n_calibration / tied.tau_int
    assert tied.band[1] - tied.band[0] > 1.8 * (loose.band[1] - loose.band[0])
    assert f"worth about {tied.effective_size:,.0f} independent ones" in tied.verdict


def test_the_effective_size_is_that_of_the_audit():
    from jointset.audits.collect import audit

    predictor, test = calibrated("B", 0)
    size = audit(predictor, test, audits=["m_eff"])["m_eff"]["value"]
    assert predictor.trust().effective_size == pytest.approx(size, rel=1e-12)


# ------------------------------------------------------------------ the predictor


def test_a_conservative_component_set_says_so():
    train, _, calibration, test = generate_grssf("B", n=10, seed=1, length=4000).panel.split()
    predictor = row("factor").fit(train).calibrate(calibration)
    trust = predictor.trust()
    joint = predictor.run(test).joint
    assert trust.band[0] - 0.03 <= joint <= trust.band[1] + 0.03


def test_a_predictor_that_is_not_calibrated_answers_in_one_line():
    panel = generate_grssf("A", n=8, length=600).panel
    for name in ("kalman", "copula"):
        with pytest.raises(InputError, match="not calibrated"):
            predictor_for(name).fit(panel).trust()


def test_a_watch_opens_with_the_fields_it_had_before_rules_that_adapt_had_their_own():
    fields = {"tau_int": 1.0, "coverage": 0.9, "half_width": 0.05, "slack": 10, "limit": 100}
    reference = {"class": "Reference", "fields": {"scores": {"array": "scores"}, **fields}}
    tree = {"class": "Watch", "fields": {"reference": reference, "high": 0, "low": 0, "steps": 2, "recent": 1}}
    watch = unpack(tree, {"scores": np.arange(99.0)})
    trust, stored = watch.trust(0.0), pack(watch.reference, {}, "watch")["fields"]
    assert trust.recent_coverage == 0.5 and not trust.steers and trust.band_over(np.inf) == (0.9 - 0.05, 0.9 + 0.05)
    assert stored.keys() - reference["fields"].keys() == {"adapts", "steers"}
    assert pack(watch, {}, "watch")["fields"].keys() == tree["fields"].keys()


def test_calibrating_again_starts_the_watch_afresh():
    predictor, test = calibrated("E", 0, n=8, length=3000)
    predictor.run(test)
    assert predictor.trust().drift_alarm
    assert not predictor.calibrate(test[:100]).trust().drift_alarm


# ------------------------------------------------------------------ the command line


def test_command_line_says_the_verdict_and_streams_it(tmp_path):
    data, model = tmp_path / "panel.csv", tmp_path / "model"
    panel = generate_grssf("A", n=8, seed=2, length=1500).panel
    panel.to_pandas().to_csv(data, index=False)
    cli = CliRunner()
    fitted = cli.invoke(app, ["fit", str(data), "--out", str(model), "--method", "kalman"])
    assert fitted.exit_code == 0, fitted.output
    assert "is worth about" in fitted.output and "expect coverage 0.90 (" in fitted.output
    shown = cli.invoke(app, ["predict", str(model), str(data)])
    assert "is worth about" in shown.output
    lines = ",".join(panel.sensors) + "\n" + ",".join(map(str, panel.values[0])) + "\n"
    plain = json.loads(cli.invoke(app, ["stream", str(model)], input=lines).stdout.splitlines()[0])
    assert "trust" not in plain
    trusted = json.loads(cli.invoke(app, ["stream", str(model), "--trust"], input=lines).stdout.splitlines()[0])
    assert trusted["trust"]["n_calibration"] == 251 and trusted["trust"]["verdict"].startswith(
        "calibration of 251 steps"
    )
    assert trusted["trust"]["drift_alarm"] is False


@pytest.mark.parametrize("factor", [0.05, 0.5, 1.0, 2.0])
def test_a_watch_over_a_block_is_that_of_its_steps(factor):
    rng = np.random.default_rng(0)
    calibration, scores = rng.chisquare(3, 40), factor * rng.chisquare(3, 300)
    scores[::7] = np.nan
    start = start_watch(calibration, 6.0)
    inside = scores <= 6.0
    stepped = start
    for t in range(len(scores)):
        stepped = stepped.update(scores[t], inside[t])
        block = start.run(scores[: t + 1], inside[: t + 1])
        assert (block.high, block.low, block.steps, block.recent) == stepped[1:]
