"""The pages: the site names all of them, their links lead somewhere, their examples run, their commands are known."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import jointset
from jointset.cli import app
from jointset.contracts import Method

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
RUN = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in ("quickstart", "five-minutes", "concepts"))]


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def blocks(page: Path, *languages: str) -> list[str]:
    """Code blocks of a page in these languages."""
    found = re.findall(r"^```([a-z]*)[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    return [text for language, text in found if language in languages]


def in_nav() -> list[str]:
    """Pages that mkdocs.yml names."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    return re.findall(r": (\S+\.md)$", nav, re.M)


def test_the_site_names_every_page_once():
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    made = {f"tutorials/{path.stem}.md" for path in (DOCS / "tutorials").glob("*.ipynb")}
    assert sorted(in_nav()) == sorted(written | made), "add the page to nav in mkdocs.yml"


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_somewhere(page: Path):
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?://|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """Headings of a page as the site writes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


EXAMPLES = [(page, block) for page in RUN for block in blocks(page, "python")]


@pytest.mark.parametrize(("page", "block"), EXAMPLES, ids=[page.stem for page, _ in EXAMPLES])
def test_an_example_runs(page: Path, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    if "readings.csv" in block:
        panel = jointset.generate_grssf("A", n=8, length=1500).panel
        panel.to_pandas().to_csv("readings.csv")
        ends = [(i, j) for i in range(8) for j in range(i) if panel.adjacency[i, j]]
        lines = [f"{panel.sensors[i]},{panel.sensors[j]},1" for i, j in ends]
        Path("edges.csv").write_text("\n".join(["source,target,weight", *lines]))
    exec(compile(block, page.name, "exec"), {"__name__": "example"})
    assert capsys.readouterr().out


@pytest.fixture(scope="module")
def names_of_examples() -> dict:
    """What the short examples of the guides take as given."""
    panel = jointset.generate_grssf("A", n=8, length=900).panel
    train, calibration, test = panel[:500], panel[500:700], panel[700:]
    row = test.values[0].copy()
    predictor = jointset.predictor("ewma").fit(train).calibrate(calibration)
    given = {
        "predictor": predictor,
        "Method": Method,
        "Walk": jointset.StaticFilter,
        "train": train,
        "calibration": calibration,
        "test": test,
        "panel": train,
    }
    return given | {"row": row, "rows": test.values[:12], "y": np.where(np.arange(8) == 2, np.nan, row)}


@pytest.mark.parametrize("name", ["attribution", "imputation", "horizons", "training", "benchmark", "default"])
def test_a_short_example_runs(name: str, names_of_examples: dict):
    (block,) = blocks(DOCS / f"{name}.md", "python")
    block = block.replace('recipe="sharp"', 'recipe="sharp", steps=2').replace("panel, 10", "panel, 2")  # quick
    exec(compile(block, name, "exec"), {**names_of_examples, "predictor": names_of_examples["predictor"].copy()})


def commands_of(page: Path) -> list[list[str]]:
    """Words of every command of jointset in a page; a pipe into it is what it reads."""
    lines = "".join(blocks(page, "", "sh", "bash")).replace("\\\n", " ").splitlines()
    calls = (re.findall(r"(?:^|[|;&/] *)jointset ([^|;&]+)", line.split(" #")[0]) for line in lines)
    return [shlex.split(call) for found in calls for call in found]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_examples_are_python_and_commands_are_known(page: Path):
    for block in blocks(page, "python"):
        compile(block, page.name, "exec")
    for words in commands_of(page):
        check_call(words)


# what has tests of its own, or takes long
ELSEWHERE = {"generate", "audit", "serve", "replay", "demo", "bench", "tables", "store", "results", "--cells", "cuda"}
NAMES = {"MODEL": "model", "PANEL": "later.csv"}


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Path:
    """The files that the commands of the pages take as given."""
    folder = tmp_path_factory.mktemp("town")
    made = jointset.generate_grssf("A", n=8, length=980).panel
    panel = jointset.Panel(made.values, tuple("ABEFGHIJ"), timestamps=300 * np.arange(980), adjacency=made.adjacency)
    rows = panel.to_pandas()
    for name in ("readings", "history"):
        rows[:850].to_csv(folder / f"{name}.csv")
    for name in ("later", "rows", "live"):
        rows[850:].mask(np.random.default_rng(0).random((130, 8)) < 0.1).to_csv(folder / f"{name}.csv")
    ends = [f"{panel.sensors[i]},{panel.sensors[j]},1" for i in range(8) for j in range(i) if made.adjacency[i, j]]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *ends]))
    (folder / "places.csv").write_text(
        "\n".join(["sensor,latitude,longitude", *(f"{x},1.5,2.5" for x in panel.sensors)])
    )
    jointset.predictor("kalman").fit(panel[:600]).calibrate(panel[600:850], horizon=12).save(folder / "model")
    return folder


CALLED = [page for page in PAGES if any(not ELSEWHERE & {*words} for words in commands_of(page))]


@pytest.mark.parametrize("page", CALLED, ids=names(CALLED))
def test_the_commands_of_a_page_run(page: Path, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(town, tmp_path / "town")
    monkeypatch.chdir(tmp_path / "town")
    monkeypatch.setattr("jointset.commands.fit.usual_method", lambda: "ewma")
    for words in commands_of(page):
        if ELSEWHERE & {*words}:
            continue
        line = Path("live.csv").read_text() if words[0] == "stream" else None
        words = [NAMES.get(word, word) for word in words[: words.index("<") if "<" in words else None]]
        if "--filter" in words:
            words += ["--steps", "2"]
        done = CliRunner().invoke(app, words, input=line)
        assert done.exit_code in (0, 3), f"jointset {' '.join(words)}: {done.output}"


def test_five_minutes_word_for_word(tmp_path: Path):
    """In an empty folder, all its commands one after the other; what it shows of their answers is what they print."""
    text = (DOCS / "five-minutes.md").read_text(encoding="utf-8")
    called = tmp_path / "bin" / "jointset"
    called.parent.mkdir()
    called.write_text(f"#!{sys.executable}\nfrom jointset.cli import main\nmain()\n")
    called.chmod(0o755)
    script = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.S))
    around = os.environ | {"PATH": f"{called.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for shown in re.findall(r"```text\n(.*?)```", text, re.S):
        assert shown in done.stdout
    assert (tmp_path / "page.html").stat().st_size > 50_000


def check_call(words: list[str]) -> None:
    """Every word that must be a command or an option is one."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"jointset has no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    known = {name for option in command.params for name in [*option.opts, *option.secondary_opts]} | {"--help"}
    for word in words:
        assert not word.startswith("-") or word.split("=")[0] in known, f"{command.name} has no option {word}"


def test_a_wrong_command_or_option_would_be_noticed():
    with pytest.raises(AssertionError, match="no command 'fitt'"):
        check_call(["fitt", "readings.csv"])
    with pytest.raises(AssertionError, match="no option --outt"):
        check_call(["fit", "readings.csv", "--outt", "model"])


def test_the_map_of_the_paper_names_what_there_is():
    found = re.findall(r"`(jointset(?:\.\w+)+)`", (DOCS / "paper-map.md").read_text(encoding="utf-8"))
    assert len(found) > 40
    for name in found:
        module, _, thing = name.rpartition(".")
        assert hasattr(importlib.import_module(module), thing), name
