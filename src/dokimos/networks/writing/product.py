"""Several networks as one file: side by side on one input, whose numbers they may share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import compose, helper, numpy_helper

from dokimos.core.errors import InputError
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import IR_VERSION

INPUT, OUTPUT = "X", "Y"


@dataclass(frozen=True)
class Part:
    """A network of the product: the content of its file, and which numbers of the input it reads."""

    content: bytes
    name: str
    reads: tuple[int, ...]


def write_product(
    parts: Sequence[Part],
    *,
    size: int,
    passed: Sequence[int] = (),
    products: Sequence[tuple[int, ...]] = (),
) -> bytes:
    """The file of one network F on `size` numbers z, of shapes [1, size] and [1, outputs].

    **Theorem.** Over the reals, F(z) = (f_1(z[reads_1]), ..., f_k(z[reads_k]), z[passed], p_1, ..., p_m),
    one after the other, row-major, where f_i is the network of part i, and p_l is the product of the
    variables in `products[l]`: i >= 0 is z_i, and ~j is number j of the outputs of f_1, ..., f_k.

    For the nodes of every part are copied as they are, under names of their own; and what is added are
    Reshape and Concat, which change no number, Mul, and Gemm with matrices that select (one 1 in each row,
    or a row of zeros with the offset 1): 0·x = 0, 1·x = x and 0 + 1 = 1 are exact, in floats too.

    Raises InputError if the files have different opsets or types of numbers, so that no one file can
    hold them; UnreadableFile or UnsupportedOp if one cannot be read.
    """
    networks = [read_onnx(part.content, name=part.name) for part in parts]
    models = [onnx.load_from_string(part.content) for part in parts]
    _require_alike(models, networks, parts)
    graph = _Graph(size, _element_type(models[0], networks[0]))
    outputs = []
    for k, (part, network, model) in enumerate(zip(parts, networks, models, strict=True)):
        given = graph.reshape(graph.select(INPUT, size, part.reads), network.input_shape)
        outputs.append(
            graph.reshape(graph.embed(model, network, given, f"n{k}_"), (1, network.output_size))
        )
    total = sum(network.output_size for network in networks)
    found = list(outputs)
    if passed:
        found.append(graph.select(INPUT, size, passed))
    if products:
        every = graph.concat([INPUT, *outputs])
        found.append(graph.multiply(every, size, total, products))
    return graph.build(graph.concat(found), total + len(passed) + len(products), _opset(models[0]))


class _Graph:
    """The nodes of the product so far."""

    def __init__(self, size: int, element_type: int) -> None:
        self._size, self._type = size, element_type
        self._dtype = helper.tensor_dtype_to_np_dtype(element_type)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def _node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def _constant(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def select(self, source: str, width: int, chosen: Sequence[int | None]) -> str:
        """The chosen numbers of a tensor [1, width]; None is the number 1."""
        if list(chosen) == list(range(width)):
            return source
        weight = np.zeros((len(chosen), width), dtype=self._dtype)
        offset = np.zeros(len(chosen), dtype=self._dtype)
        for row, index in enumerate(chosen):
            if index is None:
                offset[row] = 1
            else:
                weight[row, index] = 1
        return self._node("Gemm", [source, self._constant(weight), self._constant(offset)], transB=1)

    def reshape(self, source: str, shape: Sequence[int]) -> str:
        return self._node("Reshape", [source, self._constant(np.array(shape, dtype=np.int64))])

    def concat(self, sources: Sequence[str]) -> str:
        return sources[0] if len(sources) == 1 else self._node("Concat", sources, axis=1)

    def multiply(self, every: str, size: int, total: int, products: Sequence[tuple[int, ...]]) -> str:
        """All products, factor by factor; products of fewer factors are filled up with 1."""
        places = [[v if v >= 0 else size + ~v for v in product] for product in products]
        result = ""
        for k in range(max(map(len, places))):
            factor = self.select(every, size + total, [p[k] if k < len(p) else None for p in places])
            result = self._node("Mul", [result, factor]) if result else factor
        return result

    def embed(self, model: onnx.ModelProto, network: Network, given: str, prefix: str) -> str:
        """Copy the nodes and constants of a network that reads `given`; the name of its output."""
        graph = compose.add_prefix_graph(model.graph, prefix)
        self._nodes.append(helper.make_node("Identity", [given], [f"{prefix}{network.input}"]))
        self._nodes.extend(graph.node)
        self._constants.extend(graph.initializer)
        return str(graph.output[0].name)

    def build(self, output: str, width: int, opset: int) -> bytes:
        self._nodes.append(helper.make_node("Identity", [output], [OUTPUT]))
        graph = helper.make_graph(
            self._nodes,
            "dokimos",
            [helper.make_tensor_value_info(INPUT, self._type, [1, self._size])],
            [helper.make_tensor_value_info(OUTPUT, self._type, [1, width])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="dokimos"
        )
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))


def _opset(model: onnx.ModelProto) -> int:
    return next(int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def _element_type(model: onnx.ModelProto, network: Network) -> int:
    (given,) = (value for value in model.graph.input if value.name == network.input)
    return int(given.type.tensor_type.elem_type)


def _require_alike(
    models: Sequence[onnx.ModelProto], networks: Sequence[Network], parts: Sequence[Part]
) -> None:
    for model, network, part in zip(models, networks, parts, strict=True):
        if _opset(model) != _opset(models[0]):
            raise InputError(
                f"{parts[0].name} has opset {_opset(models[0])} and {part.name} opset {_opset(model)}, "
                "and one file cannot have both; convert one of them with onnx.version_converter."
            )
        if _element_type(model, network) != _element_type(models[0], networks[0]):
            raise InputError(f"{parts[0].name} and {part.name} have numbers of different types.")
