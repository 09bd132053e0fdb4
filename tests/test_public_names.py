from __future__ import annotations

import inspect
import re
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


def functions() -> dict[str, inspect.Signature]:
    shown = {name: getattr(dokimos, name) for name in dir(dokimos)}
    return {name: inspect.signature(each) for name, each in shown.items() if inspect.isfunction(each)}


def test_the_names_shown_are_functions_and_what_they_take_report_return_and_raise() -> None:
    shown = set(dir(dokimos)) - {"__version__"}
    assert shown == set(dokimos.__all__) - {"__version__"}
    assert {"generate", "check", "run", "judge", "profile", "explain", "report", "test_law"} <= set(
        functions()
    )
    types = {name for name in shown if inspect.isclass(getattr(dokimos, name))}
    assert shown == types | set(functions())
    said = " ".join(
        str(each.annotation) for signature in functions().values() for each in signature.parameters.values()
    )
    for name in (name for name in types if name.endswith("Settings")):
        assert f"{name} | None" in said, name


def test_no_function_has_more_than_ten_parameters() -> None:
    assert {
        name: len(each.parameters) for name, each in functions().items() if len(each.parameters) > 10
    } == {}


def test_where_to_write_is_always_given_by_name() -> None:
    by_place = {
        name
        for name, signature in functions().items()
        if (out := signature.parameters.get("out")) is not None and out.kind is not out.KEYWORD_ONLY
    }
    assert by_place == set()


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


def test_the_table_says_where_each_name_is() -> None:
    """What a type checker reads is what is loaded; that the modules have these names, mypy checks."""
    lines = (ROOM / "__init__.pyi").read_text(encoding="utf-8").splitlines()
    table = [
        re.fullmatch(r"from (\S+) import (\w+) as (\w+)", line) for line in lines if "import" in line[:80]
    ]
    found = [match for match in table if match is not None]
    assert len(found) == len(dokimos.__all__) - 1
    for match in found:
        assert match[2] == match[3]
        assert inspect.unwrap(getattr(dokimos, match[2])) is getattr(import_module(match[1]), match[2])


TYPES = """Suite Instance Label Truth Campaign RunRecord JudgedCampaigns Judgement Verdict WrittenReport
Verifier Law LawResult TestedLaws VerifiedLaw CheckedSuite LabelledSuite GateOutcome Explanation
Network Property"""


def test_what_functions_return_can_be_annotated() -> None:
    for name in TYPES.split():
        assert inspect.isclass(getattr(dokimos, name)) and inspect.getdoc(getattr(dokimos, name)), name
