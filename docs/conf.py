"""How Sphinx makes the documentation: `make docs` writes build/docs/index.html, which needs no network."""

from __future__ import annotations

import inspect
from pathlib import Path

import typer
from sphinx.application import Sphinx

import dokimos
from dokimos import api
from dokimos.cli.app import app

project = "Dokimos"
author = "The Dokimos maintainers"
version = release = dokimos.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
nitpicky = True
html_theme = "furo"
html_title = "Dokimos"
html_show_sphinx = False
# A page opened from a folder may load nothing else.
html_theme_options = {"footer_icons": []}
autodoc_typehints = "none"
autodoc_member_order = "bysource"

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"


def functions() -> str:
    """One entry for each public name; the list is what the package exports."""
    lines = ["# Python functions", "", "`import dokimos` offers them all; each stands for a command.", ""]
    for name in sorted(api.__all__, key=lambda name: (not name.islower(), name)):
        found = getattr(dokimos, name)
        if isinstance(found, type) and "## Settings" not in " ".join(lines):
            lines += [
                "## Settings, progress and errors",
                "",
                "What the functions take, report and raise.",
                "",
            ]
        entry = "autoclass" if isinstance(found, type) else "autofunction"
        lines += ["```{eval-rst}", f".. {entry}:: {inspect.unwrap(found).__module__}.{name}", "```", ""]
    return "\n".join(lines)


def commands() -> str:
    """The help of every command, as the terminal shows it."""
    lines = ["# Commands", "", "What `--help` says of each.", ""]
    pending = [("dokimos", typer.main.get_command(app))]
    while pending:
        name, command = pending.pop(0)
        context = command.context_class(command, info_name=name, max_content_width=100, terminal_width=100)
        lines += [f"## {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]
        below = getattr(command, "commands", {})
        pending = [*((f"{name} {word}", each) for word, each in below.items()), *pending]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    """Write a page, unless it is what it was: then nothing is built again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def copy_results() -> None:
    """Put the pages of studies/ beside the others, with links that lead to the same places."""
    studies, results = ROOT / "studies", ROOT / "docs" / "results"
    pages = sorted((studies / "results").iterdir())
    for path in results.glob("*"):
        if path.name not in {"index.md", *(page.name for page in pages)}:
            path.unlink()
    for path in pages:
        text = path.read_text(encoding="utf-8")
        write(
            results / path.name,
            text.replace("](../../docs/", "](../").replace("](../README.md", "](index.md"),
        )
    index = (studies / "README.md").read_text(encoding="utf-8")
    write(results / "index.md", index.replace("](results/", "](").replace("](../docs/", "](../"))


def setup(sphinx: Sphinx) -> None:
    """Lead links to the studies to the copies of their pages."""
    sphinx.connect("source-read", lead_to_copies)


def lead_to_copies(_sphinx: Sphinx, _page: str, content: list[str]) -> None:
    """Change the links of one page."""
    content[0] = content[0].replace("](../studies/README.md", "](results/index.md")
    content[0] = content[0].replace("](../studies/results/", "](results/")


copy_results()
write(REFERENCE / "python.md", functions())
write(REFERENCE / "commands.md", commands())
