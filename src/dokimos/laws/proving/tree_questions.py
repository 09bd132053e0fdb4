"""Questions about ensembles of trees as statements that the checker knows: `trees`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, ForbiddenDecisions, Quantity, Sign, Zone
from dokimos.checker.trees.covers import check_tree_cover
from dokimos.checker.trees.leaves import ScoreComparison, SumOfTrees, TreeStatement
from dokimos.core.errors import InvalidProof
from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.models.trees import LEAF, Ensemble, last_left
from dokimos.laws.proving.expressions import Refusal, Unread
from dokimos.laws.proving.question import (
    ExactCase,
    Forbidden,
    LawQuestion,
    LinearCover,
)

#: Not all integers beyond this are float32 numbers.
_WHOLE_FLOAT32 = 2**24


@dataclass(frozen=True)
class TreeQuestion:
    """A question about an ensemble over records of a layout.

    Raises Refusal for ensembles with a divisor that is not positive, no decision where a value is missing
    that may be, or, where records are rounded to float32, integers that this changes; and for laws on more
    than the order of predictions that are an increasing function of the score.
    """

    question: LawQuestion
    ensemble: Ensemble

    def __post_init__(self) -> None:
        layout, ensemble = self.question.layout, self.ensemble
        if ensemble.inputs != layout.width:
            raise Refusal(f"the trees take {ensemble.inputs} columns, records have {layout.width}")
        for each in self.question.forbidden:
            of_scores(each, ensemble.link)
        if ensemble.is_vector:
            raise Refusal(
                "it predicts several numbers for each record, a law is about one: fit a model for each, "
                "or use `dokimos monotone`, which asks about each"
            )
        if not ensemble.divide > 0:
            raise Refusal("the trees divide by a number that is not positive")
        for feature in layout.features:
            if feature.may_miss and not ensemble.takes_missing:
                raise Refusal(f"{feature.name} may be missing, and these trees decide nothing then")
        if ensemble.single:
            _expect_float32(layout)

    def statement(self, zone: Zone | None = None) -> TreeStatement:
        """That no case of a zone, by default of the whole set, violates the law."""
        return TreeStatement(
            self._trees,
            self.question.zone if zone is None else zone,
            self.question.conditions,
            tuple(each.features for each in self.question.records),
            tuple(of_scores(each, self.ensemble.link) for each in self.question.forbidden),
        )

    def scores(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The scores of each row."""
        return self.ensemble(rows)

    @property
    def decided(self) -> None:
        """The model computes what the trees do: there is no more exact decision than its own."""

    def is_exactly_violated(self, case: ExactCase) -> bool:
        """Whether the exact decisions violate the law in a case where the model's own do: see `decided`."""
        return True

    def check(self, cover: Cover | LinearCover) -> None:
        """Check that a cover proves the law. Raises InvalidProof."""
        if isinstance(cover, LinearCover):
            raise InvalidProof("a proof about copies of a network proves nothing of trees")
        check_tree_cover(self.statement(), cover)

    def proven(self, claims: Sequence[tuple[Zone, Cover]]) -> list[bool]:
        """Of which zones their covers show that no case violates the law."""
        found = []
        for zone, cover in claims:
            try:
                check_tree_cover(self.statement(zone), cover)
            except InvalidProof:
                found.append(False)
            else:
                found.append(True)
        return found

    @cached_property
    def _trees(self) -> SumOfTrees:
        return sum_of_trees(self.ensemble, self.question.layout)


def sum_of_trees(ensemble: Ensemble, layout: Layout) -> SumOfTrees:
    """The trees as the checker takes them: by feature, not column, with what is added at each leaf."""
    sizes = np.array([len(tree.feature) for tree in ensemble.trees])
    roots = np.cumsum(sizes) - sizes
    offsets = np.repeat(roots, sizes)
    column = np.concatenate([tree.feature for tree in ensemble.trees])
    is_leaf = column == LEAF
    places, options = np.zeros(layout.width, dtype=np.int64), np.full(layout.width, -1)
    for place, slot in enumerate(layout.slots):
        places[slot.start : slot.stop] = place
        if slot.feature.kind is Kind.CHOICE:
            options[slot.start : slot.stop] = np.arange(slot.stop - slot.start)
    threshold = np.concatenate([tree.threshold for tree in ensemble.trees]).astype(np.float64)
    last = last_left(threshold) if ensemble.single else threshold
    own = np.arange(len(column))
    values = ensemble.added(np.concatenate([tree.value for tree in ensemble.trees]))
    return SumOfTrees(
        roots=roots,
        place=np.where(is_leaf, -1, places[column]),
        option=np.where(is_leaf, -1, options[column]),
        last=np.where(is_leaf, 0.0, last),
        missing_left=np.concatenate(
            [
                np.zeros(len(tree.feature), np.bool_) if tree.missing_left is None else tree.missing_left
                for tree in ensemble.trees
            ]
        ),
        left=np.where(is_leaf, own, np.concatenate([tree.left for tree in ensemble.trees]) + offsets),
        right=np.where(is_leaf, own, np.concatenate([tree.right for tree in ensemble.trees]) + offsets),
        values=np.where(is_leaf[:, None], values, values.dtype.type(0)),
        base=ensemble.base,
        divide=ensemble.divide,
        tie=ensemble.tie,
    )


def of_scores(limit: Forbidden, link: str) -> Forbidden:
    """The same of scores, where predictions are an increasing function of them, the `link` (`_is_order`).

    Raises Unread where more than the order of predictions is asked.
    """
    if not link or isinstance(limit, ForbiddenDecisions):
        return limit
    if not all(map(_is_order, limit.parts)):
        raise Unread(
            f"predictions are {link} of what the model adds up, of which only the order is proven; state a "
            "law as d1 <= d2"
        )
    return replace(limit, parts=tuple(replace(each, quantity=Quantity()) for each in limit.parts))


def _is_order(part: ScoreComparison) -> bool:
    """Whether a comparison of increasing functions of two scores holds only where one is below the other.

    f(s) − f(t) + c < 0 with c ≥ 0 implies f(s) < f(t), and so s < t.
    """
    factors = [factor for _, _, factor in part.scores]
    is_difference = len(factors) == 2 and sum(factors) == 0
    above = part.quantity.is_constant and part.quantity.constant >= 0
    return is_difference and above and part.sign is Sign.BELOW


def _expect_float32(layout: Layout) -> None:
    for feature in layout.features:
        ends = [abs(end) for end in (feature.low, feature.high) if end is not None]
        if feature.kind is Kind.INTEGER and max(ends, default=0) > _WHOLE_FLOAT32:
            raise Refusal(f"{feature.name} has integers that the trees round to float32")
        if max(ends, default=0) > np.finfo(np.float32).max:
            raise Refusal(
                f"{feature.name} has numbers that are infinite in float32, as the trees take them"
            )
