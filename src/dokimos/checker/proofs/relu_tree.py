"""Case distinctions on the ReLUs of a network, each case closed by multipliers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Literal

from msgspec import Struct

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import PLACE, read_data
from dokimos.checker.lemmas.case_tree import TreeData, read_tree
from dokimos.checker.lemmas.relu_layers import OutwardLeaves
from dokimos.checker.lemmas.relu_regions import ExactLeaves
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box
from dokimos.suites.instance import Label

MOST_LEAVES = 100_000
#: How leaves are closed.
ARITHMETICS: dict[str, type[ExactLeaves | OutwardLeaves]] = {"exact": ExactLeaves, "outward": OutwardLeaves}


class ReluTreeData(Struct, frozen=True, forbid_unknown_fields=True):
    """A tree for each conjunction on a box that is not empty, in the order of the property."""

    arithmetic: Literal["exact", "outward"]
    trees: tuple[TreeData, ...]


class ReluTree(CertificateKind):
    """`unsat` for networks of affine operators and ReLUs.

    Theorem. For every input, the argument of a ReLU is >= 0 or <= 0. So the leaves of a binary tree that
    asks this of one ReLU at each node cover all inputs. If at every leaf no input is unsafe, and at each
    of its inputs some constraint of the conjunction fails by m, then the conjunction holds nowhere, and
    fails everywhere by the smallest such m.

    The data has one tree for each conjunction on a box that is not empty, in the order of the property. Its
    `arithmetic` says how all leaves are closed: "exact", by multipliers in rationals, on any graph (the
    theorem is at `relu_regions.refutation`); or "outward", by slopes and multipliers in float64 intervals,
    on affine layers with ReLUs between them, many leaves at once (the theorem is at
    `relu_layers.BoundedLayers.lower_bounds`). Whatever is chosen, each step is sound.
    """

    name: ClassVar[str] = "relu-tree"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Close every leaf, over the reals and then with the rounding of float32."""
        given = read_data(data, ReluTreeData)
        arithmetic = ARITHMETICS[given.arithmetic]
        asked = problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if len(given.trees) != len(asked):
            raise UnreadableFile(PLACE, f"'trees' must be a list of {len(asked)}, one for each conjunction")
        trees = [
            (box, part, read_tree(tree, len(part), arithmetic.limits))
            for tree, (box, part) in zip(given.trees, asked, strict=True)
        ]
        if sum(len(leaves) for _, _, leaves in trees) > MOST_LEAVES:
            raise InvalidProof(f"the proof has more than {MOST_LEAVES} leaves")

        @cache
        def closing(box: Box | None) -> ExactLeaves | OutwardLeaves:
            """The arithmetic that closes leaves over the reals (None), or for the float32 runs on a box."""
            if box is None:
                return arithmetic(problem.network, None)
            rounding = rounding_bounds(problem.network, box.lower, box.upper, ulps=problem.ulps)
            return arithmetic(problem.network, rounding)

        def margin(*, in_float32: bool) -> Fraction:
            known: list[Fraction] = []
            for box, part, leaves in trees:
                found = closing(box if in_float32 else None).margins(box, part, leaves)
                known += [each for each in found if each is not None]
            if not known:
                raise InvalidProof("no leaf holds any input, which is impossible")
            return min(known)

        return Proven(
            real=margin(in_float32=False), float32=problem.in_float32(lambda: margin(in_float32=True))
        )
