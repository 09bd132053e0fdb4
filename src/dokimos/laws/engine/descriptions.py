"""Violations in words: what changed in the input, and how the decision changed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.engine.law_case import LawCase
from dokimos.laws.language.law_layout import predictions
from dokimos.laws.language.syntax import Law

#: More changed features than this are counted, not listed.
_LISTED = 6
_SHOWN_TEXT = 60
_NOTHING = "with nothing changed"


def describe(case: LawCase, law: Law, domain: Domain) -> str:
    """One sentence: with 3 more felonies the risk falls from high to low (x1 is row 17, 0-based)."""
    predicted = {each.output: each.record for each in predictions(law) or ()}
    outputs = [each.name for each in law.outputs if each.name in case.values]
    base = law.inputs[0].name
    changed = [name for name in predicted.values() if name != base] or [
        name for name in case.values if _comparable(case.inputs[base], case.values[name])
    ]
    telling = _telling(case, outputs, predicted, base)
    rest = ""
    if telling:
        left = [name for name in outputs if name not in telling and predicted[name] != base]
        outputs, changed = telling, [predicted[telling[1]]]
        if any(
            _changes(case.inputs[base], case.values[predicted[name]], None) != _NOTHING for name in left
        ):
            rest = f", otherwise it stays {decision_name(case.values[telling[0]], domain)}"
    clauses = []
    for name in dict.fromkeys(changed):
        record = case.values[name] if name in case.values else case.inputs[name]
        if name in case.inputs:
            clauses.append(f"with {name} instead of {base}")
        elif isinstance(record, str):
            clauses.append(f"with {_from_to(case.inputs[base], record)}")
        elif _comparable(case.inputs[base], record):
            clauses.append(_changes(case.inputs[base], record, domain.layout))
    rows = _rows(case)
    where = f" ({rows})" if rows else ""
    outcome = _outcome(case, outputs, predicted, base, domain)
    return f"{', '.join(filter(None, clauses)) or 'here'} {outcome}{rest}{where}"


def _telling(case: LawCase, outputs: list[str], predicted: dict[str, str], base: str) -> list[str]:
    """Where several changes are made to one record, and one of them changes the decision: both outputs."""
    first = [name for name in outputs if predicted.get(name) == base]
    others = [name for name in outputs if name not in first]
    if len(first) != 1 or len(others) < 2:
        return []
    for name in others:
        record = case.values.get(predicted.get(name, ""))
        if not _comparable(case.inputs[base], record):
            return []
    unlike = [name for name in others if not _same(case.values[name], case.values[first[0]])]
    return [*first, *unlike] if len(unlike) == 1 else []


def which_case(case: LawCase) -> str:
    """What identifies a case: the rows of its inputs, and what was drawn."""
    rows = _rows(case)
    drawn = f"draws {list(case.draws)}" if case.draws else ""
    return ", ".join(each for each in (rows, drawn) if each) or f"seed {case.seed}"


def _rows(case: LawCase) -> str:
    """Which rows of the data the inputs are, such as: x1 is row 17, 0-based."""
    rows = ", ".join(f"{name} is row {row}" for name, row in case.rows.items() if row is not None)
    return f"{rows}, 0-based" if rows else ""


def _comparable(base: Any, other: Any) -> bool:
    return isinstance(base, np.ndarray) and isinstance(other, np.ndarray) and base.shape == other.shape


def _outcome(
    case: LawCase, outputs: list[str], predicted: dict[str, str], base: str, domain: Domain
) -> str:
    """How the decision changed."""
    first = [name for name in outputs if predicted.get(name) == base]
    others = [name for name in outputs if name not in first]
    if len(first) == 1 and len(others) == 1 and others[0] in predicted:
        old, new = case.values[first[0]], case.values[others[0]]
        change = f"{decision_name(old, domain)} to {decision_name(new, domain)}"
        if old == new:
            return f"the {domain.decision} stays {decision_name(old, domain)}"
        return f"the {domain.decision} {_verb(old, new) if domain.is_ordered else 'changes'} from {change}"
    said = " and ".join(f"{name} is {decision_name(case.values[name], domain)}" for name in outputs)
    return said or "the law is violated"


def _verb(old: Any, new: Any) -> str:
    if isinstance(old, int | float) and isinstance(new, int | float) and not isinstance(old, bool):
        return "falls" if new < old else "rises"
    return "changes"


def decision_name(value: Any, domain: Domain) -> str:
    """The name of a decision, or the value itself."""
    is_index = isinstance(value, int) and not isinstance(value, bool)
    if is_index and 0 <= value < len(domain.classes):
        return str(domain.classes[value])
    return f"{value:g}" if isinstance(value, float) else str(value)


def _changes(base: Any, other: Any, layout: Layout | None) -> str:
    """What is different in one record."""
    flat = [(index, a, b) for index, (a, b) in enumerate(zip(base.ravel(), other.ravel(), strict=True))]
    different = [each for each in flat if not _same(each[1], each[2])]
    if not different:
        return _NOTHING
    if layout is None or base.ndim != 1:
        listed = [f"feature {index} {_from_to(a, b)}" for index, a, b in different]
    else:
        touched = {index for index, _, _ in different}
        slots = [slot for slot in layout.slots if touched & set(range(slot.start, slot.stop))]
        listed = [_slot_change(slot, base, other) for slot in slots]
    if len(listed) > _LISTED:
        numbers = [abs(b - a) for _, a, b in different if isinstance(a, int | float | np.number)]
        by = f", by at most {max(numbers):g}" if numbers else ""
        return f"with {len(listed)} of {base.size} values changed{by}"
    return "with " + " and ".join(listed)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)


def _slot_change(slot: Slot, base: Any, other: Any) -> str:
    feature = slot.feature
    if feature.kind is Kind.CHOICE:
        old, new = (_chosen(slot, record) for record in (base, other))
        return f"{feature.spoken} {new} instead of {old}"
    old, new = base[slot.start], other[slot.start]
    is_flag = (feature.low, feature.high) == (0, 1)
    is_counted = bool(feature.words) or _shown(old) == _shown(new)
    if feature.holds_strings or is_flag or not is_counted:
        return f"{feature.spoken} {_from_to(old, new)}"
    fewer = "fewer" if feature.kind is Kind.INTEGER else "less"
    amount = abs(new - old)
    spoken = one_of(feature.spoken) if amount == 1 else feature.spoken
    return f"{amount:g} {'more' if new > old else fewer} {spoken}"


def one_of(things: str) -> str:
    """The singular of what a feature counts: "juvenile felonies", "points of residence"."""
    head, *rest = re.split(r"(?= (?:of|between|since|until|from) )", things, maxsplit=1)
    if head.endswith("ies"):
        head = f"{head[:-3]}y"
    elif head.endswith("s") and not head.endswith(("ss", "us", "is")):
        head = head[:-1]
    return head + "".join(rest)


def _chosen(slot: Slot, record: Any) -> str:
    hot = np.flatnonzero(record[slot.start : slot.stop] != 0)
    return slot.feature.values[hot[0]] if len(hot) == 1 else "none"


def _from_to(old: Any, new: Any) -> str:
    return f"{_shown(new)} instead of {_shown(old)}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= _SHOWN_TEXT else f"{text[: _SHOWN_TEXT - 1]}…"
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
