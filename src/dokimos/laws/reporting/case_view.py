"""The differences between the records of a violation: a table of features, pictures, or a text diff."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.engine.descriptions import decision_name
from dokimos.laws.engine.law_case import LawCase
from dokimos.laws.language.law_layout import predictions
from dokimos.laws.language.syntax import Law
from dokimos.reports.figures.counterexample import data_address, png

#: Rows of a table, or characters of a text, beyond this are left out, and the page says so.
_MOST_ROWS = 14
_MOST_CHARACTERS = 6_000


class TextChange(Enum):
    """Whether a piece of text was kept, added or removed."""

    KEPT = "kept"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True)
class Track:
    """Where a number was and where it went, as positions in percent between `low` and `high`."""

    start: float
    ends: tuple[float, ...]
    low: str
    high: str

    @property
    def bar(self) -> tuple[float, float]:
        """The start and the width of the bar between them."""
        places = (self.start, *self.ends)
        return min(places), max(places) - min(places)


@dataclass(frozen=True)
class FeatureRow:
    """A feature: its value in each record, whether that differs from the first, and how numbers moved."""

    name: str
    values: tuple[str, ...]
    changed: tuple[bool, ...]
    track: Track | None = None


@dataclass(frozen=True)
class CaseView:
    """The records of a case side by side: `names` above, `rows` of features, `decisions` below.

    `pictures` and `texts` have one for each record, the latter as pieces compared with the first; both are
    empty if records are not shown that way. `left_off` rows are not shown; `same` are the features with the
    same value in all records. `trouble` is the error that the domain's own display functions raised.
    """

    names: tuple[str, ...]
    rows: tuple[FeatureRow, ...]
    left_off: int
    decisions: tuple[FeatureRow, ...]
    pictures: tuple[str, ...]
    texts: tuple[tuple[tuple[TextChange, str], ...], ...]
    same: tuple[tuple[str, str], ...] = ()
    trouble: str = ""


def view_case(case: LawCase, law: Law, domain: Domain) -> CaseView:
    """The records of a case, the first input first."""
    records = _records(case, law)
    names, values = tuple(records), list(records.values())
    pictures: tuple[str, ...] = ()
    texts: tuple[tuple[tuple[TextChange, str], ...], ...] = ()
    trouble = ""
    try:
        if domain.picture is not None:
            pictures = tuple(data_address(png(domain.picture(value))) for value in values)
        plain = [domain.text(value) if domain.text is not None else value for value in values]
        if all(isinstance(each, str) for each in plain):
            texts = tuple(compare_texts(plain[0], each) for each in plain)
    except Exception as problem:  # the domain's own code: the page says so and goes on
        trouble = f"{type(problem).__name__}: {problem}"
    every = () if pictures or texts else _rows(values, domain.layout)
    rows = tuple(row for row in every if any(row.changed))
    same = tuple((row.name, row.values[0]) for row in every if not any(row.changed))
    return CaseView(
        names=names,
        rows=rows[:_MOST_ROWS],
        left_off=max(0, len(rows) - _MOST_ROWS),
        decisions=_decisions(case, law, domain, names),
        pictures=pictures,
        texts=texts,
        same=same,
        trouble=trouble,
    )


def _records(case: LawCase, law: Law) -> dict[str, Any]:
    """The inputs and the predicted records; all records if the block is other code."""
    found = predictions(law)
    known: dict[str, Any] = {**case.inputs, **case.values}
    if found is not None:
        names = [*case.inputs, *(each.record for each in found)]
    else:
        names = [*case.inputs, *(each.name for each in law.variables if _is_record(known.get(each.name)))]
    return {name: known[name] for name in dict.fromkeys(names) if name in known}


def _is_record(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _decisions(case: LawCase, law: Law, domain: Domain, names: tuple[str, ...]) -> tuple[FeatureRow, ...]:
    """One row with the decision on each record, or one row per output if code computes them."""
    found = predictions(law)
    outputs = [each.name for each in law.outputs if each.name in case.values]
    if found is None:
        return tuple(
            FeatureRow(name, (decision_name(case.values[name], domain),), (False,)) for name in outputs
        )
    by_record = {each.record: decision_name(case.values[each.output], domain) for each in found}
    texts = tuple(by_record.get(name, "–") for name in names)
    first = next((each for each in texts if each != "–"), "–")
    return (FeatureRow(domain.decision, texts, tuple(each not in ("–", first) for each in texts)),)


def _rows(values: list[Any], layout: Layout | None) -> tuple[FeatureRow, ...]:
    """The features of the records; if they have no names, only those that differ."""
    base = values[0]
    if not _is_record(base) or any(np.shape(each) != base.shape for each in values):
        texts = tuple(_as_text(each) for each in values)
        return (FeatureRow("record", texts, tuple(each != texts[0] for each in texts)),)
    if layout is not None and base.ndim == 1:
        cells = {slot.feature.name: [_feature(slot, each) for each in values] for slot in layout.slots}
        ranges = {slot.feature.name: (slot.feature.low, slot.feature.high) for slot in layout.slots}
    else:
        flat = [each.ravel() for each in values]
        differs = np.zeros(base.size, dtype=np.bool_)
        for other in flat[1:]:
            differs |= np.asarray(other != flat[0], dtype=np.bool_)
        places = np.flatnonzero(differs)
        ranges = {}
        cells = {f"feature {place}": [_as_text(each[place]) for each in flat] for place in places}
    return tuple(
        FeatureRow(
            name,
            tuple(texts),
            tuple(each != texts[0] for each in texts),
            track_of(texts, *ranges.get(name, (None, None))),
        )
        for name, texts in cells.items()
    )


def track_of(texts: Sequence[str], low: float | None, high: float | None) -> Track | None:
    """The track of numbers that changed, between the ends of their range, or of the numbers themselves.

    None for values that are not numbers, or that are the same in all records.
    """
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    if len(set(numbers)) < 2 or not all(map(math.isfinite, numbers)):
        return None
    start = min([*numbers, *([low] if low is not None and math.isfinite(low) else [])])
    end = max([*numbers, *([high] if high is not None and math.isfinite(high) else [])])
    if not math.isfinite(end - start):
        return None
    first, *others = (round(100 * (number - start) / (end - start), 2) for number in numbers)
    return Track(
        first, tuple(dict.fromkeys(place for place in others if place != first)), f"{start:g}", f"{end:g}"
    )


def _feature(slot: Slot, record: Any) -> str:
    if slot.feature.kind is Kind.CHOICE:
        hot = np.flatnonzero(record[slot.start : slot.stop] != 0)
        return slot.feature.values[hot[0]] if len(hot) == 1 else "none"
    return _as_text(record[slot.start])


def _as_text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value):.10g}"
    text = str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


def compare_texts(base: str, other: str) -> tuple[tuple[TextChange, str], ...]:
    """A diff of two texts: pieces of the first that were kept or removed, and pieces that were added."""
    if len(base) + len(other) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        base, other = (f"{text[:half]}…" if len(text) > half else text for text in (base, other))
    old, new = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in (base, other))
    pieces: list[tuple[TextChange, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append((TextChange.KEPT, "".join(old[a:b])))
            continue
        pieces += [(TextChange.REMOVED, "".join(old[a:b]))] if b > a else []
        pieces += [(TextChange.ADDED, "".join(new[c:d]))] if d > c else []
    return tuple(pieces)
