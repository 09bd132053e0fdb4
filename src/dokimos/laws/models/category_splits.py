"""Splits by sets of categories, as tests of the numbers that a library gives its categories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.models.pipelines import Made, trees_of_records
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
    steps = {}
    for node, split in splits.items():
        column, ranges = int(tree.feature[node]), split.ranges()
        ends = [k + 1 if k + 2 < len(ranges) else _side(ranges[-1][1]) for k in range(len(ranges) - 1)]
        steps[node] = [
            NodeTest(column, end, is_left == split.missing_left, _side(is_left), after)
            for (end, is_left), after in zip(ranges, ends, strict=False)
        ] or [NodeTest(column, 0.0, False, _side(ranges[0][1]), _side(ranges[0][1]))]
    return with_steps(tree, steps)


def _side(is_left: bool) -> int:
    return LEFT if is_left else RIGHT


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


# Splits of catboost, which sums up targets by categories, and by several of them together


#: The most combinations of categories, and of sides of numbers, that one split may be decided by.
_MOST_COMBINATIONS = 4096


@dataclass(frozen=True)
class AskedSplit:
    """What decides a split: columns that are categories, and whether numbers are above borders.

    What it answers is a bit of the number of the leaf that a record reaches in a tree. A missing number is
    above none of its borders, unless it is among `missing_above`.
    """

    categories: tuple[int, ...]
    borders: tuple[tuple[int, float], ...]
    missing_above: frozenset[int]
    tree: int
    bit: int


def asked_splits(document: Any) -> dict[int, AskedSplit]:
    """By their numbers, the splits of a document of catboost that are not of a number alone.

    Splits are numbered: borders of numbers, single categories, and borders of sums of targets. Raises
    NotRead where they are not.
    """
    about = document["features_info"]
    numbers = {each["feature_index"]: each for each in about.get("float_features", ())}
    flat = {
        each["feature_index"]: each["flat_feature_index"] for each in about.get("categorical_features", ())
    }
    sums = [(each, border) for each in about.get("ctrs", ()) for border in each["borders"]]
    first = sum(len(each["borders"] or ()) for each in numbers.values())
    first += sum(len(each.get("values") or ()) for each in about.get("categorical_features", ()))
    above = {
        each["flat_feature_index"] for each in numbers.values() if each["nan_value_treatment"] == "AsTrue"
    }
    found: dict[int, AskedSplit] = {}
    for tree, each in enumerate(document["oblivious_trees"]):
        for bit, split in enumerate(each["splits"] or ()):
            number, elements = split["split_index"], [split]
            if split["split_type"] == "FloatFeature":
                continue
            if split["split_type"] == "OnlineCtr":
                known, border = sums[number - first] if 0 <= number - first < len(sums) else (None, None)
                if known is None or border != split["border"]:
                    raise NotRead("its splits by categories are not numbered as is known here")
                elements = known["elements"]
            elif split["split_type"] != "OneHotFeature":
                raise NotRead(f"a split of the kind {split['split_type']} is not known here")
            places = {flat[part["cat_feature_index"]] for part in elements if "cat_feature_index" in part}
            cuts = {
                (numbers[part["float_feature_index"]]["flat_feature_index"], part["border"])
                for part in elements
                if "cat_feature_index" not in part
            }
            found[number] = AskedSplit(
                tuple(sorted(places)), tuple(sorted(cuts)), frozenset(above), tree, bit
            )
    return found


def of_catboost(
    model: Any,
    splits: Sequence[AskedSplit],
    trees: Ensemble,
    slots: Sequence[Slot],
    layout: Layout,
    hand: Callable[[Rows], Any],
) -> Ensemble:
    """Trees whose last columns are splits by categories as trees of records. Raises NotRead.

    The library itself is asked for each split, with records of all combinations of what decides it.
    """
    inputs = trees.inputs - len(splits)
    if len(slots) != inputs:
        raise NotRead("it takes another number of columns than the domain has features")
    parts = [_parts_of(split, slots) for split in splits]
    plain = np.zeros(layout.width)
    for slot in layout.slots:
        plain[slot.start] = 1.0 if slot.feature.kind is Kind.CHOICE else (slot.feature.low or 0.0)
    asked = [plain[None], *(_combinations(plain, each) for each in parts)]
    leaves = np.asarray(model.calc_leaf_indexes(hand(np.concatenate(asked)))).astype(np.int64)
    answers = np.split(leaves, np.cumsum([len(each) for each in asked])[:-1])[1:]
    chains: list[list[NodeTest]] = []
    for split, answer, own in zip(splits, answers, parts, strict=True):
        bits = answer[:, split.tree] >> split.bit & 1
        chains.append(_steps_of(bits.reshape([len(part.cases) for part in own]), own))

    def steps(feature: int, at: float, missing: bool) -> list[NodeTest]:
        if feature >= inputs:
            return chains[feature - inputs]
        if slots[feature].feature.kind is Kind.CHOICE:
            raise NotRead(f"{slots[feature].feature.name} is a choice, which it takes for a number")
        return [NodeTest(slots[feature].start, at, missing, LEFT, RIGHT)]

    made = []
    for tree in trees.trees:
        assert tree.missing_left is not None  # as they are read
        tests = enumerate(zip(tree.feature, tree.threshold, tree.missing_left, strict=True))
        of = {n: steps(int(f), float(at), bool(gap)) for n, (f, at, gap) in tests if f != LEAF}
        made.append(with_steps(tree, of))
    return trees.changed(trees=made, inputs=layout.width, names=())


@dataclass(frozen=True)
class _Part:
    """One of the features that decide a split: what its columns are in each case, and the tests for it.

    Of a choice, the cases are its options; of a number, those up to each of its `borders`, and above.
    """

    column: int
    cases: NDArray[np.float64]
    borders: tuple[float, ...]
    missing_left: bool


def _parts_of(split: AskedSplit, slots: Sequence[Slot]) -> list[_Part]:
    found = []
    for slot in (slots[k] for k in split.categories):
        feature = slot.feature
        if feature.kind is not Kind.CHOICE or feature.has_none:
            raise NotRead(
                f"{feature.name} is a category for it; declare it as a choice(…) that is never none"
            )
        found.append(_Part(slot.start, np.eye(feature.width), (), False))
    for k, cuts in groupby(split.borders, key=lambda each: each[0]):
        borders = tuple(float(np.float32(border)) for _, border in cuts)
        cases = np.array([*borders, np.nextafter(np.float32(borders[-1]), np.float32(np.inf))])
        found.append(_Part(slots[k].start, cases[:, None], borders, k not in split.missing_above))
    if np.prod([float(len(part.cases)) for part in found]) > _MOST_COMBINATIONS:
        raise NotRead(
            f"a split is decided by more than {_MOST_COMBINATIONS:,} combinations of categories; fit it "
            "with max_ctr_complexity=1"
        )
    return found


def _combinations(plain: NDArray[np.float64], parts: Sequence[_Part]) -> NDArray[np.float64]:
    """Records of all combinations of cases, those of the last part beside each other."""
    rows = plain[None]
    for part in parts:
        count, width = part.cases.shape
        rows = np.repeat(rows, count, axis=0)
        rows[:, part.column : part.column + width] = np.tile(part.cases, (len(rows) // count, 1))
    return rows


def _steps_of(answers: NDArray[np.int64], parts: Sequence[_Part]) -> list[NodeTest]:
    """The tests that lead each combination of cases to the side of its answer, 0 to the left."""
    found: list[NodeTest] = []

    def lead(answers: NDArray[np.int64], parts: Sequence[_Part]) -> int:
        if (answers == answers.flat[0]).all():
            return _side(not answers.flat[0])
        part, own = parts[0], [each.tobytes() for each in answers]
        if part.borders:
            last = len(own) - 1
            tested = [k for k in range(last) if own[k] != own[k + 1]]
        else:  # what most options have is left in the end
            last = own.index(max(own, key=own.count))
            tested = [k for k, each in enumerate(own) if each != own[last]]
        places, sides = [], []
        for k in tested:
            places.append(len(found))
            at = part.borders[k] if part.borders else 0.5
            found.append(NodeTest(part.column + (0 if part.borders else k), at, part.missing_left, 0, 0))
            sides.append(lead(answers[k], parts[1:]))
        rest = lead(answers[last], parts[1:])
        for place, side, after in zip(places, sides, [*places[1:], rest], strict=False):
            left, right = (side, after) if part.borders else (after, side)
            found[place] = found[place]._replace(left=left, right=right)
        return [*places, rest][0]

    end = lead(answers, parts)
    return found or [NodeTest(parts[0].column, 0.5, False, end, end)]
