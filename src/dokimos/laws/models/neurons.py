"""Which neurons of a network a record activates: the signs before each ReLU, for coverage-guided tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from dokimos.core.errors import InputError
from dokimos.core.gzipped import uncompressed
from dokimos.networks.semantics.replay import Replayer

#: Gives a row of truth values for each row of numbers that the network sees: which neurons are active.
NeuronFunction = Callable[[NDArray[np.float32]], NDArray[np.bool_]]


def neuron_function(content: bytes, *, name: str) -> NeuronFunction | None:
    """The neurons of the network in the content of an ONNX file; None if it has no ReLU.

    It runs the same network with one more output for each ReLU, all of them joined into one.
    """
    model = onnx.ModelProto()
    model.ParseFromString(uncompressed(content, file=name))
    graph = model.graph
    found = [node.output[0] for node in graph.node if node.op_type == "Relu"]
    if not found or len(graph.output) != 1:
        return None
    flat = [f"dokimos_neurons_{place}" for place in range(len(found))]
    for source, made in zip(found, flat, strict=True):
        graph.node.append(helper.make_node("Flatten", [source], [made], axis=1))
    graph.node.append(helper.make_node("Concat", flat, ["dokimos_neurons"], axis=1))
    del graph.output[:]
    kind = graph.input[0].type.tensor_type.elem_type or TensorProto.FLOAT
    graph.output.append(helper.make_tensor_value_info("dokimos_neurons", kind, [None, None]))
    try:
        network = Replayer(model.SerializeToString(), name=name)
    except InputError:
        return None

    def active(rows: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(network(np.ascontiguousarray(rows, dtype=np.float32)) > 0)

    return active
