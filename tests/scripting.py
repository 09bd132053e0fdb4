"""A small suite on disk and scripts for the scripted verifier, for tests of running and judging."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import psutil
from onnx import TensorProto, helper, numpy_helper

from dokimos.campaigns.settings import RunSettings
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.suites.instance import Certificate, Claim, Label, Semantics, Truth, sha256

T = TypeVar("T")


@dataclass(frozen=True)
class StubInstance:
    name: str
    family: str
    network_path: Path
    property_path: Path
    network_sha256: str
    property_sha256: str
    truth: Truth | None = None
    timeout_seconds: float = 60.0

    @property
    def truth_path(self) -> Path:
        return self.network_path.parent.parent / "truth" / f"{self.name}.json"

    def read_truth(self) -> Truth | None:
        return self.truth


def believed(_: object) -> LabelCheck:
    """Stands for the checker in tests of labels that nobody proved."""
    return LabelCheck(LabelStanding.PROVEN)


def relu_network(scale: float = 1.0) -> bytes:
    """y = scale * relu(x0) + scale * relu(x1) (one output)."""
    weights = {"w": np.eye(2, dtype=np.float32), "v": np.full((2, 1), scale, dtype=np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def double_network() -> bytes:
    """y = relu(x0 + x1), in float64."""
    nodes = [helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [1, 1])],
        [numpy_helper.from_array(np.ones((2, 1)), "v")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def sigmoid_network() -> bytes:
    """y = sigmoid(x0 + x1)."""
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("Sigmoid", ["h"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(np.ones((2, 1), np.float32), "v")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def at_least(bound: str, *, low: str = "-1.0", high: str = "1.0") -> bytes:
    """Unsafe where Y_0 >= bound, inputs in [low, high]."""
    text = "(declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
    for i in range(2):
        text += f"(assert (>= X_{i} {low}))\n(assert (<= X_{i} {high}))\n"
    return f"{text}(assert (>= Y_0 {bound}))\n".encode()


def instance(
    folder: Path,
    name: str,
    *,
    network: bytes | None = None,
    asked: bytes | None = None,
    label: Label | None = None,
    float32: bool = True,
    real: bool = True,
    family: str = "stub",
    witness: tuple[Fraction, ...] | None = None,
) -> StubInstance:
    network = relu_network() if network is None else network
    asked = at_least("1.5") if asked is None else asked
    for kind in ("onnx", "vnnlib", "truth"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    paths = folder / "onnx" / f"{name}.onnx", folder / "vnnlib" / f"{name}.vnnlib"
    paths[0].write_bytes(network)
    paths[1].write_bytes(asked)
    truth = None
    if label is not None:
        claims = {Semantics.REAL: Claim(real), Semantics.FLOAT32: Claim(float32)}
        truth = Truth(
            label,
            claims,
            Certificate("witness" if label is Label.SAT else "linear"),
            sha256(network),
            sha256(asked),
            witness,
        )
        written = None if witness is None else [str(float(x)) for x in witness]
        content = json.dumps({"label": label.value, "witness": written})
        (folder / "truth" / f"{name}.json").write_text(content)
    return StubInstance(name, family, *paths, sha256(network), sha256(asked), truth)


def script(path: Path, **content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def with_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `run_campaign`: run settings become one object, of 20 seconds unless given."""
    names = {each.name for each in fields(RunSettings)}
    own = {name: value for name, value in given.items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    return {"settings": RunSettings(**{"timeout_seconds": 20, **own}), **rest}


def flat(function: Callable[..., T], kind: type[Any]) -> Callable[..., T]:
    """The function with the fields of its settings as arguments of its own."""

    def call(*args: Any, **given: Any) -> T:
        own = {each.name: given.pop(each.name) for each in fields(kind) if each.name in given}
        settings = replace(given.pop("settings", None) or kind(), **own)
        return function(*args, settings=settings, **given)

    return call


def following(script: Path) -> list[int]:
    """The processes that follow this script: verifiers, isolated or not, and their supervisors."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            found += [process.pid] if str(script) in process.cmdline() else []
    return found
