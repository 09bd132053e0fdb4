"""Runs what a page of the documentation shows, and compares what it prints with what the page says.

Two kinds of fenced blocks count, in the order of the page; the others are illustrations.

- A block whose first line is a comment with nothing but a name (`# train.py`, `; p.vnnlib`) is that file.
- A block of `console` is a session: `$ ` begins a command, and what follows is what it prints, on either
  stream. `...` stands for anything within a line, and on a line of its own for any lines. A page that shows
  output shows something of it: `...` alone would fit anything.

A command ends with 0, unless the page goes on with `$ echo $?` and says with what.

Plain calls of `dokimos` and of Python scripts run in this process, which saves the seconds that loading
packages takes; anything else goes to the shell.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from dokimos.cli import main

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"(?:#|;|//) ([\w./-]+\.\w+)\n")
_SHELL = re.compile(r"[|<>&;$`*~]")


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that the reader types, and what the page says it prints."""

    line: str
    shown: str


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    printed: str
    code: int


#: What a page goes on with that says how a command ended.
ASKS_CODE = "echo $?"


def steps(text: str) -> Iterator[File | Command]:
    """What the reader of a page does, in order."""
    for indent, language, indented in _BLOCK.findall(text):
        block = textwrap.dedent(indented) if indent else indented
        if language == "console":
            yield from _commands(block)
        elif named := _FILE.match(block):
            yield File(named[1], block)


def _commands(session: str) -> Iterator[Command]:
    head, *parts = re.split(r"^\$ ", session.replace("\\\n", ""), flags=re.MULTILINE)
    assert not head.strip(), f"a session begins with a command, not with {head!r}"
    for part in parts:
        line, _, shown = part.partition("\n")
        yield Command(line, shown)


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether the output is what the page shows; blanks at the ends of lines do not count."""
    pattern = ""
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*?".join(re.escape(piece) for piece in line.rstrip().split("...")) + r"\n"
    lines = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, lines) is not None


def says_something(shown: str) -> bool:
    """Whether a page shows nothing, which is what a silent command prints, or at least one word."""
    return not shown.strip() or re.search(r"\w", shown) is not None


def run_page(text: str, folder: Path) -> list[Result]:
    """Do what a page says in a folder, which also holds Dokimos' home; fails if it shows something else."""
    environment = {
        "DOKIMOS_HOME": str(folder / "home"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    results: list[Result] = []
    todo = list(steps(text))
    with contextlib.chdir(folder), mock.patch.dict(os.environ, environment):
        for step, following in itertools.zip_longest(todo, todo[1:]):
            if isinstance(step, File):
                Path(step.name).parent.mkdir(parents=True, exist_ok=True)
                Path(step.name).write_text(step.text, encoding="utf-8")
                continue
            assert says_something(step.shown), f"$ {step.line}\nthe page shows only `...` of its output"
            ran = _run(step.line, results[-1].code if results else 0)
            result = Result(ran.printed, ran.code)
            assert is_as_shown(result.printed, step.shown), (
                f"$ {step.line}\nprints\n{result.printed}\nand the page shows\n{step.shown}"
            )
            says_code = isinstance(following, Command) and following.line == ASKS_CODE
            assert says_code or result.code == 0, (
                f"$ {step.line}\nends with {result.code}, and no `$ {ASKS_CODE}` follows; it prints\n"
                f"{result.printed}"
            )
            results.append(result)
    assert results, "the page has no session"
    return results


def _run(line: str, code_before: int) -> Result:
    words = shlex.split(line)
    if not _SHELL.search(line):
        if words[0] == "dokimos":
            return _here(words, main)
        if words[0] == "python" and words[1].endswith(".py"):
            return _here(words[1:], lambda: runpy.run_path(words[1], run_name="__main__"))
    done = subprocess.run(
        ["bash", "-c", f"(exit {code_before}); {line}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Result(done.stdout, done.returncode)


def _here(words: list[str], call: Callable[[], object]) -> Result:
    said = io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        try:
            call()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Result(said.getvalue(), code)
