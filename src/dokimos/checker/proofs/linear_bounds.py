"""Linear bounds by backward substitution, with a slope for every ReLU."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven, about
from dokimos.checker.data import PLACE, Natural, read_data
from dokimos.checker.lemmas.float_ends import box_floats, outward
from dokimos.checker.lemmas.linear_graph import BoundedGraph
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval
from dokimos.properties.model import Box, Conjunction
from dokimos.suites.instance import Label


class LinearBoundsData(Struct, frozen=True, forbid_unknown_fields=True):
    """Which ReLUs' arguments are bounded by functionals, by number, and slopes for each conjunction.

    Slopes are bytes in base64, one for each unit of every ReLU, in the order of the network: k stands for
    k/255. An empty text stands for the usual slopes.
    """

    refined: tuple[Natural, ...]
    slopes: tuple[str, ...]


class LinearBoundsProof(CertificateKind):
    """`unsat` for affine operators and ReLUs in any graph.

    Theorem. On a box, Σ d·y of a constraint is at least what `BoundedGraph.lower_bounds` gives for the row
    d, whatever slopes in [0, 1] are chosen, and whichever ReLUs' arguments are bounded by functionals. If
    in every conjunction a constraint Σ d·y <= b has a bound − b >= m > 0, none holds anywhere on the box.

    The network with the rounding of float32 as noise comes first: what holds for all noise holds without
    noise, so that one pass proves both. If that fails, only the network over the reals is bounded.
    """

    name: ClassVar[str] = "linear-bounds"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every conjunction with its slopes."""
        given = read_data(data, LinearBoundsData)
        network, asked = problem.network, problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if len(given.slopes) != len(asked):
            raise UnreadableFile(
                PLACE, f"'slopes' must be a list of {len(asked)}, one for each conjunction"
            )
        slopes = [read_slopes(network, text) for text in given.slopes]
        refined = frozenset(given.refined)

        def margin(ulps: int | None) -> Fraction:
            @cache
            def over(box: Box) -> BoundedGraph:
                return BoundedGraph(network, Interval(*box_floats(box)), refined=refined, ulps=ulps)

            return min(
                _slack(over(box), network, conjunction, chosen)
                for (box, conjunction), chosen in zip(asked, slopes, strict=True)
            )

        both = problem.in_float32(lambda: margin(problem.ulps))
        return Proven(real=margin(None) if both is None else both, float32=both)


def read_slopes(network: Network, text: str) -> dict[str, Floats]:
    """The slopes of each ReLU, by the name of its output. Raises UnreadableFile if they do not fit."""
    if not text:
        return {}
    shapes = {node.output: network.shapes[node.output] for node in network.nodes if node.op == "Relu"}
    try:
        flat = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (binascii.Error, ValueError):
        raise UnreadableFile(PLACE, "'slopes' are not bytes in base64") from None
    ends = np.cumsum([prod(shape) for shape in shapes.values()], dtype=np.int64)
    if len(flat) != (ends[-1] if len(ends) else 0):
        raise UnreadableFile(PLACE, f"there are {len(flat)} slopes, but there must be one for each unit")
    parts = np.split(flat / 255.0, ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def _slack(
    graph: BoundedGraph, network: Network, conjunction: Conjunction, slopes: Mapping[str, Floats]
) -> Fraction:
    """By how much one of the constraints fails everywhere on the box; InvalidProof if none does."""
    usable = [constraint for constraint in conjunction if not constraint.inputs]
    if not usable:
        raise InvalidProof("a conjunction has no constraint on outputs alone")
    rows = [outward(_row(dict(each.outputs), network.output_size)) for each in usable]
    stacked = Interval(*(np.stack([getattr(row, end) for row in rows]) for end in ("lower", "upper")))
    shaped = stacked.map(lambda end: end.reshape(-1, *network.output_shape))
    found = graph.lower_bounds(network.output, shaped, slopes).tolist()
    slacks = [Fraction(f) - each.bound for f, each in zip(found, usable, strict=True) if np.isfinite(f)]
    slack = max(slacks, default=Fraction(-1))
    if slack <= 0:
        raise InvalidProof(f"the bound that the slopes give is {about(slack)}, which is not above 0")
    return slack


def _row(terms: Mapping[int, Fraction], size: int) -> Sequence[Fraction]:
    return [terms.get(j, Fraction(0)) for j in range(size)]
