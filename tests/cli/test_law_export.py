"""`dokimos law export` from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import dokimos
from dokimos.core.errors import InputError
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Label
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


def labels(suite: str) -> list[Label]:
    """The labels that `dokimos label` finds, each with a proof that is checked again."""
    found = invoke(["label", suite, "--budget", "20s"])
    assert found.exit_code == 0, found.output
    assert invoke(["check", suite]).exit_code == 0
    truths = [entry.read_truth() for entry in dokimos.read_suite(suite).entries]
    return [truth.label for truth in truths if truth is not None]


def test_rows_become_a_suite_whose_labels_are_found(folder: Path) -> None:
    found = run("more.law", "--model", "harms.onnx", "--rows", 2, "--out", "suite")
    assert found.exit_code == 0, found.output
    assert "exporting 1/1: more-1-1" in found.output
    assert "suite: 2 instances, written" in found.output and "dokimos label suite" in found.output
    assert labels("suite") == [Label.UNSAT, Label.SAT]


def test_what_a_network_does_beyond_the_domain_is_not_asked(folder: Path) -> None:
    """More income helps up to 105, of 100, and harms beyond: the raised income stays in the domain."""
    builder = ModelBuilder([2]).affine(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([-50.0, -105.0])).relu()
    bends = builder.affine(np.array([[0.0, 0.0], [1.0, -9.0]]), np.array([0.5, 0.0])).build(2)
    (folder / "bends.onnx").write_bytes(bends)
    run("more.law", "--model", "bends.onnx", "--out", "suite")
    assert labels("suite") == [Label.UNSAT]
    (folder / "people.py").write_text((folder / "people.py").read_text().replace("0, 100)", "0, 200)"))
    wider = (folder / "more.law").read_text().replace("100", "200")
    (folder / "more.law").write_text(wider)
    run("more.law", "--model", "bends.onnx", "--out", "wider")
    assert labels("wider") == [Label.SAT]


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
    for network, label in (("helps", Label.UNSAT), ("harms", Label.SAT)):
        run("three.law", "--model", f"{network}.onnx", "--out", network)
        assert labels(network) == [label]


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


def test_what_has_no_instance_is_listed(folder: Path) -> None:
    law = (folder / "more.law").read_text()
    for number in range(7):
        (folder / f"never{number}.law").write_text(law.replace("var", "requires x1.income > 200;\nvar", 1))
    found = run(folder, "--model", "helps.onnx", "--out", "suite")
    assert "left out: never0: there is no case" in found.output and "left out: 2 more" in found.output
    assert "suite: 1 instance, written" in found.output
    none = run("never1.law", "--model", "helps.onnx", "--out", "none")
    assert "None of these laws can be exported" in str(none.exception) and not (folder / "none").exists()


def test_a_law_that_cannot_be_read_is_refused_before_anything_is_written(folder: Path) -> None:
    (folder / "worse.law").write_text("input x1; nonsense")
    found = run("more.law", "worse.law", "--model", "helps.onnx", "--out", "suite")
    assert found.exception is not None and not (folder / "suite").exists()
