"""Names say one thing: no module hides one of the standard library, no class name stands for two things."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.test_imports import FILES, SOURCE, _module

#: Every family of instances has knobs of its own, and calls them so.
SEVERAL = {"Knobs"}
#: Endings that make two words one word in two forms.
_ENDINGS = re.compile(r"(ings?|ed|ers?|es?|s|ions?)$")
_DOUBLED = re.compile(r"([bdglmnprt])\1$")


def _classes(paths: Iterable[Path]) -> dict[str, set[str]]:
    """The public classes at the top of modules, and which modules have each."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(_module(path))
    return found


def _root(word: str) -> str:
    """A word without its ending: judge and judged have one root, as have label and labelling."""
    shorter = _DOUBLED.sub(r"\1", _ENDINGS.sub("", word))
    return shorter if len(shorter) > 3 else word


def test_no_module_hides_one_of_the_standard_library() -> None:
    stems = {path.stem for path in FILES} | {path.name for path in SOURCE.rglob("*") if path.is_dir()}
    assert stems & set(sys.stdlib_module_names) - {"__main__"} == set()


def test_one_class_name_has_one_meaning() -> None:
    several = {name: places for name, places in _classes(FILES).items() if len(places) > 1}
    assert {name: places for name, places in several.items() if name not in SEVERAL} == {}


def test_no_two_modules_differ_in_a_tense_only() -> None:
    by_root: dict[tuple[str, str], set[str]] = defaultdict(set)
    for folder in {path.parent for path in FILES}:
        for path in folder.iterdir():
            if path.suffix == ".py" or (path / "__init__.py").is_file():
                by_root[_module(folder), _root(path.stem)].add(path.stem)
    assert {place: stems for place, stems in by_root.items() if len(stems) > 1} == {}


def test_the_checks_see_what_they_look_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("judge", "judging"), ("watch", "watched"), ("explaining", "explained")]
    for one, other in (*pairs, ("labels", "labelling"), ("bounds", "bounders")):
        assert _root(one) == _root(other)
    assert _root("frame") != _root("fuzzing") and _root("runs") != _root("runner")
    monkeypatch.setattr("tests.test_imports.SOURCE", tmp_path / "dokimos")
    for name in ("a", "b"):
        (tmp_path / "dokimos").mkdir(exist_ok=True)
        (tmp_path / "dokimos" / f"{name}.py").write_text("class Step: ...\nclass _Own: ...\n")
    found = _classes((tmp_path / "dokimos").iterdir())
    assert found == {"Step": {"dokimos.a", "dokimos.b"}}
