"""What a domain declares about its records (ranges, kinds, constraints), and which records break it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature, Kind, Layout, Slot
from dokimos.laws.engine.calls import Failures
from dokimos.laws.engine.case_frame import UNCHANGED, Frame, Records
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.values import nulls, same_values
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.record_constraints import RECORD, Constraint, constraints_of

Mask = NDArray[np.bool_]


class RecordRules:
    """The ranges, kinds and constraints of a domain. A value is missing only where that is declared."""

    def __init__(self, domain: Domain) -> None:
        """Raises LawError if a constraint is wrong."""
        self.domain = domain
        self.constraints = constraints_of(domain)

    @cached_property
    def _plan(self) -> LawPlan:
        nothing = laws.Law((), (), laws.Block("", ""), (), name=f"CONSTRAINTS of {self.domain.name}")
        return LawPlan(nothing, self.domain, (), (), {}, {}, None, None)

    def satisfied(self, data: NDArray[Any]) -> Mask:
        """Which records satisfy all constraints; if evaluating one fails, the record does not."""
        good = np.ones(len(data), dtype=np.bool_)
        for each in self.constraints:
            good &= self._satisfies(data, each)
        return good

    def _satisfies(self, data: NDArray[Any], constraint: Constraint) -> Mask:
        if len(data) == 0:
            return np.ones(0, dtype=np.bool_)
        rows = np.arange(len(data))
        failures = Failures()
        frame = Frame(rows, np.zeros(len(data), dtype=np.int64), {RECORD: Records(data)})
        held = Evaluator(self._plan, frame, failures, _no_labels).condition(constraint.condition)
        return held & ~np.isin(rows, list(failures.by_case))

    def left_by(self, frame: Frame, names: Sequence[str], base: str) -> Mask:
        """The cases in which one of the records called `names` was changed so that it breaks the rules.

        A record made by a function of the domain counts as changed wherever it differs from `base`. A value
        that is missing, where the domain does not declare that it may be, counts wherever it comes from:
        such a record is in no set that a law is proven for.
        """
        left = np.zeros(frame.size, dtype=np.bool_)
        origin = frame.values[base]
        for name in names:
            records = frame.values[name]
            if not isinstance(records, Records) or not isinstance(origin, Records):
                continue
            is_known = name != base and base in names and _is_from(records, origin)
            for _, broken in self._broken(records, origin, gaps_in_changes=is_known):
                left |= broken
        return left

    def reasons(self, frame: Frame, names: Sequence[str], base: str) -> tuple[str, ...]:
        """How the records of the first case break the rules, in words."""
        origin = frame.values[base]
        assert isinstance(origin, Records)  # it is an input
        found = []
        for name in names:
            records = frame.values[name]
            if isinstance(records, Records):
                one = records.take(np.array([0]))
                broken = self._broken(one, origin.take(np.array([0])))
                found += [_reason(rule, one.data[0]) for rule, where in broken if where[0]]
        return tuple(dict.fromkeys(found))

    def _broken(
        self, records: Records, base: Records, *, gaps_in_changes: bool = False
    ) -> list[tuple[Slot | Constraint, Mask]]:
        """Each rule that the changes to the records may have broken, and in which cases they did.

        With `gaps_in_changes`, missing values are looked for only where features were changed.
        """
        layout, data = self.domain.layout, records.data
        if layout is None or data.ndim != 2 or data.shape[1] != layout.width:
            return []
        among = records.changed if gaps_in_changes else None
        broken: list[tuple[Slot | Constraint, Mask]] = [*undeclared_gaps(layout, data, among)]
        if records.changed == UNCHANGED:
            return broken
        unknown = records.changed is None and data.shape == base.data.shape
        differs = ~same_values(data, base.data) if unknown else None
        touched = set()
        for slot in layout.slots:
            if records.changed is not None and slot.feature.name not in records.changed:
                continue
            touched.add(slot.feature.name)
            wrong = _outside(slot, data[:, slot.start : slot.stop])
            if differs is not None:
                wrong &= differs[:, slot.start : slot.stop].any(axis=1)
            broken.append((slot, wrong))
        for each in self.constraints:
            named = {layout.feature_at(layout.named(name).start).name for name in each.features}
            if named & touched:
                wrong = ~self._satisfies(data, each)
                if differs is not None:
                    wrong &= differs.any(axis=1)
                broken.append((each, wrong))
        return broken


def _no_labels() -> Any:
    raise AssertionError("a constraint has no labels")  # constraints_of lets none of them ask


def _outside(slot: Slot, columns: NDArray[Any]) -> Mask:
    """Where the columns of a feature hold values that it does not declare."""
    feature = slot.feature
    if feature.holds_strings:
        fits = [_is_missing(each) or _is_one_of(each, feature) for each in columns[:, 0]]
        return ~np.array(fits, dtype=np.bool_)
    try:
        numbers = columns.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        return np.ones(len(columns), dtype=np.bool_)
    if feature.kind is Kind.CHOICE:
        hot = (numbers == 1).sum(axis=1)
        good = ((numbers == 0) | (numbers == 1)).all(axis=1) & (hot <= 1)
        return np.asarray(~(good & ((hot == 1) | feature.has_none)), dtype=np.bool_)
    value = numbers[:, 0]
    wrong = np.zeros(len(value), dtype=np.bool_)
    if feature.low is not None:
        wrong |= value < feature.low
    if feature.high is not None:
        wrong |= value > feature.high
    if feature.kind is Kind.INTEGER:
        wrong |= np.isfinite(value) & (np.floor(value) != value)
    return wrong


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _is_from(records: Records, base: Records) -> bool:
    """Whether records are those of `base`, but for the features that they are known to be changed in."""
    if records.changed is None or records.origin is None or base.origin is None:
        return False
    return np.array_equal(records.origin, base.origin)


def undeclared_gaps(
    layout: Layout, data: NDArray[Any], among: frozenset[str] | None = None
) -> Iterator[tuple[Slot, Mask]]:
    """The features (`among` some) that records have no value of, which the domain does not declare."""
    if data.dtype.kind == "f" and among is None:
        with np.errstate(all="ignore"):
            if not np.isnan(data.sum()):  # the fastest way to see that there is no nan
                return
    for slot in layout.slots:
        if slot.feature.may_miss or slot.feature.kind is Kind.CHOICE:
            continue
        if among is not None and slot.feature.name not in among:
            continue
        gaps = nulls(data[:, slot.start])
        if gaps.any():
            yield slot, gaps


def _is_one_of(value: Any, feature: Feature) -> bool:
    return isinstance(value, str) and (not feature.values or value in feature.values)


def _reason(rule: Slot | Constraint, record: NDArray[Any]) -> str:
    """The value of a record, and what is declared instead."""
    if isinstance(rule, Slot):
        feature = rule.feature
        value = record[rule.start]
        if feature.kind is not Kind.CHOICE and _is_missing(value):
            return f"{feature.name} is missing"
        if feature.kind is Kind.CHOICE or feature.holds_strings:
            return f"{feature.name} has none of its values"
        shown = f"{value:g}" if isinstance(value, float | np.floating) else str(value)
        kind = "an integer" if feature.kind is Kind.INTEGER else "a number"
        ends = f" from {feature.low:g}" if feature.low is not None else ""
        ends += f" to {feature.high:g}" if feature.high is not None else ""
        return f"{feature.name} is {shown}, declared {kind}{ends}"
    return f"it breaks the constraint {rule.text}"
