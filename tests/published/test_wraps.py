"""A wrap around a published row: its sets scaled by a factor that follows the scores."""

from dataclasses import fields

import numpy as np
import pytest
from scipy.stats import binom

from jointset.baselines.published import SPCI, CopulaCPTS, HopCPT, MultiDimSPCI
from jointset.baselines.published.copula import CopulaRule
from jointset.baselines.published.rows import PublishedFilter
from jointset.baselines.published.shapes import ScaledSet
from jointset.baselines.published.spci import SPCIRule
from jointset.baselines.rows import run_row, run_rows
from jointset.calibration import ACI, Split, calibration
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.methods import load_predictor, predictor_for
from jointset.runs import Run

ROWS = {
    "copula": lambda wrap: CopulaCPTS(wrap=wrap),
    "multidim-spci": lambda wrap: MultiDimSPCI("empirical", wrap=wrap),
    "local": lambda wrap: MultiDimSPCI("empirical", neighbors=60, wrap=wrap),
    "spci": lambda wrap: SPCI("empirical", wrap=wrap),
    "hopcpt": lambda wrap: HopCPT(window=8, updates=30, wrap=wrap),
}
WRAPS = ("split", "aci", "agaci", "dtaci", "pid")
pairs = pytest.mark.parametrize(
    ("name", "wrap"),
    [("copula", wrap) for wrap in WRAPS]
    + [("multidim-spci", "agaci"), ("local", "aci"), ("spci", "dtaci"), ("hopcpt", "pid")],
)


def wrapped(name, wrap, **options):
    return ROWS[name](calibration(wrap, alpha=0.1, **options))


class NoMean:
    """A backbone that predicts 0: readings are residuals."""

    lags, mean = 1, np.zeros(3)

    def start(self):
        return np.zeros((1, 3))

    def predict(self, values, history):
        return np.zeros_like(values)

    def fill(self, values, history):
        return np.concatenate([history, values])


@pytest.fixture(scope="module")
def calibrated(panel):
    rows = {}

    def make(name, wrap):
        if (name, wrap) not in rows:
            rows[name, wrap] = wrapped(name, wrap).fit(panel[:600]).calibrate(panel[600:1200])
        return rows[name, wrap].copy()

    return make


@pairs
def test_stepping_gives_the_numbers_of_a_run(calibrated, panel, name, wrap):
    test = panel[1200:1250]
    stepped, run = calibrated(name, wrap), calibrated(name, wrap).run(test)
    for t, y in enumerate(test.values):
        region = stepped.predict()
        np.testing.assert_allclose(region.bounds[0], run.lower[t], rtol=1e-9)
        np.testing.assert_allclose(region.log_volume, run.log_volume[t], rtol=1e-9)
        outcome = stepped.update(y)
        assert outcome.inside == run.inside[t] == run.regions[t].contains(y) == (outcome.score <= outcome.radius)
        assert (outcome.score, outcome.radius) == pytest.approx((run.score[t], run.radius[t]), rel=1e-9)


@pairs
def test_no_set_depends_on_values_from_its_own_step_on(calibrated, panel, name, wrap):
    test, t = panel[1200:1260], 41
    values = test.values.copy()
    values[t:] += 100.0
    before, after = calibrated(name, wrap).run(test), calibrated(name, wrap).run(test.with_values(values))
    np.testing.assert_allclose(after.upper[: t + 1], before.upper[: t + 1], rtol=1e-12)
    np.testing.assert_allclose(after.log_volume[: t + 1], before.log_volume[: t + 1], rtol=1e-12)


@pairs
def test_a_saved_row_goes_on_where_it_was(calibrated, panel, name, wrap, tmp_path):
    row = calibrated(name, wrap)
    row.run(panel[1200:1213])
    row.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    assert type(loaded) is type(row)
    first, second = loaded.run(panel[1213:1230]), row.run(panel[1213:1230])
    np.testing.assert_array_equal(first.lower, second.lower)
    np.testing.assert_array_equal(first.radius, second.radius)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_with_a_wrap_answers_a_stream(calibrated, panel, name):
    from jointset.streaming import advance

    row, run = calibrated(name, "aci"), calibrated(name, "aci").run(panel[1200:1203])
    for t, y in enumerate(panel.values[1200:1203]):
        answer, row = advance(row, y)
        assert answer["inside"] == run.inside[t]
        assert answer["bounds"]["s1"] == pytest.approx([run.lower[t, 1], run.upper[t, 1]])


@pytest.mark.parametrize("name", ROWS)
def test_the_score_is_the_least_factor_that_holds_the_reading(calibrated, panel, name):
    region = calibrated(name, "split").run(panel[1200:1240]).regions
    own, values = region.own, panel.values[1200:1240]
    for share, held in ((1.0 - 1e-9, False), (1.0 + 1e-9, True)):
        back = own.center + (values - own.center) / (share * own.growth(values))[..., None]  # into the own set
        assert (own.growth(back) <= 1.0).all() == held
    np.testing.assert_allclose(region.half_width, region.factor[:, None] * own.half_width)
    np.testing.assert_allclose(region.log_volume, own.log_volume_filled + np.log(region.factor))


@pytest.mark.parametrize("name", ROWS)
def test_a_wrap_brings_every_row_to_the_joint_target(panel, name):
    """SPCI and HopCPT hold one sensor at a time; the factor makes them hold all. Bands: 300 dependent steps."""
    row = wrapped(name, "aci", gamma=0.05).fit(panel[:600]).calibrate(panel[600:1200])
    assert row.run(panel[1200:]).joint == pytest.approx(0.9, abs=0.05)


def test_the_split_rule_covers_exactly_where_own_sets_stand_still():
    """Exchangeable residuals: the share of readings inside over 300 replications lies in its binomial band."""
    inside, count, alpha, m = 0, 300, 0.2, 60
    filter_, split = PublishedFilter(CopulaRule(alpha=alpha, steps=100), "copula", NoMean(), wrapped=True), Split(alpha)
    for seed in range(count):
        rows = np.random.default_rng(seed).standard_t(3, size=(m + 1, 3)) * [1.0, 2.0, 0.5]
        scores, state = filter_.calibrate(rows[:-1], warmup=1)
        own = filter_.run(rows[-1:], state)[0].own
        inside += bool(own.growth(rows[-1:])[0] <= split.radius(split.start(scores)))
    k = np.ceil((m // 2 + 1) * (1 - alpha)) / (m // 2 + 1)  # exact coverage of the order statistic
    assert binom.ppf(0.001, count, k) <= inside <= binom.ppf(0.999, count, k)


def test_an_interval_of_no_length_can_be_scaled():
    filter_ = PublishedFilter(SPCIRule("empirical", 0.2, window=5), "spci", NoMean(), wrapped=True)
    rows = np.random.default_rng(0).normal(size=(120, 3))
    rows[40:, 0] = 0.0  # one sensor does not move for longer than the window, then it does
    rows[110, 0] = 1.0
    scores, state = filter_.calibrate(rows[:100], warmup=1)
    own = filter_.run(rows[100:], state)[0].own
    region = ScaledSet(own, ACI(0.2).run(ACI(0.2).start(scores), own.growth(rows[100:]))[0])
    assert np.isfinite(region.factor).all() and np.isfinite(scores).all()
    assert (region.half_width > 0).all() and np.isfinite(region.log_volume).all()


def test_gaps_are_scored_and_do_not_move_the_own_sets(calibrated, panel):
    values = panel.values[1200:1230].copy()
    values[4, 1] = np.nan
    values[9] = np.nan
    test = panel[1200:1230].with_values(values)
    for name in ROWS:
        run, stepped = calibrated(name, "aci").run(test), calibrated(name, "aci")
        assert [stepped.update(y).inside for y in values] == run.inside.tolist()
        assert np.isnan(run.score[9]) and not run.inside[9] and np.isfinite(run.score[4])
        np.testing.assert_allclose(run.regions.own.half_width[5], run.regions.own.half_width[4], rtol=1e-12)
        assert run.radius[10] == run.radius[9]  # nothing was read


# ---------------------------------------------------------------------- by name


def test_names_with_a_wrap(panel):
    row = predictor_for("copula+aci", alpha=0.2)
    assert row.filter.wrapped and isinstance(row.calibration, ACI) and row.alpha == row.filter.rule.alpha == 0.2
    assert predictor_for("copula", calibration="pid").filter.wrapped
    assert not predictor_for("copula").filter.wrapped
    with pytest.raises(InputError, match="shape of its own"):
        predictor_for("spci:ellipsoid+aci")
    with pytest.raises(InputError, match=r"^copula: 11 calibration rows .* at least") as caught:
        predictor_for("copula+aci").fit(panel[:600]).calibrate(panel[600:660])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", ["text", "table"])
def test_wraps_in_one_pass_are_the_rows_alone(protocol):
    one, names = cell("grssf-a-30", protocol), ["copula", "copula+split", "copula+aci", "copula+agaci"]
    runs = {(name, seed): run for name, seed, run, _ in run_rows(names, one, seeds=[0, 1])}
    assert sorted(runs) == sorted((name, seed) for name in names for seed in (0, 1))
    for (name, seed), run in runs.items():
        alone = run_row(name, one, seed=seed)
        for field in fields(Run):
            if field.name not in ("regions", "sensors", "timestamps"):
                np.testing.assert_array_equal(getattr(run, field.name), getattr(alone, field.name), err_msg=name)
    assert not np.array_equal(runs["copula", 0].lower, runs["copula", 1].lower)
