"""Finds the first node of a file at which a runtime and the exact values differ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.inputs import uncompressed
from dokimos.engine.runtimes.sessions import CannotRun, intermediate_values
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Rounded
from dokimos.networks.semantics.rounding import own_format, rounding_bounds
from dokimos.suites.instance import DEFAULT_ULPS
from dokimos.suites.vnnlib.model import Point


@dataclass(frozen=True)
class NodeDifference:
    """A node whose output, computed by a runtime, is further from the exact value than rounding explains.

    `node` is its name in the file, empty if it has none; `position` counts the nodes of the file from 0.
    The number is the first such one in `tensor`, at `index`. `exact` is the exact value up to the last bits
    of float64, and `rounding` bounds the effect of all roundings up to this node at that point.
    """

    op: str
    node: str
    position: int
    tensor: str
    index: tuple[int, ...]
    exact: float
    computed: float
    rounding: float


@dataclass(frozen=True)
class NodeComparison:
    """A network compared node by node at one point.

    Of the `nodes` that the output depends on, `compared` could be compared: the others only rename a
    tensor, are constants, or may overflow at this point. If nothing was compared, `remark` says why.
    """

    runtime: str = ""
    compared: int = 0
    nodes: int = 0
    first: NodeDifference | None = None
    remark: str = ""


def compare_nodes(content: bytes, network: Network, point: Point) -> NodeComparison:
    """Compare onnxruntime with the exact value at each node, at a point of the network's float type.

    `content` is the file that `network` was read from. Each node is run as it is in the file; if
    onnxruntime cannot, ONNX's reference evaluator does. A node differs if a computed number is outside the
    outward-rounded exact value by more than the rounding bound at that point.
    """
    model = onnx.ModelProto()
    model.ParseFromString(uncompressed(content, file="the network"))
    nodes = list(model.graph.node)
    try:
        expected = rounding_bounds(network, point, point, ulps=DEFAULT_ULPS, form=own_format(network))
        names = [name for node in nodes for name in node.output if name in expected]
        runtime, found = intermediate_values(model, network, names, point)
    except (CannotRun, InputError, UnreadableFile) as error:
        return NodeComparison(nodes=len(nodes), remark=str(error))
    compared = 0
    for position, node in enumerate(nodes):
        values = [(name, expected[name], found[name]) for name in node.output if name in found]
        compared += any(np.isfinite(wanted.error).any() for _, wanted, _ in values)
        for name, wanted, computed in values:
            if (where := _first_beyond(wanted, computed)) is not None:
                first = _difference(node, position, name, where, wanted, computed)
                return NodeComparison(runtime, compared, len(nodes), first)
    return NodeComparison(runtime, compared, len(nodes))


def _first_beyond(wanted: Rounded, computed: NDArray[Any]) -> int | None:
    """The flat index of the first number that rounding does not explain; None if it explains all.

    If float64 leaves it open, the comparison is in exact arithmetic, so that the last bit causes no false
    alarm.
    """
    if computed.size != wanted.lower.size:
        return 0
    lower, upper, error, values = (
        np.asarray(array, dtype=np.float64).reshape(-1)
        for array in (wanted.lower, wanted.upper, wanted.error, computed)
    )
    with np.errstate(all="ignore"):
        known = np.isfinite(lower) & np.isfinite(upper) & np.isfinite(error)
        suspects = np.flatnonzero(known & ~((lower - error <= values) & (values <= upper + error)))
    for k in suspects:
        if not np.isfinite(values[k]):
            return int(k)
        low, high, slack, value = (Fraction(float(array[k])) for array in (lower, upper, error, values))
        if not low - slack <= value <= high + slack:
            return int(k)
    return None


def _difference(
    node: onnx.NodeProto, position: int, name: str, flat: int, wanted: Rounded, computed: NDArray[Any]
) -> NodeDifference:
    lower, upper = (float(end.reshape(-1)[flat]) for end in (wanted.lower, wanted.upper))
    return NodeDifference(
        op=node.op_type,
        node=node.name,
        position=position,
        tensor=name,
        index=tuple(int(k) for k in np.unravel_index(flat, wanted.lower.shape)),
        exact=lower + (upper - lower) / 2,
        computed=float(computed.reshape(-1)[flat]),
        rounding=float(np.asarray(wanted.error).reshape(-1)[flat]),
    )
