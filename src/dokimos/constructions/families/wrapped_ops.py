"""Wrapped ops: the operators of `ops` behind a gate, so that a tool's attack does not hide its bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction
from dokimos.constructions.draft import Draft, choice, knob, siblings
from dokimos.constructions.families.ops import (
    CERTAINLY,
    CLEARLY,
    DrawnRange,
    cuts,
    draw_range,
    draw_threshold,
    question_of,
)
from dokimos.constructions.operators import VARIANTS
from dokimos.constructions.parts.gates import behind_gate, draw_gate
from dokimos.constructions.parts.robustness import unsafe_where
from dokimos.engine.direct import by_intervals

#: Of so many draws the one is taken in which most misreadings would change the twin's label.
DRAWS = 6


@dataclass(frozen=True)
class Knobs:
    """The knobs of wrapped ops."""

    variant: str = choice("conv-dilated", "which operator, in which form", options=tuple(VARIANTS))
    end: str = choice(
        "upper", "which end of the operator's range is asked about", options=("upper", "lower")
    )
    margin: float = knob(
        0.125, "how far the output stays from its threshold, as a share of its range", least=0.05, most=0.25
    )


class WrappedOps(Construction[Knobs]):
    """Y' = Y − h·q(x) with Y as in `ops` and q as in `parts.gates`; unsafe is Y' >= t.

    The upper end of the range of Y lies below t by the margin in one draft, and above t by as much in the
    twin, which has another last bias. Since Y' <= Y, what proves Y < t proves Y' < t. The twin's only
    unsafe inputs have x near the gate's hidden point, where the tool's attack does not come by itself: so
    the answer is what its bounds on the operator say. A misreading that lowers the upper end of Y by more
    than the margin is wrong there. Each end of the range is the upper one with one of the two signs
    (`end`).
    """

    family: ClassVar[str] = "wrapped-ops"
    summary: ClassVar[str] = (
        "one operator in one form, hidden from attacks: are a tool's bounds on it right"
    )
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw centre and weights; only the last bias differs between the two drafts."""
        variant, sign = VARIANTS[knobs.variant], 1 if knobs.end == "upper" else -1
        draws = [draw_range(variant, knobs.margin, rng) for _ in range(DRAWS if variant.misreadings else 1)]
        plain = max(draws, key=lambda each: caught(each, sign)).plan(
            draw_threshold(rng), sign, turned=False
        )
        gate = draw_gate(rng, plain.away)
        (_, low), (_, high) = plain.outputs
        asked = question_of(plain, variant)
        tree = cuts(plain.network(sign, low), asked, plain.away * CERTAINLY)
        gated = replace(plain, gate=gate)
        ways, outputs = asked.cases[0].any_of, asked.output_size
        question = unsafe_where(ways, gate.box(plain.box), outputs=outputs)
        robust, violated = (gated.network(sign, bias) for bias in (low, high))
        proof = by_intervals(behind_gate(tree))
        return siblings(question, proof, robust, violated, gate.witness(plain.witness))


def caught(drawn: DrawnRange, sign: int) -> int:
    """How many misreadings lower the upper end of ±values clearly."""
    highest = (sign * drawn.values).max()
    return sum(bool(highest - (sign * each).max() >= CLEARLY * float(drawn.away)) for each in drawn.seen)
