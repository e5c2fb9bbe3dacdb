"""Pages in one HTML file that needs no network: text, style, script and pictures are inside; nothing else gets in."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jointset
from jointset.support.atomic import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render_page(name: str, shown: Mapping[str, object], scripts: Sequence[str] = (), data: object = None) -> str:
    """NAME.html filled with what is `shown`, in the shell and its style and NAME.css; `scripts` find `data` as JSON."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from jinja2.utils import htmlsafe_json_dumps
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = "\n".join(["(() => {", '"use strict";', *map(_file, scripts), "})();"]) if scripts else ""
    return environment.get_template(f"{name}.html").render(
        **shown,
        version=jointset.__version__,
        style=Markup(f"{_file('shell.css')}{_file(f'{name}.css')}"),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=htmlsafe_json_dumps(data, dumps=_compact),
    )


def write_text(path: Path, text: str) -> None:
    """Write a page or another text, whole or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": f"jointset {jointset.__version__}"})
    return buffer.getvalue()


def png_source(image: bytes) -> str:
    """What stands in the `src` of an image that is in the page itself."""
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def svg(figure: Figure) -> Any:
    """The figure as markup, without anything that differs from one run to the next."""
    from markupsafe import Markup

    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])


def _file(name: str) -> str:
    """The text of a file of the pages, or of those that the service shows too."""
    here = files("jointset.pages") / name
    found = here if here.is_file() else files("jointset") / "live" / "pages" / name
    return found.read_text(encoding="utf-8")


def _compact(value: object, **_: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
