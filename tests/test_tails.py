"""Where the tails of a law come from, who reports them and what they are worth."""

import json

import numpy as np
import pytest

from jointset import GraphLGSSM, JointPredictor, PooledFilter, generate_grssf
from jointset.algebra.law_tails import NORMAL, Tails
from jointset.audits.pit import pit
from jointset.filters.quick import quick
from jointset.laws import LowRankLaw
from jointset.next_set import next_set

TAILS = Tails(4.0, 0.7)


def test_a_pool_finds_the_tails_of_its_rows():
    """Noise stretched by one factor a row leaves the residuals of any filter a Student-t."""
    rng, panel = np.random.default_rng(1), generate_grssf("A", n=8, length=6000).panel
    freedom = []
    for df in (3.0, None):
        stretch = 1.0 if df is None else np.sqrt(df / rng.chisquare(df, 6000))[:, None]
        rows = panel.with_values(stretch * rng.standard_normal((6000, 8)))
        pool = PooledFilter([GraphLGSSM(rho=0.1), GraphLGSSM(rho=0.3)]).fit(rows[:4000])
        laws, y = pool.run(rows.values[4000:], pool.start())[0], rows.values[4000:]
        freedom.append(laws.degrees_of_freedom)
        gain = (laws.log_density(y) - laws.with_tails(NORMAL).log_density(y)).mean() / 8
        assert gain > (0.1 if df else -0.005)
    assert 2.5 <= freedom[0] <= 5.0 and freedom[1] >= 50.0


def test_tails_are_reported_saved_and_the_same_step_by_step(tmp_path):
    panel = generate_grssf("C", n=8, length=1600).panel
    predictor = JointPredictor(quick()).fit(panel[:1000]).calibrate(panel[1000:1400])
    tails = predictor.filter.law(predictor.filter_state).tails
    assert tails.heavy and tails == predictor.filter.run(panel.values[:5], predictor.filter.start())[0].tails
    assert next_set(predictor)["degrees_of_freedom"] == tails.freedom
    assert f"tails of a Student-t with {tails.freedom:g} degrees of freedom" in repr(predictor)
    predictor.save(tmp_path / "model")
    loaded = JointPredictor.load(tmp_path / "model")
    y = panel.values[1400]
    assert loaded.predict().law.log_density(y) == predictor.predict().law.log_density(y)
    plain = JointPredictor(GraphLGSSM()).fit(panel[:1000]).calibrate(panel[1000:1400])
    assert "degrees_of_freedom" not in json.dumps(list(next_set(plain))) and "tails" not in repr(plain)


def test_pit_values_are_those_of_the_tails():
    """Readings of a Student-t are uniform under its tails and have heavy tails under the normal law."""
    rng = np.random.default_rng(0)
    y = np.sqrt(0.7) * rng.standard_t(4.0, size=(4000, 2))
    zero, one = np.zeros_like(y), np.ones_like(y)
    assert pit(zero, one, y, tails=TAILS).passed.all()
    assert not pit(zero, 1.4 * one, y).passed.any() and pit(zero, 1.4 * one, y).shape == ("heavy tails",) * 2


def test_a_single_member_has_the_tails_it_learned():
    """Those of its likelihood: the variance of the law is its matrix."""
    pytest.importorskip("torch")
    from jointset import NodeNet

    panel = generate_grssf("A", n=8, length=500).panel
    net = NodeNet(identities=(False,), steps=3).fit(panel)
    law = net.run(panel.values[:4], net.start())[0]
    assert isinstance(law, LowRankLaw) and law.degrees_of_freedom == pytest.approx(net.degrees_of_freedom[0])
    assert law.tails.variance == pytest.approx(1.0)
