"""Where sensors are drawn: kept with the model, on a map where coordinates are known, by the graph elsewhere."""

import numpy as np
import pytest

import jointset
from jointset import GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf
from jointset.sensor_places import places_of, positions

PANEL = generate_grssf("A", n=12, seed=1, length=600).panel


def test_a_saved_model_knows_where_its_sensors_are(tmp_path):
    predictor = JointPredictor(GraphLGSSM()).fit(PANEL[:300]).calibrate(PANEL[300:])
    predictor.save(tmp_path / "model")
    kept = jointset.load(tmp_path / "model").places
    edges = {tuple(edge) for edge in kept.edges.tolist()}
    assert edges == set(zip(*np.nonzero(np.triu(PANEL.adjacency, 1)), strict=True))
    assert kept.coordinates is None and not kept.correlated


def test_a_map_keeps_directions_and_distances():
    north_east = np.array([[60.0, 10.0], [61.0, 10.0], [60.0, 12.0]])  # a degree north; two degrees east, half as long
    panel = Panel(np.zeros((3, 3)), ("here", "north", "east"), coordinates=north_east)
    here, north, east = positions(places_of(panel), 3)
    assert north[0] == here[0] and north[1] > here[1] and east[1] == here[1] and east[0] > here[0]
    assert np.linalg.norm(east - here) == pytest.approx(np.linalg.norm(north - here), rel=0.02)


def test_without_a_graph_sensors_that_go_together_are_neighbours():
    waves = np.random.default_rng(0).standard_normal((500, 2))
    panel = Panel(np.repeat(waves, 2, axis=1) + 0.1 * PANEL.values[:500, :4], ("a", "b", "c", "d"))
    places = places_of(panel)
    assert places.edges.tolist() == [[0, 1], [2, 3]] and places.correlated
    assert len(np.unique(positions(places, 4).round(3), axis=0)) == 4


def test_edges_of_other_sensors_are_refused():
    with pytest.raises(InputError, match="do not fit its sensors"):
        positions(places_of(PANEL), 3)
