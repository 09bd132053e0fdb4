"""A lock on any robust draft: the pair of instances that differ in one right-hand side.

Theorem. Let a network be robust on a box, however that is proven, and let a parity lock be added to its
output as a branch. If the lock's equations contradict each other, its gate is shut on the whole space
(`parts.parity_lock`), and the network is unchanged. If they have one solution, the gate is θ within the
lock's radius of one point, and 0 outside its cell, whose share of the box's volume is 2^-bits: no uniform
draw finds a violation more often, since without the gate there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from dokimos.checker.check import prove
from dokimos.constructions.draft import Draft
from dokimos.constructions.parts.locked_networks import lock_branch
from dokimos.constructions.parts.parity_lock import LockShape, ParityLock, draw_lock
from dokimos.core.errors import ConstructionFailed, DokimosError
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.properties.model import Box, Case, Linear, Point, Property
from dokimos.properties.writing import write_vnnlib1
from dokimos.suites.instance import Certificate, Instance, Label

#: Fewer inputs give too few bits to hide anything in.
LEAST_INPUTS = 25
#: `unsat` is also proven on a box that is this much larger on every side.
ENLARGED = Fraction(1, 10_000)
#: The violation holds within this share of the box's width around the witness.
VIOLATING_SHARE = Fraction(1, 100)
#: Its margin is at least this, and this share of the largest output.
LEAST_MARGIN, MARGIN_SHARE = Fraction(1, 256), Fraction(1, 1000)
#: Effects are multiples of 2^-EFFECT_BITS of the power of two below them.
EFFECT_BITS = 6


@dataclass(frozen=True)
class LockedPair:
    """The base with a lock that no input opens, and with a lock that opens in one cell."""

    shut: Draft
    opened: Draft
    #: Whether the label `unsat` is proven on the enlarged box, too.
    is_proven_enlarged: bool


def lock_draft(
    robust: Draft, shape: LockShape, rng: np.random.Generator, *, timeout_seconds: float = 60.0
) -> LockedPair:
    """The pair that a lock makes of a robust draft.

    Raises ConstructionFailed if the network has too few inputs, or no output of its property can be
    changed.
    """
    network = read_onnx(robust.network)
    case = robust.question.cases[0]
    lock = draw_lock(shape, case.box, rng)
    grid = rng.integers(1, 16, size=case.box.size)
    elsewhere = [
        low + Fraction(int(k), 16) * (high - low)
        for k, low, high in zip(grid, case.box.lower, case.box.upper, strict=True)
    ]
    witness = lock.centre(elsewhere)
    effect = _effect(robust.network, case, witness, lock, network.output_size)
    shut = ParityLock(lock.shape, lock.inputs, lock.digits, lock.system.inconsistent())
    data = {
        **shut.certificate_data(),
        "kind": robust.certificate.kind,
        "data": dict(robust.certificate.data),
    }
    closed = Draft(
        lock_branch(robust.network, shut, effect), robust.question, Certificate("parity-lock", data)
    )
    opened = Draft(
        lock_branch(robust.network, lock, effect), robust.question, Certificate("witness"), witness
    )
    return LockedPair(closed, opened, is_proven_on_enlarged(robust))


def _effect(network: bytes, case: Case, witness: Point, lock: ParityLock, outputs: int) -> list[Fraction]:
    """What the gate adds to each output, so that a conjunction of the case holds around the witness."""
    for conjunction in case.any_of:
        if len(conjunction) == 1 and conjunction[0].outputs:
            return _effect_on(network, case.box, conjunction[0], witness, lock, outputs)
    raise ConstructionFailed(
        "A lock needs a property with a single output constraint that alone makes an output unsafe; this "
        "one has none."
    )


def _effect_on(
    network: bytes, box: Box, wanted: Linear, witness: Point, lock: ParityLock, outputs: int
) -> list[Fraction]:
    """For a·y <= b: the negative of a, times as much as a·y may exceed b around the witness and more."""
    near = _around(box, witness)
    values = enclose(read_onnx(network), near.lower, near.upper)[read_onnx(network).output]
    low, high = values.lower.reshape(-1), values.upper.reshape(-1)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ConstructionFailed("The outputs have no finite bounds around the witness of the lock.")
    most = sum((a * Fraction(float(high[j] if a > 0 else low[j])) for j, a in wanted.outputs), Fraction(0))
    most += sum((a * (near.upper[i] if a > 0 else near.lower[i]) for i, a in wanted.inputs), Fraction(0))
    largest = Fraction(float(max(np.abs(low).max(), np.abs(high).max())))
    margin = max(LEAST_MARGIN, MARGIN_SHARE * largest, (most - wanted.bound) / 4)
    square = sum((a * a for _, a in wanted.outputs), Fraction(0))
    factor = _rounded_up((most - wanted.bound + margin) / (lock.shape.opening * square))
    effect = [Fraction(0)] * outputs
    for j, a in wanted.outputs:
        effect[j] = -a * factor
    return effect


def _around(box: Box, centre: Point) -> Box:
    reach = [VIOLATING_SHARE * (high - low) for low, high in zip(box.lower, box.upper, strict=True)]
    return Box(
        tuple(max(x - r, low) for x, r, low in zip(centre, reach, box.lower, strict=True)),
        tuple(min(x + r, high) for x, r, high in zip(centre, reach, box.upper, strict=True)),
    )


def _rounded_up(value: Fraction) -> Fraction:
    """A number of few bits that is not below a positive one."""
    unit = Fraction(1)
    while value < unit:
        unit /= 2
    while value >= 2 * unit:
        unit *= 2
    step = unit / (1 << EFFECT_BITS)
    return ceil(value / step) * step


def enlarged_question(question: Property) -> Property:
    """The same question on boxes that are larger by ENLARGED on every side."""
    cases = tuple(Case(enlarged_box(case.box), case.any_of) for case in question.cases)
    return Property(question.networks, cases)


def enlarged_box(box: Box) -> Box:
    """The box, larger by ENLARGED on every side."""
    return Box(tuple(x - ENLARGED for x in box.lower), tuple(x + ENLARGED for x in box.upper))


def is_proven_on_enlarged(robust: Draft) -> bool:
    """Whether the draft's own certificate also proves `unsat` on the enlarged boxes."""
    text = write_vnnlib1(enlarged_question(robust.question)).encode("ascii")
    try:
        prove(Instance("enlarged", robust.network, text), robust.certificate, Label.UNSAT, None)
    except DokimosError:
        return False
    return True


def shape_of(bits: int, inputs: int, *, weight: int = 7) -> LockShape:
    """A lock of that many bits for that many inputs, with as few bits from each input as possible."""
    levels = max(1, -(-bits // inputs))
    if levels > 8:
        raise ConstructionFailed(f"{inputs} inputs give at most {8 * inputs} bits, not {bits}.")
    odd = min(weight, bits - 1 if bits % 2 == 0 else max(1, bits - 2))
    return LockShape(bits=bits, levels=levels, weight=max(1, odd), steepness=2 ** (levels + 2))
