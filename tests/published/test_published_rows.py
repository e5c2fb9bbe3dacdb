"""Published rows: gaps, coverage, messages, their forms by name, and the protocols."""

from dataclasses import replace

import numpy as np
import pytest

from jointset.bench.names import methods_named
from jointset.catalogue import METHODS
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import fitted_row
from jointset.methods import load_predictor, predictor_for
from jointset.published import SPCI, CopulaCPTS, HopCPT, MultiDimSPCI
from jointset.published.copula import VARIANTS as COPULA
from jointset.published.multidim import WINDOWS as MULTIDIM
from jointset.published.spci import WINDOWS as SPCI_WINDOWS

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
def test_a_dead_sensor_stops_no_set_and_silence_does(calibrated, panel, name):
    """With one sensor dead the sets go on as if it were there; a row without any reading leaves them alone."""
    test = panel[1200:1240]
    values = test.values.copy()
    values[:, 1] = np.nan
    values[20] = np.nan
    widths = {}
    for what, rows in (("dead", test.with_values(values)), ("alive", test)):
        lower, upper = calibrated(name).run(rows).regions.bounds  # of complete rows
        widths[what] = (upper - lower)[:, 0]
    np.testing.assert_allclose(widths["dead"][21], widths["dead"][20], rtol=1e-9)
    moved = {what: len(np.unique(width.round(9))) for what, width in widths.items()}
    assert moved["dead"] >= 0.5 * moved["alive"]


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
def test_a_form_of_a_method_is_a_method_by_name(name, wrap):
    variant, shape = FORMS[name]
    assert methods_named(f"{name}:{shape}{wrap}") == [name + wrap]
    made = predictor_for(name + wrap).filter
    assert (made.rule.variant, made.name) == (variant, name)


def test_every_form_is_in_the_catalogue():
    usual = {"copula": "authors", "multidim-spci": "forest", "spci": "forest"}
    known = {"copula": COPULA, "multidim-spci": [*MULTIDIM], "spci": [*SPCI_WINDOWS]}
    forms = {f"{base}-{form}" for base, own in usual.items() for form in known[base] if form != own}
    assert forms == set(FORMS) <= set(METHODS)


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
