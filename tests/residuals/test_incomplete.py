"""Residuals with gaps made complete: what was read stays, the rest keeps spread and correlation, and refusals name."""

import numpy as np
import pytest

from jointset.errors import InputError
from jointset.residuals.incomplete import complete_residuals

S = np.array([[1.0, 0.8, 0.3], [0.8, 2.0, 0.5], [0.3, 0.5, 0.5]])


def with_gaps(rows, share, seed=0):
    rng = np.random.default_rng(seed)
    E = rng.multivariate_normal(np.zeros(3), S, rows)
    return np.where(rng.random(E.shape) < share, np.nan, E)


@pytest.mark.parametrize("rows", [6000, 60])  # many complete rows to draw from, and fewer than 30
def test_the_covariance_is_that_of_the_whole(rows):
    E = with_gaps(rows, 0.3)
    found = complete_residuals(E, "rows")
    kept = E[~np.isnan(E).all(axis=1)]
    np.testing.assert_allclose(found[~np.isnan(kept)], kept[~np.isnan(kept)], rtol=1e-9)
    assert not np.isnan(found).any()
    np.testing.assert_allclose(np.cov(found.T), S, atol=8.0 / np.sqrt(rows))
    assert np.array_equal(found, complete_residuals(E, "rows"))
    assert not np.array_equal(found, complete_residuals(E, "rows", seed=1))


def test_thirty_complete_rows_are_drawn_from_and_fewer_are_not():
    E = np.random.default_rng(0).choice([-1.0, 1.0], (61, 2))  # no normal law: two values alone
    E[:31, 0] = np.nan
    drawn = complete_residuals(E, "rows")[:31, 0]  # 30 rows are complete, each has one of four forms
    assert len(np.unique(np.round(drawn, 9))) <= 8
    E[31, 0] = np.nan
    assert len(np.unique(np.round(complete_residuals(E, "rows")[:32, 0], 9))) == 32


def test_a_sensor_with_one_reading_is_named():
    E = with_gaps(50, 0.0)
    E[1:, 1] = np.nan
    with pytest.raises(InputError, match="rows: fewer than two readings of 'b': leave"):
        complete_residuals(E, "rows", ("a", "b", "c"))
    with pytest.raises(InputError, match="fewer than two readings of 1 sensors"):
        complete_residuals(E, "rows")
    E[1, 1] = 2.0
    assert not np.isnan(complete_residuals(E, "rows", ("a", "b", "c"))).any()
