"""Laws on models that predict numbers: decided as going through all cases decides them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from dokimos.checker.lemmas.zones import Options
from dokimos.core.errors import InvalidProof
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.models.tested_model import Model, largest
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.stated_laws import state_law
from dokimos.laws.proving.tree_questions import TreeQuestion
from dokimos.laws.proving.verifying import verify_law
from tests.laws.proving.small import MORE, SET, domain, forest
from tests.laws.toy import law

#: What is ensured, and the same in Python.
ENSURED: dict[str, Any] = {
    "d1 <= d2": lambda one, two: one <= two,
    "d1 < d2 + 0.25": lambda one, two: one < two + Fraction(1, 4),
    "d1 <= d2 + 1.5": lambda one, two: one <= two + Fraction(3, 2),
    "abs(d1 - d2) <= 2": lambda one, two: abs(one - two) <= 2,
    "d1 == d2": lambda one, two: one == two,
    "2 * d1 <= 3 * d2 + 1": lambda one, two: 2 * one <= 3 * two + 1,
    "min(d1, d2) >= 1": lambda one, two: min(one, two) >= 1,
    "d1 > 0.5 ==> d2 > 0.25": lambda one, two: not one > Fraction(1, 2) or two > Fraction(1, 4),
    "d1 != d2 || x1.points == 0": None,
}


def _numbers(seed: int, **more: Any) -> Ensemble:
    made = forest(seed, trees=2 + seed % 3, depth=2, classes=1, **more)
    rng = np.random.default_rng(seed)
    trees = [
        replace(each, value=each.value + np.round(rng.normal(size=each.value.shape), 2))
        for each in made.trees
    ]
    if seed % 2:  # more points, a larger number
        trees = [
            replace(e, value=np.sort(e.value, axis=0), threshold=np.where(e.feature == 0, e.threshold, 2.0))
            for e in trees
        ]
    return made.changed(trees=trees, base=[0.1])


def _of_numbers() -> Domain:
    return replace(domain(), classes=())


def _answer(text: str, trees: Ensemble) -> LawAnswer:
    model = Model("trees", trees, largest, made_of=trees)
    found = verify_law(law(text), model=model, domain=_of_numbers(), settings=VerifySettings(seconds=30))
    if found.cover is not None:
        plan = make_plan(law(text), _of_numbers())
        state_law(plan, model).check(found.cover)
    return found.answer


@pytest.mark.parametrize(
    "kind", [{}, {"float32_sums": True}, {"divide": 3.0}, {"divide": 4.0, "scale": 0.1}]
)
@pytest.mark.parametrize("ensures", ENSURED)
def test_the_answer_is_that_of_all_cases(ensures: str, kind: dict[str, Any]) -> None:
    for seed in range(4):
        trees = _numbers(seed, **kind)
        for start in (MORE, SET):
            text = f"{start} ENSURES {ensures}"
            plan = make_plan(law(text), _of_numbers())
            question = state_law(plan, Model("trees", trees, largest, made_of=trees)).question
            axes = [
                sorted(each.left) if isinstance(each, Options) else range(int(each.low), int(each.high) + 1)
                for each in question.zone.values
            ]
            cases = [case for case in product(*axes) if question.admits(case)]
            scores = [
                trees(np.stack([question.columns(record, case) for case in cases]))[:, 0].tolist()
                for record in question.records
            ]
            points = [question.inputs[0].features[0].at(case) for case in cases]
            holds = ENSURED[ensures]
            numbers = [[Fraction(each) for each in column] for column in scores]
            kept = (
                all(one != two or p == 0 for one, two, p in zip(*numbers, points, strict=True))
                if holds is None
                else all(holds(one, two) for one, two in zip(*numbers, strict=True))
            )
            assert _answer(text, trees) is (LawAnswer.PROVEN if kept else LawAnswer.VIOLATED)


def test_both_answers_are_among_these() -> None:
    texts = [f"{MORE} ENSURES {each}" for each in ("d1 <= d2", "d1 <= d2 + 1.5", "min(d1, d2) >= 1")]
    found = {(text, _answer(text, _numbers(seed))) for text in texts for seed in range(8)}
    assert len({answer for _, answer in found}) == 2 and len(found) >= 5


def test_a_proof_of_one_ensemble_is_none_of_another() -> None:
    trees = _numbers(1)
    plan = make_plan(law(f"{MORE} ENSURES d1 <= d2"), _of_numbers())
    model = Model("trees", trees, largest, made_of=trees)
    found = verify_law(plan.law, model=model, domain=_of_numbers(), settings=VerifySettings(seconds=30))
    assert found.cover is not None
    turned = trees.changed(trees=[replace(each, value=-each.value) for each in trees.trees])
    question = state_law(plan, model).question
    TreeQuestion(question, trees).check(found.cover)
    with pytest.raises(InvalidProof):
        TreeQuestion(question, turned).check(found.cover)


def test_a_limit_that_is_missed_by_one_rounding_is_not_proven() -> None:
    """Sums as computed: 0.1 + 0.2 is above 0.3, and a law that says otherwise is violated."""
    made = forest(0, trees=1, depth=1, classes=1)
    flat = [replace(made.trees[0], value=np.full_like(made.trees[0].value, each)) for each in (0.2, 0.0)]
    trees = made.changed(trees=flat, base=[0.1])
    limit = "0.3000000001"
    assert _answer(f"{MORE} ENSURES d1 <= 0.3", trees) is LawAnswer.VIOLATED
    assert _answer(f"{MORE} ENSURES d1 <= {limit} && d2 <= {limit}", trees) is LawAnswer.PROVEN


def test_of_a_function_of_scores_only_the_order_is_proven() -> None:
    trees = _numbers(1).changed(link="the exponential")
    model = Model("trees", lambda rows: np.exp(trees(rows)), largest, made_of=trees)
    answers = {}
    for ensures in ("d1 <= d2", "d1 <= d2 + 1", "abs(d1 - d2) <= 100", "d1 < d2", "d1 >= 0"):
        found = verify_law(
            law(f"{MORE} ENSURES {ensures}"),
            model=model,
            domain=_of_numbers(),
            settings=VerifySettings(seconds=5),
        )
        answers[ensures] = found.answer
        assert ensures not in ("d1 < d2", "d1 >= 0") or "only the order" in found.reason or found.violation
    assert answers["d1 <= d2"] is answers["d1 <= d2 + 1"] is LawAnswer.PROVEN
    assert answers["d1 >= 0"] is LawAnswer.REFUSED and answers["d1 < d2"] is not LawAnswer.PROVEN
    assert answers["abs(d1 - d2) <= 100"] is not LawAnswer.PROVEN  # that is about the distance


def test_classes_that_are_close_may_be_decided_either_way() -> None:
    """With a tie, a class that is ahead by less is not proven to be decided; one ahead by more is."""
    made = forest(0, trees=1, depth=1, classes=2)
    for lead, answer in ((0.5, LawAnswer.OPEN), (2.0, LawAnswer.PROVEN)):
        value = np.tile([0.0, lead], (len(made.trees[0].value), 1))
        trees = made.changed(trees=[replace(made.trees[0], value=value)], tie=1.0)
        model = Model("trees", trees, largest, made_of=trees)
        of = replace(domain(), classes=("low", "high"))
        text = law(f"{MORE} ENSURES d1 == 1")
        assert verify_law(text, model=model, domain=of, settings=VerifySettings(seconds=5)).answer is answer
