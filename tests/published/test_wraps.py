"""A wrap around a published row: its sets scaled by a factor that follows the scores."""

import warnings
from dataclasses import fields

import numpy as np
import pytest
from scipy.stats import binom

from jointset.calibration import ACI, Split, calibration
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import run_row, run_rows
from jointset.methods import predictor_for
from jointset.panel import Panel
from jointset.published import SPCI, CopulaCPTS, HopCPT, MultiDimSPCI
from jointset.published.copula import CopulaRule
from jointset.published.filter import PublishedFilter
from jointset.published.sets import ScaledSet
from jointset.published.spci import SPCIRule
from jointset.runs import Run

ROWS = {
    "copula": lambda wrap: CopulaCPTS(wrap=wrap),
    "multidim-spci": lambda wrap: MultiDimSPCI("empirical", wrap=wrap),
    "local": lambda wrap: MultiDimSPCI("empirical", neighbors=60, wrap=wrap),
    "spci": lambda wrap: SPCI("empirical", wrap=wrap),
    "hopcpt": lambda wrap: HopCPT(window=8, updates=30, wrap=wrap),
}


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


def test_rows_without_any_reading_do_not_move_the_own_sets(calibrated, panel):
    values = panel.values[1200:1206].copy()
    values[4] = np.nan
    for name in ROWS:
        run = calibrated(name, "aci").run(panel[1200:1206].with_values(values))
        np.testing.assert_allclose(run.regions.own.half_width[5], run.regions.own.half_width[4], rtol=1e-12)


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


def test_a_row_without_a_wrap_has_no_scores_for_another(calibrated, panel):
    bare = CopulaCPTS().fit(panel[:600]).calibrate(panel[600:1200])
    with pytest.raises(InputError, match=r"^copula: a row without a wrap has no scores for another one$"):
        bare.rewrapped(ACI())
    assert isinstance(calibrated("copula", "split").rewrapped(ACI()).calibration, ACI)


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


@pytest.mark.parametrize("maker", [CopulaCPTS, MultiDimSPCI])
def test_a_wrap_starts_from_what_was_read(maker):
    """Filled gaps start the sets and are never scored: later rows with as many gaps rank evenly among these."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4600, 6)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(6)).T
    values /= np.sqrt(rng.chisquare(3, (4600, 1)) / 3)
    values[600:][rng.random((4000, 6)) < 0.3] = np.nan
    panel = Panel(values, list("abcdef"))
    form = {} if maker is CopulaCPTS else {"variant": "empirical"}
    made = maker(wrap=Split(0.1), **form).fit(panel[:600]).calibrate(panel[600:2600])
    score = made.run(panel[2600:], regions=False).score
    ranks = np.sort(made.calibration_scores).searchsorted(score[~np.isnan(score)]) / made.n_calibration
    assert ranks.mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (SPCI("empirical"), "each of 4 sensors has an interval of 90% and all are inside in fewer rows, 65.6% if"),
        (MultiDimSPCI("network", epochs=1), "a network of 128 inputs learns from 351 rows and covers too little"),
        (SPCI("empirical", bonferroni=True), None),
        (SPCI("empirical", wrap=Split()), None),
        (MultiDimSPCI("empirical"), None),
    ],
)
def test_a_row_that_cannot_hold_all_sensors_says_so_in_a_line(panel, row, said):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        row.fit(panel[:400]).calibrate(panel[400:800])
    assert [said in str(one.message) for one in told] == ([True] if said else [])
