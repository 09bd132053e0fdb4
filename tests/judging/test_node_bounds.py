"""Which node of a verifier's own bounds excludes a counterexample."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dokimos
from dokimos.core.errors import UnreadableFile
from dokimos.judging.node_bounds import first_excluded, read_bounds
from dokimos.judging.verdicts import Verdict
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.answers import Answer
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.planted.base import Task
from dokimos.verifiers.planted.catalogue import PLANTED
from tests.constructions.siblings import draw, truth_of

#: y = relu(x₀ + x₁) − relu(x₀ − x₁), with tensors gemm_0, relu_1 and gemm_2.
NETWORK = ModelBuilder([2]).affine([[1, 1], [1, -1]], [0, 0]).relu().affine([[1, -1]], [0]).build(1)
POINT = (Fraction(1), Fraction(1, 2))


def bounds(**given: tuple[list[float], list[float]]) -> dict[str, Any]:
    return {name: (np.array(low), np.array(high)) for name, (low, high) in given.items()}


def names() -> list[str]:
    return [node.output for node in read_onnx(NETWORK).nodes]


def test_the_first_node_in_graph_order_and_its_entry_are_named() -> None:
    first, second, third = names()
    wrong = {first: ([0, 0], [1.5, 0.4]), second: ([0, 0], [9, 0.1]), third: ([0], [0.5])}
    found = first_excluded(NETWORK, POINT, bounds(**wrong))
    assert found is not None
    assert (found.entry, found.lower, found.upper, found.value) == (1, 0, 0.4, 0.5)
    assert found.in_words.endswith(", entry 1, [0, 0.4], excludes 0.5, which the counterexample has there")


def test_what_holds_excludes_nothing_and_what_does_not_fit_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second, third = names()
    right = {first: ([-2, 0.5], [1.5, 2]), second: ([0, 0], [1.5, 0.5]), third: ([1], [1])}
    assert first_excluded(NETWORK, POINT, bounds(**right)) is None
    assert caplog.text == ""
    unfit = {first: ([9], [9]), "other": ([9], [9]), third: ([1], [1])}
    assert first_excluded(NETWORK, POINT, bounds(**unfit)) is None
    assert f"bounds of 2 of 3 tensors are left out, as of {first}: none of that name" in caplog.text


def test_rounding_is_no_reason_to_blame() -> None:
    *_, last = names()
    tiny = 1e-8
    assert first_excluded(NETWORK, POINT, bounds(**{last: ([1 + tiny], [2])})) is None
    assert first_excluded(NETWORK, POINT, bounds(**{last: ([1 + 1e-4], [2])})) is not None


@pytest.mark.parametrize("bug", ["attacking-relu-intercept", "attacking-abs-missing"])
def test_a_flawed_proof_shows_where_it_is_flawed_and_a_sound_one_nowhere(bug: str) -> None:
    _, twin = draw("relaxations", variant="relu-difference", end="upper")
    network = read_onnx(twin.instance.network_file)
    asked = read_vnnlib(twin.instance.property_file, file="p")
    witness = truth_of(twin).witness
    assert witness is not None
    assert asked.unsafe(witness, evaluate(network, witness).upper)
    task = Task(network, asked, None, None, 60.0)
    flawed, sound = PLANTED[bug], PLANTED["attacking-bounds"]
    assert flawed.decide(task).answer is Answer.UNSAT
    assert first_excluded(twin.instance.network_file, witness, flawed.tensor_bounds(task)) is not None
    assert first_excluded(twin.instance.network_file, witness, sound.tensor_bounds(task)) is None


def test_a_wrong_unsat_names_the_node(tmp_path: Path) -> None:
    """From the verifier's file to the reason of its verdict."""
    suite = tmp_path / "suite"
    dokimos.generate(family="relaxations", out=suite, seed=1, knobs={"variant": "relu-difference"})
    campaign = dokimos.run(suite, "planted=attacking-relu-intercept", out=tmp_path / "run")
    wrong = [j for j in campaign.judge().judgements if j.verdict is Verdict.WRONG_UNSAT]
    assert [("its interval for node" in one.reason) for one in wrong] == [True]
    (tmp_path / "run" / "logs" / f"{wrong[0].record.job}.bounds.npz").write_bytes(b"nonsense")
    (again,) = (j for j in campaign.judge().judgements if j.verdict is Verdict.WRONG_UNSAT)
    assert "interval" not in again.reason


@pytest.mark.parametrize(
    "arrays",
    [
        {"y": np.zeros(2)},
        {"y/lower": np.zeros(2), "y/middle": np.zeros(2)},
        {"y/upper": np.zeros(2)},
        {"y/lower": np.array(["a"]), "y/upper": np.array(["b"])},
        {"y/lower": np.array([{}], dtype=object), "y/upper": np.zeros(1)},
    ],
)
def test_other_arrays_are_one_sentence(tmp_path: Path, arrays: dict[str, Any]) -> None:
    np.savez(tmp_path / "bounds.npz", **arrays)
    with pytest.raises(UnreadableFile):
        read_bounds(tmp_path / "bounds.npz")


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    zeros = np.zeros(20_000_000)
    np.savez_compressed(tmp_path / "bounds.npz", **{"y/lower": zeros, "y/upper": zeros})
    with pytest.raises(UnreadableFile, match="decompress to more than"):
        read_bounds(tmp_path / "bounds.npz")


def test_damaged_archives_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bounds.npz"
    np.savez_compressed(path, **{"y/lower": np.arange(20.0), "y/upper": np.arange(20.0) + 1})
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            read_bounds(path)
        except UnreadableFile:
            refused += 1
    assert refused > len(whole) / 9


def test_what_was_written_is_read(tmp_path: Path) -> None:
    written = {"a/b/lower": np.zeros((2, 2)), "a/b/upper": np.ones((2, 2))}
    np.savez(tmp_path / "bounds.npz", **written)
    found = read_bounds(tmp_path / "bounds.npz")
    assert json.dumps({name: [end.tolist() for end in ends] for name, ends in found.items()}) == json.dumps(
        {"a/b": [[0.0] * 4, [1.0] * 4]}
    )
