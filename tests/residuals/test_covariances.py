"""Covariances that move: rank-one updates against the literal recursions, shrinkage against its definition."""

import numpy as np
import pytest

from jointset.contracts import Pilot
from jointset.residuals.conditional import Local
from jointset.residuals.shapes import EWMA, Rolling
from jointset.residuals.shrinkage import schaefer_strimmer, second_moment, to_diagonal


@pytest.fixture(scope="module")
def residuals():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(900, 12)) @ rng.normal(size=(12, 12))
    E[500:520] += 30.0 * rng.normal(size=(20, 1))  # an outage: all sensors jump together
    E[[410, 455, 700], 3] = np.nan
    E[[600, 601, 602, 840], 2:9] = np.nan
    E[[650, 651]] = np.nan
    return E


def pilot(E, means=None):
    return Pilot(E, E if means is None else means, None, None, None, "test")


def literal(E, start, step, matrix):
    """Scores, variances and log-determinants with a factorisation a step."""
    state, out = start, []
    for e in E:
        S = matrix(state)
        whole = not np.isnan(e).any()
        out.append((e @ np.linalg.solve(S, e) if whole else np.nan, np.diag(S), np.linalg.slogdet(S)[1]))
        state = state if np.isnan(e).all() else step(state, e)
    scores, variances, log_dets = zip(*out, strict=True)
    return np.array(scores), np.array(variances), np.array(log_dets)


def moment(S, e):
    """Expectation of e e' given what was read of e under N(0, S): regression on the rest, and what it leaves over."""
    gap = np.isnan(e)
    if not gap.any():
        return np.outer(e, e)
    slope = S[np.ix_(gap, ~gap)] @ np.linalg.inv(S[np.ix_(~gap, ~gap)])
    mean = np.where(gap, 0.0, e)
    mean[gap] = slope @ e[~gap]
    left = np.zeros(S.shape)
    left[np.ix_(gap, gap)] = S[np.ix_(gap, gap)] - slope @ S[np.ix_(~gap, gap)]
    return np.outer(mean, mean) + left


def compare(law, E, expected, rtol):
    scores, variances, log_dets = expected
    whole = ~np.isnan(scores)
    np.testing.assert_allclose(law.mahalanobis(E)[whole], scores[whole], rtol=rtol)
    np.testing.assert_allclose(law.variance, variances, rtol=rtol)
    np.testing.assert_allclose(law.log_det, log_dets, atol=max(rtol, 1e-9) * 12)


@pytest.mark.parametrize("refresh", [1, 7, 128])
def test_ewma_is_its_recursion(residuals, refresh):
    shape = EWMA(half_life=50, jitter=0.0, refresh=refresh).fit(pilot(residuals[:400]))
    w, S = shape.decay, to_diagonal(second_moment(residuals[:400]), 0.05)
    for e in residuals[:400]:
        S = w * S + (1 - w) * np.outer(e, e)
    E = residuals[400:]
    law, _ = shape.run(E, np.zeros(E.shape), None, shape.start())
    expected = literal(E, S, lambda S, e: w * S + (1 - w) * moment(S, e), lambda S: S)
    compare(law, E, expected, 1e-8)


@pytest.mark.parametrize("refresh", [1, 40, 500])
def test_rolling_is_its_window_with_a_factorisation_a_step(residuals, refresh):
    shape = Rolling(window=60, jitter=0.0, refresh=refresh).fit(pilot(residuals[:400]))
    E = residuals[400:]
    law, _ = shape.run(E, np.zeros(E.shape), None, shape.start())
    compare(law, E, rolling_literal(residuals), 1e-8)


def rolling_literal(residuals, window=60):
    return literal(
        residuals[400:],
        residuals[400 - window : 400],
        lambda rows, e: np.vstack([rows[1:], filled(to_diagonal(rows.T @ rows / window, 0.05), e, rows[0])]),
        lambda rows: to_diagonal(rows.T @ rows / window, 0.05),
    )


def filled(S, e, leaving):
    """A row whose gaps take what is expected of them, plus what the leaving row differs from what was of its own."""
    gap = np.isnan(e)
    slope = S[np.ix_(gap, ~gap)] @ np.linalg.inv(S[np.ix_(~gap, ~gap)])
    out = e.copy()
    out[gap] = slope @ e[~gap] + leaving[gap] - slope @ leaving[~gap]
    return out


@pytest.mark.parametrize("glitch", [1e4, 1e8, 1e20])
def test_rolling_forgets_a_glitch_that_has_left_its_window(glitch):
    """To the last digits, also in a sensor that has been all but still since, and in one run as in many."""
    rng = np.random.default_rng(1)
    E = rng.normal(size=(900, 6)) @ rng.normal(size=(6, 6))
    E[500, 2] = glitch
    E[501:, 2] *= 1e-3
    shape = Rolling(window=60, refresh=40).fit(pilot(E[:400]))
    law, _ = shape.run(E[400:], np.zeros((500, 6)), None, shape.start())
    clean, _ = shape.run(np.delete(E, 500, axis=0)[400:], np.zeros((499, 6)), None, shape.start())
    np.testing.assert_allclose(law.variance[170:], clean.variance[169:], rtol=1e-6)
    np.testing.assert_allclose(law.log_det[170:], clean.log_det[169:], atol=1e-6)
    state, pieces = shape.start(), []
    for part in np.array_split(E[400:], 10):
        piece, state = shape.run(part, np.zeros(part.shape), None, state)
        pieces.append(piece.mahalanobis(part))
    np.testing.assert_allclose(law.mahalanobis(E[400:])[170:], np.concatenate(pieces)[170:], rtol=1e-6)


def unit_free_literal(E, start, window, shrink):
    """Scores, variances and log-determinants of E[start:], factorised in units in which all variances are one."""
    out = []
    for t in range(start, len(E)):
        unit = np.sqrt(np.mean(E[t - window : t] ** 2, axis=0))
        rows, e = E[t - window : t] / unit, E[t] / unit
        S = to_diagonal(rows.T @ rows / window, shrink)
        out.append((e @ np.linalg.solve(S, e), unit**2, np.linalg.slogdet(S)[1] + 2.0 * np.log(unit).sum()))
    scores, variances, log_dets = zip(*out, strict=True)
    return np.array(scores), np.array(variances), np.array(log_dets)


@pytest.mark.parametrize("glitch", [1e9, 1e30, 1e100])
@pytest.mark.parametrize("sensors", [[2], range(6)])
def test_rolling_is_its_window_through_a_glitch(glitch, sensors):
    """At the step of the glitch, while it is in the window and after it, however large it is."""
    rng = np.random.default_rng(8)
    E = 20.0 * rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
    E[150, sensors] *= glitch
    shape = Rolling(window=60, refresh=40, jitter=0.0).fit(pilot(E[:100]))
    law, _ = shape.run(E[100:], np.zeros((200, 6)), None, shape.start())
    scores, variances, log_dets = unit_free_literal(E, 100, 60, 0.05)
    np.testing.assert_allclose(law.mahalanobis(E[100:]), scores, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(law.variance, variances, rtol=1e-6)
    np.testing.assert_allclose(law.log_det, log_dets, atol=1e-6)


def test_rolling_scores_readings_other_than_its_own(residuals):
    shape = Rolling(window=60, refresh=40).fit(pilot(residuals[:400]))
    E = residuals[400:480]
    law, _ = shape.run(E, np.zeros(E.shape), None, shape.start())
    other = np.random.default_rng(5).normal(size=E.shape)
    expected = [law[t].mahalanobis(other[t]) for t in range(80)]
    np.testing.assert_allclose(law.mahalanobis(other), expected, rtol=1e-9)


def test_local_uses_the_nearest_moments():
    rng = np.random.default_rng(2)
    means, E = rng.normal(size=(300, 4)), rng.normal(size=(300, 4))
    shape = Local(k=20).fit(pilot(E, means))
    query = rng.normal(size=(5, 4))
    law, _ = shape.run(np.zeros((5, 4)), query, None, ())
    for t in range(5):
        near = np.argsort(((means - query[t]) ** 2).sum(axis=1))[:20]
        expected = to_diagonal(E[near].T @ E[near] / 20, 0.05) + shape.floor * np.eye(4)
        np.testing.assert_allclose(law.covariance.matrix[t], expected, rtol=1e-12)


def test_schaefer_strimmer_weight_is_the_literal_one():
    E = np.random.default_rng(3).normal(size=(40, 5)) @ np.random.default_rng(4).normal(size=(5, 5))
    E -= E.mean(axis=0)
    S, n = second_moment(E), len(E)
    products = E[:, :, None] * E[:, None, :]
    spread = n / (n - 1) ** 3 * ((products - products.mean(axis=0)) ** 2).sum(axis=0)
    off = ~np.eye(5, dtype=bool)
    weight = spread[off].sum() / (S[off] ** 2).sum()
    np.testing.assert_allclose(schaefer_strimmer(E), to_diagonal(S, weight))
