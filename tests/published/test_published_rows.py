"""What every published row promises: online sets, one set of numbers, gaps, files, and messages."""

from dataclasses import replace

import numpy as np
import pytest

from jointset.baselines.catalogue import NAMES
from jointset.baselines.published import SPCI, CopulaCPTS, HopCPT, MultiDimSPCI
from jointset.baselines.published.copula import VARIANTS as COPULA
from jointset.baselines.published.multidim import WINDOWS as MULTIDIM
from jointset.baselines.published.spci import WINDOWS as SPCI_WINDOWS
from jointset.baselines.rows import fitted_row
from jointset.bench.names import methods_named
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.methods import load_predictor, predictor_for
from jointset.streaming import advance

ROWS = {
    "copula": lambda: CopulaCPTS(),
    "copula-kde": lambda: CopulaCPTS("kde"),
    "forest": lambda: MultiDimSPCI(refit=20),
    "empirical": lambda: MultiDimSPCI("empirical"),
    "local": lambda: MultiDimSPCI("empirical", neighbors=60),
    "network": lambda: MultiDimSPCI("network", window=8, epochs=4),
    "spci": lambda: SPCI(refit=20),
    "spci-empirical": lambda: SPCI("empirical"),
    "spci-bonferroni": lambda: SPCI("empirical", bonferroni=True),
    "hopcpt": lambda: HopCPT(window=8, updates=30),
}
every_row = pytest.mark.parametrize("name", ROWS)


@pytest.fixture(scope="module")
def calibrated(panel):
    rows = {}

    def make(name):
        if name not in rows:
            rows[name] = ROWS[name]().fit(panel[:600]).calibrate(panel[600:1200])
        return rows[name].copy()

    return make


@every_row
def test_stepping_gives_the_numbers_of_a_run(calibrated, panel, name):
    test = panel[1200:1250]
    stepped, run = calibrated(name), calibrated(name).run(test)
    for t, y in enumerate(test.values):
        region = stepped.predict()
        np.testing.assert_allclose(region.bounds[0], run.lower[t], rtol=1e-9)
        np.testing.assert_allclose(region.log_volume, run.log_volume[t], rtol=1e-9)
        outcome = stepped.update(y)
        assert outcome.inside == run.inside[t] == run.regions[t].contains(y)
        assert (outcome.score, outcome.radius) == pytest.approx((run.score[t], run.radius[t]), rel=1e-9)


@every_row
def test_two_runs_are_one_run(calibrated, panel, name):
    whole, halves = calibrated(name).run(panel[1200:1260]), calibrated(name)
    first, second = halves.run(panel[1200:1233]), halves.run(panel[1233:1260], regions=False)
    np.testing.assert_allclose(np.r_[first.upper, second.upper], whole.upper, rtol=1e-9)
    assert second.regions is None


@every_row
def test_no_set_depends_on_values_from_its_own_step_on(calibrated, panel, name):
    test, t = panel[1200:1260], 41
    values = test.values.copy()
    values[t:] += 100.0
    before, after = calibrated(name).run(test), calibrated(name).run(test.with_values(values))
    np.testing.assert_allclose(after.upper[: t + 1], before.upper[: t + 1], rtol=1e-12)
    np.testing.assert_allclose(after.log_volume[: t + 1], before.log_volume[: t + 1], rtol=1e-12)
    assert not np.allclose(after.upper[t + 1], before.upper[t + 1])


@every_row
def test_a_saved_row_goes_on_where_it_was(calibrated, panel, name, tmp_path):
    row = calibrated(name)
    row.run(panel[1200:1213])
    row.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    np.testing.assert_array_equal(loaded.run(panel[1213:1230]).lower, row.run(panel[1213:1230]).lower)
    assert (loaded.filter.name, loaded.alpha, loaded.n_calibration) == (row.filter.name, 0.1, 551)


@every_row
def test_gaps_are_scored_on_what_is_there_and_do_not_move_the_state(calibrated, panel, name):
    test = panel[1200:1230]
    values = test.values.copy()
    values[4, 1] = np.nan
    values[9] = np.nan
    run, stepped = calibrated(name).run(test.with_values(values)), calibrated(name)
    outcomes = [stepped.update(y) for y in values]
    assert [o.inside for o in outcomes] == run.inside.tolist()
    assert np.isnan(run.score[9]) and not run.inside[9] and outcomes[9].observed == 0
    assert np.isfinite(run.score[4]) and np.isfinite(run.upper).all()
    np.testing.assert_allclose(run.upper[5:6] - run.mean[5:6], run.upper[4:5] - run.mean[4:5], rtol=1e-9)


@every_row
def test_contributions_name_the_sensor_that_left(calibrated, name):
    row = calibrated(name)
    y = row.predict().center.copy()
    y[2] += 50.0
    assert row.contributions(y).argmax() == 2
    assert not row.update(y).inside


@every_row
def test_a_row_answers_a_stream(calibrated, panel, name):
    row, run = calibrated(name), calibrated(name).run(panel[1200:1203])
    for t, y in enumerate(panel.values[1200:1203]):
        answer, row = advance(row, y)
        assert answer["inside"] == run.inside[t]
        assert answer["bounds"]["s1"] == pytest.approx([run.lower[t, 1], run.upper[t, 1]])


@every_row
def test_too_few_rows_are_refused_by_name(panel, name):
    row = ROWS[name]().fit(panel[:600])
    with pytest.raises(InputError, match=rf"^{row.filter.name}: 5 calibration rows") as caught:
        row.calibrate(panel[600:654])
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="not calibrated"):
        row.predict()


def test_wrong_input_is_refused(panel):
    with pytest.raises(InputError, match="unknown variant"):
        MultiDimSPCI("ellipse")
    with pytest.raises(InputError, match="unknown variant"):
        CopulaCPTS("gauss")
    row = CopulaCPTS()
    with pytest.raises(InputError, match="not fitted"):
        row.calibrate(panel)
    row.fit(panel[:600])
    with pytest.raises(InputError, match="is missing from the panel"):
        row.calibrate(panel.select(["s1", "s0"]))
    row.calibrate(panel[600:1200])
    with pytest.raises(InputError, match="needs 4 values"):
        row.update(np.zeros(3))


def test_duplicate_sensors_get_a_ridge_that_is_reported(panel):
    twins = panel.with_graph(None).with_values(panel.values[:, [0, 1, 2, 2]])
    with pytest.warns(UserWarning, match=r"multidim-spci: .* singular .* a ridge of"):
        row = MultiDimSPCI("empirical").fit(twins[:600]).calibrate(twins[600:1200])
    assert row.filter_state.own.past.ridge > 0
    assert np.isfinite(row.run(twins[1200:]).log_volume).all()


def test_coverage_and_units(calibrated, panel):
    """Joint rows are near 90 % on stationary data; rows of single sensors are so sensor by sensor only."""
    runs = {name: calibrated(name).run(panel[1200:]) for name in ("copula", "forest", "spci", "hopcpt")}
    for name in ("copula", "forest"):
        assert runs[name].joint == pytest.approx(0.9, abs=0.06)
    for name in ("spci", "hopcpt"):
        assert runs[name].marginal == pytest.approx(0.9, abs=0.04)
        assert runs[name].joint < 0.8
    half = 0.5 * (runs["copula"].upper - runs["copula"].lower).mean(axis=0)
    assert half[2] > 3 * half[0]  # the noise of sensor 2 is four times that of sensor 0
    assert runs["copula"].mean.mean() == pytest.approx(10.0, abs=0.5)


def test_any_backbone_can_give_the_mean(panel):
    class Persistence:
        lags = 1

        def fit(self, panel):
            self.center = panel.values.mean(axis=0)
            return self

        def start(self):
            return self.center[None]

        def fill(self, values, history):
            return np.concatenate([history, values])

        def predict(self, values, history):
            return self.fill(values, history)[:-1]

        def next_mean(self, history):
            return history[-1]

    row = CopulaCPTS(backbone=Persistence(), standardize=False).fit(panel[:600]).calibrate(panel[600:1200])
    run = row.run(panel[1200:])
    np.testing.assert_allclose(run.mean[1:], panel.values[1200:-1])
    assert run.joint > 0.8


# ---------------------------------------------------------------------- names

FORMS = {
    "copula-kde": ("kde", "box"),
    "multidim-spci-empirical": ("empirical", "ellipsoid"),
    "multidim-spci-network": ("network", "ellipsoid"),
    "spci-empirical": ("empirical", "box"),
}


@pytest.mark.parametrize("wrap", ["", "+aci"])
@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_a_method_is_a_method_by_name(name, wrap, panel, tmp_path):
    variant, shape = FORMS[name]
    assert methods_named(f"{name}:{shape}{wrap}") == [name + wrap]
    predictor = predictor_for(name + wrap).fit(panel[:600]).calibrate(panel[600:1200])
    assert (predictor.filter.rule.variant, predictor.filter.name) == (variant, name)
    predictor.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    assert loaded.filter.name == name
    run = predictor.run(panel[1200:1203])
    for t, y in enumerate(panel.values[1200:1203]):
        answer, loaded = advance(loaded, y)
        assert answer["inside"] == run.inside[t]
        assert answer["bounds"]["s1"] == pytest.approx([run.lower[t, 1], run.upper[t, 1]])


def test_every_form_is_in_the_catalogue():
    usual = {"copula": "authors", "multidim-spci": "forest", "spci": "forest"}
    known = {"copula": COPULA, "multidim-spci": [*MULTIDIM], "spci": [*SPCI_WINDOWS]}
    forms = {f"{base}-{form}" for base, own in usual.items() for form in known[base] if form != own}
    assert forms == set(FORMS) <= set(NAMES)


# ---------------------------------------------------------------------- protocols


@pytest.mark.parametrize(("protocol", "dropped"), [("text", 49), ("table", 0)])
@pytest.mark.parametrize("name", ["copula", "multidim-spci", "copula+aci"])
def test_a_row_follows_the_protocol_of_its_cell(name, protocol, dropped):
    """As all rows: `table` drops no calibration score and begins every block at the training mean."""
    network = cell("grssf-a-30", protocol)
    predictor = fitted_row(name, network)
    kept = len(network.calibration) - dropped
    assert predictor.n_calibration == (kept - kept // 2 if "+" in name else kept)
    run = predictor.run(network.test, regions=False)
    other = fitted_row("static", network, pilot="train").run(network.test, regions=False)
    np.testing.assert_allclose(run.mean, other.mean)
    start = np.broadcast_to(predictor.filter.backbone.mean, (2, 30))
    assert np.allclose(run.mean[:2], start) == (protocol == "table")
    assert not np.allclose(run.mean[2:4], start)


def test_a_mean_that_starts_afresh_steps_as_it_runs_and_is_saved(panel, tmp_path):
    row = CopulaCPTS()
    row.filter = replace(row.filter, cold=True)
    row.fit(panel[:600]).calibrate(panel[600:1200]).restart()
    run = row.copy().run(panel[1200:1210])
    row.update(panel.values[1200])
    row.save(tmp_path / "model")
    row = load_predictor(tmp_path / "model")
    for t in range(1, 10):
        np.testing.assert_allclose(row.predict().center, run.mean[t])
        row.update(panel.values[1200 + t])
    assert np.allclose(run.mean[0], run.mean[1]) and not np.allclose(run.mean[1], run.mean[2])
