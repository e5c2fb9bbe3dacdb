"""The oracle filter on GRSSF track A: exact conformal coverage and chi-square scores."""

import numpy as np
import pytest
from scipy.stats import betabinom, chi2, kstest

from jointset import GraphLGSSM, JointPredictor, Split, generate_grssf

SEEDS, KEPT, TESTS, WARMUP, ALPHA = 80, 199, 200, 50, 0.1


@pytest.fixture(scope="module")
def runs():
    """Short independent runs: 199 kept calibration scores and 200 test steps each."""
    length = WARMUP - 1 + KEPT + TESTS
    out = []
    for seed in range(SEEDS):
        panel = generate_grssf("A", n=30, seed=seed, length=length).panel
        predictor = JointPredictor(GraphLGSSM(), calibration=Split(ALPHA), warmup=WARMUP, standardize=False)
        predictor.fit(panel).calibrate(panel[:-TESTS])
        assert predictor.n_calibration == KEPT
        out.append(predictor.run(panel[-TESTS:], regions=False))
    return out


def test_joint_coverage_lies_in_the_exact_band(runs):
    """Test hits of one run are beta-binomial(200, k, m + 1 - k); their sum over runs is the convolution."""
    k = int(np.ceil((KEPT + 1) * (1 - ALPHA) - 1e-9))
    pmf = betabinom(TESTS, k, KEPT + 1 - k).pmf(np.arange(TESTS + 1))
    size = SEEDS * TESTS + 1
    total = np.fft.irfft(np.fft.rfft(pmf, 2 * size) ** SEEDS, 2 * size)[:size]
    cdf = np.cumsum(np.maximum(total, 0.0))
    low, high = np.searchsorted(cdf, 0.001), np.searchsorted(cdf, 0.999)
    hits = sum(int(run.inside.sum()) for run in runs)
    assert low <= hits <= high
    assert high - low < 0.03 * size  # three per cent of coverage: a biased radius does not fit in


def test_squared_scores_are_chi_square(runs):
    scores = np.concatenate([run.score for run in runs])
    assert kstest(scores, chi2(30).cdf).pvalue > 0.01
    counts, _ = np.histogram(scores, chi2(30).ppf(np.linspace(0, 1, 21)))
    statistic = np.sum((counts - len(scores) / 20) ** 2) / (len(scores) / 20)
    assert statistic < chi2(19).ppf(0.99)


def test_scores_are_uncorrelated_in_time(runs):
    """Oracle innovations are independent, so neighbouring scores are too."""
    pairs = np.concatenate([np.stack([run.score[:-1], run.score[1:]]) for run in runs], axis=1)
    assert abs(np.corrcoef(pairs)[0, 1]) < 4 / np.sqrt(pairs.shape[1])
