"""Trees behind transformers of scikit-learn, as trees of the records themselves.

Every transformer here makes each of its columns of one column of its input: as a number that never falls
when the input rises, or as any function of a choice. So a test of such a column is a test of the input: of
a number, up to the last double that passes; of a choice, of the options that do. Which these are is asked
of the transformers themselves, so that their rounding counts as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.models.tested_model import Rows
from dokimos.laws.models.trees import (
    LEAF,
    LEFT,
    RIGHT,
    DecisionTree,
    Ensemble,
    NodeTest,
    NotRead,
    with_steps,
)

#: Numbers of records are looked for between these ends.
_MOST = 1e30
#: Transformers that keep the order of the numbers of each column.
_RISING = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer", "SimpleImputer")


@dataclass(frozen=True)
class Made:
    """What one column is made of: a column of the input, by number, or a constant; and whether it rises."""

    column: int | None
    rises: bool = True


def made_of(transformer: Any, given: Sequence[Made], kinds: Sequence[str] = ()) -> list[Made]:
    """What each column is made of that a fitted transformer makes of given ones. Raises NotRead.

    With `kinds`, only transformers of these do.
    """
    kind = type(transformer).__name__
    if transformer is None or isinstance(transformer, str):
        return list(given)
    if kinds and kind not in kinds:
        raise NotRead(f"a {kind} in front of a linear model or a network is not known here")
    if getattr(transformer, "clip", False) and kinds:
        raise NotRead("a MinMaxScaler with clip=True is not linear")
    if kind in _RISING or (kind == "FunctionTransformer" and transformer.func is None):
        return _rising(transformer, kind, given)
    if kind == "OrdinalEncoder":
        return [Made(each.column, rises=False) for each in given]
    if kind == "OneHotEncoder":
        pairs = zip(given, transformer._n_features_outs, strict=True)
        return [Made(each.column, rises=False) for each, count in pairs for _ in range(count)]
    if kind == "PolynomialFeatures":
        return [_of_power(power, given) for power in transformer.powers_.tolist()]
    if kind == "Pipeline":
        found = list(given)
        for _, step in transformer.steps:
            found = made_of(step, found, kinds)
        return found
    if kind == "ColumnTransformer":
        return _of_columns(transformer, given, kinds)
    if hasattr(transformer, "get_support"):
        return [each for each, kept in zip(given, transformer.get_support(), strict=True) if kept]
    raise NotRead(f"what a {kind} makes of columns is not known here; put it before the data")


def _rising(transformer: Any, kind: str, given: Sequence[Made]) -> list[Made]:
    if getattr(transformer, "add_indicator", False):
        raise NotRead("a SimpleImputer adds columns that say what was missing (add_indicator)")
    absent = getattr(transformer, "missing_values", np.nan)
    if absent == absent:
        raise NotRead(f"a SimpleImputer replaces {absent!r}; give missing values as nan")
    kept = list(given)
    if kind == "SimpleImputer" and not transformer.keep_empty_features:
        is_empty = [each is None or each != each for each in transformer.statistics_.tolist()]
        kept = [each for each, gone in zip(given, is_empty, strict=True) if not gone]
    return kept


def _of_power(power: Sequence[int], given: Sequence[Made]) -> Made:
    used = [k for k, each in enumerate(power) if each]
    if not used:
        return Made(None)
    if len(used) > 1 or power[used[0]] != 1:
        raise NotRead("PolynomialFeatures multiply columns; use degree 1")
    return given[used[0]]


def _of_columns(transformer: Any, given: Sequence[Made], kinds: Sequence[str]) -> list[Made]:
    names = [str(each) for each in getattr(transformer, "feature_names_in_", ())]
    parts: list[tuple[int, list[Made]]] = []
    for name, each, columns in transformer.transformers_:
        place = transformer.output_indices_[name]
        if (isinstance(each, str) and each == "drop") or place.start == place.stop:
            continue
        own = [given[k] for k in _numbers_of(columns, names, len(given))]
        made = made_of(each, own, kinds)
        if len(made) != place.stop - place.start:
            raise NotRead(f"the ColumnTransformer's part {name} makes another number of columns")
        parts.append((place.start, made))
    return [each for _, made in sorted(parts, key=lambda part: part[0]) for each in made]


def _numbers_of(columns: Any, names: Sequence[str], width: int) -> list[int]:
    if isinstance(columns, slice):
        return list(range(width))[columns]
    listed = [columns] if isinstance(columns, str | int) else list(columns)
    if len(listed) == width and all(isinstance(each, bool | np.bool_) for each in listed):
        return [k for k, each in enumerate(listed) if each]
    return [names.index(each) if isinstance(each, str) else int(each) for each in listed]


def trees_of_records(
    trees: Ensemble,
    made: Sequence[Made],
    slots: Sequence[Slot],
    layout: Layout,
    transform: Callable[[Rows], NDArray[Any]],
) -> Ensemble:
    """Trees of transformed columns as trees of the records of a layout. Raises NotRead.

    `slots` are the features that the input of the transformers has, in their order; `transform` turns
    records into what the trees take.
    """
    work = _Pulled(trees, made, slots, layout, transform)
    return trees.changed(
        trees=[work.tree(each) for each in trees.trees],
        inputs=layout.width,
        single=False,
        takes_missing=work.takes_missing,
        names=(),
    )


def _always(column: int, left: bool) -> NodeTest:
    end = float(np.finfo(np.float64).max)
    return NodeTest(column, end if left else -end, left, LEFT, RIGHT)


class _Pulled:
    def __init__(
        self,
        trees: Ensemble,
        made: Sequence[Made],
        slots: Sequence[Slot],
        layout: Layout,
        transform: Callable[[Rows], NDArray[Any]],
    ) -> None:
        if len(made) != trees.inputs:
            raise NotRead("the transformers make another number of columns than the model takes")
        self._trees, self._layout, self._slots = trees, layout, slots
        self._made, self._transform = made, transform
        self._plain = np.zeros((1, layout.width))
        for slot in layout.slots:
            if slot.feature.holds_strings:
                raise NotRead(f"{slot.feature.name} holds strings; declare it as a choice(…) in the domain")
            low, high = slot.feature.low, slot.feature.high
            if max(-(low or 0.0), high or 0.0) > _MOST:
                raise NotRead(
                    f"{slot.feature.name} has numbers beyond {_MOST:g}, which are not asked about"
                )
            self._plain[0, slot.start] = 1.0 if slot.feature.kind is Kind.CHOICE else (low or 0.0)
        self.takes_missing = True
        used = {
            made[column].column for tree in trees.trees for column in set(tree.feature.tolist()) - {LEAF}
        }
        self._gaps = {
            k: self._without(slots[k])
            for k in sorted(each for each in used if each is not None)
            if slots[k].feature.kind is not Kind.CHOICE
        }
        self._options = {
            k: self._of_options(slot) for k, slot in enumerate(slots) if slot.feature.kind is Kind.CHOICE
        }
        self._last = self._found()

    def tree(self, tree: DecisionTree) -> DecisionTree:
        """The same tree of records: a test of a choice becomes one of an option after the other."""
        inner = np.flatnonzero(tree.feature != LEAF).tolist()
        return with_steps(tree, {node: self._steps(tree, node) for node in inner})

    def _steps(self, tree: DecisionTree, node: int) -> list[NodeTest]:
        """The tests of a node: of a number, or of options, each of which goes to a side."""
        column = int(tree.feature[node])
        source, at = self._made[column].column, float(tree.threshold[node])
        missing = tree.missing_left is not None and bool(tree.missing_left[node])
        if source is None:
            value = self._transformed(self._plain)[0, column]
            return [_always(0, self._goes_left(float(value), at, missing))]
        slot = self._slots[source]
        if source in self._options:
            return self._of_choice(slot, self._options[source][:, column], at, missing)
        if source in self._gaps:
            missing = self._goes_left(self._gaps[source][column], at, missing)
        return [NodeTest(slot.start, self._last[column, at], missing, LEFT, RIGHT)]

    def _of_choice(
        self, slot: Slot, values: NDArray[np.float64], at: float, missing: bool
    ) -> list[NodeTest]:
        sides = [self._goes_left(value, at, missing) for value in values.tolist()]
        options = sides[: slot.feature.width]
        rest = sides[-1] if slot.feature.has_none else sum(options) * 2 > len(options)
        tested = [k for k, side in enumerate(options) if side is not rest]
        one, other = (LEFT, RIGHT) if rest else (RIGHT, LEFT)
        found = [NodeTest(slot.start + k, 0.5, False, n + 1, other) for n, k in enumerate(tested)]
        return [*found[:-1], found[-1]._replace(left=one)] if found else [_always(slot.start, rest)]

    def _goes_left(self, value: float, at: float, missing: bool) -> bool:
        return missing if value != value else bool(value <= at)

    def _transformed(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        made = self._transform(records)
        rows = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
        with np.errstate(over="ignore"):
            numbers: NDArray[Any] = rows.astype(np.float32 if self._trees.single else np.float64)
        return np.asarray(numbers.astype(np.float64))

    def _without(self, slot: Slot) -> NDArray[np.float64]:
        """What a missing value becomes; nan where that is refused, as no record then has one."""
        rows = self._plain.copy()
        rows[0, slot.start] = np.nan
        try:
            found = np.asarray(self._transformed(rows)[0])
        except NotRead:  # it does not take missing values
            self.takes_missing = False
            return np.full(len(self._made), np.nan, dtype=np.float64)
        if np.isnan(found).any() and not self._trees.takes_missing:
            self.takes_missing = False
        return found

    def _of_options(self, slot: Slot) -> NDArray[np.float64]:
        """What each option of a choice becomes, and last none."""
        count = slot.feature.width + slot.feature.has_none
        rows = np.repeat(self._plain, count, axis=0)
        rows[:, slot.start : slot.stop] = np.eye(count, slot.feature.width)
        return self._transformed(rows)

    def _found(self) -> Mapping[tuple[int, float], float]:
        """By a column and where it is tested, the last number of the record that goes left."""
        tests: list[tuple[int, float]] = []
        for column in range(len(self._made)):
            source = self._made[column].column
            if source is None or source in self._options:
                continue
            tested = [tree.threshold[tree.feature == column] for tree in self._trees.trees]
            every = np.unique(np.concatenate(tested)).tolist()
            if every and not self._made[column].rises:
                name = self._slots[source].feature.name
                raise NotRead(
                    f"{name} is encoded by its values, but is a number; declare it as a choice(…)"
                )
            tests += [(column, each) for each in every]
        if not tests:
            return {}
        columns = np.array([column for column, _ in tests])
        places = np.array([self._slots[self._made[c].column or 0].start for c in columns])
        at = np.array([each for _, each in tests])
        rows, own = np.repeat(self._plain, len(tests), axis=0), np.arange(len(tests))

        def goes_left(values: NDArray[np.float64]) -> NDArray[np.bool_]:
            rows[own, places] = values
            return np.asarray(self._transformed(rows)[own, columns] <= at)

        low, zero, high = (np.full(len(tests), each) for each in (-_MOST, 0.0, _MOST))
        none, all_of_them, is_above = ~goes_left(low), goes_left(high), goes_left(zero)
        first = _ordered(np.where(is_above, zero, low))
        last = _ordered(np.where(is_above, high, zero))
        while (last - first > 1).any():
            middle = first + (last - first) // 2
            passes = goes_left(_double(middle))
            first, last = np.where(passes, middle, first), np.where(passes, last, middle)
        end = np.finfo(np.float64).max
        found = np.where(none, -end, np.where(all_of_them, end, _double(first)))
        return dict(zip(tests, found.tolist(), strict=True))


def _ordered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Doubles as integers in the same order."""
    bits = values.view(np.int64)
    return np.asarray(np.where(bits < 0, np.iinfo(np.int64).min - bits, bits))


def _double(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    bits = np.where(numbers < 0, np.iinfo(np.int64).min - numbers, numbers)
    return np.asarray(bits.view(np.float64))
