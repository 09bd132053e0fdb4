"""Plain English: phrases that readers stumbled over do not come back."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: What not to write, and what an engineer would say instead.
FORBIDDEN = {
    r"when each may take so long": "within a given time",
    r"that have none to be held against": "that have no label",
    r"\bno illness\b": "does not count as a failure",
    r"is there where Dokimos is installed": "installing Dokimos installs it",
    r"Nobody waits, nothing runs": "if your process ends, its runs end too",
    r"no part in what follows": "left out below",
    r"is told in one sentence": "is reported in one sentence",
    r"the others go on\b": "the rest continue",
    r"\bspelt\b": "written",
    r"\bnobody has said where\b": "no path given",
    r"\b1 inputs\b": "1 input",
    r"\bWRONG nobody\b": "FAIL",
    r"\bgoes on where it (stopped|was)\b": "continues where it stopped",
    r"(?<!if )\bInterrupted, the same\b": "If interrupted, the same",
    r"\bexit(?: code)? [0-9] where\b": "exit code 1 if",
    r"\bfor want of\b": "for lack of",
    r"(?<!here )\bis no (number|file|network|verifier|folder)\b": "is not a number",
    r"\bcan(not)? be had\b": "can be fetched",
    r"\bblames? (nobody|anybody)\b": "no answer is called wrong by it",
    r"\bis told in\b": "is reported in",
    r"\bin the one way\b": "format",
    r"\banswers? (is|are) the label\b": "the answer matches the label",
    r"\bserves? to blame\b": "counts against a verifier",
    r"\btaken at (its|their) word\b": "trusted",
    r"\bunless said(?! otherwise)\b": "by default",
    r"\bnumbered anew\b": "renumbered",
    r"\bto go on in another way\b": "to continue differently",
    r"\bas will do\b": "as possible",
    r"\bdraws (are|were|can be|being) gone through\b": "all draws are tested",
    r"\bfor ever\b": "forever",
    r"\brightly\b": "correctly",
    r"\bbroken off\b": "interrupted",
    r"\bleaves? with (exit )?code\b": "exits with code",
    r"\bone that there is not\b": "one that does not exist",
    r"\bis there twice\b": "is given twice",
    r"\bas VNN-COMP has it\b": "in VNN-COMP's format",
    r"\bgive the same command again\b": "run the same command again",
    r"\bso many-th\b": "the number of",
    r"\bsuch as it is\b": "as it is",
    r"\bnobody reads it any more\b": "the reader has gone",
    r"\bnumbers are theirs\b": "all numbers come from these runs",
    r"\bnothing is said of what was not\b": "only what was run is reported",
    r"\bgrid of before\b": "the previous grid",
    r"\bnot your tokens\b": "none of your access tokens",
}


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", ROOT / "scripts" / "words.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["words"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def texts(words: ModuleType) -> list[Any]:
    """All texts, read once."""
    return list(words.all_texts())


def test_no_text_has_a_phrase_that_readers_stumbled_over(texts: list[Any]) -> None:
    pattern = re.compile("|".join(FORBIDDEN), re.IGNORECASE)
    docs = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "reference"]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs]  # the reference is made of the texts
    found = [str(text) for text in texts if pattern.search(text.words)]
    found += [str(page) for page in pages if pattern.search(" ".join(page.read_text().split()))]
    assert found == []


def test_the_page_has_messages_docstrings_templates_and_headings(texts: list[Any]) -> None:
    kinds = {text.kind for text in texts}
    assert kinds == {"message", "docstring", "page", "heading"}


def test_a_message_is_found_with_its_values_left_out(words: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text('"""A module."""\n\ndef f(x):\n    raise ValueError(f"{x} is spelt {x!r} here")\n')
    texts = {text.words for text in words.source_texts(source)}
    assert texts == {"A module.", "… is spelt … here"}
