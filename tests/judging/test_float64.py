"""Networks of float64 are replayed in float64, by ONNX's reference where onnxruntime lacks a kernel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.engine.runtimes.sessions import ONNXRUNTIME, REFERENCE, Replayer, nearest_float
from dokimos.judging.judge_instances import judge_instance
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.reports.findings import Findings
from dokimos.reports.sections.families import Families
from dokimos.reports.sections.wrong_answers import replay_row
from dokimos.suites.instance import Answer
from tests.judging.test_judge import record
from tests.networks.building import Builder
from tests.scripting import at_least, double_network, instance, relu_network

F = Fraction
#: A float64 number next to 1 that is no float32 number.
NEAR_ONE = 1 + F(1, 2**40)


def conv_network(dtype: type = np.float64) -> bytes:
    """y = relu(x0 + x1), by a convolution."""
    b = Builder((1, 2), opset=17, dtype=dtype)
    line = b.add("Reshape", "x", b.integers([1, 1, 2]))
    total = b.add("Conv", line, b.constant(np.ones((1, 1, 2))))
    return b.model(b.add("Reshape", b.add("Relu", total), b.integers([1, 1]))).SerializeToString()


def judged(folder: Path, network: bytes, *witness: Fraction, bound: str) -> Judgement:
    asked = at_least(bound, low="-2.0", high="2.0")
    (found,) = judge_instance(
        instance(folder, "i", network=network, asked=asked),
        None,
        [record(Answer.SAT, witness)],
        lambda record: "",
    )
    return found


@pytest.mark.parametrize("network", [double_network(), conv_network()], ids=["MatMul", "Conv"])
def test_a_witness_is_replayed_at_the_nearest_float64_point(network: bytes) -> None:
    asked = Question(network, at_least("1.0", low="-2.0", high="2.0"), "it")
    found = replay_witness(asked, (NEAR_ONE, F(0)))
    assert found.in_floats is found.as_written is found.floating is not None
    assert found.in_floats.onnxruntime_outputs == (float(NEAR_ONE),)
    assert (found.in_floats.float_type, found.in_floats.witness_in_float32) == ("float64", True)
    third = replay_witness(asked, (F(4, 3), F(0))).in_floats
    assert third is not None
    assert third.exact_outputs == (F(4 / 3),)


def test_what_only_float64_tells_is_told() -> None:
    """In float32, 1 + 2^-40 would be 1, and y = 1 would not exceed the bound."""
    bound = "1.0000000000005"
    asked = at_least(bound, low="-2.0", high="2.0")
    floats = replay_witness(Question(double_network(), asked, "it"), (NEAR_ONE, F(0))).floating
    assert floats is not None
    assert replay_witness(Question(relu_network(), asked, "it"), (NEAR_ONE, F(0))).floating is None


def test_the_verdict_says_who_replayed_the_witness(tmp_path: Path) -> None:
    by_reference = judged(tmp_path / "a", conv_network(), F(1), F(-1, 2), bound="1.0")
    assert by_reference.verdict is Verdict.BAD_WITNESS
    said = "; replayed by ONNX's reference evaluator: onnxruntime cannot run this network in float64"
    assert by_reference.reason.endswith(said)
    assert by_reference.replay is not None
    assert replay_row(by_reference.replay).runtime == REFERENCE
    shown = judged(tmp_path / "b", conv_network(), F(1), F(1, 2), bound="1.0")
    assert shown.verdict is Verdict.CORRECT
    assert shown.reason.endswith(said)
    for folder, network in (("c", double_network()), ("d", conv_network(np.float32))):
        plain = judged(tmp_path / folder, network, F(1), F(-1, 2), bound="1.0")
        assert plain.verdict is Verdict.BAD_WITNESS
        assert "replayed by" not in plain.reason


def test_the_table_counts_the_witnesses_that_were_not_replayed_by_onnxruntime(tmp_path: Path) -> None:
    judgements = [
        replace(found, record=replace(found.record, job=str(k)))
        for k, found in enumerate(
            judged(tmp_path / str(k), network, F(1), F(1), bound="1.0")
            for k, network in enumerate((conv_network(), double_network()))
        )
    ]
    rows = Families().rows(Findings(judgements))
    assert rows.stand_in == (
        "Replayed by ONNX's reference evaluator, as onnxruntime cannot run the network: 1 of 2 witnesses."
    )
    assert str(list(Families().lines(rows))[-1]) == rows.stand_in
    assert Families().rows(Findings(judgements[1:])).stand_in == ""


def test_points_are_taken_and_given_in_the_type_of_the_network() -> None:
    network = Replayer(double_network())
    assert (network.dtype, network.runtime) == (np.float64, ONNXRUNTIME)
    point = np.array([[float(NEAR_ONE), 0.0], [0.1, 0.2]])
    assert network(point).dtype == np.float64
    assert network(point)[0, 0] == float(NEAR_ONE)
    assert network(point.astype(np.float32)).dtype == np.float32
    with pytest.raises(InputError, match="points must be float32, not float64"):
        Replayer(relu_network())(point)


def test_the_reference_evaluator_stands_in_for_float64_alone() -> None:
    network = Replayer(conv_network())
    assert (network.dtype, network.runtime) == (np.float64, REFERENCE)
    rows = np.array([[0.5, 0.25], [-1.0, 0.5], [2.0, 3.0]])
    assert network(rows).tolist() == [[0.75], [0.0], [5.0]]
    assert Replayer(conv_network(np.float32)).runtime == ONNXRUNTIME
    with pytest.raises(UnreadableFile, match="onnxruntime cannot load it"):
        Replayer(b"no network")


def test_the_nearest_float64_is_the_nearest() -> None:
    double = np.dtype(np.float64)
    assert nearest_float(F(1, 3), double) == F(1 / 3)
    assert nearest_float(F(10) ** 39, double) == F(1e39)
    assert nearest_float(F(10) ** 400, double) is None
