"""One self-contained page of audits: a light over all of them, each in plain words, its curve and its symbol."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jointset.audits.light import OPENING, RULES, light_of, overall
from jointset.audits.questions import AUDITS
from jointset.pages.shell import render_page, svg, write_text
from jointset.predicting.clock_coverage import WEEKDAYS

FEW = 5  # rows of a cell of the table hour by weekday below which its share is small print
DEEP = 0.4  # points under the target at which a cell is as red as it gets


def write_page(path: Path, audited: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the page: a section for every title, the audits of which are records; it needs no network."""
    sections = [section(title, audits) for title, audits in audited.items()]
    write_text(path, render_page("audits", {"sections": sections, "rules": RULES, "few": FEW}))


def section(title: str, audits: Mapping[str, Any]) -> dict[str, Any]:
    """One predictor on the page: its light, what was asked and what could not be."""
    light = overall(audits)
    done = [card(name, record, title) for name, record in audits.items() if "skipped" not in record]
    skipped = [
        {"name": name, "title": _entry(name)["title"], "reason": record["skipped"]}
        for name, record in audits.items()
        if "skipped" in record
    ]
    shown = light | {"opening": OPENING[light["light"]]}
    return {"title": title, "overall": shown, "done": done, "skipped": skipped}


def card(name: str, record: Mapping[str, Any], salt: str) -> dict[str, Any]:
    """One audit on the page."""
    curve = record.get("curve")
    verdict = record.get("verdict") or f"could not be done: {record.get('failed', 'no verdict')}"
    return {
        "name": name,
        **_entry(name),
        "light": light_of(name, record) or "none",
        "verdict": verdict[0].upper() + verdict[1:],
        "number": headline(record.get("value")),
        "paper": headline(record.get("paper")),
        "note": record.get("note"),
        "heat": heat(record) if name == "clock" and "hits" in record else None,
        "picture": curve_svg(curve, f"{salt} {name}") if curve else None,
    }


def heat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The table hour by weekday: a cell for each, and a last one for the hour over all days."""
    rows, hits = np.array(record["rows"]), np.array(record["hits"])  # (7, 24)
    target = float(record["target"])
    hits, rows = (np.vstack([counts, counts.sum(axis=0)]) for counts in (hits, rows))
    lines = [
        (f"{hour:02d}", [_cell(*counts, target) for counts in zip(hits[:, hour], rows[:, hour], strict=True)])
        for hour in np.flatnonzero(rows[-1])
    ]
    return {"days": [name[:2] for name in WEEKDAYS], "hours": lines}


def _cell(hits: int, rows: int, target: float) -> dict[str, Any]:
    if not rows:
        return {"hits": 0, "rows": 0, "share": "", "colour": "#f4f4f4"}
    share = float(hits / rows)
    return {"hits": int(hits), "rows": int(rows), "share": f"{100 * share:.0f}", "colour": colour(share, target)}


def colour(share: float, target: float) -> str:
    """White at the target, red as far as 40 points under it, blue up to all rows inside.

    >>> colour(0.9, 0.9), colour(0.4, 0.9), colour(1.0, 0.9)
    ('rgb(255,255,255)', 'rgb(239,138,98)', 'rgb(146,197,222)')
    """
    below = share < target
    strength = min((target - share) / DEEP, 1.0) if below else (share - target) / max(1.0 - target, 1e-9)
    full = (239, 138, 98) if below else (146, 197, 222)
    return f"rgb({','.join(str(round(255 + strength * (channel - 255))) for channel in full)})"


def _entry(name: str) -> dict[str, str]:
    return {key: getattr(AUDITS[name], key) for key in ("title", "question", "symbol")}


def headline(value: object) -> str:
    """The number of an audit, or the first of several, in four digits; empty where there is none.

    >>> headline(0.3375595), headline({"sigma_1": 0.443}), headline({"p50": "at most 0.36"}), headline(None)
    ('0.3376', '0.443', '', '')
    """
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, int | float)), None)
    return f"{value:,.4g}" if isinstance(value, int | float) else ""


def curve_svg(curve: Mapping[str, Any], salt: str = "") -> Any:
    """A curve as an inline picture, logarithmic where it says so; `salt` keeps the marks of pictures apart."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 10}):
        figure = Figure(figsize=(4.2, 2.6), layout="constrained")
        axes = figure.subplots()
        points = [(x, y) for x, y in zip(curve["x"], curve["y"], strict=True) if x is not None and y is not None]
        if curve.get("scale") == "log":
            points = [(x, y) for x, y in points if y > 0]
            axes.set_yscale("log")
        axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=2.5, linewidth=1)
        if curve.get("target") is not None:
            axes.axhline(curve["target"], color="#777", linewidth=1, linestyle="--")
        axes.set_title(curve["label"], fontsize=10)
        axes.set_xlabel(curve.get("xlabel", ""))
        axes.spines[["top", "right"]].set_visible(False)
        return svg(figure)
