"""Points of a box that gradients lead to, where the margin is smaller than at random samples.

As in the code that was published with the profile: the centre; faces on which the inputs that matter most
at the centre are at the end that lowers the margin; the way down the gradient at the centre, as far as its
corner; and projected gradient descent from some of the uniform samples, by steps of a quarter of the
radius. Importing this module imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from dokimos.attacks.base import Target
from dokimos.attacks.margin_pass import MarginPass, MarginValues
from dokimos.attacks.pgd import descend
from dokimos.difficulty.sampling import Floats
from dokimos.networks.graph import Network
from dokimos.properties.margins import MarginForm, float_ends
from dokimos.properties.model import Box

#: For this many samples, one face and one descent.
SAMPLES_A_FACE, SAMPLES_A_DESCENT = 10, 25
#: Eight steps reach from one end of the box to the other.
STEPS, STEP = 12, 0.25
#: How far to go down the gradient at the centre, as shares of the radius.
WAY_DOWN = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class GuidedSamples:
    """Points that gradients lead to, what is found there, and the least margin on the way.

    The least margin is ∞ if it is never finite.
    """

    points: Floats
    found: MarginValues
    least_margin: float


def guided_samples(
    network: Network,
    form: MarginForm,
    box: Box,
    points: Floats,
    gradients: Floats,
    rng: np.random.Generator,
) -> GuidedSamples:
    """Follow gradients on the box of one case, of which `points` are samples with these gradients.

    The first of the points are uniform (see `sampling`).
    """
    margins_at = MarginPass(network, form)
    target = Target(network, form, box, dtype=np.float64)
    centre = target.point[None]
    slope = np.nan_to_num(margins_at(centre).gradients[0])
    descents = len(points) // SAMPLES_A_DESCENT
    reached = [
        centre,
        way_down(box, slope),
        downhill_faces(box, slope, len(points) // SAMPLES_A_FACE, rng),
        descend(target, points[:descents], gradients[:descents], [STEP] * STEPS if descents else ()),
    ]
    together = np.concatenate(reached)
    found = margins_at(together)
    finite = found.margins[np.isfinite(found.margins)]
    return GuidedSamples(together, found, float(finite.min(initial=target.least_margin)))


def way_down(box: Box, gradient: Floats) -> Floats:
    """[steps, size]: from the centre against the signs of the gradient, as far as the corner."""
    lower, upper = float_ends(box)
    middle, radius = (lower + upper) / 2, (upper - lower) / 2
    steps = np.outer(WAY_DOWN, radius * np.sign(gradient))
    return np.clip(middle - steps, lower, upper)


def downhill_faces(box: Box, gradient: Floats, count: int, rng: np.random.Generator) -> Floats:
    """[count, size]: uniform, but for the √size inputs of the largest effect, each at its lower end of μ.

    The effect of an input is its gradient times its radius; if all are 0, the points are uniform.
    """
    lower, upper = float_ends(box)
    points = np.clip(lower + (upper - lower) * rng.random((count, box.size)), lower, upper)
    with np.errstate(over="ignore"):
        effect = np.abs(gradient) * (upper - lower)
    chosen = np.argsort(-effect, kind="stable")[: max(1, isqrt(box.size))]
    chosen = chosen[effect[chosen] > 0]
    points[:, chosen] = np.where(gradient > 0, lower, upper)[chosen]
    return points
