"""The oracle filter on GRSSF: one set for all steps covers as often as moving sums of chi-squares say."""

import numpy as np
from scipy.stats import chi2, kstest

from jointset import GraphLGSSM, JointPredictor, Split, generate_grssf

SEEDS, N, H, KEPT, TESTS, WARMUP, ALPHA = 66, 8, 4, 160, 150, 50, 0.1


def hits_of_one(scores):
    """Test windows inside the radius of the calibration windows before them, from scores of steps (runs, steps)."""
    windows = np.lib.stride_tricks.sliding_window_view(scores, H, axis=1).sum(-1)
    calibration, test = np.sort(windows[:, : KEPT - H + 1], axis=1), windows[:, KEPT:]
    rank = int(np.floor((KEPT - H + 1 + H) * (1.0 - 1e-12 - ALPHA)))
    return (test <= calibration[:, rank, None]).sum(axis=1)


def test_simultaneous_coverage_lies_in_the_exact_band():
    """The hits of one run are those of moving sums of independent chi-squares; the band is that of all runs."""
    hits, scores = 0, []
    length = WARMUP - 1 + KEPT + TESTS + H - 1
    for seed in range(SEEDS):
        panel = generate_grssf("A", n=N, seed=seed, length=length).panel
        predictor = JointPredictor(GraphLGSSM(), calibration=Split(ALPHA), warmup=WARMUP, standardize=False)
        predictor.fit(panel).calibrate(panel[: WARMUP - 1 + KEPT], horizon=H)
        assert len(predictor.horizon.pools[-1].scores) == KEPT - H + 1
        ahead = predictor.run(panel[WARMUP - 1 + KEPT :], regions=False).ahead
        whole = ahead.score[:TESTS, -1]
        hits += int((whole <= ahead.radius[:TESTS, -1]).sum())
        scores.append(whole[::H])  # windows that do not overlap are independent
    draws = np.random.default_rng(0).chisquare(N, (20_000, KEPT + TESTS + H - 1))
    one = hits_of_one(draws)
    mean, sd = SEEDS * one.mean(), np.sqrt(SEEDS) * one.std()
    assert mean - 3.1 * sd <= hits <= mean + 3.1 * sd
    assert 0.895 < one.mean() / TESTS < 0.915  # the rank for overlapping windows keeps the promise
    assert kstest(np.concatenate(scores), chi2(N * H).cdf).pvalue > 0.01
