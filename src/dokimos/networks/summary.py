"""How large a network is, and which operators its file contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from dokimos.core.errors import DokimosError, UnreadableFile
from dokimos.networks.graph import Network, Shape
from dokimos.networks.reading.onnx_file import read_onnx

#: Operators that bend what goes through them, number by number (softmax: row by row).
ACTIVATIONS = frozenset(
    (
        *("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Exp", "Softmax", "Clip", "Sign", "Sin", "Cos"),
        *("Floor", "Round"),
    )
)


@dataclass(frozen=True)
class NetworkSummary:
    """The size of a network.

    `operators` counts the nodes of the file by operator, in the order of first appearance; `units` how many
    numbers go through each kind of activation. `problem` says why Dokimos cannot read the network: then at
    most `operators` is known.
    """

    operators: Mapping[str, int]
    input_shape: Shape = ()
    output_shape: Shape = ()
    parameters: int = 0
    multiplications: int = 0
    units: Mapping[str, int] | None = None
    problem: str = ""


def operators_of(content: bytes) -> Counter[str]:
    """How many nodes of each operator an ONNX file has, not counting its functions and subgraphs."""
    return Counter(node.op_type for node in _graph(content).node)


def operators_on_data(content: bytes) -> frozenset[str]:
    """The operators of an ONNX file that work on what depends on the network's input.

    Operators that only compute shapes are left out: readers fold them, so they do not affect who can read
    the network.
    """
    graph = _graph(content)
    known = {tensor.name for tensor in graph.initializer}
    depending = {tensor.name for tensor in graph.input} - known
    found = set()
    for node in graph.node:
        if node.op_type not in ("Shape", "Size") and depending.intersection(node.input):
            found.add(node.op_type)
            depending.update(node.output)
    return frozenset(found)


def _graph(content: bytes) -> Any:
    import onnx

    try:
        return onnx.load_model_from_string(content).graph
    except Exception as error:  # whatever the parser of onnx raises
        raise UnreadableFile("network", f"it is not an ONNX file ({type(error).__name__})") from None


def summarise(content: bytes, *, name: str) -> NetworkSummary:
    """The size of the network in a file; if it cannot be read, `problem` says why."""
    try:
        operators = operators_of(content)
    except UnreadableFile as error:
        return NetworkSummary({}, problem=f"{name}: {error.reason}")
    try:
        network = read_onnx(content, name=name)
    except DokimosError as error:
        return NetworkSummary(operators, problem=str(error))
    return NetworkSummary(
        operators,
        network.input_shape,
        network.output_shape,
        sum(array.size for array in network.constants.values()),
        network.multiplications,
        _units(network),
    )


def _units(network: Network) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in network.nodes:
        if node.op in ACTIVATIONS:
            counts[node.op] = counts.get(node.op, 0) + prod(network.shapes[node.output])
    return counts
