"""The glossary, and the table of what plug-ins add, speak of what is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "concepts.md"
NAMES = re.findall(r"\| `(dokimos\.[\w.]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
NAMES += re.findall(r"\| an? `(dokimos\.[\w.]+)` \|", (DOCS / "extend.md").read_text(encoding="utf-8"))


def test_the_words_on_the_way_to_a_row_are_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for word in ("instance", "question", "job", "answer", "verdict", "row"):
        assert re.search(rf"^\| {word} \|", text, re.MULTILINE), word


def test_what_the_pages_name_is_in_the_code() -> None:
    assert NAMES
    split = [name.rpartition(".") for name in NAMES]
    assert [name for name in split if not hasattr(import_module(name[0]), name[2])] == []
