"""All wraps of a row in one pass: the very numbers of each alone."""

from dataclasses import fields

import numpy as np
import pytest

from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import Timing, fitted_backbones, fitted_row, run_row, run_rows
from jointset.runs import Run

WRAPS = ("", "+aci", "+agaci", "+dtaci", "+pid")
BASES = ["static", "ewma", "rolling:box", "factor", "group", "spectral", "kalman"]


def assert_same(one: Run, other: Run) -> None:
    for field in fields(Run):
        if field.name not in ("regions", "sensors", "timestamps"):
            pair = getattr(one, field.name), getattr(other, field.name)
            if isinstance(pair[0], np.ndarray) and pair[0].dtype.kind == "f":
                np.testing.assert_allclose(*pair, rtol=1e-13, err_msg=field.name)  # logarithms: where arrays lie
            else:
                np.testing.assert_array_equal(*pair, err_msg=field.name)


@pytest.mark.parametrize("protocol", ["text", "table"])
@pytest.mark.parametrize("base", BASES)
def test_wraps_in_one_pass_are_the_rows_alone(base, protocol):
    one = cell("grssf-a-30", protocol)
    names = [base + wrap for wrap in WRAPS]
    seen = []
    for name, seed, run, timing in run_rows(names, one, 0.15):
        assert_same(run, run_row(name, one, 0.15, seed))
        assert isinstance(timing, Timing) and timing.fit_seconds > 0 and timing.predict_seconds > 0
        seen.append((name, seed))
    assert seen == [(name, 0) for name in names]


def test_the_order_of_wraps_does_not_matter():
    one = cell("grssf-a-30", "table")
    runs = {name: run for name, _, run, _ in run_rows(["group+aci", "group"], one)}
    for name, _, run, _ in run_rows(["group", "group+aci"], one):
        assert_same(run, runs[name])


def test_a_rewrapped_predictor_is_independent():
    one = cell("grssf-a-30")
    predictor = fitted_row("ewma", one)
    other = predictor.rewrapped(fitted_row("ewma+aci", one).calibration)
    before = predictor.predict().log_volume
    assert_same(other.run(one.test, regions=False), run_row("ewma+aci", one))
    assert predictor.predict().log_volume == before


def test_rows_without_a_seed_are_run_once_for_all():
    runs = [(seed, run) for _, seed, run, _ in run_rows(["static"], cell("grssf-a-30"), seeds=[3, 4])]
    assert [seed for seed, _ in runs] == [3, 4] and runs[0][1] is runs[1][1]


def test_another_method_in_one_pass_is_refused():
    with pytest.raises(InputError, match="must share their method"):
        next(run_rows(["static", "ewma"], cell("grssf-a-30")))


def test_backbones_by_name_object_and_seed():
    from jointset.backbones import GPVARBackbone

    one = cell("grssf-a-30")
    same = fitted_backbones("gpvar", one, [0, 1])
    assert same[0] is same[1]
    for given in ("gpvar", GPVARBackbone(), same[0]):
        assert_same(run_row("factor+aci", one, backbone=given), run_row("factor+aci", one))
    with pytest.raises(InputError, match="one for each"):
        fitted_backbones(same, one, [0])
