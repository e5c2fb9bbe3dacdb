"""A snapshot goes on to the same bits, whatever the method."""

import numpy as np
import pytest

pytest.importorskip("fastapi")

from jointset.live.answers import answer_of
from jointset.live.formats import Whole
from jointset.live.standing import engine_for, of_parts, parts_of, start, taken
from jointset.methods import load_predictor, predictor_for
from jointset.storage import from_bytes, to_bytes


@pytest.mark.parametrize("name", ["kalman:box", "quick", "factor", "rolling+auto", "ewma+agaci", "copula", "spci"])
def test_a_snapshot_between_rows_changes_no_bit(name, panel, tmp_path):
    train, _, calibration, test = panel.split()
    predictor_for(name).fit(train).calibrate(calibration).save(tmp_path / "model")
    model = load_predictor(tmp_path / "model")
    engine = engine_for(model, None)
    whole = stopped = start(model, engine)
    rng = np.random.default_rng(0)
    for i, (y, when) in enumerate(zip(test.values[:30], test.timestamps.tolist(), strict=False)):
        row = Whole(np.where(rng.random(len(y)) < 0.1, np.nan, y), when, when)
        whole, one, changes = taken(whole, engine, row)
        stopped, other, again = taken(stopped, engine, row)
        assert (answer_of(one, model.sensors), changes) == (answer_of(other, model.sensors), again)
        if i % 7 == 3:
            stopped = of_parts(from_bytes(to_bytes(parts_of(stopped))), model)
