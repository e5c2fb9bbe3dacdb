"""From a model and a folder to a network that goes on where it was: the last snapshot, then the log after it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from jointset.errors import InputError, require
from jointset.joint_predictor import JointPredictor
from jointset.live.alarms import Alarms
from jointset.live.network import AS_USUAL, Network, Settings
from jointset.live.relearning import recalibrated
from jointset.live.schema import bring_up
from jointset.live.standing import Standing, engine_for, of_parts, replayed, start
from jointset.live.store import FILE, Store, readable
from jointset.methods import load_predictor
from jointset.storage import from_bytes
from jointset.support.atomic import held
from jointset.writing import new_folder

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TAKEN = ("health", "ready", "metrics", "docs", "redoc", "openapi.json", "static", "pages", "networks", "favicon.ico")


def checked_name(name: str) -> str:
    """The name of a network, refused where it could not be part of an address."""
    refused = f"a network cannot be called {name!r}"
    require(NAME.fullmatch(name) is not None, f"{refused}: use letters, digits, _ . and -, as in city=MODEL")
    require(name not in TAKEN, f"{refused}: the service has that name for itself; choose another, as in city=MODEL")
    return name


def open_network(
    name: str,
    model: Path,
    folder: Path,
    settings: Settings = AS_USUAL,
    notice: Callable[[str], None] = lambda text: None,
) -> Network:
    """The network of a model, kept under its name in a folder; a store that is there is gone on from."""
    print_ = fingerprint(model)  # refuses what is no model before anything is written
    place = new_folder(folder / checked_name(name))
    lock = locked(place)
    with readable(place / FILE):
        store, predictor = _store(place, model, name, print_)
        standing, engine = standing_of(store, predictor, settings.cadence, notice)
        if engine.jumps is None and predictor.usual is not None and predictor.usual.jumps is not None:
            notice(f"{name}: an older jointset fitted the model, no jumps of neighbourhoods are seen: fit it again")
    return Network(name, store, standing, engine, settings, lock)


def _store(place: Path, model: Path, name: str, print_: str) -> tuple[Store, JointPredictor]:
    """The store and the model it goes on from, a copy of its own; both are made where they are not there."""
    path, own = place / FILE, place / "model"
    if not path.exists():
        predictor = load_predictor(model)
        predictor.predict()
        predictor.save(own)
        about = {"name": name, "model": print_, "sensors": list(predictor.sensors)}
        return Store.create(path, about), load_predictor(own)
    store = Store(path)
    advice = "serve it under another name, or give --store another folder"
    require(store.about().get("model") == print_, f"{place} was begun with another model than {model}: {advice}")
    with store.writing():
        bring_up(store.connection)
    return store, load_predictor(own)


def fingerprint(model: Path) -> str:
    """What tells a model from another: a hash of its parts."""
    try:
        header = json.loads((model / "model.json").read_bytes())
        told = json.dumps([header["parts"], header.get("sha256")], sort_keys=True)
    except (OSError, ValueError, KeyError, TypeError):
        load_predictor(model)  # says what is wrong
        raise InputError(f"{model} is not a model folder: give the folder that `jointset fit` wrote") from None
    return hashlib.sha256(told.encode()).hexdigest()


def standing_of(
    store: Store, model: JointPredictor, cadence: int | None, notice: Callable[[str], None]
) -> tuple[Standing, Alarms]:
    """Where the network stands, and its alarms: the last snapshot, moved on through the log after it."""
    found = store.snapshot()
    standing = start(model, engine_for(model, cadence)) if found is None else _restored(found, model, store)
    engine, differ = engine_for(standing.predictor, cadence), 0
    for entry in store.entries(after=standing.number):
        require(
            entry.number == standing.number + 1, f"{store.path}: number {standing.number + 1} of the log is missing"
        )
        if entry.answer.get("action") == "recalibrate":
            first, last = entry.answer["first"], entry.answer["last"]
            standing, engine, _ = recalibrated(standing, engine, list(store.entries(first - 1, last + 1)))
            same = True
        else:
            standing, same = replayed(standing, engine, entry)
        differ += not same
    if differ:
        what = f"{differ:,} of the rows and actions after the last snapshot came to something else than before"
        notice(f"{store.path}: {what}: was jointset, NumPy or --cadence changed?")
    return standing, engine


def _restored(found: tuple[int, bytes], model: JointPredictor, store: Store) -> Standing:
    """The standing of a snapshot; one that this version cannot make sense of is refused in one line."""
    try:
        return of_parts(from_bytes(found[1]), model)
    except (KeyError, TypeError, ValueError) as error:
        words = " ".join(str(error).split())[:200]
        advice = "go on with the version that wrote it, or give --store another folder"
        raise InputError(
            f"{store.path}: the state after number {found[0]} is of another version ({words}): {advice}"
        ) from None


def locked(place: Path) -> ExitStack:
    """A lock on the folder, until what is given back is closed; refused where another process has it."""
    busy = f"another jointset serve has {place}: stop it, or give --store another folder"
    lock = ExitStack()
    try:
        alone = lock.enter_context(held(place / ".lock", busy))
    except OSError as error:
        raise InputError(f"cannot write {place} ({error.strerror}): choose a --store you can write to") from None
    require(alone or os.name != "posix", f"the disk of {place} has no locks: choose a --store on another")
    return lock
