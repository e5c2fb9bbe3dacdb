"""Where sensors are drawn: kept with the model, on a map where coordinates are known, by the graph elsewhere."""

import numpy as np
import pytest
from typer.testing import CliRunner

import jointset
from jointset import GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf
from jointset.cli import app
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.sensor_places import drawing, layout, places_of, read_places

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


def test_places_of_a_file_go_by_name(tmp_path):
    (tmp_path / "places.csv").write_text("sensor,latitude,longitude\nb,50.1,8.2\nother,1,2\na,50.0,8.0\n")
    np.testing.assert_array_equal(read_places(tmp_path / "places.csv", ("a", "b")), [[50.0, 8.0], [50.1, 8.2]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,1\n", "line 1 has 2 cells"),
        ("a,1,2\nb,x,2\n", "line 2: x, 2 are no degrees"),
        ("a,100,2\n", "line 1: 100, 2 is no latitude and longitude"),
        ("a,1,2\na,1,3\n", "line 2 puts 'a' at a second place"),
        ("a,1,2\n", "no line for 'b'"),
    ],
)
def test_places_that_cannot_be_are_refused_in_one_line(tmp_path, text, words):
    (tmp_path / "places.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_places(tmp_path / "places.csv", ("a", "b"))


def test_fit_keeps_the_places_it_is_given(tmp_path):
    PANEL.to_npz(tmp_path / "rows.npz")
    (tmp_path / "places.csv").write_text("".join(f"{name},{50 + i / 100},8\n" for i, name in enumerate(PANEL.sensors)))
    given = ["--method", "kalman", "--places", str(tmp_path / "places.csv"), "--out", str(tmp_path / "model")]
    CliRunner().invoke(app, ["fit", str(tmp_path / "rows.npz"), *given])
    kept = jointset.load(tmp_path / "model")
    assert drawing(kept.places, kept.graph, 12)["mapped"] and kept.places.coordinates[1, 0] == 50.01


def test_parts_of_a_graph_stand_in_rows_that_do_not_run_away():
    chains = np.kron(np.eye(20), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    places = layout(chains)
    assert np.ptp(places, axis=0)[0] < 2.5 * np.sqrt(60) and np.ptp(places, axis=0)[1] > 3.0
    middles = places.reshape(20, 3, 2).mean(axis=1)
    apart = np.linalg.norm(middles[:, None] - middles, axis=-1) + 10.0 * np.eye(20)
    assert apart.min() > 0.9
