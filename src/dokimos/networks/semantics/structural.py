"""Operators that move numbers without changing them: one implementation for every semantics.

A semantics represents a tensor by one or more arrays of the same shape (numerators; lower and upper
ends; ...). These functions act on one such array each, of any dtype, objects included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.graph import Node

Array = NDArray[Any]


def _reshape(node: Node, x: Array) -> Array:
    return x.reshape(node.integers("shape"))


def _transpose(node: Node, x: Array) -> Array:
    return x.transpose(node.integers("perm"))


def _slice(node: Node, x: Array) -> Array:
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(
        *(node.integers(name) for name in ("starts", "ends", "axes", "steps")), strict=True
    ):
        size = x.shape[axis]
        # A negative end that reaches before the first element means "to the very start" in ONNX.
        stop = None if step < 0 and end < -size else end
        index[axis] = slice(start, stop, step)
    return x[tuple(index)]


def _gather(node: Node, x: Array) -> Array:
    indices = np.array(node.integers("indices"), dtype=np.int64)
    return np.take(x, indices.reshape(node.integers("indices_shape")), axis=node.integer("axis"))


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
    pads = node.integers("pads")
    begins, ends = pads[: x.ndim], pads[x.ndim :]
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(begins, ends, strict=True)]
    padded = np.pad(x, widths, constant_values=_filler(x, fill))
    crop = tuple(
        slice(max(-a, 0), padded.shape[axis] - max(-b, 0))
        for axis, (a, b) in enumerate(zip(begins, ends, strict=True))
    )
    return padded[crop]


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
