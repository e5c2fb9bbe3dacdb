"""After `kill -9` the service holds exactly what it acknowledged, and goes on to the same bits."""

import pytest

pytest.importorskip("fastapi")

from kills import killed_under_load

from jointset.methods import load_predictor


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_the_rest_is_bit_equal(model, tmp_path):
    found = killed_under_load(model, tmp_path, load_predictor(model).sensors, kills=20, longest=0.1)
    assert found.acknowledged > 20
    assert found._replace(acknowledged=0) == (20, 0, 0, 0, 0, 0, True, True)
