"""The live verdict on rules that adapt: the band is that of their own sets, drift is no loss, a loss is still told."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from jointset import Panel, generate_grssf, load
from jointset.calibration import ACI, Auto, ByClock, Split, calibration
from jointset.calibration.any_rule import course, moved, next_radii, one_score, started
from jointset.calibration.shared_level import SharedLevel
from jointset.methods import row
from jointset.predicting.calibrating import watch_from
from jointset.predicting.promise import promise_of
from jointset.trust import HORIZON, RECENT, start_watch


def wandering(size, rho, shape, seed=0):
    """Scores (..., T) of ten sensors whose spread wanders slowly."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((*shape[:-1], 2000 + shape[-1]))
    slow = lfilter([np.sqrt(1 - rho**2)], [1, -rho], noise)[..., 2000:]
    return rng.chisquare(10, shape) * np.exp(size * slow)


def watched(rule, scores, m):
    """The watch of a rule after m calibration scores, and its hits on the rest."""
    state = started(rule, scores[:m])
    found, _ = course(rule, state, scores[m:])
    return watch_from(rule, state, scores[:m]), found.score <= found.radius


def far_too_few(watch):
    """Whether coverage lies 15 points under the target over 200 readings whose scores say nothing of drift."""
    middle = float(np.median(watch.reference.scores))
    inside = np.random.default_rng(1).permutation(np.arange(RECENT) < 0.75 * RECENT)
    return watch.run(np.full(RECENT, middle), inside).trust(0.0)


# ------------------------------------------------------------------ the band


@pytest.mark.parametrize(("rule", "narrow"), [(Auto(), 0.035), (ACI(), 0.12), (ACI(gamma=0.02), 0.1)])
@pytest.mark.parametrize(("size", "rho"), [(0.0, 0.0), (0.2, 0.99), (0.4, 0.995)])
def test_the_band_of_a_rule_that_adapts_is_narrow_and_holds_what_it_covers(rule, narrow, size, rho):
    runs, m, n = 60, 1500, 800
    held, widths, still = 0, [], []
    for scores in wandering(size, rho, (runs, m + n)):
        watch, inside = watched(rule, scores, m)
        trust = watch.trust(0.0)
        low, high = trust.band_over(n)
        held += low <= inside.mean() <= high
        widths.append((high - low) / 2)
        split = watched(Split(), scores, m)[0].trust(0.0).band_over(n)
        still.append((split[1] - split[0]) / 2)
        assert trust.steers and trust.band == trust.band_over(HORIZON)
    assert held >= 0.88 * runs
    assert np.mean(widths) < narrow and np.mean(widths) < 0.85 * np.mean(still)


@pytest.mark.parametrize(("method", "part"), [("ewma+auto", 0.3), ("ewma+aci", 0.8), ("group+auto", 0.3)])
def test_a_predictor_whose_sets_hold_promises_so_and_says_so(method, part):
    rng = np.random.default_rng(3)
    spread = np.exp(0.5 * np.sin(np.arange(4000) / 250.0))[:, None]
    panel = Panel(spread * rng.standard_normal((4000, 6)), [f"s{i}" for i in range(6)])
    panel = panel.with_graph(np.kron(np.eye(2), np.ones((3, 3))) - np.eye(6))
    predictor = row(method).fit(panel[:600]).calibrate(panel[600:2000])
    still = row(f"{method.partition('+')[0]}+split").fit(panel[:600]).calibrate(panel[600:2000]).trust().band_over(1500)
    low, high = predictor.trust().band_over(1500)
    assert high - low < part * (still[1] - still[0])
    run = predictor.run(panel[2000:3500])
    assert low <= run.joint <= high
    assert "no longer speaks" not in predictor.trust().verdict


def test_in_the_long_run_a_rule_that_adapts_comes_to_its_target():
    trust = watched(Auto(), wandering(0.2, 0.99, (2000,)), 1500)[0].trust(0.0)
    assert trust.band_over(np.inf) == (0.9, 0.9)
    widths = [high - low for low, high in map(trust.band_over, (50, 200, HORIZON, 1e6))]
    assert widths == sorted(widths, reverse=True)


def test_a_rule_that_misses_its_target_on_its_own_calibration_scores_gets_a_band_that_holds_them():
    ratios = np.where(np.random.default_rng(0).random(400) < 0.8, 0.5, 2.0)
    trust = start_watch(np.random.default_rng(1).random(800), 0.9, 0.9, ratios).trust(0.0)
    assert trust.band_over(len(ratios))[0] <= (ratios <= 1.0).mean() < 0.85


@pytest.mark.parametrize(
    "rule",
    [ACI(), Auto(), calibration("auto"), SharedLevel(ACI(), (0.5, 0.5)), SharedLevel(calibration("auto"), (0.5, 0.5))],
)
def test_the_hits_behind_the_band_are_those_of_single_steps_on_the_second_half(rule):
    m, vectors = 801, isinstance(rule, SharedLevel)
    scores = wandering(0.3, 0.99, (2, m)).T if vectors else wandering(0.3, 0.99, (m,))
    times = 3600 * np.arange(m)
    watch = watch_from(rule, started(rule, scores, times), scores, times)
    state, ratios = started(rule, scores[:400], times[:400]), []
    for one in scores[400:]:
        seen = one_score(rule, state, one[None])[0] if vectors else one
        radius = rule.radius(state)
        assert (seen <= radius) == bool(np.all(one <= next_radii(rule, state)))
        ratios.append(seen / radius)
        state = moved(rule, state, one)
    seen = one_score(rule, started(rule, scores, times), scores)
    by_hand = start_watch(seen, 0.9, 0.9, np.array(ratios)).trust(0.0)
    assert watch.trust(0.0).half_width == pytest.approx(by_hand.half_width, rel=1e-6)


@pytest.mark.parametrize("rule", [ByClock(ACI()), ACI()])
def test_with_few_scores_or_a_radius_that_stands_still_the_band_is_that_of_the_scores(rule):
    scores = wandering(0.2, 0.99, (1500,))
    radius = np.sort(scores[:300])[270]
    few = watch_from(rule, started(rule, scores[:300]), scores[:300]).trust(0.0)
    assert few == start_watch(scores[:300], radius, 0.9).trust(0.0) and not few.steers
    still = ACI(gamma=0.0)
    assert not watch_from(still, started(still, scores), scores).trust(0.0).steers


# ------------------------------------------------------------------ what is told


@pytest.mark.parametrize(("factor", "word"), [(2.0, "larger"), (0.5, "smaller")])
def test_scores_that_drift_while_the_sets_hold_are_told_without_loss(factor, word):
    scores = wandering(0.0, 0.0, (2300,))
    scores[1500:] *= factor
    watch, inside = watched(Auto(), scores, 1500)
    trust = watch.run(scores[1500:], inside).trust(0.0)
    assert trust.drift_alarm and not trust.coverage_alarm and abs(inside[-RECENT:].mean() - 0.9) < 0.03
    assert f"the sets follow and are {word} than at calibration" in trust.verdict
    assert "no longer speaks" not in trust.verdict and "expect coverage 0.90 (" in trust.verdict
    assert "too few" not in trust.verdict and "no drift" not in trust.verdict


def test_scores_that_outrun_the_radius_are_told_as_a_loss():
    scores = wandering(0.0, 0.0, (1800,))
    watch = watched(ACI(), scores, 1500)[0]
    trust = watch.run(4.0 * scores[1500:], np.arange(300) % 2 == 0).trust(0.0)
    assert trust.coverage_alarm and "the sets do not keep up" in trust.verdict
    assert "too few inside: 100 of the last 200" in trust.verdict and "expect coverage" not in trust.verdict


@pytest.mark.parametrize("rule", [Auto(), ACI(), ACI(gamma=0.02)])
@pytest.mark.parametrize(("size", "rho"), [(0.0, 0.0), (0.4, 0.99), (0.7, 0.998)])
def test_coverage_15_points_too_low_is_an_alarm_under_a_rule_that_adapts_too(rule, size, rho):
    trust = far_too_few(watched(rule, wandering(size, rho, (1600,)), 1500)[0])
    assert trust.coverage_alarm and "too few inside: 150 of the last 200" in trust.verdict


def test_false_alarms_of_rules_that_adapt_on_stationary_networks_are_rare():
    count, units = 0, [(name, seed) for name in ("static+auto", "ewma+aci") for seed in range(15)]
    for name, seed in units:
        train, _, rows, test = generate_grssf("A", n=8, seed=20_000 + seed, length=4000).panel.split()
        predictor = row(name, standardize=False).fit(train).calibrate(rows)
        watch, run = predictor.watch, predictor.run(test, regions=False)
        on = False
        for score, hit in zip(run.score.tolist(), run.inside.tolist(), strict=True):
            watch = watch.update(score, hit)
            on |= watch.alarms()[1]
        count += on
    assert count <= binom.ppf(0.999, len(units), 0.01)


def test_a_run_that_lost_coverage_under_a_rule_that_adapts_has_not_kept_its_promise():
    spread = np.sqrt(wandering(0.4, 0.995, (1500,)))[:, None]
    panel = Panel(spread * np.random.default_rng(2).standard_normal((1500, 8)), [f"s{i}" for i in range(8)])
    predictor = row("ewma+auto").fit(panel[:400]).calibrate(panel[400:])
    words = []
    for share in (0.9, 0.84, 0.75):
        words.append(promise_of(predictor, SimpleNamespace(score=np.ones(1000), joint=share)).word)
    assert words == ["kept", "short", "far"]


def test_a_saved_model_keeps_the_band_of_its_rule(tmp_path):
    panel = generate_grssf("A", n=8, seed=1, length=3000).panel
    predictor = row("ewma+auto").fit(panel[:500]).calibrate(panel[500:1500])
    predictor.run(panel[1500:1700])
    predictor.save(tmp_path / "model")
    assert predictor.trust().steers and load(tmp_path / "model").trust() == predictor.trust()
