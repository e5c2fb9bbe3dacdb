"""One self-contained page of audits: the verdicts as a table, the decay curves as pictures."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jointset
from jointset.writing import whole_file

TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audits</title><link rel="icon" href="data:,">
<style>
 body { margin: 0; background: #fafafa; color: #222; font: 16px/1.5 system-ui, "Segoe UI", Arial, sans-serif; }
 main { max-width: 1000px; margin: 0 auto; padding: 2rem 1rem 3rem; }
 table { border-collapse: collapse; width: 100%; background: #fff; }
 th, td { padding: .4rem .7rem; text-align: left; border-bottom: 1px solid #e2e2e2; vertical-align: top; }
 td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
 .skipped { color: #777; }
 small { color: #555; }
 .curves { margin-top: 1rem; display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 1rem; }
 figure { margin: 0; background: #fff; border: 1px solid #e2e2e2; border-radius: 6px; padding: .6rem; }
 figure svg { display: block; width: 100%; height: auto; }
 footer { margin-top: 2rem; font-size: .85rem; color: #555; }
</style></head><body><main>
<h1>Audits: when to trust the set</h1>
{% for section in sections %}
<h2>{{ section.title }}</h2>
<table><thead><tr><th>audit</th><th>value</th><th>paper</th><th>verdict</th></tr></thead><tbody>
{% for name, record in section.audits.items() %}
<tr{% if record.skipped %} class="skipped"{% endif %}><td>{{ name }}</td>
<td class="number">{{ record.value | number }}</td><td class="number">{{ record.paper | number }}</td>
<td>{{ record.verdict or "skipped: " ~ record.skipped }}
{% if record.note %}<br><small>{{ record.note }}</small>{% endif %}</td></tr>
{% endfor %}
</tbody></table>
<div class="curves">{% for picture in section.pictures %}<figure>{{ picture }}</figure>{% endfor %}</div>
{% endfor %}
<footer>jointset {{ version }}</footer>
</main></body></html>
"""


def write_page(path: Path, audited: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the page: a section for every title, the audits of which are records; it needs no network."""
    from jinja2 import Environment
    from markupsafe import Markup

    sections = []
    for title, audits in audited.items():
        curves = [(name, curve) for name, record in audits.items() if (curve := record.get("curve"))]
        pictures = [Markup(svg(name, curve, f"{title} {name}")) for name, curve in curves]
        sections.append({"title": title, "audits": audits, "pictures": pictures})
    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters["number"] = headline
    text = environment.from_string(TEMPLATE).render(sections=sections, version=jointset.__version__)
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def headline(value: Any) -> str:
    """The number of an audit, or the first of several, in four digits; empty where there is none.

    >>> headline(0.3375595), headline({"sigma_1": 0.443}), headline({"p50": "at most 0.36"}), headline(None)
    ('0.3376', '0.443', '', '')
    """
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, int | float)), None)
    return f"{value:,.4g}" if isinstance(value, int | float) else ""


def svg(name: str, curve: Mapping[str, Any], salt: str = "") -> str:
    """A curve as an inline picture, logarithmic where it says so; `salt` keeps the marks of pictures apart."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt or name, "font.size": 9}):
        figure = Figure(figsize=(4.2, 2.8), layout="constrained")
        axes = figure.subplots()
        points = [(x, y) for x, y in zip(curve["x"], curve["y"], strict=True) if x is not None and y is not None]
        if curve.get("scale") == "log":
            points = [(x, y) for x, y in points if y > 0]
            axes.set_yscale("log")
        axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=2.5, linewidth=1)
        axes.set_title(f"{name}: {curve['label']}", fontsize=9)
        axes.set_xlabel(curve.get("xlabel", ""))
        axes.spines[["top", "right"]].set_visible(False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return text[text.index("<svg") :]
