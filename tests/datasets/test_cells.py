import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.signal import lfilter

from jointset import GraphLGSSM, Panel, generate_grssf
from jointset.datasets.cells import build_cell, cell
from jointset.datasets.origins import Source, Treatment, name_parts, named_source
from jointset.errors import InputError
from jointset.inputs.adjacency import correlation_knn, haversine_kernel, road_kernel

DAY = 86_400


def network(T=300, n=8, seed=0, share=0.0):
    """Positive readings with different levels and spreads, correlated in two groups."""
    rng = np.random.default_rng(seed)
    common = np.repeat(lfilter([1.0], [1.0, -0.9], rng.standard_normal((T, 2)), axis=0), n // 2, axis=1)
    values = np.linspace(50, 190, n) + rng.uniform(0.5, 3.0, n) * (common + rng.standard_normal((T, n)))
    values[rng.random((T, n)) < share] = np.nan
    return Panel(values, [f"s{i}" for i in range(n)], timestamps=600 * np.arange(T))


def built(panel, n=None, protocol="text", seed=0, missing="fill", **treatment):
    return build_cell(Source(panel, n, Treatment(**treatment)), "test", protocol, seed, missing)


def refusal(call, *args, **options) -> str:
    """Message of the refusal, which must be one line."""
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---------------------------------------------------------------------- the authors' protocol


def kalman_row(found):
    """Full width and joint coverage of the untuned Kalman filter as the authors ran it."""
    values, blocks = found.panel.values, found.blocks
    filter_ = GraphLGSSM(rho=0.8, obs_noise_frac=0.1).fit(found.panel[: blocks["pilot"].stop])
    start = blocks["calibration"].start
    _, state = filter_.run(values[start - 50 : start], filter_.start())
    laws, _ = filter_.run(values[start : blocks["test"].stop], state)
    scores = laws.mahalanobis(values[start : blocks["test"].stop])
    m = blocks["calibration"].stop - start
    radius = np.sort(scores[:m])[int(np.ceil((m + 1) * 0.9)) - 1]
    width = 2 * np.sqrt(radius) * np.sqrt(filter_.emitted.variance).mean()
    return width, np.mean(scores[m:] <= radius)


@pytest.fixture(scope="module")
def metr_la_tables(real_data):
    """The cells of ten seeds."""
    real_data("metr-la.npz")
    source = named_source("metr-la-20", 0)
    return [build_cell(source, "metr-la-20", "table", seed) for seed in range(10)]


def test_table_reproduces_the_authors_kalman_row(metr_la_tables):
    rows = np.array([kalman_row(found) for found in metr_la_tables])
    width, joint = rows.mean(axis=0)
    assert width == pytest.approx(5.086, abs=0.001)
    assert rows[:, 0].std() == pytest.approx(0.163, abs=0.001)
    assert 0.873 < joint < 0.888  # 0.884 or less: scores repeat in outages, and instructions differ in their ties


def test_table_sensors_are_those_of_the_rule(real_data, metr_la_tables):
    file = np.load(real_data("metr-la.npz"))
    values = file["values"].astype(np.float64)
    top = np.argsort(-values.var(axis=0), kind="stable")
    blocks = [round(share * len(values)) for share in (0.7, 0.8, 0.9)]
    train = values[: blocks[0]]
    z = (values - train.mean(axis=0)) / train.std(axis=0)
    for seed, found in enumerate(metr_la_tables):
        chosen = top[:20] if seed == 0 else np.random.default_rng(seed).choice(top[:40], 20, replace=False)
        chosen = np.sort(chosen)
        assert found.panel.sensors == tuple(file["sensors"][chosen])
        np.testing.assert_allclose(found.panel.values, z[:, chosen], atol=1e-9)
        A = file["adjacency"][np.ix_(chosen, chosen)].astype(np.float64)
        np.testing.assert_allclose(found.panel.adjacency, (A + A.T) / 2 - np.diag(A.diagonal()), atol=1e-12)
    assert [*found.blocks] == ["train", "pilot", "calibration", "test"]
    assert [block.stop for block in found.blocks.values()] == [*blocks, len(values)]


def test_table_tests_the_first_4000_steps_only(real_data):
    real_data("jena.npz")
    assert cell("jena-20", "table").test.T == 4000
    assert cell("jena-20").test.T == 5269


# ---------------------------------------------------------------------- the text's protocol


def test_text_takes_the_busiest_of_the_training_block(real_data):
    file = np.load(real_data("aqi.npz"))
    found = cell("aqi-5")
    train = file["values"][: round(0.7 * 35064)].astype(float)
    busiest = np.argsort(-np.nanmean(np.abs(train), axis=0))[:5]
    assert set(found.panel.sensors) == set(file["sensors"][busiest])
    places = [list(file["sensors"]).index(name) for name in found.panel.sensors]
    assert places == sorted(places)  # in the order of the source
    np.testing.assert_array_equal(found.raw.values, file["values"][:, places])


def test_variance_ranks_by_the_training_block():
    panel = network()
    calm = panel.with_values(np.where(np.arange(8) == 2, panel.values + 1000, panel.values))
    assert "s2" in built(calm, 3).panel.sensors
    liveliest = np.argsort(-panel.values[:210].var(axis=0))[:3]
    assert set(built(calm, 3, by="variance").panel.sensors) == {f"s{i}" for i in liveliest}


@pytest.mark.parametrize("missing", ["fill", "mask"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_text_has_no_leak(missing, share):
    panel = network(share=share)
    noise = panel.values.copy()
    noise[210:] = 1e4 * np.random.default_rng(9).standard_normal(noise[210:].shape)
    before, after = (built(p, 4, missing=missing) for p in (panel, panel.with_values(noise)))
    assert before.panel.sensors == after.panel.sensors
    for name in ("median", "mean", "sd"):
        np.testing.assert_array_equal(getattr(before.preprocess, name), getattr(after.preprocess, name))
    np.testing.assert_array_equal(before.panel.adjacency, after.panel.adjacency)
    np.testing.assert_array_equal(before.train.values, after.train.values)


def test_table_chooses_by_the_whole_series_and_nothing_else_leaks():
    """The authors' rule looks at all steps to choose sensors; constants and graph still come from training."""
    panel = network()
    calmest = int(panel.values.var(axis=0).argmin())
    later = panel.values.copy()
    later[280:, calmest] += 1e4 * np.random.default_rng(1).standard_normal(20)
    assert f"s{calmest}" not in built(panel, 4, "table").panel.sensors
    assert f"s{calmest}" in built(panel.with_values(later), 4, "table").panel.sensors
    whole, changed = built(panel, None, "table"), built(panel.with_values(later), None, "table")
    np.testing.assert_array_equal(whole.preprocess.sd, changed.preprocess.sd)
    np.testing.assert_array_equal(whole.panel.adjacency, changed.panel.adjacency)


@pytest.mark.parametrize("protocol", ["text", "table"])
def test_a_permuted_file_gives_the_permuted_cell(tmp_path, protocol):
    panel, order = network(share=0.05), np.random.default_rng(3).permutation(8)
    panel.to_pandas().to_csv(tmp_path / "a.csv")
    panel.select(order).to_pandas().to_csv(tmp_path / "b.csv")
    a, b = (cell(f"file:{tmp_path / name}?n=5", protocol, seed=2) for name in ("a.csv", "b.csv"))
    assert set(a.panel.sensors) == set(b.panel.sensors)
    again = b.panel.select(a.panel.sensors)
    np.testing.assert_allclose(again.values, a.panel.values, atol=1e-12)
    np.testing.assert_allclose(again.adjacency, a.panel.adjacency, atol=1e-12)


def test_ties_do_not_depend_on_the_order_of_columns():
    values = network().values
    values = np.concatenate([values[:, :2], values[:, 2:3], values[:, 2:3], values[:, 2:3]], axis=1)
    panel = Panel(values, ["a", "b", "e", "d", "c"])
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]):
        assert set(built(panel.select(order), 1).panel.sensors) == {"c"}


def test_blocks_cover_every_step_once():
    found = built(network(T=303))
    ends = [block.stop for block in found.blocks.values()]
    assert [block.start for block in found.blocks.values()] == [0, *ends[:-1]]
    assert [len(block) for block in network(T=303).split()] == [found.block(name).T for name in found.blocks]


# ---------------------------------------------------------------------- real data


@pytest.mark.parametrize(
    ("name", "file"),
    [("metr-la-20", "metr-la"), ("aqi-12", "aqi"), ("ett-7", "ett"), ("jena-20", "jena"), ("elec-20", "elec")],
)
@pytest.mark.parametrize("missing", ["fill", "mask"])
def test_real_cells_are_scaled_and_invert_to_the_source(real_data, name, file, missing):
    real_data(f"{file}.npz")
    found = cell(name, missing=missing)
    assert found.panel.n_sensors == int(name.rsplit("-")[-1])
    np.testing.assert_allclose(np.nanmean(found.train.values, axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.nanstd(found.train.values, axis=0), 1, rtol=1e-9)
    assert missing == "mask" or not np.isnan(found.panel.values).any()
    seen = found.observed(slice(None))
    back = found.preprocess.invert(found.panel.values)
    np.testing.assert_allclose(back[seen], found.raw.values[seen], rtol=1e-6, atol=1e-6)
    assert (found.panel.adjacency == found.panel.adjacency.T).all() and not found.panel.adjacency.diagonal().any()


def test_metr_la_zeros_are_values_or_gaps(real_data):
    real_data("metr-la.npz")
    filled, masked = cell("metr-la-207"), cell("metr-la-207", missing="mask")
    zeros = filled.raw.values == 0
    assert 100 * zeros.mean() == pytest.approx(8.109, abs=0.001)
    assert zeros.all(axis=1).sum() == 2148
    assert not np.isnan(filled.panel.values).any()
    np.testing.assert_array_equal(np.isnan(masked.panel.values), zeros)
    assert any("exactly 0" in note for note in filled.notes)
    assert any("stay so" in note for note in masked.notes)
    assert cell("metr-la-20").panel.sensors == cell("metr-la-20", missing="mask").panel.sensors


def test_graph_rules_by_name(real_data):
    real_data("aqi.npz")
    file = np.load(real_data("metr-la.npz"))
    road, source = (cell("metr-la-20", graph=rule).panel for rule in ("road", "source"))
    np.testing.assert_allclose(road.adjacency, source.adjacency, atol=2e-6)
    assert road_kernel(file["distances"]).astype(bool).sum() == 1515
    near = cell("aqi-12", graph="haversine")
    np.testing.assert_allclose(near.panel.adjacency, haversine_kernel(near.raw.coordinates))
    alike = cell("aqi-12")
    np.testing.assert_allclose(alike.panel.adjacency, correlation_knn(alike.train.values))
    assert cell("aqi-12", graph="none").panel.adjacency is None
    assert "no graph" in refusal(cell, "aqi-12", graph="source")
    assert "distances" in refusal(cell, "aqi-12", graph="road")


def test_partial_sets_say_so_and_refuse_more(real_data):
    real_data("solar.npz")
    assert any("12 of 137 plants" in note for note in cell("solar-12").notes)
    message = refusal(cell, "solar-20")
    assert "12 of its 137" in message and "solar-12" in message


def test_metr_la_20_needs_little_memory(real_data):
    real_data("metr-la.npz")
    code = """
from jointset.datasets.cells import cell
cell("metr-la-20")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(found) <= 300


# ---------------------------------------------------------------------- simulated and own files


def test_grssf_cells_are_the_generated_networks():
    found = cell("grssf-b-60", seed=3)
    expected = generate_grssf("B", n=60, seed=3).panel
    np.testing.assert_array_equal(found.panel.values, expected.values)
    np.testing.assert_array_equal(found.panel.adjacency, expected.adjacency)
    np.testing.assert_array_equal(found.preprocess.invert(found.panel.values), expected.values)
    assert cell("grssf-b").panel.n_sensors == 30


def test_file_cells_take_their_options(tmp_path):
    panel = network()
    panel.to_pandas().reset_index(names="when").to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "edges.csv").write_text("source,target,weight\ns7,s6,2\ns0,s1,5\n")
    found = cell(f"file:{tmp_path / 'a.csv'}?n=4&graph={tmp_path / 'edges.csv'}&time=when&layout=wide")
    assert found.panel.sensors == ("s4", "s5", "s6", "s7")
    expected = np.zeros((4, 4))
    expected[2, 3] = expected[3, 2] = 2.0
    np.testing.assert_array_equal(found.panel.adjacency, expected)
    np.testing.assert_array_equal(found.raw.adjacency, expected)
    assert cell(f"file:{tmp_path / 'a.csv'}?graph=none").panel.adjacency is None
    default = cell(f"file:{tmp_path / 'a.csv'}", "text")
    np.testing.assert_allclose(default.panel.adjacency, correlation_knn(default.train.values))
    logged = cell(f"file:{tmp_path / 'a.csv'}?log=yes")
    np.testing.assert_allclose(logged.preprocess.invert(logged.panel.values), logged.raw.values, rtol=1e-9)


def test_long_files_and_sentinels_make_the_same_cell(tmp_path):
    panel = network(share=0.1)
    frame = panel.to_pandas()
    long = frame.melt(ignore_index=False, var_name="sensor", value_name="value").reset_index(names="time").dropna()
    long.to_csv(tmp_path / "long.csv", index=False)
    frame.fillna(-99).to_csv(tmp_path / "wide.csv")
    a = cell(f"file:{tmp_path / 'long.csv'}?missing=mask")
    b = cell(f"file:{tmp_path / 'wide.csv'}?missing=mask&sentinels=-99")
    np.testing.assert_allclose(a.panel.select(b.panel.sensors).values, b.panel.values, atol=1e-12)
    assert b.repairs["train"].sentinels == b.repairs["train"].missing > 0


def test_the_graph_of_an_npz_file_is_used_and_a_directed_one_reported(tmp_path):
    A = np.triu(np.ones((8, 8)), 1)
    network().with_graph(A, directed=True).to_npz(tmp_path / "a.npz")
    found = cell(f"file:{tmp_path / 'a.npz'}?n=3")
    np.testing.assert_array_equal(found.panel.adjacency, (1 - np.eye(3)) / 2)
    assert any("directed" in note for note in found.notes)


def test_a_graph_and_data_of_different_sensors_are_refused(tmp_path):
    network().to_pandas().to_csv(tmp_path / "a.csv")
    (tmp_path / "edges.csv").write_text("source,target\ns0,s99\n")
    (tmp_path / "matrix.csv").write_text(",s0,s1\ns0,0,1\ns1,1,0\n")
    assert "'s99' is not in the data" in refusal(cell, f"file:{tmp_path}/a.csv?graph={tmp_path}/edges.csv")
    assert "not in the graph: 's2'" in refusal(cell, f"file:{tmp_path}/a.csv?graph={tmp_path}/matrix.csv")


def test_a_clock_change_is_a_gap_that_is_told(real_data):
    found = cell(f"file:{real_data('pems-bay-16.npz')}")
    assert any("1 of 52115 steps" in note and "3900 s" in note for note in found.notes)
    assert any("directed" in note for note in found.notes)
    assert found.raw.T == 52116


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("metr-la-x", ["'metr-la-x'", "file:PATH"]),
        ("metro-la-20", ["metr-la"]),
        ("file:", ["no path"]),
        ("file:nowhere.csv", ["no such file", "nowhere.csv"]),
        ("file:{csv}?n=many", ["n=many", "whole number"]),
        ("file:{csv}?n=0", ["n=0"]),
        ("file:{csv}?n=9", ["8 sensors", "n=9"]),
        ("file:{csv}?nn=2", ["'nn'", "'n'"]),
        ("file:{csv}?graph", ["'graph'", "no value"]),
        ("file:{csv}?graph=near", ["'near'", "knn"]),
        ("file:{csv}?graph=haversine", ["coordinates"]),
        ("file:{csv}?graph=none.csv", ["no such file"]),
        ("file:{csv}?missing=drop", ["'drop'", "fill or mask"]),
        ("file:{csv}?layout=tall", ["'tall'"]),
        ("file:{csv}?log=perhaps", ["log=perhaps", "yes or no"]),
        ("file:{csv}?sentinels=-99;0", ["sentinels=-99;0", "numbers"]),
        ("file:{short}", ["5 steps", "at least 10"]),
        ("file:{flat}", ["'s1'", "constant"]),
        ("file:{gone}", ["'s2'", "no reading in the training block"]),
        ("file:{twice}", ["repeats", "UTC offsets"]),
    ],
)
def test_bad_cells_are_refused_with_a_reason(tmp_path, name, facts):
    frame = network().to_pandas()
    files = {"csv": frame, "short": frame[:5], "flat": frame.assign(s1=7.0), "gone": frame.assign(s2=np.nan)}
    clock = frame.index.where(frame.index != frame.index[20], frame.index[19])  # an hour that comes twice
    files["twice"] = frame.set_axis(clock.rename("time"))
    paths = {key: tmp_path / f"{key}.csv" for key in files}
    for key, table in files.items():
        table.to_csv(paths[key])
    message = refusal(cell, name.format(**paths))
    assert all(fact in message for fact in facts), message


def test_other_bad_arguments_are_refused():
    assert "'tables'" in refusal(cell, "grssf-a", "tables")
    assert "seed" in refusal(cell, "grssf-a", seed=-1)
    assert "'pilot'" in refusal(cell("grssf-a").block, "pilot")
    assert name_parts("elec-uci-20", ["elec", "elec-uci"]) == ("elec-uci", 20)


# ---------------------------------------------------------------------- notes


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda p: Panel(p.values, p.sensors), "no time stamps"),
        (lambda p: p.select([0]), "one sensor"),
        (lambda p: Panel(p.values, p.sensors, p.timestamps + DAY * (np.arange(p.T) > 99)), r"1 of 299 steps.* 87000 s"),
        (lambda p: network(share=0.35), r"more than 30 %.*'s\d'"),
        (lambda p: network(share=0.1), r"\d+ readings \(\d+\.\d\d %\) were missing, and are filled in"),
    ],
)
def test_oddities_are_told_and_never_silent(change, note):
    found = built(change(network()))
    assert any(re.search(note, text) for text in found.notes), found.notes


def test_a_clean_cell_has_only_the_note_on_its_graph():
    assert len(built(network()).notes) == 1
