from __future__ import annotations

from pathlib import Path

import pytest

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


def test_several_networks_make_one_suite(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nets = tmp_path / "nets"
    assert dokimos("train", "digits-fc", "--epochs", "2", "--evaluate", "5", "--out", nets).code == 0
    (nets / "other.onnx").write_bytes((nets / "digits-fc.onnx").read_bytes())
    (nets / "other.json").write_bytes((nets / "digits-fc.json").read_bytes())
    models = ["--model", nets / "digits-fc.onnx", "--model", f"{nets / 'other.onnx'}:2"]
    words = ["properties", "radius", *models, "--data", "digits", "--epsilon", "0.001", "--count", "1"]
    words += ["--budget", "3m", "--out", tmp_path / "both"]
    # It is interrupted after the first network, and the same command goes on.
    with monkeypatch.context() as patched:
        patched.setattr("dokimos.api.models.join_suites", lambda *_: 1 / 0)
        assert dokimos(*words).code == 3
    made = dokimos(*words)
    assert made.code == 0 and "3 instances, 60 s each: 3 unsat" in made.out
    assert [path.name for path in tmp_path.glob(".both*")] == []
    rows = (tmp_path / "both" / "instances.csv").read_text().splitlines()
    assert sorted(row.split("/")[1].partition(",")[0] for row in rows) == [
        "digits-fc.onnx",
        "other.onnx",
        "other.onnx",
    ]
    assert dokimos("check", tmp_path / "both").code == 0
    again = dokimos("properties", "radius", *models[:2], "--model", nets / "digits-fc.onnx", *words[6:])
    assert again.code == 2 and "Two models have the same name" in again.err
