"""`dokimos replay`: a point, exactly and in onnxruntime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Dokimos
from tests.engine.runtimes.test_cross_check import leaky, misread, slope_of_zero
from tests.scripting import at_least, instance, relu_network

STEP = "1.00000011920928955078125"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """y = relu(x0) + relu(x1) in [-1, 1]², unsafe where it is at least 1.5."""
    made = instance(tmp_path, "i", network=relu_network(), asked=at_least("1.5"))
    return made.network_path, made.property_path


def test_a_violation_is_shown_with_its_margin_and_exits_with_1(
    dokimos: Dokimos, files: tuple[Path, Path], tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    witness.write_text("sat\n((X_0 1)\n (X_1 0.75))\n")
    ran = dokimos("replay", *files, witness)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        "in the box",
        "exactly: it violates the property, margin 0.25",
        "in onnxruntime: it violates the property",
        "  Y_0 = 1.75 exactly, 1.75 in onnxruntime",
        "3 of 3 nodes compared: rounding explains every difference",
    ]
    assert dokimos("replay", *files, "1", "0.75") == dokimos("replay", *files, "1,0.75") == ran


def test_a_point_that_begins_with_a_minus_sign_is_no_option(
    dokimos: Dokimos, files: tuple[Path, Path]
) -> None:
    ran = dokimos("replay", *files, "-1,0.5")
    assert ran.code == 0
    assert "exactly: it does not violate the property, margin -1" in ran.out


def test_outside_the_box_nothing_is_violated(dokimos: Dokimos, files: tuple[Path, Path]) -> None:
    ran = dokimos("replay", *files, "1.5 1")
    assert ran.code == 0
    assert "outside the box by 0.5\nexactly: no violation, since it is outside the box" in ran.out


def test_a_violation_in_floats_alone_is_one(dokimos: Dokimos, tmp_path: Path) -> None:
    made = instance(tmp_path, "i", asked=at_least(STEP, low="0.0"))
    ran = dokimos("replay", made.network_path, made.property_path, "1", "0.00000009")
    assert ran.code == 1
    assert "exactly: it does not violate" in ran.out
    assert "it violates the property at the nearest float32 point, which is in the box" in ran.out
    assert "rounding explains every difference" in ran.out


def test_the_node_where_they_part_is_named(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, _ = leaky()
    (tmp_path / "net.onnx").write_bytes(given.network_file)
    (tmp_path / "asked.vnnlib").write_bytes(given.property_file)
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    ran = dokimos("replay", tmp_path / "net.onnx", tmp_path / "asked.vnnlib", "-1.5")
    assert ran.code == 1
    assert "they first differ at node 1 of 1, LeakyRelu: " in ran.out
    assert "[0, 0] is -0.75 in onnxruntime and 0.0 exactly, while rounding explains" in ran.out


def test_what_cannot_be_replayed_is_one_sentence(
    dokimos: Dokimos, files: tuple[Path, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.vnnlib"
    broken.write_text("(assert")
    for words, said in (
        ((*files, "1 2 3"), "the point has 3 numbers, but the network takes 2"),
        ((*files, "here.txt"), "'here.txt' is neither a file nor a VNN-COMP witness"),
        ((files[0], broken, "1 2"), str(broken)),
        ((files[1], files[1], "1 2"), f"{files[1]}: is not an ONNX file"),
        ((files[0], tmp_path / "none", "1 2"), f"{tmp_path / 'none'}: there is no such file"),
        (files, "Missing argument"),
        ((*files, "1 1e300"), ""),
    ):
        ran = dokimos("replay", *words)
        assert ran.code == (2 if said else 0)
        assert said in ran.err
        assert ran.err.count("\n") == bool(said)
    assert "in onnxruntime: not evaluated: the point is outside the range of float32" in ran.out


def test_a_number_that_is_called_exact_is_not_rounded(dokimos: Dokimos, files: tuple[Path, Path]) -> None:
    ran = dokimos("replay", *files, "0.75", "0.0000006")
    assert "  Y_0 = 0.7500006 exactly, 0.7500005960464478 in onnxruntime" in ran.out
    ran = dokimos("replay", *files, "0.75", "0.0000000000000000000000000000001")
    assert "  Y_0 = 0.7500000000000000000000… exactly, 0.75 in onnxruntime" in ran.out
