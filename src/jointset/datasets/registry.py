"""Data sets by name: found on this machine, fetched from their public homes, checked against what is known of them.

Look-up order: the folder $JOINTSET_DATA, then the user's cache ($XDG_CACHE_HOME or ~/.cache, `jointset/`), then a
download into that cache. Both folders hold `NAME.npz` (arrays values, sensors, timestamps and, where there are,
adjacency, coordinates, distances). The cache keeps native files in `NAME/`; one placed there by hand under its own name
is used. A file with fewer sensors or steps than the data set is used when nothing better is here, and is announced.
"""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from jointset.datasets.download import DownloadError, Progress, download, progress_bar, sha256_of
from jointset.datasets.grssf import TRACKS, generate_grssf
from jointset.datasets.sources.entry import Check, Dataset, DataWarning, Home
from jointset.datasets.sources.informer import ETT
from jointset.datasets.sources.jena import JENA
from jointset.datasets.sources.lstnet import ELEC, SOLAR
from jointset.datasets.sources.seattle import LOOP_SEATTLE
from jointset.datasets.sources.text_tables import without_repeats
from jointset.datasets.sources.traffic import METR_LA, PEMS_BAY
from jointset.datasets.sources.uci import AQI, ELEC_UCI
from jointset.errors import InputError, require, suggest
from jointset.inputs.graph_files import stored_graph
from jointset.panel import Panel
from jointset.support.atomic import held
from jointset.support.extras import installed
from jointset.support.files import existing_file, load_npz, naming

FETCHED = {entry.name: entry for entry in (METR_LA, PEMS_BAY, AQI, ELEC, ELEC_UCI, ETT, SOLAR, JENA, LOOP_SEATTLE)}
GENERATED = re.compile(r"grssf-([a-e])(?:-(\d{1,6}))?")
ARRAYS = ("values", "sensors", "timestamps", "directed", "coordinates", "distances")


def names() -> list[str]:
    """Names of all data sets; a GRSSF name may be followed by a number of sensors, such as grssf-a-60.

    >>> names()[:3], names()[-1]
    (['metr-la', 'pems-bay', 'aqi'], 'grssf-e')
    """
    return [*FETCHED, *(f"grssf-{track.lower()}" for track in TRACKS)]


def dataset(name: str) -> Dataset:
    """What is known of a data set.

    >>> dataset("metr-la").shape, dataset("grssf-b-60").shape
    ((34272, 207), (8000, 60))
    """
    match = GENERATED.fullmatch(name)
    if match:
        return _grssf(name, match[1].upper(), int(match[2] or 30))
    if name not in FETCHED:
        raise InputError(f"unknown data set {name!r}: {suggest(name, names())}")
    return FETCHED[name]


def load(name: str, *, download: bool = True, root: str | Path | None = None, seed: int | None = None) -> Panel:
    """Panel of a data set in its full published size, values as published.

    `root` replaces both folders; with `download` False nothing is fetched; `seed` is for generated data only. A
    `DataWarning` tells when the panel is only a part of the data set, or when a row was dropped.
    """
    entry = dataset(name)
    if entry.generate is not None:
        return entry.generate(seed or 0)
    require(seed is None, f"{name} is measured data and takes no seed: leave it out")
    stored = _stored(entry, root)
    if stored is None:
        places = " and ".join(str(folder) for folder in _folders(root))
        require(download, f"no {name}.npz in {places}: run `jointset data fetch {name}`, or place it there")
        stored = fetch(name, root=root)
    panel, notes = _read(stored, entry)
    for note in notes:
        warnings.warn(f"{name}: {note}", DataWarning, stacklevel=2)
    return panel


def fetch(name: str, *, force: bool = False, root: str | Path | None = None, progress: Progress | None = None) -> Path:
    """Download a data set, read its native files and keep it as `NAME.npz` in the cache (or `root`); its path.

    What is there and whole stays, unless `force`. `progress` is called as files come; by default a bar is shown on a
    terminal. Homes are tried in turn; where a file cannot be had, the error says what to place where by hand.
    """
    entry = dataset(name)
    require(bool(entry.homes), f"{name} is generated, there is nothing to fetch: load it")
    folder = Path(root) if root is not None else cache_folder()
    target = folder / f"{name}.npz"
    if force or not _is_whole(target, entry):
        with _alone(folder / name):
            if force or not _is_whole(target, entry):  # another process may have fetched it while this one waited
                _fetch(entry, target, force, progress)
    return target


def _fetch(entry: Dataset, target: Path, force: bool, progress: Progress | None) -> None:
    with nullcontext(progress) if progress is not None else progress_bar() as shown:
        panel = _gather(entry, target.with_suffix(""), force, shown)
    odd = [f"{row.fact} {row.found}, expected {row.expected}" for row in _checks(entry, panel) if not row.ok]
    if odd:
        told = f"{entry.name}: the published files differ from what is known of them: {'; '.join(odd)}"
        warnings.warn(told, DataWarning, stacklevel=3)
    panel.to_npz(target)


def _is_whole(file: Path, entry: Dataset) -> bool:
    return file.is_file() and not entry.part(_stored_shape(file))


def path(name: str, *, root: str | Path | None = None) -> Path:
    """Where the data set lies, or would lie once fetched."""
    entry = dataset(name)
    require(bool(entry.homes), f"{name} is generated, it has no file")
    return _stored(entry, root) or _folders(root)[-1] / f"{name}.npz"


def state(name: str, *, root: str | Path | None = None) -> str:
    """Whether a data set is here: 'generated', 'complete', '21 of 321 clients' or 'not here'."""
    entry = dataset(name)
    stored = None if entry.generate else _stored(entry, root)
    if stored is None:
        return "generated" if entry.generate else "not here"
    return entry.part(_stored_shape(stored)) or "complete"


def check(name: str, *, root: str | Path | None = None) -> list[Check]:
    """Known facts against the file that is here, as (fact, expected, found, ok); nothing is downloaded.

    `ok` is None where a partial file cannot be judged; such a file is no error, and its first row says how partial.
    """
    entry = dataset(name)
    if entry.generate is not None:
        return _checks(entry, entry.generate(0))
    stored = _stored(entry, root)
    if stored is None:
        raise InputError(f"{name} is not on this machine: run `jointset data fetch {name}`")
    panel, notes = _read(stored, entry)
    dropped = [note for note in notes if "dropped" in note]
    stamps = Check("time stamps", "increasing", "; ".join(["increasing", *dropped]), True)
    return [*_checks(entry, panel), stamps]


def describe(name: str, *, root: str | Path | None = None) -> str:
    """A few lines on a data set: what, from where, under which terms, how large, and whether it is here."""
    entry = dataset(name)
    steps, sensors = entry.shape
    lines = {
        "title": entry.title,
        "source": entry.source,
        "home": entry.url,
        "licence": entry.licence,
        "citation": entry.citation,
        "size": f"{steps:,} steps x {sensors:,} {entry.sensor_word}, every {entry.cadence} s, {entry.unit}",
        "clock": entry.clock,
        "notes": entry.notes,
        "here": state(name, root=root) + (f", {path(name, root=root)}" if entry.homes else ""),
    }
    return "\n".join(f"{key:9}{text}" for key, text in lines.items() if text)


def cache_folder() -> Path:
    """The user's cache of data sets; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "jointset"


def _folders(root: str | Path | None) -> list[Path]:
    if root is not None:
        return [Path(root)]
    given = os.environ.get("JOINTSET_DATA")
    return [*([Path(given)] if given else []), cache_folder()]


def _stored(entry: Dataset, root: str | Path | None) -> Path | None:
    """The first complete `NAME.npz`, else the first partial one."""
    found = [file for folder in _folders(root) if (file := folder / f"{entry.name}.npz").is_file()]
    whole = [file for file in found if _is_whole(file, entry)]
    return next(iter([*whole, *found]), None)


def _stored_shape(path: Path) -> tuple[int, int]:
    """Shape of `values` in an npz file, from its header alone."""
    with naming(existing_file(path)), zipfile.ZipFile(path) as archive:
        require("values.npy" in archive.namelist(), "no 'values' among its arrays: it is no panel")
        with archive.open("values.npy") as file:
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape = reader(file)[0]
        require(len(shape) == 2, f"values have {len(shape)} dimensions, expected (steps, sensors)")
        return int(shape[0]), int(shape[1])


def _read(stored: Path, entry: Dataset) -> tuple[Panel, list[str]]:
    """Panel of an npz file, and what its user has to know."""
    with naming(stored):
        arrays = load_npz(stored)
        require({"values", "sensors"} <= arrays.keys(), f"no values and sensors in it ({', '.join(arrays)})")
        parts: dict[str, Any] = {key: arrays[key] for key in ARRAYS if key in arrays}
        graph = stored_graph(arrays, len(arrays["sensors"]))
        parts |= {} if graph is None else {"adjacency": graph}
        note = ""
        if "timestamps" in parts:
            parts["timestamps"], parts["values"], note = without_repeats(parts["timestamps"], parts["values"])
        parts["directed"] = entry.directed and "adjacency" in parts
        panel = Panel(**parts)
    part = entry.part(panel.values.shape)
    return panel, [text for text in (part and f"{stored} holds only {part}", note) if text]


def _checks(entry: Dataset, panel: Panel) -> list[Check]:
    """The shape and the facts of a data set, measured on a panel."""
    part = entry.part(panel.values.shape)
    sizes = [f"{T:,} x {n:,}" for T, n in (entry.shape, panel.values.shape)]
    found = f"{sizes[1]} (partial: {part})" if part else sizes[1]
    rows = [Check("shape", sizes[0], found, None if part else panel.values.shape == entry.shape)]
    for fact in entry.facts:
        measured, ok = fact.measure(panel)
        rows.append(Check(fact.name, fact.expected, measured, None if part and not ok else ok))
    return rows


def _gather(entry: Dataset, folder: Path, force: bool, progress: Progress) -> Panel:
    """Panel from the first home whose files can be had."""
    failures: list[DownloadError] = []
    for home in sorted(entry.homes, key=lambda home: _hindrance(home, folder)):
        try:
            return home.parse(_obtain(entry.name, home, folder, force, progress))
        except DownloadError as failure:
            failures.append(failure)
    raise failures[0]


def _hindrance(home: Home, folder: Path) -> int:
    """Which home first: files that are all in place, then what can be fetched and read, then the rest."""
    if all((folder / remote.filename).exists() for remote in home.files):
        return 0
    return 2 if home.needs and not installed(home.needs) else 1


def _obtain(name: str, home: Home, folder: Path, force: bool, progress: Progress) -> dict[str, Path]:
    """Paths of the files of a home, downloaded where they are not in place."""
    absent = [remote.filename for remote in home.files if not (folder / remote.filename).exists()]
    manual = [remote.filename for remote in home.files if remote.url is None and remote.filename in absent]
    if manual:
        raise DownloadError(
            f"{name} has no direct link: get {', '.join(manual)} from {home.page} and place in {folder}"
        )
    for remote in home.files:
        file = folder / remote.filename
        if remote.url is not None and (force or remote.filename in absent):
            download(remote.url, file, sha256=remote.sha256, size=remote.size, progress=progress)
        elif remote.sha256 is not None and sha256_of(file) != remote.sha256:
            warnings.warn(f"{name}: {file} is not the known file, its SHA-256 differs; used as it is", DataWarning, 2)
    return {remote.filename: folder / remote.filename for remote in home.files}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for this process alone; others wait."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".lock").touch()
    except OSError as error:
        hint = "set XDG_CACHE_HOME to a folder you can write to"
        raise InputError(f"cannot write to {folder} ({error.strerror or error}): {hint}") from None
    with held(folder / ".lock"):
        yield


def _grssf(name: str, track: str, n: int) -> Dataset:
    return Dataset(
        name=name,
        title=f"GRSSF track {track}, {n} sensors",
        source="generated here from a seed, with known truth",
        licence="MIT",
        citation="generator `jointset.generate_grssf`",
        url="",
        shape=(8_000, n),
        cadence=300,
        unit="none",
        clock="steps of 300 s from 1970-01-01, of no meaning",
        generate=lambda seed: generate_grssf(track, n=n, seed=seed).panel,
    )
