"""An independent oracle for small networks of any kind, sharing nothing with the checker but onnx itself.

It evaluates the file in float64 with numpy, and searches the box: the centre, uniform points, all corners
of small boxes, the corners that hinges point at, and descents from the best of them. What it finds is real
(up to `TOLERANCE`); finding nothing proves nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.suites.instance import Instance, Label, Semantics, Truth
from dokimos.testing.relu_oracle import Half, OracleQuestion, question_of
from dokimos.testing.sweeps import Oracle

Array = NDArray[np.float64]
#: Far above float64's rounding of these small networks, far below their margins.
TOLERANCE = 1e-9


def _softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    result: Array = powers / powers.sum(axis=axis, keepdims=True)
    return result


def outputs_of(network: bytes, points: Array) -> Array:
    """The outputs [k, m] at points [k, n]. Axes count as if the batch were the first dimension."""
    return evaluator(network)(points)


def evaluator(network: bytes) -> Callable[[Array], Array]:
    """`outputs_of` for many batches of points: the network is read once."""
    graph = onnx.load_from_string(network).graph
    constants: dict[str, Any] = {
        t.name: numpy_helper.to_array(t) if t.data_type == onnx.TensorProto.INT64 else _exact(t)
        for t in graph.initializer
    }
    given = graph.input[0]
    shape = [d.dim_value for d in given.type.tensor_type.shape.dim][1:]
    steps = [
        (
            list(node.input),
            node.output[0],
            RULES[node.op_type],
            {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
        )
        for node in graph.node
    ]

    def outputs(points: Array) -> Array:
        values = {**constants, given.name: points.reshape(len(points), *shape)}
        for inputs, output, rule, attributes in steps:
            values[output] = rule([values[name] for name in inputs], attributes)
        result: Array = values[graph.output[0].name]
        return result

    return outputs


def _exact(tensor: onnx.TensorProto) -> Array:
    return numpy_helper.to_array(tensor).astype(np.float64)


def _convolution(args: list[Any], attributes: dict[str, Any]) -> Array:
    """Over images [k, channels, height, width], a tap of the filters at a time."""
    image, weight, bias = args
    (down, across), (top, left, bottom, right) = attributes["strides"], attributes["pads"]
    padded = np.pad(image, ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows = (padded.shape[2] - weight.shape[2]) // down + 1
    columns = (padded.shape[3] - weight.shape[3]) // across + 1
    total: Array = np.zeros((len(image), len(weight), rows, columns)) + bias[:, None, None]
    for i, j in product(range(weight.shape[2]), range(weight.shape[3])):
        seen = padded[:, :, i : i + down * rows : down, j : j + across * columns : across]
        total += (weight[:, :, i, j] @ seen.reshape(*seen.shape[:2], -1)).reshape(total.shape)
    return total


RULES: dict[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "Add": lambda a, _: a[0] + a[1],
    "Concat": lambda a, at: np.concatenate(a, axis=at["axis"]),
    "Conv": _convolution,
    "Div": lambda a, _: a[0] / a[1],
    "Exp": lambda a, _: np.exp(a[0]),
    "Flatten": lambda a, _: a[0].reshape(len(a[0]), -1),
    "Gemm": lambda a, at: a[0] @ (a[1].T if at.get("transB") else a[1]) + a[2],
    "MatMul": lambda a, _: a[0] @ a[1],
    "Mul": lambda a, _: a[0] * a[1],
    "Pow": lambda a, _: a[0] ** a[1],
    "ReduceSum": lambda a, _: a[0].sum(axis=tuple(a[1]), keepdims=True),
    "Relu": lambda a, _: np.maximum(a[0], 0.0),
    "Reshape": lambda a, _: a[0].reshape(len(a[0]), *a[1][1:]),
    "Softmax": lambda a, at: _softmax(a[0], at["axis"]),
    "Transpose": lambda a, at: a[0].transpose(at["perm"]),
}


def candidates(network: bytes, question: OracleQuestion, rng: np.random.Generator) -> Array:
    """Points of the box where a violation is likely, if there is one."""
    lower = np.array([float(a) for a, _ in question.box])
    upper = np.array([float(b) for _, b in question.box])
    size = len(lower)
    signs = [rng.choice([-1.0, 1.0], size=(200, size)), np.zeros((1, size))]
    signs.append(rng.uniform(-1.0, 1.0, size=(300, size)))
    if size <= 8:
        signs.append(np.array(list(product((-1.0, 1.0), repeat=size))))
    for tensor in onnx.load_from_string(network).graph.initializer:
        if len(tensor.dims) == 2 and tensor.dims[1] == size:
            signs += [np.sign(_exact(tensor)), -np.sign(_exact(tensor))]
    middle, radius = (lower + upper) / 2, (upper - lower) / 2
    points: Array = np.clip(middle + np.vstack(signs) * radius, lower, upper)
    return points


def _slacks(half: Half, points: Array, outputs: Array) -> Array:
    left = np.zeros(len(points))
    for name, factor in half.terms.items():
        source = points if name.startswith("X_") else outputs
        left = left + float(factor) * source[:, int(name[2:])]
    result: Array = float(half.bound) - left
    return result


def largest_violation(network: bytes, property_: bytes, rng: np.random.Generator) -> float:
    """The largest, over points searched and unsafe clauses, of the smallest slack; −∞ on an empty box."""
    question = question_of(property_)
    if any(a > b for a, b in question.box):
        return -np.inf
    points = candidates(network, question, rng)
    outputs_at = evaluator(network)
    lower = np.array([float(a) for a, _ in question.box])
    upper = np.array([float(b) for _, b in question.box])

    def violations(at: Array) -> Array:
        outputs = outputs_at(at)
        each = [
            np.min([_slacks(half, at, outputs) for half in clause], axis=0) for clause in question.unsafe
        ]
        result: Array = np.max(each, axis=0)
        return result

    found = violations(points)
    for _ in range(4):
        best = points[int(np.argmax(found))]
        points = np.clip(best + rng.normal(size=(100, len(best))) * (upper - lower) / 8, lower, upper)
        points = np.vstack([best, points])
        found = violations(points)
    return float(found.max())


@lru_cache(maxsize=4096)
def _violation_found(network: bytes, property_: bytes) -> float:
    """The same search for the same files, which many changes to a statement leave as they are."""
    rng = np.random.default_rng(zlib.crc32(network + property_))
    return largest_violation(network, property_, rng)


class SearchOracle(Oracle):
    """Looks for a counterexample to what is called `unsat`; if it finds none, it has no opinion."""

    def is_true(self, instance: Instance, truth: Truth, *, margin: bool) -> bool | None:
        """False if a point shows that the label or margin is wrong; otherwise None."""
        if truth.label is Label.SAT:
            return None
        claimed = (truth.claims[Semantics.REAL].margin or Fraction(0)) if margin else Fraction(0)
        try:
            with np.errstate(all="ignore"):
                found = _violation_found(instance.network_file, instance.property_file)
                return False if found > -float(claimed) + TOLERANCE else None
        except (ValueError, IndexError, KeyError):
            return None  # a network that nobody can evaluate
