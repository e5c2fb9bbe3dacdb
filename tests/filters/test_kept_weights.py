"""Kept weights: those of the same run and of no other, and one line where they cannot be read or written."""

import numpy as np
import pytest

pytest.importorskip("torch")

from jointset import InputError, generate_grssf
from jointset.filters.node_net import NodeNet

NET = NodeNet(steps=3)


@pytest.fixture(scope="module")
def network():
    return generate_grssf("B", n=8, seed=0, length=200).panel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JOINTSET_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


def test_the_same_run_finds_its_weights_also_where_the_last_digits_differ(network, folder):
    first = NET.fit(network)
    files = sorted(folder.iterdir())
    again = NET.fit(network.with_values(network.values * (1 + 1e-15)))
    assert sorted(folder.iterdir()) == files and same(first, again)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_other_readings_have_other_weights_in_any_units(network, folder, unit):
    other = network.values + 0.01 * np.random.default_rng(0).standard_normal(network.values.shape)
    one, two = (NET.fit(network.with_values(values * unit)) for values in (network.values, other))
    assert len(list(folder.iterdir())) == 4 and not same(one, two)


def test_the_seed_the_settings_and_the_graph_tell_runs_apart(network, folder):
    bare = network.__class__(network.values, network.sensors)
    runs = [(NET, network), (NodeNet(steps=3, seed=1), network), (NodeNet(steps=4), network), (NET, bare)]
    for k, (net, panel) in enumerate(runs):
        net.fit(panel)
        assert len(list(folder.iterdir())) == 2 * (k + 1)


@pytest.mark.parametrize("damage", ["cut", "lacking", "not a number"])
def test_a_damaged_file_is_one_line(network, folder, damage):
    NET.fit(network)
    file = sorted(folder.iterdir())[0]
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:500])
    else:
        arrays = dict(np.load(file))
        tail = arrays.pop("weight.tail")
        np.savez(file, **arrays, **({} if damage == "lacking" else {"weight.tail": np.nan * tail}))
    with pytest.raises(InputError, match=r"delete it to (start|train them) again"):
        NET.fit(network)


def test_a_folder_that_cannot_be_written_costs_no_training(network, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("JOINTSET_WEIGHTS", str(file))
    with pytest.warns(UserWarning, match="trained weights cannot be kept"):
        assert NET.fit(network).weights is not None
