"""Puts the kind of proof about sums of trees to statements drawn at random.

    python -m tests.fuzz.trees SEED COUNT

draws COUNT statements about decisions, decisions that may be tied, or scores; puts several covers to each,
and where one is accepted, goes through all cases one by one: none may violate the statement. It prints how
many covers were tried and accepted, and every fault: a false proof, or an error that is not one of ours.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dokimos.checker.lemmas.zones import ALWAYS, Cover, Every, ForbiddenDecisions, Quantity, Sign
from dokimos.checker.trees.covers import check_tree_cover
from dokimos.checker.trees.leaves import ForbiddenScores, ScoreComparison, TreeStatement
from dokimos.core.errors import DokimosError
from dokimos.engine.tree_search import TreeSearch
from tests.checker import test_trees as small

Scores = list[Fraction]


def drawn(seed: int) -> TreeStatement:
    """About decisions; every third one about scores instead, and some of the others with a tie."""
    rng = random.Random(f"{seed} of trees")
    found = small._statement(seed)
    if seed % 3 == 0:
        parts = tuple(_compared(rng, found) for _ in range(rng.choice([1, 1, 2])))
        where = Every() if rng.random() < 0.7 else small._condition(rng)
        tie = rng.choice([0.0, 0.0, 2.0**-48, 0.125])
        return replace(
            found, forbidden=(ForbiddenScores(parts, where),), trees=replace(found.trees, tie=tie)
        )
    if seed % 3 == 1 and rng.random() < 0.6:
        tie = rng.choice([2.0**-20, 2.0**-48, 0.125, 0.3, 1.0])
        return replace(found, trees=replace(found.trees, tie=tie))
    return found


def _compared(rng: random.Random, statement: TreeStatement) -> ScoreComparison:
    last, classes = len(statement.records) - 1, len(statement.trees.base)
    one = rng.randrange(classes)
    other = one if rng.random() < 0.6 else rng.randrange(classes)
    factor = rng.choice([1, 1, -1, 2, -3])
    scores = ((0, one, factor), (last, other, -factor if rng.random() < 0.8 else rng.choice([1, 2])))
    constant = rng.choice([0, 0, Fraction(1, 10), Fraction(-1, 2), 1, -1, Fraction(1, 2**40)])
    terms = rng.choice([(), (), (), ((small.DOUBLE, 1),), ((small.WHOLE, Fraction(1, 3)),)])
    own = scores if last else scores[:1]
    return ScoreComparison(own, Quantity(constant, terms), rng.choice([Sign.AT_MOST, Sign.BELOW]))


def violation(statement: TreeStatement) -> small.Case | None:
    """The first of all cases that violates the statement."""
    known: dict[tuple[Fraction | None, ...], Scores] = {}
    for case in small._cases(statement):
        if all(small._holds(each, case) for each in statement.conditions):
            scores = [_scores(statement, record, case, known) for record in statement.records]
            if any(_is_forbidden(statement, each, case, scores) for each in statement.forbidden):
                return case
    return None


def _is_forbidden(
    statement: TreeStatement,
    each: ForbiddenDecisions | ForbiddenScores,
    case: small.Case,
    scores: list[Scores],
) -> bool:
    if not small._holds(each.where, case):
        return False
    if isinstance(each, ForbiddenScores):
        return all(_holds(statement, part, case, scores) for part in each.parts)
    tie = Fraction(statement.trees.tie)
    if not tie:
        return each.classes == tuple(row.index(max(row)) for row in scores)
    return all(row[c] + tie >= max(row) for row, c in zip(scores, each.classes, strict=True))


def _holds(statement: TreeStatement, part: ScoreComparison, case: small.Case, scores: list[Scores]) -> bool:
    value = Fraction(part.quantity.constant) + sum(f * case[v] for v, f in part.quantity.terms)
    compared = sum((factor * scores[record][c] for record, c, factor in part.scores), Fraction(0))
    if tie := Fraction(statement.trees.tie):  # what is compared may be less, but not against the trees
        least = compared - tie * sum(abs(factor) for _, _, factor in part.scores)
        compared = max(least, Fraction(0)) if _is_ordered(statement, part, case) else least
    value += compared
    return value < 0 if part.sign is Sign.BELOW else value <= 0


def _is_ordered(statement: TreeStatement, part: ScoreComparison, case: small.Case) -> bool:
    """Whether a comparison is of two records of which none of the trees has less for the first."""
    if len(part.scores) != 2 or part.scores[0][1] != part.scores[1][1]:
        return False
    (r, c, f), (s, _, g) = part.scores
    if f + g != 0:
        return False
    first, second = (
        statement.trees.values[small.reached(statement.trees, _given(statement.records[each], case)), c]
        for each in (r, s)
    )
    return bool((first >= second).all() if f > 0 else (second >= first).all())


def _scores(
    statement: TreeStatement,
    record: tuple[Quantity, ...],
    case: small.Case,
    known: dict[tuple[Fraction | None, ...], Scores],
) -> Scores:
    key = _given(record, case)
    if key not in known:
        known[key] = [Fraction(float(each)) for each in small._scored(statement.trees, key)]
    return known[key]


def _given(record: tuple[Quantity, ...], case: small.Case) -> tuple[Fraction | None, ...]:
    given = []
    for feature in record:
        gone = any(gap == ALWAYS or case[gap] == 1 for gap in feature.gaps)
        value = Fraction(feature.constant) + sum(f * case[v] for v, f in feature.terms)
        given.append(None if gone else value)
    return tuple(given)


def covers(statement: TreeStatement, rng: random.Random) -> Iterator[Cover]:
    """One zone, some that are made up, and what a search finds, as it is and cut short."""
    yield Cover((None,))
    for _ in range(3):
        yield small._made_up(statement.zone, rng)
    search = TreeSearch(statement)
    for _ in zip(range(200), search.run(), strict=False):
        pass
    if search.cover is not None:
        yield search.cover
        cuts = [number for number, step in enumerate(search.cover.steps) if step is not None]
        for number in rng.sample(cuts, min(2, len(cuts))):
            yield Cover(small._without(search.cover.steps, number))


def put_to_trees(seed: int, count: int) -> tuple[int, int, list[str]]:
    """How many covers were tried and accepted, and every fault."""
    tried, accepted, faults = 0, 0, []
    for number in range(count):
        own = seed * 1_000_003 + number
        case = f"seed {seed} number {number}"
        try:
            statement, taken = drawn(own), 0
            for cover in covers(statement, random.Random(own)):
                tried += 1
                try:
                    check_tree_cover(statement, cover)
                except DokimosError:
                    continue
                taken += 1
            accepted += taken
            if taken and (found := violation(statement)) is not None:
                faults.append(f"{case}: a proof is accepted, but {found} violates it")
        except Exception as error:  # the fault that is looked for
            faults.append(f"{case}: {type(error).__name__}: {error}")
    return tried, accepted, faults


if __name__ == "__main__":
    all_tried, all_accepted, all_faults = put_to_trees(int(sys.argv[1]), int(sys.argv[2]))
    print(f"{all_tried:,} certificates about trees, {all_accepted:,} accepted, {len(all_faults)} faults")
    for fault in all_faults[:40]:
        print(fault)
