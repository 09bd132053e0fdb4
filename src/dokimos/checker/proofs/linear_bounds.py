"""Linear bounds by backward substitution, with a slope for every ReLU."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import PLACE, CertificateKind, Natural, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import box_floats, outward
from dokimos.checker.lemmas.relu_layers import FLUSHED, ROUNDED, at_most, loss_of_sum, through_relu
from dokimos.core.errors import InvalidProof, UnreadableFile, UnsupportedOp, about
from dokimos.networks.graph import Network, Node, Shape
from dokimos.networks.semantics.interval import INTERVAL_RULES, lift_constant
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    Rounded,
    RoundedNode,
    down,
    gamma,
    infinite_beyond,
    point,
    safe,
    widen,
)
from dokimos.networks.semantics.rounding import ROUNDING_RULES, refuse_float64
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Conjunction

# Rigorous linear bounds on affine operators and ReLUs in any graph, by backward substitution


#: Networks with more nodes are refused: `lost` must stay a sum of few terms.
MOST_NODES = 200
#: How many numbers the functionals that are bounded at once may have in the largest tensor: few fit in the
#: processor's cache.
MOST_NUMBERS = 1 << 17

#: From functionals of a node's output, one in each row, to functionals of an input: [n, *out] to [n, *in].
Transposed = Callable[[Floats], Floats]
#: The constants of a node, None for an input that varies; the shapes of its inputs and of its output.
_Rule = Callable[[Node, Sequence[Floats | None], Sequence[Shape], Shape], tuple[list[Transposed], int]]


def _only_first_varies(node: Node, constants: Sequence[Floats | None]) -> None:
    if constants[0] is not None or any(c is None for c in constants[1:]):
        raise UnsupportedOp(node.op, "it is bounded only if its first input varies, and no other")


def _conv(
    node: Node, constants: Sequence[Floats | None], shapes: Sequence[Shape], out: Shape
) -> tuple[list[Transposed], int]:
    """A product with the weights gives every tap of every window; these are added up at their positions."""
    _only_first_varies(node, constants)
    weights = constants[1]
    if weights is None or node.integer("group") != 1 or shapes[0][0] != 1:
        raise UnsupportedOp(node.op, "it is bounded only with one group, on a batch of one")
    kernel, rank = weights.shape[2:], weights.ndim - 2
    pads, strides, dilations = (node.integers(name) for name in ("pads", "strides", "dilations"))
    space = [size + pads[k] + pads[k + rank] for k, size in enumerate(shapes[0][2:])]
    every = (slice(None), slice(None))
    inner = (*every, *(slice(pads[k], pads[k] + size) for k, size in enumerate(shapes[0][2:])))

    def transposed(rows: Floats) -> Floats:
        taps = np.matmul(weights.reshape(len(weights), -1).T, rows.reshape(len(rows), len(weights), -1))
        taps = taps.reshape(len(rows), weights.shape[1], *kernel, *out[2:])
        spread = np.zeros((len(rows), weights.shape[1], *space))
        for tap in np.ndindex(*kernel):
            where = tuple(
                slice(t * d, t * d + s * (p - 1) + 1, s)
                for t, d, s, p in zip(tap, dilations, strides, out[2:], strict=True)
            )
            spread[(*every, *where)] += taps[(*every, *tap)]
        return spread[inner].reshape(-1, *shapes[0])

    return [transposed], len(weights) * prod(kernel)


def _gemm(
    node: Node, constants: Sequence[Floats | None], shapes: Sequence[Shape], out: Shape
) -> tuple[list[Transposed], int]:
    _only_first_varies(node, constants)
    if node.integer("transA") or (node.real("alpha"), node.real("beta")) != (1.0, 1.0):
        raise UnsupportedOp(node.op, "it is bounded only as x·B + C")
    weights = constants[1]
    assert weights is not None
    back = weights if node.integer("transB") else weights.T
    return [lambda rows: rows @ back], len(back)


def _matmul(
    node: Node, constants: Sequence[Floats | None], shapes: Sequence[Shape], out: Shape
) -> tuple[list[Transposed], int]:
    _only_first_varies(node, constants)
    weights = constants[1]
    if weights is None or weights.ndim != 2:
        raise UnsupportedOp(node.op, "it is bounded only as x·B with a matrix B")
    return [lambda rows: rows @ weights.T], weights.shape[1]


def _sum(sign: float) -> _Rule:
    def rule(
        node: Node, constants: Sequence[Floats | None], shapes: Sequence[Shape], out: Shape
    ) -> tuple[list[Transposed], int]:
        if any(c is None and shape != out for c, shape in zip(constants, shapes, strict=True)):
            raise UnsupportedOp(node.op, "it is bounded only if the varying input is not broadcast")
        found: list[Transposed] = [lambda rows: rows, lambda rows: sign * rows]
        return [each for each, c in zip(found, constants, strict=True) if c is None], 0

    return rule


def _multiply(
    node: Node, constants: Sequence[Floats | None], shapes: Sequence[Shape], out: Shape
) -> tuple[list[Transposed], int]:
    factors = [c for c in constants if c is not None]
    varying = [shape for c, shape in zip(constants, shapes, strict=True) if c is None]
    if len(factors) != 1 or varying != [out]:
        raise UnsupportedOp(node.op, "it is bounded only as a product with a constant")
    return [lambda rows: rows * factors[0]], 1


def _moved(
    node: Node, constants: Sequence[Floats | None], shapes: Sequence[Shape], out: Shape
) -> tuple[list[Transposed], int]:
    if node.op == "Reshape":
        return [lambda rows: rows.reshape(len(rows), *shapes[0])], 0
    back = [0, *(1 + int(axis) for axis in np.argsort(node.integers("perm")))]
    return [lambda rows: rows.transpose(back)], 0


#: For each affine operator its transposes, one for each input that varies, each entry of which is a sum of
#: at most this many products (0 if it only moves numbers, or changes signs).
TRANSPOSES: Mapping[str, _Rule] = MappingProxyType(
    {
        "Add": _sum(1.0),
        "Conv": _conv,
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Mul": _multiply,
        "Reshape": _moved,
        "Sub": _sum(-1.0),
        "Transpose": _moved,
    }
)


class BoundedGraph:
    """A network over a box: an enclosure of every tensor, and functionals of tensors bounded from below.

    With `ulps`, every float32 run on a point of the box is covered, by noise at every node; without it, the
    network over the reals. The arguments of the ReLUs in `refined`, by their number, are bounded by
    functionals if intervals leave their sign open; those of the others only by intervals.

    Raises UnsupportedOp for other operators, and InvalidProof if a tensor is not bounded.
    """

    def __init__(
        self, network: Network, box: Interval, *, refined: frozenset[int], ulps: int | None
    ) -> None:
        if len(network.nodes) > MOST_NODES:
            raise InvalidProof(f"the network has more than {MOST_NODES} nodes")
        if ulps is not None:
            refuse_float64(network)
        self._network, self._ulps = network, ulps
        self._constants = {name: lift_constant(array) for name, array in network.constants.items()}
        inputs = box.map(lambda end: end.reshape(network.input_shape))
        self.enclosures = {**self._constants, network.input: inputs}
        self._affine: dict[str, tuple[list[tuple[str, Transposed]], Floats, Floats]] = {}
        number = 0
        with np.errstate(all="ignore"):
            for node in network.nodes:
                if node.op == "Relu":
                    if number in refined:
                        self._refine(node.inputs[0])
                    found = self.enclosures[node.inputs[0]].map(lambda end: np.maximum(end, 0.0))
                    number += 1
                else:
                    found = self._enter(node)
                if not np.isfinite([found.lower, found.upper]).all():
                    raise InvalidProof("a tensor is not bounded by finite numbers")
                self.enclosures[node.output] = found

    def _enter(self, node: Node) -> Interval:
        """Keep what the way back through an affine node needs; return the enclosure of its output.

        Its output is Σ A_s·v_s + b + n with |n| <= noise, what float32 adds at arguments in the enclosures.
        """
        if node.op not in TRANSPOSES:
            raise UnsupportedOp(node.op, "it is bounded neither as an affine operator nor as a ReLU")
        given = [name for name in node.inputs if name]
        arguments = [self.enclosures[name] for name in given]
        constants = [self._constants[name].lower if name in self._constants else None for name in given]
        shapes, out = [self._network.shapes[name] for name in given], self._network.shapes[node.output]
        transposes, terms = TRANSPOSES[node.op](node, constants, shapes, out)
        rule = INTERVAL_RULES[node.op]
        real = rule(node, arguments)
        noise = np.zeros(real.shape)
        if self._ulps is not None:
            rounded = [Rounded(a.lower, a.upper, np.zeros(a.shape)) for a in arguments]
            noise = safe(ROUNDING_RULES[node.op](RoundedNode(node, real, rounded, self._ulps)))
            noise = np.broadcast_to(infinite_beyond(real.magnitude + noise, noise), real.shape)
        # |A|·|v| + |b|: a difference is as large as a sum.
        sizes = INTERVAL_RULES["Add" if node.op == "Sub" else node.op]
        size = sizes(node, [point(a.magnitude) for a in arguments]).upper
        constant = rule(
            node,
            [
                a if name in self._constants else point(np.zeros(a.shape))
                for name, a in zip(given, arguments, strict=True)
            ],
        )
        loss = (gamma(terms) + gamma(prod(out) + 2)) * size + noise + (constant.upper - constant.lower)
        varying = [name for name in given if name not in self._constants]
        self._affine[node.output] = list(zip(varying, transposes, strict=True)), constant.lower, safe(loss)
        return widen(real.lower - noise, real.upper + noise) if noise.any() else real

    def _refine(self, name: str) -> None:
        """Bound entries that may have either sign by functionals: the entry and its negative."""
        known = self.enclosures[name]
        lower, upper = known.lower.reshape(-1).copy(), known.upper.reshape(-1).copy()
        units = np.flatnonzero((lower < 0) & (upper > 0))
        for start in range(0, len(units), self.batch):
            chosen = units[start : start + self.batch]
            rows = np.zeros((len(chosen), lower.size))
            rows[np.arange(len(chosen)), chosen] = 1.0
            rows = rows.reshape(-1, *known.shape)
            lower[chosen] = np.fmax(lower[chosen], self.lower_bounds(name, point(rows)))
            upper[chosen] = np.fmin(upper[chosen], -self.lower_bounds(name, point(-rows)))
        self.enclosures[name] = Interval(lower.reshape(known.shape), upper.reshape(known.shape))

    @property
    def batch(self) -> int:
        """How many functionals to bound at a time."""
        largest = max(e.lower.size for name, e in self.enclosures.items() if name not in self._constants)
        return max(1, MOST_NUMBERS // largest)

    @np.errstate(all="ignore")
    def lower_bounds(
        self, name: str, rows: Interval, slopes: Mapping[str, Floats] = MappingProxyType({})
    ) -> Floats:
        """For each row, a lower bound of row·(tensor `name`) over the box and all noise.

        `slopes` has slopes in [0, 1] for the units of ReLUs, by the name of their output, the same for all
        rows or some for each; a ReLU that is not named has the usual ones: 1 where it is mostly on, else 0.

        Theorem. Going back from g = λ·t + c, node by node: an affine node t = Σ A_s·v_s + b + n gives
        g = Σ (A_sᵀλ)·v_s + λ·b + λ·n + c, and λ·n >= −|λ|·noise. Of t = max(0, e), with e between l and u,
        `through_relu` gives λ·t >= q·e + shift (proven at `BoundedLayers.lower_bounds`). Every reader
        of a tensor comes after it, so its functional is complete when its turn comes. This leaves a linear
        function of the input, whose minimum over the box is at a corner.

        All of this is computed in float64, and `lost` bounds what that may lose. Coefficients are taken for
        the numbers that they are: where |v| <= m, |fl(Aᵀλ)·v − (Aᵀλ)·v| <= γ_n |λ|·(|A|·m) + n·2^-1074 Σ m
        (Higham, 3.1), n being the products that are added up for one entry, in any order. Adding two
        functionals of one tensor rounds once. λ·b loses γ_N |λ|·|b|. `lost` is a sum of fewer than 2^10
        terms >= 0, computed to a relative 2^-43 each: `safe` makes up for that, FLUSHED for underflow.
        """
        pending = {name: rows.lower}
        tensor = self.enclosures[name]
        lost = _weighed(rows.upper - rows.lower, tensor.magnitude)
        constant = np.zeros(len(rows.lower))

        def pass_on(source: str, part: Floats) -> Floats:
            """Add a functional to a tensor; return what that loses."""
            size = self.enclosures[source].magnitude
            loss: Floats = np.full(len(part), FLUSHED * (1.0 + size.sum()))
            if source in pending:
                part = pending[source] + part
                loss = loss + ROUNDED * _weighed(part, size)
            pending[source] = part
            return loss

        for node in reversed(self._network.nodes):
            functional = pending.pop(node.output, None)
            if functional is None:
                continue
            if node.op == "Relu":
                argument = self.enclosures[node.inputs[0]]
                usual = np.where(argument.upper > -argument.lower, 1.0, 0.0)
                turned, shift = through_relu(functional, argument, slopes.get(node.output, usual))
                flat = shift.reshape(len(shift), -1)
                constant = constant + flat.sum(-1)
                lost = lost + loss_of_sum(flat) + ROUNDED * np.abs(constant)
                lost = lost + pass_on(node.inputs[0], turned)
                continue
            sources, biases, loss = self._affine[node.output]
            lost = lost + _weighed(functional, loss)
            constant = constant + functional.reshape(len(functional), -1) @ biases.reshape(-1)
            lost = lost + ROUNDED * np.abs(constant) + FLUSHED
            for source, transposed in sources:
                lost = lost + pass_on(source, transposed(functional))
        for source, functional in pending.items():  # of the input, or of a constant that a ReLU reads
            ends = self.enclosures[source]
            corner = np.minimum(functional * ends.lower, functional * ends.upper)
            flat = corner.reshape(len(corner), -1)
            constant = constant + flat.sum(-1)
            lost = lost + loss_of_sum(flat) + ROUNDED * np.abs(constant)
        lowest = down(constant - safe(lost))
        return np.where(np.isfinite(lowest), lowest, -np.inf)


def _weighed(functional: Floats, sizes: Floats) -> Floats:
    """An upper bound of Σ |λ|·size for each functional, but for underflow."""
    flat = np.abs(functional).reshape(len(functional), -1)
    return at_most(flat @ sizes.reshape(-1), flat.shape[1])


class LinearBoundsData(Struct, frozen=True, forbid_unknown_fields=True):
    """Which ReLUs' arguments are bounded by functionals, by number, and slopes for each conjunction.

    Slopes are bytes in base64, one for each unit of every ReLU, in the order of the network: k stands for
    k/255. An empty text stands for the usual slopes.
    """

    refined: tuple[Natural, ...]
    slopes: tuple[str, ...]


class LinearBoundsProof(CertificateKind):
    """`unsat` for affine operators and ReLUs in any graph.

    Theorem. On a box, Σ d·y of a constraint is at least what `BoundedGraph.lower_bounds` gives for the row
    d, whatever slopes in [0, 1] are chosen, and whichever ReLUs' arguments are bounded by functionals. If
    in every conjunction a constraint Σ d·y <= b has a bound − b >= m > 0, none holds anywhere on the box.

    The network with the rounding of float32 as noise comes first: what holds for all noise holds without
    noise, so that one pass proves both. If that fails, only the network over the reals is bounded.
    """

    name: ClassVar[str] = "linear-bounds"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every conjunction with its slopes."""
        given = read_data(data, LinearBoundsData)
        network, asked = problem.network, problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if len(given.slopes) != len(asked):
            raise UnreadableFile(
                PLACE, f"'slopes' must be a list of {len(asked)}, one for each conjunction"
            )
        slopes = [read_slopes(network, text) for text in given.slopes]
        refined = frozenset(given.refined)

        def margin(ulps: int | None) -> Fraction:
            @cache
            def over(box: Box) -> BoundedGraph:
                return BoundedGraph(network, Interval(*box_floats(box)), refined=refined, ulps=ulps)

            return min(
                _slack(over(box), network, conjunction, chosen)
                for (box, conjunction), chosen in zip(asked, slopes, strict=True)
            )

        both = problem.in_float32(lambda: margin(problem.ulps))
        return Proven(real=margin(None) if both is None else both, float32=both)


def read_slopes(network: Network, text: str) -> dict[str, Floats]:
    """The slopes of each ReLU, by the name of its output. Raises UnreadableFile if they do not fit."""
    if not text:
        return {}
    shapes = {node.output: network.shapes[node.output] for node in network.nodes if node.op == "Relu"}
    try:
        flat = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (binascii.Error, ValueError):
        raise UnreadableFile(PLACE, "'slopes' are not bytes in base64") from None
    ends = np.cumsum([prod(shape) for shape in shapes.values()], dtype=np.int64)
    if len(flat) != (ends[-1] if len(ends) else 0):
        raise UnreadableFile(PLACE, f"there are {len(flat)} slopes, but there must be one for each unit")
    parts = np.split(flat / 255.0, ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def _slack(
    graph: BoundedGraph, network: Network, conjunction: Conjunction, slopes: Mapping[str, Floats]
) -> Fraction:
    """By how much one of the constraints fails everywhere on the box; InvalidProof if none does."""
    usable = [constraint for constraint in conjunction if not constraint.inputs]
    if not usable:
        raise InvalidProof("a conjunction has no constraint on outputs alone")
    rows = [outward(_row(dict(each.outputs), network.output_size)) for each in usable]
    stacked = Interval(*(np.stack([getattr(row, end) for row in rows]) for end in ("lower", "upper")))
    shaped = stacked.map(lambda end: end.reshape(-1, *network.output_shape))
    found = graph.lower_bounds(network.output, shaped, slopes).tolist()
    slacks = [Fraction(f) - each.bound for f, each in zip(found, usable, strict=True) if np.isfinite(f)]
    slack = max(slacks, default=Fraction(-1))
    if slack <= 0:
        raise InvalidProof(f"the bound that the slopes give is {about(slack)}, which is not above 0")
    return slack


def _row(terms: Mapping[int, Fraction], size: int) -> Sequence[Fraction]:
    return [terms.get(j, Fraction(0)) for j in range(size)]
