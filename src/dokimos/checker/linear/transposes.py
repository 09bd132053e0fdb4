"""Every affine operator backwards: from functionals of its output to functionals of what it reads.

The table serves the checker, in float64 and numpy, and searches, which bring their own `Arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Node, Shape
from dokimos.networks.semantics.outward import Floats
from dokimos.networks.semantics.propagation import REARRANGE, concat, pad, window_counts

Array = Any
"""Functionals, one in each row: of numpy in the checker."""
#: [n, *out] to [n, *in].
Transposed = Callable[[Array], Array]
Places = NDArray[np.int64]

#: What a factor that is not a number of the file (1/n, a quotient) is off by at most, relative to itself.
INEXACT = 2.0**-50


@dataclass(frozen=True)
class Windows:
    """Where a convolution reads: the sizes of its input space, and its attributes."""

    space: Shape
    kernel: Shape
    strides: Shape
    pads: Shape
    dilations: Shape


class Arrays(Protocol):
    """What transposes need of a library of arrays."""

    def constant(self, values: Floats) -> Array:
        """These numbers as an array of the library."""

    def permute(self, rows: Array, axes: Sequence[int]) -> Array:
        """The axes in another order."""

    def scatter(self, rows: Array, places: Places, size: int) -> Array:
        """[n, k] to [n, size]: column k is added at places[k]."""

    def spread(self, rows: Array, weights: Array, reads: Windows) -> Array:
        """[n, M, *out] to [n, C, *space]: the transpose of a convolution with weights [M, C, *kernel]."""


class NumpyArrays:
    """Numpy's float64."""

    def constant(self, values: Floats) -> Floats:
        """The array itself."""
        return values

    def zeros(self, shape: Sequence[int]) -> Floats:
        """Zeros, to which numbers are added."""
        return np.zeros(shape)

    def permute(self, rows: Floats, axes: Sequence[int]) -> Floats:
        """A view."""
        return rows.transpose(tuple(axes))

    def scatter(self, rows: Floats, places: Places, size: int) -> Floats:
        """One assignment if all places differ."""
        found = self.zeros((len(rows), size))
        if len(np.unique(places)) == len(places):
            found[:, places] = rows
        else:
            np.add.at(found.T, places, rows.T)
        return found

    def spread(self, rows: Floats, weights: Floats, reads: Windows) -> Floats:
        """A product with the weights gives every tap of every window; these are added at their places."""
        rank, (outputs, channels) = len(reads.kernel), weights.shape[:2]
        positions = rows.shape[2:]
        taps = np.matmul(weights.reshape(outputs, -1).T, rows.reshape(len(rows), outputs, -1))
        taps = taps.reshape(len(rows), channels, *reads.kernel, *positions)
        padded = [n + reads.pads[k] + reads.pads[k + rank] for k, n in enumerate(reads.space)]
        found = self.zeros((len(rows), channels, *padded))
        every = (slice(None), slice(None))
        for tap in np.ndindex(*reads.kernel):
            where = tuple(
                slice(t * d, t * d + s * (p - 1) + 1, s)
                for t, d, s, p in zip(tap, reads.dilations, reads.strides, positions, strict=True)
            )
            found[(*every, *where)] += taps[(*every, *tap)]
        inner = (slice(reads.pads[k], reads.pads[k] + n) for k, n in enumerate(reads.space))
        return found[(*every, *inner)]


@dataclass(frozen=True)
class Backwards:
    """The transposes of a node, one for each input that varies, in order.

    Each entry of a transposed row is a sum of at most `terms` products (0 if numbers are only moved, or
    change signs), and the factors used are within `inexact` of the node's, relative to them.
    """

    transposes: tuple[Transposed, ...]
    terms: int
    inexact: float = 0.0


@dataclass(frozen=True)
class AffineNode:
    """A node to be transposed: its constants, None for an input that varies, and shapes."""

    node: Node
    constants: Sequence[Floats | None]
    shapes: Sequence[Shape]
    out: Shape
    arrays: Arrays

    @property
    def varying(self) -> list[int]:
        """Which inputs vary."""
        return [k for k, constant in enumerate(self.constants) if constant is None]

    def only(self, index: int) -> Shape:
        """The shape of the one input that may vary. Raises UnsupportedOp if another does."""
        if self.varying != [index]:
            raise UnsupportedOp(self.node.op, "it is affine only if one certain input varies")
        return self.shapes[index]

    def number(self, index: int) -> Floats:
        """A constant input."""
        found = self.constants[index]
        assert found is not None
        return found


def _moves(asked: AffineNode) -> Backwards:
    """Numbers that are moved, repeated, left out or set beside a constant: by where each comes from.

    The operator is applied to the numbers 1, 2, …, which stand for the entries; 0 stands for a constant.
    """
    transposes, repeats = [], 0
    for index in asked.varying:
        counted = [
            (np.arange(1, prod(shape) + 1) if k == index else np.zeros(prod(shape), np.int64)).reshape(
                shape
            )
            for k, shape in enumerate(asked.shapes)
        ]
        origins = _origins(asked.node, counted).reshape(-1)
        transposes.append(_moved(asked, origins, asked.shapes[index]))
        repeats = max(repeats, int(np.bincount(origins)[1:].max(initial=0)))
    return Backwards(tuple(transposes), repeats if repeats > 1 else 0)


def _origins(node: Node, counted: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    if node.op == "Concat":
        return concat(node, counted)
    return pad(node, counted[0], 0) if node.op == "Pad" else REARRANGE[node.op](node, counted[0])


def _moved(asked: AffineNode, origins: Places, shape: Shape) -> Transposed:
    kept = np.flatnonzero(origins)
    places, whole = origins[kept] - 1, len(kept) == len(origins)
    if whole and len(places) == prod(shape) and (places == np.arange(len(places))).all():
        return lambda rows: rows.reshape(len(rows), *shape)

    def transposed(rows: Array) -> Array:
        flat = rows.reshape(len(rows), -1)
        taken = flat if whole else flat[:, kept]
        return asked.arrays.scatter(taken, places, prod(shape)).reshape(len(rows), *shape)

    return transposed


def _permuted(asked: AffineNode) -> Backwards:
    back = [0, *(1 + int(axis) for axis in np.argsort(asked.node.integers("perm")))]
    return Backwards((lambda rows: asked.arrays.permute(rows, back),), 0)


def _summed_to(asked: AffineNode, shape: Shape) -> Transposed:
    """The transpose of broadcasting `shape` to the output's."""
    if shape == asked.out:
        return lambda rows: rows
    padded = (1,) * (len(asked.out) - len(shape)) + tuple(shape)
    axes = tuple(k + 1 for k, (n, m) in enumerate(zip(padded, asked.out, strict=True)) if n != m)
    return lambda rows: (
        rows.sum(axes).reshape(len(rows), *shape) if axes else rows.reshape(len(rows), *shape)
    )


def _sum(sign: float) -> Callable[[AffineNode], Backwards]:
    def rule(asked: AffineNode) -> Backwards:
        transposes: list[Transposed] = []
        for index in asked.varying:
            summed = _summed_to(asked, asked.shapes[index])
            transposes.append(summed if index == 0 or sign > 0 else _negated(summed))
        same = all(asked.shapes[index] == asked.out for index in asked.varying)
        return Backwards(tuple(transposes), 0 if same else prod(asked.out))

    return rule


def _negated(transposed: Transposed) -> Transposed:
    return lambda rows: -transposed(rows)


def _scaled(asked: AffineNode, factors: Floats, index: int, inexact: float = 0.0) -> Backwards:
    """Every entry times a factor, both broadcast to the output."""
    summed, own = _summed_to(asked, asked.shapes[index]), asked.arrays.constant(factors)
    terms = 1 if asked.shapes[index] == asked.out else prod(asked.out) + 1
    return Backwards((lambda rows: summed(rows * own),), terms, inexact)


def _multiply(asked: AffineNode) -> Backwards:
    if len(asked.varying) != 1:
        raise UnsupportedOp(asked.node.op, "it is affine only if one factor is constant")
    (index,) = asked.varying
    return _scaled(asked, asked.number(1 - index), index)


def _close(asked: AffineNode, factors: Floats, whole: Floats | float) -> Floats:
    """Factors that took a few roundings, each of which loses little relative to its result.

    Raises UnsupportedOp where one is so small that this is not so, but for multiples of a `whole` of 0.
    """
    if ((np.abs(factors) < 2.0**-1000) & (np.asarray(whole) != 0)).any():
        raise UnsupportedOp(asked.node.op, "a factor that it multiplies by is too small for float64")
    return factors


def _divide(asked: AffineNode) -> Backwards:
    asked.only(0)
    return _scaled(asked, _close(asked, 1.0 / asked.number(1), 1.0), 0, INEXACT)


def _batch_normalization(asked: AffineNode) -> Backwards:
    """(x − mean)·scale/√(variance + ε) + bias: the factor takes four roundings."""
    rank, scale = len(asked.only(0)), asked.number(1)
    factors = _close(asked, scale / np.sqrt(asked.number(4) + asked.node.real("epsilon")), scale)
    return _scaled(asked, factors.reshape(-1, *(1,) * (rank - 2)), 0, INEXACT)


def _reduce(asked: AffineNode) -> Backwards:
    shape, axes = asked.only(0), asked.node.integers("axes")
    is_mean = asked.node.op == "ReduceMean"
    count = prod(shape[axis] for axis in axes) if is_mean else 1
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    share = asked.arrays.constant(np.full(shape, 1.0 / max(count, 1)))
    return Backwards((lambda rows: rows.reshape(len(rows), *kept) * share,), 1, INEXACT if is_mean else 0.0)


def _gemm(asked: AffineNode) -> Backwards:
    """alpha·A·B + beta·C, with any one of the three, or A and C, or B and C, varying."""
    node = asked.node
    if {0, 1} <= set(asked.varying):
        raise UnsupportedOp(node.op, "it is affine only if one factor is constant")
    alpha, beta = node.real("alpha"), node.real("beta")
    transposes: list[Transposed] = []
    terms = 0
    for index in asked.varying:
        if index == 2:
            transposes += _scaled(asked, np.array(beta), 2).transposes
            terms = max(terms, prod(asked.out) + 1)
            continue
        flipped = node.integer("transA" if index == 0 else "transB")
        other = asked.number(1 - index)
        other = other.T if node.integer("transB" if index == 0 else "transA") else other
        back = other.T if alpha == 1.0 else _close(asked, alpha * other.T, other.T if alpha else 0.0)
        back = asked.arrays.constant(np.ascontiguousarray(back))
        terms = max(terms, asked.out[1 - index] + 1)

        def transposed(
            rows: Array, *, index: int = index, back: Array = back, flip: int = flipped
        ) -> Array:
            found = _product(rows, back) if index == 0 else back @ rows
            return asked.arrays.permute(found, (0, 2, 1)) if flip else found

        transposes.append(transposed)
    return Backwards(tuple(transposes), terms, 0.0 if alpha == 1.0 else INEXACT)


def _product(rows: Array, back: Array) -> Array:
    """rows·back, with one matrix as one product instead of one for each row."""
    if back.ndim > 2:
        return rows @ back
    return (rows.reshape(-1, rows.shape[-1]) @ back).reshape(*rows.shape[:-1], back.shape[-1])


def _matmul(asked: AffineNode) -> Backwards:
    """As numpy.matmul: vectors are matrices of one row or column, leading axes are broadcast."""
    if len(asked.varying) != 1:
        raise UnsupportedOp(asked.node.op, "it is affine only if one factor is constant")
    (index,) = asked.varying
    shape, other = asked.shapes[index], asked.number(1 - index)
    if index == 0:
        other = other[:, None] if other.ndim == 1 else other
    else:
        other = other[None, :] if other.ndim == 1 else other
    full = (1, *shape) if len(shape) == 1 and index == 0 else shape
    full = (*shape, 1) if len(shape) == 1 and index == 1 else full
    back = asked.arrays.constant(np.ascontiguousarray(np.swapaxes(other, -1, -2)))
    batch = np.broadcast_shapes(full[:-2], other.shape[:-2])
    rows_out, columns_out = (full[-2], other.shape[-1]) if index == 0 else (other.shape[-2], full[-1])
    ahead = (1,) * (len(batch) - len(full[:-2])) + tuple(full[:-2])
    axes = tuple(k + 1 for k, (n, m) in enumerate(zip(ahead, batch, strict=True)) if n != m)
    repeated = prod(m for n, m in zip(ahead, batch, strict=True) if n != m)

    def transposed(rows: Array) -> Array:
        given = rows.reshape(len(rows), *batch, rows_out, columns_out)
        found = _product(given, back) if index == 0 else back @ given
        return (found.sum(axes) if axes else found).reshape(len(rows), *shape)

    return Backwards((transposed,), repeated * (columns_out if index == 0 else rows_out))


def _windows(asked: AffineNode, kernel: Shape) -> Windows:
    pads, strides, dilations = (asked.node.integers(name) for name in ("pads", "strides", "dilations"))
    return Windows(tuple(asked.shapes[0][2:]), tuple(kernel), strides, pads, dilations)


def _conv(asked: AffineNode) -> Backwards:
    """Batches are rows; groups go one by one."""
    shape = asked.only(0)
    weights, group = asked.number(1), asked.node.integer("group")
    own, reads = asked.arrays.constant(weights), _windows(asked, weights.shape[2:])
    outputs = len(weights) // group

    def transposed(rows: Array) -> Array:
        flat = rows.reshape(len(rows) * shape[0], *asked.out[1:])
        parts = [
            asked.arrays.spread(
                flat[:, g * outputs : (g + 1) * outputs], own[g * outputs : (g + 1) * outputs], reads
            )
            for g in range(group)
        ]
        if group == 1:
            return parts[0].reshape(len(rows), *shape)
        places = np.arange(prod(shape[1:])).reshape(group, -1)
        joined = sum(
            asked.arrays.scatter(part.reshape(len(flat), -1), places[g], prod(shape[1:]))
            for g, part in enumerate(parts)
        )
        return joined.reshape(len(rows), *shape)

    return Backwards((transposed,), outputs * prod(weights.shape[2:]) + group * (group > 1))


def _average_pool(asked: AffineNode) -> Backwards:
    """A convolution of each channel by itself with ones, each position divided by its count."""
    shape, kernel = asked.only(0), asked.node.integers("kernel")
    counts = asked.arrays.constant(1.0 / window_counts(asked.node, shape[2:]))
    ones, reads = asked.arrays.constant(np.ones((1, 1, *kernel))), _windows(asked, kernel)

    def transposed(rows: Array) -> Array:
        shares = (rows * counts).reshape(len(rows) * shape[0] * shape[1], 1, *asked.out[2:])
        return asked.arrays.spread(shares, ones, reads).reshape(len(rows), *shape)

    return Backwards((transposed,), prod(kernel) + 1, INEXACT)


#: Every affine operator.
TRANSPOSES: Mapping[str, Callable[[AffineNode], Backwards]] = MappingProxyType(
    {
        **dict.fromkeys(("Concat", "Expand", "Gather", "Pad", "Reshape", "Slice"), _moves),
        "Add": _sum(1.0),
        "AveragePool": _average_pool,
        "BatchNormalization": _batch_normalization,
        "Conv": _conv,
        "Div": _divide,
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Mul": _multiply,
        "Neg": lambda asked: Backwards((lambda rows: -rows,), 0),
        "ReduceMean": _reduce,
        "ReduceSum": _reduce,
        "Sub": _sum(-1.0),
        "Transpose": _permuted,
    }
)
