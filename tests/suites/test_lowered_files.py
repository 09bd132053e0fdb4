"""Rows with several networks, and properties that multiply variables: everybody sees two files."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.core.errors import UnreadableFile
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.entry import read_content, read_vnnlib_file
from dokimos.suites.folder import read_suite

BOTH = "\"[('f', 'onnx/a.onnx'), ('g', 'onnx/b.onnx')]\",./vnnlib/p.vnnlib,5\n"
TWO = (
    "(vnnlib-version <2.0>)\n"
    "(declare-network f (declare-input X real [1]) (declare-output Y real [1]))\n"
    "(declare-network g (isomorphic-to f) (declare-input U real [1]) (declare-output V real [1]))\n"
    "(assert (and (>= X[0] -1.0) (<= X[0] 1.0)))\n"
    "(assert (== X[0] U[0]))\n"
    "(assert (> (* Y[0] V[0]) 0.4))\n"
)
ONE = (
    "; one network\n(vnnlib-version <2.0>)\n"
    "(declare-network f (declare-input X real [1]) (declare-output Y real [1]))\n"
    "(assert (and (>= X[0] -1.0) (<= X[0] 1.0)))\n(assert (<= {} 0.1))\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """f(x) = relu(x) and g(x) = relu(x/2) with f·g > 2/5, which holds where x > 2/√5."""
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    suite = tmp_path / "suite"
    for name, slope in (("a", 1), ("b", 0.5)):
        (suite / "onnx").mkdir(parents=True, exist_ok=True)
        (suite / "onnx" / f"{name}.onnx").write_bytes(
            ModelBuilder([1]).affine([[slope]], [0]).relu().build(1)
        )
    (suite / "vnnlib").mkdir()
    (suite / "vnnlib" / "p.vnnlib").write_text(TWO)
    (suite / "instances.csv").write_text(BOTH)
    return suite


def replays(folder: Path, x: float) -> bool:
    (entry,) = read_suite(folder).entries
    question = Question(read_content(entry.network_path), read_content(entry.property_path), entry.name)
    return replay_witness(question, (Fraction(x),)).exact is not None


def test_a_row_of_several_networks_is_one_network_with_one_property(folder: Path) -> None:
    (entry,) = read_suite(folder).entries
    assert entry.name == "a_and_b__p"
    assert len(read_vnnlib_file(entry.property_path).networks) == 1
    assert replays(folder, 0.9) and not replays(folder, 0.875) and not replays(folder, 1.5)
    before = entry.network_path.stat().st_mtime_ns
    (again,) = read_suite(folder).entries
    assert again == entry and again.network_path.stat().st_mtime_ns == before


def test_what_is_lowered_follows_its_files(folder: Path) -> None:
    (before,) = read_suite(folder).entries
    (folder / "vnnlib" / "p.vnnlib").write_text(TWO.replace("0.4", "0.3"))
    (after,) = read_suite(folder).entries
    assert before.property_sha256 != after.property_sha256 and replays(folder, 0.8)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_property_that_multiplies_variables_is_lowered(folder: Path, compressed: bool) -> None:
    (folder / "instances.csv").write_text("onnx/a.onnx,vnnlib/p.vnnlib,5\n")
    text = ONE.format("(* X[0] Y[0])")
    (folder / "vnnlib" / "p.vnnlib").write_bytes(
        gzip.compress(text.encode()) if compressed else text.encode()
    )
    (entry,) = read_suite(folder).entries
    assert entry.name == "a__p" and not read_vnnlib_file(entry.property_path).products
    assert replays(folder, 0.25) and not replays(folder, 0.5)


@pytest.mark.parametrize("text", [ONE.format("(+ (* 2.0 X[0]) (* Y[0] 3.0))"), ONE.format("(* X[0] "), ""])
def test_other_properties_stay_where_they_are(folder: Path, text: str) -> None:
    (folder / "instances.csv").write_text("onnx/a.onnx,vnnlib/p.vnnlib,5\n")
    (folder / "vnnlib" / "p.vnnlib").write_text(text)
    (entry,) = read_suite(folder).entries
    assert entry.property_path == folder / "vnnlib" / "p.vnnlib"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "('g', 'onnx/b.onnx')",
            "('g')",
            r"instances\.csv:1: several networks must be written as \[\('f', ",
        ),
        ("'g'", "'f'", r"instances\.csv:1: each of several networks needs its own name"),
        ("'g'", "'h'", r"instances\.csv:1: the property declares no network 'h', only f, g"),
        (
            ", ('g', 'onnx/b.onnx')",
            "",
            r"instances\.csv:1: the property declares the network g, for which",
        ),
        ("onnx/b.onnx", "onnx/none.onnx", r"onnx/none\.onnx: there is no such file"),
        ("onnx/b.onnx", "../b.onnx", r"instances\.csv:1: '\.\./b\.onnx': its name leads out of the folder"),
    ],
)
def test_rows_that_do_not_fit_are_refused(folder: Path, old: str, new: str, reason: str) -> None:
    (folder / "instances.csv").write_text(BOTH.replace(old, new))
    with pytest.raises(UnreadableFile, match=reason):
        read_suite(folder)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "isomorphic-to",
            "equal-to",
            r"instances\.csv:1: g is declared equal-to f, but their files differ",
        ),
        ("(> (* Y[0] V[0]) 0.4)", "(Y[0] < V[0])", r"p\.vnnlib:6:9: the operator '<' is between"),
    ],
)
def test_properties_that_do_not_fit_are_refused(folder: Path, old: str, new: str, reason: str) -> None:
    (folder / "vnnlib" / "p.vnnlib").write_text(TWO.replace(old, new))
    with pytest.raises(UnreadableFile, match=reason):
        read_suite(folder)


def test_many_networks_have_a_short_name(folder: Path) -> None:
    long = "n" * 90
    for k in range(3):
        (folder / "onnx" / f"{long}{k}.onnx").write_bytes((folder / "onnx" / "a.onnx").read_bytes())
    row = ", ".join(f"('{name}', 'onnx/{long}{k}.onnx')" for k, name in enumerate("fgh"))
    (folder / "instances.csv").write_text(f'"[{row}]",vnnlib/p.vnnlib,5\n')
    third = "(declare-network h (declare-input W real [1]) (declare-output Z real [1]))\n"
    (folder / "vnnlib" / "p.vnnlib").write_text(
        TWO.replace("(assert (== X", f"{third}(assert (== W[0] X[0]))\n(assert (== X")
    )
    (entry,) = read_suite(folder).entries
    assert len(entry.name) < 150 and replays(folder, 0.9)
