"""Data sets by name: look-up order, partial files, fetching from homes on a local server, and facts of real files."""

import dataclasses
import gzip
import os
import threading
import warnings
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import test_download as served

from jointset.datasets import generate_grssf, registry
from jointset.datasets.download import DownloadError
from jointset.datasets.sources.entry import DataWarning, Home, Remote
from jointset.errors import InputError
from jointset.panel import Panel

site, pauses = served.site, served.pauses
ETT = "date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n2016-07-01 00:00:00,1,2,3,4,5,6,7\n2016-07-01 01:00:00,1,2,3,4,5,6,8\n"


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch, request):
    """A cache and a data folder of the test's own, but for tests on real files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if "real_data" not in request.fixturenames:
        monkeypatch.setenv("JOINTSET_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "cache" / "jointset").mkdir(parents=True)


def store(folder, name, shape, fill=1.0):
    values = np.full(shape, fill)
    return Panel(values, [f"s{i}" for i in range(shape[1])], timestamps=3600 * np.arange(shape[0])).to_npz(
        folder / f"{name}.npz"
    )


def change(monkeypatch, name, **fields):
    monkeypatch.setitem(registry.FETCHED, name, dataclasses.replace(registry.FETCHED[name], **fields))


@pytest.fixture
def ett_site(site, monkeypatch):
    """ETTh1 of two rows on the local server."""
    url, resource = site.put("ETTh1.csv", content=ETT.encode())
    home = dataclasses.replace(registry.FETCHED["ett"].homes[0], files=(Remote(url, "ETTh1.csv"),))
    change(monkeypatch, "ett", homes=(home,), shape=(2, 7), facts=())
    return resource


# --- names -------------------------------------------------------------------------------------------------------


def test_every_name_is_described():
    assert set(registry.names()) >= {
        *("metr-la", "pems-bay", "aqi", "elec", "ett", "solar", "jena", "loop-seattle"),
        *(f"grssf-{track}" for track in "abcde"),
    }
    for name in registry.names():
        entry = registry.dataset(name)
        assert entry.name == name
        assert all([entry.title, entry.source, entry.licence, entry.citation, entry.clock, entry.cadence])
        assert entry.title in registry.describe(name)
        for home in entry.homes:
            assert home.page.startswith("https://")
            for remote in home.files:
                assert remote.url is None or remote.url.startswith("https://")
                assert remote.sha256 is None or len(bytes.fromhex(remote.sha256)) == 32


def test_unknown_names_get_close_matches():
    with pytest.raises(InputError, match="unknown data set 'metrla': did you mean 'metr-la'"):
        registry.dataset("metrla")
    with pytest.raises(InputError, match="unknown data set 'grssf-f'"):
        registry.load("grssf-f")


def test_generated_sets_take_a_size_and_a_seed():
    expected = generate_grssf("B", n=60, seed=3).panel
    assert registry.load("grssf-b-60", seed=3) == expected
    assert registry.load("grssf-b-60") != expected
    assert registry.load("grssf-a").n_sensors == 30
    assert registry.state("grssf-a") == "generated"
    assert all(row.ok for row in registry.check("grssf-a-12"))
    with pytest.raises(InputError, match="takes no seed"):
        registry.load("ett", seed=1)
    for needs_file in (registry.fetch, registry.path):
        with pytest.raises(InputError, match="is generated"):
            needs_file("grssf-a")


# --- look-up -----------------------------------------------------------------------------------------------------


def test_data_folder_comes_before_the_cache(tmp_path):
    shape = registry.dataset("ett").shape
    cached = store(registry.cache_folder(), "ett", shape, fill=2.0)
    assert registry.path("ett") == cached
    assert registry.load("ett").values[0, 0] == 2
    local = store(tmp_path / "data", "ett", shape)
    assert registry.path("ett") == local
    assert registry.load("ett").values[0, 0] == 1


def test_a_partial_file_is_announced_and_yields_to_a_complete_one(tmp_path):
    local = store(tmp_path / "data", "elec", (26_304, 2))
    with pytest.warns(DataWarning, match=r"elec.npz holds only 2 of 321 clients"):
        assert registry.load("elec").n_sensors == 2
    assert registry.state("elec") == "2 of 321 clients"
    assert registry.path("elec") == local
    cached = store(registry.cache_folder(), "elec", registry.dataset("elec").shape)
    assert registry.path("elec") == cached
    assert registry.state("elec") == "complete"


def test_root_replaces_both_folders(tmp_path):
    store(tmp_path / "data", "ett", registry.dataset("ett").shape)
    (tmp_path / "own").mkdir()
    assert registry.state("ett", root=tmp_path / "own") == "not here"
    assert registry.path("ett", root=tmp_path / "own") == tmp_path / "own" / "ett.npz"
    with pytest.raises(InputError, match=r"no ett.npz in .*own: run `jointset data fetch ett`"):
        registry.load("ett", download=False, root=tmp_path / "own")


def test_a_sample_or_a_graph_is_never_taken_for_pems_bay(tmp_path):
    for name in ("pems-bay-16", "pems-bay-graph"):
        store(tmp_path / "data", name, (50, 16))
    assert registry.state("pems-bay") == "not here"
    with pytest.raises(InputError, match=r"no pems-bay.npz"):
        registry.load("pems-bay", download=False)
    with pytest.raises(InputError, match="pems-bay is not on this machine: run `jointset data fetch pems-bay`"):
        registry.check("pems-bay")


def test_other_npz_files_are_named(tmp_path):
    np.savez(tmp_path / "data" / "ett.npz", sensors=np.array(["a"]))
    with pytest.raises(InputError, match=r"ett.npz: no 'values'"):
        registry.load("ett")
    (tmp_path / "data" / "ett.npz").write_bytes(b"PK not a zip")
    with pytest.raises(InputError, match=r"ett.npz: cannot be read"):
        registry.load("ett")


def test_cache_without_xdg_is_in_the_home_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert registry.cache_folder() == Path.home() / ".cache" / "jointset"


# --- fetching ----------------------------------------------------------------------------------------------------


def test_load_downloads_parses_and_keeps(ett_site):
    panel = registry.load("ett")
    assert panel.values[:, 6].tolist() == [7, 8]
    assert registry.path("ett") == registry.cache_folder() / "ett.npz"
    assert registry.load("ett") == panel
    assert len(ett_site.asked) == 1


def test_fetch_stays_with_what_is_there_unless_forced(ett_site):
    told = []
    target = registry.fetch("ett", progress=lambda *args: told.append(args))
    assert told[-1] == ("ETTh1.csv", len(ETT), len(ETT))
    before = target.stat().st_mtime_ns
    assert registry.fetch("ett") == target
    assert target.stat().st_mtime_ns == before
    assert len(ett_site.asked) == 1
    ett_site.content = ETT.replace(",8\n", ",9\n").encode()
    registry.fetch("ett", force=True)
    assert registry.load("ett").values[1, 6] == 9


def test_fetch_replaces_a_part_by_the_whole(ett_site):
    store(registry.cache_folder(), "ett", (2, 3))
    registry.fetch("ett")
    assert registry.load("ett").n_sensors == 7


def test_a_file_placed_by_hand_is_used(ett_site):
    folder = registry.cache_folder() / "ett"
    folder.mkdir()
    (folder / "ETTh1.csv").write_text(ETT)
    assert registry.load("ett").T == 2
    assert not ett_site.asked


def test_a_file_placed_by_hand_that_is_not_the_known_one_is_told(monkeypatch):
    change(monkeypatch, "ett", shape=(2, 7), facts=())
    folder = registry.cache_folder() / "ett"
    folder.mkdir()
    (folder / "ETTh1.csv").write_text(ETT)
    with pytest.warns(DataWarning, match=r"ETTh1.csv is not the known file, its SHA-256 differs; used as it is"):
        registry.fetch("ett")


def test_a_failed_download_leaves_no_data_set(ett_site, pauses):
    ett_site.statuses.append((404, {}))
    with pytest.raises(DownloadError, match=r"HTTP 404.*place it as ETTh1.csv in .*jointset/ett"):
        registry.load("ett")
    assert registry.state("ett") == "not here"
    assert os.listdir(registry.cache_folder()) == ["ett"]
    assert os.listdir(registry.cache_folder() / "ett") == [".lock"]


def test_a_file_that_cannot_be_read_leaves_no_data_set(ett_site):
    ett_site.content = ETT.replace("OT", "XX").encode()
    with pytest.raises(InputError, match=r"ETTh1.csv: expected the channels"):
        registry.load("ett")
    assert registry.state("ett") == "not here"


def test_the_next_home_is_tried_when_one_is_down(site, monkeypatch, pauses):
    down, _ = site.put("down.gz", statuses=deque([(500, {})] * 9))
    up, _ = site.put("up.txt.gz", content=gzip.compress(b"1,2\n3,4\n"))
    entry = registry.FETCHED["solar"]
    homes = tuple(Home(u, entry.url, (Remote(u, u.rpartition("/")[2]),), entry.homes[0].parse) for u in (down, up))
    change(monkeypatch, "solar", homes=homes, shape=(2, 2), facts=())
    assert registry.load("solar").values.tolist() == [[1, 2], [3, 4]]


def test_a_home_whose_package_is_absent_comes_last(site, monkeypatch, pauses):
    first, asked = site.put("first.txt.gz", content=gzip.compress(b"9\n"))
    second, _ = site.put("second.txt.gz", content=gzip.compress(b"1\n"))
    parse = registry.FETCHED["solar"].homes[0].parse
    homes = (
        Home("needy", "https://example.org", (Remote(first, "first.txt.gz"),), parse, needs="no_such_package"),
        Home("plain", "https://example.org", (Remote(second, "second.txt.gz"),), parse),
    )
    change(monkeypatch, "solar", homes=homes, shape=(1, 1), facts=())
    assert registry.load("solar").values.tolist() == [[1]]
    assert not asked.asked


def test_a_set_without_links_lists_all_that_must_be_placed():
    files = "speed_matrix_2015, Loop_Seattle_2015_A.npy, nodes_loop_mp_list.csv"
    where = registry.cache_folder() / "loop-seattle"
    with pytest.raises(InputError) as caught:
        registry.load("loop-seattle")
    page = "https://github.com/zhiyongc/Seattle-Loop-Data"
    assert str(caught.value) == f"loop-seattle has no direct link: get {files} from {page} and place in {where}"


@pytest.mark.parametrize("shape", [(2, 7), (17_420, 7)])
def test_content_that_differs_from_the_known_facts_is_told(ett_site, monkeypatch, shape):
    change(monkeypatch, "ett", shape=shape, facts=registry.METR_LA.facts[:1])
    with pytest.warns(DataWarning, match="differ from what is known.*period 2016-07-01T.*expected 2012-03-01"):
        registry.fetch("ett")


def test_two_that_fetch_at_once_download_once(ett_site):
    ett_site.silences.append(threading.Event())  # a pause of the server while both are under way
    threading.Timer(0.3, ett_site.silences[0].set).start()
    results = []
    threads = [threading.Thread(target=lambda: results.append(registry.fetch("ett"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [registry.path("ett")] * 2
    assert len(ett_site.asked) == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to .*file/ett .*: set XDG_CACHE_HOME"):
        registry.fetch("ett", root=tmp_path / "file")


# --- real files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["metr-la", "aqi", "ett", "jena"])
def test_real_files_show_all_known_facts(real_data, name):
    root = real_data(f"{name}.npz").parent
    rows = registry.check(name, root=root)
    assert [row for row in rows if row.ok is not True] == []
    assert registry.state(name, root=root) == "complete"


def test_metr_la_facts_by_number(real_data):
    found = {row.fact: row.found for row in registry.check("metr-la", root=real_data("metr-la.npz").parent)}
    assert found["shape"] == "34,272 x 207"
    assert found["zeros"] == "8.109 %"
    assert found["rows all zero"] == "2,148"
    assert found["directed edges"] == "1,515"
    assert found["d / sqrt(-ln A)"].startswith("2584.45 m")


def test_metr_la_edges_are_counted_off_the_diagonal(real_data):
    panel = registry.load("metr-la", root=real_data("metr-la.npz").parent)
    positive, diagonal = np.count_nonzero(panel.adjacency), np.count_nonzero(panel.adjacency.diagonal())
    assert (positive, diagonal, positive - diagonal) == (1_722, 207, 1_515)
    assert panel.directed
    roads = panel.distances[np.isfinite(panel.distances)]
    assert roads.std() == pytest.approx(2584.45, abs=0.01)  # the kernel's scale is the sd of all road distances


def test_metr_la_in_another_order_is_noticed_only_when_values_and_graph_differ(real_data):
    panel = registry.load("metr-la", root=real_data("metr-la.npz").parent)[::8]
    alike = registry.dataset("metr-la").facts[-1].measure
    order = np.random.default_rng(0).permutation(207)
    assert alike(panel)[1]
    assert alike(panel.select(order))[1]
    assert not alike(panel.with_values(panel.values[:, order]))[1]


@pytest.mark.parametrize(("name", "part"), [("elec", "21 of 321 clients"), ("solar", "12 of 137 plants")])
def test_real_parts_are_reported_as_parts(real_data, name, part):
    root = real_data(f"{name}.npz").parent
    rows = registry.check(name, root=root)
    assert rows[0].fact == "shape"
    assert rows[0].ok is None
    assert part in rows[0].found
    assert all(row.ok is not False for row in rows)
    with pytest.warns(DataWarning, match=part):
        registry.load(name, root=root)


def test_real_jena_drops_its_repeated_stamp_and_says_so(real_data):
    root = real_data("jena.npz").parent
    with pytest.warns(DataWarning, match="1 row with a repeated time stamp dropped.*2020-05-12T06:00:00Z, same values"):
        panel = registry.load("jena", root=root)
    assert panel.values.shape == (52_695, 21)
    assert "repeated" in registry.check("jena", root=root)[-1].found


def test_real_sample_of_pems_bay_is_not_pems_bay(real_data):
    root = real_data("pems-bay-16.npz").parent
    assert registry.state("pems-bay", root=root) == "not here"


def test_real_graph_of_pems_bay_shows_its_facts(real_data):
    with np.load(real_data("pems-bay-graph.npz")) as arrays:
        graph = {name: arrays[name] for name in ("adjacency", "distances")}
        panel = Panel(np.zeros((1, 325)), arrays["sensors"], directed=True, **graph)
    facts = {fact.name: fact for fact in registry.dataset("pems-bay").facts}
    assert facts["directed edges"].measure(panel) == ("2,369", True)
    assert facts["d / sqrt(-ln A)"].measure(panel)[1]


def test_real_complete_files_load_without_a_word(real_data):
    root = real_data("metr-la.npz").parent
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        registry.load("metr-la", root=root)
