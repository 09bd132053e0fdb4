"""Puts a parity lock beside a network: dense layers side by side, or as a branch of any ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dokimos.constructions.parts.parity_lock import Matrix, ParityLock
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.chain import Chain, Layer
from dokimos.networks.writing.builder import as_float32

Dense = tuple[Matrix, Matrix]
#: Files of older versions list constants as inputs, too.
_CONSTANTS_NEED_NO_INPUT = 4


@dataclass(frozen=True)
class LockedChain:
    """The network with the lock, and how many ReLUs of the base come before the lock's in each layer."""

    chain: Chain
    before: tuple[int, ...]


def lock_chain(base: Chain, lock: ParityLock, effect: Sequence[Fraction]) -> LockedChain:
    """The base with `effect`[i] times the gate added to output i.

    The layers lie side by side; the one that ends earlier is carried on by rectified copies, which change
    nothing, since rectified values are not negative. Raises ConstructionFailed if a hidden layer of the
    base is not rectified.
    """
    hidden = [(_wide(layer.weight), _wide(layer.bias)) for layer in base.layers[:-1]]
    if not hidden or any(not layer.rectified for layer in base.layers[:-1]) or base.layers[-1].rectified:
        raise ConstructionFailed(
            "A lock needs dense layers with a ReLU after each but the last; this network has others."
        )
    depth = max(len(hidden), len(lock.layers))
    left, right = _lengthened(hidden, depth), _lengthened(lock.layers, depth)
    layers = [_layer(np.vstack([left[0][0], right[0][0]]), left[0][1], right[0][1])]
    layers += [
        _layer(_block_diagonal(a[0], b[0]), a[1], b[1]) for a, b in zip(left[1:], right[1:], strict=True)
    ]
    last = base.layers[-1]
    column = as_float32(list(effect))[:, None]
    layers.append(Layer(np.hstack([last.weight, column]), last.bias, False))
    return LockedChain(Chain(base.input_shape, tuple(layers)), tuple(len(bias) for _, bias in left))


def lock_branch(network: bytes, lock: ParityLock, effect: Sequence[Fraction]) -> bytes:
    """Any network with `effect`[i] times the gate added to output i: the lock is a separate branch.

    The nodes of the network stay as they are, so that whatever is proven of it is true of what the sum is
    made of. Raises ConstructionFailed if its output is not of shape [1, outputs].
    """
    model = onnx.load_from_string(network)
    graph = model.graph
    names = {i.name for i in graph.initializer}
    (given,) = (i for i in graph.input if i.name not in names)
    (output,) = graph.output
    if len(output.type.tensor_type.shape.dim) != 2:
        raise ConstructionFailed(
            "A lock needs an output of shape [1, outputs]; this network's output has another shape."
        )
    prefix = "lock"
    used = {name for node in graph.node for name in (*node.input, *node.output)} | names
    while any(name.startswith(prefix) for name in used):
        prefix += "_"
    nodes: list[onnx.NodeProto] = []

    def constant(values: object, name: str) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(values), f"{prefix}_{name}"))
        return f"{prefix}_{name}"

    def node(op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"{prefix}_{name}"], **attributes))
        return f"{prefix}_{name}"

    rank = len(given.type.tensor_type.shape.dim)
    last = given.name
    if rank == 1:
        last = node("Reshape", [last, constant(np.array([1, -1]), "shape")], "flat")
    elif rank > 2:
        last = node("Flatten", [last], "flat", axis=1)
    for k, (weight, bias) in enumerate(lock.layers):
        row = [last, constant(as_float32(weight), f"w{k}"), constant(as_float32(bias), f"b{k}")]
        last = node("Relu", [node("Gemm", row, f"z{k}", transB=1)], f"v{k}")
    column = constant(as_float32(list(effect))[:, None], "effect")
    # Gemm could not do without a bias before version 11.
    version = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
    zero = [] if version >= 11 else [constant(np.zeros(len(effect), dtype=np.float32), "zero")]
    added = node("Gemm", [last, column, *zero], "added", transB=1)
    base = f"{prefix}_base"
    for one in graph.node:
        for side in (one.input, one.output):
            side[:] = [base if name == output.name else name for name in side]
    kept = list(graph.node)
    del graph.node[:]
    graph.node.extend([*kept, *nodes, helper.make_node("Add", [base, added], [output.name])])
    if model.ir_version < _CONSTANTS_NEED_NO_INPUT:
        graph.input.extend(
            helper.make_tensor_value_info(one.name, one.data_type, one.dims)
            for one in graph.initializer
            if one.name not in names
        )
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        reason = str(error).splitlines()[0]
        raise ConstructionFailed(f"A lock cannot be added to this ONNX file: {reason}") from None
    return bytes(model.SerializeToString(deterministic=True))


def _wide(values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Matrix:
    return values.astype(np.float64)


def _lengthened(layers: Sequence[Dense], depth: int) -> list[Dense]:
    size = len(layers[-1][1])
    copy = np.eye(size), np.zeros(size)
    return [*layers, *[copy] * (depth - len(layers))]


def _layer(weight: Matrix, *biases: Matrix) -> Layer:
    return Layer(as_float32(weight), as_float32(np.concatenate(biases)), True)


def _block_diagonal(a: Matrix, b: Matrix) -> Matrix:
    return np.block([[a, np.zeros((a.shape[0], b.shape[1]))], [np.zeros((b.shape[0], a.shape[1])), b]])
