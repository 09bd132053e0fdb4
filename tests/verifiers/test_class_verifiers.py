"""Verifiers that are given by their class: ``--verifier package.module:Class``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.suites.answers import Answer
from dokimos.verifiers.base import Verifier
from dokimos.verifiers.catalogue import find, installed
from tests.verifiers.test_placed import run

SOURCE = """
import sys
from dokimos.suites.answers import (Answer, VerifierAnswer)
from dokimos.verifiers.base import Invocation, Verifier
from dokimos.verifiers.placed import PlacedVerifier

WRITE = "import sys; open(sys.argv[1], 'w').write(' '.join(sys.argv[2:]))"


class Mine(Verifier):
    name = "mine"
    attack_off = ("quietly",)

    def version(self):
        return "7"

    def how_to_get(self):
        return "ask me"

    def command(self, query):
        return Invocation((sys.executable, "-c", WRITE, str(query.result), "unsat", *self.switches))

    def read_answer(self, outcome, query):
        word, *rest = query.result.read_text().split()
        return VerifierAnswer(Answer(word), detail=" ".join(rest))


class Somewhere(PlacedVerifier):
    name = "some-where"

    def how_to_get(self):
        return f"--verifier {self.kind}=PLACE or {self.variable}"

    def trouble(self, place):
        return None if place == "/right" else "nothing is there"

    def parts(self, place):
        return ()

    command = Mine.command
    read_answer = Mine.read_answer


class Abstract(Verifier):
    name = "abstract"


class Nameless(Mine):
    name = None


def make():
    return Mine()


def fail():
    raise RuntimeError("no\\nluck")


ready, number, text = Mine(), 5, "text"
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the user's, `lab.tools`, and modules that are broken."""
    folder = tmp_path / "packages"
    (folder / "lab").mkdir(parents=True)
    (folder / "lab" / "__init__.py").write_text("")
    (folder / "lab" / "tools.py").write_text(SOURCE)
    (folder / "lab" / "needy.py").write_text("import module_that_nobody_has\n")
    (folder / "lab" / "wrong.py").write_text("syntax error\n")
    monkeypatch.syspath_prepend(folder)
    for name in ("lab", "lab.tools", "lab.needy", "lab.wrong"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


@pytest.mark.parametrize("attribute", ["Mine", "make", "ready"])
def test_a_class_a_function_or_a_verifier_is_used_under_the_name_that_was_given(
    attribute: str, tmp_path: Path
) -> None:
    verifier = installed(f"lab.tools:{attribute}")
    assert verifier.name == f"lab.tools:{attribute}"
    assert verifier.version() == "7"
    assert run(verifier, tmp_path).answer is Answer.UNSAT
    assert sys.modules["lab.tools"].ready.name == "mine", "what is imported stays as it was"


def test_its_attack_can_be_switched_off(tmp_path: Path) -> None:
    quiet = installed("lab.tools:Mine:no-attack")
    assert quiet.name == "lab.tools:Mine:no-attack"
    assert run(quiet, tmp_path).detail == "quietly"
    with pytest.raises(InputError, match=r"lab.tools:Somewhere has no switch for an attack"):
        find("lab.tools:Somewhere:no-attack")


def test_it_may_be_told_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = installed("lab.tools:Somewhere=/right")
    assert there.name == "lab.tools:Somewhere=/right"
    assert run(there, tmp_path).answer is Answer.UNSAT
    with pytest.raises(VerifierUnavailable, match=r"lab.tools:Somewhere=/wrong:1 is not there: nothing is"):
        installed("lab.tools:Somewhere=/wrong:1")
    with pytest.raises(InputError, match=r"lab.tools:Somewhere= needs a place; .* or DOKIMOS_SOME_WHERE"):
        find("lab.tools:Somewhere=")
    with pytest.raises(InputError, match=r"lab.tools:Mine takes no place"):
        find("lab.tools:Mine=/right")
    monkeypatch.setenv("DOKIMOS_SOME_WHERE", "/right")
    assert installed("lab.tools:Somewhere").version() is not None


def test_it_can_be_sent_to_a_worker() -> None:
    sent = pickle.loads(pickle.dumps(find("lab.tools:Mine:no-attack")))
    assert isinstance(sent, Verifier)
    assert (sent.name, sent.attacks, sent.version()) == ("lab.tools:Mine:no-attack", False, "7")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lab.tool:Mine", "there is no module 'lab.tool'; install its package or set PYTHONPATH."),
        ("labs.tools:Mine", "there is no module 'labs'; install"),
        ("lab.tools:Yours", "the module lab.tools has no 'Yours'"),
        ("lab.tools:", "the module lab.tools has no ''"),
        ("lab.tools:Mine:Mine", "the module lab.tools has no 'Mine:Mine'"),
        ("lab.tools:number", "its type is int, which is not a dokimos Verifier"),
        ("lab.tools:text", "its type is str, which is not a dokimos Verifier"),
        ("lab.tools:Abstract", "Abstract.. fails with TypeError: Can't instantiate abstract class"),
        ("lab.tools:Nameless", "its class has no name"),
        ("lab.tools:fail", "fail.. fails with RuntimeError: no luck"),
        ("lab.needy:Mine", "its module cannot be imported: ModuleNotFoundError: No module named 'module_"),
        ("lab.wrong:Mine", "its module cannot be imported: SyntaxError"),
        (":Mine", "':Mine' is not a verifier; write a name, or package.module:Class."),
        ("..lab:Mine", "is not a verifier"),
        ("C:\\tool", "there is no module 'C'"),
    ],
)
def test_what_cannot_be_used_gets_one_sentence(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason.replace("\\", "\\\\")) as caught:
        find(name)
    assert "\n" not in str(caught.value)
