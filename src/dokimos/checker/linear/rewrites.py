"""Nonlinear operators of several numbers as simpler ones: affine operators, units, and products.

The parts compute the same real function as the node, exactly; each rule says by which identity. What they
compute in float32 is another matter: the rounding of a node is that of the node as written. None of the
parts has parts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.linear.lines import DIFFERENCE
from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Attribute, Node, Shape, output_shape
from dokimos.networks.semantics import propagation

#: A product or softmax whose terms are more numbers than this is refused.
MOST_TERMS = 100_000
#: Softmax over more numbers is refused: it has a term for every pair of them.
MOST_IN_SOFTMAX = 64


@dataclass(frozen=True)
class Parts:
    """What a node is made of: nodes in order, the last of which writes the node's output.

    `constants` are new, of float64; `shapes` has the shape of every new tensor and constant.
    """

    nodes: tuple[Node, ...]
    constants: Mapping[str, NDArray[Any]]
    shapes: Mapping[str, Shape]


def rewrite(node: Node, shapes: Mapping[str, Shape], constants: Collection[str]) -> Parts | None:
    """The node as simpler ones; None if it is affine, a unit, or a product of tensors of one shape.

    `shapes` has the shape of every tensor so far and of the whole network, `constants` the names of all
    constants. New names are those of no other tensor. Raises UnsupportedOp for a form that has no parts.
    """
    rule = REWRITES.get(node.op)
    if rule is None:
        return None
    parts = _Parts(node, shapes, constants)
    rule(node, parts)
    return parts.finished()


def in_pairs(
    node: Node, shapes: Mapping[str, Shape], constants: Collection[str], bases: NDArray[np.int64]
) -> Parts:
    """ReLUs of which some are written as differences from others.

    `bases[q]` is the entry p that entry q is paired with, −1 for one that stands by itself. With b_q = e_p,
    or 0, and d = e − b, the parts are w = max(0, e) − max(0, b), of the operator DIFFERENCE, and v = w + c,
    with c_q = w_p, or 0. Where no p has a base of its own, w_p = max(0, e_p), so that v = max(0, e). All
    tensors between are flat.
    """
    parts = _Parts(node, shapes, constants)
    size = (len(bases),)
    index = tuple(np.where(bases < 0, len(bases), bases).tolist())

    def partners(name: str) -> str:
        padded = parts.add("Pad", name, pads=(0, 1), value=0.0)
        return parts.add("Gather", padded, indices=index, indices_shape=size, axis=0)

    e = parts.shaped(node.inputs[0], size)
    b = partners(e)
    w = parts.add(DIFFERENCE, parts.add("Sub", e, b), e, b)
    parts.add("Reshape", parts.add("Add", w, partners(w)), shape=parts.shape)
    found = parts.finished()
    assert found is not None
    return found


class _Parts:
    """Nodes in the making. Varying tensors that are combined have one shape: smaller ones are expanded."""

    def __init__(self, node: Node, shapes: Mapping[str, Shape], constants: Collection[str]) -> None:
        self._node, self._constants, self._taken = node, constants, shapes
        given = [shapes[name] if name else () for name in node.inputs]
        self._known = {name: shape for name, shape in zip(node.inputs, given, strict=True) if name}
        self.shape = output_shape(node, given)
        self._nodes: list[Node] = []
        self._values: dict[str, NDArray[Any]] = {}
        self._fixed: set[str] = set()
        self._new: dict[str, Shape] = {}

    def shape_of(self, name: str) -> Shape:
        return self._new[name] if name in self._new else self._known[name]

    def varies(self, name: str) -> bool:
        return name not in self._constants and name not in self._fixed

    def _fresh(self, stem: str) -> str:
        """A new name. A file may give any name to its own tensors, this one too: then another."""
        name = f"{self._node.output}/{stem}"
        while name in self._taken:
            name += "'"
        return name

    def constant(self, value: float) -> str:
        name = self._fresh(f"constant{len(self._values)}")
        self._values[name], self._new[name] = np.array(value, dtype=np.float64), ()
        self._fixed.add(name)
        return name

    def add(self, op: str, *inputs: str, **attributes: Attribute) -> str:
        name = self._fresh(f"{op}{len(self._nodes)}")
        node = Node(op, inputs, name, attributes)
        self._nodes.append(node)
        if not any(map(self.varies, inputs)):
            self._fixed.add(name)
        shapes = [self.shape_of(each) for each in inputs]
        self._new[name] = shapes[0] if op == DIFFERENCE else output_shape(node, shapes)
        return name

    def shaped(self, name: str, shape: Shape) -> str:
        """The same numbers in another shape."""
        return name if self.shape_of(name) == shape else self.add("Reshape", name, shape=shape)

    def expanded(self, name: str, shape: Shape) -> str:
        """A varying tensor, repeated up to this shape; constants are left to broadcasting."""
        if self.shape_of(name) == shape or not self.varies(name):
            return name
        return self.add("Expand", name, shape=shape)

    def refuse(self, reason: str) -> None:
        raise UnsupportedOp(self._node.op, reason)

    def finished(self) -> Parts | None:
        """With the last node under the name of the original's output; None if there is none."""
        if not self._nodes:
            return None
        *nodes, last = self._nodes
        new = {name: shape for name, shape in self._new.items() if name != last.output}
        return Parts((*nodes, replace(last, output=self._node.output)), self._values, new)


def _extreme(parts: _Parts, names: Sequence[str], *, greatest: bool) -> str:
    """max(a, b) = b + max(0, a − b) and min(a, b) = b − max(0, b − a): varying tensors in rounds of pairs.

    Constants come last, one by one, so that each is compared with what varies.
    """

    def of_two(a: str, b: str) -> str:
        if greatest:
            return parts.add("Add", b, parts.add("Relu", parts.add("Sub", a, b)))
        return parts.add("Sub", b, parts.add("Relu", parts.add("Sub", b, a)))

    left = [name for name in names if parts.varies(name)]
    while len(left) > 1:
        pairs = [left[k : k + 2] for k in range(0, len(left), 2)]
        left = [of_two(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    found, *constants = (*left, *(name for name in names if not parts.varies(name)))
    for constant in constants:
        found = of_two(found, constant)
    return found


def _max_or_min(node: Node, parts: _Parts) -> None:
    """A tensor that is given twice counts once."""
    names = [parts.expanded(name, parts.shape) for name in dict.fromkeys(node.inputs)]
    found = _extreme(parts, names, greatest=node.op == "Max")
    if found in node.inputs:
        parts.add("Reshape", found, shape=parts.shape)


def _leaky_relu(node: Node, parts: _Parts) -> None:
    """α·x + (1 − α)·max(0, x), or α·x + max(0, x) − α·max(0, x) where 1 − α is no float64."""
    (x,) = node.inputs
    alpha = node.real("alpha")
    scaled, positive = parts.add("Mul", x, parts.constant(alpha)), parts.add("Relu", x)
    if Fraction(1.0 - alpha) == 1 - Fraction(alpha):
        parts.add("Add", scaled, parts.add("Mul", positive, parts.constant(1.0 - alpha)))
        return
    both = parts.add("Add", scaled, positive)
    parts.add("Sub", both, parts.add("Mul", positive, parts.constant(alpha)))


def _clip(node: Node, parts: _Parts) -> None:
    """x + max(0, a − x) − max(0, x − b) for a <= b, a term left out where its bound is infinite.

    A bound that x never reaches, such as the greatest float32, costs nothing: its ReLU is off.
    """
    (x,) = node.inputs
    least, most = node.real("min"), node.real("max")
    if not least <= most or least == np.inf or most == -np.inf:
        parts.refuse("its bounds leave no finite number")
    found = x
    if isfinite(least):
        found = parts.add("Add", found, parts.add("Relu", parts.add("Sub", parts.constant(least), x)))
    if isfinite(most):
        found = parts.add("Sub", found, parts.add("Relu", parts.add("Sub", x, parts.constant(most))))
    if found == x:
        parts.add("Reshape", x, shape=parts.shape)


def _max_pool(node: Node, parts: _Parts) -> None:
    """The greatest of the taps of a window; a tap in the padding reads what another one reads."""
    (x,) = node.inputs
    size, kernel = prod(parts.shape_of(x)), node.integers("kernel")
    places = np.arange(size).reshape(parts.shape_of(x))
    taps = propagation.flat_windows(propagation.windows(node, places, kernel, -1), len(kernel))
    some = taps.max(axis=-1, keepdims=True)
    if (some < 0).any():
        parts.refuse("one of its windows lies entirely in the padding")
    taps = np.where(taps < 0, some, taps)
    flat = parts.shaped(x, (size,))
    indices = dict.fromkeys(tuple(taps[..., k].reshape(-1).tolist()) for k in range(taps.shape[-1]))
    names = [parts.add("Gather", flat, indices=each, indices_shape=parts.shape, axis=0) for each in indices]
    _extreme(parts, names, greatest=True)


def _softmax(node: Node, parts: _Parts) -> None:
    """e^{x_i} / Σ_j e^{x_j} = 1/(1 + Σ_{j≠i} e^{x_j − x_i}); of one number, 1 = x^0."""
    (x,) = node.inputs
    axis = node.integer("axis")
    count = parts.shape[axis]
    if count > MOST_IN_SOFTMAX or prod(parts.shape) * count > MOST_TERMS:
        parts.refuse(
            f"it is bounded over at most {MOST_IN_SOFTMAX} numbers, and {MOST_TERMS} pairs of numbers"
        )
    if count == 1:
        parts.add("Pow", x, exponent=0.0)
        return
    own, others = zip(*((i, j) for i in range(count) for j in range(count) if i != j), strict=True)
    first, second = (
        parts.add("Gather", x, indices=indices, indices_shape=(count, count - 1), axis=axis)
        for indices in (others, own)
    )
    terms = parts.add("Exp", parts.add("Sub", first, second))
    total = parts.add("ReduceSum", terms, axes=(axis + 1,), keepdims=0)
    parts.add("Pow", parts.add("Add", total, parts.constant(1.0)), exponent=-1.0)


def _divide(node: Node, parts: _Parts) -> None:
    """a/b = a·b^−1; a division by a constant is affine."""
    a, b = node.inputs
    if parts.varies(b):
        inverse = parts.expanded(parts.add("Pow", b, exponent=-1.0), parts.shape)
        parts.add("Mul", parts.expanded(a, parts.shape), inverse)


def _multiply(node: Node, parts: _Parts) -> None:
    """x·x = x²; varying tensors of other shapes than the product are expanded."""
    a, b = node.inputs
    if not (parts.varies(a) and parts.varies(b)):
        return
    if a == b:
        parts.add("Pow", a, exponent=2.0)
    elif not parts.shape_of(a) == parts.shape_of(b) == parts.shape:
        parts.add("Mul", parts.expanded(a, parts.shape), parts.expanded(b, parts.shape))


def _product(parts: _Parts, a: str, b: str, shape: Shape) -> str:
    """Σ_k a_ik·b_kj, as numpy.matmul has it, of two tensors that vary; `shape` is that of the result."""
    left, right = parts.shape_of(a), parts.shape_of(b)
    rows, columns = left if len(left) > 1 else (1, *left), right if len(right) > 1 else (*right, 1)
    stack = tuple(int(n) for n in np.broadcast_shapes(rows[:-2], columns[:-2]))
    common = (*stack, rows[-2], rows[-1], columns[-1])
    if prod(common) > MOST_TERMS:
        parts.refuse(f"a product of two varying tensors is bounded up to {MOST_TERMS} terms")
    first = parts.expanded(parts.shaped(a, (*rows, 1)), common)
    second = parts.expanded(parts.shaped(b, (*columns[:-2], 1, *columns[-2:])), common)
    total = parts.add("ReduceSum", parts.add("Mul", first, second), axes=(len(stack) + 1,), keepdims=0)
    return parts.shaped(total, shape)


def _matmul(node: Node, parts: _Parts) -> None:
    a, b = node.inputs
    if parts.varies(a) and parts.varies(b):
        _product(parts, a, b, parts.shape)


def _gemm(node: Node, parts: _Parts) -> None:
    """alpha·A·B + beta·C, by its operations; affine, unless A and B vary. beta·C may be of constants."""
    a, b, *others = (name for name in node.inputs if name)
    if not (parts.varies(a) and parts.varies(b)):
        return
    left, right = (
        parts.add("Transpose", name, perm=(1, 0)) if node.integer(turned) else name
        for name, turned in ((a, "transA"), (b, "transB"))
    )
    found = _product(parts, left, right, parts.shape)
    if node.real("alpha") != 1.0:
        found = parts.add("Mul", found, parts.constant(node.real("alpha")))
    for c in others:
        if node.real("beta") != 1.0:
            c = parts.add("Mul", c, parts.constant(node.real("beta")))
        found = parts.add("Add", found, parts.expanded(c, parts.shape))


#: The operators that have parts, in some of their forms at least.
REWRITES: Mapping[str, Callable[[Node, _Parts], None]] = MappingProxyType(
    {
        "Clip": _clip,
        "Div": _divide,
        "Gemm": _gemm,
        "LeakyRelu": _leaky_relu,
        "MatMul": _matmul,
        "Max": _max_or_min,
        "MaxPool": _max_pool,
        "Min": _max_or_min,
        "Mul": _multiply,
        "Softmax": _softmax,
    }
)
