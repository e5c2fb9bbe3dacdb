"""`jointset doctor`: what is installed, on what machine, with which data, and what is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from jointset.terminal import show_json, show_table

PURPOSES = {  # what an extra is for; those of development are nobody's loss
    "learn": "learned methods, `default` among them",
    "hdf5": "the published HDF5 files of METR-LA and PEMS-BAY",
    "serve": "jointset serve, readings over HTTP",
    "mqtt": "readings and alarms over MQTT",
    "xarray": "arrays of xarray as readings and as answers",
    "sklearn": "JointRegressor, joint sets around regressors of scikit-learn",
    "sktime": "JointForecaster, joint sets as a forecaster of sktime",
    "dask": "benchmarks on several machines",
}


def doctor_command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, devices and data folders, and what is missing and how to get it.

    Exit code 1: a package that jointset cannot do without is missing or too old.
    """
    found = findings()
    if as_json:
        show_json(found)
    else:
        show_findings(found)
    raise typer.Exit(0 if all(one["fits"] for one in found["packages"].values()) else 1)


def findings() -> dict[str, Any]:
    """All that is known of the installation."""
    import jointset
    from jointset.bench.runner import machine

    needed = requirements()
    packages, extras = needed.pop("", {}), needed
    lacking = [name for name in PURPOSES if not all(one["fits"] for one in extras.get(name, {}).values())]
    unfit = {name: one["needs"] for name, one in packages.items() if not one["fits"]}
    found: dict[str, Any] = {"jointset": jointset.__version__, "machine": machine(), "packages": packages}
    found |= {"extras": extras, "devices": devices(), "folders": folders(), "data": data_sets()}
    fetched = [name for name, place in found["data"].items() if place == "download"]
    found["missing"] = [
        *(f"{name}: pip install '{name}{needs}'" for name, needs in unfit.items()),
        *(f"{PURPOSES[name]}: pip install 'jointset[{name}]'" for name in lacking),
        *([f"data sets {', '.join(fetched)}: jointset data fetch NAME"] if fetched else []),
    ]
    return found


def requirements() -> dict[str, dict[str, dict[str, Any]]]:
    """Packages by the extra that asks for them, "" for all: version needed, version found, whether it fits."""
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    try:
        lines = requires("jointset") or []
    except PackageNotFoundError:  # the source is used without an installation
        lines = []
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines:
        one = Requirement(line)
        extra = "" if one.marker is None else str(one.marker).rpartition("extra == ")[2].strip('"')
        if one.name == "jointset":  # an extra made of others
            continue
        try:
            here: str | None = version(one.name)
        except PackageNotFoundError:
            here = None
        fits = here is not None and one.specifier.contains(here, prereleases=True)
        found.setdefault(extra, {})[one.name] = {"needs": str(one.specifier), "version": here, "fits": fits}
    return found


def version_words(one: dict[str, Any]) -> str:
    """The version of a package that is here, and whether it will do.

    >>> version_words({"version": "1.0", "fits": False}), version_words({"version": None, "fits": False})
    ('1.0, too old', 'not installed')
    """
    return "not installed" if one["version"] is None else one["version"] + ", too old" * (not one["fits"])


def devices() -> dict[str, str]:
    """What learned methods can be trained on, and why not on the rest."""
    from jointset.support.extras import installed, lack_of

    if not installed("torch"):
        return {"cpu": "yes, without training", "cuda": lack_of("torch", "a GPU")}
    import torch

    if not torch.cuda.is_available():
        built = "no CUDA device here" if torch.version.cuda else "this torch is built for the CPU alone"
        return {"cpu": "yes", "cuda": f"no: {built}"}
    return {"cpu": "yes", "cuda": f"yes: {torch.cuda.get_device_name()}"}


def folders() -> dict[str, dict[str, Any]]:
    """Folders that are looked in or written to, and in what state they are."""
    from jointset.datasets.registry import cache_folder
    from jointset.filters.kept_weights import FOLDER

    places = {"JOINTSET_DATA": os.environ.get("JOINTSET_DATA"), "cache": str(cache_folder())}
    places[FOLDER] = os.environ.get(FOLDER)
    return {name: {"path": path, "state": folder_state(path)} for name, path in places.items()}


def folder_state(path: str | None) -> str:
    """Whether a folder is there and can be written to.

    >>> folder_state(None), folder_state("no/such/folder")
    ('not set', 'not there')
    """
    if not path:
        return "not set"
    if not Path(path).is_dir():
        return "not there"
    return "writable" if os.access(path, os.W_OK) else "read only"


def data_sets() -> dict[str, str]:
    """Where each data set is."""
    from jointset.commands.data import whereabouts
    from jointset.datasets import registry

    return {name: whereabouts(name) for name in registry.names()}


def show_findings(found: dict[str, Any]) -> None:
    """The findings as tables, and what is missing as lines to type."""
    machine = found["machine"]
    typer.echo(f"jointset {found['jointset']}, Python {machine['python']}, {machine['system']}, {machine['cpu']}")
    typer.echo(f"{machine['cores']} cores, {machine['memory_gb']} GB of memory")
    typer.echo("".join(f"{name}: {text}\n" for name, text in found["devices"].items()).rstrip())
    groups = {"": found["packages"], **{name: found["extras"].get(name, {}) for name in PURPOSES}}
    rows = [
        [package, extra, one["needs"], version_words(one)]
        for extra, packages in groups.items()
        for package, one in packages.items()
    ]
    show_table(("package", "extra", "needs", "here"), rows)
    rows = [[name, one["state"], one["path"] or ""] for name, one in found["folders"].items()]
    show_table(("folder", "state", "path"), rows)
    show_table(("data set", "where"), [[name, place] for name, place in found["data"].items()])
    for text in found["missing"] or ["nothing"]:
        typer.echo(f"missing: {text}")
