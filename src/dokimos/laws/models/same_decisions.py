"""A model in another form is still that model: it decides every record as the original does, or is refused.

Trees read from an estimator, layers read from an ONNX file, copies of a network side by side: each is
compared with what it was made from, on all rows of the data and on random records, before anything is said
or written of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.models.tested_model import Model, Rows
from dokimos.laws.models.trees import LEAF, Ensemble

#: How many random records are compared.
CASES = 1000
#: Of more records than this that a model fails on, nothing is compared.
_MOST_FAILING = 2000
_SHOWN = 12
#: How often a random record has a value of the data, one at a threshold, one anywhere; else none.
_OWN, _THRESHOLD, _ANY = 0.3, 0.4, 0.2
#: The largest relative difference of scores that is put down to rounding in float32.
_ROUNDING = 1e-3

Decide = Callable[[Rows], NDArray[Any]]


def expect_same_decisions(
    original: Decide,
    made: Decide,
    data: Rows | None,
    cases: Rows,
    *,
    what: str,
    layout: Layout | None,
    is_rounding: Callable[[Rows], bool] = lambda _: False,
) -> None:
    """Compare decisions on rows of data and on random cases. Raises InputError at the first that differs.

    A record that the original fails on, the other has to fail on too. A difference on a record of which
    `is_rounding` is true is none.
    """
    for rows, place in ((data, "row {} (0-based) of the data"), (cases, "a random record")):
        if rows is None or len(rows) == 0:
            continue
        for index, (first, second) in enumerate(
            zip(_decisions(original, rows, what), _decisions(made, rows, what), strict=True)
        ):
            both_nan = first != first and second != second
            if first == second or both_nan or is_rounding(rows[index : index + 1]):
                continue
            shown = _shown(rows[index], layout)
            raise InputError(
                f"{what} decides {_words(second)} where the original decides {_words(first)}, at "
                f"{place.format(index)}: {shown}; it is another model, so it is not used. Please report it."
            )


def _decisions(predict: Decide, rows: Rows, what: str) -> list[Any]:
    """The decision on each row, None where the model fails on it."""
    found: list[Any] = [None] * len(rows)
    has_gap = (
        np.array([_has_gap(row) for row in rows]) if rows.dtype == object else np.isnan(rows).any(axis=1)
    )
    pending = [part for part in (np.flatnonzero(~has_gap), np.flatnonzero(has_gap)) if len(part)]
    failing = 0
    while pending:
        part = pending.pop()
        try:
            answers = np.asarray(predict(rows[part])).tolist()
        except DokimosError:
            raise
        except Exception as problem:  # whatever the user's model raises
            if len(part) > 1:
                pending += np.array_split(part, 2)
                continue
            failing += 1
            if failing > _MOST_FAILING:
                said = " ".join(str(problem).split())[:200]
                raise InputError(
                    f"{what}: it fails on more than {_MOST_FAILING:,} records: {said}."
                ) from None
            continue
        for index, answer in zip(part.tolist(), answers, strict=True):
            found[index] = answer
    return found


def _has_gap(row: Any) -> bool:
    return any(each is None or each != each for each in row)


def _words(decision: Any) -> str:
    return "nothing" if decision is None else repr(decision)


def _shown(row: Rows, layout: Layout | None) -> str:
    columns = range(len(row))
    names = [f"column {k}" if layout is None else layout.at(k).feature.name for k in columns]
    values = ["missing" if each is None or each != each else f"{each}" for each in row.tolist()]
    shown = [f"{name} {value}" for name, value in zip(names, values, strict=True)][:_SHOWN]
    return ", ".join(shown) + (", …" if len(row) > _SHOWN else "")


def thresholds_of(trees: Ensemble) -> dict[int, NDArray[np.float64]]:
    """By column, where trees cut it, and the nearest numbers on either side."""
    found: dict[int, list[NDArray[np.float64]]] = {}
    for tree in trees.trees:
        for column in np.unique(tree.feature[tree.feature != LEAF]).tolist():
            found.setdefault(column, []).append(tree.threshold[tree.feature == column])
    made = {}
    for column, parts in found.items():
        at = np.unique(np.concatenate(parts))
        with np.errstate(over="ignore"):
            single = at.astype(np.float32)
            near = [np.nextafter(at, end) for end in (-np.inf, np.inf)]
            near += [np.nextafter(single, np.float32(end)) for end in (-np.inf, np.inf)]
        every = np.concatenate([at, single, *near]).astype(np.float64)
        made[column] = every[np.abs(every) < np.finfo(np.float32).max]
    return made


def random_cases(
    data: Rows | None,
    layout: Layout | None,
    width: int,
    special: Mapping[int, NDArray[np.float64]],
    *,
    inside: bool = False,
    gaps: Collection[int] | None = None,
) -> Rows:
    """Random records: rows of the data, changed in the columns `special`, which have these values too.

    Half of them have values missing, in the columns `gaps` if these are given. With `inside`, none has, and
    all are in the ranges of the layout.
    """
    rng = np.random.default_rng(0)
    strings = layout is not None and any(feature.holds_strings for feature in layout.features)
    cases: Rows = np.zeros((CASES, width), dtype=object if strings else np.float64)
    if data is not None and len(data):
        # Integers become floats: they could hold neither a threshold nor a missing value.
        cases = data[rng.integers(0, len(data), CASES)].astype(
            object if data.dtype == object else np.float64
        )
    lacks = rng.random(CASES) < 0.5
    for column, values in special.items():
        low, high = _ends(column, layout, values)
        which, drawn = rng.random(CASES), rng.uniform(low, high, CASES)
        if layout is not None and layout.at(column).feature.kind is Kind.INTEGER:
            drawn = np.where(rng.random(CASES) < 0.5 if not inside else True, np.rint(drawn), drawn)
        if len(values):
            there = (which >= _OWN) & (which < _OWN + _THRESHOLD)
            drawn = np.where(there, rng.choice(values, CASES), drawn)
        keep = which < _OWN if data is not None and len(data) and not inside else np.zeros(CASES, np.bool_)
        cases[~keep, column] = drawn[~keep]
        if not inside and (gaps is None or column in gaps):
            cases[lacks & (which >= _OWN + _THRESHOLD + _ANY), column] = np.nan
    for slot in () if layout is None else layout.slots:
        if slot.feature.kind is Kind.CHOICE and not special.keys().isdisjoint(range(slot.start, slot.stop)):
            count = slot.feature.width + slot.feature.has_none
            chosen = np.eye(count, slot.feature.width)[rng.integers(0, count, CASES)]
            cases[:, slot.start : slot.stop] = chosen
    return cases


def _ends(column: int, layout: Layout | None, values: NDArray[np.float64]) -> tuple[float, float]:
    """Between which numbers to draw: those that are declared, or a little beyond the special ones."""
    feature = None if layout is None else layout.at(column).feature
    if feature is not None and feature.low is not None and feature.high is not None:
        return max(feature.low, -1e30), min(feature.high, 1e30)
    return (float(values.min()) - 1, float(values.max()) + 1) if len(values) else (-1.0, 1.0)


def are_close(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether rounding in float32 explains the difference of two rows of scores."""
    size = max(1.0, float(np.abs(first).max(initial=0.0)))
    return bool(np.abs(np.asarray(first, np.float64) - second).max(initial=0.0) <= _ROUNDING * size)


def expect_faithful_trees(model: Model, layout: Layout | None, data: Rows | None) -> bool:
    """Compare trees that were read from a model with that model. Raises InputError where they differ.

    Nothing is compared, and False returned, for a model that was not read from another form, or that fits
    no record, which whoever runs it says.
    """
    trees = model.made_of
    if model.original is None or not isinstance(trees, Ensemble):
        return False
    width = trees.inputs if layout is None else layout.width
    if width != trees.inputs or (data is not None and data.shape[1:] != (width,)):
        return False
    special = thresholds_of(trees)

    def scores(rows: Rows) -> NDArray[Any]:
        numbers = np.zeros((len(rows), width))
        for column in special:
            numbers[:, column] = rows[:, column].astype(np.float64)
        return trees(numbers)

    # A transformer may refuse a missing value that the trees would take: that is asked only where declared.
    is_piped = layout is not None and hasattr(model.source, "steps")
    gaps = {c for c in special if not is_piped or (layout is not None and layout.at(c).feature.may_miss)}
    cases = random_cases(data, layout, width, special, gaps=gaps)
    if model.margins is not None:
        for rows in (each for each in (data, cases) if each is not None and len(each)):
            theirs = np.asarray(model.margins(rows)).reshape(len(rows), -1)
            ours = scores(rows)[:, -theirs.shape[1] :]
            if ours.dtype != theirs.dtype or not np.array_equal(ours, theirs):
                row, column = map(int, np.argwhere(ours != theirs)[0])
                sums = (
                    f"adds up to {ours[row, column]:.17g} where the library has {theirs[row, column]:.17g}"
                )
                raise InputError(
                    f"{model.name}: read as trees, it {sums}, at {_shown(rows[row], layout)}; it is not "
                    "used. Please report it."
                )
    if trees.link or trees.is_vector:  # what is decided is another number, or several
        return True
    original = model.original

    def decided(rows: Rows) -> NDArray[Any]:
        ours = scores(rows)
        if len(ours[0]) > 1 or not trees.tie:
            return trees.decide(ours)
        theirs = np.asarray(original(rows)).astype(np.float64)
        return np.where(np.abs(theirs - ours[:, 0]) <= trees.tie, theirs, ours[:, 0])

    expect_same_decisions(
        original,
        decided,
        data,
        cases,
        what=f"{model.name}: read as trees, it",
        layout=layout,
        is_rounding=lambda row: trees.tie > 0 and _is_close(scores(row)[0], trees.tie),
    )
    return True


def _is_close(scores: NDArray[Any], tie: float) -> bool:
    """Whether the two largest scores are that close."""
    if len(scores) == 1:
        return False
    first, second = np.sort(scores)[-1:-3:-1].astype(np.float64)
    return bool(first - second <= tie)
