import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jointset import Panel
from jointset.datasets.preprocess import CARRIED, MEDIAN, Preprocess, fill_gaps, gap_kinds
from jointset.errors import InputError
from jointset.storage import pack, unpack

NAN = np.nan


def readings(T=60, n=4, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    values = 50 + 20 * rng.standard_normal((T, n)).cumsum(axis=0) / 5
    return np.where(rng.random((T, n)) < share, NAN, np.abs(values))


def panel(values):
    return Panel(values, [f"s{i}" for i in range(np.shape(values)[1])])


def one_by_one(values, median, ends=(), longest=3):
    """The filling rule, written out reading by reading."""
    out, T = values.copy(), len(values)
    stops = [*ends, T]
    for i in range(values.shape[1]):
        for t in range(T):
            if np.isnan(values[t, i]):
                first, last = t, t
                while first > 0 and np.isnan(values[first - 1, i]):
                    first -= 1
                while last + 1 < min(s for s in stops if s > t) and np.isnan(values[last + 1, i]):
                    last += 1
                short = last - first + 1 <= longest and first > 0
                out[t, i] = values[first - 1, i] if short else median[i]
    return out


gappy = st.tuples(st.integers(1, 14), st.integers(1, 2)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([1.0, 2.0, NAN]))
)


@given(gappy, st.sets(st.integers(1, 13)))
def test_filling_is_the_rule_reading_by_reading(values, ends):
    median = np.array([-1.0, -2.0])[: values.shape[1]]
    filled = values.copy()
    stops = sorted(end for end in ends if end < len(values))
    fill_gaps(filled, median, stops)
    np.testing.assert_array_equal(filled, one_by_one(values, median, stops))


def test_runs_of_three_are_carried_and_of_four_replaced():
    column = np.array([1, NAN, NAN, NAN, 2, NAN, NAN, NAN, NAN, 3.0])[:, None]
    fill_gaps(column, np.array([9.0]))
    np.testing.assert_array_equal(column.ravel(), [1, 1, 1, 1, 2, 9, 9, 9, 9, 3])


def test_a_short_run_with_nothing_before_takes_the_median():
    column = np.array([NAN, NAN, 4.0])[:, None]
    assert (gap_kinds(column).ravel() == [MEDIAN, MEDIAN, 0]).all()


def test_a_run_across_a_block_end_is_judged_by_what_each_block_shows():
    column = np.array([5.0, NAN, NAN, NAN, NAN, 6.0])[:, None]
    np.testing.assert_array_equal(gap_kinds(column, ends=[3]).ravel(), [0, CARRIED, CARRIED, MEDIAN, MEDIAN, 0])


@pytest.mark.parametrize("later", [0.0, NAN, 1e9])
def test_nothing_up_to_the_end_of_training_depends_on_what_follows(later):
    values = readings(share=0.4)
    changed = values.copy()
    changed[40:] = later
    before, after = (Preprocess.fit(panel(v[:40])) for v in (values, changed))
    for name in ("median", "mean", "sd"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    np.testing.assert_array_equal(before.apply(values, [40])[:40], after.apply(changed, [40])[:40])


def test_training_block_ends_up_with_mean_zero_and_population_sd_one():
    values = readings()
    z = Preprocess.fit(panel(values)).apply(values)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-12)
    masked = Preprocess.fit(panel(values), missing="mask").apply(values)
    np.testing.assert_allclose(np.nanstd(masked, axis=0), 1, rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(masked), np.isnan(values))


def test_fit_agrees_with_pandas():
    values = readings(share=0.0)
    values[10:12, 0], values[20:25, 1] = NAN, NAN
    frame = pd.DataFrame(values)
    by_hand = frame.copy()
    by_hand[0] = frame[0].ffill()
    by_hand[1] = frame[1].fillna(frame[1].median())
    steps = Preprocess.fit(panel(values))
    np.testing.assert_allclose(steps.median, frame.median(), rtol=1e-14)
    np.testing.assert_allclose(steps.apply(values), (by_hand - by_hand.mean()) / by_hand.std(ddof=0), atol=1e-12)


@pytest.mark.parametrize("missing", ["fill", "mask"])
@pytest.mark.parametrize("log", [False, True])
def test_round_trip_is_the_identity_on_observed_readings(missing, log):
    values = readings() * np.array([1e-4, 1.0, 1e3, 1e6])
    steps = Preprocess.fit(panel(values[:40]), missing=missing, log=log)
    back = steps.invert(steps.apply(values, [40]))
    seen = ~np.isnan(values)
    np.testing.assert_allclose(back[seen], values[seen], rtol=1e-9)
    assert np.isnan(back).any() == (missing == "mask")


def test_electricity_round_trip(real_data):
    values = np.load(real_data("elec.npz"))["values"].astype(float)
    steps = Preprocess.fit(panel(values[:18413]), log=True)
    z = steps.apply(values)
    np.testing.assert_allclose(steps.invert(z), values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(z[:18413] * steps.sd + steps.mean, np.log10(1 + values[:18413]), atol=1e-12)


def test_sentinels_are_gaps_and_counted_block_by_block():
    values = readings(share=0.0)
    values[3, 0] = values[4, 0] = -99
    values[30:36, 1] = -99
    values[50, 2] = NAN
    steps = Preprocess.fit(panel(values[:40]), sentinels=(-99.0,))
    clean = values.copy()
    clean[values == -99] = NAN
    np.testing.assert_array_equal(steps.apply(values), Preprocess.fit(panel(clean[:40])).apply(clean))
    first, second = steps.repairs(values, [40])
    assert first == (160, 8, 2, 6, 0)
    assert second == (80, 0, 1, 0, 0)
    masked = Preprocess.fit(panel(values[:40]), sentinels=(-99.0,), missing="mask")
    assert [block.missing for block in masked.repairs(values, [40])] == [8, 1]
    assert np.isnan(masked.apply(values)).sum() == 9


def test_identity_changes_nothing():
    values = readings()
    np.testing.assert_array_equal(Preprocess.identity("abcd").apply(values), values)


def test_record_survives_a_file():
    arrays_ = {}
    steps = Preprocess.fit(panel(readings()), sentinels=(-99.0,), log=True)
    again = unpack(pack(steps, arrays_), arrays_)
    assert isinstance(again, Preprocess)
    assert (again.sensors, again.sentinels, again.log) == (steps.sensors, steps.sentinels, True)
    np.testing.assert_array_equal(again.apply(readings()), steps.apply(readings()))


@pytest.mark.parametrize(
    ("column", "options", "facts"),
    [
        ([NAN] * 6, {}, ["'s0'", "no reading in the training block"]),
        ([-99.0] * 6, {"sentinels": (-99.0,)}, ["'s0'", "no reading"]),
        ([0.1, 0.1, NAN, 0.1, 0.1, 0.1], {}, ["'s0'", "constant"]),
        ([0.1, 0.1, NAN, 0.1, 0.1, 0.1], {"missing": "mask"}, ["'s0'", "constant"]),
        ([-1.5, 2, 3, 4, 5, 6], {"log": True}, ["'s0'", "-1.5", "log10"]),
        ([1, 2, 3, 4, 5, 6], {"missing": "drop"}, ["'drop'", "fill or mask"]),
    ],
)
def test_bad_training_blocks_are_refused_by_name(column, options, facts):
    values = np.stack([column, [1, 2, 3, 4, 5, 7]], axis=1)
    with pytest.raises(InputError) as caught:
        Preprocess.fit(panel(values), **options)
    message = str(caught.value)
    assert "\n" not in message
    assert all(fact in message for fact in facts), message
    assert "'s1'" not in message


def test_wrong_number_of_sensors_is_refused():
    with pytest.raises(InputError, match="4 sensors"):
        Preprocess.fit(panel(readings())).apply(readings(n=3))
