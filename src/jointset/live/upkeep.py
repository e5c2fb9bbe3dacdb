"""What is done to stores beside serving them: checking, exporting, compacting and copying them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jointset.errors import InputError, require
from jointset.live import copying, history
from jointset.live.opening import locked, standing_of
from jointset.live.store import FILE, Store, readable
from jointset.methods import load_predictor
from jointset.predicting.passes import Counting, silent
from jointset.support.atomic import whole_file, writing_to
from jointset.writing import output_file


class Fact(NamedTuple):
    """Something looked at: in words, and whether it is as it should be."""

    network: str
    fact: str
    found: str
    ok: bool


def networks_in(folder: Path) -> list[Path]:
    """The folders of the networks of a store."""
    require(folder.is_dir(), f"there is no store {folder}: give the folder of `jointset serve --store`")
    found = sorted(path.parent for path in folder.glob(f"*/{FILE}"))
    require(bool(found), f"{folder} holds no network: give the folder of `jointset serve --store`")
    return found


def checked(folder: Path, counting: Counting = silent) -> Iterator[Fact]:
    """Facts about every network of a store; nothing is changed, and the service may run."""
    for place in networks_in(folder):
        try:
            yield from _checked(place, counting)
        except (InputError, sqlite3.Error) as error:
            yield Fact(place.name, "readable", " ".join(str(error).split()), False)


def _checked(place: Path, counting: Counting) -> Iterator[Fact]:
    name, store = place.name, Store(place / FILE)
    with readable(store.path):
        said = store.reader.execute("PRAGMA integrity_check(1)").fetchone()[0]
        yield Fact(name, "the file is whole", said, said == "ok")
        first = last = count = 0
        more = counting(store.rows())
        for entry in store.entries():  # refuses one that was changed
            first, last, count = first or entry.number, entry.number, count + 1
            if count % history.PIECE == 0:
                more(history.PIECE)
        found = f"{count:,} of {last - first + 1 if count else 0:,}"
        yield Fact(name, "numbers of the log are all there", found, count == (last - first + 1 if count else 0))
        size = f"{store.size() / 2**20:.1f} MiB"
        yield Fact(name, "size", f"{size}, {store.size() / max(count, 1):,.0f} bytes a row", True)
        model = load_predictor(place / "model")
        told: list[str] = []
        standing = standing_of(store, model, None, told.append)[0]
        where = f"it comes to row {standing.number:,}" + (f"; {told[0]}" if told else "")
        yield Fact(name, "snapshot and replay", where, not told)
    store.close()


def export(place: Path, out: Path, limit: int, counting: Counting = silent) -> int:
    """Write the last rows of a network as a table; how many there are."""
    output_file(out, (".csv", ".json", ".parquet"))
    store, count = Store(place / FILE), 0

    def told(rows: int) -> None:
        nonlocal count
        count += rows
        more(rows)

    asked = history.Asked(limit, told=told)
    with readable(store.path), whole_file(out) as unfinished:
        more, sensors = counting(min(limit, store.rows())), tuple(store.about()["sensors"])
        if out.suffix.lower() == ".parquet":
            history.write_parquet(unfinished, store, sensors, asked)
        else:
            parts = history.as_csv if out.suffix.lower() == ".csv" else history.as_json
            with unfinished.open("w", encoding="utf-8") as file:
                file.writelines(parts(store, sensors, asked))
    store.close()
    return count


def compact(place: Path, counting: Counting = silent) -> tuple[int, int]:
    """Give free pages of a store back to the disk; its size before and after. The service must not run."""
    with locked(place):
        store = Store(place / FILE)
        before = store.size()
        copying.compact(store, counting)
        after = store.size()
        store.close()
    return before, after


def backup(folder: Path, target: Path, counting: Counting = silent) -> list[str]:
    """Copy every network of a store, whole, to a new folder, while the service runs; their names."""
    require(not target.exists(), f"{target} is there already: give a new name")
    found = networks_in(folder)
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed
    try:
        with writing_to(target):
            for place in found:
                _copy_network(place, unfinished / place.name, counting)
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return [place.name for place in found]


def _copy_network(place: Path, into: Path, counting: Counting) -> None:
    model = place / "model"
    require(model.is_dir(), f"{place} has no model beside its readings: put the folder `model` of a backup there")
    into.mkdir(parents=True)
    store = Store(place / FILE)
    copying.back_up(store, into / FILE, counting)
    store.close()
    (into / "model").mkdir()
    for file in model.iterdir():
        shutil.copy2(file, into / "model")
