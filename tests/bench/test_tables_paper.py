"""What the paper prints, spot-checked against numbers read off its tables by hand."""

from __future__ import annotations

import pytest

from jointset.bench.tables.diagnostics import DIAGNOSES, SWEEPS
from jointset.bench.tables.grids import BEST_NON_FILTER, GRIDS
from jointset.paper import printed, printed_places, printed_rows, where
from jointset.paper_rows import CATALOGUE


@pytest.mark.parametrize(
    ("table", "row", "place", "numbers"),
    [
        ("hero", "gnf", "metr-la-20", {"width": "3.05", "std": "0.13", "joint": "0.910"}),
        ("hero", "diag-gru", "pems-bay-50", {"width": "2.88", "std": "0.10", "joint": "0.921"}),
        ("log-volume", "static", "pems-bay-50", {"log_volume": "1.32"}),
        ("scale", "copula", "pems-bay-325", {"width": "14.4", "std": "1.41", "joint": "0.894"}),
        ("scale", "kalman-tuned", "metr-la-207", {"width": "21.2", "std": "0.00", "joint": "0.900"}),
        ("crossover", "per-group-factor+aci", "pems-bay-325@gpvar", {"width": "5.64", "joint": "0.901"}),
        ("backbones-full", "per-group-factor+aci", "pems-bay-325@gpvar", {"width": "5.64", "joint": "0.900"}),
        ("backbones-full", "gnf+aci", "metr-la-207@transformer", {"width": "8.72", "joint": "0.902"}),
        ("backbones-moderate", "gnf+aci", "pems-bay-50@stgnn", {"width": "2.07", "joint": "0.899"}),
        ("backbones-nontraffic", "gnf+aci", "jena-20@transformer", {"width": "2.81", "joint": "0.894"}),
        ("backbones-nontraffic", "copula", "ett-7@best", {"width": "2.33", "joint": "0.895", "backbone": "gru"}),
        ("baselines", "local", "pems-bay-50", {"width": "3.28", "std": "0.12", "joint": "0.826"}),
        ("baselines", "hopcpt", "metr-la-20", {"width_marginal": "1.98", "joint": "0.41"}),
        ("seeds", "copula", "pems-bay-50#2", {"width": "7.019", "joint": "0.904"}),
        ("wall-clock", "gnf", "pems-bay-50", {"fit_seconds": "2880", "predict_seconds": "7.1"}),
        ("rank", "metr-la-20", "16", {"width": "3.08", "joint": "0.906"}),
        ("warmup", "metr-la-20", "0", {"width": "3.19", "joint": "0.908"}),
        (
            "tau-int",
            "metr-la-20|kalman",
            "",
            {"tau_int": "13.2", "analytic": "13.0", "m_over_tau": "265", "m_eff": "269"},
        ),
        ("observability", "synthetic|gnf", "", {"p5": "0.13", "p10": "0.18", "p50": "0.49", "p90": "0.83"}),
        ("pit", "metr-la-207", "", {"nodes": "207", "passing": "191", "failing": "16", "ZF": "10", "RG": "6"}),
    ],
)
def test_printed_numbers_are_those_of_the_paper(table, row, place, numbers):
    assert printed(table, row, place) == numbers


def test_contraction_rates_of_a_cell():
    found = " ".join(printed("contraction", "pems-bay-325").values())
    assert found == "0.440 0.415 0.412 0.442 0.46 0.50 0.149 0.85"


def test_both_graph_filters_stand_beside_the_one_the_paper_prints():
    assert printed("hero", "gnf-node+aci", "metr-la-20") == printed("hero", "gnf+aci", "metr-la-20") != {}
    assert printed("hero", "kalman", "metr-la-20") == {}


def test_every_table_says_where_its_numbers_stand():
    for spec in (*GRIDS, *SWEEPS, *DIAGNOSES):
        assert where(spec.name)


def test_rows_of_printed_grids_are_rows_of_the_catalogue():
    known = {entry.name for entry in CATALOGUE} | {BEST_NON_FILTER}
    for grid in GRIDS:
        assert set(printed_rows(grid.name)) <= known


def test_every_printed_number_is_a_number():
    for spec in (*GRIDS, *SWEEPS, *DIAGNOSES):
        for row in printed_rows(spec.name):
            for place in printed_places(spec.name, row):
                numbers = printed(spec.name, row, place)
                assert numbers
                assert all(float(value) >= 0 for key, value in numbers.items() if key != "backbone")
