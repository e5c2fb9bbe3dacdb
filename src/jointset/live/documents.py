"""What the OpenAPI document says of bodies, and a page that shows its routes without a script."""

from __future__ import annotations

from html import escape
from typing import Any

ROW = {
    "type": "object",
    "required": ["time", "values"],
    "properties": {
        "time": {"oneOf": [{"type": "string"}, {"type": "number"}], "description": "ISO 8601 or epoch seconds"},
        "values": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
    },
    "example": {"time": "2012-03-01T00:05:00Z", "values": {"773869": 64.4, "767541": None}},
}
OBSERVATIONS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"oneOf": [ROW, {"type": "array", "items": ROW}]}},
            "application/x-ndjson": {"schema": {"type": "string", "description": "a row a line"}},
            "text/csv": {"schema": {"type": "string", "description": "a header, then a row or a reading a line"}},
            "text/plain": {"schema": {"type": "string", "description": "InfluxDB line protocol"}},
        },
    }
}
STYLE = "body{font:16px/1.5 system-ui;margin:2rem auto;max-width:50rem;padding:0 1rem}dt{margin-top:1rem}"


def docs_page(document: dict[str, Any]) -> str:
    """The routes of an OpenAPI document as a plain page."""
    items = []
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            given = ", ".join(one["name"] for one in about.get("parameters", []) if one["in"] == "query")
            query = f" <small>?{escape(given)}</small>" if given else ""
            items.append(f"<dt><code>{method.upper()} {escape(path)}</code>{query}</dt>")
            items.append(f"<dd>{escape(about.get('description', ''))}</dd>")
    title = f"{escape(document['info']['title'])} {escape(document['info']['version'])}"
    more = '<p>The whole document: <a href="/openapi.json">openapi.json</a></p>'
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"<h1>{title}</h1>{more}<dl>{''.join(items)}</dl></html>"
    )
