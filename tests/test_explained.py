"""What is told of a reading at once is what is told of it one by one; a law that stands is not made again."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from jointset import GraphLGSSM, JointPredictor, generate_grssf
from jointset.filters.var import VARFilter
from jointset.laws import DenseLaw, LowRankLaw
from jointset.methods import predictor_for
from jointset.predicting.attribution import explained
from jointset.scores import Mahalanobis, RootMahalanobis


@pytest.fixture(scope="module")
def blocks():
    return generate_grssf("A", n=8, length=1200, seed=5).panel.split()


@pytest.mark.parametrize("name", ["kalman", "kalman root", "kalman:box", "quick", "ewma+aci", "factor"])
@pytest.mark.parametrize("gaps", [0, 3, 8])
def test_one_pass_tells_the_same(blocks, name, gaps):
    train, _, calibration, test = blocks
    name, _, root = name.partition(" ")
    predictor = predictor_for(name)
    predictor.score = RootMahalanobis() if root else predictor.score
    predictor.fit(train).calibrate(calibration)
    y = test.values[0].copy()
    y[:gaps] = np.nan
    after = predictor.copy()
    found = predictor.explained(y, after.update(y).score)
    np.testing.assert_allclose(found.contributions, predictor.contributions(y), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.shares, predictor.attribution(y), rtol=1e-9, atol=1e-12)
    given = predictor.given_others(y)
    assert (given is None) == (found.given is None)
    if given is not None:
        for one, other in zip(found.given, given, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_reading_that_comes_when_it_was_expected_leaves_the_next_law(blocks):
    train, _, calibration, test = blocks
    predictor = JointPredictor(VARFilter()).fit(train).calibrate(calibration)
    assert predictor.follows_clock
    before, ahead, usual = predictor.predict().center, predictor._pending, int(test.timestamps[0])
    predictor.expect(usual)
    assert predictor._pending is ahead
    predictor.expect(usual + 6 * 3600)
    assert predictor._pending is None
    predictor.expect(usual)
    np.testing.assert_array_equal(predictor.predict().center, before)


def test_neighbourhoods_of_a_row_that_lacks_its_last_sensor(blocks):
    train, _, calibration, test = blocks
    predictor = predictor_for("kalman").fit(train).calibrate(calibration)
    y = test.values[0].copy()
    y[-1] = np.nan
    found = predictor.neighbourhoods(y)
    assert sum(one.share for one in found) == pytest.approx(predictor.attribution(y).sum())


def test_of_an_infinite_score_a_sensor_at_its_mean_has_no_share(blocks):
    train, _, calibration, _ = blocks
    predictor = JointPredictor(GraphLGSSM(adjacency=np.zeros((8, 8)))).fit(train).calibrate(calibration)
    y = predictor.predict().center.copy()
    y[2] += 1.0
    shares = predictor.explained(y, math.inf).shares
    assert shares[2] == math.inf and (np.delete(shares, 2) == 0.0).all()


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("gaps", [(), (1, 4)])
def test_factors_are_explained_as_their_matrix_is(rank, gaps):
    rng = np.random.default_rng(rank)
    law = LowRankLaw(rng.normal(size=6), 0.2 + rng.random(6), rng.normal(size=(6, rank)))
    y, asked = 3.0 * rng.normal(size=6), SimpleNamespace(score=Mahalanobis())
    y[list(gaps)] = np.nan
    score = float(law.mahalanobis(y))
    by_factors, by_matrix = (explained(asked, one, y, score) for one in (law, DenseLaw(law.mean, law.dense())))
    for mine, theirs in zip((*by_factors[:2], *by_factors.given), (*by_matrix[:2], *by_matrix.given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
