"""A disk that is full, a file that is damaged, a store of another version: defined, and told in one line."""

import json
import re
import shutil
import sqlite3
import tarfile
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi")

from conftest import client_of
from jointset.cli import app
from jointset.errors import InputError
from jointset.live import copying
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.live.store import VERSION, Store
from jointset.storage import from_bytes, to_bytes

OLD_STORE = Path(__file__).parents[1] / "data" / "store-before-even-jumps.tar.xz"


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


def test_a_store_that_was_moved_takes_nothing_until_it_is_back(served, rows):
    path = served.network.store.path
    served.client.post("/city/observations", json=rows[:5])
    path.rename(path.with_name("elsewhere"))
    answer = served.client.post("/city/observations", json=rows[5])
    assert answer.status_code == 503 and "was moved or deleted: put it back" in answer.json()["error"]
    assert served.client.get("/ready").status_code == 503 and served.network.standing.number == 5
    path.with_name("elsewhere").rename(path)
    assert served.client.post("/city/observations", json=rows[5]).json()["row"] == 6
    assert served.client.get("/ready").status_code == 200


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


def test_what_is_no_model_leaves_no_store(tmp_path):
    with pytest.raises(InputError, match="is not a model folder"):
        open_network("city", tmp_path / "nothing", tmp_path / "store")
    assert not (tmp_path / "store").exists()


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


@pytest.mark.parametrize("change", ["score = score * 10", "radius = 0", "inside = 1 - inside"])
def test_a_changed_copy_of_an_answer_is_found(kept, change):
    with sqlite3.connect(kept / "city" / "readings.db") as connection:
        connection.execute(f"UPDATE log SET {change} WHERE kind = 'row'")
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
    facts = json.loads(told("store", "check", kept, "--json").stdout)
    assert all(fact["ok"] for fact in facts) and {fact["network"] for fact in facts} == {"city"}
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


def test_a_terminal_is_told_how_long_checking_and_writing_will_take(kept, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("jointset.live.history.PIECE", 10)
    monkeypatch.setattr("jointset.terminal.PAUSE", 0.0)
    assert "checking, row 20 of 30, 0 s left" in told("store", "check", kept).output
    assert "writing, row 20 of 30, 0 s left" in told("store", "export", kept, "--out", tmp_path / "a.csv").output
    assert re.search(r"copying, MiB (\d+) of \1, 0 s left", told("store", "backup", kept, tmp_path / "copy").output)
    assert re.search(r"compacting city, MiB (\d+) of \1, 0 s left", told("store", "compact", kept).output)


def test_compacting_gives_space_back_and_changes_nothing_else(kept):
    """Also where a run was killed and left its file behind."""
    path = kept / "city" / "readings.db"
    before = [*Store(path).entries()]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE waste AS SELECT randomblob(500000) AS x")
        connection.execute("DROP TABLE waste")
    (path.parent / ".readings.db.lean").write_text("half")
    assert told("store", "compact", kept).exit_code == 0
    store = Store(path)
    assert [str(one) for one in store.entries()] == [str(one) for one in before]
    assert store.connection.execute("PRAGMA freelist_count").fetchone()[0] == 0
    assert store.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert store.connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
    assert [file.name for file in path.parent.glob(".*lean*")] == []
    assert told("store", "check", kept).exit_code == 0


def test_a_backup_is_of_one_moment_while_rows_come(kept, tmp_path, monkeypatch):
    """What is written between two of its pieces is not in it, and does not make it begin anew."""
    monkeypatch.setattr(copying, "PAGES", 1)
    store, pieces = Store(kept / "city" / "readings.db"), []

    def counting(total, unit):
        return pieces.append

    def disturbed(source, target, written):
        def more(done):
            written(done)
            with store.writing():
                store.hold([(1, len(pieces), 1, 1.0)])
            pieces.append(done)

        usual(source, target, more)

    usual = copying._copy
    monkeypatch.setattr(copying, "_copy", disturbed)
    copying.back_up(store, tmp_path / "copy.db", counting)
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    assert len(store.held()) >= pages - 1 > 3
    assert Store(tmp_path / "copy.db").held() == []
    assert len([*Store(tmp_path / "copy.db").entries()]) == 30


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


FIRST = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, seconds INTEGER, time TEXT, reading BLOB, answer TEXT,
    score REAL, radius REAL, inside INTEGER, bounds BLOB, shares BLOB, sum INTEGER NOT NULL
);
CREATE INDEX log_by_time ON log (seconds) WHERE seconds IS NOT NULL;
CREATE TABLE held (
    step INTEGER NOT NULL, sensor INTEGER NOT NULL, seconds INTEGER NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (step, sensor)
) WITHOUT ROWID;
CREATE TABLE changes (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, change TEXT NOT NULL);
CREATE TABLE snapshots (number INTEGER PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL);
"""  # tables as the first stores had them


def as_the_first(path):
    """Write a store again as the first version did, with two changes of alarms."""
    older = path.with_name("older.db")
    with sqlite3.connect(older) as connection:
        connection.executescript("PRAGMA journal_mode=WAL; PRAGMA application_id=1785947508; PRAGMA user_version=1;")
        connection.executescript(FIRST)
        connection.execute("ATTACH ? AS newer", (str(path),))
        for table in ("about", "log", "held", "snapshots"):
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM newer.{table}")
        connection.execute("""INSERT INTO changes VALUES (7, 20, '{"event": "raised"}'), (8, 21, '{}')""")
    connection.close()
    for left in path.parent.glob("readings.db*"):
        left.unlink()
    older.rename(path)


def test_a_store_of_the_first_version_is_brought_up_to_date(kept, model, rows):
    as_the_first(kept / "city" / "readings.db")
    assert told("store", "check", kept).exit_code == 0
    network = open_network("city", model, kept)
    names = {name for (name,) in network.store.reader.execute("SELECT name FROM sqlite_master")}
    assert "log_outcomes" in names and not any("older" in name for name in names)
    assert [(i, number) for i, number, _ in network.store.changes()] == [(7, 20), (8, 21)]
    answer = network.post(json.dumps(rows[30]).encode(), "json").result(10)[0][0]
    assert answer["row"] == 31
    with network.store.writing():
        network.store.connection.execute("DELETE FROM changes")
        network.store.add_changes([(31, {"event": "raised"})])
    assert [i for i, _, _ in network.store.changes()] == [9]  # not 1: a way out that sent 8 would wait for it for ever
    network.close()
    whole = open_network("city", model, kept.parent / "whole")
    assert whole.post(json.dumps(rows[:31]).encode(), "json").result(20)[0][-1] == answer
    whole.close()


def change_snapshots(path, change):
    """Rewrite the parts of all snapshots."""
    with sqlite3.connect(path) as connection:
        for number, state in connection.execute("SELECT number, state FROM snapshots").fetchall():
            parts = from_bytes(state)
            change(parts)
            state = to_bytes(parts)
            cells = (state, zlib.crc32(state), number)
            connection.execute("UPDATE snapshots SET state = ?, sum = ? WHERE number = ?", cells)
    connection.close()


def test_a_snapshot_of_an_older_version_lacks_what_came_later(kept, model, rows):
    """Parts of the predictor, and fields of alarms."""
    alarm = [
        "sustained-1",
        "sustained",
        5.0,
        5.0,
        ["s000"],
        ["s000"],
        "warning",
        "readings have left",
        False,
        None,
        0,
        1,
    ]

    def older(parts):
        del parts["predictor.horizon"]
        alarms = json.loads(parts["alarms"])
        del alarms["local"]
        parts["alarms"] = json.dumps({**alarms, "open": [alarm]})

    change_snapshots(kept / "city" / "readings.db", older)
    network = open_network("city", model, kept)
    assert [one.id for one in network.standing.alarms.open] == ["sustained-1"]
    assert network.post(json.dumps(rows[30]).encode(), "json").result(10)[0][0]["row"] == 31
    network.close()


def test_a_snapshot_of_another_version_is_one_line(kept, model):
    change_snapshots(kept / "city" / "readings.db", lambda parts: parts.pop("clock"))
    with pytest.raises(InputError, match="state after number 30 is of another version"):
        open_network("city", model, kept)


def test_a_store_that_older_code_wrote_goes_on(tmp_path):
    """Written before jumps had a measure of how even they are: 15 rows, the last snapshot after 10, an open alarm."""
    notes = []
    with tarfile.open(OLD_STORE) as file:
        file.extractall(tmp_path, filter="data")
    rows, after = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("rows", "after"))
    for number in (15, 16):  # the second start is from a snapshot that this version wrote
        settings = AS_USUAL._replace(every=1)
        network = open_network("city", tmp_path / "model", tmp_path / "store", settings, notes.append)
        assert network.standing.number == number and [one.kind for one in network.standing.alarms.open] == ["sustained"]
        again = network.post(json.dumps(rows[13:15]).encode(), "json").result(10)[0]
        assert again == [{**one, "repeated": True} for one in after]
        later = {**rows[14], "time": f"1970-01-04T00:{number}:00Z"}
        assert network.post(json.dumps(later).encode(), "json").result(10)[0][0]["row"] == number + 1
        network.close()
    words = "city: an older jointset fitted the model, no jumps of neighbourhoods are seen: fit it again"
    assert notes == [words, words]


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


def in_one_line(result, *words):
    """Whether a command said these words in one line, and failed with exit code 2."""
    lines = result.output.splitlines()
    return result.exit_code == 2 and len(lines) == 1 and all(word in lines[0] for word in ("error: ", *words))


def test_a_full_disk_ends_a_backup_and_a_compaction_in_one_line(kept, tmp_path, monkeypatch):
    """It is the disk of what is written that is full; nothing half is left there, and the store is as it was."""

    def full(*args):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(copying, "_copy", full)
    backup = told("store", "backup", kept, tmp_path / "copy")
    assert in_one_line(backup, f"cannot write {tmp_path / 'copy'}", "disk is full", "make room")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert in_one_line(told("store", "compact", kept), str(kept), "full: make room")
    assert told("store", "check", kept).exit_code == 0


def test_a_damaged_store_is_one_line_for_all_that_read_it(kept, tmp_path):
    path = kept / "city" / "readings.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'log'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(data)
    for words in (("export", "--out", tmp_path / "e.csv"), ("compact",), ("backup", tmp_path / "copy")):
        result = told("store", words[0], kept, *words[1:])
        assert in_one_line(result, str(path), "damaged", "put a backup in its place"), result.output
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def test_a_backup_to_where_nothing_can_be_written_is_one_line(kept, tmp_path):
    target = tmp_path / "file" / "copy"
    target.parent.touch()
    result = told("store", "backup", kept, target)
    assert in_one_line(result, f"cannot write {target} (", "choose a place you can write to"), result.output


def test_a_store_without_its_model_is_not_copied(kept, tmp_path):
    shutil.rmtree(kept / "city" / "model")
    result = told("store", "backup", kept, tmp_path / "copy")
    assert in_one_line(result, f"{kept / 'city'} has no model"), result.output
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
