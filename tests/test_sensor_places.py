"""Where sensors are drawn: kept with the model, on a map where coordinates are known, by the graph elsewhere."""

import numpy as np
import pytest

import jointset
from jointset import GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf
from jointset.graph_edges import edges_of
from jointset.sensor_places import drawing, places_of

PANEL = generate_grssf("A", n=12, seed=1, length=600).panel


def test_a_saved_model_knows_where_its_sensors_are(tmp_path):
    predictor = JointPredictor(GraphLGSSM()).fit(PANEL[:300]).calibrate(PANEL[300:])
    predictor.save(tmp_path / "model")
    kept = jointset.load(tmp_path / "model")
    drawn = drawing(kept.places, kept.graph, 12)
    assert {tuple(edge) for edge in drawn["edges"]} == set(zip(*np.nonzero(np.triu(PANEL.adjacency, 1)), strict=True))
    assert not drawn["mapped"] and kept.places.instead is None
    assert drawn == drawing(predictor.places, predictor.graph, 12)


def test_a_map_keeps_directions_and_distances():
    north_east = np.array([[60.0, 10.0], [61.0, 10.0], [60.0, 12.0]])  # a degree north; two degrees east, half as long
    panel = Panel(np.zeros((3, 3)), ("here", "north", "east"), coordinates=north_east)
    drawn = drawing(places_of(panel), None, 3)
    here, north, east = np.array(drawn["at"])
    assert drawn["mapped"] and north[0] == here[0] and north[1] > here[1] and east[1] == here[1] and east[0] > here[0]
    assert np.linalg.norm(east - here) == pytest.approx(np.linalg.norm(north - here), rel=0.02)


def test_without_a_graph_sensors_that_go_together_are_neighbours():
    waves = np.random.default_rng(0).standard_normal((500, 2))
    panel = Panel(np.repeat(waves, 2, axis=1) + 0.1 * PANEL.values[:500, :4], ("a", "b", "c", "d"))
    drawn = drawing(places_of(panel), None, 4)
    assert drawn["edges"] == [[0, 1], [2, 3]] and len(np.unique(np.array(drawn["at"]).round(3), axis=0)) == 4


def test_edges_of_other_sensors_are_refused():
    with pytest.raises(InputError, match="do not fit its sensors"):
        drawing(places_of(PANEL), edges_of(PANEL.adjacency), 3)


def test_an_older_model_without_places_is_drawn_as_well():
    assert len(drawing(None, None, 5)["at"]) == 5
