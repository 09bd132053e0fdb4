"""Convolution and pooling as products of matrices and folds over windows, for any kind of number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.graph import Node
from dokimos.networks.semantics.structural import windows

Array = NDArray[Any]


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
