from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dokimos

ROOM = Path(dokimos.__file__).parent


def test_every_public_name_can_be_used() -> None:
    for name in dokimos.__all__:
        assert getattr(dokimos, name) is not None


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        dokimos.chek  # type: ignore[attr-defined]  # noqa: B018


def test_the_names_shown_are_the_functions_and_what_they_take_report_and_raise() -> None:
    shown = set(dir(dokimos)) - {"__version__"}
    assert shown == set(dokimos.__all__) - {"__version__"}
    assert {"generate", "check", "run", "judge", "profile", "explain", "report", "test_law"} <= shown
    others = {name for name in shown if not inspect.isfunction(getattr(dokimos, name))}
    assert {name for name in others if not name.endswith("Settings")} == {"DokimosError", "ProgressUpdate"}
    annotations = [
        str(parameter.annotation)
        for name in shown - others
        for parameter in inspect.signature(getattr(dokimos, name)).parameters.values()
    ]
    for name in others - {"DokimosError", "ProgressUpdate"}:
        assert f"{name} | None" in annotations, name


def test_no_name_hides_a_package() -> None:
    rooms = {path.name for path in ROOM.iterdir() if path.is_dir()}
    assert set(dir(dokimos)) & rooms == set()


def test_each_function_says_what_it_does_and_names_its_types() -> None:
    for name in set(dir(dokimos)) - {"__version__"}:
        function = getattr(dokimos, name)
        assert inspect.getdoc(function), name
        if inspect.isclass(function):
            continue
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, name
        for parameter in signature.parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty, (name, parameter.name)


def test_importing_the_package_loads_nothing_of_it() -> None:
    script = "import dokimos, sys; print(*[name for name in sys.modules if name.startswith('dokimos.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_type_checker_knows_the_names() -> None:
    """What it sees is imported where TYPE_CHECKING is true; that the imports are right, mypy checks."""
    tree = ast.parse((ROOM / "api" / "__init__.py").read_text(encoding="utf-8"))
    for_checkers = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: f"{node.module}"
        for node in for_checkers.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(imported) == set(dokimos.__all__) - {"__version__"}
    for name, module in imported.items():
        assert inspect.unwrap(getattr(dokimos, name)) is getattr(import_module(module), name)
