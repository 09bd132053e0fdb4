"""Parity locks: a network that is robust by intervals, and a gate that opens in one cell or nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import Draft, ball, choice, first_class_loses, inward, knob
from dokimos.constructions.locked_networks import enlarged_box, lock_chain
from dokimos.constructions.parity_gate import LockShape, ParityLock, draw_lock
from dokimos.core.errors import ConstructionFailed
from dokimos.engine.direct import by_intervals, real_outputs
from dokimos.networks.chain import Chain, Layer, Weights
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import write_chain
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Box, Property

CENTRE_BITS = 6
WEIGHT_BITS = 10
EFFECT_BITS = 4
#: Interval bounds of the base spread over at most this, from its margin upward.
SPREAD = 8
#: With at least this many bits, 10,000 samples should not find the cell.
HIDDEN_BITS = 20
MARGIN = Fraction(1)


@dataclass(frozen=True)
class Knobs:
    """The knobs of parity-lock."""

    bits: int = knob(75, "how many bits the lock reads; a cell is 2^-bits of the box", least=1, most=400)
    levels: int = knob(3, "how many bits are read from one coordinate", least=1, most=8)
    weight: int = knob(7, "how many bits an equation has; 1 makes the lock easy to pick", least=1, most=25)
    penalty: float = knob(1.0, "the penalty for a bit between 0 and 1", least=0.3, most=16.0)
    opening: float = knob(0.5, "how much may be missing for the gate still to open", least=0.05, most=0.95)
    steepness: int = knob(4, "slope of the bits, in widths of a cell", least=4, most=1024)
    inputs: int = knob(25, "how many inputs", least=1, most=1000)
    width: int = knob(
        64, "ReLUs of the base's first layer; its second has half as many", least=2, most=1000
    )
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)
    gate: str = choice("parity", "which gate is added to the base", options=("parity", "none"))


class ParityLocks(Construction[Knobs]):
    """f = base + (−c/2, c/2)·gate: class 0 wins by the base's margin, and loses where the gate is open.

    The base is a random dense network whose biases make class 0 win by 1 on the box, enlarged by 1e-4 on
    every side, as intervals prove at the root. The gate is that of a parity lock (see
    `parity_gate`, which states the theorem). In the robust draft the equations sum to 0 = 1, so the
    gate is shut everywhere; in the twin one right-hand side is the other one, the equations have one
    solution, and the gate outweighs the base in the middle of one cell, whose centre is the witness.

    With fewer than 20 bits the cell is large enough for samples to find it: these are the easy settings.

    Without a lock (gate = none) the same seed gives the same base alone; its twin still has a lock.
    """

    family: ClassVar[str] = "parity-lock"
    summary: ClassVar[str] = "a gate that parity equations open in one cell of the box, or nowhere"
    knobs_class = Knobs

    def hides(self, knobs: Knobs) -> bool:
        """Only small cells are hidden from samples."""
        return knobs.bits >= HIDDEN_BITS

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the base and the lock; only one right-hand side differs between the two drafts."""
        shape = LockShape(
            bits=knobs.bits,
            levels=knobs.levels,
            weight=knobs.weight,
            steepness=knobs.steepness * 2**knobs.levels,
            penalty=dyadic(knobs.penalty, WEIGHT_BITS),
            opening=dyadic(knobs.opening, WEIGHT_BITS),
        )
        if knobs.inputs < shape.inputs:
            raise ConstructionFailed(
                f"{self.family}: {knobs.bits} bits with levels = {knobs.levels} need {shape.inputs} inputs."
            )
        steps = 2**CENTRE_BITS
        centre = [Fraction(int(k), steps) for k in rng.integers(-steps // 2, steps // 2 + 1, knobs.inputs)]
        box = ball(centre, inward(knobs.epsilon))
        base, most = _base(knobs, box, rng)
        question = first_class_loses(box, 2)
        free = knobs.gate == "none"
        lock = draw_lock(shape, box, np.random.default_rng(rng.integers(2**63, size=1 + free)))
        grid = [Fraction(int(k), 16) for k in rng.integers(-12, 13, knobs.inputs)]
        elsewhere = [x + k * inward(knobs.epsilon) for x, k in zip(centre, grid, strict=True)]
        return locked_drafts(base, most, lock, question, elsewhere, free=free)


def locked_drafts(
    base: Chain,
    most: Fraction,
    lock: ParityLock,
    question: Property,
    elsewhere: list[Fraction],
    *,
    free: bool,
) -> tuple[Draft, Draft]:
    """The base with the lock that has no solution (or alone, if `free`), and with the lock that has one.

    Class 0 of the base wins on the box of the question by at most `most`, and intervals prove that it does.
    """
    effect = Fraction(ceil((most + MARGIN) / lock.shape.opening * 2**EFFECT_BITS), 2**EFFECT_BITS) / 2
    proof = by_intervals()
    if free:
        robust = Draft(write_chain(base), question, proof)
    else:
        shut = ParityLock(lock.shape, lock.inputs, lock.digits, lock.system.inconsistent())
        made = lock_chain(base, shut, [-effect, effect])
        data = {**shut.certificate_data(before=made.before), "kind": proof.kind, "data": dict(proof.data)}
        robust = Draft(write_chain(made.chain), question, Certificate("parity-lock", data))
    opened = lock_chain(base, lock, [-effect, effect]).chain
    witness = lock.centre(elsewhere)
    return robust, Draft(write_chain(opened), question, Certificate("witness"), witness)


def margin_range(base: Chain, box: Box) -> tuple[Fraction, Fraction]:
    """The bounds of Y_0 − Y_1 on the box by interval arithmetic."""
    first, second = real_outputs(read_onnx(write_chain(base)))(box)
    return Fraction(first[0]) - Fraction(second[1]), Fraction(first[1]) - Fraction(second[0])


def _base(knobs: Knobs, box: Box, rng: np.random.Generator) -> tuple[Chain, Fraction]:
    """Random layers whose first output is above the second by MARGIN or more, and by how much at most."""
    sizes = [knobs.inputs, knobs.width, max(1, knobs.width // 2), 2]
    layers = [
        Layer(_weights(rng, (m, n), 1 / n**0.5), _weights(rng, (m,), 0.5), k < len(sizes) - 2)
        for k, (n, m) in enumerate(pairwise(sizes))
    ]
    wide = enlarged_box(box)
    plain = Chain((knobs.inputs,), tuple(layers))
    low, high = margin_range(plain, wide)
    scale = Fraction(1)
    while (high - low) * scale > SPREAD:
        scale /= 2
    while (high - low) * scale * 2 <= SPREAD:
        scale *= 2
    bias = np.array([float(dyadic(MARGIN - scale * low, WEIGHT_BITS) + Fraction(1, 64)), 0.0])
    last = Layer(
        layers[-1].weight * np.float32(scale),
        (layers[-1].bias * np.float32(scale) + bias).astype(np.float32),
        False,
    )
    base = Chain((knobs.inputs,), (*layers[:-1], last))
    low, high = margin_range(base, wide)
    if low < MARGIN:
        raise Unusable("the base's margin is not proven on the enlarged box")
    return base, high


def _weights(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Weights:
    steps = np.round(rng.standard_normal(shape) * scale * 2**WEIGHT_BITS)
    return np.asarray(steps / 2**WEIGHT_BITS, dtype=np.float32)
