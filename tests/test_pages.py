"""The shell of all pages: one head and one style, nothing fetched, and no script but the page's own."""

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from jointset.audits.page import write_page
from jointset.pages.shell import png_source, render_page
from jointset.report.demo import METHODS

FACTS = {"n": 2, "length": 9, "track": "A", "about": "<b>odd</b>", "created": "now", "command": "x", "seed": 0}
ROW = {
    "steps": 3,
    "joint": 0.9,
    "width": 1.0,
    "width_full": 2.0,
    "log_volume": 0.1,
    "seconds": 0.1,
    "infinite_share": 0.0,
}


def demo_page():
    rows = [{"method": method, **ROW} for method in METHODS]
    return render_page(
        "demo", {"rows": rows, "facts": FACTS, "notes": {}, "target": 0.9, "pictures": [], "sources": {}}
    )


def audits_page(folder):
    write_page(folder / "page.html", {"<b>odd</b>": {"coverage": {"skipped": "no rows"}}})
    return (folder / "page.html").read_text()


@pytest.mark.parametrize("make", [lambda folder: demo_page(), audits_page], ids=["demo", "audits"])
def test_pages_stand_in_the_shell_and_run_no_script(make, tmp_path):
    page = make(tmp_path)
    assert (files("jointset.pages") / "shell.css").read_text() in page
    assert page.count("<html") == page.count("<main>") == page.count("<footer>") == 1
    assert "default-src 'none'" in page and "script-src" not in page and "<script" not in page
    assert "<b>odd" not in page and "&lt;b&gt;odd" in page


def test_a_page_with_scripts_allows_exactly_those():
    shown = {"opening": "", "verdicts": [], "slack": 0.5, "audits": [], "runs": [], "facts": {}, "created": "now"}
    page = render_page("benchmark", shown, ("page.js",), {"name": "</script><script>"})
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL).group(1)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in page
    assert page.count("<script") == 2 and r"\u003c/script\u003e" in page


def test_pictures_are_inside_the_page():
    assert png_source(b"\x89PNG") == "data:image/png;base64,iVBORw=="
