"""The table of commands: each is loaded by name, is listed in one line, and has an example that works."""

from __future__ import annotations

import pickle
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from dokimos.cli.app import COMMANDS, Entry, command_line
from dokimos.networks.writing.builder import ModelBuilder
from tests.api.conftest import PAIR, PEOPLE
from tests.cli.conftest import Dokimos
from tests.making import made_once

PROPERTY = """\
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const Y_0 Real)
(assert (>= X_0 0.0))
(assert (<= X_0 1.0))
(assert (>= X_1 0.0))
(assert (<= X_1 1.0))
(assert (>= Y_0 3.0))
"""


def entries(below: Mapping[str, Entry], words: str = "") -> Iterator[tuple[str, Entry]]:
    for name, entry in below.items():
        yield f"{words}{name}", entry
        yield from entries(entry.commands, f"{words}{name} ")


ALL = dict(each for below in COMMANDS.values() for each in entries(below))


def test_the_headings_are_what_people_come_for() -> None:
    assert list(COMMANDS) == ["Make", "Run", "Judge", "Models", "Tools"]
    assert len(ALL) > 40


def test_no_description_is_cut_or_folded(dokimos: Dokimos) -> None:
    for group in ("", "law", "properties", "verifiers", "data"):
        shown = dokimos(*group.split(), "--help").out
        below = {name: one for name, one in ALL.items() if name.rpartition(" ")[0] == group}
        for name, entry in below.items():
            assert any(
                line.split() == [name.split()[-1], *entry.about.split()] and len(line) <= 80
                for line in shown.splitlines()
            ), name
    assert "..." not in dokimos("--help").out.partition("Make:")[2]


def test_help_says_an_example(dokimos: Dokimos) -> None:
    for words, entry in ALL.items():
        if entry.example:
            assert entry.example.startswith(words)
            assert f"Example:\n    dokimos {entry.example}\n" in dokimos(*words.split(), "--help").out
    without = {words for words, entry in ALL.items() if not entry.example and not entry.commands}
    assert without == set()


@pytest.mark.parametrize("words", ["--help", "--version", "law --help", "law lint", "nope", "run --help"])
def test_a_call_loads_the_module_of_its_command_only(words: str) -> None:
    script = (
        "import sys; sys.argv = ['dokimos', *sys.argv[1:]]\n"
        "from dokimos.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*[name for name in sys.modules if name.startswith('dokimos')], file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *words.split()], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stderr.splitlines()[-1].split())
    modules = {f"dokimos.cli.{entry.place.partition(':')[0]}" for entry in ALL.values() if entry.place}
    wanted = {"law lint": {"dokimos.cli.law"}, "run --help": {"dokimos.cli.run"}}
    assert loaded & (modules - {"dokimos.cli.options"}) == wanted.get(words, set())
    assert len(loaded) < 20, sorted(loaded)


def test_every_command_can_be_built() -> None:
    for words in ALL:
        command = command_line()
        for word in words.split():
            command = command.commands[word]
        assert command.get_help(command.context_class(command, info_name=words))


@pytest.fixture
def folder(tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the examples name: a small suite, a network and its property, a domain with a model and data."""
    from sklearn.tree import DecisionTreeClassifier

    copy: Callable[[Path], Path] = made_once(run_folder, PAIR)
    copy(tmp_path / "quick")
    (tmp_path / "net.onnx").write_bytes(ModelBuilder([2]).affine([[1, 1]], [0]).build(1))
    (tmp_path / "net.vnnlib").write_text(PROPERTY)
    (tmp_path / "people.py").write_text(PEOPLE)
    (tmp_path / "people.csv").write_text("age,decision\n18,0\n60,1\n40,1\n")
    (tmp_path / "ages.csv").write_text("age\n18\n60\n40\n")
    rising = ModelBuilder([1]).affine([[0], [1]], [40, 0]).relu().affine([[1, 0], [0, 1]], [0, 0]).build(2)
    (tmp_path / "score.onnx").write_bytes(rising)
    trees = DecisionTreeClassifier().fit([[18], [40]], [0, 1])
    (tmp_path / "trees.pkl").write_bytes(pickle.dumps(trees))
    monkeypatch.chdir(tmp_path)
    return tmp_path


#: What others read goes before them.
FIRST = ("train", "law new")


def test_the_examples_work(dokimos: Dokimos, folder: Path) -> None:
    order = [*FIRST, *(words for words in ALL if words not in FIRST)]
    failed = []
    for words in order:
        if ALL[words].example:
            ran = dokimos(*shlex.split(ALL[words].example))
            if ran.code != 0:
                failed.append((ALL[words].example, ran.code, ran.err[-300:], ran.out[-300:]))
    assert failed == []
