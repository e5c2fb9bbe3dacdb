"""`jointset serve`: models as a service that readings are sent to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jointset.commands import readings
from jointset.errors import InputError, require
from jointset.terminal import busy, note, several

Models = Annotated[list[str], typer.Argument(help="Model folders, served under their own names, or NAME=FOLDER.")]


def serve_command(
    models: Models,
    store: Annotated[Path, typer.Option(help="Folder that keeps what was read.")] = Path("jointset-store"),
    host: Annotated[str, typer.Option(help="Address to listen on; all but loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any that is free.")] = 8000,
    keep: Annotated[int, typer.Option(help="Rows of each network that are kept.")] = 100_000,
    cadence: Annotated[int | None, typer.Option(help="Seconds between rows, where the model knows none.")] = None,
    grace: Annotated[int | None, typer.Option(help="Seconds to wait for single readings; else half a cadence.")] = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
    lowest: readings.Lowest = None,
    highest: readings.Highest = None,
    token_file: Annotated[Path | None, typer.Option(help="File of tokens, one a line; requests need one.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate (PEM), for TLS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the certificate (PEM).")] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="Name a proxy calls the service by.")] = None,
    rate: Annotated[float, typer.Option(help="Requests a second that one client may send.")] = 1_000.0,
    most_mib: Annotated[float, typer.Option(help="Largest body of a request in MiB.")] = 8.0,
    webhook: Annotated[list[str] | None, typer.Option(help="Address that changes of alarms are posted to.")] = None,
    webhook_secret: Annotated[Path | None, typer.Option(help="File with the secret that signs these posts.")] = None,
    alarm_log: Annotated[Path | None, typer.Option(help="File that gets a line of JSON for every change.")] = None,
    mqtt: Annotated[str | None, typer.Option(help="Broker for readings and alarms, mqtt[s]://[user@]host.")] = None,
    mqtt_password_file: Annotated[Path | None, typer.Option(help="File with the password of that user.")] = None,
    mqtt_base: Annotated[str, typer.Option(help="First part of the topics, as in BASE/NETWORK/readings.")] = "jointset",
    mqtt_topics: Annotated[Path | None, typer.Option(help="Topics of devices, lines topic,sensor[,key].")] = None,
    mqtt_discovery: Annotated[
        str, typer.Option(help="Where Home Assistant looks for entities; empty: tell it nothing.")
    ] = "homeassistant",
) -> None:
    """Serve models over HTTP: readings in, sets and alarms out; what is answered with 200 is on the disk.

    The store is gone on from: a service that was killed stands where it stood. GET /docs lists the routes.
    """
    try:
        import fastapi  # noqa: F401
        import orjson  # noqa: F401
        import uvicorn
    except ImportError:
        raise InputError("the service needs FastAPI and uvicorn: pip install 'jointset[serve]'") from None
    from threadpoolctl import threadpool_limits

    from jointset.inputs.sensor_health import words_on_jumps
    from jointset.live.app import make_app
    from jointset.live.heads import make_room
    from jointset.live.listening import address_of, calm_logs, listening
    from jointset.live.network import Settings
    from jointset.live.opening import open_network
    from jointset.live.security import Guard, is_loopback, read_tokens, require_tls
    from jointset.live.ways_out import Broker, asked_for, open_bridge, open_ways
    from jointset.predicting.limits import limits_asked

    require((tls_cert is None) == (tls_key is None), "--tls-cert and --tls-key go together: give both")
    guarded = token_file is not None or tls_cert is not None
    require(is_loopback(host) or guarded, f"--host {host} can be reached by others: give --token-file, or TLS files")
    require(keep >= 1_000, f"--keep must be at least 1,000 rows, got {keep}")
    require(rate > 0 and most_mib > 0, "--rate and --most-mib must be positive")
    for name, seconds, least in (("cadence", cadence, 1), ("grace", grace, 0)):
        require(seconds is None or seconds >= least, f"--{name} must be at least {least} s, got {seconds}")
    if tls_cert is not None and tls_key is not None:
        require_tls(tls_cert, tls_key)
    tokens = () if token_file is None else read_tokens(token_file)
    guard = Guard(tokens, rate, 2 * rate, int(most_mib * 2**20), frozenset(allow_host or ()))
    fleet = readings.fleet_asked(None, rename, ignore_unknown)
    settings = Settings(keep, 500, cadence, grace, fleet, limits_asked(lowest, highest))
    named, out = named_models(models), asked_for(webhook or (), webhook_secret, alarm_log)
    taken = listening(host, port)
    with taken, threadpool_limits(1):  # many small products: one thread is faster, and always adds in one order
        networks = {}
        for name, model in named.items():
            with busy(f"opening {name}"):
                networks[name] = open_network(name, model, store, settings, note)
        for name, network in networks.items():
            sensors, rows = several(len(network.sensors), "sensor"), several(network.standing.number, "row")
            note(f"{name}: {sensors}, {rows} in the store")
            predictor = network.standing.predictor
            if words := words_on_jumps(predictor.usual, predictor.graph):
                note(f"{name}: {words}")
        couriers = [one for network in networks.values() for one in open_ways(network, out, note)]
        bridge = None
        if mqtt is not None:
            broker = Broker(mqtt, mqtt_password_file, mqtt_base, mqtt_topics, mqtt_discovery)
            bridge, more = open_bridge(broker, networks, store, note)
            couriers += more
        scheme = "http" if tls_cert is None else "https"
        note(f"serving on {address_of(scheme, host, taken)}; Ctrl-C stops")
        config = uvicorn.Config(
            make_app(networks, guard),
            http=make_room(),
            log_level="warning",
            access_log=False,
            server_header=False,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
            timeout_graceful_shutdown=5,
            ws_max_size=4096,
            lifespan="on",
        )
        calm_logs()
        try:
            uvicorn.Server(config).run(sockets=[taken])
        except KeyboardInterrupt:
            pass
        finally:
            for courier in couriers:
                courier.close()
            if bridge is not None:
                bridge.close()
            for network in networks.values():
                network.close()


def named_models(given: list[str]) -> dict[str, Path]:
    """Model folders by the names they are served under."""
    from jointset.live.opening import checked_name

    found: dict[str, Path] = {}
    for text in given:
        name, mark, folder = text.partition("=")
        if not mark or "/" in name:
            name, folder = Path(text).resolve().name, text
        require(checked_name(name) not in found, f"two models would be called {name!r}: write NAME=FOLDER")
        found[name] = Path(folder)
    return found
