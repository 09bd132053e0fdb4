"""Hinges beside a smooth network, each active near one corner of the box; in the twin one is a needle.

A smooth network near its bound has no hidden counterexample of its own, so siblings carry hinges
g·(w·(x − x₀) − t)⁺ with ‖w‖₁ = 1, which vanish except near the corner x₀ + ε·sign(w). In the robust sibling
every hinge uses up at most a part of the spare margin; in the twin the bias of one hinge is higher, and it
outweighs the margin at a point just inside its corner. The siblings differ only in that bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dokimos.checker.base import LowerBound
from dokimos.constructions.draft import Draft, knob, siblings
from dokimos.constructions.robustness import (
    ball,
    dot,
    first_class_loses,
    float32_above,
    float32_below,
    inward,
    split_evenly,
    towards,
    uniform_points,
)
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Property

WEIGHT_STEPS = 2**10
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = Fraction(1, 64)
#: Below this spare share of the bound, the twin's violation is as small as the margin: both are edge cases.
EDGE = Fraction(1, 10_000)
#: Elsewhere the violation is at least this share of the largest output seen.
VIOLATION = Fraction(1, 256)
OUTPUT_SAMPLES = 1000


def slack_knob() -> Any:
    """How far the margin at the centre lies above what the proof needs."""
    return knob(
        1.05,
        "margin at the centre, relative to the proven bound on its drift; below 1.0001 is the edge case",
        least=1.0000001,
        most=100.0,
    )


def hinges_knob() -> Any:
    """How many hinges there are; the twin raises one."""
    return knob(
        4, "how many hinges are added to the attention, each active near one corner", least=1, most=64
    )


def offset_knob() -> Any:
    """Where the needle begins."""
    return knob(
        0.8, "where the twin's needle begins, from the centre (0) to its corner (1)", least=0.05, most=0.95
    )


@dataclass(frozen=True)
class Hinges:
    """Hinge h is max(0, rows_h·x + biases_h) and enters class k with the factor head[k][h]."""

    rows: list[list[Fraction]]
    biases: list[Fraction]
    head: list[list[Fraction]]

    def append_to(self, builder: ModelBuilder) -> str | None:
        """The tensor with their values; None if there are none."""
        if not self.rows:
            return None
        return builder.resume("X").flatten().affine(self.rows, self.biases).relu().last


@dataclass(frozen=True)
class NeedleMaker:
    """Turns a network with an affine head into siblings.

    `build` makes the network from the biases of the classes (class 0 first) and the hinges; `bound` is
    the checker's lower bound for such a network, which proofs of the kind `proof` rest on. `knobs` has
    epsilon, classes, slack, hinges and offset.
    """

    build: Callable[[list[Fraction], Hinges], bytes]
    bound: Callable[[Network], LowerBound]
    proof: str
    centre: list[Fraction]
    knobs: Any

    @property
    def question(self) -> Property:
        """Class 0 loses somewhere in the box."""
        return first_class_loses(ball(self.centre, inward(self.knobs.epsilon)), self.knobs.classes)

    @property
    def slack(self) -> Fraction:
        """The margin at the centre, in drifts."""
        return Fraction(self.knobs.slack)

    def alone(self) -> Draft:
        """The network without hinges, where no twin is asked for."""
        none = Hinges([], [], [[] for _ in range(self.knobs.classes)])
        file = self.build(self._biases(self.question, none)[1], none)
        return Draft(file, self.question, Certificate(self.proof))

    def make(self, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Set the classes' biases for the slack, draw the hinges, and raise the first one in the twin."""
        question, epsilon, count = self.question, inward(self.knobs.epsilon), self.knobs.hinges
        offset = Fraction(self.knobs.offset)
        rows = [self._direction(rng) for _ in range(count)]
        none = self._hinges(rows, [epsilon] * count, [Fraction(0)] * count)
        drifts, biases = self._biases(question, none)
        upward = (1 if w > 0 else -1 for w in rows[0])
        corner = towards(self.centre, upward, epsilon * (1 - INSET))
        plain = self.build(biases, none)
        spare = [(self.slack - 1) * drift for drift in drifts]
        violation = spare[0]
        if self.slack - 1 >= EDGE:
            box = question.cases[0].box
            seen = abs(replay(plain, uniform_points(box, OUTPUT_SAMPLES, rng))).max()
            violation = max(violation, Fraction(float(seen)) * VIOLATION)
        outputs = evaluate(read_onnx(plain), corner)
        height = epsilon * (1 - INSET - offset)
        gain = float32_above((outputs.upper[0] - outputs.lower[1] + violation) / height)
        gains = [gain, *[gain * Fraction(int(rng.integers(8, 17)), 16) for _ in range(count - 1)]]
        gains = [float32_below(g) for g in gains]
        # Half of a class's spare margin is shared by the hinges that feed it.
        feeding = [count // len(spare) + (k < count % len(spare)) for k in range(len(spare))]
        levels = [
            epsilon - spare[h % len(spare)] / (2 * feeding[h % len(spare)] * gains[h]) for h in range(count)
        ]
        robust = self._hinges(rows, levels, gains)
        raised = [float32_above(self._bias(rows[0], offset * epsilon)), *robust.biases[1:]]
        files = self.build(biases, robust), self.build(biases, Hinges(rows, raised, robust.head))
        return siblings(question, Certificate(self.proof), *files, corner)

    def _biases(self, question: Property, none: Hinges) -> tuple[list[Fraction], list[Fraction]]:
        """The proven drift of each competitor's margin, and biases that leave slack·drift at the centre."""
        network = read_onnx(self.build([Fraction(0)] * self.knobs.classes, none))
        bound = self.bound(network)
        box = question.cases[0].box
        outputs = evaluate(network, box.centre)
        drifts, biases = [], [Fraction(0)]
        for other, conjunction in enumerate(question.cases[0].any_of, start=1):
            middle = outputs.lower[0] - outputs.upper[other]
            drifts.append(middle - bound(conjunction[0], box))
            biases.append(float32_below(middle - self.slack * drifts[-1]))
        return drifts, biases

    def _direction(self, rng: np.random.Generator) -> list[Fraction]:
        size = len(self.centre)
        weights = rng.choice([-1.0, 1.0], size=size) * rng.uniform(0.5, 1.0, size=size)
        return [Fraction(k, WEIGHT_STEPS) for k in split_evenly(WEIGHT_STEPS, weights)]

    def _bias(self, row: list[Fraction], level: Fraction) -> Fraction:
        return -level - dot(row, self.centre)

    def _hinges(self, rows: list[list[Fraction]], levels: list[Fraction], gains: list[Fraction]) -> Hinges:
        """Hinges that begin at these levels of w·(x − x₀), or later; they feed the competitors in turn."""
        head = [[Fraction(0)] * len(rows) for _ in range(self.knobs.classes)]
        for h, gain in enumerate(gains):
            head[1 + h % (self.knobs.classes - 1)][h] = gain
        biases = [float32_below(self._bias(row, level)) for row, level in zip(rows, levels, strict=True)]
        return Hinges(rows, biases, head)
