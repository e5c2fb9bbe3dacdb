"""Replays: every row once, at its pace, to a service that may be away; and the live demonstration from one command."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("uvicorn")

import uvicorn

from jointset.cli import app
from jointset.live.app import make_app
from jointset.live.opening import open_network
from jointset.live.replaying import DIRECT, Target, batches, pauses, rows_of, target_of

SMALL = """
import jointset.commands.live_demo as demo
from jointset.cli import main
demo.METHOD, demo.TRAIN, demo.CALIBRATION, demo.SPEED = "kalman", 2 * demo.DAY, demo.DAY, 6000.0
main()
"""


class Running:
    """A service of one network in a thread, on a port of its own."""

    def __init__(self, network):
        config = uvicorn.Config(make_app({"city": network}), port=0, log_level="error")
        self.server, self.network = uvicorn.Server(config), network
        self.thread = threading.Thread(target=self.server.run)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *failure):
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture
def running(model, tmp_path):
    network = open_network("city", model, tmp_path / "store")
    with Running(network) as service:
        yield service
    network.close()


def invoked(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_every_row_is_sent_once(running, panel, tmp_path):
    later = panel.split()[3]
    values = later.values.copy()
    values[4, 2] = np.nan
    later.with_values(values).to_npz(tmp_path / "later.npz")
    done = invoked("replay", tmp_path / "later.npz", "--url", running.address, "--speed", 0)
    assert done.exit_code == 0 and f"Sent {len(later)} rows: " in done.output, done.output
    assert running.network.standing.number == len(later)
    again = invoked("replay", tmp_path / "later.npz", "--url", f"{running.address}/city", "--speed", 0)
    assert f"{len(later)} of them known already: 0 outside" in again.output.replace("\n", " ")
    assert running.network.standing.number == len(later)


def test_rows_keep_their_pace(running, panel):
    few = panel.split()[3][:8]
    begun = time.monotonic()
    sent = []
    from jointset.live.replaying import replay

    replay(Target(f"{running.address}/city"), rows_of(few), pauses(few, 3000.0), sent.extend)
    assert time.monotonic() - begun >= 0.69 and len(sent) == 8  # seven steps of 300 s, 3,000 times faster


def test_rows_that_follow_fast_share_a_request(panel):
    few = panel.split()[3][:40]
    together = list(batches(rows_of(few), pauses(few, 30_000.0)))  # a hundredth of a second apart
    assert sum(len(rows) for _, rows in together) == 40 and max(len(rows) for _, rows in together) <= 6
    assert sum(wait for wait, _ in together) == pytest.approx(0.39)


def test_times_can_be_moved_to_now(panel):
    rows = rows_of(panel[:3], first=1_800_000_000)
    assert [row["time"] for row in rows] == ["2027-01-15T08:00:00Z", "2027-01-15T08:05:00Z", "2027-01-15T08:10:00Z"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--url", "localhost:8000"), "is no address: write http://HOST:PORT/NAME"),
        (("--url", "{0}/town"), "there is no network 'town'"),
        (("--speed", "-1"), "--speed must be 0 or more"),
    ],
)
def test_what_is_refused_is_one_line(running, panel, tmp_path, arguments, words):
    panel.split()[3].to_npz(tmp_path / "later.npz")
    done = invoked("replay", tmp_path / "later.npz", *(part.format(running.address) for part in arguments))
    assert done.exit_code == 2 and words in done.output and len(done.output.splitlines()) == 1


def test_a_service_that_is_away_is_waited_for(model, tmp_path, panel):
    network = open_network("city", model, tmp_path / "store")
    with Running(network) as first:
        address = first.address
    later = Running(network)
    later.server.config.port = int(address.rpartition(":")[2])
    rows, found = rows_of(panel.split()[3][:5]), []
    sending = threading.Thread(target=lambda: found.extend(target_of(f"{address}/city").send(rows)))
    sending.start()
    time.sleep(0.3)
    with later:
        sending.join(timeout=20)
    network.close()
    assert [answer["row"] for answer in found] == [1, 2, 3, 4, 5]


def test_a_service_that_stays_away_is_one_line(monkeypatch):
    monkeypatch.setattr("jointset.live.replaying.PATIENCE", 0.2)
    from jointset import InputError

    told = []
    with pytest.raises(InputError, match="is `jointset serve` running"):
        target_of("http://127.0.0.1:9", notice=told.append)
    assert len(told) == 1 and "waiting for it, 0.2 s at most" in told[0]


@pytest.mark.slow
def test_the_live_demonstration_is_one_command(tmp_path):
    command = [sys.executable, "-c", SMALL, "demo", "--live", "--port", "0", "--out", str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = running.stdout.readline().split()[1]
        rows, until = 0, time.monotonic() + 60
        while rows < 320 and time.monotonic() < until:
            with DIRECT.open(f"{address}ready", timeout=10) as answer:
                rows = json.load(answer)["rows"]["city"]
            time.sleep(0.05)
        assert rows >= 320  # the first day at once, then the next
        with DIRECT.open(urllib.request.Request(address), timeout=10) as page:
            assert b"/pages/live.js" in page.read()
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) in (0, 130, -2)
