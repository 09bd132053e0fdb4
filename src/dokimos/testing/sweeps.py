"""Sweeping a kind of proof: statements that it proves, changed in small ways, each judged by an oracle.

Most changes make a statement false. The checker may reject what is true, but whatever it accepts must be
true; the false statements that it rejects are counted.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker.base import CertificateKind
from dokimos.checker.check import check, prove
from dokimos.core.errors import DokimosError, InvalidProof
from dokimos.core.registry import Registry
from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth
from dokimos.suites.vnnlib.writer import exact_decimal
from dokimos.testing.statements import LabelStatement, kinds_with, repaired

# Small changes to statements that often make them false


Rng = np.random.Generator

#: Makes a mutant of a statement, with a generator and other statements to borrow proofs and networks from.
Mutator = Callable[[LabelStatement, Rng, Sequence[LabelStatement]], LabelStatement]


def _with_tensors(base: LabelStatement, change: Callable[[dict[str, Any]], None]) -> LabelStatement:
    model = onnx.load_from_string(base.network)
    arrays = {t.name: numpy_helper.to_array(t).copy() for t in model.graph.initializer}
    change(arrays)
    del model.graph.initializer[:]
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
    return replace(base, network=bytes(model.SerializeToString(deterministic=True)))


def _one_weight(base: LabelStatement, rng: Rng, change: Callable[[Any], Any]) -> LabelStatement:
    def apply(arrays: dict[str, Any]) -> None:
        name = sorted(arrays)[rng.integers(len(arrays))]
        flat = arrays[name].reshape(-1)
        at = rng.integers(len(flat))
        flat[at] = np.float32(change(flat[at]))

    return _with_tensors(base, apply)


def ulp(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """One weight or bias to the next float32."""
    towards = np.float32(rng.choice([-np.inf, np.inf]))
    return _one_weight(base, rng, lambda w: np.nextafter(w, towards))


def factor(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """One weight or bias times a number."""
    by = rng.choice([-1.0, 0.0, 0.5, 0.99, 1.01, 2.0, 8.0])
    return _one_weight(base, rng, lambda w: w * by)


def nudge(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """One weight or bias moved, by the size of a margin or more."""
    by = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-4, 0.5)
    return _one_weight(base, rng, lambda w: w + by)


def bias(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """A bias of the first or of the last layer moved: the common way to lose a margin."""

    def apply(arrays: dict[str, Any]) -> None:
        names = sorted((n for n in arrays if n.startswith("bias")), key=lambda n: int(n.split("_")[1]))
        array = arrays[names[rng.choice([0, -1])]]
        by = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-3.5, 0)
        array[rng.integers(len(array))] += np.float32(by)

    return _with_tensors(base, apply)


def swap_entries(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """Two entries of one tensor exchanged, as in a pair of biases."""

    def apply(arrays: dict[str, Any]) -> None:
        names = sorted(n for n in arrays if arrays[n].size > 1)
        flat = arrays[names[rng.integers(len(names))]].reshape(-1)
        i = rng.integers(len(flat) - 1)
        flat[i], flat[i + 1] = flat[i + 1], flat[i]

    return _with_tensors(base, apply)


def box(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """The box wider, narrower or elsewhere."""
    scale = Fraction(float(rng.choice([0.25, 1, 1.0625, 1.5, 4])))
    shift = Fraction(int(rng.integers(-3, 4)), 4)
    moved = []
    for low, high in base.bounds:
        middle, radius = (low + high) / 2 + shift, (high - low) / 2 * scale
        moved.append((middle - radius, middle + radius))
    return replace(base, bounds=tuple(moved))


def one_face(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """One face of the box moved out, or past the other (which leaves the box empty)."""
    at = int(rng.integers(len(base.bounds)))
    low, high = base.bounds[at]
    by = Fraction(float(rng.choice([-0.75, 2.0**-20, 0.0625, 0.5, 2.0])))
    changed = (low - by, high) if rng.random() < 0.5 else (low, high + by)
    return replace(base, bounds=(*base.bounds[:at], changed, *base.bounds[at + 1 :]))


def constraint(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """Another class, direction or bound."""
    k = int(rng.integers(1, base.outputs)) if base.outputs > 1 else 0
    level = exact_decimal(Fraction(int(rng.integers(-64, 65)), 2 ** int(rng.integers(5, 14))))
    choices = [
        f"(>= Y_0 Y_{k})",
        f"(> Y_0 Y_{k})",
        f"(< Y_0 Y_{k})",
        f"(<= Y_{k} Y_0)",
        f"(<= Y_0 (+ Y_{k} {level}))",
        f"(<= (+ Y_0 {level}) Y_{k})",
        f"(<= Y_0 {level})",
        f"(>= Y_{k} {level})",
        f"(or (and (<= Y_0 Y_{k})) (and (<= Y_0 {level})))",
        f"(and (<= Y_0 Y_{k}) (<= Y_0 {level}))",
        f"(and (<= Y_0 (+ Y_{k} 1.0)) (>= Y_0 {level}))",
        f"(<= Y_0 (+ Y_{k} X_0))",
        f"(<= (+ Y_0 X_0) (+ Y_{k} X_1))",
    ]
    if base.outputs == 1:  # nothing to compare it with but numbers and inputs
        choices = [f"({sign} Y_0 {other})" for sign in ("<=", "<", ">=", ">") for other in (level, "X_0")]
    return replace(base, unsafe=choices[rng.integers(len(choices))])


def relabel(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """The other label, with a proof of its kind taken from elsewhere."""
    if base.truth.label is Label.SAT:
        borrowed = _borrowed(rng, all_, Label.UNSAT)
        return replace(
            base, truth=replace(base.truth, label=Label.UNSAT, witness=None, certificate=borrowed)
        )
    point = tuple(low + (high - low) * Fraction(int(rng.integers(0, 5)), 4) for low, high in base.bounds)
    truth = replace(base.truth, label=Label.SAT, witness=point, certificate=Certificate("witness"))
    return replace(base, truth=truth)


def _borrowed(rng: Rng, all_: Sequence[LabelStatement], label: Label) -> Certificate:
    """The proof of one of them with that label; there may be none that is `sat`."""
    found = [s.truth.certificate for s in all_ if s.truth.label is label]
    return found[rng.integers(len(found))] if found else Certificate("witness")


def nodes(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """A ReLU left out, or one put in before the output."""
    model = onnx.load_from_string(base.network)
    chain = list(model.graph.node)
    places = [i for i, node in enumerate(chain[:-1]) if node.op_type == "Relu"]
    if places and rng.random() < 0.7:
        at = places[rng.integers(len(places))]
        chain[at + 1].input[0] = chain[at].input[0]
        del chain[at]
    else:
        before = f"before_{len(chain)}"
        chain[-1].output[0] = before
        chain.append(onnx.helper.make_node("Relu", [before], ["Y"]))
    del model.graph.node[:]
    model.graph.node.extend(chain)
    return replace(base, network=bytes(model.SerializeToString(deterministic=True)))


def data(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """Some other data of the proof; or another margin."""
    old = base.truth.certificate
    changed = dict(old.data)
    if changed and rng.random() < 0.7:
        name = sorted(changed)[rng.integers(len(changed))]
        changed[name] = _other_value(changed[name], rng)
    else:
        claims = {Semantics.REAL: Claim(proven=True, margin=Fraction(int(rng.integers(1, 100)), 100))}
        return replace(base, truth=replace(base.truth, claims=claims))
    return replace(base, truth=replace(base.truth, certificate=Certificate(old.kind, changed)))


def _other_value(value: Any, rng: Rng) -> Any:
    """Another value of the same shape: numbers scaled or moved, lists turned round or cut off.

    One part of an object or, more often than not, of a list is changed; sometimes all of a list's are.
    """
    if isinstance(value, dict) and value:
        name = sorted(value)[rng.integers(len(value))]
        return {**value, name: _other_value(value[name], rng)}
    if isinstance(value, list) and value:
        way, at = rng.random(), int(rng.integers(len(value)))
        if way < 0.2:
            return value[::-1]
        if way < 0.3:
            return value[:at]
        if way < 0.5:
            return [_other_value(one, rng) for one in value]
        return [*value[:at], _other_value(value[at], rng), *value[at + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool):
        return value + int(rng.choice([-1, 1]))
    try:
        number = Fraction(value)
    except (TypeError, ValueError):
        return value
    return str(number * Fraction(int(rng.integers(-1, 9)), 4) + Fraction(int(rng.integers(-1, 2)), 8))


def other_proof(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """The proof of another instance."""
    certificate = _borrowed(rng, all_, base.truth.label)
    return replace(base, truth=replace(base.truth, certificate=certificate))


def other_network(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """The network of another instance of the same sizes, often the twin's."""
    sizes = len(base.bounds), base.outputs
    fitting = [s for s in all_ if (len(s.bounds), s.outputs) == sizes and s.network != base.network]
    return replace(base, network=fitting[rng.integers(len(fitting))].network) if fitting else base


def witness(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """The witness moved: to the centre, out of the box, by an ulp, a little, to a corner."""
    if base.truth.witness is None:
        return bias(base, rng, all_)
    point = list(base.truth.witness)
    if not point:
        return bias(base, rng, all_)
    at = int(rng.integers(min(len(point), len(base.bounds))))
    low, high = base.bounds[at]
    way = rng.integers(6)
    if way == 0:
        point = [(a + b) / 2 for a, b in base.bounds]
    elif way == 1:
        point[at] = high + Fraction(1, 2**40)
    elif way == 2:
        point[at] = Fraction(float(np.nextafter(np.float32(float(point[at])), np.float32(np.inf))))
    elif way == 3:
        point[at] += (high - low) * Fraction(int(rng.integers(-8, 9)), 32)
    elif way == 4:
        point = [(a, b)[int(rng.integers(2))] for a, b in base.bounds]
    else:
        point = point[:-1] if rng.random() < 0.5 else [*point, Fraction(0)]
    return replace(base, truth=replace(base.truth, witness=tuple(point)))


MUTATORS: tuple[Mutator, ...] = (
    *(ulp, factor, nudge, bias, bias, swap_entries, box, one_face, constraint, constraint),
    *(relabel, nodes, data, other_proof, other_network, witness),
)


#: Mutants claim nothing in float32. One in this many that are accepted is proven there, too: by at most as
#: much as over the reals.
FLOAT32_EVERY = 4
FALSE, ACCEPTED, HASH = "false, rejected", "accepted", "refused by hash"


class Oracle(ABC):
    """An independent judge of truth, which shares nothing with the checker."""

    @abstractmethod
    def is_true(self, instance: Instance, truth: Truth, *, margin: bool) -> bool | None:
        """Whether the label is true and, if asked, its margin too; None if it cannot tell."""


@dataclass(frozen=True)
class Sweep:
    """One kind of proof, tiny statements that it proves, and what judges the changed ones.

    `others` are statements of other kinds, whose proofs and networks the mutators may borrow.
    """

    kind: CertificateKind
    statements: Callable[[], Sequence[LabelStatement]]
    oracle: Oracle
    mutators: tuple[Mutator, ...] = MUTATORS
    others: Callable[[], Sequence[LabelStatement]] = tuple

    @property
    def kinds(self) -> Registry[CertificateKind]:
        """The kinds to check by: the shipped ones and, if it is none of them, this one."""
        return kinds_with(self.kind)

    def run(self, count: int, *, seed: int, least_false: int = 0) -> Counter[str]:
        """Judge `count` mutants; returns how many were false and rejected, accepted, and refused by a hash.

        It continues, up to eight times as far, until `least_false` of them were false. After that, no more
        are counted: the oracle is asked only about accepted ones.
        """
        rng = np.random.default_rng([zlib.crc32(self.kind.name.encode()), seed])
        bases = self.statements()
        everything = [*bases, *self.others()]
        tally: Counter[str] = Counter()
        for number in range(8 * count):
            if number >= count and tally[FALSE] >= least_false:
                break
            base = bases[int(rng.integers(len(bases)))]
            mutant = self.mutators[number % len(self.mutators)](base, rng, everything)
            if rng.random() < 0.25:
                mutant = self.mutators[rng.integers(len(self.mutators))](mutant, rng, everything)
            enough = 0 < least_false <= tally[FALSE]
            self.judge(base, mutant, tally, count_false=not enough)
        return tally

    def judge(
        self, base: LabelStatement, mutant: LabelStatement, tally: Counter[str], *, count_false: bool = True
    ) -> None:
        """Fail if the mutant is false and accepted; else count what happened to it.

        Without `count_false` the oracle is not asked whether a rejected one was false.
        """
        instance = mutant.instance
        files = (base.instance.network_sha256, base.instance.property_sha256)
        if (instance.network_sha256, instance.property_sha256) != files:
            with pytest.raises(InvalidProof, match="sha256"):
                check(instance, mutant.truth, kinds=self.kinds)
            tally[HASH] += 1
        truth = repaired(mutant.truth, instance)
        try:
            proven = check(instance, truth, kinds=self.kinds)
        except DokimosError:
            is_false = count_false and self.oracle.is_true(instance, truth, margin=False) is False
            tally[FALSE if is_false else "rejected"] += 1
            return
        claimed = truth.claims[Semantics.REAL].margin or Fraction(0)
        assert proven.real >= claimed
        believed = self.oracle.is_true(instance, with_margin(truth, proven.real), margin=True)
        assert believed is not False, (mutant, "is false and was accepted")
        tally[ACCEPTED] += 1
        if tally[ACCEPTED] % FLOAT32_EVERY == 0:
            most = prove(instance, truth.certificate, truth.label, truth.witness, kinds=self.kinds)
            assert most.floats is None or most.floats <= most.real, (mutant, "is more than real")


def with_margin(truth: Truth, margin: Fraction) -> Truth:
    """The same, claiming this margin for the reals and nothing for float32."""
    return replace(truth, claims={Semantics.REAL: Claim(proven=True, margin=margin)})
