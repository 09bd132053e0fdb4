"""Finds the choices for a proof by pinning: cuts, slopes and halvings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dokimos.checker.proofs.polynomials import LEAF, PowerTerms, Slice, halves, pin, slice_terms
from dokimos.engine.outcome import NoProof
from dokimos.networks.semantics.outward import Floats, Interval

#: The most boxes that one slice may be cut into; beyond that the draw is discarded.
MOST_BOXES = 64
MOST_SLICES = 64


@dataclass(frozen=True)
class Dip:
    """The term −depth·z^degree of one unit."""

    unit: int
    depth: float
    degree: int

    def value(self, z: float) -> float:
        """The term."""
        return -self.depth * z**self.degree

    def cuts(self, reach: float, tolerance: float) -> list[float]:
        """Where to cut [−reach, reach] so that chords of the term are off by about `tolerance`."""
        # Within |z| <= flat the whole term is smaller than the tolerance: no cut is needed there.
        flat = (tolerance / self.depth) ** (1 / self.degree)
        cuts: list[float] = []
        z = reach
        while z > flat:
            # A chord over a length h misses a function by at most h²·bend/8, where bend bounds |f″|.
            bend = self.depth * self.degree * (self.degree - 1) * z ** (self.degree - 2)
            z = max(z - max(np.sqrt(8 * tolerance / bend), reach / MOST_SLICES), flat)
            cuts.append(z)
        # For odd degrees the term is only a dip where z > 0.
        if self.degree % 2:
            return [0.0, *cuts[::-1]]
        return [*(-c for c in cuts), *cuts[::-1]]


def plan(terms: PowerTerms, dip: Dip, lower: Floats, upper: Floats, target: float) -> Mapping[str, Any]:
    """The data of a proof that bounds the polynomial by `target`, in slices of the dip's unit.

    Raises NoProof if none is found.
    """
    box = Interval(lower, upper)
    # Half of what is left above 0 may be lost to chords. Cuts and slopes are choices, not claims: rounding
    # them to six digits keeps the certificate short and costs nothing but a little margin.
    reach = float(terms.inside(box).magnitude[dip.unit])
    cuts = [float(f"{c:.6g}") for c in dip.cuts(reach, target / 2)]
    gradient = _trend(terms, dip.unit, lower, upper)
    weights, radius = terms.weights[dip.unit], (upper - lower) / 2
    offset = float(terms.biases[dip.unit] + weights @ (lower + upper) / 2)
    slopes, trees = [], []
    for start, end in pairwise([-np.inf, *cuts, np.inf]):
        ends = max(start, -reach), min(end, reach)
        slope = float(f"{_best_slope(dip, gradient, weights, radius, offset, ends):.6g}")
        part = slice_terms(terms, dip.unit, Slice(start, end, slope, ()), box)
        slopes.append(repr(slope))
        trees.append([LEAF] if part is None else _halvings(part, lower, upper, target))
    return {"unit": dip.unit, "cuts": [repr(c) for c in cuts], "slopes": slopes, "halvings": trees}


def plan_whole_box(
    terms: PowerTerms, lower: Floats, upper: Floats, target: float, *, most_boxes: int = MOST_BOXES
) -> Mapping[str, Any]:
    """The data of a proof that bounds all by `target` without slices. Raises NoProof if none is found."""
    tree = _halvings(terms, lower, upper, target, most_boxes)
    return {"unit": None, "cuts": [], "slopes": [], "halvings": [tree]}


def _trend(terms: PowerTerms, unit: int, lower: Floats, upper: Floats) -> Floats:
    """The gradient without the unit, at the middle of the box."""
    z = terms.weights @ ((lower + upper) / 2) + terms.biases
    factors = terms.degree * terms.coefficients.lower * z ** (terms.degree - 1)
    factors[unit] = 0.0
    slopes: Floats = factors @ terms.weights
    return slopes


def _best_slope(
    dip: Dip,
    gradient: Floats,
    weights: Floats,
    radius: Floats,
    offset: float,
    ends: tuple[float, float],
) -> float:
    """The slope s that makes a slice's bound largest if all but the dip is linear.

    The bound s·offset − Σ radius_i·|g_i + s·w_i| + min over the ends of (f(z) − s·z) is concave and
    piecewise linear in s, so its maximum is at a kink.
    """
    used = weights != 0
    start, end = ends
    chord = (dip.value(end) - dip.value(start)) / max(end - start, 1e-9)
    kinks = np.append(-gradient[used] / weights[used], [0.0, chord])
    fall = np.abs(gradient[:, None] + np.outer(weights, kinks)).T @ radius
    heights = np.minimum(*(dip.value(z) - kinks * z for z in ends))
    return float(kinks[np.argmax(kinks * offset + heights - fall)])


def _halvings(
    terms: PowerTerms, lower: Floats, upper: Floats, target: float, most_boxes: int = MOST_BOXES
) -> list[int]:
    """A tree of halvings, in preorder, whose leaves are all bounded by `target` or more."""
    boxes = [(lower, upper)]
    tree: list[int] = []
    while boxes:
        if len(tree) >= most_boxes:
            raise NoProof("the proof needs too many boxes")
        low, high = pin(terms, *boxes.pop())
        if terms.affine_minimum(Interval(low, high)) >= target:
            tree.append(LEAF)
            continue
        # Halve where the slope varies most across the box: there the affine bound loses most.
        spread = terms.gradient(Interval(low, high))
        gain = (spread.upper - spread.lower) * (high - low)
        if not gain.max() > 0:
            raise NoProof("the polynomial is too low at a corner of the box")
        choice = int(np.argmax(gain))
        tree.append(choice)
        boxes += reversed(halves(low, high, choice))
    return tree
