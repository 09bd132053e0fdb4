"""Decides a law for any strength at every row of a data set, or near it: each with a proof or a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, Cut, Zone
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.models.model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.rechecking import REAL
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_files import RowDecision, RowsDecision
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.segments import SegmentReach
from dokimos.laws.proving.strengths import (
    ANY_STRENGTH,
    FULL_STRENGTH,
    StrengthLaw,
    row_fractions,
    state_strengths,
)

#: Pieces that the strengths of one row are cut into, at most.
_MOST_PIECES = 4096
#: Rows that are decided before the next word on what is known so far.
_TOGETHER = 250


def verify_strengths(
    plan: LawPlan,
    model: Model,
    rows: NDArray[Any],
    labels: Sequence[Any],
    tolerance: Tolerance | None,
    *,
    settings: VerifySettings,
    known: Sequence[RowDecision] = (),
    done: Callable[[RowsDecision], None] = lambda _: None,
) -> RowsDecision:
    """Decide a law for any strength at each row; with a tolerance, at full strength near each row.

    Rows that are `known` are not decided again. `done` is called with what is known so far.
    """
    begun = time.process_time()
    none = Tolerance(Fraction(0))
    found = RowsDecision(plan.law, plan.domain, model, settings, tolerance or none, semantics=REAL)
    try:
        law = state_strengths(plan, model)
        found = replace(found, over=law.over(tolerance))
        deciding = _Deciding(law, SegmentReach(law.layers), tolerance)
        decided = {each.row: each for each in known}
        asked = [number for number in range(len(rows)) if number not in decided]
        for start in range(0, len(asked), _TOGETHER):
            for number in asked[start : start + _TOGETHER]:
                decided[number] = deciding.decide(number, row_fractions(rows[number]), labels[number])
            found = replace(found, rows=tuple(decided[number] for number in sorted(decided)))
            done(found)
        found = replace(found, rows=tuple(decided[number] for number in sorted(decided)))
    except Refusal as refusal:
        found = replace(found, reason=str(refusal))
    return replace(found, seconds=time.process_time() - begun)


@dataclass(frozen=True)
class _Deciding:
    law: StrengthLaw
    reach: SegmentReach
    tolerance: Tolerance | None

    def decide(self, number: int, row: tuple[Fraction, ...], label: Any) -> RowDecision:
        made = RowDecision(number, (), LawAnswer.OPEN, share=1.0)
        whole = ANY_STRENGTH if self.tolerance is None else FULL_STRENGTH
        if self.law.closed(row, label, [whole], self.tolerance)[0]:
            return replace(made, answer=LawAnswer.PROVEN, cover=Cover((None,)), share=0.0)
        strength = self._violating(row, label)
        if strength is not None:
            if runs_violate(self.law, row, strength, label):
                return replace(made, answer=LawAnswer.VIOLATED, case=(strength,), share=0.0)
            return made
        cover = self._cover(row, label)
        if cover is None or not self.law.check(row, label, cover, self.tolerance):
            return made
        return replace(made, answer=LawAnswer.PROVEN, cover=cover, share=0.0)

    def _violating(self, row: tuple[Fraction, ...], label: Any) -> Fraction | None:
        """A strength at which the row itself violates the law, exactly; the one with the most room."""
        forbidden = self.law.forbidden(label)
        found = self.reach.decisions(row, self.law.moved(row))
        asked = found if self.tolerance is None else found[-1:]
        bad = [each for each in asked if (found[0].decision, each.decision) in forbidden]
        if not bad:
            return None
        widest = max(bad, key=lambda each: each.high - each.low)
        return (widest.low + widest.high) / 2

    def _cover(self, row: tuple[Fraction, ...], label: Any) -> Cover | None:
        """The strengths cut in halves until every piece is closed."""
        start = ANY_STRENGTH if self.tolerance is None else FULL_STRENGTH
        cuts: dict[Zone, Cut] = {}
        pending, pieces = [start], 1
        while pending:
            closed = self.law.closed(row, label, pending, self.tolerance)
            left = [zone for zone, is_closed in zip(pending, closed, strict=True) if not is_closed]
            pieces += len(left)
            if pieces > _MOST_PIECES or any(zone.values[0].is_single for zone in left):
                return None
            pending = []
            for zone in left:
                low, high = zone.values[0].low, zone.values[0].high
                cuts[zone] = Cut(0, (Fraction(low) + Fraction(high)) / 2)
                pending += zone.cut(0, cuts[zone].at)
        steps: list[Cut | None] = []
        stack = [start]
        while stack:
            zone = stack.pop()
            cut = cuts.get(zone)
            steps.append(cut)
            if cut is not None:
                stack += reversed(zone.cut(0, cut.at))
        return Cover(tuple(steps))


def exactly_violates(law: StrengthLaw, row: tuple[Fraction, ...], strength: Fraction, label: Any) -> bool:
    """Whether the exact decisions on a row, and on what f makes of it at a strength, violate the law."""
    reach = SegmentReach(law.layers)
    mixed = _mixed(law, row, strength)
    first, second = (reach.decisions(each, each)[0].decision for each in (row, mixed))
    return (first, second) in law.forbidden(label)


def runs_violate(law: StrengthLaw, row: tuple[Fraction, ...], strength: Fraction, label: Any) -> bool:
    """Whether the model, as it is run on float32 numbers, violates the law there."""
    both = np.array([[float(x) for x in each] for each in (row, _mixed(law, row, strength))], np.float32)
    first, second = (int(each) for each in law.model.predict(both))
    return (first, second) in law.forbidden(label)


def _mixed(law: StrengthLaw, row: tuple[Fraction, ...], strength: Fraction) -> tuple[Fraction, ...]:
    return tuple(a + strength * (b - a) for a, b in zip(row, law.moved(row), strict=True))
