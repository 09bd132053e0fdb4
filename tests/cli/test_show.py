"""`dokimos show`: one instance, with and without a label, campaigns and readable files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.campaigns.published import CORNER, MIDDLE, write_benchmark, write_results
from tests.cli.conftest import Dokimos


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "bench")


def test_an_instance_without_a_label_is_settled_by_those_who_answered(
    dokimos: Dokimos, bench: Path, tmp_path: Path
) -> None:
    tools = {"right": [("one", "sat", CORNER)], "liar": [("one", "sat", MIDDLE)]}
    tools["denier"] = [("one", "unsat", None)]  # type: ignore[list-item]
    results, audited = write_results(tmp_path / "results", "bench", tools), tmp_path / "audited"
    assert dokimos("audit", bench, "--results", results, "--out", audited, "--jobs", 1).code == 1
    ran = dokimos("show", "bench/net__one", "--campaign", audited)
    assert ran.code == 1, "a wrong answer"
    assert "label      no truth file; sat by an exact witness (right)" in ran.out
    for verdict in ("correct", "bad-witness", "wrong-unsat"):
        assert verdict in ran.out
    assert "2 (1×2) -> 1 (1×1)" in ran.out and "2 Relu units" in ran.out
    assert "Y_0 >= 1.5" in ran.out
    assert dokimos("show", "net__one", "--campaign", audited).out == ran.out
    assert dokimos("show", "bench", "net__one", "--campaign", audited).out == ran.out
    nothing = dokimos("show", bench / "net__two", "--campaign", audited)
    assert (nothing.code, "none in the campaigns that were named" in nothing.out) == (0, True)


def test_a_label_is_proven_again_and_a_false_one_fails(dokimos: Dokimos, bench: Path) -> None:
    assert "none; `dokimos label` looks for one" in dokimos("show", bench / "net__one").out
    assert dokimos("label", bench, "--budget", "5s").code == 0
    ran = dokimos("show", bench / "net__one")
    assert ran.code == 0
    assert "label      sat, proven again from the files" in ran.out and "witness    X_0 = " in ran.out
    truth = bench / "truth" / "net__two.json"
    document = json.loads(truth.read_text())
    document["semantics"]["real"]["margin"] = "99"
    truth.write_text(json.dumps(document))
    failed = dokimos("show", bench / "net__two")
    assert (failed.code, "label      unsat, failed: " in failed.out) == (1, True)


def test_files_that_are_not_read_are_still_shown(dokimos: Dokimos, bench: Path) -> None:
    network, asked = bench / "onnx" / "net.onnx", bench / "vnnlib" / "one.vnnlib"
    network.write_bytes(network.read_bytes().replace(b"MatMul", b"MatMup"))
    asked.write_text("(assert (Y_0 <= 1))")
    ran = dokimos("show", network, asked)
    assert ran.code == 0
    assert ran.out.count("not read here: ") == 2 and "MatMup" in ran.out


def test_several_networks_are_shown_as_their_row_names_them(dokimos: Dokimos, bench: Path) -> None:
    declared = "(vnnlib-version <2.0>)\n" + "".join(
        f"(declare-network {f} (declare-input X{f} real [1,2]) (declare-output Y{f} real [1,1]))\n"
        for f in "fg"
    )
    equal = " ".join(f"(== Xf[0,{i}] Xg[0,{i}])" for i in range(2))
    boxes = " ".join(f"(>= X{f}[0,{i}] 0) (<= X{f}[0,{i}] 1)" for f in "fg" for i in range(2))
    text = f"{declared}(assert (and {boxes} {equal} (< Yf[0,0] Yg[0,0])))\n"
    (bench / "vnnlib" / "two.vnnlib").write_text(text)
    networks = "[('f','onnx/net.onnx'),('g','onnx/net.onnx')]"
    (bench / "instances.csv").write_text(f'"{networks}",vnnlib/two.vnnlib,60\n')
    ran = dokimos("show", bench / "net__two")
    assert ran.code == 0
    assert f"g = {bench / 'onnx' / 'net.onnx'}" in ran.out and "verifiers get one network" in ran.out
    assert "Xf[0,0] = Xg[0,0] and Xf[0,1] = Xg[0,1] and Yf[0,0] < Yg[0,0]" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["net__one"], "'net__one' names no instance; write SUITE/INSTANCE"),
        (["bench"], "'bench' names no instance; write SUITE/INSTANCE"),
        (["bench/net__three"], "did you mean 'net__"),
        (["bench/onnx/net.onnx"], "give its property as well"),
        (["bench", "net__three"], "did you mean 'net__"),
        (["bench", "net.vnnlib"], "bench is not a network (.onnx)"),
        (["nowhere/net__one"], "nowhere"),
    ],
)
def test_what_cannot_be_found_is_one_sentence(
    dokimos: Dokimos, bench: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(bench.parent)
    ran = dokimos("show", *words)
    assert ran.code == 2 and said in ran.err
    assert len(ran.err.splitlines()) == 1
