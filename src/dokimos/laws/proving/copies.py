"""A law on a network as one question about copies of it side by side, proven by the kind `linear`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dokimos.checker.base import Problem
from dokimos.checker.lemmas.relu_layers import ReluLayer, relu_layers
from dokimos.checker.linear.proof import LinearProof
from dokimos.core.errors import DokimosError, InputError, UnsupportedOp
from dokimos.laws.proving.expressions import Refusal, float32_end
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.question import LinearCover
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import Floats
from dokimos.networks.writing.builder import ModelBuilder, NotFloat32
from dokimos.suites.lower import Lowered, lower
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point, Property, Signature

#: What a constraint says of inputs, and the constraint.
_Placed = tuple[dict[int, Fraction], Linear]


@dataclass(frozen=True)
class CopiesOfNetwork:
    """What a law says of a network, as a property of one network of several copies of it."""

    closer: NetworkCloser

    @cached_property
    def made(self) -> tuple[Network, ProductInstance]:
        """The copies, and the property. Raises Refusal where the law cannot be said so."""
        question, reach = self.closer.question, self.closer.reach
        asked = relational_property(question, question.zone, reach.network)
        if asked is None:
            raise Refusal("the set has no case")
        try:
            lowered = lower(without_strict(asked), {each.name: reach.content for each in asked.networks})
            made = product_instance(reach.network, lowered)
            return read_onnx(made.network, name="copies of the network"), made
        except (InputError, UnsupportedOp) as error:
            raise Refusal(str(error)) from error

    def check(self, cover: LinearCover) -> bool:
        """Check that the law holds over the reals; and say whether it does in float32 too.

        Theorem. At a case that violates the law, the copies are unsafe (`relational_property`, `lower`,
        `product_instance`); so if the property is `unsat`, there is none. In float32, score a of a record
        is off by at most e_a, everywhere. What the law forbids of float32 scores is what the constraints
        say of them; so at a case that violates it in float32, every constraint Σ f·score + … <= b of some
        conjunction holds over the reals but for Σ |f|·e. If each conjunction fails by more than the largest
        of these at every input, there is no such case.

        Raises InvalidProof, or Refusal.
        """
        network, made = self.made
        proven = LinearProof().prove(Problem(network, made.property), cover.data)
        error = self.closer.reach.rounding
        if error is None:
            return False
        scores = [Fraction(each) for each in error.tolist()] * len(self.closer.question.records)
        off = (
            sum((abs(f) * scores[j] for j, f in each.outputs if j < len(scores)), Fraction(0))
            for _, conjunction in made.property.questions()
            for each in conjunction
        )
        return proven.real > max(off)


# Copies of a ReLU network side by side, as one network of plain layers: what any verifier reads
#
# Inputs of two copies that a property bounds against each other become one of them, and their difference:
# "at least one more" is then a bound on an input, not a condition on outputs.


@dataclass(frozen=True)
class ProductInstance:
    """One network, as an ONNX file, with one property of it.

    `inputs` has, for every input of the copies, one after the other, the numbers of the inputs of the
    network that it is the sum of.
    """

    network: bytes
    property: Property
    inputs: tuple[tuple[int, ...], ...]

    def columns(self, points: Floats) -> Floats:
        """The inputs of the copies, one copy after the other, at inputs of the network, row by row."""
        return np.stack([points[:, list(parts)].sum(axis=1) for parts in self.inputs], axis=1)

    def point(self, columns: Sequence[Fraction]) -> Point:
        """The input of the network at which the inputs of the copies are these."""
        known: dict[int, Fraction] = {}
        for parts, value in sorted(zip(self.inputs, columns, strict=True), key=lambda each: len(each[0])):
            known[parts[-1]] = value - sum((known[k] for k in parts[:-1]), Fraction(0))
        return tuple(known[k] for k in range(len(known)))


def product_instance(network: Network, lowered: Lowered) -> ProductInstance:
    """What several copies of a network were lowered to, as affine layers with ReLUs where there are such.

    Theorem. Let Q be the property of `lowered`, and z an input of its network. Where Q bounds z_b against
    z_a in every conjunction, z_a − z_b <= c, let d = z_b − z_a be an input instead of z_b: the points of
    the box of Q that are unsafe are those with a d in [max(−c, l_b − u_a), u_b − l_a] (these ends rounded
    outward to float32), l_b <= z_a + d <= u_b, and z_a + d for z_b in everything else. So for one z_b after
    the other; z_a may be such a sum itself.

    The layers of the copies are the blocks of one layer each; the first reads the inputs that add up to
    that of the copy. An input z >= l that is passed on is max(0, z − l) behind the first layer, which
    stays as it is behind further ReLUs, plus l in the last. So this is the same function, over the reals.

    Where the network has no such layers, or a number would not be one of float32, nothing is changed.
    """
    plain = ProductInstance(lowered.network, lowered.property, tuple((k,) for k in lowered.links))
    try:
        layers = relu_layers(network)
        if any(layer.noise.any() or layer.inexact is not None for layer in layers):
            return plain
        return _Differences(lowered, network.output_size).instance(layers, network.input_size)
    except (DokimosError, NotFloat32, Refusal):
        return plain


@dataclass(frozen=True)
class _Differences:
    lowered: Lowered
    classes: int

    @property
    def _first_passed(self) -> int:
        return self.lowered.property.output_size - len(self.lowered.passed)

    def _inputs_of(self, constraint: Linear) -> dict[int, Fraction] | None:
        """The inputs that a constraint is about, where it is about nothing else."""
        passed, first = self.lowered.passed, self._first_passed
        if any(j < first for j, _ in constraint.outputs):
            return None
        return {passed[j - first]: factor for j, factor in constraint.outputs}

    def _bounded(self) -> dict[int, tuple[int, Fraction]]:
        """For inputs b that every conjunction bounds against another: that one, a, and c in a − b <= c."""
        common: dict[tuple[int, int], Fraction] | None = None
        for part in (part for case in self.lowered.property.cases for part in case.any_of):
            own: dict[tuple[int, int], Fraction] = {}
            for constraint in part:
                terms = self._inputs_of(constraint)
                if terms is not None and sorted(terms.values()) == [-1, 1]:
                    b, a = sorted(terms, key=lambda k: terms[k])
                    own[a, b] = min(own.get((a, b), constraint.bound), constraint.bound)
            shared = own if common is None else common
            common = {pair: max(c, shared[pair]) for pair, c in own.items() if pair in shared}
        found: dict[int, tuple[int, Fraction]] = {}
        for (a, b), c in sorted((common or {}).items()):
            bases = {base for base, _ in found.values()}
            if b not in found and b not in bases:
                found[b] = a, c
        return found

    def _box(self, box: Box, known: Mapping[int, tuple[int, Fraction]]) -> Box:
        lower, upper = list(box.lower), list(box.upper)
        for b, (a, c) in known.items():
            low = max(-c, box.lower[b] - box.upper[a])
            lower[b] = float32_end(low, up=False)
            upper[b] = max(lower[b], float32_end(box.upper[b] - box.lower[a], up=True))
        return Box(tuple(lower), tuple(upper))

    def instance(self, layers: tuple[ReluLayer, ...], width: int) -> ProductInstance:
        """The copies side by side."""
        known, (old,) = self._bounded(), self.lowered.property.networks
        size, outputs = self.lowered.property.input_size, self._first_passed
        boxes = [self._box(case.box, known) for case in self.lowered.property.cases]
        parts = [
            [self._conjunction(part, known, case.box, box) for part in case.any_of]
            for case, box in zip(self.lowered.property.cases, boxes, strict=True)
        ]
        passed = sorted({k for own in parts for part in own for inputs, _ in part for k in inputs})
        place = {k: outputs + number for number, k in enumerate(passed)}
        cases = tuple(
            Case(box, tuple(_placed(part, place, outputs) for part in own))
            for box, own in zip(boxes, parts, strict=True)
        )
        reads = tuple(_sum(k, known) for k in self.lowered.links)
        lows = [min(float(box.lower[k]) for box in boxes) for k in passed]
        content = _built(layers, width, reads, passed, lows, size)
        shapes = (1, size), (1, outputs + len(passed))
        signature = Signature(old.name, old.input_name, shapes[0], old.output_name, shapes[1])
        return ProductInstance(content, Property((signature,), cases), reads)

    def _conjunction(
        self, part: Conjunction, known: Mapping[int, tuple[int, Fraction]], old: Box, box: Box
    ) -> list[_Placed]:
        """The constraints, each with what it says of inputs, but for those that the box implies."""
        first = self._first_passed
        found: list[_Placed] = []
        limits = []
        for b in known:
            for sign, end in ((1, old.upper[b]), (-1, -old.lower[b])):
                limits.append((dict.fromkeys(_sum(b, known), Fraction(sign)), Linear((), (), end)))
        for constraint in part:
            inputs: dict[int, Fraction] = {}
            for j, factor in constraint.outputs:
                if j >= first:
                    k = self.lowered.passed[j - first]
                    for each in _sum(k, known):
                        inputs[each] = inputs.get(each, Fraction(0)) + factor
            own = {k: factor for k, factor in inputs.items() if factor}
            found.append((own, constraint))
        return [
            (inputs, each)
            for inputs, each in (*found, *limits)
            if any(j < first for j, _ in each.outputs) or not _is_implied(inputs, each.bound, box)
        ]


def _sum(k: int, known: Mapping[int, tuple[int, Fraction]]) -> tuple[int, ...]:
    """The inputs whose sum an input of the copies is: what it is bounded against, and a difference."""
    return (*_sum(known[k][0], known), k) if k in known else (k,)


def _placed(part: Sequence[_Placed], place: Mapping[int, int], outputs: int) -> Conjunction:
    """The constraints, with what they say of inputs said of outputs that pass these on."""
    made = []
    for inputs, each in part:
        own = [term for term in each.outputs if term[0] < outputs]
        terms = sorted([*own, *((place[k], factor) for k, factor in inputs.items())])
        made.append(Linear((), tuple(terms), each.bound))
    return tuple(made)


def _is_implied(inputs: Mapping[int, Fraction], bound: Fraction, box: Box) -> bool:
    most = sum((f * (box.upper[k] if f > 0 else box.lower[k]) for k, f in inputs.items()), Fraction(0))
    return most <= bound


def _built(
    layers: tuple[ReluLayer, ...],
    width: int,
    reads: Sequence[tuple[int, ...]],
    passed: Sequence[int],
    lows: Sequence[float],
    size: int,
) -> bytes:
    copies = len(reads) // width
    builder, last = ModelBuilder([size]), len(layers) - 1
    for number, layer in enumerate(layers):
        made, taken = layer.weights.shape
        weights = np.zeros((copies * made + len(passed), size))
        for copy in range(copies):
            rows = slice(copy * made, (copy + 1) * made)
            if number:
                weights[rows, copy * taken : (copy + 1) * taken] = layer.weights
            else:
                for column in range(width):
                    for k in reads[copy * width + column]:
                        weights[rows, k] = _exact_sum(weights[rows, k], layer.weights[:, column])
        for index, k in enumerate(passed):
            weights[copies * made + index, copies * taken + index if number else k] = 1.0
        shift = np.zeros(len(passed))
        if last > 0 and number in (0, last):
            shift = np.array(lows) if number else -np.array(lows)
        biases = np.concatenate([*[layer.biases] * copies, shift])
        builder = (builder.relu() if number else builder).affine(weights, biases)
        size = len(biases)
    return builder.build(size)


def _exact_sum(a: Floats, b: Floats) -> Floats:
    """a + b. Raises NotFloat32 where float64 rounds it: that might still give a float32 number."""
    found = a + b
    if ((found - a != b) | (found - b != a)).any():
        raise NotFloat32("a sum of weights is not a float64 number")
    return found
