"""Transformers whose attention stays with the same tokens all over the box."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import CertificateKind, LowerBound, NoData, Problem, Proven, read_data
from dokimos.checker.lemmas.constraints import box_floats, margins, outward
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import conv_product, gemm_product
from dokimos.networks.semantics.outward import (
    FLOAT32,
    TINY,
    UNIT_ROUNDOFF,
    Floats,
    Interval,
    Product,
    Rounded,
    add,
    bilinear,
    dot_rounding,
    gamma,
    infinite_beyond,
    point,
    safe,
    safe_product,
    up,
)
from dokimos.networks.semantics.rounding import rounding_rule
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Linear

# Transformers whose attention stays with the same tokens: affine in the input, up to a remainder


#: A tensor of forms with more numbers than this would take more than 2 GB in total.
MOST_NUMBERS = 1 << 25
_FLOAT64 = 2.0**-52


@dataclass(frozen=True, eq=False)
class Form:
    """A tensor over a box. Its real value is rows[0] + Σ u_j·rows[j], all |u_j| <= 1, but for `rest`.

    `rows` has an axis of its own in front of those of the tensor, so that no operator can take one for the
    other; the other three have the tensor's shape. The u_j are the same for all tensors of a network: where
    input j is in its interval. `size` bounds the real value, `error` how far float32 may be from it. Behind
    ReLUs in pairs the value that is meant leaves out |z|/2, which the next layer cancels; `size` and
    `error` are of the tensor itself.
    """

    rows: Floats
    rest: Floats
    error: Floats
    size: Floats

    @property
    def floats(self) -> Floats:
        """A bound on what float32 computes."""
        return safe(self.size + self.error)

    @property
    def rounded(self) -> Rounded:
        """The tensor between its ends."""
        reach = safe(_reach(self.rows) + self.rest)
        centre = self.rows[0]
        return Rounded(-up(reach - centre), up(centre + reach), self.error)


def _reach(rows: Floats) -> Floats:
    """Σ |rows[j]|, j >= 1, rounded up."""
    bound: Floats = sum(map(abs, rows[1:]), np.zeros(rows.shape[1:])) * (1.0 + 4.0 * gamma(len(rows) + 1))
    return bound


def _form(rows: Floats, rest: Floats, error: Floats) -> Form:
    size = safe(abs(rows[0]) + _reach(rows) + rest)
    if not rows.shape[1:] == rest.shape == error.shape:
        raise InvalidProof("a tensor is broadcast, which this proof does not follow")
    if not np.isfinite(size).all():
        raise InvalidProof("a number is too large for the proof")
    return Form(rows, rest, error, size)


class RoutedNetwork:
    """The forms of a network over one box, from which bounds on its outputs follow.

    Theorem. Each node's real value is within `rest` of its row of affine functions of the u_j:
    * x ↦ Wx + b maps the rows; `rest` goes through |W|, and γ_n·|W|·Σ_j |rows[j]| makes up for float64.
    * Attention Z_i = Σ_j a_ij·V_j with weights a_ij in [0, h_ij] that add up to 1 is, for any token π,
      V_π + Σ_{j≠π} a_ij·(V_j − V_π): that is V_π but for Σ_{j≠π} h_ij·(|V_j| + |V_π|). The h_ij, about
      e^−gap, are the ends of the softmax of all scores that the reach of queries and keys allows; π is the
      token with the largest weight.
    * ReLU(z) and ReLU(−z) are z/2 + |z|/2 and −z/2 + |z|/2. The next layer has opposite weights for the
      two, and |z|/2 cancels, exactly: so z/2 and −z/2 may stand for them.
    """

    def __init__(self, network: Network, box: Box, ulps: int) -> None:
        self.network = network
        self._ulps = ulps
        self._writer = {node.output: node for node in network.nodes}
        self._readers: dict[str, list[Node]] = {}
        for node in network.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)
        self.local: dict[str, Floats] = {}
        """By tensor: how far float32 may be from its node's affine map at what float32 has before it."""
        self.routes: dict[str, NDArray[np.intp]] = {}
        """By tensor that attention writes: the token that each of its rows takes."""
        self._forms: dict[str, Form] = {network.input: _of_box(network, box)}
        self._weights: dict[str, Rounded] = {}
        self._done: set[str] = set()
        with np.errstate(all="ignore"):
            for node in network.nodes:
                self._go_through(node)
        if network.output not in self._forms:
            raise InvalidProof("the output is not an affine function behind the attention")

    def _go_through(self, node: Node) -> None:
        if not _has_batch(self.network.shapes[node.output]):
            raise InvalidProof(f"the tensor {node.output!r} has no leading batch dimension of 1")
        if node.op not in _FORMS or not _FORMS[node.op](self, node):
            raise InvalidProof(f"the node {node.output!r} ({node.op}) is not part of such a transformer")
        self._done.add(node.output)
        for name in node.inputs:
            if all(reader.output in self._done for reader in self._readers[name]):
                self._forms.pop(name, None)  # it is not read any more

    def _constant(self, name: str) -> Floats | None:
        found = self.network.constants.get(name)
        return found.astype(np.float64) if found is not None and found.dtype == np.float32 else None

    def _write(self, node: Node, form: Form, local: Floats | None) -> bool:
        if local is not None:
            self.local[node.output] = local
        self._forms[node.output] = form
        return True

    def linear(
        self, node: Node, x: Form, weights: Floats, product: Product, terms: int, bias: Floats | None
    ) -> bool:
        """x ↦ Wx + b; `terms` products make one number. In float32 only those with weights not 0 count."""
        numbers = len(x.rows) * prod(self.network.shapes[node.output])
        if numbers > MOST_NUMBERS:
            raise InvalidProof(
                f"the forms of {node.output!r} have {numbers:,} numbers; the limit is {MOST_NUMBERS:,}"
            )
        shape = (-1, x.size.shape[-1]) if product is np.matmul else (-1, *x.size.shape[1:])
        flat = x.rows.reshape(shape)  # the batch of each row is 1; one matrix product, not one for each row
        used = flat.any(axis=tuple(range(1, flat.ndim)))  # an input moves few tokens, and 0 stays 0
        found = product(flat[used], weights)
        rows = np.zeros((len(flat), *found.shape[1:]))
        rows[used] = found
        rows = rows.reshape(len(x.rows), *self.network.shapes[node.output])
        spread, sizes = abs(x.rows[0]) + _reach(x.rows), abs(weights)
        rest = safe_product(safe(x.rest + gamma(terms + 2) * spread), sizes, product, terms) + TINY
        size = safe_product(x.floats, sizes, product, terms)
        nonzero = int(product(np.ones_like(x.size), (weights != 0).astype(np.float64)).max())
        if bias is not None:
            rows[0] += bias
            rest = rest + _FLOAT64 * abs(rows[0])
            size, nonzero = size + abs(bias), nonzero + 1
        local = dot_rounding(nonzero, safe(size), FLOAT32)
        error = safe_product(x.error, sizes, product, terms) + local
        return self._write(node, _form(rows, safe(rest), safe(error)), local)

    def matmul(self, node: Node) -> bool:
        """A constant matrix on the right, scores of queries and keys, or values mixed by attention."""
        left, right = node.inputs
        x, weights = self._forms.get(left), self._constant(right)
        if x is not None and weights is not None and weights.ndim == 2:
            return self.linear(node, x, weights, np.matmul, len(weights), None)
        y = self._forms.get(right)
        if x is not None and y is not None:
            return self._see(node, x.rounded, y.rounded)
        softmax = self._writer.get(left)
        if y is not None and softmax is not None and softmax.op == "Softmax" and left in self._weights:
            return self._mix(node, self._weights.pop(left), y)
        return False

    def _see(self, node: Node, *arguments: Rounded) -> bool:
        """Scores and weights, by their ends only; they have no forms.

        If the network is undefined, for example by a division by 0, an end is infinite.
        """
        found = rounding_rule(node.op, self._ulps, FLOAT32)(node, arguments)
        if not (np.isfinite(found.lower).all() and np.isfinite(found.upper).all()):
            raise InvalidProof(f"the scores {node.output!r} have no finite bounds")
        self._weights[node.output] = found
        return True

    def scaled(self, node: Node) -> bool:
        """Scores times a constant, or divided by one."""
        factor = self._constant(node.inputs[1])
        if node.inputs[0] not in self._weights or factor is None or factor.size != 1:
            return False
        exact = Rounded(factor, factor, np.zeros_like(factor))
        return self._see(node, self._weights.pop(node.inputs[0]), exact)

    def softmax(self, node: Node) -> bool:
        """The weights of attention, along the last axis."""
        if node.inputs[0] not in self._weights:
            return False
        if node.integer("axis") != len(self.network.shapes[node.output]) - 1:
            raise InvalidProof("the softmax does not run along the keys")
        return self._see(node, self._weights.pop(node.inputs[0]))

    def _mix(self, node: Node, weights: Rounded, values: Form) -> bool:
        most, wrong = np.clip(weights.upper, 0.0, None), weights.error
        if most.ndim < 2 or most.shape[:-2] != values.size.shape[:-2]:
            raise InvalidProof("the weights and the values have different heads")
        count = most.shape[-1]
        route = weights.lower.argmax(axis=-1)[..., None]
        self.routes[node.output] = route
        others = most.copy()
        np.put_along_axis(others, route, 0.0, axis=-1)
        share = safe(others.sum(axis=-1, keepdims=True) * (1.0 + 2.0 * gamma(count)))

        def leak(size: Floats) -> Floats:
            return safe(safe_product(others, size, np.matmul, count) + share * _taken(size, route))

        floats = values.floats
        local = leak(floats) + safe_product(wrong, floats, np.matmul, count)
        mixed = safe_product(safe(most + wrong), floats, np.matmul, count)
        local = local + dot_rounding(count, mixed, FLOAT32)
        real = leak(values.size)
        rest = safe(_taken(values.rest, route) + real)
        error = safe(_taken(values.error, route) + local + real)
        return self._write(node, _form(_taken(values.rows, route), rest, error), safe(local))

    def add(self, node: Node) -> bool:
        """A constant added, or two forms."""
        given = [form for name in node.inputs if (form := self._forms.get(name)) is not None]
        constants = [array for name in node.inputs if (array := self._constant(name)) is not None]
        if len(given) + len(constants) != 2 or not given:
            return False
        x, shape = given[0], self.network.shapes[node.output]
        if any(form.size.shape != shape for form in given):
            return False
        if constants:
            rows = x.rows.copy()
            rows[0] += constants[0]
            changed, rest, error = abs(rows[0]), x.rest, x.error
        else:
            y = given[1]
            rows, rest, error = x.rows + y.rows, x.rest + y.rest, x.error + y.error
            changed = abs(rows[0]) + _reach(rows)
        found = _form(rows, safe(rest + _FLOAT64 * changed + TINY), error)
        largest = safe(found.size + error)
        local = infinite_beyond(largest, safe(UNIT_ROUNDOFF * largest + TINY), FLOAT32)
        return self._write(node, replace(found, error=safe(error + local)), local)

    def move(self, node: Node) -> bool:
        """Numbers moved within the tensor; its batch dimension of 1 stays in front."""
        x, shape = self._forms.get(node.inputs[0]), self.network.shapes[node.output]
        if x is None or (node.op == "Transpose" and node.integers("perm")[0] != 0):
            return False
        rows = _moved(node, x.rows, shape, ahead=1)
        return self._write(
            node, Form(rows, *(_moved(node, e, shape) for e in (x.rest, x.error, x.size))), None
        )

    def gemm(self, node: Node) -> bool:
        """x ↦ Wx + b."""
        x, weights = self._forms.get(node.inputs[0]), self._constant(node.inputs[1])
        bias = self._bias(node)
        plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
        if x is None or weights is None or not plain:
            return False
        return self.linear(node, x, weights, gemm_product(node), x.size.shape[1], bias)

    def _bias(self, node: Node) -> Floats | None:
        if len(node.inputs) < 3 or not node.inputs[2]:
            return None
        bias = self._constant(node.inputs[2])
        if bias is None:
            raise InvalidProof("a bias is not constant")
        return bias

    def conv(self, node: Node) -> bool:
        """Patches of the image: a convolution that reads the input."""
        x, weights = self._forms.get(node.inputs[0]), self._constant(node.inputs[1])
        if node.inputs[0] != self.network.input or x is None or weights is None:
            return False
        bias = self._bias(node)
        column = None if bias is None else bias.reshape(1, -1, *(1,) * (x.size.ndim - 2))
        return self.linear(node, x, weights, conv_product(node), int(np.prod(weights.shape[1:])), column)

    def relu(self, node: Node) -> bool:
        """ReLUs in pairs that the next layer cancels, checked on the weights.

        In float32, let the exact affine map of what comes in be (ζ, −ζ), and η the rounding of the nodes
        that compute it. ReLU gives (ReLU(ζ), ReLU(−ζ)) + θ with |θ| <= |η|, that is half of what comes in,
        |ζ|/2 that cancels, and θ − η/2.
        """
        x = self._forms.get(node.inputs[0])
        rounding = self._opposite(node.inputs[0])
        readers = self._readers.get(node.output, ())
        if x is None or rounding is None or not readers or node.output == self.network.output:
            return False
        for reader in readers:
            weights = self._constant(reader.inputs[1]) if reader.op == "MatMul" else None
            if weights is None or reader.inputs[0] != node.output or not _opposes(weights, axis=0):
                return False
        form = Form(0.5 * x.rows, 0.5 * x.rest + TINY, x.error, x.size)
        return self._write(node, form, safe(1.5 * rounding))

    def _opposite(self, name: str) -> Floats | None:
        """The rounding of a tensor that is x·U + b, if the second halves of U and b are minus the first."""
        node = self._writer.get(name)
        rounding: Floats = np.zeros(1)
        if node is not None and node.op == "Add":
            constants = [c for n in node.inputs if (c := self._constant(n)) is not None]
            others = [n for n in node.inputs if n not in self.network.constants]
            if len(constants) != 1 or len(others) != 1 or not _opposes(constants[0], axis=-1):
                return None
            rounding, node = self.local[name], self._writer.get(others[0])
        weights = self._constant(node.inputs[1]) if node is not None and node.op == "MatMul" else None
        if node is None or weights is None or weights.ndim != 2 or not _opposes(weights, axis=1):
            return None
        return safe(rounding + self.local[node.output])

    def affine(self, constraint: Linear) -> tuple[list[Fraction], Fraction]:
        """Σ d_j·y_j of a constraint: the numbers of its form, and what is left."""
        form = self._forms[self.network.output]
        rows = form.rows.reshape(len(form.rows), -1)
        sums, rest = [Fraction(0)] * len(rows), Fraction(0)
        for j, d in constraint.outputs:
            sums = [s + d * Fraction(v) for s, v in zip(sums, rows[:, j].tolist(), strict=True)]
            rest += abs(d) * Fraction(float(form.rest.reshape(-1)[j]))
        return sums, rest

    def lower(self, constraint: Linear, box: Box) -> Fraction:
        """A lower bound on the left side of a constraint minus its bound."""
        sums, rest = self.affine(constraint)
        inputs = sum(
            (c * (box.lower if c > 0 else box.upper)[i] for i, c in constraint.inputs), Fraction(0)
        )
        return sums[0] - sum(map(abs, sums[1:]), rest) + inputs - constraint.bound

    def error(self, constraint: Linear) -> Fraction:
        """How far float32 may take the left side of a constraint from the affine function of the rows.

        Theorem. Let x̂ be what float32 computes. Every node that counts is an affine map at what comes in,
        but for η with |η| <= `local`. So the output is the affine function of the input, and each η as
        the nodes behind it pass it on: with the transposed maps, from the output back.

        The same bounds x̂ − x, x being the real values of all tensors: attention passes it on from the token
        of the route, but for others·(|x̂_j − x_j| + |x̂_π − x_π|), which the leak in `local` exceeds; what
        ReLUs in pairs do not pass on cancels for both.
        """
        ends = outward([d for _, d in constraint.outputs])
        start = np.zeros((2, *self.network.output_shape))
        for k, (j, _) in enumerate(constraint.outputs):
            start[0].flat[j] += ends.lower[k]
            start[1].flat[j] += ends.upper[k]
        if len({j for j, _ in constraint.outputs}) < len(constraint.outputs):
            raise InvalidProof("a constraint names an output twice")
        slopes = {self.network.output: Interval(start[0], start[1])}
        found = Fraction(0)
        for node in reversed(self.network.nodes):
            slope = slopes.pop(node.output, None)
            if slope is None:
                continue
            if node.output in self.local:
                bound = _felt(slope.magnitude, self.local[node.output])
                if not np.isfinite(bound):
                    raise InvalidProof("float32 evaluation may overflow on this box")
                found += Fraction(bound)
            for name, passed in self._back(node, slope):
                if name != self.network.input and name not in self.network.constants:
                    slopes[name] = add(slopes[name], passed) if name in slopes else passed
        return found

    def _back(self, node: Node, slope: Interval) -> list[tuple[str, Interval]]:
        """The slopes of the tensors that a node reads, if its output has the slope `slope`."""
        source, shape = node.inputs[0], self.network.shapes[node.inputs[0]]
        if node.op == "Conv":
            return []  # it reads the input
        if node.op == "Add":
            return [(name, slope) for name in node.inputs]
        if node.op == "Relu":
            return [(source, slope.map(lambda end: 0.5 * end))]
        if node.op == "Reshape":
            return [(source, slope.map(lambda end: end.reshape(shape)))]
        if node.op == "Transpose":
            turned = np.argsort(node.integers("perm"))
            return [(source, slope.map(lambda end: end.transpose(turned)))]
        if node.output in self.routes:
            return [(node.inputs[1], _given_back(slope, self.routes[node.output], self.network, node))]
        weights = self._constant(node.inputs[1])
        assert weights is not None
        back = weights if node.op == "Gemm" and node.integer("transB") else weights.T
        return [(source, bilinear(slope, point(back), np.matmul, len(back)))]


def _felt(slope: Floats, error: Floats) -> float:
    """Σ slope·error, rounded up; ∞ if an error is ∞."""
    with np.errstate(all="ignore"):
        products = safe(slope * error)
        return float(safe(products.sum() * (1.0 + 2.0 * gamma(products.size + 1))))


def _has_batch(shape: tuple[int, ...]) -> bool:
    return len(shape) >= 2 and shape[0] == 1


def _of_box(network: Network, box: Box) -> Form:
    """The input: one row for each interval that is not a point."""
    if not _has_batch(network.input_shape) or box.size != network.input_size:
        raise InvalidProof("the input has no leading batch dimension of 1")
    lower, upper = box_floats(box)
    centre = 0.5 * lower + 0.5 * upper
    radius = np.where(lower == upper, 0.0, up(np.maximum(up(centre - lower), up(upper - centre))))
    wide = np.flatnonzero(radius)
    if (1 + len(wide)) * box.size > MOST_NUMBERS:
        raise InvalidProof(f"{len(wide):,} inputs are too many for affine forms")
    rows = np.zeros((1 + len(wide), box.size))
    rows[0], rows[1 + np.arange(len(wide)), wide] = centre, radius[wide]
    nothing = np.zeros(network.input_shape)
    return _form(rows.reshape(-1, *network.input_shape), nothing, nothing)


def _taken(array: Floats, route: NDArray[np.intp]) -> Floats:
    """For each row of attention the row of `array` [(forms,) …, tokens, width] that its route names."""
    return np.take_along_axis(array, route[(None,) * (array.ndim - route.ndim)], axis=-2)


def _given_back(slope: Interval, route: NDArray[np.intp], network: Network, node: Node) -> Interval:
    """Each row's slope added to that of the token that it takes."""
    tokens = network.shapes[node.inputs[1]][-2]
    chosen = (route == np.arange(tokens)).astype(np.float64)  # [1, …, rows, tokens]
    return bilinear(point(np.swapaxes(chosen, -1, -2)), slope, np.matmul, chosen.shape[-2])


def _moved(node: Node, part: Floats, shape: tuple[int, ...], ahead: int = 0) -> Floats:
    """A tensor, or many of them along an axis `ahead`, with its numbers moved."""
    if node.op == "Transpose":
        return part.transpose(*range(ahead), *(ahead + axis for axis in node.integers("perm")))
    return part.reshape(*part.shape[:ahead], *shape)


def _opposes(array: Floats, axis: int) -> bool:
    """Whether the second half along an axis is minus the first."""
    if not array.ndim or array.shape[axis] % 2:
        return False
    first, second = np.split(array, 2, axis=axis)
    return bool(np.array_equal(second, -first))


_FORMS: Mapping[str, Callable[[RoutedNetwork, Node], bool]] = MappingProxyType(
    {
        "Add": RoutedNetwork.add,
        "Conv": RoutedNetwork.conv,
        "Div": RoutedNetwork.scaled,
        "Gemm": RoutedNetwork.gemm,
        "MatMul": RoutedNetwork.matmul,
        "Mul": RoutedNetwork.scaled,
        "Relu": RoutedNetwork.relu,
        "Reshape": RoutedNetwork.move,
        "Softmax": RoutedNetwork.softmax,
        "Transpose": RoutedNetwork.move,
    }
)


def routed_bound(network: Network, ulps: int) -> tuple[LowerBound, LowerBound]:
    """The lower bound on a constraint over the reals, and the bound on its error in float32."""
    routed = cache(lambda box: RoutedNetwork(network, box, ulps))
    return (
        lambda constraint, box: routed(box).lower(constraint, box),
        lambda constraint, box: routed(box).error(constraint),
    )


def rounding_by_routing(network: Network, ulps: int) -> LowerBound | None:
    """The bound on a constraint's error in float32, if attention is between residual sums; else None.

    The depth of such networks multiplies a bound that is computed layer by layer.
    """
    sums = [n for n in network.nodes if n.op == "Add" and not any(i in network.constants for i in n.inputs)]
    if not sums or not any(node.op == "Softmax" for node in network.nodes):
        return None
    error = routed_bound(network, ulps)[1]
    return lambda constraint, box: error(constraint, box)


class FixedRouting(CertificateKind):
    """`unsat` for transformers: layers of attention and of ReLUs in cancelling pairs, with residual sums.

    Theorem. Attention writes Z_i = Σ_j a_ij·V_j with weights that add up to 1, so for any token π it is
    V_π + Σ_{j≠π} a_ij·(V_j − V_π). If over the box the score of π exceeds the others by at least g, every
    other weight is at most e^−g, and Z_i is V_π but for (n − 1)·e^−g·max_j |V_j − V_π|. Pairs of ReLUs
    cancel, V·(ReLU(z) − ReLU(−z)) = V·z, which is checked on the weights. So the network is an affine
    function of the input and a remainder. Affine forms, with one number for each input, follow it layer by
    layer; their reach bounds the queries and keys of the next layer, and so its gaps (see
    `lemmas/routing`). On a box with half-widths r, a constraint whose form is c + a·(x − x₀) is at least
    c − |a|·r less the remainder.

    In float32 the affine function is the same. What each node may round counts as the affine maps behind it
    pass it on, computed from the output back. The data is empty: the checker derives everything from the
    files.
    """

    name: ClassVar[str] = "fixed-routing"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint by its affine form."""
        read_data(data, NoData)
        return margins(problem, *routed_bound(problem.network, problem.ulps))
