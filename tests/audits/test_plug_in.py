"""Plug-in against train-fit: the same row with another pilot block, and the cost that theory predicts."""

import numpy as np
import pytest
from scipy.stats import chi2

from jointset.audits.plug_in import plug_in
from jointset.datasets.cells import cell
from jointset.experiments.rows import run_row


@pytest.fixture(scope="module")
def network():
    return cell("grssf-a-30")


def test_it_is_the_static_row_of_each_pilot_block(network):
    found = plug_in(network)
    assert found.pilots == ("calibration", "train", "validation")
    run = run_row("static", network, pilot="train")
    assert found.joint[1] == run.joint and found.width[1] == pytest.approx(float(np.mean(run.width)))
    assert found.joint_difference == found.joint[0] - found.joint[1]


def test_reusing_the_block_costs_what_the_dimension_over_its_length_says(network):
    """Scores of rows that made the covariance are smaller by about (1 - N/m) / (1 + N/m) than fresh ones."""
    found = plug_in(network)
    m, n = len(network.calibration) - 49, 30
    predicted = chi2.cdf(chi2.ppf(0.9, n) * (1 - n / m) / (1 + n / m), n)
    assert found.joint[0] == pytest.approx(predicted, abs=0.04)
    assert found.joint[1] == pytest.approx(0.9, abs=0.04)


@pytest.mark.filterwarnings("error")
def test_it_does_not_warn_of_what_it_asks(network):
    assert plug_in(network).joint_difference < 0


def test_protocol_table_compares_with_its_pilot_block():
    assert plug_in(cell("grssf-a-30", "table")).pilots == ("calibration", "train", "pilot")
