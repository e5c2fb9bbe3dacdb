"""JointPredictor: blocks, units, warm-up, damaged folders, and one clear line for every misuse."""

import json

import numpy as np
import pytest

from jointset import (
    PID,
    AgACI,
    BlockMaximum,
    GraphLGSSM,
    InputError,
    JointPredictor,
    MaxStudentised,
    Panel,
    Split,
    StaticFilter,
    generate_grssf,
)
from jointset.methods import predictor_for

PARTS = {
    "tuned, blocks, agaci": lambda: JointPredictor(
        GraphLGSSM(tune=True), BlockMaximum((np.arange(6), np.arange(6, 12))), AgACI(0.1)
    ),
    "static, box, pid": lambda: JointPredictor(StaticFilter(), MaxStudentised(), PID(0.1)),
}


@pytest.fixture(scope="module")
def blocks():
    panel = generate_grssf("E", n=12, seed=4, length=1500).panel
    physical = panel.with_values(60.0 + 7.0 * panel.values)  # units of a real network: far from zero
    train, _, calibration, test = physical.split()
    values = test.values.copy()
    values[20:23] = np.nan
    values[np.random.default_rng(0).random(values.shape) < 0.02] = np.nan
    return train, calibration, test.with_values(values)


@pytest.fixture(params=PARTS)
def predictor(request, blocks):
    return PARTS[request.param]().fit(blocks[0]).calibrate(blocks[1])


def test_run_does_not_depend_on_its_block_size(predictor, blocks, monkeypatch):
    whole = predictor.copy().run(blocks[2])
    monkeypatch.setattr("jointset.predicting.passes.BLOCK", 12**2 * 7)
    cut = predictor.copy().run(blocks[2])
    for name in ("lower", "upper", "score", "radius", "log_volume"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-9)
    np.testing.assert_array_equal(cut.regions.contains(blocks[2].values), whole.inside)


def test_saving_again_replaces_the_folder_whole(predictor, tmp_path):
    predictor.save(tmp_path / "model")
    predictor.save(tmp_path / "model")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]
    assert sorted(p.suffix for p in (tmp_path / "model").iterdir()) == ["", ".json", ".safetensors"]  # one of each


def test_standardising_leaves_units_and_scores_alone(blocks):
    """A change of units changes bounds accordingly and nothing else."""
    train, calibration, test = blocks
    scale = np.linspace(0.5, 20, 12)

    def moved(panel):
        return panel.with_values(panel.values * scale - 3)

    a = JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration).run(test)
    b = JointPredictor(GraphLGSSM()).fit(moved(train)).calibrate(moved(calibration)).run(moved(test))
    np.testing.assert_allclose(b.score, a.score, rtol=1e-7)
    np.testing.assert_allclose(b.lower, a.lower * scale - 3, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(b.inside, a.inside)


def test_summary_counts_only_rows_with_readings(blocks):
    run = JointPredictor(GraphLGSSM()).fit(blocks[0]).calibrate(blocks[1]).run(blocks[2])
    seen = ~np.isnan(blocks[2].values).all(axis=1)
    assert seen.sum() < len(seen)
    assert run.joint == pytest.approx(run.inside[seen].mean())
    assert run.summary()["marginal"] > run.joint


def test_warm_up_keeps_t0_to_n(blocks):
    train, calibration, _ = blocks
    for warmup in (1, 2, 50):
        predictor = JointPredictor(GraphLGSSM(), warmup=warmup).fit(train).calibrate(calibration)
        assert predictor.n_calibration == len(calibration) - warmup + 1


def test_a_refused_calibration_keeps_the_one_before(blocks):
    predictor = JointPredictor(GraphLGSSM()).fit(blocks[0]).calibrate(blocks[1])
    bounds = predictor.predict().bounds
    with pytest.raises(InputError, match="too few"):
        predictor.calibrate(blocks[1][:55])
    np.testing.assert_array_equal(predictor.predict().bounds, bounds)


def test_rows_seen_before_are_noticed(blocks):
    predictor = JointPredictor(GraphLGSSM()).fit(blocks[0]).calibrate(blocks[1])
    assert predictor.repeats(blocks[0]) and predictor.repeats(blocks[1]) and not predictor.repeats(blocks[2])
    predictor.run(blocks[2][:10])
    assert predictor.repeats(blocks[2])


def test_fitting_again_tunes_again():
    slow, quick = (generate_grssf("A", n=12, seed=s, length=1500).panel for s in (0, 1))
    smooth = slow.with_values(np.cumsum(slow.values, axis=0))
    predictor = JointPredictor(GraphLGSSM(tune=True)).fit(quick).fit(smooth)
    fresh = JointPredictor(GraphLGSSM(tune=True)).fit(smooth)
    assert (predictor.filter.rho, predictor.filter.sigma_r) == (fresh.filter.rho, fresh.filter.sigma_r)


def test_boxes_calibrated_on_gaps_still_cover_complete_rows():
    panel = generate_grssf("A", n=30, seed=0, length=6000).panel
    values = panel.values[1000:5000].copy()
    values[np.random.default_rng(0).random(values.shape) < 0.7] = np.nan
    predictor = JointPredictor(GraphLGSSM(), MaxStudentised(), standardize=False)
    predictor.fit(panel[:1000]).calibrate(panel[1000:5000].with_values(values))
    assert predictor.run(panel[5000:], regions=False).joint > 0.87


def edit_header(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut(path, keep):
    path.write_bytes(path.read_bytes()[:keep])


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def arrays(folder):
    (path,) = folder.glob("arrays-*.safetensors")
    return path


DAMAGE = {
    "newer": (lambda f: edit_header(f, format=99, jointset="9.0"), "format 99.*upgrade jointset"),
    "no header": (lambda f: (f / "model.json").unlink(), "model.json is missing"),
    "no arrays": (lambda f: arrays(f).unlink(), r"arrays-\w+\.safetensors is missing"),
    "cut header": (lambda f: cut(f / "model.json", 40), "model.json cannot be read"),
    "cut arrays": (lambda f: cut(arrays(f), 200), "cut short or changed"),
    "one byte": (lambda f: flip(arrays(f)), "cut short or changed"),
    "no parts": (lambda f: edit_header(f, parts={}), "part 'filter' is missing"),
    "text": (lambda f: (f / "model.json").write_text("[1, 2]"), "model.json cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_folder_is_refused(damage, blocks, tmp_path):
    folder = tmp_path / "model"
    JointPredictor(GraphLGSSM()).fit(blocks[0]).calibrate(blocks[1]).save(folder)
    change, message = DAMAGE[damage]
    change(folder)
    with pytest.raises(InputError, match=message) as caught:
        JointPredictor.load(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


def test_misuse_gets_one_clear_line(blocks, tmp_path):
    train, calibration, test = blocks
    fresh = JointPredictor(GraphLGSSM())
    (tmp_path / "notes.txt").write_text("mine")
    fitted = JointPredictor(GraphLGSSM()).fit(train)
    for call, message in (
        (lambda: fresh.predict(), "not calibrated"),
        (lambda: fresh.calibrate(calibration), "not fitted"),
        (lambda: fitted.predict(), "not calibrated"),
        (lambda: fitted.run(test), "not calibrated"),
        (lambda: fitted.calibrate(calibration[:55]), "6 calibration scores .* at least 9"),
        (lambda: fitted.calibrate(calibration.select(list(reversed(train.sensors)))), "another order"),
        (lambda: fitted.calibrate(calibration.select(train.sensors[:-1])), "'s011' .* missing"),
        (lambda: fitted.calibrate(Panel(calibration.values, [f"x{i}" for i in range(12)])), "missing from the panel"),
        (lambda: fresh.fit(train.with_values(np.ones_like(train.values))), "constant"),
        (lambda: JointPredictor(GraphLGSSM(), calibration=Split(alpha=1.5)), "alpha must lie strictly"),
        (lambda: JointPredictor(GraphLGSSM(), warmup=0), "warmup"),
        (lambda: JointPredictor.load(tmp_path / "nothing"), "not a model folder"),
        (lambda: fitted.save(tmp_path), "not a model folder"),
        (lambda: fitted.save(tmp_path / "notes.txt"), "not a model folder"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_few_sensors_are_fitted_on_one_thread():
    import scipy.linalg  # noqa: F401 - has a library of its own
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    class Asked(StaticFilter):
        def fit(self, panel, **options):
            found.append((panel.n_sensors, threads()))
            return super().fit(panel, **options)

    found = []
    rng = np.random.default_rng(0)
    with threadpool_limits(2, user_api="blas"):
        for n in (3, 400):
            JointPredictor(Asked()).fit(rng.normal(size=(500, n)))
        assert threads() == {2}
    assert found == [(3, {1}), (400, {2})]


def test_the_time_of_the_last_row_is_known_where_rows_have_times():
    panel = generate_grssf("A", n=8, seed=2, length=500).panel
    bare = Panel(panel.values, panel.sensors)
    timeless = JointPredictor(StaticFilter()).fit(bare[:200]).calibrate(bare[200:400])
    timeless.run(bare[400:])
    assert timeless.last_time is None
    predictor = JointPredictor(StaticFilter()).fit(panel[:200]).calibrate(panel[200:400])
    predictor.run(panel[400:450])
    assert predictor.last_time == panel.timestamps[449]
    predictor.run(panel[450:450])  # no row
    assert predictor.last_time == panel.timestamps[449]


@pytest.mark.parametrize(
    "method", ["static", "ewma", "rolling", "time-of-day:box", "local", "var", "kalman+aci", "group"]
)
def test_regions_of_a_run_in_many_blocks_are_those_of_one(method, monkeypatch):
    made = generate_grssf("A", n=8, seed=0, length=1000).panel
    values, rng = made.values.copy(), np.random.default_rng(0)
    values[900:][rng.random((100, 8)) < 0.1] = np.nan
    panel = Panel(values, made.sensors, timestamps=3600 * np.arange(1000), adjacency=made.adjacency)
    predictor = predictor_for(method).fit(panel[:600]).calibrate(panel[600:900])
    whole = predictor.copy().run(panel[900:])
    monkeypatch.setattr("jointset.predicting.passes.BLOCK", 64 * 7)
    cut = predictor.run(panel[900:])
    np.testing.assert_allclose(cut.log_volume, whole.log_volume, rtol=1e-9)
    np.testing.assert_array_equal(cut.regions.contains(values[900:]), whole.inside)
    np.testing.assert_allclose(cut.regions[50].bounds, whole.regions[50].bounds, rtol=1e-9)
