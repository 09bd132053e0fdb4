"""Linear layers measured by the Euclidean norm ‖·‖₂, and residual blocks that move no points apart.

A layer is x ↦ Wx + b with constant float32 weights: a Gemm, or a Conv with any stride and padding. A
convolution on an image padded by zeros is P·W∞·E: E writes the image onto an endless grid of zeros, W∞
convolves there, P keeps some of the results. E keeps norms and P does not raise them, so what is said of
the rows of W∞, which are all alike, bounds the norm of W.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import isqrt, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.float32 import TINY, dot_rounding
from dokimos.networks.semantics.outward import Floats, Interval, matrix_product, point, total, up

#: A sum of squares, a root and the like lose less than this fraction to rounding.
_SAFE = 1.0 + 2.0**-40


@dataclass(frozen=True, eq=False)
class LinearLayer:
    """One Gemm or Conv: its weights [outputs, inputs, *kernel], and what depends on its position."""

    weights: NDArray[Any]
    bias: NDArray[Any]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    positions: int

    @cached_property
    def row_sums(self) -> Floats:
        """For each output channel an upper bound on Σ_j |(W∞·W∞ᵀ)_ij|.

        Two outputs at distance δ read inputs that overlap; their product is the filters' correlation at
        strides·δ, which is summed over all channels and all δ. The products at −δ are those at δ,
        transposed.
        """
        found = np.zeros(len(self.weights))
        for steps, a, b in _overlaps(self.weights, self.strides):
            size = matrix_product(point(a), point(b.T)).magnitude
            for axis in (1, 0) if any(steps) else (1,):
                found = up(found + _sums(size, axis))
        return found

    @cached_property
    def norm(self) -> float:
        """An upper bound on ‖W‖₂.

        Theorem (Schur). ‖W∞‖² = ‖W∞W∞ᵀ‖ is at most the largest sum of absolute entries in a row of the
        symmetric W∞W∞ᵀ.
        """
        return sqrt(float(self.row_sums.max())) * _SAFE

    def rounding(self, size: float) -> float:
        """How far float32 may be from Wx + b, in ‖·‖₂, at any float32 x with ‖x‖₂ <= `size`; ∞ on overflow.

        Output i is off by at most γ·μ_i and some underflow, μ = |W||x| + |b|, see `dot_rounding`; and
        ‖μ‖₂ <= ‖ |W| ‖₂·‖x‖₂ + ‖b‖₂, which also bounds every partial sum. Only weights that are not 0 count
        as terms: products with 0 are exact, and so are sums with 0.
        """
        terms = int(np.count_nonzero(self.weights.reshape(len(self.weights), -1), axis=1).max()) + 1
        count = len(self.weights) * self.positions
        magnitude = (self.absolute_norm * size + self.bias_norm) * _SAFE
        return (dot_rounding(terms, magnitude) + 4 * terms * TINY * sqrt(count)) * _SAFE

    @cached_property
    def bias_norm(self) -> float:
        """An upper bound on ‖b‖₂, b having one number for each channel at each position."""
        squares = _sums(self.bias.astype(np.float64)[None] ** 2)
        return sqrt(float(squares.max())) * sqrt(self.positions) * _SAFE

    @cached_property
    def absolute_norm(self) -> float:
        """An upper bound on ‖ |W| ‖₂, so also on ‖W‖₂: √(largest row sum · largest column sum)."""
        sizes = abs(self.weights.astype(np.float64))
        over_columns = _sums(sizes.reshape(len(sizes), -1)).max()
        over_rows = _sums(np.moveaxis(sizes, 1, 0).reshape(sizes.shape[1], -1)).max()
        return sqrt(float(over_columns) * float(over_rows)) * _SAFE

    def half(self, part: slice, axis: int) -> LinearLayer:
        """The layer with only some of its outputs (axis 0) or inputs (axis 1)."""
        kept: tuple[slice, ...] = (part,) if axis == 0 else (slice(None), part)
        bias = self.bias[part] if axis == 0 else self.bias
        return LinearLayer(self.weights[kept], bias, self.strides, self.pads, self.positions)


def _sums(sizes: Floats, axis: int = 1) -> Floats:
    """Sums of nonnegative numbers, rounded up."""
    return total(Interval(sizes, sizes), (axis,), keepdims=False).upper


def linear_layer(network: Network, node: Node) -> LinearLayer | None:
    """The node as a layer; None if it is neither a Gemm nor a Conv of this form."""
    if node.op not in ("Conv", "Gemm") or any(n and n not in network.constants for n in node.inputs[1:]):
        return None
    weights = network.constants[node.inputs[1]]
    given = [network.constants[name] for name in node.inputs[2:] if name]
    if node.op == "Gemm":
        plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
        weights = weights if node.integer("transB") else weights.T
        strides: tuple[int, ...] = ()
        pads: tuple[int, ...] = ()
    else:
        strides, pads = node.integers("strides"), node.integers("pads")
        plain = node.integer("group") == 1 and set(node.integers("dilations")) == {1} and min(pads) >= 0
    bias = given[0].reshape(-1) if given else np.zeros(len(weights), dtype=np.float32)
    is_batch = network.shapes[node.inputs[0]][0] != 1
    if not plain or is_batch or bias.shape != (len(weights),) or weights.dtype != np.float32:
        return None
    positions = prod(network.shapes[node.output][2:]) if node.op == "Conv" else 1
    return LinearLayer(weights, bias, strides, pads, positions)


def _overlaps(
    weights: NDArray[Any], strides: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Floats, Floats]]:
    """For each distance, but not its negative: what two outputs at it read in common, by rows."""
    kernel = weights.shape[2:]
    reach = [range(-((k - 1) // s), (k - 1) // s + 1) for k, s in zip(kernel, strides, strict=True)]
    wide = weights.astype(np.float64)
    for steps in product(*reach):
        if steps < tuple(0 for _ in steps):
            continue
        shifts = [s * step for s, step in zip(strides, steps, strict=True)]
        one, other = (
            tuple(
                slice(max(0, sign * d), k + min(0, sign * d)) for d, k in zip(shifts, kernel, strict=True)
            )
            for sign in (1, -1)
        )
        everything = (slice(None), slice(None))
        yield (
            steps,
            wide[(*everything, *one)].reshape(len(wide), -1),
            wide[(*everything, *other)].reshape(len(wide), -1),
        )


def is_not_expanding(inner: LinearLayer, outer: LinearLayer) -> bool:
    """Whether x ↦ x + A·ReLU(Wx + b) + a moves no two points apart in ‖·‖₂; `inner` is W, `outer` is A.

    Theorem. Let A = −WᵀD with a diagonal D >= 0, and ‖D^½W‖₂² <= 2. Almost everywhere along a segment the
    map's slope is I − M with M = Wᵀ(DS)W, S diagonal with entries 0 and 1. M is symmetric, and 0 <= xᵀMx =
    ‖S^½D^½Wx‖² <= 2‖x‖². So the eigenvalues of I − M lie in [−1, 1], and the map, which is continuous and
    piecewise linear, moves no two points apart.

    ‖D^½W‖² is at most the largest d_i·Σ_j |(W∞W∞ᵀ)_ij| (Schur's test for D^½W∞W∞ᵀD^½ with the weights
    d_i^-½). The transpose of a convolution of stride 1 is the convolution with the filters turned round and
    the padding k − 1 − p. Products of float32 numbers are exact in float64, so that "A = −WᵀD" is checked
    exactly.
    """
    kernel = inner.weights.shape[2:]
    if any(s != 1 for s in (*inner.strides, *outer.strides)) or outer.weights.shape[2:] != kernel:
        return False
    if outer.weights.shape[:2] != inner.weights.shape[:2][::-1]:
        return False
    before = len(kernel)
    if any(
        p + q != k - 1 for p, q, k in zip(inner.pads[:before], outer.pads[:before], kernel, strict=True)
    ):
        return False
    turned = np.flip(np.swapaxes(outer.weights, 0, 1), axis=tuple(range(2, 2 + before)))
    rows = inner.weights.reshape(len(inner.weights), -1).astype(np.float64)
    back = -turned.reshape(len(turned), -1).astype(np.float64)
    largest = abs(rows).argmax(axis=1)[:, None]
    f, a = (np.take_along_axis(array, largest, axis=1) for array in (rows, back))
    if not np.array_equal(back * f, a * rows) or ((f == 0) & (back != 0)).any() or (a * f < 0).any():
        return False
    rates = up(np.divide(a, f, out=np.zeros_like(a), where=f != 0)[:, 0])
    return bool((up(rates * inner.row_sums) <= 2).all())


def is_cancelling(inner: LinearLayer, outer: LinearLayer) -> bool:
    """Whether V·ReLU(Ux + b) + a is affine, with norm ‖V₁‖·‖U₁‖ of the first halves at most.

    Theorem. If the second half of the rows and biases of U is the negative of the first, and the second
    half of V's columns that of its first, then it is V₁·(ReLU(z) − ReLU(−z)) + a = V₁·z + a, z = U₁x + b₁.
    """
    count, odd = divmod(len(inner.weights), 2)
    return (
        not odd
        and outer.weights.shape[1] == 2 * count
        and np.array_equal(inner.weights[:count], -inner.weights[count:])
        and np.array_equal(inner.bias[:count], -inner.bias[count:])
        and np.array_equal(outer.weights[:, :count], -outer.weights[:, count:])
    )


def root_above(value: Fraction) -> Fraction:
    """A number that is not below √value, off by less than 2^-60 of it or of 1."""
    if value < 0:
        raise InvalidProof("the square of a length is negative")
    scale = 1 << 64
    return Fraction(isqrt(value.numerator * scale * scale // value.denominator) + 1, scale)
