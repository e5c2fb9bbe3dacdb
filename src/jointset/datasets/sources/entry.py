"""What the registry knows of a data set: its homes and their files, its expected size, and facts to check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jointset.errors import InputError, require
from jointset.panel import Panel

Paths = Mapping[str, Path]  # file name -> where it lies


class DataWarning(UserWarning):
    """Something a user of a data set must know: it is partial, a row was dropped, a file is not the known one."""


class Check(NamedTuple):
    """One verified fact; `ok` is None where it cannot be judged, because the panel is only a part of the data set."""

    fact: str
    expected: str
    found: str
    ok: bool | None


@dataclass(frozen=True)
class Fact:
    """Something known of a whole data set: `measure` gives what a panel shows, and whether that is as expected."""

    name: str
    expected: str
    measure: Callable[[Panel], tuple[str, bool]]


@dataclass(frozen=True)
class Remote:
    """A file of a public home. Without a URL there is no direct link and a person has to fetch it."""

    url: str | None
    filename: str
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class Home:
    """A public place that has the whole data set: a page, its files, and the function that reads them."""

    title: str
    page: str
    files: tuple[Remote, ...]
    parse: Callable[[Paths], Panel]
    needs: str | None = None  # optional package without which `parse` cannot run


@dataclass(frozen=True)
class Dataset:
    """A data set by name. `shape` is (steps, sensors); all homes give the same content, the first is preferred.

    Time stamps are the source's own clock written as if it were UTC, so that the hour of day is the local one;
    `clock` says which clock that is. Values are as published: `sentinels` are numbers that mean "no reading" and stay
    in the panel, since preprocessing maps them.
    """

    name: str
    title: str
    source: str
    licence: str
    citation: str
    url: str
    shape: tuple[int, int]
    cadence: int  # seconds
    unit: str
    clock: str
    homes: tuple[Home, ...] = ()
    facts: tuple[Fact, ...] = ()
    sensor_word: str = "sensors"
    sentinels: tuple[float, ...] = ()
    directed: bool = False
    notes: str = ""
    generate: Callable[[int], Panel] | None = None  # seed -> panel, for data that is drawn and not fetched

    @property
    def files(self) -> tuple[Remote, ...]:
        """Files of the preferred home."""
        return self.homes[0].files if self.homes else ()

    def parse(self, paths: Paths) -> Panel:
        """Panel of native files, by the home that they make complete."""
        for home in self.homes:
            if all(remote.filename in paths for remote in home.files):
                return home.parse(paths)
        wanted = " or ".join("(" + ", ".join(r.filename for r in home.files) + ")" for home in self.homes)
        raise InputError(f"{self.name} is read from {wanted}: got {', '.join(paths) or 'no files'}")

    def part(self, shape: tuple[int, int]) -> str:
        """How much of the data set an array of this shape holds, empty when it is all.

        >>> from jointset.datasets.registry import dataset
        >>> dataset("elec").part((26_304, 21))
        '21 of 321 clients'
        """
        lacks = [
            f"{found:,} of {whole:,} {what}"
            for found, whole, what in zip(shape, self.shape, ("steps", self.sensor_word), strict=True)
            if found < whole
        ]
        return " and ".join(lacks)


def pick(paths: Paths, part: str) -> Path:
    """The one path whose file name contains `part`."""
    found = [path for name, path in paths.items() if part in name]
    require(len(found) == 1, f"expected one file named like {part!r} among {', '.join(paths)}: found {len(found)}")
    return found[0]
