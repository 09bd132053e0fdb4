"""Splits by sets of categories, as tests of the numbers that a library gives its categories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.models.pipelines import Made, trees_of_records
from dokimos.laws.models.tested_model import Rows
from dokimos.laws.models.trees import DecisionTree, Ensemble, NotRead


@dataclass(frozen=True)
class CategorySplit:
    """Where a node sends categories: those with these numbers to one side, every other one to the other."""

    codes: Collection[int]
    listed_left: bool
    missing_left: bool

    def ranges(self) -> list[tuple[float, bool]]:
        """Up to which number it goes left or not, one range behind the other; the last one is endless."""
        listed = sorted(set(self.codes))
        found: list[tuple[float, bool]] = []
        for first, code in enumerate(listed):
            if not first or code > listed[first - 1] + 1:
                found.append((code - 0.5, not self.listed_left))
                found.append((code + 0.5, self.listed_left))
            else:
                found[-1] = (code + 0.5, self.listed_left)
        return [*found, (np.inf, not self.listed_left)]


def with_splits(tree: DecisionTree, splits: Mapping[int, CategorySplit]) -> DecisionTree:
    """The tree with a chain of tests of numbers in place of each split by a set.

    Theorem. A whole number, or none, reaches the same leaf: the tests ask for one range of numbers after
    the other, all of a range go to one side, and who has none goes to its side at the first test that has
    it, or at the last.
    """
    if not splits:
        return tree
    chains = {node: split.ranges() for node, split in splits.items()}
    sizes = np.array([max(1, len(chains.get(node, ())) - 1) for node in range(len(tree.feature))])
    start = np.cumsum(sizes) - sizes
    feature, at = np.repeat(tree.feature, sizes), np.repeat(tree.threshold, sizes)
    left, right = (np.repeat(start[side], sizes) for side in (tree.left, tree.right))
    known = np.zeros(len(tree.feature), np.bool_) if tree.missing_left is None else tree.missing_left
    missing = np.repeat(known, sizes)
    for node, ranges in chains.items():
        sides = {True: int(start[tree.left[node]]), False: int(start[tree.right[node]])}
        goes = splits[node].missing_left
        if len(ranges) == 1:  # no category is listed
            left[start[node]] = right[start[node]] = sides[ranges[0][1]]
            missing[start[node]] = False
        for k, (end, is_left) in enumerate(ranges[:-1]):
            own = int(start[node]) + k
            at[own], left[own] = end, sides[is_left]
            right[own] = own + 1 if k + 2 < len(ranges) else sides[ranges[-1][1]]
            missing[own] = is_left == goes
    return DecisionTree(feature, at, left, right, np.repeat(tree.value, sizes, axis=0), missing)


def categories_of_records(
    trees: Ensemble, names: Mapping[int, Sequence[str]], slots: Sequence[Slot], layout: Layout
) -> Ensemble:
    """Trees of columns, of which some are the numbers of categories, as trees of records. Raises NotRead.

    `names` are those of the categories of a column, in the order of their numbers; without any, the records
    have the numbers themselves.
    """
    for column, known in names.items():
        feature = slots[column].feature
        if known and feature.kind is not Kind.CHOICE:
            raise NotRead(f"{feature.name} is a category for it; declare it as a choice(…) in the domain")
        if not known and feature.kind is not Kind.INTEGER:
            raise NotRead(
                f"{feature.name} is a category for it, by its number; declare it as an integer(…)"
            )
        if unknown := [each for each in feature.values if known and each not in known]:
            raise NotRead(f"it has not seen the value {unknown[0]} of {feature.name}")

    def transform(records: Rows) -> NDArray[Any]:
        made = np.empty((len(records), len(slots)))
        for column, slot in enumerate(slots):
            hot = np.asarray(records[:, slot.start : slot.stop], dtype=np.float64)
            if slot.feature.kind is not Kind.CHOICE:
                made[:, column] = hot[:, 0]
                continue
            codes = np.array([names[column].index(each) for each in slot.feature.values], dtype=np.float64)
            made[:, column] = np.where(hot.any(axis=1), codes[hot.argmax(axis=1)], np.nan)
        return made

    for column, slot in enumerate(slots):
        if slot.feature.kind is Kind.CHOICE and not names.get(column):
            raise NotRead(f"{slot.feature.name} is a choice, which it takes for a number")
    columns = [Made(k, rises=not names.get(k)) for k in range(len(slots))]
    return trees_of_records(trees, columns, slots, layout, transform)


def of_xgboost(document: Any) -> dict[int, tuple[str, ...]]:
    """The categories in a document of xgboost: their names, or none where they are numbers."""
    learner = document["learner"]
    kinds = learner.get("feature_types") or []
    every = learner["gradient_booster"]["model"].get("cats", {}).get("enc") or [{}] * len(kinds)
    found: dict[int, tuple[str, ...]] = {}
    for column, kind in enumerate(kinds):
        if kind == "c":
            ends, values = every[column].get("offsets") or [0], every[column].get("values") or []
            texts = [bytes(values[a:b]).decode() for a, b in pairwise(ends)]
            found[column] = tuple(texts)
    return found


def of_lightgbm(known: Mapping[str, str], listed: Sequence[Sequence[Any]] | None) -> dict[int, Any]:
    """The categories of a model of lightgbm: columns whose information is a list, not a range."""
    columns = [k for k, each in enumerate(known["feature_infos"].split()) if each[0] not in "[n"]
    if not listed:
        return dict.fromkeys(columns, ())
    if len(listed) != len(columns):
        raise NotRead("which of its columns are categories is not known")
    return {
        column: tuple(map(str, names)) if all(isinstance(each, str) for each in names) else ()
        for column, names in zip(columns, listed, strict=True)
    }


def of_scikit(
    estimator: Any, trees: Ensemble, slots: Sequence[Slot], layout: Layout, hand: Any
) -> Ensemble:
    """The trees of a HistGradientBoosting, whose encoder puts categories first, as trees of records."""
    is_category = np.asarray(estimator.is_categorical_)
    order = [*np.flatnonzero(is_category).tolist(), *np.flatnonzero(~is_category).tolist()]
    columns = [Made(k, rises=not is_category[k]) for k in order]

    def transform(records: Rows) -> Any:
        return estimator._preprocessor.transform(hand(records))

    return trees_of_records(trees, columns, slots, layout, transform)
