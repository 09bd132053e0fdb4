"""Proofs that rest on a proof of another kind: of a network rewritten, and of one behind a locked gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import CertificateKind, Natural, Problem, Proven, read_data
from dokimos.checker.kinds import CERTIFICATES
from dokimos.checker.lemmas.constraints import affine_layer, before, output_errors
from dokimos.checker.lemmas.piecewise_linear import (
    ZERO,
    AffineExpression,
    PiecewiseLinear,
    combine,
    piecewise_linear,
    variable,
)
from dokimos.core.errors import InputError, InvalidProof, about
from dokimos.networks.chain import Step, as_chain
from dokimos.networks.graph import Network, Node
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import TINY
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Label

# A network that computes the same function as another one


class RewrittenData(Struct, frozen=True, forbid_unknown_fields=True):
    """The base network's file, the steps that turn it into the shipped network, and the base's proof."""

    base: bytes
    steps: tuple[Step, ...]
    kind: str
    data: dict[str, Any]


class Rewritten(CertificateKind):
    """`unsat` for a network that exact steps make from a base network, whose proof is given.

    Theorem. If every step keeps the function over the reals (each says why), the network that they make
    from the base computes the base's function; so if it has the weights of the shipped file, number for
    number, whatever is proven of the base over the reals, margin included, is true of the shipped network.

    In float32 the steps may change the rounding: the margin is what the rounding bound of the shipped
    network's outputs leaves of the margin over the reals.
    """

    name: ClassVar[str] = "rewritten"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Replay the steps, compare the weights, and prove the base."""
        given = read_data(data, RewrittenData)
        known = given.kind in CERTIFICATES and given.kind != self.name
        if not known or CERTIFICATES[given.kind].proves is not Label.UNSAT:
            raise InvalidProof(f"a certificate of kind {given.kind!r} cannot prove the base network")
        base = read_onnx(given.base, name="base network")
        chain = as_chain(base)
        try:
            for step in given.steps:
                chain = step.apply(chain)
        except InputError as error:
            raise InvalidProof(f"a step cannot be replayed: {error}") from error
        if not chain.equals(as_chain(problem.network)):
            raise InvalidProof("the steps do not turn the base network into the shipped network")
        proven = CERTIFICATES[given.kind].prove(replace(problem, network=base), given.data)
        return Proven(proven.real, problem.in_floats(lambda: _margin_after_rounding(problem, proven.real)))


def _margin_after_rounding(problem: Problem, margin: Fraction) -> Fraction:
    """The margin minus the largest rounding of any constraint: which of them fails is not known here."""
    error = output_errors(problem)
    errors = (
        error(constraint, case.box)
        for case in problem.property.cases
        if not case.box.is_empty
        for conjunction in case.any_of
        for constraint in conjunction
    )
    left = margin - max(errors, default=Fraction(0))
    if left <= 0:
        raise InvalidProof("rounding may undo the margin of the rewritten network")
    return left


# A gate that no input opens, because its parity equations contradict each other


ONE = Fraction(1)


class EquationData(Struct, frozen=True, forbid_unknown_fields=True):
    """The sum of these bits is odd, or even."""

    bits: tuple[Natural, ...]
    odd: bool


class ParityLockData(Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of the gate, and why it stays shut; then the proof of the network without the gate.

    `bits` names ReLUs, numbered from 0 in the order of the network up to the gate; equations name bits by
    their places in it. `contradiction` lists equations that sum to 0 = 1; `penalty` is 2λ.
    """

    gate: Natural
    bits: tuple[Natural, ...]
    equations: tuple[EquationData, ...]
    contradiction: tuple[Natural, ...]
    penalty: Fraction
    kind: str
    data: dict[str, Any]


class ParityLockProof(CertificateKind):
    """`unsat` for a network that adds multiples of a gate max(0, g) to one that is proven without it.

    Theorem. Let g(b) = θ − Σ_e (1 − v_e) − 2λ·Σ_j min(b_j, 1 − b_j) with all b_j in [0, 1], where v_e is
    the triangle wave t of S_e, the sum of the bits of equation e (or 1 − t, where that sum is to be even):
    t is 0 at even and 1 at odd integers and affine between. If equations among these sum to 0 = 1 over
    GF(2), then g <= θ − min(1, 2λ). For let r_j be the nearest integer to b_j and d_j = |b_j − r_j|. The
    r_j break one of those equations, so v_e is 0 there, and since t has slopes ±1, v_e <= D, the sum of d_j
    over the bits of e. All terms are >= 0, so θ − g >= max(0, 1 − D) + 2λ·D >= min(1, 2λ).

    If g < 0 on the box, the gate is 0 there, and the network computes what it computes without it. So
    whatever is proven of that, margin included, is true of the network. Two forms are known: the output is
    A + W·(the gate), and without the gate it is A; or the output is an affine layer that reads rectified
    values, of which the gate is one, and without the gate its weights are 0.

    In float32, each affine node adds noise as in `piecewise_linear`, and `_Recogniser` bounds what all
    noise adds to g. Where that leaves g below 0, the gate is exactly 0 in float32, too, and so is W·0;
    adding it may flush a tiny sum to zero, nothing more. All noise may be 0, which is the real network: so
    what is shown for float32 on all boxes is shown for the reals.
    """

    name: ClassVar[str] = "parity-lock"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Show that the gate stays shut, then prove the network without it."""
        given = read_data(data, ParityLockData)
        if given.kind not in CERTIFICATES or given.kind == self.name:
            raise InvalidProof(f"a certificate of kind {given.kind!r} cannot prove the base network")
        kind = CERTIFICATES[given.kind]
        if kind.proves is not Label.UNSAT:
            raise InvalidProof(f"a certificate of kind {given.kind!r} cannot prove the base network")
        _require_contradiction(given)
        argument, rest = _without_gate(problem.network, given.gate)
        lock = before(problem.network, argument)
        boxes = {box for box, _ in problem.property.questions()}

        def shut_in_float32() -> Fraction:
            for box in boxes:
                rounding = rounding_bounds(lock, box.lower, box.upper, ulps=problem.ulps)
                _require_shut(piecewise_linear(lock, rounding=rounding), given)
            return ZERO

        is_shut = bool(boxes) and problem.in_float32(shut_in_float32) is not None
        if not is_shut:
            _require_shut(piecewise_linear(lock), given)
        asked = None if problem.asks_floats() else problem.asked
        proven = kind.prove(replace(problem, network=rest, asked=asked), given.data)
        if not is_shut or proven.floats is None:
            return Proven(proven.real, None)
        return Proven(proven.real, proven.floats - _flushed(problem))


def _flushed(problem: Problem) -> Fraction:
    """How much one more result that is flushed to zero in every output may change a constraint."""
    factors = (
        sum((abs(d) for _, d in constraint.outputs), ZERO)
        for _, conjunction in problem.property.questions()
        for constraint in conjunction
    )
    return max(factors, default=ZERO) * Fraction(TINY)


def _without_gate(network: Network, gate: int) -> tuple[str, Network]:
    """The tensor of which the gate is the rectified entry number `gate`, and the network without it."""
    last = network.nodes[-1]
    if last.output != network.output:
        raise InvalidProof("the last node does not write the output")
    if last.op == "Add":
        kept, added = last.inputs
        effect = _writer(network, added)
        weights, biases = _weights(network, effect)
        if biases.any() or weights.shape[1] != 1 or gate:
            raise InvalidProof("the term that is added to the output is not a multiple of one gate")
        if network.shapes[kept] != network.shapes[last.output]:
            raise InvalidProof("the gate is not added to the output of a network")
        return _rectified(network, effect), before(network, kept)
    weights, _ = _weights(network, last)
    if gate >= weights.shape[1]:
        raise InvalidProof(f"there is no gate {gate}")
    stored = np.array(network.constants[last.inputs[1]])
    stored[(slice(None), gate) if last.integer("transB") else gate] = 0
    name = "weights without the gate"
    if name in network.shapes:
        raise InvalidProof(f"the network already has a tensor {name!r}")
    changed = replace(last, inputs=(last.inputs[0], name, *last.inputs[2:]))
    rest = replace(
        network,
        nodes=(*network.nodes[:-1], changed),
        constants={**network.constants, name: stored},
        shapes={**network.shapes, name: stored.shape},
    )
    return _rectified(network, last), rest


def _weights(network: Network, node: Node) -> tuple[Any, Any]:
    if node.op != "Gemm":
        raise InvalidProof("the gate is not read by an affine layer")
    return affine_layer(network, node)


def _rectified(network: Network, reader: Node) -> str:
    """The tensor whose rectified values the node reads."""
    relu = _writer(network, reader.inputs[0])
    if relu.op != "Relu":
        raise InvalidProof("the gate is not rectified")
    return relu.inputs[0]


def _writer(network: Network, tensor: str) -> Node:
    for node in network.nodes:
        if node.output == tensor:
            return node
    raise InvalidProof("the gate is not computed by the network")


def _require_contradiction(given: ParityLockData) -> None:
    """Raise InvalidProof unless the named equations sum to 0 = 1 over GF(2)."""
    if any(
        len(set(e.bits)) < len(e.bits) or max(e.bits, default=-1) >= len(given.bits)
        for e in given.equations
    ):
        raise InvalidProof("an equation names a bit twice, or a bit that does not exist")
    chosen = set(given.contradiction)
    if len(chosen) < len(given.contradiction) or max(chosen, default=-1) >= len(given.equations):
        raise InvalidProof("the contradiction names an equation twice, or an equation that does not exist")
    left: set[int] = set()
    for number in chosen:
        left ^= set(given.equations[number].bits)
    if left or sum(given.equations[number].odd for number in chosen) % 2 == 0:
        raise InvalidProof("the equations of the contradiction do not sum to 0 = 1")


def _require_shut(form: PiecewiseLinear, given: ParityLockData) -> None:
    """Raise InvalidProof unless the gate's argument is below 0 for all inputs and all noise of the form."""
    most = _Recogniser(form, given).most()
    if most >= 0:
        raise InvalidProof(f"the gate's argument is only known to be at most {about(most)}, not below 0")


@dataclass(frozen=True)
class _Rectified:
    """A variable that is within `noise` of max(0, e), for an e that is affine without noise."""

    value: AffineExpression
    noise: Fraction


class _Recogniser:
    """Finds the terms of g among the ReLUs of a network, and bounds what noise adds to them.

    Theorem. For v >= 0, max(0, 1 − v) lies in [0, 1]; with noise n in its argument, in [0, 1 + η] with
    η = |n|. The rectified value of a number in there, with noise n, is within |n| of it, and in
    [0, 1 + η + |n|]. In general |max(0, e + n) − max(0, e)| <= |n|. Moving a bit into [0, 1] by η moves
    each S_e that has it, and so v_e, by at most η, and min(b, 1 − b) by at most η. What is said of t holds
    for any sum: beyond the last of its steps its slopes are ±1, too. The sums in v_e are those of
    rectified bits, off by their noise. All this is added to the bound of the theorem of `ParityLockProof`.
    """

    def __init__(self, form: PiecewiseLinear, given: ParityLockData) -> None:
        self._form = form
        self._given = given
        self._found: dict[AffineExpression, _Rectified] = {}
        #: η of every ReLU whose value lies in [0, 1 + η].
        self._bounded: dict[int, Fraction] = {}
        for number, inside in form.relus.items():
            clean, noise = self._clean(inside)
            self._found.setdefault(clean, _Rectified(variable(number), noise))
            if len(clean.variables) == 1:
                ((before, factor),) = clean.terms.items()
                if (clean.constant, factor) == (ONE, -ONE) and before in form.relus:
                    self._bounded[number] = noise
                elif (clean.constant, factor) == (ZERO, ONE) and before in self._bounded:
                    self._bounded[number] = self._bounded[before] + noise
        self._numbers = tuple(form.relus)

    def _clean(self, e: AffineExpression) -> tuple[AffineExpression, Fraction]:
        """The expression without its noise, and a bound on the noise."""
        noise = self._form.noise
        amount = sum((abs(e.factor(v)) * noise[v] for v in e.variables if v in noise), ZERO)
        return e.without(noise) if noise else e, amount

    def _rectified(self, inside: AffineExpression) -> _Rectified:
        found = self._found.get(inside)
        if found is None:
            raise InvalidProof("a part of the lock is not among the ReLUs of the network")
        return found

    def _bit(self, name: int) -> tuple[AffineExpression, Fraction]:
        """A bit, and by how much it may be above 1."""
        if name >= len(self._numbers) or self._numbers[name] not in self._bounded:
            raise InvalidProof("a bit is not a ReLU that is known to lie between 0 and 1")
        return variable(self._numbers[name]), self._bounded[self._numbers[name]]

    def most(self) -> Fraction:
        """An upper bound of the gate's argument, for all inputs and all noise."""
        penalty = self._given.penalty
        if penalty < 0:
            raise InvalidProof("the penalty is negative")
        bits = [self._bit(name) for name in self._given.bits]
        carried = [self._rectified(bit) for bit, _ in bits]
        top, added = self._uncapped()
        parts = [(ONE, top)]
        for (bit, eta), copy in zip(bits, carried, strict=True):
            upper_half = self._rectified(combine([(Fraction(2), bit)], -ONE))
            parts += [(penalty, copy.value), (-penalty, upper_half.value)]
            added += penalty * (eta + copy.noise + upper_half.noise)
        for equation in self._given.equations:
            total = combine((ONE, bits[j][0]) for j in equation.bits)
            wave = [(ONE, carried[j].value) for j in equation.bits]
            added += sum((bits[j][1] + carried[j].noise for j in equation.bits), ZERO)
            for k in range(1, len(equation.bits)):
                step = self._rectified(combine([(ONE, total)], Fraction(-k)))
                wave.append((Fraction(2 * (-1) ** k), step.value))
                added += 2 * step.noise
            missing = combine(((-c, e) for c, e in wave), ONE) if equation.odd else combine(wave)
            parts.append((ONE, missing))
        theta = combine(parts)
        if theta.terms:
            raise InvalidProof("the gate's argument is not that of the lock")
        return theta.constant - min(ONE, penalty) + added

    def _uncapped(self) -> tuple[AffineExpression, Fraction]:
        """An expression that the gate's argument exceeds by no more than the noise returned with it.

        The argument c − a·max(0, e) with a >= 0 is at most c − a·e.
        """
        if self._given.gate >= len(self._form.outputs):
            raise InvalidProof(f"there is no gate {self._given.gate}")
        top, noise = self._clean(self._form.outputs[self._given.gate])
        if len(top.variables) == 1:
            ((number, factor),) = top.terms.items()
            if factor < 0 and number in self._form.relus:
                inside, more = self._clean(self._form.relus[number])
                return combine([(factor, inside)], top.constant), noise - factor * more
        return top, noise
