"""Every run of a network in a float type lies between numbers of that type: answers in floats alone.

What holds over the reals need not hold in floats, and the other way round, by any margin: a number that is
absorbed by a larger one is gone. So a claim in floats may have a proof of its own, about the runs.

Theorem. Let every result of a node be rounded to the nearest number of the type, halves to even, or, in a
type of 16 bits, to the nearest float32 first; let sums be added up in any order (or in the stated one),
with or without fused multiply-add, each partial sum rounded to the type, or to float32 and perhaps to the
type then; let results that are subnormal be kept or flushed to zero. Each of these roundings is
nondecreasing. So if what is rounded lies between a and b, the result lies between the least that a and the
greatest that b is rounded to. By induction over the nodes, and over the additions of a sum, every run at a
point of the type in the box lies between the ends that are computed here. A sum that is exact in every
order is that number: if all terms are multiples of 2^q and their sizes add up to at most 2^(q + p), p the
digits of the type, then so is every partial sum, and the type holds it. Nothing is said where a result may
overflow, nor of an ONNX node that is read as several roundings: a runtime may round it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil, floor, inf, isfinite, log2, nextafter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import Problem, refute
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Node
from dokimos.networks.semantics import propagation
from dokimos.networks.semantics.exact import Enclosure
from dokimos.networks.semantics.outward import FLOAT32, Format, dot_rounding
from dokimos.networks.semantics.propagation import propagate
from dokimos.networks.semantics.rounding import require_format
from dokimos.suites.instance import Label, Order
from dokimos.suites.vnnlib.model import Box, Linear
from dokimos.suites.vnnlib.violation import violation_of

#: Sums of so many terms are followed through all their orders.
MOST_TERMS = 7
#: Operators whose results are rounded. What lowering writes beside the file's tensors is named with "#".
_ROUNDED = frozenset({"Add", "Gemm", "MatMul", "Mul", "Sub"})
Ends = tuple[Fraction, Fraction]
Array = NDArray[Any]
ZERO = Fraction(0)


@dataclass(frozen=True)
class Runs:
    """Between which numbers each entry lies in every run: arrays of fractions."""

    lower: Array
    upper: Array

    def map(self, move: Callable[[Array], Array]) -> Runs:
        """Both ends under what moves numbers, or is nondecreasing and exact in floats."""
        return Runs(np.asarray(move(self.lower)), np.asarray(move(self.upper)))


def margin_of_runs(problem: Problem, label: Label) -> Fraction:
    """The margin by which a label holds in every run. Raises InvalidProof if that is not shown.

    `unsat`: some constraint of every unsafe conjunction fails at the ends of all runs on the box. `sat`:
    the witness is of the type, and whatever a run computes there is unsafe.
    """
    require_format(problem.network, problem.form)
    found = cache(lambda box: _outputs(problem, box))
    if label is Label.UNSAT:
        return refute(problem.property, lambda constraint, box: _least(constraint, *found(box)))
    point = problem.witness
    if point is None or not all(map(problem.form.holds, point)):
        raise InvalidProof(f"the witness is not a {problem.form.name} point")
    _, outputs = found(Box(point, point))
    shown = violation_of(problem.property, point, outputs)
    if not shown.violates:
        raise InvalidProof(f"the runs in {problem.form.name} at the witness are not all unsafe")
    return ZERO if shown.margin_lower is None else max(shown.margin_lower, ZERO)


def _outputs(problem: Problem, box: Box) -> tuple[Box, Enclosure]:
    """The box of the points of the type, and the outputs of all runs there."""
    network, way = problem.network, Rounding(problem.form, problem.order)
    # The input of a network of 16 bits may be of float32, and cast to its type.
    inside = way.inside(box) if network.dtype == np.float32 else box
    for group in network.beside:
        raise InvalidProof(f"runs are not followed through operators of {group}")
    if any(node.op in _ROUNDED and "#" in node.output for node in network.nodes):
        raise InvalidProof("a node of the file is read as several roundings")
    ends = (_array(end, network.input_shape) for end in (inside.lower, inside.upper))
    try:
        tensors = propagate(
            network, Runs(*ends), lift=way.constants, table=_table(way), semantics="runs of floats"
        )
    except UnsupportedOp as error:
        raise InvalidProof(str(error)) from None
    out = tensors[network.output]
    return inside, Enclosure(*(tuple(end.reshape(-1).tolist()) for end in (out.lower, out.upper)))


def _least(constraint: Linear, box: Box, outputs: Enclosure) -> Fraction:
    """The least that left side − bound may be."""
    total = -constraint.bound
    for terms, low, high in (
        (constraint.inputs, box.lower, box.upper),
        (constraint.outputs, outputs.lower, outputs.upper),
    ):
        total += sum((c * (low[k] if c > 0 else high[k]) for k, c in terms), ZERO)
    return total


@dataclass(frozen=True)
class Rounding:
    """How results are rounded, and in which order sums are added up."""

    form: Format
    order: Order

    def nearest(self, x: Fraction, form: Format) -> Fraction:
        """The number of a type nearest to x, halves to even. Raises InvalidProof where it overflows."""
        step = form.step(x)
        if abs(found := round(x / step) * step) > form.largest:
            raise InvalidProof(f"a result may overflow in {form.name}")
        return found

    def stored(self, low: Fraction, high: Fraction) -> Ends:
        """What a result between two numbers may be stored as."""
        return self._rounded(low, high, kept=False)

    def kept(self, low: Fraction, high: Fraction) -> Ends:
        """The same of a partial sum, which a type of 16 bits may have kept in float32."""
        return self._rounded(low, high, kept=self.form != FLOAT32)

    def _rounded(self, low: Fraction, high: Fraction, *, kept: bool) -> Ends:
        ends = []
        for x, choose in ((low, min), (high, max)):
            wide = self.nearest(x, FLOAT32)
            ways = [self.nearest(x, self.form), self.nearest(wide, self.form), *([wide] if kept else [])]
            ends.append(choose(ways))
        flushed = Fraction(self.form.tiny)
        # Some processors flush before they round, also what would be rounded to the smallest normal number.
        return (
            ZERO if ends[0] > 0 and low < flushed else ends[0],
            ZERO if ends[1] < 0 and high > -flushed else ends[1],
        )

    def inside(self, box: Box) -> Box:
        """The least box that holds all points of the type in the box."""
        lower = [ceil(x / self.form.step(x)) * self.form.step(x) for x in box.lower]
        upper = [floor(x / self.form.step(x)) * self.form.step(x) for x in box.upper]
        if any(a > b or max(abs(a), abs(b)) > self.form.largest for a, b in zip(lower, upper, strict=True)):
            raise InvalidProof(f"the box holds no {self.form.name} point")
        return Box(tuple(lower), tuple(upper))

    def constants(self, array: Array) -> Runs:
        """Constants, cast to the type."""
        exact = [Fraction(x) for x in array.astype(np.float64).reshape(-1).tolist()]
        ends = [(x, x) if self.form.holds(x) else self.stored(x, x) for x in exact]
        return Runs(*(_array([end[k] for end in ends], array.shape) for k in (0, 1)))

    def sum_of(self, products: Sequence[Ends], added: Sequence[Ends] = ()) -> Ends:
        """A sum of products, and of numbers that are added to it; what is certainly 0 changes nothing."""
        products = [p for p in products if p != (ZERO, ZERO)]
        added = [a for a in added if a != (ZERO, ZERO)]
        # Fused, a product is not rounded before it is added.
        leaves = [_hull(p, self.kept(*p)) for p in products]
        if self.order is not Order.ANY and len(products) + len(added) > 2:
            turned = leaves if self.order is Order.FORWARD else leaves[::-1]
            return self.stored(*_hull(self._folded([*turned, *added]), self._folded([*added, *turned])))
        terms = [*leaves, *added]
        if len(terms) <= MOST_TERMS:
            return self.stored(*self._in_all_orders(terms)) if terms else (ZERO, ZERO)
        low, high = (sum((end[k] for end in (*products, *added)), ZERO) for k in (0, 1))
        if not self._is_exact(terms):
            size = sum((max(-end[0], end[1]) for end in (*products, *added)), ZERO)
            moved = dot_rounding(len(terms), nextafter(float(size), inf), self.form)
            if not isfinite(moved):
                raise InvalidProof(f"a sum has more terms than are bounded in {self.form.name}")
            low, high = low - Fraction(moved), high + Fraction(moved)
        return self.stored(low, high)

    def _folded(self, terms: Sequence[Ends]) -> Ends:
        total = terms[0]
        for term in terms[1:]:
            total = self.kept(total[0] + term[0], total[1] + term[1])
        return total

    def _in_all_orders(self, terms: Sequence[Ends]) -> Ends:
        """The hull over all ways to add terms up two by two: of each set of them, by its last addition."""
        everything = (1 << len(terms)) - 1
        found = {1 << k: term for k, term in enumerate(terms)}
        for size in range(2, len(terms) + 1):
            for chosen in combinations(range(len(terms)), size):
                whole = sum(1 << k for k in chosen)
                part, ends = (whole - 1) & whole, []
                while part > whole ^ part:
                    a, b = found[part], found[whole ^ part]
                    ends.append(self.kept(a[0] + b[0], a[1] + b[1]))
                    part = (part - 1) & whole
                found[whole] = _hull(*ends)
        return found[everything]

    def _is_exact(self, terms: Sequence[Ends]) -> bool:
        """Whether the type holds every partial sum of terms, which are single numbers, in every order."""
        if any(a != b or a.denominator & (a.denominator - 1) for a, b in terms):
            return False
        grid = min(Fraction(a.numerator & -a.numerator, a.denominator) for a, _ in terms)
        digits = 1 - round(log2(self.form.ulp))
        size = sum((abs(a) for a, _ in terms), ZERO)
        return grid >= self.form.tiny and size <= min(grid * 2**digits, Fraction(self.form.largest))


def _hull(*ends: Ends) -> Ends:
    return min(end[0] for end in ends), max(end[1] for end in ends)


def _array(values: Sequence[Fraction], shape: Sequence[int]) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found.reshape(shape)


def _product(a: Ends, b: Ends) -> Ends:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


Rule = Callable[[Node, Sequence[Runs | None]], Runs]


def _table(way: Rounding) -> Mapping[str, Rule]:
    """What each operator does; others are not known here."""

    def each(combine: Callable[..., Ends]) -> Rule:
        """An operator entry by entry, of ends of its arguments."""

        def rule(node: Node, arguments: Sequence[Runs | None]) -> Runs:
            given = np.broadcast_arrays(*(end for x in _present(arguments) for end in (x.lower, x.upper)))
            flat = [array.reshape(-1).tolist() for array in given]
            pairs = [list(zip(flat[k], flat[k + 1], strict=True)) for k in range(0, len(flat), 2)]
            ends = [combine(*row) for row in zip(*pairs, strict=True)]
            return Runs(*(_array([end[k] for end in ends], given[0].shape) for k in (0, 1)))

        return rule

    def gemm(node: Node, arguments: Sequence[Runs | None]) -> Runs:
        a, b, *bias = _present(arguments)
        if node.op == "Gemm" and (node.real("alpha") != 1 or node.real("beta") != 1):
            raise InvalidProof("a Gemm with factors is not followed through its runs")
        a = a.map(np.transpose) if node.op == "Gemm" and node.integer("transA") else a
        b = b.map(np.transpose) if node.op == "Gemm" and node.integer("transB") else b
        if a.lower.ndim != 2 or b.lower.ndim != 2:
            raise InvalidProof("only products of two matrices are followed through their runs")
        shape = (a.lower.shape[0], b.lower.shape[1])
        biases: list[Runs] = [c.map(lambda end: np.broadcast_to(end, shape)) for c in bias]
        ends: list[Ends] = []
        for i, j in np.ndindex(*shape):
            left = zip(a.lower[i].tolist(), a.upper[i].tolist(), strict=True)
            right = zip(b.lower[:, j].tolist(), b.upper[:, j].tolist(), strict=True)
            added: list[Ends] = [(c.lower.item(i, j), c.upper.item(i, j)) for c in biases]
            ends.append(way.sum_of(list(map(_product, left, right)), added))
        return Runs(*(_array([end[k] for end in ends], shape) for k in (0, 1)))

    def clip(node: Node, arguments: Sequence[Runs | None]) -> Runs:
        largest = way.form.largest
        low, high = (Fraction(max(-largest, min(node.real(key), largest))) for key in ("min", "max"))
        return each(lambda x: (min(max(x[0], low), high), min(max(x[1], low), high)))(node, arguments)

    def moving(move: Callable[[Node, Array], Array]) -> Rule:
        return lambda node, arguments: _present(arguments)[0].map(lambda end: move(node, end))

    def concat(node: Node, arguments: Sequence[Runs | None]) -> Runs:
        parts = _present(arguments)
        ends = ([part.lower for part in parts], [part.upper for part in parts])
        return Runs(*(propagation.concat(node, end) for end in ends))

    return MappingProxyType(
        {
            **{op: moving(move) for op, move in propagation.REARRANGE.items()},
            "Add": each(lambda a, b: way.stored(a[0] + b[0], a[1] + b[1])),
            "Clip": clip,
            "Concat": concat,
            "Gemm": gemm,
            "MatMul": gemm,
            "Max": each(lambda *ends: (max(end[0] for end in ends), max(end[1] for end in ends))),
            "Min": each(lambda *ends: (min(end[0] for end in ends), min(end[1] for end in ends))),
            "Mul": each(lambda a, b: way.stored(*_product(a, b))),
            "Neg": each(lambda a: (-a[1], -a[0])),
            "Relu": each(lambda a: (max(a[0], ZERO), max(a[1], ZERO))),
            "Sub": each(lambda a, b: way.stored(a[0] - b[1], a[1] - b[0])),
        }
    )


def _present(arguments: Sequence[Runs | None]) -> list[Runs]:
    return [each for each in arguments if each is not None]
