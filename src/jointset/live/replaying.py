"""Rows of a panel sent to a service, at their own pace or a faster one; a service that is away is waited for."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jointset.errors import InputError, require, some
from jointset.inputs.times import iso
from jointset.panel import Panel

BATCH = 50  # most rows of one request
LEAST = 0.05  # seconds between two requests: faster rows go together
PATIENCE = 60.0  # seconds to wait for a service that does not answer
AGAIN = (429, 503, 507)  # answers after which the same rows are sent again
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a service on this machine needs no proxy

Row = dict[str, Any]


class Target(NamedTuple):
    """The address of a network, the token that its service asks for, and who is told that it is waited for."""

    url: str
    token: str | None = None
    notice: Callable[[str], object] = str

    def ask(self, path: str, body: bytes | None = None) -> Any:
        """The JSON answer to a request; waits for a service that is away or busy, and tells what it refuses."""
        headers = {"Content-Type": "application/json"}
        headers |= {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        until, wait, told = time.monotonic() + PATIENCE, 0.1, False
        while True:
            try:
                with DIRECT.open(urllib.request.Request(self.url + path, body, headers), timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                text = _line(error)
                if error.code not in AGAIN or time.monotonic() > until:
                    raise InputError(f"{self.url}{path}: {text}") from None
            except (OSError, ValueError) as error:
                if time.monotonic() > until:
                    raise InputError(f"no answer from {self.url}: is `jointset serve` running? ({error})") from None
                if not told:
                    self.notice(f"no answer from {self.url} ({error}): waiting for it, {PATIENCE:g} s at most")
                told = True
            time.sleep(wait)
            wait = min(2 * wait, 2.0)

    def send(self, rows: list[Row]) -> list[Row]:
        """Post rows; the answers of the service, one a row."""
        found: list[Row] = self.ask("/observations", json.dumps(rows).encode())
        return found


def _line(error: urllib.error.HTTPError) -> str:
    """What the service says of a request that it refused."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"answer {error.code}"


def target_of(url: str, token: str | None = None, notice: Callable[[str], object] = str) -> Target:
    """The network of an address; of a service with one network its own address will do."""
    parts = urlsplit(url)
    require(
        parts.scheme in ("http", "https") and bool(parts.netloc), f"{url!r} is no address: write http://HOST:PORT/NAME"
    )
    base, name = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
    if not name:
        names = [one["name"] for one in Target(base, token, notice).ask("/networks")["networks"]]
        require(len(names) == 1, f"{url} serves {some(names)}: add a name, as in {base}/{names[0]}")
        name = names[0]
    return Target(f"{base}/{name}", token, notice)


def rows_of(panel: Panel, first: int | None = None) -> list[Row]:
    """The rows of a panel as they are posted; with `first` (epoch seconds) the first row is of that time."""
    require(panel.timestamps is not None, "the rows have no time stamps: a service needs them")
    assert panel.timestamps is not None
    shift = 0 if first is None or not len(panel) else first - int(panel.timestamps[0])
    times = [iso(int(seconds) + shift) for seconds in panel.timestamps]
    missing = [[None if value != value else value for value in row] for row in panel.values.tolist()]
    return [
        {"time": when, "values": dict(zip(panel.sensors, row, strict=True))}
        for when, row in zip(times, missing, strict=True)
    ]


def pauses(panel: Panel, speed: float) -> list[float]:
    """Seconds to wait before each row, `speed` times faster than its clock; 0: none."""
    assert panel.timestamps is not None
    steps = [0, *(after - before for before, after in pairwise(panel.timestamps.tolist()))]
    return [step / speed if speed else 0.0 for step in steps]


def batches(rows: list[Row], waits: list[float]) -> Iterator[tuple[float, list[Row]]]:
    """Rows that go together, and the seconds before them: those that follow each other fast share a request.

    >>> [(round(wait, 2), len(rows)) for wait, rows in batches([{}] * 5, [0.0, 0.02, 0.04, 0.02, 1.0])]
    [(0.0, 1), (0.06, 2), (1.02, 2)]
    """
    held: list[Row] = []
    total = 0.0
    for i, (row, wait) in enumerate(zip(rows, waits, strict=True)):
        held.append(row)
        total += wait
        if total >= LEAST or len(held) == BATCH or i == 0:
            yield total, held
            held, total = [], 0.0
    if held:
        yield total, held


def replay(
    target: Target, rows: list[Row], waits: list[float], answered: Callable[[list[Row]], None] = lambda found: None
) -> None:
    """Send rows, each after its wait; `answered` is told the answers. What sending takes is not waited again."""
    due = time.monotonic()
    for wait, some_rows in batches(rows, waits):
        due += wait
        time.sleep(max(0.0, due - time.monotonic()))
        answered(target.send(some_rows))
        due = max(due, time.monotonic() - 1.0)  # rows that fall behind are not hurried after
