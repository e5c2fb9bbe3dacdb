"""Agreement with outputs recorded from the authors' own code."""

import numpy as np
import pytest

from jointset.calibration import ACI, ECI, PID, SAOCP, SFOGD, Decaying, DtACI
from jointset.calibration.boa import mix, pinball_regret, start_boa, update_boa

series = pytest.mark.parametrize("series", ["score", "drift"])
EXACT = {"rtol": 0.0, "atol": 1e-10}


def trace(rule, state, scores, level):
    """Radii, levels and misses (T,), step by step, and the last state."""
    rows = []
    for score in scores.tolist():
        radius = rule.radius(state)
        rows.append((radius, level(state), score > radius))
        state = rule.update(state, score)
    return *np.array(rows, dtype=float).T, state


@series
@pytest.mark.parametrize(("mode", "momentum"), [("Simple", 0.0), ("Momentum", 0.95)])
def test_aci_with_a_look_back_of_a_hundred(peer, series, mode, momentum):
    """The recorded look-back of 100 counts the present score, so 99 past ones are in the pool."""
    recorded = {k.split("__")[1]: v for k, v in peer("aci").items() if k.startswith(f"{series}_g_0.005_{mode}__")}
    scores = recorded["scores_used"]
    rule = ACI(clip=None, pool="rolling", lookback=99, quantile="linear", momentum=momentum)
    _, levels, misses, _ = trace(rule, rule.start(np.empty(0)), scores, lambda state: state.level)
    np.testing.assert_allclose(levels, recorded["alphaSeq"], **EXACT)
    np.testing.assert_array_equal(misses, recorded["errOC"])
    fixed = ACI(gamma=0.0, clip=None, pool="rolling", lookback=99, quantile="linear")
    radii, _ = fixed.run(fixed.start(np.empty(0)), scores)
    np.testing.assert_array_equal(scores > radii, recorded["errNC"])


def test_aci_levels_leave_the_unit_interval_and_come_back(peer):
    """The levels recorded on election data follow from the misses, below 0 too, where its sets stayed bounded."""
    recorded = peer("aci")
    misses, levels = recorded["election__adaptErr"], recorded["election__alphaTraj"]
    rule = ACI(gamma=0.05, clip=(-np.inf, np.inf))
    ours = trace(rule, rule.start(np.arange(500.0)), np.where(misses > 0, np.inf, 0.0), lambda state: state.level)[1]
    assert levels.min() < 0
    np.testing.assert_allclose(ours, levels, **EXACT)


def test_aci_survives_a_step_size_that_stops_the_authors_code(peer):
    scores = peer("inputs_600x5")["drift"]
    rule = ACI(gamma=0.5, clip=None, pool="rolling", lookback=99, quantile="linear")
    radii, levels, misses, _ = trace(rule, rule.start(np.empty(0)), scores, lambda state: state.level)
    assert levels.min() < 0
    assert not np.isnan(radii).any()
    assert misses.mean() == pytest.approx(0.1, abs=0.01)


@series
@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize("lr", [0.005, 0.05])
def test_aci_of_the_pid_authors(peer, series, window, lr):
    """Steps 0..100 do not adapt and interpolate, later ones take the upper neighbour; the first 11 are infinite."""
    recorded = peer("pid")
    name = f"{series}_aci" + (f"_w{window}" if window else "") + f"_lr{lr}"
    scores = recorded[f"{series}_in"]
    options = {"pool": "rolling", "lookback": window or 10_000, "clip": None}
    before, after = ACI(gamma=0.0, quantile="linear", **options), ACI(gamma=lr, quantile="higher", **options)
    head, _, _, state = trace(before, before.start(np.empty(0)), scores[:101], lambda state: state.level)
    tail, levels, _, _ = trace(after, state, scores[101:], lambda state: state.level)
    np.testing.assert_allclose(levels, recorded[f"{name}_alpha"][101:], **EXACT)
    radii = np.append(head, tail)
    np.testing.assert_allclose(radii[11:], recorded[f"{name}_q"][11:], **EXACT)
    clamped = f"{series}_aciclip_lr{lr}_q"  # the same levels; infinite radii printed as the largest score so far
    if window is None and clamped in recorded:
        printed = np.minimum(radii[11:], np.maximum.accumulate(scores)[10:-1])
        np.testing.assert_allclose(printed, recorded[clamped][11:], **EXACT)


@series
def test_trailing_window_of_the_pid_authors(peer, series):
    recorded = peer("pid")
    rule = ACI(gamma=0.0, pool="rolling", lookback=50, quantile="higher")
    radii, _ = rule.run(rule.start(np.empty(0)), recorded[f"{series}_in"])
    np.testing.assert_allclose(radii[10:], recorded[f"{series}_trail50"][10:], **EXACT)


@series
@pytest.mark.parametrize("lr", [0.1, 1.0])
@pytest.mark.parametrize(
    ("tag", "options"), [("P_lr", {"K_I": 0}), ("P_fixedlr", {"K_I": 0, "scaled": False}), ("PI_lr", {})]
)
def test_pid_without_scorecaster(peer, series, lr, tag, options):
    recorded = peer("pid")
    rule = PID(lr=lr, **options)
    radii, _ = rule.run(rule.start(np.empty(0)), recorded[f"{series}_in"])
    np.testing.assert_allclose(radii, recorded[f"{series}_{tag}{lr}_q"], **EXACT)


@series
def test_pid_with_theta_is_close(peer, series):
    """Same method, smoothing constant found another way: forecasts within a small part of the scores' spread."""
    recorded = peer("pid")
    scores, rule = recorded[f"{series}_in"], PID(scorecaster="theta")
    radii, _ = rule.run(rule.start(np.empty(0)), scores)
    gap = np.abs(radii - recorded[f"{series}_PID_theta_q"])
    assert gap[:102].max() < 1e-10
    assert np.median(gap) < 0.05 * scores.std()


@series
@pytest.mark.parametrize(("prefix", "eta_lookback"), [("", None), ("etaAdapt_", 200)])
def test_dtaci(peer, series, prefix, eta_lookback):
    scores, recorded = peer("inputs_600x5")[series], peer("dtaci")
    rule = DtACI(clip=None, pool="rolling", lookback=100, quantile="linear", eta_lookback=eta_lookback)
    state, levels, misses, gammas = rule.start(scores[:1]), [], [], []
    for score in scores[1:].tolist():
        levels.append(rule.level(state))
        gammas.append(state.weights @ rule.gammas)
        misses.append(rule.level(state) > rule._beta(state.pool, score))
        state = rule.update(state, score)
    np.testing.assert_allclose(levels, recorded[f"{series}__{prefix}meanAlpha"], **EXACT)
    np.testing.assert_array_equal(misses, recorded[f"{series}__{prefix}meanErr"])
    if not prefix:
        np.testing.assert_allclose(gammas, recorded[f"{series}__meanGamma"], **EXACT)


@pytest.mark.parametrize(("release", "rates"), [("opera120", "doubling"), ("opera111", "range"), ("opera", "variance")])
@pytest.mark.parametrize(("side", "tau"), [("lower", 0.05), ("upper", 0.95)])
def test_boa_of_three_releases(peer, release, rates, side, tau):
    recorded = peer("agaci")
    forecasts = np.clip(recorded[f"experts__{side}"].T, -1000.0, 1000.0)  # as in the paper's code
    targets = recorded["experts__y"][int(recorded["experts__train_size"]) :]
    state, weights, mixtures = start_boa(forecasts.shape[1]), [], []
    for x, y in zip(forecasts, targets, strict=True):
        weights.append(state.weights)
        mixtures.append(mix(weights[-1], x))
        state = update_boa(state, pinball_regret(mixtures[-1], x, y, tau), rates)
    end = {"lower": "low", "upper": "high"}[side]
    np.testing.assert_allclose(weights, recorded[f"{release}__weights_{end}"], **EXACT)
    np.testing.assert_allclose(mixtures, recorded[f"{release}__pred_{end}"], **EXACT)
    np.testing.assert_allclose(state.weights, recorded[f"{release}__coef_{end}"], **EXACT)


@series
@pytest.mark.parametrize(("tag", "options"), [("decaying", {}), ("fixed", {"epsilon": -0.5, "lr": 0.05})])
def test_decaying_steps_from_zero_and_from_the_first_score(peer, series, tag, options):
    """The authors' runs start at the first score itself, which then covers."""
    recorded, scores = peer("decaying"), peer("inputs_600x5")[series]
    rule = Decaying(**options)
    state = rule.start(np.empty(0))
    np.testing.assert_allclose(rule.run(state, scores)[0], recorded[f"{series}_{tag}_q0__q"], **EXACT)
    first = state._replace(tracked=scores[0])
    np.testing.assert_allclose(rule.run(first, scores)[0], recorded[f"{series}_{tag}_qs0__q"], **EXACT)


@series
@pytest.mark.parametrize("lr", ["2", "1", "0.2", "0.1"])
def test_decaying_steps_of_the_eci_authors(peer, series, lr):
    """Theirs take the first step twice."""
    recorded, scores = peer("eci")[f"{series}_decay_OGD_lr{lr}_q"], peer("inputs_600x5")[series]
    rule = Decaying(lr=float(lr))
    state = rule.start(np.empty(0))._replace(tracked=float(lr) * ((scores[0] > 0.0) - 0.1))
    np.testing.assert_allclose(rule.run(state, scores[1:])[0], recorded[1:], **EXACT)


@series
@pytest.mark.parametrize("lr", ["1", "0.5", "0.1", "0.05"])
@pytest.mark.parametrize(("form", "tag"), [("plain", "ECI"), ("cutoff", "ECI_cutoff"), ("integral", "ECI_integral")])
def test_eci(peer, series, lr, form, tag):
    recorded, scores = peer("eci"), peer("inputs_600x5")[series]
    rule = ECI(lr=float(lr), form=form)
    radii, _ = rule.run(rule.start(np.empty(0)), scores)
    np.testing.assert_allclose(radii, recorded[f"{series}_{tag}_lr{lr}_q"], **EXACT)
    np.testing.assert_array_equal(scores > radii, recorded[f"{series}_{tag}_lr{lr}_err"])
    if lr == "0.1":  # the window of the cutoff form is 100 whatever is asked for
        longer = rule if form == "cutoff" else ECI(lr=0.1, form=form, window=300)
        radii, _ = longer.run(longer.start(np.empty(0)), scores)
        np.testing.assert_allclose(radii, recorded[f"{series}_{tag}_T300_lr0.1_q"], **EXACT)


@series
@pytest.mark.parametrize(("rule", "tag"), [(SFOGD, "SFOGD"), (SAOCP, "SAOCP")])
def test_sfogd_and_saocp_after_calibration_scores(peer, series, rule, tag):
    recorded, scores = peer("saocp"), peer("inputs_600x5")[series]
    radii, _ = rule().run(rule().start(scores[:400]), scores[400:])
    np.testing.assert_allclose(radii, recorded[f"{series}_cal400_{tag}__q"], **EXACT)


@series
@pytest.mark.parametrize("run", ["stream", "max", "scale1"])
def test_sfogd_and_saocp_from_nothing(peer, series, run):
    """The whole path, which rounding decides: the sums are made in the authors' order."""
    recorded, scores = peer("saocp"), peer("inputs_600x5")[series]
    scale, lifetime = (recorded[f"{series}_{run}_SAOCP__{name}"] for name in ("scale", "lifetime"))
    for tag, rule in (("SFOGD", SFOGD(scale=float(scale))), ("SAOCP", SAOCP(0.1, int(lifetime), float(scale)))):
        radii, state = rule.run(rule.start(np.empty(0)), scores)
        np.testing.assert_allclose(radii, recorded[f"{series}_{run}_{tag}__q"], **EXACT)
    experts = recorded[f"{series}_{run}_SAOCP__experts_end"]  # birth, then the rows of our state after the prior
    np.testing.assert_allclose(state.learners[1:].T, experts[:, 1:], **EXACT)
