"""Errors of the library speak of arguments; the command line says the same of its options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import dokimos
from dokimos.cli import _ARGUMENTS, _OPTIONS, in_options

SOURCE = Path(dokimos.__file__).parent
#: What speaks to a terminal.
ELSEWHERE = ("cli/", "verifiers/runners/")
COMMAND = re.compile(r"`[^`]*`|dokimos [^;]*")


def raised(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of errors that a module raises, with what is filled in left out: so --{name} is --."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and node.exc is not None:
            parts = [
                part.value
                for part in ast.walk(node.exc)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            yield node.lineno, "".join(parts)


def test_no_error_of_the_library_names_an_option() -> None:
    wrong = [
        (str(path.relative_to(SOURCE)), line, text)
        for path in sorted(SOURCE.rglob("*.py"))
        if not str(path.relative_to(SOURCE)).startswith(ELSEWHERE)
        for line, text in raised(path)
        if re.search(r"(?<![\w-])--", COMMAND.sub("", text))
    ]
    assert wrong == []


def test_the_command_line_says_options_instead() -> None:
    assert in_options("x is there; choose another `out`.") == "x is there; choose another --out."
    assert in_options("`pass_env` A: none") == "--pass-env A: none"
    assert in_options("a larger `budget_seconds`") == "a larger --budget"
    assert in_options("`allow_code=False` refuses it") == "--no-code refuses it"
    assert in_options("see `dokimos suites`; `exact` decides") == "see `dokimos suites`; `exact` decides"


def test_every_argument_that_has_another_name_on_the_command_line_is_named_somewhere() -> None:
    said = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert [name for name in {*_ARGUMENTS, *_OPTIONS} if f"`{name}`" not in said] == []
