"""Boxes that lean: how far, that they hold what they say, and that they are narrower where readings are one-sided."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointset
from jointset import Panel
from jointset.algebra.lean import Lean, found_lean
from jointset.errors import InputError
from jointset.laws import DenseLaw
from jointset.scores import MaxStudentised

N = 4
LEVELS = np.array([[0.0] * N, [1.0] * N, [2.0] * N])


def that_drop(rows: int = 1600, seed: int = 0) -> Panel:
    """Sensors that rise slowly and drop at once, as speeds on a road do."""
    rng = np.random.default_rng(seed)
    x, values = np.zeros(N), np.empty((rows, N))
    for t in range(rows):
        x = 0.7 * x - rng.exponential(size=N)
        values[t] = x
    return Panel(values, [f"s{i}" for i in range(N)])


@pytest.fixture(scope="module")
def blocks() -> tuple[Panel, Panel, Panel]:
    panel = that_drop()
    return panel[:800], panel[800:1200], panel[1200:]


def fitted(name: str, blocks: tuple[Panel, Panel, Panel]) -> jointset.JointPredictor:
    return jointset.predictor(name).fit(blocks[0]).calibrate(blocks[1])


def test_narrower_where_readings_are_one_sided(blocks) -> None:
    upright, leaning = (fitted(name, blocks).run(blocks[2]) for name in ("ewma:box", "ewma:lean"))
    assert leaning.width_full.mean() < 0.9 * upright.width_full.mean()
    assert leaning.joint == pytest.approx(upright.joint, abs=0.03)
    down, up = leaning.mean - leaning.lower, leaning.upper - leaning.mean
    high = leaning.mean > np.quantile(leaning.mean, 0.8)
    assert (down > up)[high].mean() > 0.95


def test_symmetric_readings_stand_upright() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(3000, N))
    assert found_lean(y, np.zeros((3000, N)) + 1e-3 * rng.normal(size=(3000, N)), np.ones((3000, N))) is None


def test_few_rows_stand_upright() -> None:
    y = np.random.default_rng(1).exponential(size=(150, N))
    assert found_lean(y, np.ones((150, N)), np.ones((150, N))) is None
    assert found_lean(np.tile(y, (4, 1)), np.ones((600, N)), np.ones((600, N))) is not None


@pytest.mark.filterwarnings("error")
def test_a_sensor_that_stands_still_or_is_out_leans_by_a_number() -> None:
    rng = np.random.default_rng(2)
    y = -rng.exponential(size=(600, N))
    mean, sd = np.zeros((600, N)) + 0.1 * rng.normal(size=(600, N)), np.ones((600, N))
    y[:, 2], mean[:, 2], y[:, 3] = 60.0, 60.0, np.nan
    lean = found_lean(y, mean, sd)
    assert lean is not None and np.isfinite(lean.of(mean)).all() and np.isfinite(lean.of(mean + 1.0)).all()


@given(
    st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3),
    st.lists(st.floats(-3, 3), min_size=N, max_size=N),
    st.lists(st.one_of(st.floats(-9, 9), st.just(float("nan"))), min_size=N, max_size=N),
    st.floats(0.0, 5.0),
)
@settings(max_examples=60, deadline=None)
def test_inside_bounds_and_score_agree(amounts, mean, y, radius) -> None:
    law = DenseLaw(np.array(mean), np.diag([1.0, 2.0, 0.5, 1.0]) + 0.2)
    score = MaxStudentised(lean=Lean(LEVELS, np.array(amounts)))
    region, y = score.region(law, radius), np.array(y)
    lower, upper = region.bounds
    if not np.isnan(y).any():
        assert bool(region.contains(y)) == bool(score.score(law, y) <= radius)
        assert not region.contains(y) or bool(((y >= lower) & (y <= upper)).all())
    assert region.contains(law.mean)
    np.testing.assert_allclose((upper - lower) / 2.0, region.half_width, rtol=1e-6, atol=1e-9)
    assert (score.contributions(law, y) >= 0).all()


def test_volume_is_that_of_the_bounds_and_the_whole_space_has_no_end() -> None:
    score = MaxStudentised(lean=Lean(LEVELS, np.array([0.5, 0.0, -0.8])))
    law = DenseLaw(np.array([-1.0, 0.5, 1.5, 3.0]), np.eye(N))
    lower, upper = score.region(law, 2.0).bounds
    assert float(score.region(law, 2.0).log_volume) == pytest.approx(np.log(upper - lower).mean())
    np.testing.assert_allclose(upper - law.mean, 2.0 * np.exp([0.5, 0.25, -0.4, -0.8]))
    lower, upper = score.region(law, np.inf).bounds
    assert np.isneginf(lower).all() and np.isposinf(upper).all()


def test_steps_equal_run_and_a_saved_one_goes_on(blocks, tmp_path) -> None:
    predictor = fitted("ewma:lean+aci", blocks)
    predictor.save(tmp_path / "model")
    run = predictor.copy().run(blocks[2][:40])
    again = jointset.load(tmp_path / "model")
    for t, y in enumerate(blocks[2].values[:40]):
        lower, upper = again.predict().bounds
        np.testing.assert_allclose((lower, upper), (run.lower[t], run.upper[t]), rtol=1e-12)
        assert again.update(y).score == run.score[t]


def test_sensors_leave_with_their_lean(blocks) -> None:
    predictor = fitted("kalman:lean", blocks)
    other = predictor.with_sensors(drop=["s1"])
    np.testing.assert_array_equal(other.score.lean.levels, predictor.score.lean.levels[:, [0, 2, 3]])
    assert other.predict().contains(other.predict().center)


def test_units_do_not_matter(blocks) -> None:
    scale, shift = np.array([1.0, 10.0, 0.1, 5.0]), np.array([0.0, -3.0, 7.0, 1.0])
    moved = tuple(block.with_values(shift + scale * block.values) for block in blocks)
    plain, other = (fitted("ewma:lean", rows) for rows in (blocks, moved))
    np.testing.assert_allclose(other.score.lean.amounts, plain.score.lean.amounts)
    np.testing.assert_allclose(other.predict().bounds[1], shift + scale * plain.predict().bounds[1])


def test_names() -> None:
    assert jointset.predictor("quick:box").score.leans and not jointset.predictor("var:box").score.leans
    with pytest.raises(InputError, match="quick has no lean form, its boxes lean already: use quick:box"):
        jointset.predictor("quick:lean")
    with pytest.raises(InputError, match="factor has no lean form"):
        jointset.predictor("factor:lean")
