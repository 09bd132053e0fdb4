"""Statements about sums of trees: decided as going through all cases decides them, and no false one proven.

The oracle shares nothing with the checker: it walks every tree for every case, one node at a time, adds the
values one by one in numpy scalars, and compares fractions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from dokimos.checker.lemmas.zones import (
    ALWAYS,
    Comparison,
    Cover,
    Cut,
    Either,
    Every,
    ForbiddenDecisions,
    Formula,
    Grid,
    Number,
    Options,
    Quantity,
    Sign,
    Span,
    Zone,
    exact,
)
from dokimos.checker.trees.covers import check_tree_cover, units
from dokimos.checker.trees.leaves import ForbiddenScores, ScoreComparison, SumOfTrees, TreeStatement
from dokimos.core.errors import InvalidProof
from dokimos.engine.tree_search import TreeSearch

Case = tuple[Number, ...]
#: Three features: a whole number, a double, a choice of three options or none.
WHOLE, DOUBLE, CHOICE = range(3)


# The oracle


def _cases(statement: TreeStatement) -> Iterator[Case]:
    """Every case; of doubles, the thresholds, the ends, and what is next to them."""
    axes: list[list[Number]] = []
    for values in statement.zone.values:
        if isinstance(values, Options):
            axes.append(sorted(values.left))
        elif values.grid is Grid.WHOLE:
            axes.append(list(range(int(values.low), int(values.high) + 1)))
        else:
            inside = statement.trees.last[np.isfinite(statement.trees.last)].tolist()
            at = {float(values.low), float(values.high), *inside}
            near = {float(np.nextafter(each, end)) for each in at for end in (-np.inf, np.inf)}
            axes.append(sorted(exact(each) for each in at | near if values.low <= each <= values.high))
    yield from product(*axes)


def _holds(formula: Formula, case: Case) -> bool:
    if isinstance(formula, Comparison):
        value = Fraction(formula.quantity.constant)
        for variable, factor in formula.quantity.terms:
            value += Fraction(factor) * case[variable]
        signs = {"<=": value <= 0, "<": value < 0, "==": value == 0, "!=": value != 0}
        return signs[formula.sign.value]
    found = [_holds(each, case) for each in formula.parts]
    return all(found) if isinstance(formula, Every) else any(found)


Known = dict[tuple[Fraction | None, ...], int]


def _decision(trees: SumOfTrees, record: tuple[Quantity, ...], case: Case, known: Known) -> int:
    given = []
    for feature in record:
        gone = any(gap == ALWAYS or case[gap] == 1 for gap in feature.gaps)
        value = Fraction(feature.constant) + sum(f * case[v] for v, f in feature.terms)
        given.append(None if gone else value)
    key = tuple(given)
    if key not in known:
        known[key] = _walked(trees, key)
    return known[key]


def _walked(trees: SumOfTrees, record: tuple[Fraction | None, ...]) -> int:
    found = _scored(trees, record)
    return found.index(max(found))


def reached(trees: SumOfTrees, record: tuple[Fraction | None, ...]) -> list[int]:
    """The leaf of each tree."""
    found = []
    for node in trees.roots.tolist():
        while trees.place[node] >= 0:
            value = record[trees.place[node]]
            if value is not None and trees.option[node] >= 0:
                value = Fraction(int(value == int(trees.option[node])))
            left = trees.missing_left[node] if value is None else value <= float(trees.last[node])
            node = int(trees.left[node] if left else trees.right[node])
        found.append(node)
    return found


def _scored(trees: SumOfTrees, record: tuple[Fraction | None, ...]) -> list[Any]:
    kind = trees.values.dtype.type
    scores = [kind(each) for each in trees.base]
    for node in reached(trees, record):
        scores = [kind(a + b) for a, b in zip(scores, trees.values[node], strict=True)]
    return [kind(each / kind(trees.divide)) for each in scores]


def _is_violated(statement: TreeStatement, case: Case, known: Known | None = None) -> bool:
    if not all(_holds(each, case) for each in statement.conditions):
        return False
    cache = {} if known is None else known
    classes = tuple(_decision(statement.trees, record, case, cache) for record in statement.records)
    return any(each.classes == classes and _holds(each.where, case) for each in statement.forbidden)


def _has_violation(statement: TreeStatement) -> bool:
    known: Known = {}
    return any(_is_violated(statement, case, known) for case in _cases(statement))


# Statements drawn at random


def _trees(rng: random.Random, classes: int) -> SumOfTrees:
    style = rng.choice(["small", "tenths", "one", "wide"])
    dtype = rng.choice([np.float64, np.float64, np.float32])
    roots, nodes = [], []
    for _ in range(rng.choice([1, 2, 3, 5])):
        roots.append(len(nodes))
        _grow(rng, nodes, rng.randint(1, 3))
    values = np.zeros((len(nodes), classes))
    for node, (place, *_) in enumerate(nodes):
        if place < 0:
            values[node] = [_value(rng, style) for _ in range(classes)]
            if style == "one":
                values[node, 0] = 0.0
    columns = [np.array(each) for each in zip(*nodes, strict=True)]
    return SumOfTrees(
        roots=np.array(roots),
        place=columns[0],
        option=columns[1],
        last=columns[2].astype(np.float64),
        missing_left=columns[3].astype(np.bool_),
        left=columns[4],
        right=columns[5],
        values=values.astype(dtype),
        base=np.array([_value(rng, style) for _ in range(classes)], dtype=dtype),
        divide=rng.choice([1.0, 1.0, 3.0, 30.0]),
    )


def _value(rng: random.Random, style: str) -> float:
    if style == "small":
        return float(rng.randint(0, 3))
    if style == "wide":
        return rng.choice([1.0, -1.0]) * 2.0 ** rng.randint(-40, 3)
    return rng.randint(-5, 5) / 10


def _grow(rng: random.Random, nodes: list[Any], depth: int) -> None:
    own = len(nodes)
    if depth == 0:
        nodes.append((-1, -1, 0.0, False, own, own))
        return
    place = rng.randrange(3)
    option = rng.randrange(3) if place == CHOICE else -1
    last = {WHOLE: rng.randint(0, 4) + 0.5, DOUBLE: rng.choice([0.1, 0.25, 0.5, 0.7]), CHOICE: 0.5}[place]
    if rng.random() < 0.05:
        last = rng.choice([-1.0, 9.0, float("inf"), float("-inf")])
    nodes.append(None)
    _grow(rng, nodes, depth - 1)
    right = len(nodes)
    _grow(rng, nodes, depth - 1 if rng.random() < 0.8 else 0)
    nodes[own] = (place, option, last, rng.random() < 0.5, own + 1, right)


def _statement(seed: int) -> TreeStatement:
    rng = random.Random(seed)
    classes = rng.choice([2, 2, 3])
    options = frozenset(range(-1 if rng.random() < 0.5 else 0, 3))
    values: list[Span | Options] = [Span(0, 4), Span(0, 1, Grid.DOUBLE), Options(options)]
    first = [Quantity.of(k) for k in range(3)]
    if rng.random() < 0.5:
        place = rng.choice([WHOLE, DOUBLE])
        values.append(Span(0, 1))
        first[place] = Quantity(0, first[place].terms, frozenset({len(values) - 1}))
    records = [tuple(first)]
    conditions: list[Formula] = []
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        second, place = list(first), rng.randrange(3)
        way = rng.choice(["other", "constant", "missing"])
        if way == "other":
            values.append(values[place])
            second[place] = Quantity.of(len(values) - 1)
            if place == WHOLE:
                step = Quantity(rng.randint(0, 1), ((place, 1), (len(values) - 1, -1)))
                conditions.append(Comparison(step, rng.choice([Sign.AT_MOST, Sign.BELOW, Sign.OTHER])))
        elif way == "constant" or place == CHOICE:
            second[place] = Quantity(rng.randint(0, 2) if place != DOUBLE else Fraction(3, 10))
        else:
            second[place] = Quantity(0, (), frozenset({ALWAYS}))
        records.append(tuple(second))
    if rng.random() < 0.4:
        conditions.append(_condition(rng))
    forbidden = []
    for combination in product(range(classes), repeat=len(records)):
        unwanted = combination[0] > combination[-1] if len(records) > 1 else combination[0] == 0
        if unwanted and rng.random() < 0.9:
            where: Formula = Every() if rng.random() < 0.7 else _condition(rng)
            forbidden.append(ForbiddenDecisions(combination, where))
    return TreeStatement(
        _trees(rng, classes), Zone(tuple(values)), tuple(conditions), tuple(records), tuple(forbidden)
    )


def _condition(rng: random.Random) -> Formula:
    """On the whole number and the choice, alone or together."""
    terms = rng.choice([((0, 1),), ((0, -2),), ((2, 1),), ((0, 1), (2, 1)), ((0, 3), (2, Fraction(-1, 2)))])
    own = Comparison(Quantity(rng.randint(-4, 2), terms), rng.choice(list(Sign)))
    if rng.random() < 0.3:
        other = Comparison(Quantity(Fraction(-1, 3), ((0, 1),)), Sign.BELOW)
        return rng.choice([Either, Every])((own, other))
    return own


@cache
def _known(seed: int) -> tuple[TreeStatement, Cover | None]:
    """A statement, and a proof of it; None where it is violated."""
    statement = _statement(seed)
    return statement, _decided(statement)


def _decided(statement: TreeStatement) -> Cover | None:
    """A proof; None where the search finds a case that violates the statement."""
    search = TreeSearch(statement)
    for case in search.run():
        if case is not None and _is_violated(statement, case):
            return None
    assert search.cover is not None, "neither proven nor violated"
    return search.cover


PARTS = [*range(5), *(pytest.param(part, marks=pytest.mark.slow) for part in range(5, 30))]


@pytest.mark.parametrize("part", PARTS)
def test_the_answer_is_that_of_all_cases(part: int) -> None:
    for seed in range(30 * part, 30 * part + 30):
        statement, cover = _known(seed)
        assert (cover is None) is _has_violation(statement), seed
        if cover is not None:
            check_tree_cover(statement, cover)


def test_there_are_many_of_both_answers_and_proofs_with_many_zones() -> None:
    covers = [_known(seed)[1] for seed in range(100)]
    assert sum(cover is None for cover in covers) > 30
    assert sum(cover is not None for cover in covers) > 20
    assert sum(cover is not None and cover.leaves > 2 for cover in covers) > 3


def _proofs(least: int, count: int) -> Iterator[tuple[TreeStatement, Cover]]:
    found = 0
    for seed in range(5000):
        statement, cover = _known(seed)
        if cover is not None and cover.leaves >= least:
            found += 1
            yield statement, cover
        if found == count:
            return


def _accepts(statement: TreeStatement, cover: Cover) -> bool:
    try:
        check_tree_cover(statement, cover)
    except InvalidProof:
        return False
    return True


def _changed_trees(statement: TreeStatement, rng: random.Random) -> TreeStatement:
    """The statement with a leaf's values, a threshold or the way of missing values changed."""
    trees = statement.trees
    leaves, inner = np.flatnonzero(trees.place < 0), np.flatnonzero(trees.place >= 0)
    what = rng.randrange(4)
    if what == 0:
        values = trees.values.copy()
        for node in rng.sample(leaves.tolist(), 2):
            values[node] = values[node][::-1] * rng.choice([0.5, 1.0, 2.0, -1.0])
        return replace(statement, trees=replace(trees, values=values))
    if what == 1:
        last = trees.last.copy()
        last[rng.choice(inner.tolist())] += rng.choice([-1.0, 1.0, 0.25])
        return replace(statement, trees=replace(trees, last=last))
    if what == 2:
        return replace(statement, trees=replace(trees, missing_left=~trees.missing_left))
    left, right = trees.left.copy(), trees.right.copy()
    node = rng.choice(inner.tolist())
    left[node], right[node] = right[node], left[node]
    return replace(statement, trees=replace(trees, left=left, right=right))


def test_no_proof_is_accepted_for_trees_of_which_it_is_false() -> None:
    rng, answers = random.Random(1), []
    for statement, cover in _proofs(least=2, count=9):
        for _ in range(8):
            changed = _changed_trees(statement, rng)
            answers.append(_accepts(changed, cover))
            if answers[-1]:
                assert not _has_violation(changed)
    assert answers.count(False) > 10 and answers.count(True) > 10


def test_no_change_of_a_statement_lets_a_proof_stand_that_is_false() -> None:
    """Conditions left out, classes turned round, records exchanged, the set made wider."""
    answers = []
    for statement, cover in _proofs(least=1, count=30):
        first = statement.zone.values[0]
        assert isinstance(first, Span)
        wider = Zone((replace(first, high=6), *statement.zone.values[1:]))
        turned = tuple(replace(each, classes=each.classes[::-1]) for each in statement.forbidden)
        every = tuple(replace(each, where=Every()) for each in statement.forbidden)
        for changed in (
            replace(statement, conditions=()),
            replace(statement, zone=wider),
            replace(statement, forbidden=turned),
            replace(statement, forbidden=every),
            replace(statement, records=statement.records[::-1]),
        ):
            answers.append(_accepts(changed, cover))
            if answers[-1]:
                assert not _has_violation(changed)
    assert answers.count(False) > 15 and answers.count(True) > 15


def test_every_choice_of_a_proof_may_be_changed_only_where_it_stays_a_cover() -> None:
    """A certificate that ends too early or too late is refused, and so is a cut of nothing."""
    refused = 0
    for statement, cover in _proofs(least=3, count=8):
        assert _accepts(statement, cover)
        steps = cover.steps
        for broken in (steps[:-1], (*steps, None), (), steps[1:], (*steps, Cut(0, 1))):
            assert not _accepts(statement, Cover(broken))
        for number, step in enumerate(steps):
            if step is None:
                assert not _accepts(statement, Cover((*steps[:number], Cut(0, 1), *steps[number + 1 :])))
                continue
            beyond = replace(step, variable=len(statement.zone.values))
            for changed in (beyond, replace(step, variable=-1)):
                assert not _accepts(statement, Cover((*steps[:number], changed, *steps[number + 1 :])))
            pruned = _without(steps, number)
            refused += not _accepts(statement, Cover(pruned))
            moved = (replace(step, at=step.at + 1), replace(step, at=10**399), replace(step, at=-(2**1024)))
            for cut in moved:
                refused += not _accepts(statement, Cover((*steps[:number], cut, *steps[number + 1 :])))
    assert refused > 20


def _without(steps: tuple[Cut | None, ...], start: int) -> tuple[Cut | None, ...]:
    """The steps with the whole part below a cut made one zone."""
    stop, open_ones = start, 1
    while open_ones:
        open_ones += 1 if steps[stop] is not None else -1
        stop += 1
    return (*steps[:start], None, *steps[stop:])


def test_no_made_up_cover_of_a_violated_statement_is_accepted() -> None:
    rng, tried = random.Random(3), 0
    for seed in range(60):
        statement, cover = _known(seed)
        if cover is not None:
            continue
        for _ in range(6):
            tried += 1
            assert not _accepts(statement, _made_up(statement.zone, rng))
    assert tried > 100


def _made_up(zone: Zone, rng: random.Random) -> Cover:
    steps: list[Cut | None] = []
    pending = 1
    while pending:
        pending -= 1
        if len(steps) + pending > 40 or rng.random() < 0.3:
            steps.append(None)
            continue
        variable = rng.randrange(len(zone.values))
        at: Number = rng.randint(-2, 5) if rng.random() < 0.7 else Fraction(rng.randint(-4, 40), 10)
        steps.append(Cut(variable, at))
        pending += 2
    return Cover(tuple(steps))


def _stump(values: Any, dtype: Any = np.float64, **more: Any) -> SumOfTrees:
    """One test of one number at 2.5 for each pair of values, those left and right of it."""
    count = len(values)
    own = 3 * np.arange(count)
    nodes = np.arange(3 * count)
    table = np.zeros((3 * count, 2), dtype=dtype)
    for k, (left, right) in enumerate(values):
        table[3 * k + 1], table[3 * k + 2] = left, right
    is_root = nodes % 3 == 0
    return SumOfTrees(
        roots=own,
        place=np.where(is_root, 0, -1),
        option=np.full(3 * count, -1),
        last=np.where(is_root, 2.5, 0.0),
        missing_left=np.zeros(3 * count, np.bool_),
        left=np.where(is_root, nodes + 1, nodes),
        right=np.where(is_root, nodes + 2, nodes),
        values=table,
        base=np.array(more.get("base", [0.0, 0.0]), dtype=dtype),
        divide=more.get("divide", 1.0),
    )


def _always(trees: SumOfTrees, chosen: int) -> TreeStatement:
    """That records of 0 to 5 never have the other class."""
    forbidden = (ForbiddenDecisions((1 - chosen,), Every()),)
    return TreeStatement(trees, Zone((Span(0, 5),)), (), ((Quantity.of(0),),), forbidden)


def test_rounding_is_that_of_the_type_that_the_trees_add_in() -> None:
    """0.1 + 0.2 > 0.3 in float64; in float32 the two are equal, and the first class is chosen."""
    values = [((0.0, 0.1), (0.0, 0.1)), ((0.3, 0.2), (0.3, 0.2))]
    for dtype, chosen in ((np.float64, 1), (np.float32, 0)):
        statement = _always(_stump(values, dtype), chosen)
        assert not _has_violation(statement)
        assert _accepts(statement, Cover((None,)))
        assert not _accepts(_always(_stump(values, dtype), 1 - chosen), Cover((None,)))


def test_sums_that_division_makes_equal_are_not_told_apart() -> None:
    """The next double above 1, divided by 3 or 5, may be what 1 is: then the first class is chosen."""
    more = float(np.nextafter(1.0, 2.0))
    for divide in (1.0, 3.0, 5.0, 7.0, 30.0):
        values = [((1.0, more), (1.0, more)), ((0.0, 0.0), (0.0, 0.0))]
        chosen = int(np.float64(more) / divide > np.float64(1.0) / divide)
        trees = _stump(values, divide=divide)
        assert _accepts(_always(trees, chosen), Cover((None,)))
        assert not _accepts(_always(trees, 1 - chosen), Cover((None,)))


@pytest.mark.parametrize(("dtype", "divide"), [(np.float64, 1e-300), (np.float32, 1e-30)])
def test_sums_that_division_makes_infinite_are_refused(dtype: Any, divide: float) -> None:
    """The score of the second class is twice that of the first, and as infinite: the first is decided."""
    trees = _stump([((1e28, 2e28), (1e28, 2e28))] * 2, dtype, divide=divide)
    with pytest.raises(InvalidProof, match="too large"):
        check_tree_cover(_always(trees, 1), Cover((None,)))


def test_units_are_exact_where_sums_are() -> None:
    whole = [((1.0, 0.0), (0.0, 1.0)), ((0.5, 0.25), (2.0, 3.0))]
    assert units(_stump(whole, divide=30.0))[1] == 0
    assert units(_stump([((0.1, 0.0), (0.0, 0.3))]))[1] > 0
    assert units(_stump([((1.0, 2.0**-60), (0.0, 1.0))]))[1] > 0
    assert units(_stump(whole, base=[0.0, -5e-324]))[1] > 0
    with pytest.raises(InvalidProof, match="too large"):
        units(_stump([((1e40, 0.0), (0.0, 1e40))]))


@pytest.mark.parametrize(
    "wrong", [{"divide": 0.0}, {"divide": -1.0}, {"base": []}, {"base": [float("nan"), 0.0]}]
)
def test_sums_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a sum of trees"):
        _stump([((1.0, 0.0), (0.0, 1.0))], **wrong)


def test_every_tree_monotone_is_a_proof_of_one_zone_in_any_arithmetic() -> None:
    """None of the sums is exact, and many scores nearly tie: rounding is monotone all the same."""
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        pairs = np.sort(rng.normal(size=(200, 2)), axis=1)
        trees = _stump([((0.0, low), (0.0, high)) for low, high in pairs], dtype, divide=7.0)
        step = Comparison(Quantity(1, ((0, 1), (1, -1))), Sign.AT_MOST)
        records = ((Quantity.of(0),), (Quantity.of(1),))
        for classes, holds in (((1, 0), True), ((0, 1), False)):
            forbidden = (ForbiddenDecisions(classes, Every()),)
            statement = TreeStatement(trees, Zone((Span(0, 5), Span(0, 5))), (step,), records, forbidden)
            if holds or _has_violation(statement):
                assert _accepts(statement, Cover((None,))) is holds


def test_a_set_without_cases_is_one_zone() -> None:
    statement = _always(_stump([((1.0, 0.0), (1.0, 0.0))]), 1)
    empty = replace(statement, zone=Zone((Span(1, 0),)))
    assert _decided(empty) == Cover((None,))
    assert _accepts(empty, Cover((None,))) and not _accepts(empty, Cover((Cut(0, 1), None, None)))


def test_a_number_that_is_only_near_the_sum_proves_less() -> None:
    """With a tie, bounds are wider by it; that every tree rises still proves what it did."""
    trees = _stump([((0.0, 0.0), (1.0, 0.0)), ((0.0, 0.0), (2.0, 0.0))])
    records, zone = ((Quantity.of(0),), (Quantity.of(1),)), Zone((Span(0, 5), Span(0, 5)))
    step = Comparison(Quantity(0, ((0, 1), (1, -1))), Sign.AT_MOST)

    def accepts(tie: float, scores: Any, constant: Fraction, sign: Sign) -> bool:
        part = ScoreComparison(scores, Quantity(constant), sign)
        forbidden = (ForbiddenScores((part,), Every()),)
        own = replace(trees, tie=tie)
        return _accepts(TreeStatement(own, zone, (step,), records, forbidden), Cover((None,)))

    top, rising = ((0, 0, -1),), ((1, 0, 1), (0, 0, -1))
    small = Fraction(1, 1000)
    assert accepts(0.0, top, 3 + small, Sign.AT_MOST) and not accepts(0.0, top, Fraction(3), Sign.AT_MOST)
    assert accepts(0.25, top, Fraction(13, 4) + small, Sign.AT_MOST)
    assert not accepts(0.25, top, Fraction(13, 4), Sign.AT_MOST)
    assert not accepts(0.25, top, 3 + small, Sign.AT_MOST)
    for tie in (0.0, 0.25):
        assert accepts(tie, rising, Fraction(0), Sign.BELOW)
        assert not accepts(tie, rising, Fraction(0), Sign.AT_MOST)
        assert not accepts(tie, rising, -small, Sign.BELOW)
    falling = ((0, 0, 1), (1, 0, -1))
    assert accepts(0.0, falling, 3 + small, Sign.AT_MOST)
    assert accepts(0.25, falling, 3 + 2 * Fraction(1, 4) + small, Sign.AT_MOST)
    assert not accepts(0.25, falling, 3 + 2 * Fraction(1, 4) - small, Sign.AT_MOST)
