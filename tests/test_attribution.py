"""Shares add up and are Euler's; the sensor or neighbourhood that was moved is named first."""

import io
import json

import numpy as np
import pytest

from jointset import GraphLGSSM, JointPredictor, Panel, generate_grssf
from jointset.filters.static import StaticFilter
from jointset.inputs.graph_edges import closed_neighbourhoods, edges_of
from jointset.laws import DenseLaw, LowRankLaw
from jointset.methods import load_predictor, predictor_for
from jointset.scores import BlockMaximum, Mahalanobis, MaxStudentised, RootMahalanobis
from jointset.streaming import Stream, advance

RNG = np.random.default_rng(0)
FACTOR, DIAGONAL = RNG.normal(size=(6, 2)), RNG.uniform(0.5, 2.0, 6)
LAWS = {
    "dense": DenseLaw(RNG.normal(size=6), np.diag(DIAGONAL) + FACTOR @ FACTOR.T),
    "low rank": LowRankLaw(RNG.normal(size=6), DIAGONAL, FACTOR),
}
SCORES = {
    "distance": Mahalanobis(),
    "root": RootMahalanobis(),
    "box": MaxStudentised(),
    "blocks": BlockMaximum((np.arange(2), np.arange(2, 6))),
}


def euler(score, law, y, h=1e-6):
    """e_i df/de_i over their sum, the slopes by central differences."""
    e, slopes = np.nan_to_num(y - law.mean), np.zeros(len(y))
    for i in np.flatnonzero(~np.isnan(y)):
        step = h * np.eye(len(y))[i]
        slopes[i] = (score.score(law, y + step) - score.score(law, y - step)) / (2 * h)
    return e * slopes / (e @ slopes)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("gaps", [(), (1, 4)], ids=["complete", "with gaps"])
def test_shares_are_those_of_euler(law, score, gaps):
    y = LAWS[law].mean + np.random.default_rng(3).normal(size=6)
    y[list(gaps)] = np.nan
    shares = SCORES[score].shares(LAWS[law], y)
    np.testing.assert_allclose(shares, euler(SCORES[score], LAWS[law], y), atol=1e-6)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares[list(gaps)] == 0).all()


@pytest.mark.parametrize("method", ["factor", "group", "spectral", "per-group-factor", "copula", "multidim-spci"])
@pytest.mark.parametrize("gaps", [(), (0, 5)], ids=["complete", "with gaps"])
def test_sets_with_several_parts_divide_as_euler_says(method, gaps):
    panel = generate_grssf("B", n=10, seed=2, length=900).panel
    predictor = predictor_for(method).fit(panel[:500]).calibrate(panel[500:])
    law, score, y = predictor._ahead()[0], predictor.score, panel.values[-1] + 0.5
    y[list(gaps)] = np.nan
    shares = np.atleast_2d(score.shares(law, y))
    for k, share in enumerate(shares):
        part = type("Part", (), {"score": staticmethod(lambda law, y, k=k: np.atleast_1d(score.score(law, y))[k])})
        if part.score(law, y) > 1.0 or method not in (
            "copula",
            "multidim-spci",
        ):  # own sets cut their score at the edge
            np.testing.assert_allclose(share, euler(part, law, y, 1e-5), atol=1e-4)


def test_shares_do_not_depend_on_the_units():
    law, scale = LAWS["dense"], np.array([1.0, 1e3, 1e-3, 7.0, 0.1, 40.0])
    y = law.mean + np.random.default_rng(4).normal(size=6)
    in_units = Mahalanobis().shares(law.rescale(np.full(6, 5.0), scale), 5.0 + scale * y)
    np.testing.assert_allclose(in_units, Mahalanobis().shares(law, y), rtol=1e-9)


# ---------------------------------------------------------------------- neighbourhoods


def test_neighbourhoods_are_listed_once_in_either_direction():
    A = np.zeros((4, 4))
    A[0, 1] = A[2, 1] = 0.5
    A[3, 3] = 9.0
    found = [(i, places.tolist()) for i, places in closed_neighbourhoods(edges_of(A), 4)]
    assert found == [(0, [0, 1]), (1, [0, 1, 2]), (2, [1, 2]), (3, [3])]
    assert len(closed_neighbourhoods(None, 3)) == 3
    np.testing.assert_array_equal(edges_of(A).adjacency(4), A - np.diag(A.diagonal()))


@pytest.mark.parametrize("lost", [(), (2, 7)], ids=["complete", "with gaps"])
def test_a_sensor_alone_drops_what_it_contributes(lost):
    panel = generate_grssf("A", n=12, length=600).panel
    for filter_ in (GraphLGSSM(), StaticFilter()):
        alone = JointPredictor(filter_).fit(Panel(panel.values[:400], panel.sensors)).calibrate(panel.values[400:])
        y = panel.values[-1].copy()
        y[list(lost)] = np.nan
        drops = {one.sensor: one.drop for one in alone.neighbourhoods(y)}
        expected = dict(zip(panel.sensors, alone.contributions(y), strict=True))
        assert drops == pytest.approx({name: expected[name] for name in drops})
        assert len(drops) == 12 - len(lost)
        assert list(drops.values()) == sorted(drops.values(), reverse=True)


def test_one_factor_may_have_moved_a_neighbourhood():
    """The drop is the most that moving the sensors together, each by its sd, can take off the distance."""
    panel = generate_grssf("B", n=12, length=900).panel
    predictor = predictor_for("ewma").fit(panel[:500]).calibrate(panel[500:])
    y, law = panel.values[-1].copy(), predictor._ahead()[0]
    y[3] = np.nan
    for one in predictor.neighbourhoods(y):
        u = np.where(np.isin(panel.sensors, one.sensors), np.sqrt(law.variance), 0.0)
        before, here, after = (float(law.mahalanobis(y - step * u)) for step in (-1.0, 0.0, 1.0))
        lowest = here - (after - before) ** 2 / (8.0 * (after + before - 2.0 * here))  # of the parabola
        assert here - lowest == pytest.approx(one.drop, rel=1e-6)


@pytest.fixture(scope="module")
def correlated():
    """Neighbours on a line that go together, and a predictor that knows."""
    rng, n = np.random.default_rng(5), 24
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    A = (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1).astype(float)
    values = rng.normal(size=(4000, n)) @ np.linalg.cholesky(covariance).T
    panel = Panel(values, [f"s{i}" for i in range(n)], adjacency=A)
    return predictor_for("static").fit(panel[:2500]).calibrate(panel[2500:3500]), panel[3500:]


def test_the_right_one_is_named_in_injected_faults(correlated):
    predictor, test = correlated
    rng, hits, around = np.random.default_rng(6), 0, 0
    for y in test.values[:200]:
        i, sign = int(rng.integers(len(y))), rng.choice([-3.0, 3.0])
        one, many = y.copy(), y.copy()
        one[i] += sign
        hits += int(predictor.contributions(one).argmax()) == i and int(predictor.attribution(one).argmax()) == i
        many[max(i - 1, 0) : i + 2] += sign
        around += predictor.neighbourhoods(many)[0].sensor == test.sensors[i]
    assert hits >= 190
    assert around >= 160


# ---------------------------------------------------------------------- models and streams


def test_a_model_keeps_its_graph(correlated, tmp_path):
    predictor, test = correlated
    predictor.save(tmp_path / "model")
    loaded = load_predictor(tmp_path / "model")
    assert loaded.neighbourhoods(test.values[0]) == predictor.neighbourhoods(test.values[0])
    assert len(loaded.neighbourhoods(test.values[0])[0].sensors) in (2, 3)


def test_a_stream_tells_shares_and_the_neighbourhood_of_a_row_outside(correlated):
    predictor, test = correlated
    y = test.values[0].copy()
    assert "neighbourhood" not in advance(predictor, np.array(predictor.predict().center))[0]
    y[4:7] += 9.0
    line = json.dumps(dict(zip(test.sensors, y.tolist(), strict=True)))
    (answer,) = Stream(predictor, top=24).answers(io.StringIO(line))
    assert answer["neighbourhood"]["sensors"] == ["s4", "s5", "s6"]
    assert sum(entry["share"] for entry in answer["top"]) == pytest.approx(answer["score"])
