"""One walk over the graph for every semantics: `{op: function}` decides what the values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from numpy.typing import NDArray

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Network, Node

V = TypeVar("V")
#: What an operator does in one semantics; an optional input that is left out is None.
Rule = Callable[[Node, Sequence[V | None]], V]


def given(arguments: Sequence[V | None]) -> list[V]:
    """The inputs of an operator that are not left out."""
    return [argument for argument in arguments if argument is not None]


def propagate(
    network: Network,
    value: V,
    *,
    lift: Callable[[NDArray[Any]], V],
    table: Mapping[str, Rule[V]],
    semantics: str,
    known: Mapping[str, V] = MappingProxyType({}),
) -> dict[str, V]:
    """The value of every tensor, from `value` at the input, `lift` of each constant, and the values in
    `known`.

    Raises UnsupportedOp, naming the operator, where `table` does not know it.
    """
    values: dict[str, V] = {name: lift(array) for name, array in network.constants.items()}
    values[network.input] = value
    values.update(known)
    for node in network.nodes:
        rule = table.get(node.op)
        if rule is None:
            raise UnsupportedOp(node.op, f"the {semantics} semantics has no rule for it")
        arguments = [values[name] if name else None for name in node.inputs]
        values[node.output] = rule(node, arguments)
    return values
