"""One walk over the graph for every semantics: `{op: function}` decides what the values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
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
    """The value of every tensor, from `value` at the input, the values in `known`, and `lift` of each other
    constant.

    Raises UnsupportedOp, naming the operator, where `table` does not know it.
    """
    values: dict[str, V] = {
        name: lift(array) for name, array in network.constants.items() if name not in known
    }
    values[network.input] = value
    values.update(known)
    for node in network.nodes:
        rule = table.get(node.op)
        if rule is None:
            raise UnsupportedOp(node.op, f"the {semantics} semantics has no rule for it")
        arguments = [values[name] if name else None for name in node.inputs]
        values[node.output] = rule(node, arguments)
    return values


# Operators that move numbers without changing them: one implementation for every semantics


Array = NDArray[Any]


def _reshape(node: Node, x: Array) -> Array:
    return x.reshape(node.integers("shape"))


def _transpose(node: Node, x: Array) -> Array:
    return x.transpose(node.integers("perm"))


# What numpy takes from an array of objects is no array where it is a single one: hence np.asarray


def _slice(node: Node, x: Array) -> Array:
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(
        *(node.integers(name) for name in ("starts", "ends", "axes", "steps")), strict=True
    ):
        size = x.shape[axis]
        # A negative end that reaches before the first element means "to the very start" in ONNX.
        stop = None if step < 0 and end < -size else end
        index[axis] = slice(start, stop, step)
    return np.asarray(x[tuple(index)], dtype=x.dtype)


def _gather(node: Node, x: Array) -> Array:
    indices = np.array(node.integers("indices"), dtype=np.int64).reshape(node.integers("indices_shape"))
    return np.asarray(np.take(x, indices, axis=node.integer("axis")), dtype=x.dtype)


def _expand(node: Node, x: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, node.integers("shape")))


#: Operators of one tensor.
REARRANGE: Mapping[str, Callable[[Node, Array], Array]] = MappingProxyType(
    {
        "Expand": _expand,
        "Gather": _gather,
        "Reshape": _reshape,
        "Slice": _slice,
        "Transpose": _transpose,
    }
)


def concat(node: Node, parts: Sequence[Array]) -> Array:
    """`Concat` of arrays of one representation."""
    return np.concatenate(list(parts), axis=node.integer("axis"))


def pad(node: Node, x: Array, fill: Any) -> Array:
    """`Pad` in constant mode, `fill` being the attribute `value` in the semantics' representation.

    Negative pads crop, as in ONNX.
    """
    if x.ndim == 0:
        return x
    pads = node.integers("pads")
    begins, ends = pads[: x.ndim], pads[x.ndim :]
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(begins, ends, strict=True)]
    padded = np.pad(x, widths, constant_values=_filler(x, fill)) if widths else x
    crop = tuple(
        slice(max(-a, 0), padded.shape[axis] - max(-b, 0))
        for axis, (a, b) in enumerate(zip(begins, ends, strict=True))
    )
    return np.asarray(padded[crop], dtype=x.dtype)


def _filler(x: Array, fill: Any) -> Array:
    """`fill` in the dtype of `x`: np.pad would put a numpy integer among Python's, which overflows."""
    filler = np.empty((), dtype=x.dtype)
    filler[()] = fill
    return filler


def windows(node: Node, x: Array, kernel: Sequence[int], fill: Any) -> Array:
    """The windows that a convolution or pooling `node` with this `kernel` reads.

    `x` is [N, C, *space]; the result is [N, C, *positions, *kernel] (a view), padding filled with `fill`.
    Reads the node's strides, pads and dilations.
    """
    rank = len(kernel)
    pads = node.integers("pads")
    widths = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x, widths, constant_values=_filler(x, fill)) if any(pads) else x
    dilations = node.integers("dilations")
    spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    axes = tuple(range(2, 2 + rank))
    view = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=axes)
    positions = tuple(slice(None, None, s) for s in node.integers("strides"))
    taps = tuple(slice(None, None, d) for d in dilations)
    return view[(slice(None), slice(None), *positions, *taps)]


def window_rows(node: Node, x: Array, kernel: Sequence[int], fill: Any) -> Array:
    """[positions, channels·taps] for a batch of one: `windows` in the order of the filters' weights."""
    rank = len(kernel)
    rows: Array = np.moveaxis(windows(node, x, kernel, fill)[0], 0, rank)
    return rows.reshape(int(np.prod(rows.shape[:rank])), -1)


# Convolution and pooling as products of matrices and folds over windows, for any kind of number


def convolve(
    node: Node, x: Array, weights: Array, *, zero: Any, product: Callable[[Array, Array], Array]
) -> Array:
    """`Conv` without its bias: one matrix `product` per group, of windows by weights."""
    rank = weights.ndim - 2
    view = windows(node, x, weights.shape[2:], zero)
    # [N, C, *positions, *kernel] to [N, *positions, C, *kernel]: a window is then one row.
    rows_first = np.moveaxis(view, 1, 1 + rank)
    positions = rows_first.shape[: 1 + rank]
    group = node.integer("group")
    outputs, channels = weights.shape[0] // group, weights.shape[1]
    parts = []
    for g in range(group):
        taken = rows_first[(slice(None),) * (1 + rank) + (slice(g * channels, (g + 1) * channels),)]
        rows = taken.reshape(prod(positions), -1)
        columns = weights[g * outputs : (g + 1) * outputs].reshape(outputs, -1).T
        parts.append(product(rows, columns))
    joined = np.concatenate(parts, axis=1).reshape(*positions, group * outputs)
    return np.moveaxis(joined, -1, 1)


def per_channel(values: Array, rank: int) -> Array:
    """A vector over the channels, shaped to broadcast with a tensor [N, C, ...] of this rank."""
    return values.reshape(-1, *(1,) * (rank - 2))


def window_counts(node: Node, space: Sequence[int]) -> Array:
    """How many numbers `AveragePool` divides by, at each position: integers of shape [*positions]."""
    kernel = node.integers("kernel")
    ones = np.ones((1, 1, *space), dtype=np.int64)
    view = windows(node, ones, kernel, 1 if node.integer("count_include_pad") else 0)
    return np.asarray(flat_windows(view, len(kernel)).sum(axis=-1)[0, 0])


def flat_windows(view: Array, rank: int) -> Array:
    """Windows [N, C, *positions, *kernel] with the kernel as one last axis."""
    return view.reshape(*view.shape[: view.ndim - rank], -1)
