"""`jointset audit`: is the set to be trusted? Audits of a saved model, or of filters fitted on cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jointset.commands import completion, readings
from jointset.errors import InputError, require, some
from jointset.support.how_far import part
from jointset.terminal import note, show_json, show_table, working

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

TRAINING = ("recipe", "steps")  # settings of a learned filter that make it another one; null where they are the default
WIDTH = 150  # of the table where the output is no terminal


def audit_command(
    model: Annotated[Path | None, typer.Argument(help="Model folder written by `jointset fit`.")] = None,
    panel: Annotated[Path | None, typer.Argument(help="Rows that follow those the model has seen.")] = None,
    cells: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.listed(completion.bench_cells),
            help="Fit and audit on cells instead: metr-la-20,aqi-12, ...",
        ),
    ] = None,
    filters: Annotated[
        str,
        typer.Option(
            autocompletion=completion.listed(completion.bench_methods),
            help="With --cells: methods to fit, comma-separated.",
        ),
    ] = "kalman",
    out: Annotated[Path | None, typer.Option(help="Results folder: one JSON file for each filter.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    html: Annotated[Path | None, typer.Option(help="Page to write with verdicts and decay plots.")] = None,
    audits: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.listed(completion.audits_known),
            help="Audits to run, comma-separated; `rank` only on request.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.protocols,
            help="With --cells: text, table or fit; by default fit for files, else text.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of training and of the perturbations.")] = 0,
    alpha: Annotated[float, typer.Option(help="With --cells: miss rate.")] = 0.1,
    recipe: Annotated[
        str | None,
        typer.Option(autocompletion=completion.recipes, help="Learned filters: fast, paper, or sharp (gnf-node)."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Learned filters: number of optimiser steps.")] = None,
    device: Annotated[
        str, typer.Option(autocompletion=completion.devices, help="Learned filters: cpu or cuda.")
    ] = "cpu",
    again: Annotated[bool, typer.Option("--again", help="Also redo what lies in the results folder.")] = False,
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
) -> None:
    """Ask of a filter what the guarantee rests on: does it forget, are its scores dependent, are its laws right?

    Either MODEL and PANEL, later readings of its sensors, or --cells with --filters and --out. Every audit ends in one
    plain sentence. What lies in the results folder is not done again.
    """
    from jointset.audits.questions import audits_named

    names = audits_named(None if audits is None else [part.strip() for part in audits.split(",") if part.strip()])
    if cells is None:
        require(
            model is not None and panel is not None,
            "nothing to audit: give MODEL and PANEL, or --cells NAMES --filters NAMES --out DIR",
        )
        assert model is not None and panel is not None
        fleet = readings.fleet_asked(drop, rename, ignore_unknown)
        asked = readings.Asked(layout, time_column, day_first, fleet)
        _audit_model(model, panel, names, out, as_json, html, seed, asked)
        return
    require(model is None, "MODEL and --cells exclude each other: audit one or the other")
    changed = bool(drop or rename or ignore_unknown)
    require(not changed, "--drop, --rename and --ignore-unknown go with MODEL PANEL; a cell is file:PATH?drop=NAME")
    require(out is not None, "--cells needs --out DIR, the results folder")
    training = {"device": device, "steps": steps, "recipe": recipe}
    given = {key: value for key, value in training.items() if value is not None and (key, value) != ("device", "cpu")}
    assert out is not None
    _audit_cells(cells, filters, names, out, as_json, html, protocol, seed, alpha, given, again)


def _audit_model(
    model: Path,
    panel: Path,
    names: Sequence[str],
    out: Path | None,
    as_json: bool,
    html: Path | None,
    seed: int,
    asked: readings.Asked,
) -> None:
    from jointset.audits.collect import audit
    from jointset.audits.light import overall
    from jointset.audits.stored import about, audit_file, write_audits
    from jointset.writing import output_file

    if html is not None:
        output_file(html, (".html",))
    predictor = readings.opened(model)
    data = asked.after(predictor, panel, "audits on known rows flatter")
    silent = [name for name, seen in zip(data.sensors, data.mask.T, strict=True) if not seen.any()]
    if silent:
        note(f"no reading of {some(silent)} in these rows: audits of single sensors leave them out")
    with working() as begun:
        found = audit(predictor, data, audits=names, seed=seed, progress=begun)
    facts = about(
        panel.name.partition(".")[0], model.resolve().name, seed=seed, alpha=predictor.alpha, n=data.n_sensors
    )
    if out is not None:
        file = audit_file(out, facts["cell"], facts["filter"])
        write_audits(file, {**facts, **found})
    if html is not None:
        from jointset.audits.page import write_page

        write_page(html, {f"{model.resolve().name} on {len(data):,} rows of {panel.name}": found})
    if as_json:
        show_json({**facts, "light": overall(found)["light"], **found})
    else:
        show_audits(found, f"{model} on {panel}: {data.n_sensors} sensors, {len(data):,} rows")
        for written in filter(None, (out and file, html)):
            typer.echo(f"Wrote {written}.")
    if any("failed" in record for record in found.values()):
        raise typer.Exit(1)


def _audit_cells(
    cells: str,
    filters: str,
    names: Sequence[str],
    out: Path,
    as_json: bool,
    html: Path | None,
    protocol: str | None,
    seed: int,
    alpha: float,
    training: dict[str, Any],
    again: bool,
) -> None:
    from jointset.audits.light import overall
    from jointset.audits.stored import FOLDER, audit_file, write_audits
    from jointset.bench.names import cells_named, methods_named, protocols_named
    from jointset.bench.task import message
    from jointset.catalogue import LEARNED
    from jointset.datasets.cells import cell as cell_named
    from jointset.datasets.protocols import default_protocol
    from jointset.errors import require_alpha
    from jointset.methods import parse
    from jointset.writing import new_folder, output_file

    if html is not None:
        output_file(html, (".html",))
    require_alpha(alpha)
    require(seed >= 0, f"the seed must be a whole number >= 0, got {seed}")
    require(len(protocols_named(protocol)) == 1, f"one protocol at a time, got {protocol!r}: text, table or fit")
    methods = methods_named(filters)
    trained = {key: training.get(key) for key in TRAINING}
    pairs = [(name, method) for name in cells_named(cells) for method in methods]
    asked = {
        (name, method): {"protocol": protocol or default_protocol(name), "seed": seed, "alpha": alpha}
        | (trained if parse(method).method in LEARNED else {})
        for name, method in pairs
    }
    new_folder(out)
    known = {}
    for name, method in pairs:  # two paths may come to one file name
        about = {"cell": name} if name.startswith("file:") else {}
        known[name, method] = _known(audit_file(out, name, method), about | asked[name, method], again)
    lacking = {
        pair: [name for name in names if again or "failed" in known[pair].get(name, {"failed": ""})] for pair in pairs
    }
    failed: list[str] = []
    audited, whole = {}, list[dict[str, Any]]()
    number, parts = 0, sum(map(bool, lacking.values()))
    with working() as begun:
        loaded: tuple[str, Any] = ("", None)
        for (name, method), todo in lacking.items():
            if todo:
                number += 1
                try:
                    loaded = loaded if loaded[0] == name else (name, cell_named(name, protocol, seed))
                    before, how = known[name, method], asked[name, method]
                    with part(number, parts):
                        content = _one_cell(loaded[1], method, todo, before, how, training, begun)
                except Exception as error:  # data that is not here, or a filter that does not fit, stops no other
                    failed.append(f"{name}, {method}: {message(error)}")
                    continue
                write_audits(audit_file(out, name, method), content)
                broken = [f"{key} ({content[key]['failed']})" for key in todo if "failed" in content[key]]
                failed += [f"{name}, {method}: {', '.join(broken)}"] if broken else []
            else:
                content = known[name, method]
            done = "" if todo else ", done before"
            title = f"{name}, {method} ({asked[name, method]['protocol']}, seed {seed})"
            audited[title] = {key: content[key] for key in names}
            facts = {"cell": name, "filter": method, **asked[name, method], "light": overall(audited[title])["light"]}
            whole.append(facts | audited[title])
            if not as_json:
                show_audits(audited[title], title + done)
    if html is not None and audited:
        from jointset.audits.page import write_page

        write_page(html, audited)
    shown = f"They are drawn in {html}." if html is not None else "--html FILE draws them, and so does jointset report."
    if as_json:
        show_json(whole)
    elif audited:
        typer.echo(f"Audits are in {out / FOLDER}. {shown}")
    if failed:
        note(f"{len(failed)} of {len(pairs)} could not be audited: {'; '.join(failed)}")
        raise typer.Exit(1)


def _one_cell(
    cell: Cell,
    method: str,
    todo: Sequence[str],
    before: dict[str, Any],
    asked: dict[str, Any],
    training: dict[str, Any],
    begun: Callable[[str], None],
) -> dict[str, Any]:
    from jointset.audits.collect import audit_cell
    from jointset.audits.questions import AUDITS
    from jointset.audits.stored import about

    def told(what: str) -> None:
        begun(f"{cell.name}, {method}: {what}")

    options = {"audits": todo, "alpha": asked["alpha"], "seed": asked["seed"], "training": training, "progress": told}
    found = audit_cell(method, cell, **options)
    facts = about(cell.name, method, **asked, n=cell.panel.n_sensors)
    return facts | {name: found.get(name, before.get(name)) for name in AUDITS if name in found or name in before}


def _known(file: Path, asked: dict[str, Any], again: bool) -> dict[str, Any]:
    """Audits that lie in a file; those made with other settings are refused, or dropped to be done again."""
    from jointset.audits.stored import read_audits

    if not file.is_file():
        return {}
    try:
        known = read_audits(file)
        for key, value in asked.items():
            held = f"{file} has {key} {_told(known.facts.get(key))}, not {_told(value)}"
            require(known.facts.get(key) == value, f"{held}: choose another --out, or use --again")
    except InputError:
        if not again:
            raise
        return {}
    return dict(known.audits)


def _told(value: object) -> object:
    return "by default" if value is None else value


def show_audits(found: dict[str, Any], title: str) -> None:
    """A table on stdout, audit, its number, the paper's where it prints one, and the verdict; then the light."""
    from jointset.audits.light import overall
    from jointset.audits.page import headline

    numbers = ("value", "paper") if any(headline(record.get("paper")) for record in found.values()) else ("value",)
    rows = []
    for name, record in found.items():
        reason = next((f"{key}: {record[key]}" for key in ("skipped", "failed") if key in record), "no verdict")
        rows.append([name, *(headline(record.get(key)) for key in numbers), record.get("verdict") or reason])
    show_table(("audit", *numbers, "verdict"), rows, title, words=("verdict",), wide=WIDTH)
    light = overall(found)
    typer.echo(f"{light['light'].upper()}: {light['verdict']}.")
