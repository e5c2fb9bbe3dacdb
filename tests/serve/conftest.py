"""A small model, and a service of it in this process."""

from collections import namedtuple

import pytest

import jointset
from jointset import GraphLGSSM, JointPredictor, generate_grssf

Served = namedtuple("Served", "client network model")


@pytest.fixture(scope="session")
def panel():
    return generate_grssf("A", n=8, length=1200, seed=3).panel


@pytest.fixture(scope="session")
def model(tmp_path_factory, panel):
    folder = tmp_path_factory.mktemp("models") / "city"
    train, _, calibration, _ = panel.split()
    JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration).save(folder)
    return folder


@pytest.fixture
def served(model, tmp_path):
    pytest.importorskip("fastapi")
    from jointset.live.opening import open_network

    network = open_network("city", model, tmp_path / "store")
    with client_of({"city": network}) as client:
        yield Served(client, network, model)
    network.close()


def client_of(networks, guard=None):
    from starlette.testclient import TestClient

    from jointset.live.app import make_app

    return TestClient(make_app(networks, guard), base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture
def rows(panel):
    """Rows that follow those of the model, as they are posted."""
    test = panel.split()[3]
    times = [jointset.inputs.times.iso(int(t)) for t in test.timestamps]
    return [
        {"time": time, "values": dict(zip(test.sensors, values, strict=True))}
        for time, values in zip(times, test.values.tolist(), strict=True)
    ]
