"""The page for operators: its files, where to draw its sensors, and the past in columns."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from jointset.calibration.own_bands import own_rule
from jointset.inputs.sensor_places import drawing
from jointset.live.columns import Wanted, packed_rows
from jointset.live.network import Network
from jointset.next_set import announced

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


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
        """The last rows numbered between, column by column in bytes (`jointset.live.columns`)."""
        network = network_of(request, name)
        wanted = Wanted(limit, after, before, detail).checked()
        found = await run_in_threadpool(packed_rows, network.store, len(network.sensors), wanted)
        return Response(found, media_type="application/octet-stream")


def network_of(request: Request, name: str) -> Network:
    """The network of a name."""
    networks: dict[str, Network] = request.app.state.networks
    if name not in networks:
        raise HTTPException(404, f"there is no network {name[:60]!r}")
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
