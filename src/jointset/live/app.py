"""The HTTP service: routes, each a few lines over a network.

Every error is `{"error": "one line"}`. What a request changes is on the disk before it is answered with 200.
"""

from __future__ import annotations

import asyncio
import io
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Path, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

import jointset
from jointset.errors import InputError
from jointset.live import answers, history
from jointset.live.documents import OBSERVATIONS, docs_page
from jointset.live.feed import Feed, serve_socket
from jointset.live.formats import INFLUX, seconds_of
from jointset.live.metrics import metrics_text
from jointset.live.network import Busy, Network
from jointset.live.operator_page import add_page, network_of
from jointset.live.requests import Intake, body_of, kind_of
from jointset.live.security import Guard, Guarded
from jointset.live.store import StoreError, one_line

Limit = Annotated[int, Query(ge=1, le=history.MOST)]
Number = Annotated[int, Query(ge=0, le=2**62)]
AlarmId = Annotated[str, Path(max_length=80)]
Rows = Annotated[int | None, Query(ge=1, le=10_000)]
Horizon = Annotated[int | None, Query(ge=1, le=10_000)]
Minutes = Annotated[int, Query(ge=1, le=525_600)]
Precision = Annotated[str, Query(max_length=2, description="unit of time stamps of line protocol: ns, us, ms, s")]
NO_ROUTE = {  # what the framework says of requests that it has no route for, and what we do
    "Not Found": "there is nothing at this address: /docs lists the routes",
    "Method Not Allowed": "this address takes no request of this kind: /docs lists the routes",
}
WHOLE = re.compile(r"-?[0-9]{1,18}")
MOMENT = Query(max_length=40, description="ISO 8601 or epoch seconds")


def make_app(networks: Mapping[str, Network], guard: Guard | None = None) -> Guarded:
    """The service of some networks, behind its guard."""
    guard = guard or Guard()

    @asynccontextmanager
    async def running(app: FastAPI) -> Any:
        app.state.feeds = {name: Feed(network, asyncio.get_running_loop()) for name, network in networks.items()}
        yield
        for feed in app.state.feeds.values():
            feed.close()

    app = FastAPI(
        title="jointset",
        version=jointset.__version__,
        description="Joint prediction sets for networks of sensors, served.",
        docs_url=None,
        redoc_url=None,
        lifespan=running,
    )
    app.state.networks, app.state.guard, app.state.intake = dict(networks), guard, Intake()
    for kind in (HTTPException, RequestValidationError, InputError, StoreError, sqlite3.Error, Busy, Exception):
        app.add_exception_handler(kind, _told)
    _add_routes(app)
    add_page(app)
    return Guarded(app, guard)


async def _told(request: Request, error: Exception) -> Response:
    """The answer to a request that failed: one line."""
    status, text = 500, "something went wrong in the service: look at its log"
    if isinstance(error, HTTPException):
        status, text = error.status_code, NO_ROUTE.get(str(error.detail), str(error.detail))
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        status, text = 422, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"
    elif isinstance(error, (StoreError, sqlite3.Error)):
        found = error if isinstance(error, StoreError) else one_line(error)
        status, text = found.status, str(found)
    elif isinstance(error, Busy):
        status, text = 503, str(error)
    elif isinstance(error, InputError):
        status, text = 422, str(error)
    again = {"retry-after": "1"} if status in (429, 503, 507) else {}
    return JSONResponse({"error": " ".join(text.split())}, status, again)


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _add_routes(app: FastAPI) -> None:
    @app.post("/{name}/observations", openapi_extra=OBSERVATIONS, tags=["readings"])
    async def observations(name: str, request: Request, precision: Precision = "ns") -> Response:
        """Take rows, or readings of single sensors; answer once they are on the disk, one answer a row.

        A row whose time has been answered before is answered as it was then, with `repeated`; it does not count again.
        """
        network = network_of(request, name)
        body = await body_of(request, request.app.state.guard.most_bytes)
        kind = kind_of(request.headers.get("content-type", ""), body)
        found, many = await asyncio.wrap_future(network.post(body, kind, precision))
        return _json(found if many else found[0])

    @app.post("/{name}/api/v2/write", include_in_schema=False)
    @app.post("/{name}/write", include_in_schema=False)
    async def write(name: str, request: Request, precision: Precision = "ns") -> Response:
        """Line protocol as InfluxDB takes it: 204 once it is on the disk."""
        network = network_of(request, name)
        body = await body_of(request, request.app.state.guard.most_bytes)
        await asyncio.wrap_future(network.post(body, INFLUX, precision))
        return Response(status_code=204)

    @app.get("/{name}/region", tags=["sets"])
    async def region(name: str, request: Request, factors: bool = False, horizon: Horizon = None) -> Response:
        """The set for the next reading: mean, bounds, sizes; with `factors` the covariance of its law.

        With the `horizon` that the model was fitted with, the sets of so many steps.
        """
        network = network_of(request, name)
        return _json(await run_in_threadpool(answers.region, network, network.standing, factors, horizon))

    @app.get("/{name}/history", tags=["readings"])
    async def past(
        name: str,
        request: Request,
        limit: Limit = 100,
        after: Annotated[int | None, Query(ge=0, le=2**62, description="rows after this number, oldest first")] = None,
        before: Annotated[int | None, Query(ge=0, le=2**62, description="rows before this number")] = None,
        since: Annotated[str | None, MOMENT] = None,
        until: Annotated[str | None, MOMENT] = None,
        fields: Annotated[str, Query(max_length=60, description="what beside the answer")] = ",".join(history.FIELDS),
        format: Annotated[str, Query(max_length=10, description="json, csv or parquet")] = "json",
    ) -> Response:
        """Past rows, oldest first: the last `limit`, or the first `limit` after a number."""
        network = network_of(request, name)
        moments = (int(when) if when and WHOLE.fullmatch(when) else when for when in (since, until))
        first, last = (None if when is None else seconds_of(when, "time") for when in moments)
        wanted = tuple(field.strip() for field in fields.split(",") if field.strip())
        asked = history.Asked(limit, after, before, first, last, wanted).checked()
        return await run_in_threadpool(_history, network, asked, format)

    @app.get("/{name}/alarms", tags=["alarms"])
    async def alarms(name: str, request: Request, after: Number = 0, limit: Limit = 100) -> Response:
        """Open alarms, and what became of alarms after a change's number, oldest first."""
        return _json(await run_in_threadpool(answers.alarms, network_of(request, name), after, limit))

    @app.post("/{name}/alarms/{alarm}/acknowledge", tags=["alarms"])
    async def acknowledge(name: str, alarm: AlarmId, request: Request) -> Response:
        """Say that an alarm has been seen; a change that was acknowledged is learned as the usual."""
        return await _acted(request, name, {"action": "acknowledge", "id": alarm})

    @app.post("/{name}/alarms/{alarm}/silence", tags=["alarms"])
    async def silence(name: str, alarm: AlarmId, request: Request, minutes: Minutes = 60) -> Response:
        """Send nothing of an alarm for so many minutes of the rows' own time."""
        return await _acted(request, name, {"action": "silence", "id": alarm, "minutes": minutes})

    @app.post("/{name}/alarms/{alarm}/clear", tags=["alarms"])
    async def clear(name: str, alarm: AlarmId, request: Request) -> Response:
        """End an alarm by hand; what raised it begins anew."""
        return await _acted(request, name, {"action": "clear", "id": alarm})

    @app.post("/{name}/recalibrate", tags=["alarms"])
    async def recalibrate(
        name: str, request: Request, rows: Annotated[int | None, Query(ge=1, le=10_000)] = None
    ) -> Response:
        """Calibrate the model again: on the rows since an acknowledged change, or on the last `rows`."""
        return await _acted(request, name, {"action": "recalibrate", "rows": rows})

    @app.get("/{name}/trust", tags=["sets"])
    async def trust(name: str, request: Request) -> Response:
        """What the model says of itself: coverage to expect, drift, sensors that are silent or stuck."""
        return _json(await run_in_threadpool(answers.trust, network_of(request, name)))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    @app.get("/networks", tags=["service"])
    async def networks(request: Request) -> Response:
        """The networks served here, their sensors and their cadence."""
        served: dict[str, Network] = request.app.state.networks
        return _json({"networks": [answers.about(network) for network in served.values()]})

    @app.get("/health", tags=["service"])
    async def health() -> Response:
        """Whether the service runs."""
        return _json({"status": "ok", "version": jointset.__version__})

    @app.get("/ready", tags=["service"])
    async def ready(request: Request) -> Response:
        """Whether every network can take readings; 503 with the reason where one cannot."""
        served: dict[str, Network] = request.app.state.networks
        trouble = {name: network.trouble for name, network in served.items() if network.trouble}
        if trouble:
            return _json({"error": "; ".join(f"{name}: {text}" for name, text in trouble.items())}, 503)
        return _json({"status": "ready", "rows": {name: network.standing.number for name, network in served.items()}})

    @app.get("/metrics", tags=["service"])
    async def metrics(request: Request) -> Response:
        """Counters and gauges as Prometheus reads them."""
        text = await run_in_threadpool(metrics_text, list(request.app.state.networks.values()))
        return Response(text, media_type="text/plain; version=0.0.4")

    @app.websocket("/{name}/live")
    async def live(socket: WebSocket, name: str) -> None:
        """Rows and changes of alarms as they come."""
        networks: dict[str, Network] = socket.app.state.networks
        if name not in networks:
            await socket.close(1008, f"there is no network {name[:60]!r}")
            return
        await serve_socket(socket, socket.app.state.feeds[name])


async def _acted(request: Request, name: str, action: dict[str, Any]) -> Response:
    """Do what an operator asks for, and answer once it is on the disk."""
    return _json(await asyncio.wrap_future(network_of(request, name).act(action)))


def _history(network: Network, asked: history.Asked, format: str) -> Response:
    """Past rows in the format asked for."""
    store, sensors = network.store, network.sensors
    if format == "json":
        return StreamingResponse(_utf8(history.as_json(store, sensors, asked)), media_type="application/json")
    if format == "csv":
        return StreamingResponse(_utf8(history.as_csv(store, sensors, asked)), media_type="text/csv")
    if format == "parquet":
        file = io.BytesIO()
        history.write_parquet(file, store, sensors, asked)
        return Response(file.getvalue(), media_type="application/vnd.apache.parquet")
    raise InputError(f"unknown format {format!r}: choose one of {', '.join(history.FORMATS)}")


def _utf8(parts: Iterator[str]) -> Iterator[bytes]:
    return (part.encode() for part in parts)
