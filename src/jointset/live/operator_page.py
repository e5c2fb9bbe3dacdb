"""The page for operators: its files, where to draw its sensors, and the past in columns."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from jointset.calibration.own_bands import own_rule
from jointset.contracts import Array
from jointset.errors import require, suggest
from jointset.inputs.sensor_places import drawing
from jointset.live.network import Network
from jointset.live.store import Store
from jointset.next_set import announced

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
MOST = 100_000  # rows of one answer,
MOST_DETAILED = 3_000  # and of one with single readings


def add_page(app: FastAPI) -> None:
    """Add the page at `/`, its files under `/pages/`, and what its scripts ask for beside the other routes."""
    parts = {part.name: part.read_bytes() for part in (files("jointset") / "live" / "pages").iterdir()}

    def part(name: str) -> Response:
        kind = KINDS.get(name.rpartition(".")[2])
        if name not in parts or kind is None:
            raise HTTPException(404, f"the page has no file {name[:60]!r}")
        return Response(parts[name], media_type=kind)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return part("index.html")

    @app.get("/pages/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        return part(name)

    drawn: dict[str, Any] = {}  # a layout takes a while: once for all

    @app.get("/{name}/drawing", tags=["page"])
    async def drawing_of(name: str, request: Request) -> Response:
        """The sensors of a network, where they are drawn, and their edges."""
        network = network_of(request, name)
        if name not in drawn:
            drawn[name] = await run_in_threadpool(facts, network)
        return JSONResponse(drawn[name])

    @app.get("/{name}/announced", tags=["page"])
    async def announced_now(name: str, request: Request) -> Response:
        """The sets of the next steps in sensor order, and the bands of sensors alone; one step without a horizon."""
        network = network_of(request, name)
        steps = await run_in_threadpool(announced, network.standing.predictor, network.settings.limits)
        return JSONResponse({"steps": steps})

    @app.get("/{name}/columns", tags=["page"])
    async def columns(
        name: str,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=2**31)] = 1_000,
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
        before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
        detail: bool = False,
    ) -> Response:
        """The last rows numbered between, column by column in bytes (`packed_rows`)."""
        network = network_of(request, name)
        wanted = Wanted(limit, after, before, detail).checked()
        found = await run_in_threadpool(packed_rows, network.store, len(network.sensors), wanted)
        return Response(found, media_type="application/octet-stream")


def network_of(request: Request, name: str) -> Network:
    """The network of a name."""
    networks: dict[str, Network] = request.app.state.networks
    if name not in networks:
        raise HTTPException(404, f"there is no network {name[:60]!r}: {suggest(name[:60], list(networks))}")
    return networks[name]


def facts(network: Network) -> dict[str, Any]:
    """What the scripts of the page need before any row."""
    predictor = network.standing.predictor
    own = None if predictor.usual is None else predictor.usual.own
    return {
        "sensors": list(predictor.sensors),
        **drawing(predictor.places, predictor.graph, len(predictor.sensors)),
        "alpha": predictor.alpha,
        "own": own_rule(predictor.score, own),
    }


class Wanted(NamedTuple):
    """Which rows: the last `limit` of those numbered between, with single readings or without."""

    limit: int
    after: int = 0
    before: int | None = None
    detail: bool = False

    def checked(self) -> Wanted:
        """Itself, refused where that is more than a browser should take."""
        most = MOST_DETAILED if self.detail else MOST
        require(1 <= self.limit <= most, f"limit must be 1 to {most:,}, got {self.limit}")
        return self


def packed_rows(store: Store, sensors: int, wanted: Wanted) -> bytes:
    """The rows that are wanted, oldest first and column by column, in bytes that a browser takes as they are.

    Two whole numbers of four bytes, rows and sensors (0: no single readings); then numbers of the log and times
    (float64), scores and radii (float32), readings, lower and upper ends and shares of the score (float32, row after
    row), and outcomes (one byte: 1 inside, 0 outside, -1 no reading).
    """
    rows = store.columns(wanted.limit, wanted.after, wanted.before, detail=wanted.detail)
    count = len(rows)
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * (8 if wanted.detail else 5)
    number, seconds, score, radius, inside = columns[:5]
    parts = [
        np.array([count, sensors if wanted.detail else 0], "<u4"),
        np.array(number, "<f8"),
        np.array(seconds, "<f8"),
        _numbers(score, np.nan),
        _numbers(radius, np.inf),  # a set without an end has none
    ]
    if wanted.detail:
        parts += _details(columns[5:], count, sensors)
    parts.append(np.array([-1 if hit is None else hit for hit in inside], "i1"))
    return b"".join(part.tobytes() for part in parts)


def _numbers(column: tuple[float | None, ...], unknown: float) -> Array:
    return np.array([unknown if x is None else x for x in column], "<f4")


def _details(columns: list[Any], count: int, sensors: int) -> list[Array]:
    """Readings, ends and shares (T, N) of rows, from the bytes of the store."""
    readings, bounds, shares = columns
    values = np.frombuffer(b"".join(readings), "<f8").reshape(count, sensors)
    lower, upper = np.frombuffer(b"".join(bounds), "<f8").reshape(count, 2, sensors).transpose(1, 0, 2)
    weights = np.frombuffer(b"".join(shares), "<f4")
    return [np.ascontiguousarray(part, "<f4") for part in (values, lower, upper)] + [weights]
