"""Names of a package that bring their modules when they are first asked for, so that its import stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def places_of(modules: Mapping[str, str]) -> dict[str, str]:
    """The module of every name, from names by module; those under "" are modules themselves.

    >>> places_of({"": "plot", "regions": "Box Ellipsoid"})
    {'plot': '', 'Box': 'regions', 'Ellipsoid': 'regions'}
    """
    return {name: module for module, names in modules.items() for name in names.split()}


def late_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names stand in these modules."""
    places, known = places_of(modules), vars(sys.modules[package])

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = places[name]
        value = getattr(import_module(f"{package}.{place}"), name) if place else import_module(f"{package}.{name}")
        return known.setdefault(name, value)

    return find, lambda: sorted({*known, *places})
