"""Relational quantile regression: its quantiles, its relations, and what it covers."""

import numpy as np
import pytest
from scipy.optimize import linprog

from jointset import Panel
from jointset.published import CoRel
from jointset.published.corel import CoRelRule, moving, quantile_regression, related


def pinball(X, y, q, weights):
    e = y - X @ weights
    return float(np.mean(np.maximum(q * e, (q - 1) * e)))


@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_the_regression_reaches_the_loss_of_the_linear_program(q):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.normal(size=(300, 2))])
    y = X @ [1.0, 2.0, -1.0] + rng.standard_t(3, size=300) * (1 + 0.3 * np.abs(X[:, 1]))
    costs = np.concatenate([np.zeros(6), np.full(300, q), np.full(300, 1 - q)])
    exact = linprog(costs, A_eq=np.hstack([X, -X, np.eye(300), -np.eye(300)]), b_eq=y).x[:6]
    best = pinball(X, y, q, exact[:3] - exact[3:])
    assert best <= pinball(X, y, q, quantile_regression(X, y, q)) <= 1.002 * best


def leader_and_follower(rows):
    """Sensor 1 is as loud as sensor 0 was a row before, the others go their own way."""
    rng = np.random.default_rng(1)
    loud = np.where(rng.random(rows) < 0.3, 5.0, 1.0)
    E = rng.normal(size=(rows, 5))
    E[:, 0] *= loud
    E[1:, 1] *= loud[:-1]
    return E, loud


def test_a_sensor_listens_to_the_one_it_follows():
    E, loud = leader_and_follower(4000)
    assert related(np.abs(E))[1, 0] == 0
    rule = CoRelRule()
    (lower, upper), _ = rule.radii(rule.start(E[:3000]), E[3000:])
    width, after = (upper - lower)[1:1000], loud[3000:3999] > 1
    calm, told = np.abs(E[3000:3999, 0]) < 1, np.abs(E[3000:3999, 0]) > 4
    assert after[told].mean() > 0.9 > 0.5 > after[calm].mean()
    assert np.median(width[told, 1]) > 2 * np.median(width[calm, 1])
    assert np.median(width[told, 2]) == pytest.approx(np.median(width[calm, 2]), rel=0.2)


def test_averages_before_a_row_do_not_know_it():
    sizes = np.abs(np.random.default_rng(0).normal(size=(20, 3)))
    other = sizes.copy()
    other[10] += 5.0
    one, two = (moving(part, np.ones((2, 3))) for part in (sizes, other))
    assert np.array_equal(one[:11], two[:11]) and (one[11] != two[11]).all()


@pytest.mark.parametrize(("bonferroni", "marginal"), [(False, 0.90), (True, 0.98)])
def test_each_interval_holds_by_itself(bonferroni, marginal):
    E, _ = leader_and_follower(6000)
    panel = Panel(E, list("abcde"))
    run = CoRel(bonferroni=bonferroni).fit(panel[:1000]).calibrate(panel[1000:4000]).run(panel[4000:])
    assert run.marginal == pytest.approx(marginal, abs=0.012)
    assert (run.joint < 0.75) != bonferroni
