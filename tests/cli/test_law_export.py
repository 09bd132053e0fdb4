"""`dokimos law export` from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import dokimos
from dokimos.checker.check import check
from dokimos.core.errors import InputError
from dokimos.engine.linear import LinearFinding, LinearSearch
from dokimos.laws.proving import law_suites
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Instance, Label
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.cli.conftest import invoke
from tests.cli.test_law_verify import DOMAIN, LAW, trees


def run(*arguments: object) -> Result:
    return _law("export", *map(str, arguments))


def _law(*words: str) -> Result:
    return invoke(["law", *words])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A law, its domain with rows, and two networks: more income helps, or harms above 50."""
    monkeypatch.chdir(tmp_path)
    rows = "import numpy as np\ndef inputs():\n    return np.array([[30, 10], [40, 48], [50, 90]])\n"
    Path("people.py").write_text(DOMAIN + rows)
    Path("more.law").write_text(LAW)
    for name, sign in (("helps", 1.0), ("harms", -1.0)):
        builder = ModelBuilder([2]).affine(np.array([[0.0, 1.0]]), np.array([-50.0])).relu()
        Path(f"{name}.onnx").write_bytes(
            builder.affine(np.array([[0.0], [sign]]), np.array([0.5, -sign])).build(2)
        )
    Path("trees.json").write_text(trees([1, 0], [0, 1]))
    return tmp_path


def test_rows_become_a_suite_with_witnesses(folder: Path) -> None:
    found = run("more.law", "--model", "harms.onnx", "--rows", 2, "--out", "suite")
    assert found.exit_code == 0, found.output
    assert "2 instances, 1 labelled sat by a violation, 1 unsat by a proof" in found.output
    assert "dokimos label" not in found.output
    first, second = dokimos.read_suite("suite").entries
    proven = first.read_truth()
    assert proven is not None and proven.label is Label.UNSAT
    check(Instance("x", first.network_path.read_bytes(), first.property_path.read_bytes()), proven)
    truth = second.read_truth()
    assert truth is not None and truth.label is Label.SAT
    check(Instance("x", second.network_path.read_bytes(), second.property_path.read_bytes()), truth)


def test_what_a_network_does_beyond_the_domain_is_not_asked(folder: Path) -> None:
    """More income helps up to 105, of 100, and harms beyond: the raised income stays in the domain."""
    builder = ModelBuilder([2]).affine(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([-50.0, -105.0])).relu()
    bends = builder.affine(np.array([[0.0, 0.0], [1.0, -9.0]]), np.array([0.5, 0.0])).build(2)
    (folder / "bends.onnx").write_bytes(bends)
    found = run("more.law", "--model", "bends.onnx", "--out", "suite")
    assert "0 labelled sat by a violation, 1 unsat by a proof" in found.output
    truth = next(iter(dokimos.read_suite("suite").entries)).read_truth()
    assert truth is not None and truth.certificate.kind == "linear"
    (folder / "people.py").write_text((folder / "people.py").read_text().replace("0, 100)", "0, 200)"))
    wider = (folder / "more.law").read_text().replace("100", "200")
    (folder / "more.law").write_text(wider)
    found = run("more.law", "--model", "bends.onnx", "--out", "wider")
    assert "1 labelled sat by a violation, 0 unsat by a proof" in found.output


def test_three_records_are_paired_with_the_one_between(folder: Path) -> None:
    """x, x + d and x + d + e: the second record is compared with both of the others."""
    (folder / "three.law").write_text(
        LAW.split("var")[0]
        + """var a := randInt(x1.income + 1, 99);
var b := randInt(a + 1, 100);
var x2 := x1[income := a];
var x3 := x1[income := b];
output d1;
output d2;
output d3;
{
    d1 = predict(x1)
    d2 = predict(x2)
    d3 = predict(x3)
}
ensures d1 <= d2 && d2 <= d3;
"""
    )
    for network, counts in (
        ("helps", "0 labelled sat by a violation, 1 unsat"),
        ("harms", "1 labelled sat"),
    ):
        found = run("three.law", "--model", f"{network}.onnx", "--out", network)
        assert counts in found.output
        (entry,) = dokimos.read_suite(network).entries
        truth = entry.read_truth()
        assert truth is not None
        check(Instance("x", entry.network_path.read_bytes(), entry.property_path.read_bytes()), truth)


def test_several_networks_in_one_property(folder: Path) -> None:
    found = run("more.law", "--model", "helps.onnx", "--vnnlib", "2.0", "--out", "suite")
    assert found.exit_code == 0, found.output
    assert "('f2', 'onnx/model.onnx')" in (folder / "suite" / "instances.csv").read_text()
    assert "(equal-to f1)" in (folder / "suite" / "vnnlib" / "more.vnnlib").read_text()
    (entry,) = dokimos.read_suite("suite").entries
    assert len(read_vnnlib(entry.property_path.read_bytes(), file="lowered").networks) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "trees.json", "--out", "suite"], "only laws on networks"),
        (["--model", "helps.onnx", "--vnnlib", "3", "--out", "suite"], "give 1 or 2"),
        (
            ["--model", "helps.onnx", "--rows", "1", "--tolerance", "2", "--out", "suite"],
            "not a percentage",
        ),
        (["--model", "helps.onnx", "--out", "."], "already exists"),
        (["--model", "helps.onnx", "--tolerance", "5%", "--out", "suite"], "--tolerance is about rows"),
        (["--model", "helps.onnx", "--free", "age", "--out", "suite"], "--free is about rows"),
    ],
)
def test_what_cannot_be_exported_says_why(folder: Path, arguments: list[str], words: str) -> None:
    found = run("more.law", *arguments)
    assert isinstance(found.exception, InputError) and words in str(found.exception)
    assert not (folder / "suite").exists()


@pytest.mark.parametrize(
    ("network", "code", "words"),
    [
        ("helps.onnx", 0, "more: proven by reference, not checked by Dokimos"),
        ("harms.onnx", 1, "more: violated, found by reference"),
    ],
)
def test_a_verifier_is_asked(folder: Path, network: str, code: int, words: str) -> None:
    """What it finds is run again; what it proves is its own word."""
    asked = ["verify", "more.law", "--model", network, "--verifier", "reference"]
    found = _law(*asked)
    assert found.exit_code == code, found.output
    assert words in found.output
    refused = _law(*asked, "--out", "proofs")
    assert isinstance(refused.exception, InputError) and "--out" in str(refused.exception)


def test_progress_and_what_is_open_are_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that is proven for every case, with no proof in between: open, for a reason."""
    monkeypatch.setattr(LinearSearch, "run", lambda _: LinearFinding(None, -1.0))
    found = run("more.law", "--model", "helps.onnx", "--rows", 2, "--out", "suite", "--seconds", 3)
    assert found.exit_code == 0, found.output
    assert "exporting 2/2: more ± 1 %: open" in found.output
    between = (
        "proven for every case; for numbers and mixtures between the cases, a proof was not found in 3 s"
    )
    assert f"open: more-0-1: {between}" in found.output
    assert "find the other labels with: dokimos label suite" in found.output


def test_a_proof_that_the_checker_rejects_is_no_label(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinearSearch, "run", lambda _: LinearFinding({"questions": [{}]}, 0.0))
    found = run("more.law", "--model", "helps.onnx", "--out", "suite")
    assert "0 unsat by a proof" in found.output and "between the cases, a leaf's bound" in found.output
    assert not (folder / "suite" / "truth").exists()


def interrupt_after(count: int, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Ctrl-C in the search for a proof that comes after `count` others; returns the searches."""
    asked: list[None] = []
    search = LinearSearch.run

    def interrupted(self: LinearSearch) -> LinearFinding:
        asked.append(None)
        if len(asked) > count:
            raise KeyboardInterrupt
        return search(self)

    monkeypatch.setattr(LinearSearch, "run", interrupted)
    return asked


EXPORT = ("more.law", "--model", "helps.onnx", "--rows", 3, "--out", "suite")


@pytest.mark.parametrize("together", [1, 20])
def test_an_interrupted_export_is_a_suite_and_continues(
    folder: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(law_suites, "_TOGETHER", together)
    assert run(*EXPORT[:-1], "whole").exit_code == 0
    with monkeypatch.context() as patched:
        interrupt_after(1, patched)
        found = run(*EXPORT)
        assert found.exit_code == 130 and "run the same command again to continue" in found.output
    begun = [entry.read_truth() for entry in dokimos.read_suite("suite").entries]
    assert len([truth for truth in begun if truth is not None]) == 1 and len(begun) == min(together + 1, 3)
    asked = interrupt_after(2, monkeypatch)
    found = run(*EXPORT)
    assert "3 instances, 0 labelled sat by a violation, 3 unsat by a proof" in found.output
    assert len(asked) == 2  # the first one is known
    files = {path.relative_to("suite"): path.read_bytes() for path in Path("suite").rglob("*.*")}
    assert files == {path.relative_to("whole"): path.read_bytes() for path in Path("whole").rglob("*.*")}
    assert "already exists; choose a new folder" in str(run(*EXPORT).exception)


def test_only_the_same_export_continues_and_false_labels_are_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(1, patched)
        run(*EXPORT)
    for other in (("--tolerance", "2%"), ("--no-constraints",), ("--model", "harms.onnx")):
        assert "is the beginning of another suite" in str(run(*EXPORT, *other).exception), other
    [truth] = Path("suite/truth").glob("*.json")
    damaged = truth.read_text().replace('"margin": "', '"margin": "9')
    assert truth.write_text(damaged) > len('"margin": "9')
    asked = interrupt_after(3, monkeypatch)
    assert "3 unsat by a proof" in run(*EXPORT).output
    assert len(asked) == 3 and truth.read_text() != damaged


def test_a_law_that_cannot_be_read_is_refused_before_anything_is_written(folder: Path) -> None:
    (folder / "worse.law").write_text("input x1; nonsense")
    found = run("more.law", "worse.law", "--model", "helps.onnx", "--out", "suite")
    assert found.exception is not None and not (folder / "suite").exists()
