"""Moving covariances through rows with gaps: the fast paths give the numbers of the definition."""

import numpy as np
import pytest

from jointset.algebra.covariance import Covariance
from jointset.contracts import Pilot
from jointset.laws import DenseLaw
from jointset.residuals import gap_course
from jointset.residuals.incomplete import expected_moment
from jointset.residuals.shapes import EWMA, Rolling, UpdatedState

N, T = 6, 260


def residuals(kind):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(T, N)) @ np.random.default_rng(0).normal(size=(N, N))
    if kind == "random":
        rows[rng.random(rows.shape) < 0.2] = np.nan
    elif kind == "dead":
        rows[:, 2] = np.nan
    elif kind == "spells":
        rows[20, 1] = rows[30:45, 3] = rows[52, 0] = rows[100:110] = rows[110:112, 4] = np.nan
    elif kind == "far out":
        rows[50], rows[60] = 1e3 * rows[50], 1e3 * rows[60]
        rows[20:80:3, 1] = np.nan
    rows[5] = np.nan
    return rows


def fitted(shape):
    rows = np.random.default_rng(1).normal(size=(400, N)) @ np.random.default_rng(0).normal(size=(N, N))
    return shape.fit(Pilot(rows, np.zeros(rows.shape), None, None, 300, "row"))


def by_definition(shape, rows):
    """Covariances (T, N, N) before each row without jitter: what is to be expected of every row is added."""
    S, out = np.asarray(shape.covariance), []
    for row in rows:
        out.append(S)
        if not np.isnan(row).all():
            filled, unknown = expected_moment(S, row) if np.isnan(row).any() else (row, 0.0)
            S = shape.decay * S + (1.0 - shape.decay) * (np.outer(filled, filled) + unknown)
    return np.array(out)


@pytest.mark.parametrize("kind", ["random", "dead", "spells", "far out"])
@pytest.mark.parametrize("refresh", [128, 5])
def test_an_ewma_through_gaps_is_its_definition(kind, refresh):
    shape, rows = fitted(EWMA(jitter=1e-13, refresh=refresh)), residuals(kind)
    law, _ = shape.run(rows, np.zeros(rows.shape), None, shape.start())
    plain = DenseLaw(np.zeros(rows.shape), Covariance(by_definition(shape, rows)))
    others = np.random.default_rng(4).normal(size=rows.shape)
    for y in (rows, others, np.where(np.isnan(rows), 0.3, rows)):
        np.testing.assert_allclose(law.mahalanobis(y), plain.mahalanobis(y), rtol=1e-9)
    np.testing.assert_allclose(law.log_det, plain.log_det, atol=1e-9)
    np.testing.assert_allclose(law.variance, plain.variance, rtol=1e-9)
    np.testing.assert_allclose(law.covariance.matrix, plain.covariance.matrix, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", [EWMA(), Rolling(window=90, refresh=7)])
@pytest.mark.parametrize("kind", ["random", "dead", "spells"])
def test_stepping_through_gaps_is_running(shape, kind, monkeypatch):
    monkeypatch.setattr(gap_course, "NUMBERS", 40 * N)  # courses end within spells
    shape, rows, nothing = fitted(shape), residuals(kind)[:140], np.full((1, N), np.nan)
    law, _ = shape.run(rows, np.zeros(rows.shape), None, shape.start())
    state, stepped = shape.start(), []
    for row in rows[:, None]:
        one = shape.run(nothing, np.zeros((1, N)), None, state)[0][0]
        stepped.append([float(one.log_det), float(one.mahalanobis(row[0]))])
        state = shape.run(row, np.zeros((1, N)), None, state)[1]
    np.testing.assert_allclose(np.column_stack([law.log_det, law.mahalanobis(rows)]), stepped, rtol=1e-9)


def test_an_ewma_goes_on_from_the_state_of_an_older_model_which_kept_rows_without_a_reading():
    shape, rows = fitted(EWMA()), residuals("spells")[:8]
    _, state = shape.run(rows, np.zeros(rows.shape), None, shape.start())
    older = UpdatedState(np.asarray(shape.covariance), rows)
    later = residuals("random")[8:40]
    new, old = (shape.run(later, np.zeros(later.shape), None, one)[0] for one in (state, older))
    np.testing.assert_allclose(old.mahalanobis(later), new.mahalanobis(later), rtol=1e-12)


def test_rows_with_gaps_under_one_covariance_have_the_numbers_of_their_marginal_law():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(9, 20)), rng.normal(size=(300, 9))
    y[rng.random(y.shape) < rng.random((300, 1))] = np.nan
    shared = DenseLaw(np.ones(y.shape), Covariance(A @ A.T).rescale(np.linspace(0.5, 2.0, 9)))
    nll, contributions = shared.nll(y), shared.contributions(y)
    for t in np.flatnonzero(~np.isnan(y).all(axis=1)):
        seen = np.flatnonzero(~np.isnan(y[t]))
        marginal = shared[int(t)].select(seen)
        np.testing.assert_allclose(nll[t], marginal.nll(y[t, seen]), rtol=1e-10)
        np.testing.assert_allclose(contributions[t, seen], marginal.contributions(y[t, seen]), rtol=1e-9, atol=1e-12)
    assert np.isnan(nll[np.isnan(y).all(axis=1)]).all()
