"""Every sentence that a person may read, on one page: `python scripts/words.py > words.md`.

Help texts and messages (every text of two words or more in the sources, with … for the values that are put
into it), the docstrings of public names, the text of the pages' templates, and the headings of the docs.
It is meant to be read from beginning to end by somebody who did not write it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "dokimos"
#: Two words or more, the first of at least two letters.
_WORDS = re.compile(r"[A-Za-z][a-z'’]+[ ,:;]+\S*[a-z]")


@dataclass(frozen=True)
class Text:
    """A piece of text and where it is."""

    path: Path
    line: int
    kind: str
    words: str

    def __str__(self) -> str:
        return f"- `{self.path.relative_to(ROOT)}:{self.line}` ({self.kind}) {self.words}"


def all_texts() -> Iterator[Text]:
    """All texts, file by file."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from source_texts(path)
    for path in sorted(SOURCE.rglob("*.jinja")):
        yield from template_texts(path)
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        yield from headings(path)


def source_texts(path: Path) -> Iterator[Text]:
    """The docstrings of public names, and every other text that reads like words."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documented: set[ast.AST] = set()
    for node in nodes:
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text is None:
            continue
        first = node.body[0]
        assert isinstance(first, ast.Expr)
        documented.add(first.value)
        if not getattr(node, "name", "").startswith("_"):
            yield Text(path, first.lineno, "docstring", " ".join(text.split()))
    inside = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in nodes:
        if node in documented or (node in inside and not isinstance(node, ast.JoinedStr)):
            continue
        text = _text(node)
        if text and _WORDS.search(text):
            yield Text(path, node.lineno, "message", " ".join(text.split()))  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str:
    """The text of a string, with … for each value that is put into it; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def template_texts(path: Path) -> Iterator[Text]:
    """What stands between the tags of a page's template."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = re.sub(r"{[{%#].*?[}%#]}|<[^>]*>", " … ", line)
        text = " ".join(re.sub(r"(\s*…\s*)+", " … ", text).split())
        if _WORDS.search(text):
            yield Text(path, number, "page", text)


def headings(path: Path) -> Iterator[Text]:
    """The headings of a page of the documentation."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if re.match(r"#+ ", line):
            yield Text(path, number, "heading", line.lstrip("# "))


def main() -> None:
    """Write the page to standard output."""
    before: Path | None = None
    for text in all_texts():
        if text.path != before:
            sys.stdout.write(f"\n## {text.path.relative_to(ROOT)}\n\n")
            before = text.path
        sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
