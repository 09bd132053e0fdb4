"""How long one witness takes: read and decided by float64 rounded outward, against exact evaluation.

    python benchmarks/witness_speed.py

First a convolutional network of 365,000 parameters with batch normalisation, whose values are not rational;
then dense networks whose weights are doubled up to 10^7, and the exponent of their growth. For each: CPU
seconds for reading the files, for replaying the witness as `judge` does (onnxruntime included), for
deciding it alone, and, for the first, for one evaluation that float64 does not do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from reading_speed import exponent

from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.violation import violation_at

T = TypeVar("T")
WEIGHTS = [1_250_000, 2_500_000, 5_000_000, 10_000_000]


class Model:
    """An ONNX graph that grows node by node, its weights drawn from one generator."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.shape = list(shape)
        self.last = "x"

    def weight(self, *shape: int, fan: int) -> str:
        values = self.rng.standard_normal(shape) * np.sqrt(2 / fan)
        return self.constant(values)

    def constant(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype=np.float32), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> None:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *inputs], [name], **attributes))
        self.last = name

    def finish(self, outputs: int) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, [1, outputs])],
            self.weights,
        )
        opset = [helper.make_opsetid("", 17)]
        content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
        return content


def convolutional() -> bytes:
    """Four convolutions, each with batch normalisation, and three dense layers: 365,296 parameters."""
    model, channels, size = Model([1, 3, 32, 32]), 3, 32
    for stride in (1, 2, 1, 2):
        model.add(
            "Conv", model.weight(32, channels, 3, 3, fan=9 * channels), pads=[1] * 4, strides=[stride] * 2
        )
        spread = 0.5 + model.rng.random(32)
        scale, zero, variance = (model.constant(v) for v in (np.ones(32), np.zeros(32), spread))
        model.add("BatchNormalization", scale, zero, zero, variance)
        model.add("Relu")
        channels, size = 32, size // stride
    model.add("Flatten")
    dense(model, [channels * size * size, 160, 50, 10])
    return model.finish(10)


def dense(model: Model, widths: Sequence[int]) -> None:
    """Layers of these widths, ReLU between them."""
    for k, (before, after) in enumerate(pairwise(widths)):
        if k:
            model.add("Relu")
        model.add("Gemm", model.weight(after, before, fan=before), model.weight(after, fan=1), transB=1)


def dense_network(weights: int) -> bytes:
    """784 inputs, two hidden layers, 10 outputs, about that many weights."""
    width = int((-794 + np.sqrt(794**2 + 4 * weights)) / 2)
    model = Model([1, 784])
    dense(model, [784, width, width, 10])
    return model.finish(10)


def property_of(inputs: int) -> bytes:
    """The unit box; unsafe where the first output is no larger than another."""
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += [f"(declare-const Y_{j} Real)" for j in range(10)]
    for i in range(inputs):
        lines += [f"(assert (>= X_{i} 0.0))", f"(assert (<= X_{i} 1.0))"]
    lines += ["(assert (or", *(f"  (and (<= Y_0 Y_{j}))" for j in range(1, 10)), "))"]
    return "\n".join(lines).encode()


def timed(action: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of one run, and its result."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def measure(name: str, network: bytes, inputs: int, *, exactly: bool) -> float:
    """Print what one witness costs; the CPU seconds of everything but exact evaluation."""
    witness: Point = tuple(Fraction(f"{x:.9f}") for x in np.random.default_rng(1).random(inputs))
    question = Question(network, property_of(inputs), name)
    reading, _ = timed(lambda: (question.network, question.property))
    replaying, replays = timed(lambda: replay_witness(question, witness))
    deciding, found = timed(lambda: violation_at(question.network, question.property, witness))
    assert replays.as_written is not None
    weights = sum(array.size for array in question.network.constants.values())
    line = (
        f"{name}, {weights:,} parameters: read {reading:.2f} s, judge {replaying:.2f} s, "
        f"decide {deciding:.3f} s, outputs within {float(found.outputs.width / 2):.1e}"
    )
    if exactly:
        exact, _ = timed(lambda: evaluate(question.network, witness))
        line += f"; exact evaluation {exact:.1f} s, {exact / deciding:.0f} times deciding"
    print(line)
    return reading + replaying


def main() -> None:
    measure("convolutional", convolutional(), 3072, exactly=True)
    seconds = [measure("dense", dense_network(n), 784, exactly=False) for n in WEIGHTS]
    print(f"dense networks, read and judged: exponent {exponent(WEIGHTS, seconds):.2f}")


if __name__ == "__main__":
    main()
