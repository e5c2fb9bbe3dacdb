"""Sweeps: each setting gives what a predictor calibrated with that setting gives."""

import numpy as np
import pytest

from jointset import GraphLGSSM, InputError, JointPredictor, generate_grssf
from jointset.audits.sweeps import rank_sweep, warmup_sweep
from jointset.baselines.rows import fitted_row
from jointset.datasets.cells import cell
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
