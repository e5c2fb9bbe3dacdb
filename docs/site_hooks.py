"""What the site does to the pages under docs/: links into the source become plain text, and notebooks become pages."""

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

OUTSIDE = re.compile(r"(?<!!)\[`?([^\]`]+)`?\]\(\.\./(?:src|benchmarks|tests)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A link to a file of the source names the file, as the site does not hold the source; folded tables are tables."""
    return OUTSIDE.sub(r"`\1`", markdown).replace("<details>", '<details markdown="1">')


def on_files(files: Any, config: Any) -> Any:
    """Every notebook of docs/tutorials is a page, with what it printed and drew."""
    for notebook in sorted(Path(config.docs_dir, "tutorials").glob("*.ipynb")):
        text = page_of(json.loads(notebook.read_text(encoding="utf-8")), notebook.name)
        files.append(File.generated(config, f"tutorials/{notebook.stem}.md", content=text))
    return files


def page_of(notebook: dict[str, Any], name: str) -> str:
    """The cells of a notebook as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append("```text\n" + "".join(output["text"]).rstrip() + "\n```")
            else:
                name = re.search(r'src="([^"]+)"', "".join(output["data"]["text/html"]))[1]
                parts.append(f"![what the cell draws]({name})")
    parts.append(f"*The notebook is `docs/tutorials/{name}`.*")
    return "\n\n".join(parts) + "\n"
