"""What a user writes, as type checkers see it: `make lint` checks it beside the sources, `make dist` with the wheel."""

from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd

import jointset
from jointset import (
    ACI,
    Box,
    DefaultFilter,
    DenseLaw,
    Ellipsoid,
    GraphLGSSM,
    JointPredictor,
    LowRankLaw,
    MaxStudentised,
    Outcome,
    Panel,
    Product,
    Run,
    StaticFilter,
)
from jointset.adapters import LiveModel, LongForecast
from jointset.contracts import Array, Law, Region
from jointset.horizons.sets_ahead import AheadSets


def by_name(frame: pd.DataFrame) -> pd.DataFrame:
    """Frames in, frames out."""
    predictor = jointset.predictor("ewma:box+aci", alpha=0.05)
    assert_type(predictor, JointPredictor)
    assert_type(predictor.fit(frame[:300]).calibrate(frame[300:500]), JointPredictor)
    region = predictor.predict()
    assert_type(region, Region)
    assert_type(region.bounds, tuple[Array, Array])
    assert_type(predictor.update({"a": 1.0}), Outcome)
    return region.to_pandas()


def by_parts(panel: Panel, folder: Path) -> float:
    """A filter and a rule of one's own choice, saved and loaded."""
    predictor = JointPredictor(GraphLGSSM(tune=True), calibration=ACI(alpha=0.1))
    predictor.fit(panel[:300]).calibrate(panel[300:500], horizon=2)
    assert_type(predictor.predict(horizon=2), AheadSets)
    run = predictor.run(panel[500:])
    assert_type(run, Run)
    predictor.save(folder / "model")
    again = jointset.load(folder / "model")
    assert_type(again, JointPredictor)
    assert_type(run.to_pandas(bounds=True), pd.DataFrame)
    return run.joint


def parts_of_all_kinds() -> list[JointPredictor]:
    """Every filter goes with every score."""
    return [JointPredictor(StaticFilter(), MaxStudentised()), JointPredictor(DefaultFilter(), calibration=ACI())]


def as_contracts(box: Box, ellipsoid: Ellipsoid, product: Product, dense: DenseLaw, low: LowRankLaw) -> list[object]:
    """The classes keep the contracts."""
    regions: list[Region] = [box, ellipsoid, product]
    laws: list[Law] = [dense, low]
    return [*regions, *laws]


def under_other_verbs(rows: list[dict[str, float]], long: pd.DataFrame) -> dict[str, float]:
    """Adapters."""
    model = LiveModel("kalman", fit_after=300, calibrate_on=100)
    for row in rows:
        model.learn_one(row)
    assert_type(LongForecast("kalman").fit(long).predict(), pd.DataFrame)
    return model.predict_one()


def network() -> Panel:
    """Readings of eight sensors."""
    panel = jointset.generate_grssf("A", n=8, length=600).panel
    assert_type(panel, Panel)
    return panel.rename(dict(zip(panel.sensors, "abcdefgh", strict=True)))


def all_of_it(folder: Path) -> None:
    """What is typed also runs."""
    panel = network()
    frame = panel.to_pandas()
    assert list(by_name(frame).index) == list("abcdefgh")
    assert 0.5 < by_parts(panel, folder) <= 1.0
    assert [one.fitted_rows for one in parts_of_all_kinds()] == [0, 0]
    long = frame.rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y")
    rows = [dict(zip(panel.sensors, row.tolist(), strict=True)) for row in np.asarray(panel.values)]
    assert set(under_other_verbs(rows, long)) == set("abcdefgh")


def plain_lists() -> Panel:
    """A panel takes what becomes arrays."""
    panel = Panel([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], timestamps=[0, 300], adjacency=[[0, 1], [1, 0]])
    assert_type(panel.sensors, tuple[str, ...])
    return panel
