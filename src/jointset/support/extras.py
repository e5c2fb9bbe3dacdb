"""Extras: packages that only a part of jointset needs, looked for when that part is used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from jointset.errors import InputError, require

EXTRAS = {  # package: the extra that brings it
    "torch": "learn",
    "h5py": "hdf5",
    "distributed": "dask",
    "xarray": "xarray",
    "sklearn": "sklearn",
    "sktime": "sktime",
}


def installed(package: str) -> bool:
    """Whether a package is there, without importing it.

    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    try:
        return find_spec(package) is not None
    except ImportError:  # something that finds packages for Python refuses this one
        return False


def require_extra(package: str, purpose: str) -> None:
    """Refuse to go on without a package, in a line that says how to install it."""
    require(installed(package), lack_of(package, purpose))


def optional(package: str, purpose: str) -> ModuleType:
    """A package of an extra, imported now, or one line that says how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise InputError(lack_of(package, purpose)) from None


def lack_of(package: str, purpose: str) -> str:
    """What lacks, in a line.

    >>> lack_of("torch", "training")
    "training needs the package torch, which is not installed: pip install 'jointset[learn]'"
    """
    extra = EXTRAS[package.partition(".")[0]]
    return f"{purpose} needs the package {package}, which is not installed: pip install 'jointset[{extra}]'"
