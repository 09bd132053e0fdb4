from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Dokimos


def test_a_network_is_trained_and_a_suite_is_made_for_it(dokimos: Dokimos, tmp_path: Path) -> None:
    trained = dokimos("train", "digits-fc", "--epochs", "2", "--evaluate", "5", "--out", tmp_path / "nets")
    assert (
        trained.code == 0
        and "3,466" in trained.out
        and "ε = 0.02" in trained.out
        and "training 2/2: epoch 2: loss" in trained.err
    )
    model = tmp_path / "nets" / "digits-fc.onnx"
    common = ["--model", model, "--data", "digits", "--out", tmp_path / "bench", "--seed", "1"]
    radii = ["--largest", "1/2", "--tolerance", "1/20"]
    made = dokimos("properties", "oval", *common, "--images", "1", "--twins", "--budget", "1m", *radii)
    assert made.code == 0 and "2 instances, 30 s each: 1 sat, 1 unsat" in made.out
    again = dokimos("properties", "pgd", *common, "--epsilon", "1/100")
    assert again.code == 2 and "holds something else" in again.err
    for words, message in (
        (["radius", *common, "--epsilon", "2/0"], "is not a number"),
        (["pgd", *common, "--epsilon", "1/9", "--limits", "1"], "is not a range"),
        (["oval", *common, "--weights", "1"], "takes two numbers"),
        (["pgd", *common, "--epsilon", "1/9", "--normalise", "usual"], "is not a normalisation"),
    ):
        ran = dokimos("properties", *words)
        assert ran.code == 2 and message in ran.err
