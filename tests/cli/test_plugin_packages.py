"""What the command line does with installed packages: list, use and name them, survive broken ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import plugins
from tests.cli.forks import Forks

SOURCE = '''
from dataclasses import replace
from fractions import Fraction

from dokimos.checker import CertificateKind, Proven
from dokimos.constructions.families.exclusive_pairs import ExclusivePairs
from dokimos.suites.instance import Certificate, Label


class Oath(CertificateKind):
    """Theorem. Whatever is sworn is true."""

    name = "oath"
    proves = Label.UNSAT

    def prove(self, problem, data):
        """Believe."""
        return Proven(Fraction(1, 1000), None)


class Sworn(ExclusivePairs):
    """Instances whose robust half is sworn to be robust."""

    family = "sworn"
    summary = "an oath is all there is"

    def construct(self, knobs, rng):
        robust, twin = super().construct(knobs, rng)
        return replace(robust, certificate=Certificate("oath")), twin
'''
POINTS = {
    "dokimos.constructions": {"sworn": "oaths:Sworn", "ops": "oaths:Sworn", "gone": "oaths:Gone"},
    "dokimos.certificates": {"oath": "oaths:Oath"},
    "dokimos.verifiers": {"broken": "oaths_missing:Nothing"},
}
SMALL = ("--inputs", "20", "--pairs", "2")


class Shell:
    """The command line in processes of its own, with the package installed."""

    def __init__(self, folder: Path) -> None:
        packages = folder / "packages"
        packages.mkdir()
        plugins.install(packages, "oaths", "1.2", POINTS, source=SOURCE)
        self.script = folder / "script.json"
        ours = {
            "PYTHONPATH": str(packages),
            "DOKIMOS_HOME": str(folder / "home"),
            "DOKIMOS_SCRIPT": str(self.script),
        }
        self.folder = folder
        self.forks = Forks(folder, os.environ | ours)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = self.forks.run(*words)
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    made = Shell(tmp_path_factory.mktemp("shell"))
    with made.forks:
        done = made.run("generate", "sworn", "--out", "suite", "--plugin-proofs", *SMALL)
        assert done.returncode == 0, done.stderr
        yield made


def test_families_are_listed_and_faults_are_one_sentence_each(shell: Shell) -> None:
    done = shell.run("families")
    assert done.returncode == 0
    assert "an oath is all there is" in done.stdout
    assert "softmax-attention" in done.stdout
    clash, gone = done.stderr.splitlines()
    assert "'ops' of package oaths 1.2 is not used: dokimos" in clash
    assert "'gone' of package oaths 1.2 cannot be loaded (AttributeError" in gone


def test_a_broken_verifier_leaves_the_others(shell: Shell) -> None:
    done = shell.run("verifiers")
    assert done.returncode == 0
    assert "reference" in done.stdout
    assert "'broken' of package oaths 1.2 cannot be loaded (ModuleNotFoundError" in done.stderr


def test_a_label_of_a_plug_in_is_only_made_where_it_is_trusted(shell: Shell) -> None:
    done = shell.run("generate", "sworn", "--out", "untrusted", *SMALL)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "kind oath comes from package oaths 1.2; use --plugin-proofs to trust it" in said
    assert not (shell.folder / "untrusted").exists()


def test_a_label_of_a_plug_in_is_only_proven_where_it_is_trusted(shell: Shell) -> None:
    trusting = shell.run("check", "suite", "--plugin-proofs")
    assert trusting.returncode == 0
    assert "2 of 2 labels proven" in trusting.stdout
    assert "kind oath of package oaths 1.2" in " ".join(trusting.stdout.split())
    doubting = shell.run("check", "suite")
    assert doubting.returncode == 1
    assert "1 of 2 labels proven" in doubting.stdout
    problem = "not proven: kind oath comes from package oaths 1.2; use --plugin-proofs to trust it"
    assert problem in " ".join(doubting.stderr.split())


def test_the_core_alone_knows_no_plug_in(shell: Shell) -> None:
    core = shell.run("check", "suite", "--core-only")
    assert core.returncode == 2
    assert "unknown kind 'oath'" in " ".join(core.stderr.split())
    assert "oaths" not in core.stderr
    both = shell.run("check", "suite", "--core-only", "--plugin-proofs")
    assert both.returncode == 2
    assert "give either --core-only or --plugin-proofs" in both.stderr


def test_nobody_is_blamed_by_a_label_of_a_plug_in(shell: Shell) -> None:
    shell.script.write_text('{"default": {"behaviour": "no-witness"}}')
    ran = shell.run("run", "suite", "--verifier", "scripted", "--out", "run")
    assert ran.returncode == 0, ran.stderr
    judged = shell.run("judge", "run")
    assert judged.returncode == 0, judged.stdout
    assert "No wrong answers: scripted, 0 of 2 runs correct, 1 unwitnessed, 1 unlabelled." in judged.stdout
    proof = "kind oath of package oaths 1.2"
    assert judged.stderr.splitlines() == [
        f"1 run is unlabelled: the label is proven only by {proof}, which is never used against a verifier"
    ]
