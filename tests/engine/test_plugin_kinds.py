"""Proofs by kinds of other packages: off unless asked for, named when used, never below a shipped name."""

from __future__ import annotations

import base64
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.checker import CERTIFICATES, check
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.core.plugins import PluggableRegistry
from dokimos.engine.outcome import (
    ALL_CERTIFICATES,
    plugin_kind,
    trusted_kinds,
    why_not_trusted,
)
from dokimos.judging.checked_entry import check_entry, check_entry_naming_plugins, check_entry_with_plugins
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Instance, Label, LabelledInstance, Truth
from dokimos.suites.suite_files import files_of, store_files, write_index
from tests import plugins
from tests.checker.files import instance_of, model, question, stated

SOURCE = '''
from fractions import Fraction
from dokimos.checker import CertificateKind, Proven
from dokimos.suites.instance import Label

class Oath(CertificateKind):
    """Theorem. Whatever is sworn is true."""

    name = "oath"
    proves = Label.UNSAT

    def prove(self, problem, data):
        """Believe."""
        return Proven(Fraction(1), None)
'''


@pytest.fixture
def oath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a kind of proof, installed."""
    folder = tmp_path / "packages"
    folder.mkdir()
    points = {"dokimos.certificates": {"oath": "oaths:Oath", "witness": "oaths:Oath"}}
    plugins.install(folder, "oaths", "1.2", points, source=SOURCE)
    monkeypatch.syspath_prepend(str(folder))
    fresh: PluggableRegistry = PluggableRegistry(
        "certificate kind",
        CERTIFICATES.targets,
        group=ALL_CERTIFICATES.group,
        expects=ALL_CERTIFICATES._expects,
    )
    monkeypatch.setattr("dokimos.engine.outcome.ALL_CERTIFICATES", fresh)


def sworn() -> tuple[Instance, Truth]:
    network = model([("Relu", ["X"], "Y")], {}, [1, 1], [1, 1])
    instance = instance_of(network, question([(0, 1)], 1, "(<= Y_0 -1)"))
    return instance, stated(instance, "oath", real=Fraction(1))


def entry_of(folder: Path) -> SuiteEntry:
    folder.mkdir()
    instance, truth = sworn()
    store_files(folder, files_of(LabelledInstance(instance, truth)))
    write_index(folder, [(instance.name, "f")], 1.0, recipe={}, version="0")
    (entry,) = read_suite(folder).entries
    return entry


@pytest.mark.usefixtures("oath")
def test_a_plug_ins_kind_proves_only_where_it_is_trusted() -> None:
    instance, truth = sworn()
    assert check(instance, truth, kinds=trusted_kinds(plugin_proofs=True)).real == 1
    for kinds in (CERTIFICATES, trusted_kinds(plugin_proofs=False)):
        with pytest.raises(UnreadableFile, match="unknown kind 'oath'"):
            check(instance, truth, kinds=kinds)


@pytest.mark.usefixtures("oath")
def test_a_plug_in_cannot_take_the_name_of_a_shipped_kind() -> None:
    trusted = trusted_kinds(plugin_proofs=True)
    assert type(trusted["witness"]) is type(CERTIFICATES["witness"])
    assert plugin_kind("witness") == why_not_trusted("witness") == plugin_kind("no such kind") == ""


@pytest.mark.usefixtures("oath")
def test_a_shipped_kind_never_builds_on_a_plug_ins() -> None:
    instance, _ = sworn()
    base = base64.b64encode(instance.network_file).decode()
    data = {"base": base, "steps": [], "kind": "oath", "data": {}}
    rewritten = stated(instance, "rewritten", data, real=Fraction(1))
    with pytest.raises(InvalidProof, match="'oath' cannot prove the base"):
        check(instance, rewritten, kinds=trusted_kinds(plugin_proofs=True))


@pytest.mark.usefixtures("oath")
def test_it_is_named_with_its_package(tmp_path: Path) -> None:
    entry = entry_of(tmp_path / "suite")
    trusting = check_entry_with_plugins(entry)
    assert trusting.is_proven
    assert trusting.kind == "kind oath of package oaths 1.2"
    doubting = check_entry_naming_plugins(entry)
    assert doubting.problem == "kind oath comes from package oaths 1.2; use `plugin_proofs` to trust it"
    assert not doubting.is_unreadable
    core = check_entry(entry)
    assert "unknown kind 'oath'" in core.problem
    assert core.is_unreadable


def test_without_the_package_it_is_an_unknown_kind(tmp_path: Path) -> None:
    entry = entry_of(tmp_path / "suite")
    for checked in (check_entry_with_plugins(entry), check_entry_naming_plugins(entry)):
        assert "unknown kind 'oath'" in checked.problem
    entry.truth_path.unlink()
    assert check_entry_naming_plugins(entry).problem == check_entry(entry).problem
    entry.truth_path.write_text("{")
    assert check_entry_naming_plugins(entry).problem == check_entry(entry).problem


def test_the_checker_does_not_load_the_plug_ins() -> None:
    import subprocess
    import sys

    script = "import sys, dokimos.checker, dokimos.judging.checked_entry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "dokimos.judging.checked_entry" in done.stdout.split()
    assert not {"dokimos.core.plugins", "dokimos.engine.outcome"} & set(done.stdout.split())


def test_each_label_can_be_asked_for() -> None:
    assert {kind.proves for _, kind in ALL_CERTIFICATES.items()} == set(Label)
