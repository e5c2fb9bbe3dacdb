"""What a user may type for cells and methods, and how rows become tasks."""

from __future__ import annotations

from itertools import chain

import pytest

from jointset.bench import names
from jointset.bench.names import cells_named, cells_to_run, methods_named
from jointset.bench.plan import Settings, Task, tasks
from jointset.catalogue import LEARNED, TABLE
from jointset.datasets import registry
from jointset.errors import InputError
from jointset.methods import FILTERS, METHODS, predictor_for
from jointset.paper_rows import CATALOGUE


def units(planned: list[Task]) -> list[tuple]:
    return list(chain.from_iterable(task.units for task in planned))


def test_groups_of_methods_make_up_the_catalogue():
    groups = "static,conditional,adaptive,filters,published"
    assert sorted(methods_named(groups)) == sorted(entry.name for entry in CATALOGUE)
    assert methods_named("all") == [entry.name for entry in CATALOGUE]


def test_one_row_has_one_name():
    assert methods_named("static:ellipsoid, kalman+split,kalman") == ["static", "kalman"]
    assert methods_named("copula:box,copula,multidim-spci:ellipsoid+aci") == ["copula", "multidim-spci+aci"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("statc", "did you mean 'static'"),
        ("gnf+acii", "unknown wrap 'acii'"),
        ("factor:box", "no box form"),
        ("copula:ellipsoid", "a shape of its own"),
        (" , ", "nothing named"),
    ],
)
def test_unknown_methods_are_refused_with_a_way_out(text, said):
    with pytest.raises(InputError, match=said):
        methods_named(text)


def test_cells_are_names_groups_and_files():
    assert cells_named("hero,METR-LA-20,grssf-b-60") == ["metr-la-20", "pems-bay-50", "grssf-b-60"]
    assert cells_named("file:a.csv?sentinels=-99,-1&n=3,grssf-a") == ["file:a.csv?sentinels=-99,-1&n=3", "grssf-a"]
    with pytest.raises(InputError, match="did you mean 'nontraffic'"):
        cells_named("nontrafic")
    with pytest.raises(InputError, match="unknown option 'm' of a file cell"):
        cells_named("file:a.csv?m=3")


def test_names_of_files_may_have_commas(tmp_path):
    file = tmp_path / "speeds, all, of 2025.csv"
    file.touch()
    many = [f"file:{tmp_path}/{k}.csv" for k in range(40)]  # together longer than a name may be
    cells = ["grssf-a", f"file:{file}", f"file:{file}?sentinels=-99,-1", *many]
    assert cells_named(", ".join(cells)) == cells


def test_a_group_leaves_out_what_is_not_here_and_says_so(monkeypatch):
    states = {"metr-la": "complete", "solar": "12 of 137 plants"}
    monkeypatch.setattr(registry, "state", lambda name: states.get(name, "not here"))
    found = cells_to_run("hero,nontraffic")
    assert found.names == ["metr-la-20"]
    assert any("pems-bay-50 left out" in text and "data fetch pems-bay" in text for text in found.left_out)
    assert any("solar-12 runs on them" in text for text in found.left_out)
    assert cells_to_run("pems-bay-50,solar-20").names == ["pems-bay-50", "solar-20"]  # asked for by name
    assert {"metr-la-20", "metr-la-207", "solar-12"} == set(cells_to_run("available").names)


def test_every_unit_is_in_one_task_and_only_once():
    planned = tasks(
        ["metr-la-20", "grssf-a-30"],
        methods_named("all"),
        range(3),
        protocols=["text", "table"],
        backbones=["gpvar", "gru"],
        swap=True,
    )
    keys = units(planned)
    assert (
        len(keys)
        == len(set(keys))
        == 2 * 2 * 3 * len(CATALOGUE) * 2
        + 2 * 2 * 3 * sum(entry.name.partition("+")[0] in FILTERS for entry in CATALOGUE)
    )
    assert len({task.slug for task in planned}) == len(planned)


def test_wraps_share_a_task_and_seeds_that_train_together_too():
    planned = tasks(["metr-la-20"], ["gnf", "gnf+aci", "ewma", "ewma+aci", "copula"], range(4))
    together = {task.names: task.seeds for task in planned if "copula" not in task.names}
    assert together == {("gnf", "gnf+aci"): (0, 1, 2, 3), ("ewma", "ewma+aci"): (0, 1, 2, 3)}
    assert [task.seeds for task in planned if task.names == ("copula",)] == [(0,), (1,), (2,), (3,)]


def test_a_cell_that_is_drawn_by_seed_has_a_task_a_seed():
    for cell, protocol in (("metr-la-20", "table"), ("grssf-a-30", "text")):
        planned = tasks([cell], ["gnf", "static"], range(2), protocols=[protocol])
        assert [task.cell_seed for task in planned] == [0, 0, 1, 1]


def test_rows_around_a_learned_mean_share_its_training():
    planned = tasks(["metr-la-20"], ["static", "ewma", "kalman"], range(2), backbones=["gru"])
    assert {task.names for task in planned if task.backbone == "gru"} == {("static", "ewma")}
    assert {task.names for task in planned if task.backbone == "own"} == {("kalman",)}


def test_geometries_of_a_filter_share_a_task_and_a_filter_around_a_learned_mean_trains_all_seeds_at_once():
    planned = tasks(
        ["metr-la-20"], methods_named("grid:gnf-node,ewma,ewma:box"), range(3), backbones=["gru"], swap=True
    )
    filters = {(task.backbone, task.seeds): len(task.names) for task in planned if "gnf-node" in task.names}
    assert filters == {("own", (0, 1, 2)): 18, ("gru", (0, 1, 2)): 18}
    assert {task.seeds for task in planned if task.names == ("ewma", "ewma:box")} == {(0,), (1,), (2,)}


def test_the_grid_is_every_wrap_and_geometry_of_every_method():
    wraps = ("", "+aci", "+agaci", "+dtaci", "+pid", "+auto")
    shapes = ("", ":box", ":lean")
    assert methods_named("grid:ewma") == [f"ewma{shape}{wrap}" for shape in shapes for wrap in wraps]
    assert methods_named("grid:factor") == [f"factor{wrap}" for wrap in wraps]
    assert methods_named("grid:static:ellipsoid") == [f"static{shape}{wrap}" for shape in shapes for wrap in wraps]
    whole = methods_named("grid")
    assert {name for name in whole if "+" not in name and ":" not in name} == set(METHODS)
    forms = sum(len(TABLE[name].geometries) for name in METHODS)
    assert len(whole) == len(set(whole)) == 6 * forms + 3  # and a rule of space's own
    assert set(methods_named("grid:static,grid:published,grid:conditional,grid:filters")) == set(whole)
    for name in whole:
        predictor_for(name)  # each can be made
    with pytest.raises(InputError, match=r"unknown method in 'grid:ewmo'.*ewma"):
        methods_named("grid:ewmo")


def test_only_missing_rows_are_planned():
    methods, settings = ["static", "ewma", "ewma+aci"], Settings()
    whole = tasks(["metr-la-20"], methods, range(3), settings=settings)
    done = {key for key in units(whole) if key[3] == "ewma" and key[4] in (0, 2)}
    rest = tasks(["metr-la-20"], methods, range(3), settings=settings, done=done)
    assert sorted(units(rest)) == sorted(set(units(whole)) - done)
    assert tasks(["metr-la-20"], methods, range(3), settings=settings, done=units(whole)) == []


def test_a_quick_look_is_not_the_real_thing():
    real, quick = (tasks(["metr-la-20"], ["static"], [0], settings=Settings(limit_steps=n)) for n in (0, 50))
    assert not set(units(real)) & set(units(quick))


def test_a_recipe_belongs_to_learned_filters_only():
    planned = tasks(["metr-la-20"], ["static", "gnf"], [0], settings=Settings(recipe="paper"))
    assert {key[3]: key[7] for key in units(planned)} == {"static": "", "gnf": "paper"}


def test_a_pilot_belongs_to_rows_with_a_shape_and_is_told_where_it_is_not_the_protocols_own():
    names = ["static", "ewma", "time-of-day", "kalman", "copula"]
    for pilot, text in (
        ("validation", ("validation", "", "validation")),
        ("calibration", ("", "calibration", "calibration")),
    ):
        planned = tasks(["metr-la-20"], names, [0], settings=Settings(pilot=pilot))
        told = {key[3]: key[8] for key in units(planned)}
        assert told == dict(zip(names, (*text, "", ""), strict=True))
    planned = tasks(["metr-la-20"], names, [0], protocols=["table"], settings=Settings(pilot="validation"))
    assert {key[8] for key in units(planned)} == {""}  # the block between training and calibration is its own


def test_a_row_of_the_protocols_own_shape_is_the_row_it_was():
    """Keys and file names of rows made before there was a choice."""
    (task,) = tasks(["metr-la-20"], ["static"], [0])
    assert task.units == [("metr-la-20", "text", "gpvar", "static", 0, 0.1, 0, "", "", 0, "")]
    assert task.slug == "metr-la-20--text--gpvar--static--s0--e85bbb49"
    (other,) = tasks(["metr-la-20"], ["static"], [0], settings=Settings(pilot="calibration"))
    assert (other.units, other.slug) == (task.units, task.slug)
    (fresh,) = tasks(["metr-la-20"], ["static"], [0], settings=Settings(pilot="validation"))
    assert fresh.slug != task.slug and fresh.slug.startswith("metr-la-20--text--gpvar--static--s0--")


def test_learned_filters_are_those_that_train():
    from jointset.filters import GNF
    from jointset.filters.default import DefaultFilter

    trained = GNF | DefaultFilter
    assert {name for name, make in FILTERS.items() if isinstance(make(), trained)} == set(LEARNED)
    assert names.METHOD_GROUPS["filters"] == tuple(FILTERS)
