"""Spectrum and trace ratio: equal to what is known of the covariances."""

import numpy as np
import pytest

from jointset import GraphLGSSM, InputError, generate_grssf
from jointset.audits.spectrum import covariance_spectrum
from jointset.audits.trace_ratio import trace_ratio
from jointset.laws import DenseLaw, LowRankLaw


@pytest.fixture
def low_rank():
    rng = np.random.default_rng(3)
    return LowRankLaw(np.zeros((7, 5)), rng.uniform(0.5, 2.0, (7, 5)), rng.standard_normal((7, 5, 2)))


def test_low_rank_and_dense_laws_have_the_same_spectrum(low_rank):
    a = covariance_spectrum([low_rank], floor=0.1)
    b = covariance_spectrum([DenseLaw(low_rank.mean, low_rank.dense())], floor=0.1)
    np.testing.assert_allclose(a.condition, b.condition)
    np.testing.assert_allclose(a.median, b.median)
    assert a.margin == pytest.approx(10 * a.smallest.min()) and pytest.approx(a.smallest.min() ** -0.5) == a.M_G
    # diag(d) + L L' is at least diag(d): no eigenvalue below the smallest diagonal entry
    assert a.smallest.min() >= low_rank.diagonal.min() - 1e-12


def test_variances_at_the_floor_are_counted(low_rank):
    diagonal = low_rank.diagonal.copy()
    diagonal[0] = 2e-4
    found = covariance_spectrum([LowRankLaw(low_rank.mean, diagonal, low_rank.factor)], floor=1e-4)
    assert found.near_floor == pytest.approx(1 / 7)


def test_the_linear_filter_has_one_covariance_with_the_closed_form_spectrum():
    panel = generate_grssf("A", n=9, seed=1, length=200).panel
    f = GraphLGSSM().fit(panel)
    laws, _ = f.run(panel.values, f.start())
    found = covariance_spectrum([laws[:100], laws[100:]], floor=f.sigma_r**2)
    assert len(found.smallest) == 1
    np.testing.assert_allclose(found.median, np.sort(f.steady.prior + 1.0))
    assert found.margin > 1  # P^- + R lies above R


def test_the_true_filter_predicts_its_own_errors():
    panel = generate_grssf("A", n=20, seed=0, length=8000).panel
    f = GraphLGSSM().fit(panel)
    laws, _ = f.run(panel.values, f.start())
    found = trace_ratio(laws.mean, laws.variance, panel.values)
    assert found.ratio == pytest.approx(1.0, abs=0.01) and found.ratio * found.inverse == pytest.approx(1.0)


def test_missing_readings_count_on_neither_side():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((2000, 3))
    y[:1000, 1] = np.nan
    found = trace_ratio(np.zeros_like(y), np.broadcast_to([1.0, 4.0, 1.0], y.shape), y)
    assert found.sensors == pytest.approx([1.0, 4.0, 1.0], rel=0.15)
    with pytest.raises(InputError, match="no reading"):
        trace_ratio(np.zeros_like(y), np.ones_like(y), np.where([True, False, False], np.nan, y))
