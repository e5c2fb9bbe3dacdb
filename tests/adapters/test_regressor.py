"""scikit-learn: its own checks, coverage of all outputs at once, and what happens with few rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import check_estimator

from jointset import Split
from jointset.adapters import JointRegressor
from jointset.errors import InputError

EXPECTED_TO_FAIL: dict[str, str] = {}  # checks of scikit-learn that a joint set cannot pass, and why


def test_the_checks_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small data: infinite sets are told
        found = check_estimator(JointRegressor(), expected_failed_checks=EXPECTED_TO_FAIL, on_skip=None)
    assert len(found) > 40
    assert [one["check_name"] for one in found if one["status"] not in ("passed", "skipped")] == []


def rows(count, seed=0, outputs=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    common, own = rng.normal(size=(count, 1)), 0.3 * rng.normal(size=(count, outputs))
    return X, X @ np.random.default_rng(99).normal(size=(4, outputs)) + common + own


@pytest.mark.parametrize("geometry", ["ellipsoid", "box"])
def test_the_sets_hold_the_whole_row_as_often_as_promised(geometry):
    inside = []
    for seed in range(20):
        X, Y = rows(300, seed)
        model = JointRegressor(LinearRegression(), geometry=geometry).fit(X[:200], Y[:200])
        inside.append(model.predict_set(X[200:]).contains(Y[200:]).sum())
    one = betabinom(100, 55, 6)  # of 100 rows, held against the 55th of 60 calibration scores
    assert abs(sum(inside) - 20 * one.mean()) < 3.5 * np.sqrt(20 * one.var())


def test_another_level_is_that_of_a_model_made_for_it():
    X, Y = rows(300)
    model = JointRegressor().fit(X, Y)
    other = clone(model).set_params(alpha=0.3).fit(X, Y)
    np.testing.assert_array_equal(model.predict_set(X[:5], alpha=0.3).half_width, other.predict_set(X[:5]).half_width)
    assert model.predict_set(X[:1]).radius == Split(0.1).radius(Split(0.1).start(model.calibration_scores_))


def test_a_rule_that_follows_its_misses_goes_wider_after_a_jump():
    X, Y = rows(900)
    Y[600:] *= 3.0
    model = JointRegressor(LinearRegression(), rule="aci").fit(X[:500], Y[:500])
    before = float(model.predict_set(X[:1]).radius)
    found = model.update(X[500:], Y[500:])
    assert float(model.predict_set(X[:1]).radius) > before
    assert found.inside[:100].mean() > found.inside[100:200].mean()
    with pytest.raises(InputError, match=r"aci keeps to alpha=0.1: fit with alpha=0.2"):
        model.predict_set(X, alpha=0.2)


def test_frames_name_the_outputs_and_one_output_is_a_vector():
    X, Y = rows(200)
    frame = pd.DataFrame(Y, columns=["north", "south", "mill"])
    model = JointRegressor(KNeighborsRegressor()).fit(pd.DataFrame(X, columns=list("abcd")), frame)
    assert model.predict_set(pd.DataFrame(X[:2], columns=list("abcd"))).sensors == ("north", "south", "mill")
    single = JointRegressor().fit(X, Y[:, 0])
    assert single.predict(X).shape == (200,) and single.predict_set(X).bounds[0].shape == (200, 1)
    with pytest.raises(InputError, match="y has 3 outputs, the model was fitted on 1"):
        single.update(X, Y)


def test_the_units_of_one_output_do_not_matter_to_the_others():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(600, 3)), rng.normal(size=(600, 2)) @ np.array([[1.0, 0.9], [0.0, 0.436]]).T
    scale, shift = np.array([1.0, 1e-3]), np.array([101_325.0, 0.0])  # a pressure and a ratio
    Y = X @ rng.normal(size=(3, 2)) + noise
    usual, other = (JointRegressor(LinearRegression()).fit(X, y).predict_set(X[:1]) for y in (Y, Y * scale + shift))
    np.testing.assert_allclose(other.half_width, usual.half_width * scale, rtol=1e-6)


@pytest.mark.parametrize("level", [0.0, 0.1, 5.0])
def test_an_output_that_does_not_vary_spoils_nothing(level):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(600, 2)), rng.normal(size=600)
    alone = JointRegressor().fit(X, y).predict_set(X[:1])
    both = JointRegressor().fit(X, np.column_stack([y, np.full(600, level)])).predict_set(X[:1])
    assert both.half_width[0, 0] == pytest.approx(alone.half_width[0, 0], rel=0.02)
    assert both.contains(np.array([[alone.law.mean[0, 0], level * (1 + 1e-14) + 1e-14]])).all()


def test_it_is_tuned_like_any_other():
    X, Y = rows(200)
    search = GridSearchCV(
        JointRegressor(KNeighborsRegressor()), {"estimator__n_neighbors": [1, 8]}, cv=TimeSeriesSplit(3)
    )
    assert search.fit(X, Y).best_params_ == {"estimator__n_neighbors": 8}


def test_few_rows_give_the_whole_space_and_say_so():
    X, Y = rows(12)
    with pytest.warns(UserWarning, match="4 calibration rows are too few for alpha=0.1: the set is the whole space"):
        model = JointRegressor().fit(X, Y)
    assert model.predict_set(X).contains(1e9 + Y).all()


def test_outputs_go_by_their_names():
    X, Y = rows(300, outputs=3)
    frame = pd.DataFrame(Y, columns=["u", "v", "w"]).sample(frac=1, random_state=0).sort_index(ascending=False)
    X, Y = X[frame.index], frame.to_numpy()
    model = JointRegressor().fit(X[:200], frame[:200])
    sets, turned = model.predict_set(X[200:]), frame[200:][["w", "u", "v"]]
    np.testing.assert_array_equal(sets.contains(turned), sets.contains(Y[200:]))
    assert list(sets[0].to_pandas().index) == ["u", "v", "w"]
    np.testing.assert_array_equal(model.update(X[200:], turned).score, model.update(X[200:], Y[200:]).score)


@pytest.mark.parametrize("geometry", ["ellipsoid", "box"])
def test_one_output_is_held_against_its_intervals_in_either_shape(geometry):
    X, Y = rows(300, outputs=1)
    sets = JointRegressor(geometry=geometry).fit(X[:200], Y[:200, 0]).predict_set(X[200:])
    np.testing.assert_array_equal(sets.contains(Y[200:, 0]), sets.contains(Y[200:]))
    with pytest.raises(InputError, match="give 1 values in each row"):
        sets.contains(Y[:150, 0])
