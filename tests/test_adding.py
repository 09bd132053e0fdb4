"""Adding an element touches as many files as CONTRIBUTING.md says, and then it is there to be used.

Each test adds one to a copy of the sources, and runs the command line of that copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

import dokimos
from tests.cli.forks import Forks

SOURCE = Path(dokimos.__file__).parent
CONTRIBUTING = SOURCE.parents[1] / "CONTRIBUTING.md"


def promised() -> dict[str, int]:
    """How many files each kind of element takes, by the table in CONTRIBUTING.md."""
    rows = re.findall(
        r"^\| an? ([a-z ]+) \| (\d) \|", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {name: int(files) for name, files in rows}


def contents(folder: Path) -> dict[str, bytes]:
    """All files but bytecode."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@cache
def our_contents() -> dict[str, bytes]:
    return contents(SOURCE)


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Copy:
    """A copy of the sources, and the folder that its commands run in."""

    sources: Path
    folder: Path

    def write(self, path: str, text: str) -> None:
        """A new file."""
        assert not (self.sources / path).exists()
        (self.sources / path).write_text(text, encoding="utf-8")

    def insert(self, path: str, before: str, line: str) -> None:
        """One line more, before the first one that holds `before`."""
        text = (self.sources / path).read_text(encoding="utf-8")
        assert before in text
        place = text.rindex("\n", 0, text.index(before)) + 1
        (self.sources / path).write_text(text[:place] + line + "\n" + text[place:], encoding="utf-8")

    def touched(self) -> int:
        """How many files differ from ours."""
        return len(self._differing())

    def _differing(self) -> list[str]:
        ours, theirs = our_contents(), contents(self.sources)
        return [path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path)]

    def restore(self) -> None:
        """Make it what it was: ours, as old as ours, so that bytecode of what was changed is not taken."""
        for path in self._differing():
            (self.sources / path).unlink(missing_ok=True)
            if path in our_contents():
                shutil.copy2(SOURCE / path, self.sources / path)

    @cached_property
    def environment(self) -> dict[str, str]:
        ours = {"PYTHONPATH": str(self.sources.parent), "DOKIMOS_HOME": str(self.folder), "COLUMNS": "200"}
        return os.environ | ours

    def python(self, *words: object) -> str:
        """What the interpreter prints with these sources; it must succeed."""
        command = [sys.executable, *map(str, words)]
        return said(
            subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=self.folder, env=self.environment
            )
        )

    @cached_property
    def forks(self) -> Forks:
        return Forks(self.folder, self.environment)

    def run(self, *words: object) -> str:
        """What `dokimos` prints, with the sources as they were at the first time; it must succeed."""
        return said(self.forks.run(*words))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite and a campaign on it."""
    folder = tmp_path_factory.mktemp("campaign")
    ours = Copy(SOURCE, folder)
    with ours.forks:
        ours.run("generate", "exclusive-pairs", "--inputs", 20, "--pairs", 2, "--out", "suite")
        ours.run("run", "suite", "--verifier", "reference", "--timeout", 60, "--out", "run")
    return folder


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that each test changes and restores, with the bytecode of what does not change."""
    return shutil.copytree(SOURCE, tmp_path_factory.mktemp("src") / "dokimos")


@pytest.fixture
def copy(sources: Path, tmp_path: Path) -> Iterator[Copy]:
    made = Copy(sources, tmp_path)
    assert made.touched() == 0
    with made.forks:
        yield made
    made.restore()
    where = made.python("-c", "import dokimos; print(dokimos.__file__)")
    assert Path(where.strip()).parent == sources


def test_the_table_names_all_eight() -> None:
    assert promised() == {
        "family": 2,
        "kind of proof": 2,
        "verifier": 2,
        "attack": 2,
        "measurement": 2,
        "rule set": 1,
        "report section": 2,
        "planted bug": 1,
    }


def test_a_family(copy: Copy) -> None:
    copy.write(
        "constructions/families/mine.py",
        "from dokimos.constructions.families.exclusive_pairs import ExclusivePairs\n"
        "class Mine(ExclusivePairs):\n"
        "    '''Mine.'''\n"
        "    family = 'mine'\n"
        "    summary = 'all mine'\n",
    )
    copy.insert(
        "constructions/__init__.py",
        '"ops":',
        '        "mine": "dokimos.constructions.families.mine:Mine",',
    )
    assert copy.touched() == promised()["family"]
    assert "all mine" in copy.run("families")
    copy.run("generate", "mine", "--inputs", 20, "--pairs", 2, "--out", "made")
    assert "2 of 2 labels proven" in copy.run("check", "made")


def test_a_kind_of_proof(copy: Copy) -> None:
    copy.write(
        "checker/proofs/mine.py",
        "from fractions import Fraction\n"
        "from dokimos.checker.base import CertificateKind, Proven\n"
        "from dokimos.suites.instance import Label\n"
        "class Mine(CertificateKind):\n"
        "    '''Theorem. One.'''\n"
        "    name = 'mine'\n"
        "    proves = Label.UNSAT\n"
        "    def prove(self, problem, data):\n"
        "        return Proven(Fraction(1, 8), None)\n",
    )
    copy.insert(
        "checker/kinds.py", '"ordered-pairs":', '        "mine": "dokimos.checker.proofs.mine:Mine",'
    )
    assert copy.touched() == promised()["kind of proof"]
    copy.run("generate", "exclusive-pairs", "--inputs", 20, "--pairs", 2, "--out", "made")
    for path in (copy.folder / "made" / "truth").iterdir():
        truth = json.loads(path.read_text(encoding="utf-8"))
        if truth["label"] == "unsat":
            truth["certificate"] = {"kind": "mine", "data": {}}
            truth["semantics"]["real"]["margin"] = "0.125"
            truth["semantics"]["float32"] = {"proven": False}
            path.write_text(json.dumps(truth), encoding="utf-8")
    said = copy.run("check", "made", "--core-only")
    assert "2 of 2 labels proven" in said
    assert "mine" in said


def test_a_verifier(copy: Copy, campaign: Path) -> None:
    copy.write(
        "verifiers/adapters/mine.py",
        "from dokimos.verifiers.adapters.built_in import Reference\n"
        "class Mine(Reference):\n"
        "    '''Mine.'''\n"
        "    name = 'mine'\n",
    )
    copy.insert(
        "verifiers/catalogue.py", '"neuralsat":', '        "mine": "dokimos.verifiers.adapters.mine:Mine",'
    )
    assert copy.touched() == promised()["verifier"]
    assert "mine" in copy.run("verifiers")
    copy.run("run", campaign / "suite", "--verifier", "mine", "--timeout", 60, "--out", "made")
    assert "mine answered all 2 runs correctly" in copy.run("judge", "made")


def test_an_attack(copy: Copy) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    copy.write(
        "engine/attacks/mine.py",
        "import numpy as np\n"
        "from dokimos.engine.attacks.base import Attack\n"
        "class Mine(Attack):\n"
        "    '''The lower corner.'''\n"
        "    name = 'mine'\n"
        "    def search(self, target, budget, rng):\n"
        "        target.look(np.tile(target.lower, (budget.restarts, 1)))\n",
    )
    line = '        "mine": "dokimos.engine.attacks.mine:Mine",'
    copy.insert("engine/attacks/__init__.py", '"pgd":', line)
    assert copy.touched() == promised()["attack"]
    found = copy.python(
        "-c",
        "from dokimos.engine.attacks import ATTACKS\n"
        "from dokimos.testing.contracts import affine, at_most\n"
        "print(list(ATTACKS)[:2], ATTACKS['mine'](affine(), at_most(-2.5), seed=0).least_margin)",
    )
    assert found == "['mine', 'pgd'] -0.5\n"


def test_a_measurement(copy: Copy, campaign: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    copy.write(
        "difficulty/components/mine.py",
        "from dokimos.difficulty.components.measurements import Inputs\n"
        "class Mine(Inputs):\n"
        "    '''d, once more.'''\n"
        "    name = 'mine'\n"
        "    symbol = 'mine'\n",
    )
    copy.insert(
        "difficulty/components/__init__.py",
        '"nonlinear_units":',
        '        "mine": "dokimos.difficulty.components.mine:Mine",',
    )
    assert copy.touched() == promised()["measurement"]
    copy.run("profile", campaign / "suite", "--samples", 10, "--out", "profiles")
    profiles = [json.loads(path.read_text()) for path in (copy.folder / "profiles").glob("*.json")]
    assert [profile["extras"]["mine"]["value"] for profile in profiles] == [20, 20]


def test_a_rule_set(copy: Copy, campaign: Path) -> None:
    copy.insert(
        "judging/rules.py",
        "#: Every rule set",
        'MINE = RuleSet(name="mine", about="one point", points_correct=1, points_incorrect=-1)',
    )
    rules = copy.sources / "judging" / "rules.py"
    text = rules.read_text(encoding="utf-8")
    assert text.count(" EXACT,\n") == 1
    rules.write_text(text.replace(" EXACT,\n", " EXACT,\n            MINE,\n"), encoding="utf-8")
    assert copy.touched() == promised()["rule set"]
    assert "mine" in copy.run("judge", "--help")
    assert "mine" in copy.run("judge", campaign / "run", "--rules", "mine")


def test_a_report_section(copy: Copy, campaign: Path) -> None:
    copy.write(
        "reports/sections/mine.py",
        "from rich.text import Text\n"
        "from dokimos.reports.sections.base import Section\n"
        "class Mine(Section):\n"
        "    '''Mine.'''\n"
        "    name, title, link = 'mine', 'What is mine', 'Mine'\n"
        "    template = '<p>{{ rows }} runs are mine</p>'\n"
        "    def rows(self, findings):\n"
        "        return len(findings.judgements)\n"
        "    def lines(self, rows):\n"
        "        yield Text(f'{rows} runs are mine')\n",
    )
    copy.insert(
        "reports/sections/base.py",
        '"reasons":',
        '        "mine": "dokimos.reports.sections.mine:Mine",',
    )
    assert copy.touched() == promised()["report section"]
    assert "2 runs are mine" in copy.run("judge", campaign / "run")
    copy.run("report", campaign / "run", "--html", "page.html")
    page = (copy.folder / "page.html").read_text(encoding="utf-8")
    assert "What is mine" in page
    assert "2 runs are mine" in page


def test_a_planted_bug(copy: Copy) -> None:
    copy.insert(
        "verifiers/planted/catalogue.py",
        'Misreader("no-witness"',
        '    Misreader("mine", "all mine", report=_always_unsat),',
    )
    assert copy.touched() == promised()["planted bug"]
    words = "from dokimos.verifiers.catalogue import find; print(find('planted=mine').diagnose()[0].what)"
    assert copy.python("-c", words).startswith("mine is installed, version ")
