"""`dokimos law verify` and `dokimos check` of its proofs, from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from dokimos.core.errors import InputError
from dokimos.laws.proving.law_search import NetworkSearch
from dokimos.networks.writing.builder import ModelBuilder
from tests.checker.test_trusted_core import searching
from tests.cli.conftest import invoke

LAW = """import people;
input x1;
var x2 := x1[income := x1.income + randInt(1, 5)];
output d1;
output d2;
{
    d1 = predict(x1)
    d2 = predict(x2)
}
ensures d1 <= d2;
"""
DOMAIN = """
from dokimos.laws import integer
FEATURES = [integer("age", 18, 90), integer("income", 0, 100)]
CLASSES = ["no", "yes"]
DECISION = "loan"
"""


def run(*arguments: object) -> Result:
    words = ["law", *map(str, arguments)]
    return invoke(words)


def check(*arguments: object) -> Result:
    words = ["check", *map(str, arguments)]
    return invoke(words)


def trees(low: list[int], high: list[int]) -> str:
    """A file of a tree that gives one class up to an income of 50, and another above."""
    tree = {
        "feature": [1, -1, -1],
        "threshold": [50, 0, 0],
        "left": [1, 1, 2],
        "right": [2, 1, 2],
        "value": [[0, 0], low, high],
    }
    return json.dumps(
        {"format": "dokimos-trees", "version": 1, "inputs": 2, "base": [0, 0], "trees": [tree]}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.py").write_text(DOMAIN)
    (tmp_path / "income.law").write_text(LAW)
    (tmp_path / "rising.json").write_text(trees([1, 0], [0, 1]))
    (tmp_path / "falling.json").write_text(trees([0, 1], [1, 0]))
    return tmp_path


def test_a_law_that_is_proven_and_rechecked(folder: Path) -> None:
    out = folder / "out"
    done = run("verify", folder / "income.law", "--model", folder / "rising.json", "--out", out)
    assert done.exit_code == 0, done.output
    assert "income.law: proven for the whole domain" in done.stdout and "leaf pairs" in done.stdout
    again = run("verify", folder / "income.law", "--model", folder / "rising.json", "--out", out)
    assert again.exit_code == 0 and "kept from before" in again.stdout and "leaf pairs" not in again.stdout
    proof = out / "income.json"
    assert isinstance(check(proof).exception, InputError)  # the domain is code
    held = check("--allow-code", proof)
    assert held.exit_code == 0 and "holds: " in held.stdout
    other = check("--allow-code", proof, "--model", folder / "falling.json")
    assert other.exit_code == 1 and "the proof is about another model" in other.stdout


def test_proofs_that_were_tampered_with(folder: Path) -> None:
    out = folder / "out"
    run("verify", folder / "income.law", "--model", folder / "rising.json", "--out", out)
    proof = out / "income.json"
    held = json.loads(proof.read_text())
    proof.write_text(json.dumps(held | {"cover": [[1, "50"], None]}))
    done = check("--allow-code", proof)
    assert done.exit_code == 1 and "ends before all zones are leaves" in done.stdout
    content = (folder / "falling.json").read_bytes()
    false = held | {"model": str(folder / "falling.json"), "model_sha256": sha256(content).hexdigest()}
    proof.write_text(json.dumps(false))
    done = check("--allow-code", proof)
    assert done.exit_code == 1 and "not shown to have no violation" in done.stdout
    for claim in ({"over": "every universe"}, {"semantics": "over the reals and in float32"}):
        proof.write_text(json.dumps(held | claim))
        done = check("--allow-code", proof)
        assert done.exit_code == 1 and "it claims" in done.stdout
    damaged = [{"cover": [[0, text]]} for text in ("1/0", "1e400", "1e9999999999", "٣", "")]
    for wrong in ({"text": held["text"].replace("<=", ">=")}, {"format": "x"}, *damaged):
        proof.write_text(json.dumps(held | wrong))
        assert isinstance(check("--allow-code", proof).exception, InputError)
    proof.write_text(json.dumps(held)[:-40])
    assert isinstance(check("--allow-code", proof).exception, InputError)


def test_laws_around_rows(folder: Path) -> None:
    (folder / "people.py").write_text(DOMAIN + "def inputs():\n    return [[30, 20], [40, 50], [50, 70]]\n")
    options = ("--model", folder / "falling.json", "--rows", 9, "--tolerance", "1%,2.5%", "--free", "age")
    done = run("verify", folder / "income.law", *options, "--out", folder / "out")
    assert done.exit_code == 1
    assert "income.law ± 1 %: 2 proven, 1 violated, 0 open of 3 rows" in done.stdout
    assert "± 2.5 %: 2 proven, 1 violated" in done.stdout
    held = check("--allow-code", folder / "out" / "income-1.json")
    assert held.exit_code == 0 and "2 proven, 1 violated" in held.stdout
    assert "not at hand" not in held.stdout
    again = run("verify", folder / "income.law", *options, "--out", folder / "out")
    assert again.exit_code == 1 and "2 proven, 1 violated" in again.stdout
    wrong = run("verify", folder / "income.law", "--rows", 3, "--tolerance", "1")
    assert isinstance(wrong.exception, InputError) and "not a percentage" in str(wrong.exception)
    none = check("--allow-code", folder / "people.py")
    assert isinstance(none.exception, InputError)


def test_an_interruption_says_what_the_same_command_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dokimos.verify_law", interrupted)
    done = run("verify", folder / "income.law", "--model", folder / "rising.json")
    assert done.exit_code == 130
    assert done.output == "dokimos: interrupted; the same command starts from the beginning.\n"


def test_the_whole_domain_is_decided_without_its_data(folder: Path) -> None:
    """And the command that is printed checks the proof again, as it stands."""
    (folder / "people.py").write_text(DOMAIN + "def inputs():\n    raise OSError('no such file')\n")
    found = run("verify", folder / "income.law", "--model", folder / "rising.json", "--out", folder / "out")
    assert found.exit_code == 0 and "proven for the whole domain" in found.stdout
    words = found.stdout.split("dokimos check ")[1].split()
    assert words[0] == "--allow-code"
    assert check(*words).exit_code == 0
    refused = check(words[1])
    assert isinstance(refused.exception, InputError) and "`allow_code` runs it" in str(refused.exception)
    rows = run("verify", folder / "income.law", "--model", folder / "rising.json", "--rows", 1)
    assert isinstance(rows.exception, InputError) and "no such file" in str(rows.exception)


def test_a_table_that_cannot_be_written_is_refused_before_the_repair(folder: Path) -> None:
    options = ("--model", "x.onnx", "--out", folder / "y.onnx", "--table", folder / "none" / "t.md")
    found = run("repair", folder / "income.law", *options)
    assert isinstance(found.exception, InputError) and "the table cannot be written" in str(found.exception)


def test_rows_are_compared_with_the_data_set(folder: Path) -> None:
    """A proof around rows that are not those of the data set, or not in that place, does not hold."""
    rows = "def inputs():\n    return [[30, 20], [40, 50], [50, 70]]\n"
    (folder / "people.py").write_text(DOMAIN + rows)
    law, out = folder / "income.law", folder / "out"
    run("verify", law, "--model", folder / "rising.json", "--rows", 3, "--out", out)
    proof = out / "income-1.json"
    assert check("--allow-code", proof).exit_code == 0
    held = json.loads(proof.read_text())
    elsewhere, out_of_place = json.loads(proof.read_text()), json.loads(proof.read_text())
    elsewhere["rows"][1]["columns"][0] = "41"
    out_of_place["rows"][2]["row"] = 3
    for wrong in (elsewhere, out_of_place):
        proof.write_text(json.dumps(wrong))
        done = check("--allow-code", proof)
        assert done.exit_code == 1 and "(0-based): is not that row of the data set" in done.stdout
    proof.write_text(json.dumps(held))
    (folder / "people.py").write_text(DOMAIN + rows.replace("20", "21"))
    done = check("--allow-code", proof)
    assert done.exit_code == 1 and "row 0 (0-based): is not that row" in done.stdout
    (folder / "people.py").write_text(DOMAIN)
    done = check("--allow-code", proof)
    assert done.exit_code == 0 and "the data set is not at hand to compare rows with" in done.stdout


def test_a_law_that_is_violated_and_replayed(folder: Path) -> None:
    out = folder / "out"
    done = run("verify", folder / "income.law", "--model", folder / "falling.json", "--out", out)
    assert done.exit_code == 1 and "income.law: violated in the whole domain" in done.stdout
    assert "with income 51 instead of 50 the loan falls from yes to no" in done.stdout
    again = run("replay", "--allow-code", out / "income.json")
    assert again.exit_code == 1 and "the loan falls from yes to no" in again.stdout


def test_several_laws_are_counted_and_what_cannot_be_decided_says_why(folder: Path) -> None:
    (folder / "squared.law").write_text(LAW.replace("x1.income + randInt(1, 5)", "x1.income * x1.income"))
    done = run("verify", folder, "--model", folder / "rising.json")
    assert done.exit_code == 1
    assert "squared.law: refused: `*` here is not linear in the features (line 3" in done.stdout
    assert "2 laws: 1 proven, 1 refused" in done.stdout


CHECK = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, sep="\\n"))
sys.argv[1:] = ["check", {proof!r}, "--allow-code", "--core-only"]
from dokimos.__main__ import main
main()
"""
#: What checks the proof of a law on each, and of a network its cover by zones, or linear bounds of copies.
CLOSERS = {
    "rising.json": "dokimos.checker.trees.covers",
    "rising.onnx": "dokimos.laws.proving.network_closing",
    "copies": "dokimos.checker.linear.proof",
}


@pytest.mark.parametrize("name", CLOSERS)
def test_a_proof_is_checked_again_without_anything_that_looks_for_one(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "copies":  # then it is the only search that can prove it
        monkeypatch.setattr(NetworkSearch, "run", lambda self: iter(()))
    layers = ModelBuilder([2]).affine(np.array([[0.0, 1.0]]), np.array([-50.0])).relu()
    content = layers.affine(np.array([[0.0], [1.0]]), np.array([5.5, 0.0])).build(2)
    (folder / "rising.onnx").write_bytes(content)
    model = folder / ("rising.onnx" if name == "copies" else name)
    done = run("verify", folder / "income.law", "--model", model, "--out", folder / "proofs")
    assert done.exit_code == 0, done.output
    proof = folder / "proofs" / "income.json"
    assert (json.loads(proof.read_text())["linear"] is not None) is (name == "copies")
    checked = subprocess.run(
        [sys.executable, "-c", CHECK.format(proof=str(proof))], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    loaded = checked.stdout.split()
    assert CLOSERS[name] in loaded
    assert searching(loaded) == []
    assert name != "rising.json" or "onnxruntime" not in loaded
