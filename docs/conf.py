"""How Sphinx makes the documentation: `make docs` writes build/docs/index.html, which needs no network."""

from __future__ import annotations

import inspect
from pathlib import Path

from sphinx.application import Sphinx

import dokimos
from dokimos.cli.app import command_line

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
    shown = {name: getattr(dokimos, name) for name in dokimos.__all__ if not name.startswith("_")}
    kinds = (
        ("", [name for name, found in shown.items() if not isinstance(found, type)]),
        ("Settings", [name for name in shown if name.endswith("Settings")]),
        (
            "What functions return, report and raise",
            [name for name in shown if name[0].isupper() and not name.endswith("Settings")],
        ),
    )
    for heading, names in kinds:
        lines += [f"## {heading}", ""] if heading else []
        for name in names:
            entry = "autoclass" if isinstance(shown[name], type) else "autofunction"
            place = f"{inspect.unwrap(shown[name]).__module__}.{name}"
            lines += ["```{eval-rst}", f".. {entry}:: {place}", "```", ""]
    return "\n".join(lines)


def commands() -> str:
    """The help of every command, as the terminal shows it."""
    lines = ["# Commands", "", "What `--help` says of each.", ""]
    pending = [("dokimos", command_line())]
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
    pages = sorted(path for path in (studies / "results").iterdir() if path.is_file())
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
