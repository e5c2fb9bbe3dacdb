"""The live verdict: alarms soon after a change, hardly ever without one, and its band holds."""

import json

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, chi2
from typer.testing import CliRunner

from jointset import GraphLGSSM, JointPredictor, generate_grssf
from jointset.audits.theory import bernstein_interval
from jointset.baselines.rows import row
from jointset.calibration import ACI
from jointset.cli import app
from jointset.errors import InputError
from jointset.methods import load_predictor, predictor_for
from jointset.trust import HORIZON, start_watch


def calibrated(track, seed, n=30, length=8000, **options):
    train, _, calibration, test = generate_grssf(track, n=n, seed=seed, length=length).panel.split()
    return JointPredictor(GraphLGSSM(), standardize=False, **options).fit(train).calibrate(calibration), test


def first_alarm(watch, scores):
    for t, score in enumerate(scores.tolist()):
        watch = watch.update(score, True)
        if watch.trust(0.0).drift_alarm:
            return t
    return None


# ------------------------------------------------------------------ drift


@pytest.mark.parametrize("seed", range(8))
def test_alarm_within_200_steps_of_a_jump_and_not_before(seed):
    predictor, test = calibrated("E", seed)
    jump = 400  # the middle of the test block
    found = first_alarm(predictor.watch, predictor.copy().run(test, regions=False).score)
    assert found is not None and jump <= found < jump + 200
    predictor.run(test)
    trust = predictor.trust()
    assert trust.drift_alarm and trust.drift >= 1 and trust.recent_coverage < 0.5
    assert "drift: scores have grown" in trust.verdict


def test_false_alarms_on_a_stationary_network_are_at_most_one_in_a_hundred_test_blocks():
    runs = 150
    alarms = 0
    for seed in range(runs):
        predictor, test = calibrated("A", 10_000 + seed, n=8)
        alarms += first_alarm(predictor.watch, predictor.copy().run(test, regions=False).score) is not None
    assert alarms <= binom.ppf(0.999, runs, 0.01)  # 6 of 150


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_dependent_scores_are_not_taken_for_drift(rho):
    runs, m = 120, 1500
    noise = np.random.default_rng(0).standard_normal((runs, 300 + m + HORIZON))
    series = lfilter([np.sqrt(1 - rho**2)], [1, -rho], noise)[:, 300:]
    alarms = sum(first_alarm(start_watch(s[:m], 1.28), s[m:]) is not None for s in series)
    assert alarms <= binom.ppf(0.999, runs, 0.01)
    shifted = [first_alarm(start_watch(s[:m], 1.28), s[m:] + 2.5) for s in series[:20]]
    assert all(t is not None for t in shifted)


def test_scores_that_shrink_are_announced_as_such_and_an_alarm_ends_after_the_drift():
    rng = np.random.default_rng(0)
    scores = rng.chisquare(5, 1000)
    watch = start_watch(scores, 9.2).run(0.3 * rng.chisquare(5, 400), np.ones(400, bool))
    assert watch.trust(0.0).drift <= -1 and "shrunk" in watch.trust(0.0).verdict
    back = watch.run(rng.chisquare(5, 500), np.ones(500, bool)).trust(0.0)
    assert not back.drift_alarm and "no drift" in back.verdict


# ------------------------------------------------------------------ the band


@pytest.mark.parametrize("filter_", [GraphLGSSM(), GraphLGSSM(rho=0.3, sigma_q=0.3)], ids=["exact", "wrong"])
def test_coverage_of_500_networks_lies_in_the_band_of_each_runs_own_tau(filter_):
    runs, confidence = 500, 0.9
    long_run = tested = 0
    for seed in range(runs):
        panel = generate_grssf("A", n=8, seed=seed, length=1400).panel
        predictor = JointPredictor(filter_, standardize=False).fit(panel[:100]).calibrate(panel[100:750])
        trust = predictor.trust()
        # scores of the exact filter are chi^2 with 8 degrees of freedom: the coverage of this very radius is known
        exact = chi2.cdf(predictor.calibration.radius(predictor.calibration_state), 8)
        long_run += trust.band[0] <= exact <= trust.band[1]
        run = predictor.run(panel[750:], regions=False)
        low, high = bernstein_interval(
            1 - trust.coverage, trust.effective_size, 1 - confidence, test_size=len(run.score) / trust.tau_int
        )
        tested += low <= run.joint <= high
    enough = binom.ppf(0.001, runs, confidence)
    assert tested >= enough
    assert long_run >= enough or filter_.rho != 0.8  # those of the wrong one are dependent and of no known law


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


PREDICTORS = {
    "filter": lambda: JointPredictor(GraphLGSSM(), calibration=ACI()),
    "row": lambda: row("ewma"),
    "components": lambda: row("factor+aci"),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_run_equals_stepping_copies_are_independent_and_files_keep_the_state(name, tmp_path):
    train, _, calibration, test = generate_grssf("E", n=10, seed=1, length=3000).panel.split()
    rows = test.values.copy()
    rows[40] = np.nan  # a row without any reading
    rows[60:80, 2] = np.nan
    test = test.with_values(rows)
    predictor = PREDICTORS[name]().fit(train).calibrate(calibration)
    fresh = predictor.trust()
    assert np.isnan(fresh.recent_coverage) and fresh.drift == 0 and fresh.n_calibration == 251
    stepped, whole = predictor.copy(), predictor.copy()
    outcomes = [stepped.update(y) for y in rows]
    run = whole.run(test)
    assert stepped.trust() == whole.trust() != fresh
    assert predictor.trust()._replace(recent_coverage=0) == fresh._replace(recent_coverage=0)
    last = [o.inside for o in outcomes if o.observed][-200:]
    assert whole.trust().recent_coverage == pytest.approx(np.mean(last))
    assert whole.trust().infinite_share == run.infinite_share
    whole.save(tmp_path / "model")
    again = load_predictor(tmp_path / "model")
    assert again.trust() == whole.trust()
    again.update(test.values[0])
    whole.update(test.values[0])
    assert again.trust() == whole.trust()


def test_a_conservative_component_set_says_so():
    train, _, calibration, test = generate_grssf("B", n=10, seed=1, length=4000).panel.split()
    predictor = row("factor").fit(train).calibrate(calibration)
    trust = predictor.trust()
    joint = predictor.run(test).joint
    assert trust.band[0] - 0.03 <= joint <= trust.band[1] + 0.03


def test_a_predictor_that_is_not_calibrated_and_published_methods_answer_in_one_line():
    panel = generate_grssf("A", n=8, length=600).panel
    with pytest.raises(InputError, match="not calibrated"):
        JointPredictor(GraphLGSSM()).fit(panel).trust()
    with pytest.raises(InputError, match="no calibration scores"):
        predictor_for("copula").trust()


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
    assert "is worth about" in fitted.output and "expect coverage 0.90 ±" in fitted.output
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
