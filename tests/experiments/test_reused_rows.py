"""Shapes fitted on the calibration rows: what theory says it costs, who is told, and who never does it."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import JointPredictor, generate_grssf
from jointset.audits.theory import plug_in_coverage
from jointset.backbones import GPVARBackbone
from jointset.bench.names import METHOD_GROUPS
from jointset.cli import app
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import fitted_row, run_row
from jointset.filters.static import StaticFilter
from jointset.methods import load_predictor, predictor_for, row
from jointset.panel import Panel
from jointset.predicting.reuse import expected_loss, reuse, shared_rows


@pytest.fixture(scope="module")
def panel():
    return generate_grssf("B", n=8, seed=3, length=1500).panel


@pytest.fixture(scope="module")
def network():
    return cell("grssf-a-30")


def quiet(make, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return make(*args, **options)


def told(make, *args, **options):
    with pytest.warns(UserWarning, match="shape fitted on the calibration rows") as caught:
        made = make(*args, **options)
    assert len(caught) == 1
    return made, str(caught[0].message)


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize(("n", "m"), [(3, 60), (20, 300), (60, 300)])
def test_the_closed_form_is_the_coverage_of_gaussian_residuals(n, m):
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        residuals, new = rng.normal(size=(m, n)), rng.normal(size=(200, n))
        inverse = np.linalg.inv(residuals.T @ residuals / (m - 1))
        own, fresh = (np.einsum("ti,ij,tj->t", rows, inverse, rows) for rows in (residuals, new))
        found.append(np.mean(fresh <= np.sort(own)[int(np.ceil(0.9 * (m + 1))) - 1]))
    error = np.std(found) / np.sqrt(len(found))
    assert plug_in_coverage(n, m) == pytest.approx(np.mean(found), abs=4 * error + 1 / m)


@pytest.mark.parametrize("name", ["static", "static:box", "factor", "group", "spectral", "per-group-factor"])
def test_the_loss_of_every_row_is_foreseen(name):
    """The same row with its shape from the calibration rows and from others, on independent Gaussian residuals."""
    rng, n, m, joint, foreseen = np.random.default_rng(5), 24, 300, [], 0.0
    graph = np.kron(np.eye(3), np.ones((8, 8)) - np.eye(8))
    mixing = rng.normal(size=(n, n))
    for _ in range(20):
        made = Panel(rng.normal(size=(100 + 2 * m + 1200, n)) @ mixing, [f"s{i}" for i in range(n)], adjacency=graph)
        train, other, calibration, test = made[:100], made[100 : 100 + m], made[100 + m : 100 + 2 * m], made[-1200:]
        pair = []
        for pilot in (calibration, other):
            predictor = row(name, warmup=1, standardize=False, backbone=GPVARBackbone(ridge=1e15))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predictor.fit(train, pilot, skip=0).calibrate(calibration)
            foreseen = expected_loss(predictor.filter.pieces(boxes=name.endswith("box")), m, 0.1)
            pair.append(predictor.run(test, regions=False).joint)
        joint.append(pair[1] - pair[0])
    error = np.std(joint) / np.sqrt(len(joint))
    assert foreseen == pytest.approx(np.mean(joint), abs=3 * error + 0.01)


# ---------------------------------------------------------------------- who is told


def test_a_plug_in_row_says_what_to_expect(network):
    predictor, warning = told(fitted_row, "static", network)
    assert predictor.note == (
        "shape fitted on the calibration rows: N/m = 0.04, expect about 0.04 less coverage than the 0.90 asked for"
    )
    assert warning == f"static: {predictor.note}"
    trust = predictor.trust()
    assert predictor.note in trust.verdict
    assert trust.coverage == pytest.approx(0.856, abs=0.002)
    assert trust.band[0] <= predictor.copy().run(network.test, regions=False).joint


def test_what_there_is_no_formula_for_is_told_without_one(network):
    predictor, _ = told(fitted_row, "ewma", network, pilot="calibration")
    assert predictor.note == (
        "shape fitted on the calibration rows: N/m = 0.04, expect less coverage than the 0.90 asked for"
    )


def test_a_radius_that_adapts_makes_up_for_it_in_time(network):
    predictor, _ = told(fitted_row, "static+aci", network)
    assert predictor.note.endswith("less coverage than the 0.90 asked for until the radius has adapted")
    plain = predictor.rewrapped(row("static").calibration)
    assert plain.note.endswith("asked for")
    assert predictor.trust().coverage > plain.trust().coverage


@pytest.mark.parametrize("pilot", ["validation", "train"])
def test_fresh_rows_need_no_warning(network, pilot):
    predictor = quiet(fitted_row, "static", network, pilot=pilot)
    assert predictor.note == "" and "shape" not in predictor.trust().verdict
    with pytest.warns(UserWarning, match="shape fitted"):
        reused = run_row("static", network)
    assert run_row("static", network, pilot=pilot).joint > reused.joint + 0.03


def test_test_rows_are_no_pilot(network):
    with pytest.raises(InputError, match="unknown pilot block 'test': there are"):
        run_row("static", network, pilot="test")


def test_few_sensors_need_none_either(panel):
    """Eight sensors and 1,101 rows: 0.003 of coverage."""
    predictor = quiet(row("static").fit(panel[:300], panel[300:], skip=49).calibrate, panel[300:])
    assert predictor.note == "" and 0 < expected_loss([(8, 1.0)], predictor.n_calibration, 0.1) < 0.01


def test_a_part_of_the_block_counts_too():
    stamped = generate_grssf("A", n=30, length=2000).panel
    stamped = Panel(stamped.values, stamped.sensors, timestamps=60 * np.arange(2000), adjacency=stamped.adjacency)
    predictor = row("static").fit(stamped[:800], stamped[800:1400])
    assert told(predictor.calibrate, stamped[1200:])[0].note
    assert quiet(predictor.calibrate, stamped[1400:]).note == ""


@pytest.mark.parametrize("stamps", [True, False])
def test_a_row_or_two_in_common_are_not_told_as_the_whole_block(stamps):
    made = generate_grssf("A", n=30, length=2000).panel
    times = 60 * np.arange(2000) if stamps else None
    made = Panel(made.values, made.sensors, timestamps=times, adjacency=made.adjacency)
    predictor = row("static").fit(made[:800], made[800:1401])
    assert quiet(predictor.calibrate, made[1400:]).note == ""
    most, _ = told(predictor.calibrate, made[830:1401])
    assert most.reuse.loss == pytest.approx(expected_loss([(30, 1.0)], 551, 0.1), rel=0.05)


def test_rows_are_the_same_by_their_readings():
    """Not by stamps alone, nor by rows that repeat: a network that reads 0 at night."""
    rng = np.random.default_rng(0)
    one, other = (Panel(rng.normal(size=(90, 4)), list("abcd"), timestamps=np.arange(90)) for _ in range(2))
    assert shared_rows(one, one) == 1.0 and shared_rows(one, other) == 0.0
    bare = Panel(one.values, one.sensors)  # its rows are known by their readings, whatever stamps the other has
    assert shared_rows(bare, one) == shared_rows(one, bare) == 1.0
    nights = [Panel(np.where(np.arange(90)[:, None] % 2, panel.values, 0.0), list("abcd")) for panel in (one, other)]
    assert shared_rows(*nights) == 0.0


@pytest.mark.parametrize(("shaping", "calibrating", "both"), [(1000, 300, 300), (300, 300, 150), (300, 300, 30)])
def test_the_loss_goes_with_the_rows_in_common(shaping, calibrating, both):
    rng, n, found = np.random.default_rng(0), 20, []
    for _ in range(100):
        rows, new = rng.normal(size=(shaping, n)), rng.normal(size=(500, n))
        inverse = np.linalg.inv(rows.T @ rows / (shaping - 1))
        held = np.concatenate([rows[:both], rng.normal(size=(calibrating - both, n))])
        own, fresh = (np.einsum("ti,ij,tj->t", part, inverse, part) for part in (held, new))
        found.append(np.mean(fresh <= np.sort(own)[int(np.ceil(0.9 * (calibrating + 1))) - 1]))
    told_of = reuse([(n, 1.0)], n, shaping, 0.1, both / calibrating)
    assert (0.0 if told_of is None else told_of.loss) == pytest.approx(0.9 - np.mean(found), abs=0.015)


@pytest.mark.parametrize("name", ["factor", "time-of-day:box"])
def test_the_note_outlives_the_process(name, tmp_path):
    stamped = generate_grssf("A", n=30, length=3000).panel
    stamped = Panel(stamped.values, stamped.sensors, timestamps=900 * np.arange(3000), adjacency=stamped.adjacency)
    predictor, _ = told(row(name).fit(stamped[:2000], stamped[2000:]).calibrate, stamped[2000:])
    predictor.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    assert loaded.note == predictor.note != ""
    assert loaded.trust() == predictor.trust()


def test_a_model_saved_before_there_were_notes_can_be_read(panel, tmp_path):
    predictor_for("static").fit(panel[:700]).calibrate(panel[700:]).save(tmp_path / "model")
    stored = json.loads((tmp_path / "model" / "model.json").read_text())
    del stored["parts"]["reuse"]
    (tmp_path / "model" / "model.json").write_text(json.dumps(stored))
    assert load_predictor(tmp_path / "model").note == ""


# ---------------------------------------------------------------------- who never does it


def shape_of(filter_):
    parts = (getattr(filter_.shape, name, None) for name in ("covariance", "bases", "covariances"))
    return [
        np.asarray(part)
        for whole in parts
        if whole is not None
        for part in (whole if type(whole) is tuple else [whole])
    ]


@pytest.mark.parametrize("name", [*METHOD_GROUPS["static"], "static:box"])
def test_a_users_row_has_its_shape_from_training_rows_only(name, panel):
    train, calibration = panel[:700], panel[700:]
    other = calibration.with_values(3.0 * calibration.values[::-1])
    made = [quiet(predictor_for(name).fit(train).calibrate, block) for block in (calibration, other)]
    fitted = quiet(predictor_for(name).fit, train)
    for predictor in made:
        assert predictor.note == ""
        for one, before in zip(shape_of(predictor.filter), shape_of(fitted.filter), strict=True):
            np.testing.assert_array_equal(one, before)


def test_the_static_filter_has_its_covariance_from_training_rows_only(panel):
    train = panel[:700]
    predictor = quiet(JointPredictor(StaticFilter(), standardize=False).fit(train).calibrate, panel[700:])
    filter_ = predictor.filter
    residuals = (train.values - filter_.backbone.predict(train.values, filter_.backbone.start()))[
        filter_.backbone.lags :
    ]
    np.testing.assert_allclose(filter_.covariance, residuals.T @ residuals / (len(residuals) - 1))


def test_the_command_line_fits_shapes_on_training_rows(panel, tmp_path):
    from jointset.writing import write_panel

    changed = panel.values.copy()
    changed[1050:] *= 3.0  # calibration and test rows
    found = []
    for name, values in (("a", panel.values), ("b", changed)):
        write_panel(panel.with_values(values), tmp_path / f"{name}.npz")
        words = ["fit", str(tmp_path / f"{name}.npz"), "--method", "static", "--out", str(tmp_path / name)]
        assert CliRunner().invoke(app, words).exit_code == 0
        found.append(load_predictor(tmp_path / name).filter.covariance)
    np.testing.assert_array_equal(*found)
