"""Marabou itself, where its environment is installed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.adapters.pinned import Marabou
from dokimos.verifiers.base import Query
from dokimos.verifiers.execution.limits import Limits
from dokimos.verifiers.execution.process import run_limited
from dokimos.verifiers.script_guard import allowed_environment
from tests.scripting import at_least, relu_network

pytestmark = [
    pytest.mark.marabou,
    pytest.mark.skipif(
        not Marabou.environment.is_complete,
        reason="Marabou is not installed (dokimos verifiers install marabou)",
    ),
]


def ask(folder: Path, network: bytes, asked: bytes, *, wall_seconds: float = 60) -> VerifierAnswer:
    (folder / "n.onnx").write_bytes(network)
    (folder / "p.vnnlib").write_bytes(asked)
    (folder / "work").mkdir()
    query = Query(
        name="n",
        network_file=folder / "n.onnx",
        property_file=folder / "p.vnnlib",
        folder=folder / "work",
        wall_seconds=wall_seconds,
        memory_bytes=1 << 30,
    )
    marabou = Marabou()
    outcome = run_limited(
        marabou.command(query).command,
        limits=Limits(wall_seconds=wall_seconds),
        log=folder / "log",
        cwd=folder / "work",
        environment=allowed_environment(),
    )
    return marabou.answer(outcome, query, folder / "log")


def test_once_installed_its_diagnosis_finds_nothing() -> None:
    findings = Marabou().diagnose()
    assert len(findings) == 3
    assert [finding.what for finding in findings if not finding.is_ok] == []


def test_sat_with_a_witness(tmp_path: Path) -> None:
    given = ask(tmp_path, relu_network(), at_least("1.5"))
    assert given.answer is Answer.SAT
    assert given.witness is not None
    assert len(given.witness) == 2
    assert sum(given.witness) >= 1.49


def test_unsat(tmp_path: Path) -> None:
    given = ask(tmp_path, relu_network(), at_least("2.5"))
    assert (given.answer, given.witness) == (Answer.UNSAT, None)


def test_an_unknown_operator_is_named(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    given = ask(tmp_path, model.SerializeToString(), at_least("1.5"))
    assert given.answer is Answer.UNSUPPORTED
    assert given.detail.startswith("operator Exp: ")


def test_a_property_it_cannot_read_is_an_error(tmp_path: Path) -> None:
    given = ask(tmp_path, relu_network(), b"unsat(")
    assert given.answer is Answer.ERROR
    assert "exit code 1" in given.detail


def test_it_is_stopped_at_its_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = [30, 200, 200, 1]
    nodes, constants, last = [], [], "x"
    for k, (before, after) in enumerate(pairwise(sizes)):
        weights = rng.normal(size=(before, after)).astype(np.float32)
        constants.append(helper.make_tensor(f"w{k}", TensorProto.FLOAT, weights.shape, weights.flatten()))
        out = "y" if after == 1 else f"h{k}"
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [out]))
        if after != 1:
            nodes.append(helper.make_node("Relu", [out], [f"r{k}"]))
        last = f"r{k}"
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 30])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    text = "".join(f"(declare-const X_{i} Real)\n" for i in range(30)) + "(declare-const Y_0 Real)\n"
    text += "".join(f"(assert (>= X_{i} -1.0))\n(assert (<= X_{i} 1.0))\n" for i in range(30))
    asked = (text + "(assert (>= Y_0 1500.0))\n").encode()
    given = ask(tmp_path, model.SerializeToString(), asked, wall_seconds=3)
    assert (given.answer, given.detail) == (Answer.TIMEOUT, "stopped after 3 s")
