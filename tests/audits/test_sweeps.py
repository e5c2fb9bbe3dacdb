"""Sweeps: each setting gives what a predictor calibrated with that setting gives."""

import numpy as np
import pytest
from scipy.signal import lfilter

from jointset import GraphLGSSM, InputError, JointPredictor, generate_grssf
from jointset.audits.collect import audit_cell
from jointset.audits.sweeps import SIZES, rank_sweep, size_sweep, warmup_sweep
from jointset.datasets.cells import cell
from jointset.experiments.rows import fitted_row
from jointset.scores import MaxStudentised


@pytest.fixture(scope="module")
def blocks():
    return generate_grssf("A", n=8, seed=2, length=3000).panel.split()


@pytest.mark.parametrize("score", [None, MaxStudentised()])
@pytest.mark.parametrize("gaps", [False, True])
def test_warm_up_sweep_equals_calibrating_with_each_warm_up(blocks, score, gaps):
    train, _, calibration, test = blocks
    if gaps:
        holes = calibration.values.copy()
        holes[10:40] = np.nan
        calibration = calibration.with_values(holes)
    predictor = JointPredictor(GraphLGSSM(), score).fit(train).calibrate(calibration)
    before = predictor.copy()
    found = warmup_sweep(predictor, calibration, test)
    assert found.settings.tolist() == [1, 25, 50, 100, 200]
    for i, t0 in enumerate(found.settings.tolist()):
        other = JointPredictor(GraphLGSSM(), score, warmup=t0).fit(train).calibrate(calibration)
        run = other.run(test, regions=False)
        assert found.radius[i] == pytest.approx(run.radius[0]) and found.joint[i] == pytest.approx(run.joint)
        assert found.width[i] == pytest.approx(run.width.mean())
        assert found.width_full[i] == pytest.approx(run.width_full.mean())
        assert found.log_volume[i] == pytest.approx(run.log_volume.mean())
    assert predictor.filter_state is before.filter_state and predictor.calibration is before.calibration


def test_warm_ups_longer_than_the_block_are_left_out(blocks):
    train, _, calibration, test = blocks
    predictor = JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration)
    assert warmup_sweep(predictor, calibration[:120], test).settings.tolist() == [1, 25, 50, 100]
    with pytest.raises(InputError, match="too few for a warm-up sweep"):
        warmup_sweep(predictor, calibration[:5], test)


def test_rank_sweep_trains_a_filter_of_each_rank():
    pytest.importorskip("torch")
    network = cell("grssf-a-30")
    found = rank_sweep("gnf-node", network, ranks=(0, 2), training={"steps": 5})
    assert found.settings.tolist() == [0, 2]
    alone = fitted_row("gnf-node", network, training={"steps": 5, "rank": 2})
    assert alone.filter.rank == 2
    assert found.joint[1] == alone.run(network.test, regions=False).joint


# ---------------------------------------------------------------------- length of the calibration


def scores_of(rho, steps, seed):
    """Chi-square scores of a Gaussian autoregression."""
    noise = np.random.default_rng(seed).normal(size=steps + 500)
    return lfilter([np.sqrt(1.0 - rho**2)], [1.0, -rho], noise)[500:] ** 2


def test_the_error_of_a_length_is_that_of_its_windows():
    scores = scores_of(0.5, 400, 0)
    found = size_sweep(scores, 2.7, 0.1, (50, 100))
    hits = (scores <= 2.7).astype(float)
    for m, error, share in zip(found.sizes, found.error, found.within, strict=True):
        shares = np.array([hits[i : i + m].mean() for i in range(len(hits) - m + 1)])
        assert error == pytest.approx(np.sqrt(np.mean((shares - hits.mean()) ** 2)))
        assert share == np.mean(np.abs(shares - hits.mean()) <= found.bernstein[found.sizes.tolist().index(m)])


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.97])
def test_errors_fall_as_the_root_of_the_effective_size(rho):
    """Mean over series: exponent -1/2, and the size that tau_int says; Bernstein's band is never left by more."""
    found = [size_sweep(scores_of(rho, 6000, seed), 2.7, 0.1) for seed in range(40)]
    assert np.mean([one.exponent for one in found]) == pytest.approx(-0.5, abs=0.07)
    assert np.mean([one.ratio for one in found]) == pytest.approx(1.0, abs=0.1)
    assert np.mean([one.within.min() for one in found]) > 0.9
    assert all(one.sizes.tolist() == [m for m in SIZES if 1.5 * m <= 6000] for one in found)


def test_scores_that_change_over_time_err_more_than_their_length_says():
    scores = scores_of(0.0, 6000, 0) * np.linspace(0.3, 2.5, 6000)
    found = size_sweep(scores, 2.7, 0.1)
    assert found.exponent > -0.25 and found.ratio > 3


def test_a_series_too_short_or_without_misses_is_refused():
    with pytest.raises(InputError, match="300 scores are too few for a sweep over their number: 375 are needed"):
        size_sweep(scores_of(0.0, 300, 0), 2.7, 0.1)
    with pytest.raises(InputError, match="all hits or none"):
        size_sweep(scores_of(0.0, 600, 0), 1e9, 0.1)


def test_it_is_an_audit_by_name():
    network = cell("grssf-a-30")
    found = audit_cell("kalman", network, audits=["m_sweep"])["m_sweep"]
    assert found["m"] == [125, 250, 500, 1000] and found["scores"] == 751 + 800
    predictor = fitted_row("kalman", network)
    scores = np.concatenate([predictor.calibration_scores, predictor.copy().run(network.test).score])
    assert found["error"] == pytest.approx(size_sweep(scores, found["threshold"], 0.1).error.tolist())
    assert found["m_eff"][-1] == pytest.approx(1000 / found["tau_int"])
    assert found["verdict"].endswith("as it should be")
    changed = audit_cell("kalman", cell("grssf-e-30"), audits=["m_sweep"])["m_sweep"]
    assert changed["verdict"].endswith("a longer calibration helps less than its length says")
