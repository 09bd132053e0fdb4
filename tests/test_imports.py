"""Imports point one way, and the checker depends on nothing that it must not trust."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dokimos

SOURCE = Path(dokimos.__file__).parent
LAYERS = (
    "core",
    "networks",
    "suites",
    "checker",
    "engine",
    "constructions",
    "verifiers",
    "campaigns",
    "judging",
    "difficulty",
    "reports",
    "hunting",
    "laws",
    "testing",
    "api",
    "cli",
)
FILES = sorted(SOURCE.rglob("*.py"))


def _layer(module: str) -> str:
    """The part of `dokimos.<part>...`; the package itself (for its version) is part of no layer."""
    return module.split(".")[1] if "." in module else ""


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Every import of a part of Dokimos, wherever in the file it stands, with its line."""
    return tuple(_found_imports(path))


def _found_imports(path: Path) -> Iterator[tuple[int, str]]:
    package = ".".join(path.relative_to(SOURCE.parent).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                origin = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{origin}.{alias.name}" if origin == "dokimos" else origin for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "dokimos":
                yield node.lineno, name


def test_every_part_has_its_place_in_the_order() -> None:
    parts = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    parts |= {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert parts <= set(LAYERS)


def test_imports_point_to_the_left() -> None:
    # The package itself offers names from every part.
    inside = [path for path in FILES if _layer(_module(path)) not in ("", "__main__")]
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {here} may not import {name}"
        for path in inside
        for line, name in _imports(path)
        if (there := _layer(name)) in LAYERS
        and LAYERS.index(there) > LAYERS.index(here := _layer(_module(path)))
    ]
    assert wrong == []


def test_the_walk_sees_each_form_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "dokimos"
    (source / "networks").mkdir(parents=True)
    path = source / "networks" / "x.py"
    path.write_text(
        "import dokimos.cli\nfrom dokimos import laws\nfrom dokimos.reports.rows import Outcome\n"
        "def f():\n    from ..judging import verdicts\n    from . import graph\n    import numpy\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", source)
    found = {(line, _layer(name)) for line, name in _imports(path)}
    assert found == {(1, "cli"), (2, "laws"), (3, "reports"), (5, "judging"), (6, "networks")}


@pytest.mark.skipif(not (SOURCE / "checker").is_dir(), reason="there are no checker yet")
def test_the_checker_imports_no_construction_no_torch_and_no_onnxruntime() -> None:
    every = ["dokimos.checker"] + [_module(path) for path in FILES if _layer(_module(path)) == "checker"]
    script = f"import sys\nfor name in {every!r}: __import__(name)\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "dokimos.checker" in loaded
    forbidden = (
        "torch",
        "onnxruntime",
        "dokimos.constructions",
        "dokimos.engine",
        "dokimos.engine.attacks",
        "dokimos.verifiers",
    )
    assert [name for name in sorted(loaded) if name.startswith(forbidden)] == []


def test_commands_call_public_functions() -> None:
    wrong = [
        f"{path.name}:{line}: {name}"
        for path in sorted((SOURCE / "cli").glob("*.py"))
        for line, name in _imports(path)
        if _layer(name) in set(LAYERS) - {"core", "reports", "api", "cli"}
    ]
    assert wrong == []


def test_nobody_else_uses_the_inside_of_the_command_line() -> None:
    root = Path(__file__).parents[1]
    paths = [
        path
        for folder in ("scripts", "benchmarks", "tests")
        for path in (root / folder).rglob("*.py")
        if not path.is_relative_to(root / "tests" / "cli")
    ]
    uses = re.compile(r"^\s*(from|import) dokimos\.cli\b", re.MULTILINE)
    assert any(
        uses.search(path.read_text(encoding="utf-8")) for path in (root / "tests" / "cli").glob("*.py")
    )
    assert [path.name for path in paths if uses.search(path.read_text(encoding="utf-8"))] == []
