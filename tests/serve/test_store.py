"""A disk that is full, a file that is damaged, a store of another version: defined, and told in one line."""

import json
import shutil
import sqlite3

import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi")

from conftest import client_of
from jointset.cli import app
from jointset.errors import InputError
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.live.store import VERSION, Store


def told(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def kept(model, rows, tmp_path):
    """A store with thirty rows, closed."""
    network = open_network("city", model, tmp_path / "store", AS_USUAL._replace(every=10))
    network.post(json.dumps(rows[:30]).encode(), "json").result(20)
    network.close()
    return tmp_path / "store"


def test_a_full_disk_is_507_and_nothing_is_half_written(served, rows):
    store, standing = served.network.store, None
    served.client.post("/city/observations", json=rows[:5])
    standing = served.network.standing
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count={pages}")
    answer = served.client.post("/city/observations", json=rows[5:60])
    assert answer.status_code == 507 and "full" in answer.json()["error"] and "retry-after" in answer.headers
    assert served.client.get("/ready").status_code == 503
    assert served.client.get("/health").status_code == 200
    assert served.network.standing is standing
    store.connection.execute("PRAGMA max_page_count=1000000")
    assert [one["row"] for one in served.client.post("/city/observations", json=rows[5:60]).json()] == [*range(6, 61)]
    assert served.client.get("/ready").status_code == 200


def test_a_store_that_cannot_be_written_is_503(served, rows):
    served.network.store.connection.execute("PRAGMA query_only=ON")
    answer = served.client.post("/city/observations", json=rows[0])
    assert answer.status_code == 503 and "cannot be written" in answer.json()["error"]
    served.network.store.connection.execute("PRAGMA query_only=OFF")
    assert served.client.post("/city/observations", json=rows[0]).status_code == 200


def test_a_torn_tail_of_the_log_is_left_and_the_rest_is_there(model, rows, tmp_path):
    network = open_network("city", model, tmp_path / "store")
    for row in rows[:10]:
        network.post(json.dumps(row).encode(), "json").result(10)
    wal = tmp_path / "store" / "city" / "readings.db-wal"
    shutil.copytree(tmp_path / "store", tmp_path / "crashed", ignore=shutil.ignore_patterns("*-shm"))
    (tmp_path / "crashed" / "city" / "readings.db-wal").write_bytes(wal.read_bytes()[:-1000])
    network.close()
    again = open_network("city", model, tmp_path / "crashed")
    assert again.standing.number == 9
    again.close()


def test_a_damaged_file_is_one_line(kept, model):
    path = kept / "city" / "readings.db"
    data = bytearray(path.read_bytes())
    data[100 : len(data) // 2] = b"\xa5" * (len(data) // 2 - 100)
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        open_network("city", model, kept)
    result = told("store", "check", kept)
    assert result.exit_code == 1 and " NO " in result.output


def test_a_changed_row_is_found(kept):
    with sqlite3.connect(kept / "city" / "readings.db") as connection:
        connection.execute("UPDATE log SET answer = replace(answer, '\"inside\":true', '\"inside\":false')")
    result = told("store", "check", kept)
    assert result.exit_code == 1 and "changed" in result.output


def test_a_damaged_snapshot_costs_only_a_longer_replay(kept, model):
    with sqlite3.connect(kept / "city" / "readings.db") as connection:
        last = connection.execute("SELECT max(number) FROM snapshots").fetchone()[0]
        connection.execute("UPDATE snapshots SET state = zeroblob(100) WHERE number = ?", (last,))
    network = open_network("city", model, kept)
    assert network.standing.number == 30
    network.close()


def test_check_export_compact_and_backup(kept, rows, model, tmp_path):
    import pandas as pd

    assert told("store", "check", kept).exit_code == 0
    for name in ("a.csv", "a.json", "a.parquet"):
        assert "30 rows" in told("store", "export", kept, "--out", tmp_path / name).output
    assert pd.read_parquet(tmp_path / "a.parquet")["time"].tolist() == [row["time"] for row in rows[:30]]
    assert len(json.loads((tmp_path / "a.json").read_text())["rows"]) == 30
    assert told("store", "compact", kept).exit_code == 0
    running = open_network("city", model, kept)
    assert told("store", "backup", kept, tmp_path / "copy").exit_code == 0
    busy = told("store", "compact", kept)
    assert busy.exit_code == 2 and "another jointset serve" in busy.output
    running.post(json.dumps(rows[30]).encode(), "json").result(10)
    copy = open_network("city", model, tmp_path / "copy")
    assert (copy.standing.number, running.standing.number) == (30, 31)
    copy.close()
    running.close()
    assert told("store", "check", tmp_path / "nowhere").exit_code == 2


def test_only_one_service_has_a_store_and_only_with_its_model(kept, model, panel, tmp_path):
    from jointset import GraphLGSSM, JointPredictor

    network = open_network("city", model, kept)
    with pytest.raises(InputError, match="another jointset serve"):
        open_network("city", model, kept)
    network.close()
    train, _, calibration, _ = panel.split()
    JointPredictor(GraphLGSSM(rho=0.5)).fit(train).calibrate(calibration).save(tmp_path / "other")
    with pytest.raises(InputError, match="begun with another model"):
        open_network("city", tmp_path / "other", kept)


def test_a_store_of_a_newer_version_says_so(kept, model):
    with sqlite3.connect(kept / "city" / "readings.db") as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(InputError, match="upgrade jointset"):
        open_network("city", model, kept)


def test_what_is_kept_is_bounded(model, rows, tmp_path):
    network = open_network("city", model, tmp_path / "store", AS_USUAL._replace(every=10, keep=25))
    for start in range(0, 100, 5):
        network.post(json.dumps(rows[start : start + 5]).encode(), "json").result(10)
    found = [entry.number for entry in network.store.entries()]
    assert found == [*range(76, 101)]
    network.close()
    again = open_network("city", model, tmp_path / "store")
    assert again.standing.number == 100
    again.close()


def test_a_first_start_that_was_killed_is_begun_again(model, rows, tmp_path):
    (tmp_path / "store" / "city").mkdir(parents=True)
    (tmp_path / "store" / "city" / ".readings.db.new").write_text("half a store")
    network = open_network("city", model, tmp_path / "store")
    assert network.standing.number == 0
    network.close()
    assert isinstance(Store(tmp_path / "store" / "city" / "readings.db").about()["sensors"], list)


def test_a_read_only_folder_is_one_line(model, tmp_path):
    place = tmp_path / "store"
    place.write_text("a file where a folder should be")
    with pytest.raises(InputError, match="cannot write"):
        open_network("city", model, place)


def test_two_networks_do_not_mix(model, rows, tmp_path):
    networks = {name: open_network(name, model, tmp_path) for name in ("east", "west")}
    with client_of(networks) as client:
        client.post("/east/observations", json=rows[:3])
        assert client.get("/ready").json()["rows"] == {"east": 3, "west": 0}
    for network in networks.values():
        network.close()
