"""Boxes that lean and stop: how far, that they hold what they say, and that they are narrower where that pays."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointset
from jointset import Panel
from jointset.algebra.lean import Lean, _spread, found_ends, found_lean, found_strides
from jointset.errors import InputError
from jointset.laws import DenseLaw
from jointset.predicting import fitting
from jointset.scores import MaxStudentised

N = 4
LEVELS = np.array([[0.0] * N, [1.0] * N, [2.0] * N])
ENDS = np.array([[-1.0, -np.inf, 0.0, 0.5], [1.0, 2.0, np.inf, 0.5]])
STRIDES = 0.05 * (LEVELS[2] - LEVELS[0])


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
    st.one_of(st.none(), st.floats(0.0, 6.0)),
)
@settings(max_examples=100, deadline=None)
def test_inside_bounds_and_score_agree(amounts, mean, y, radius, most) -> None:
    law = DenseLaw(np.array(mean), np.diag([1.0, 2.0, 0.5, 1.0]) + 0.2)
    ends = (None, 0.0) if most is None else (ENDS, most)
    score = MaxStudentised(lean=Lean(LEVELS, np.array(amounts), *ends))
    region, y = score.region(law, radius), np.array(y)
    lower, upper = region.bounds
    if not np.isnan(y).any():
        assert bool(region.contains(y)) == bool(score.score(law, y) <= radius)
        assert not region.contains(y) or bool(((y >= lower) & (y <= upper)).all())
    assert region.contains(law.mean)
    np.testing.assert_allclose((upper - lower) / 2.0, region.half_width, rtol=1e-6, atol=1e-9)
    assert (score.contributions(law, y) >= 0).all()


@given(st.lists(st.floats(-3, 3), min_size=N, max_size=N), st.floats(0.01, 9.0), st.floats(0.0, 6.0), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_radius_of_a_bound_is_that_of_its_box(mean, radius, most, upper) -> None:
    mean, sd = np.array(mean), np.array([1.0, 2.0, 0.5, 1.0])
    lean = Lean(LEVELS, np.array([0.3, 0.0, -0.6]), ENDS, most)
    below, above = lean.reaches(np.array([radius]), mean, sd)
    np.testing.assert_allclose(lean.radius_of(mean + above if upper else mean - below, mean, sd), radius, rtol=1e-6)
    further = lean.reaches(np.array([1.1 * radius]), mean, sd)
    assert (further[0] > below).all() and (further[1] > above).all()


def test_volume_is_that_of_the_bounds_and_the_whole_space_has_no_end() -> None:
    score = MaxStudentised(lean=Lean(LEVELS, np.array([0.5, 0.0, -0.8])))
    law = DenseLaw(np.array([-1.0, 0.5, 1.5, 3.0]), np.eye(N))
    lower, upper = score.region(law, 2.0).bounds
    assert float(score.region(law, 2.0).log_volume) == pytest.approx(np.log(upper - lower).mean())
    np.testing.assert_allclose(upper - law.mean, 2.0 * np.exp([0.5, 0.25, -0.4, -0.8]))
    for ends in (None, ENDS):
        score = MaxStudentised(lean=Lean(LEVELS, np.array([0.5, 0.0, -0.8]), ends, 3.0))
        lower, upper = score.region(law, np.inf).bounds
        assert np.isneginf(lower).all() and np.isposinf(upper).all()


@pytest.mark.parametrize("ending", [False, True])
def test_steps_equal_run_and_a_saved_one_goes_on(blocks, tmp_path, ending) -> None:
    before, later = blocks, blocks[2][:40]
    if ending:  # and the ends are passed
        panel, later = that_dry_up(1900), that_dry_up(40, lowest=-9.0, seed=4)
        before = (panel[:1400], panel[1400:], panel)
    predictor = fitted("ewma:lean+aci", before)
    predictor.save(tmp_path / "model")
    run = predictor.run(later)
    again = jointset.load(tmp_path / "model")
    for t, y in enumerate(later.values):
        region = again.predict()
        np.testing.assert_allclose(region.bounds, (run.lower[t], run.upper[t]), rtol=1e-12)
        np.testing.assert_allclose(run.regions[t].bounds, region.bounds, rtol=1e-12)
        assert again.update(y).score == run.score[t]
        assert run.regions[t].contains(y) == run.inside[t]
    if ending:
        assert (predictor.score.lean.drawn[0] < 0.0).any()
        np.testing.assert_array_equal(again.score.lean.drawn, predictor.score.lean.drawn)
        assert again.calibrate(before[1]).score.lean.drawn is None


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


def that_dry_up(rows: int = 2400, lowest: float = 0.0, seed: int = 0) -> Panel:
    """Rivers that fall dry again and again."""
    rng = np.random.default_rng(seed)
    x, values = np.zeros(N), np.empty((rows, N))
    for t in range(rows):
        x = 0.9 * x + rng.normal(size=N)
        values[t] = np.maximum(x, lowest)
    return Panel(values, [f"s{i}" for i in range(N)])


def test_narrower_where_readings_end() -> None:
    panel = that_dry_up()
    fits = {}
    for name in ("ewma:box", "ewma:lean"):
        fits[name] = fitted(name, (panel[:1400], panel[1400:1900], panel)).run(panel[1900:])
    upright, ending = fits.values()
    assert ending.joint == pytest.approx(upright.joint, abs=0.03)
    assert ending.width_full.mean() < 0.8 * upright.width_full.mean()
    assert upright.lower.min() < -1.5 and ending.lower.min() > -0.2


@pytest.mark.parametrize("rule", ["aci", "auto"])
def test_an_end_that_no_longer_holds_costs_width_and_not_coverage(rule) -> None:
    panel, later = that_dry_up(1900), that_dry_up(2000, lowest=-9.0, seed=1)
    predictor = fitted(f"ewma:lean+{rule}", (panel[:1400], panel[1400:], panel))
    assert (predictor.score.lean.ends[0] == 0.0).all()
    still = fitted(f"ewma:box+{rule}", (panel[:1400], panel[1400:], panel)).run(later)
    run = predictor.run(later)
    assert run.joint == pytest.approx(0.9, abs=0.02) and np.isfinite(run.radius).all()
    assert run.width_full[-500:].mean() < 1.3 * still.width_full[-500:].mean()  # the ends have left
    assert (predictor.score.lean.restarted().ends[0] == 0.0).all() and (predictor.score.lean.drawn[0] < -4.0).all()


@pytest.mark.filterwarnings("ignore:.*shape fitted on")  # rows of counts are equal by chance
def test_an_end_is_left_soon_where_the_mean_hardly_moves(monkeypatch) -> None:
    values = np.random.default_rng(5).poisson(0.7, size=(3500, N)).astype(float)
    values[2000:] -= 1.0  # counters with another zero
    panel = Panel(values, [f"s{i}" for i in range(N)])
    predictor = fitted("ewma:lean+aci", (panel[:1300], panel[1300:2000], panel))
    assert (predictor.score.lean.ends[0] == 0.0).all()
    found = predictor.copy().run(panel[2000:]).joint
    predictor.run(panel[2000:2100])
    assert (predictor.score.lean.drawn[0] == -1.0).all()
    monkeypatch.setattr(fitting, "found_ends", lambda values: np.full((2, N), np.inf) * [[-1.0], [1.0]])
    plain = fitted("ewma:lean+aci", (panel[:1300], panel[1300:2000], panel))
    assert plain.score.lean.ends is None and found > plain.run(panel[2000:]).joint - 0.02  # ACI rises slowly


@pytest.mark.filterwarnings("ignore:.*shape fitted on")
@pytest.mark.parametrize("rule", ["split", "aci"])
def test_a_jump_of_many_ranges_is_not_missed_again_when_its_end_comes_after_it(rule) -> None:
    values = that_dry_up(4200).values - np.where(np.arange(4200) < 2200, 0.0, 273.0)[:, None]  # another unit
    panel = Panel(values, [f"s{i}" for i in range(N)])
    run = fitted(f"ewma:lean+{rule}", (panel[:1400], panel[1400:2100], panel)).run(panel[2200:])
    assert min(np.convolve(run.inside, np.ones(200) / 200, "valid")) > 0.75
    lean = Lean(LEVELS, np.zeros(3), ENDS, 2.0, stride=STRIDES)
    for _ in range(5):
        lean = lean.followed(np.array([[-99.0, 0.0, 0.5, 0.5]]))[1]
    assert lean.drawn[0, 0] == pytest.approx(-1.5)  # and glitches draw it little


def test_strides_are_shares_of_the_range_of_readings() -> None:
    values = np.stack([np.linspace(0.0, 10.0, 1001), np.full(1001, 7.0), np.full(1001, np.nan)], axis=1)
    values[3, 0] = 1e6  # a glitch
    np.testing.assert_allclose(found_strides(values), [0.05 * 9.8, 0.0, 0.0], atol=1e-3)


def test_ends_are_where_readings_pile_up_all_the_time() -> None:
    rng = np.random.default_rng(3)
    dry = np.maximum(rng.normal(size=4000), 0.0)
    glitch = np.where(np.arange(4000) == 1000, -99.0, dry)
    slow = np.cumsum(rng.normal(size=4000))
    once = np.where(np.arange(4000) < 800, 0.0, 1.0 + dry)  # dry in one season
    switch, still = (dry > 0).astype(float), np.full(4000, 7.0)
    gaps = np.where(rng.random(4000) < 0.5, np.nan, dry)
    ends = found_ends(np.stack([dry, -dry, glitch, slow, once, switch, still, gaps], axis=1))
    assert ends[0].tolist() == [0.0, -np.inf, 0.0, -np.inf, -np.inf, 0.0, -np.inf, 0.0]
    assert ends[1].tolist() == [np.inf, 0.0, np.inf, np.inf, np.inf, 1.0, np.inf, np.inf]
    assert np.isinf(found_ends(dry[:150, None])).all()


@given(st.lists(st.lists(st.one_of(st.floats(-9, 9), st.just(float("nan"))), min_size=N, max_size=N), max_size=12))
@settings(max_examples=60, deadline=None)
def test_ends_follow_readings_one_by_one_as_many_at_once(rows) -> None:
    lean, rows = Lean(LEVELS, np.zeros(3), ENDS, 2.0, stride=STRIDES), np.array(rows).reshape(-1, N)
    before, after = lean.followed(rows)
    for t, y in enumerate(rows):
        np.testing.assert_array_equal(before.at(t)._present, lean._present)
        moved = lean.followed(y[None])[1]
        known = np.isfinite(lean._present)
        drawn = np.abs(lean._present[known] - ENDS[known])
        assert (np.abs(moved._present[known] - lean._present[known]) <= 0.05 * np.maximum(2.0, drawn) + 1e-9).all()
        lean = moved
    np.testing.assert_array_equal(after._present, lean._present)
    assert (lean._present[0] <= ENDS[0]).all() and (lean._present[1] >= ENDS[1]).all()


def test_ends_follow_many_readings_beyond_in_time_that_grows_with_their_number() -> None:
    rows = np.maximum(np.random.default_rng(6).normal(size=(100_000, N)), 0.0) - 0.001 * np.arange(100_000)[:, None]
    lean = Lean(LEVELS, np.zeros(3), np.array([[0.0] * N, [np.inf] * N]), 2.0, stride=STRIDES)
    begin = time.process_time()
    before, after = lean.followed(rows)
    assert time.process_time() - begin < 2.0
    np.testing.assert_array_equal(before.drawn[1:, 0], np.minimum.accumulate(np.minimum(rows, 0.0))[:-1])
    assert after.drawn.base is None  # nor does it hold the others


def test_sensors_leave_with_their_ends_and_new_ones_have_none() -> None:
    lean = Lean(LEVELS, np.zeros(3), ENDS, 2.0, stride=np.array([1.0, 2.0, 3.0, 4.0])).chosen(np.array([2, -1, 0]))
    assert lean.stride.tolist() == [3.0, 0.0, 1.0]
    assert lean.ends.tolist() == [[0.0, -np.inf, -1.0], [np.inf, np.inf, 1.0]] and lean.most == 2.0
    y = np.array([0.0, -50.0, 0.0])
    np.testing.assert_allclose(lean.radius_of(y, np.zeros(3), np.ones(3)), [0.0, 50.0, 0.0])


def test_names() -> None:
    assert jointset.predictor("quick:box").score.leans and not jointset.predictor("var:box").score.leans
    with pytest.raises(InputError, match="quick has no lean form, its boxes lean already: use quick:box"):
        jointset.predictor("quick:lean")
    with pytest.raises(InputError, match="factor has no lean form"):
        jointset.predictor("factor:lean")


def test_readings_that_are_missing_do_not_count_in_the_spread() -> None:
    y = np.random.default_rng(0).normal(7.0, [0.1, 2.0], size=(500, 2))
    gone = np.insert(y, [100, 300], np.nan, axis=0)
    np.testing.assert_allclose(_spread(gone), y.std(axis=0), rtol=1e-12)
