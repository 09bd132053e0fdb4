"""Relaxations: an operator less a line, behind a gate: is a tool's bound on it right?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, by_search, dyadic
from dokimos.constructions.draft import Draft, choice, knob, siblings
from dokimos.constructions.families.ops import corners
from dokimos.constructions.operators.extremes import EXTREMES, Extreme
from dokimos.constructions.operators.sketch import Gate, Sketch, draw_gate
from dokimos.constructions.robustness import BOUND_BITS, at_least, unsafe_where
from dokimos.engine.runtimes.sessions import replay
from dokimos.suites.vnnlib.model import Box, Point

#: The ends of the box are moved by up to this many sixty-fourths, so that no two draws are the same.
JITTER = 8
#: Points around the best one so far, in each of several rounds, each in a quarter of the space of the last.
NEARBY, ROUNDS = 400, 4
MOST_STEPS = 20_000


@dataclass(frozen=True)
class Knobs:
    """The knobs of relaxations."""

    variant: str = choice("tanh-tilted", "which function", options=tuple(EXTREMES))
    end: str = choice("upper", "which end of its range is asked about", options=("upper", "lower"))
    margin: float = knob(
        0.05, "how far the output stays from its threshold, as a share of its range", least=0.01, most=0.2
    )


class Relaxations(Construction[Knobs]):
    """Y = ±g(z) − h·q(x) + b with q as in `Gate`; unsafe is Y >= t, where t is the largest ±g known.

    b is −m in one draft and +m in the twin: with h = 4m the twin is unsafe only near the gate's hidden
    point and the place of the extreme, which gradient search does not find. q is never below 0, by
    intervals alone, so that the verdict rests on the bound on g. The `unsat` draft is proven by the
    engine's search.
    """

    family: ClassVar[str] = "relaxations"
    summary: ClassVar[str] = "an operator less a line, hidden from attacks: is a tool's bound on it right"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw box and gate; only one bias differs between the two drafts."""
        extreme, sign = EXTREMES[knobs.variant], 1 if knobs.end == "upper" else -1
        inner = _box(extreme, rng)
        best, (least, most) = _highest(extreme, sign, inner, rng)
        margin = dyadic(knobs.margin * (most - least), BOUND_BITS)
        if margin <= 0:
            raise Unusable("the function is constant on the box")
        gate, threshold = draw_gate(rng, margin), dyadic(most, BOUND_BITS)
        question = unsafe_where([at_least(threshold)], gate.box(inner))
        robust, violated = (_network(extreme, sign, gate, bias) for bias in (-margin, margin))
        proof = by_search(robust, question, most_steps=MOST_STEPS)
        return siblings(question, proof, robust, violated, gate.witness(best))


def _box(extreme: Extreme, rng: np.random.Generator) -> Box:
    """The box of the function, each end moved inward a little."""
    size = int(np.prod(extreme.shape))
    moved = rng.integers(0, JITTER + 1, size=(2, size))
    lower = tuple(Fraction(extreme.lower) + Fraction(int(k), 64) for k in moved[0])
    return Box(lower, tuple(Fraction(extreme.upper) - Fraction(int(k), 64) for k in moved[1]))


def _signed(extreme: Extreme, sign: int, sketch: Sketch) -> str:
    found = extreme.wire(sketch)
    return found if sign > 0 else sketch("Neg", found)


def _network(extreme: Extreme, sign: int, gate: Gate, bias: Fraction) -> bytes:
    sketch = gate.sketch(extreme.shape, seed=0, opset=extreme.opset)
    return sketch.build(gate.attached(sketch, _signed(extreme, sign, sketch), 1, bias), 1)


def _highest(
    extreme: Extreme, sign: int, box: Box, rng: np.random.Generator
) -> tuple[Point, tuple[float, float]]:
    """The highest point that sampling finds, and the least and the largest value."""
    sketch = Sketch(extreme.shape, seed=0, opset=extreme.opset)
    network = sketch.build(_signed(extreme, sign, sketch), 1)
    ends = [np.array([float(x) for x in end]) for end in (box.lower, box.upper)]

    def values(points: NDArray[np.float32]) -> NDArray[np.float64]:
        return replay(network, points)[:, 0].astype(np.float64)

    points = corners(box, rng)
    seen = values(points)
    best, highest = points[int(seen.argmax())], float(seen.max())
    reach = (ends[1] - ends[0]) / 4
    for _ in range(ROUNDS):
        moved = best + rng.uniform(-reach, reach, size=(NEARBY, len(reach)))
        grid = np.round(np.clip(moved, *ends) * 2**BOUND_BITS) / 2**BOUND_BITS
        points = grid.astype(np.float32)
        found = values(points)
        if found.max() > highest:
            best, highest = points[int(found.argmax())], float(found.max())
        reach = reach / 4
    return tuple(Fraction(float(x)) for x in best), (float(seen.min()), highest)
