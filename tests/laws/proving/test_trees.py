"""Laws on trees: decided as going through all cases decides them, with proofs that are checked."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dokimos.checker.lemmas.zones import Cover, Cut, Grid, Options, Span
from dokimos.core.errors import InvalidProof
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.models.tested_model import Model
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.law_search import search_trees
from dokimos.laws.proving.question import Deadline, LawQuestion, SearchEnd
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.stated_laws import state_law
from dokimos.laws.proving.tree_questions import TreeQuestion
from dokimos.laws.proving.verifying import verify_law
from tests.laws.proving.small import LAWS, MORE, domain, forest, plan
from tests.laws.toy import law


def _all_cases(question: LawQuestion) -> list[tuple[int, ...]]:
    axes = [
        sorted(each.left) if isinstance(each, Options) else range(int(each.low), int(each.high) + 1)
        for each in question.zone.values
    ]
    return list(product(*axes))


def _violations(question: LawQuestion, ensemble: Ensemble) -> int:
    """How many cases violate the law, by a run of the model on each."""
    cases = [case for case in _all_cases(question) if question.admits(case)]
    if not cases:
        return 0
    decisions = [
        ensemble(np.stack([question.columns(record, case) for case in cases])).argmax(axis=1).tolist()
        for record in question.records
    ]
    return sum(map(question.is_violated, cases, zip(*decisions, strict=True)))


def _stated(made: LawPlan, ensemble: Ensemble) -> TreeQuestion:
    stated = state_law(made, Model("trees", ensemble, ensemble.decide, made_of=ensemble))
    assert isinstance(stated.closer, TreeQuestion)
    return stated.closer


def _searched(asked: TreeQuestion, seconds: float = 60.0) -> SearchEnd:
    return search_trees(asked.statement(), lambda _: True, Deadline.after(seconds))


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_that_of_all_cases(text: str, seed: int) -> None:
    ensemble = forest(seed, trees=1 + seed % 3, depth=2)
    asked = _stated(plan(text, 'paid == 0 ==> kind == "none"' if seed % 2 else "points >= 0"), ensemble)
    question, end = asked.question, _searched(asked)
    if _violations(question, ensemble):
        assert end.cover is None and end.case is not None
        rows = np.stack([question.columns(record, end.case) for record in question.records])
        assert question.is_violated(end.case, ensemble(rows).argmax(axis=1).tolist())
    else:
        assert end.case is None and end.cover is not None
        asked.check(end.cover)


def test_both_answers_are_among_these() -> None:
    found = set()
    for seed in range(4):
        asked = _stated(plan(MORE), forest(seed, trees=1 + seed % 3, depth=2))
        found.add(_searched(asked).cover is None)
    assert found == {True, False}


def _monotone() -> Ensemble:
    """More points, a higher class: cut at 1.5 and 3.5."""
    made = forest(0, depth=2)
    tree = replace(
        made.trees[0],
        feature=np.array([0, 0, 0, -1, -1, -1, -1]),
        threshold=np.array([1.5, 0.5, 3.5, 0, 0, 0, 0]),
        value=np.array([[0, 0, 0]] * 3 + [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float64),
    )
    return Ensemble([tree], inputs=5, base=[0.0, 0.0, 0.0])


def test_a_proof_is_refused_that_is_no_cover_or_of_another_model() -> None:
    asked = _stated(plan(MORE), _monotone())
    end = _searched(asked)
    assert end.cover is not None
    asked.check(end.cover)
    steps = end.cover.steps
    wrong = [steps[:-1], (*steps, None), (), (Cut(99, 1), None, None), (Cut(-1, 1), None, None)]
    for each in wrong:
        with pytest.raises(InvalidProof):
            asked.check(Cover(each))
    falling = Ensemble(
        [replace(_monotone().trees[0], value=_monotone().trees[0].value[:, ::-1])], inputs=5, base=[0.0] * 3
    )
    with pytest.raises(InvalidProof):
        TreeQuestion(asked.question, falling).check(end.cover)


def _needing_cuts() -> TreeQuestion:
    """A law that holds of a sum of trees, none of which is monotone by itself."""
    for seed in range(1000):
        asked = _stated(plan(MORE), forest(seed, trees=3, depth=2, classes=2))
        end = _searched(asked)
        if end.cover is not None and end.cover.leaves > 3:
            return asked
    raise AssertionError("no such forest was drawn")


def test_leaving_out_any_cut_of_a_proof_is_noticed() -> None:
    """A tree of cuts with one subtree made a leaf is refused, or that leaf is closed by itself."""
    asked = _needing_cuts()
    end = _searched(asked)
    assert end.cover is not None
    refused = 0
    for start, step in enumerate(end.cover.steps):
        if step is None:
            continue
        stop, open_ones = start, 1
        while open_ones:
            open_ones += 1 if end.cover.steps[stop] is not None else -1
            stop += 1
        pruned = Cover((*end.cover.steps[:start], None, *end.cover.steps[stop:]))
        try:
            asked.check(pruned)
        except InvalidProof:
            refused += 1
    assert refused > 0


def test_ties_go_to_the_first_class() -> None:
    """Two classes that always tie: the first is chosen, so the law that asks for it holds."""
    tied = Ensemble(
        [replace(forest(1, depth=1, classes=2).trees[0], value=np.ones((3, 2)))], inputs=5, base=[0.0, 0.0]
    )
    for ensures, violated in (("d1 == 0", False), ("d1 == 1", True)):
        assert (_searched(_stated(plan(f"{MORE} ENSURES {ensures}"), tied)).cover is None) is violated


def test_thresholds_of_trees_that_round_to_float32() -> None:
    """What goes left is what does after rounding: 16,777,217 becomes 16,777,216."""
    beyond = domain()
    made = forest(0, depth=1, single=True)
    with pytest.raises(Refusal, match="float32"):
        assert beyond.layout is not None
        wide = replace(beyond.layout.features[0], high=2**24 + 1)
        layout = type(beyond.layout)([wide, *beyond.layout.features[1:]])
        TreeQuestion(replace(_stated(plan(MORE), made).question, layout=layout), made)
    span = Span(0, 10, Grid.DOUBLE)
    first, second = span.cut(1)
    assert first.high == 1 and second.low > 1 and float(second.low) == np.nextafter(1.0, 2.0)


def test_time_that_is_over_leaves_a_share_open() -> None:
    end = _searched(_stated(plan(MORE), forest(3, depth=5)), seconds=-1.0)
    assert end.cover is None and end.case is None and end.share == 1.0


def test_a_model_that_is_code_is_refused() -> None:
    found = verify_law(
        law(MORE), model=lambda record: 0, domain=domain(), settings=VerifySettings(seconds=5)
    )
    assert found.answer is LawAnswer.REFUSED and "neither an ensemble of trees" in found.reason


def test_a_violation_is_run_again_and_made_small() -> None:
    ensemble = Ensemble(
        [replace(_monotone().trees[0], value=_monotone().trees[0].value[:, ::-1])], inputs=5, base=[0.0] * 3
    )
    model = Model("trees", ensemble, ensemble.decide, made_of=ensemble)
    found = verify_law(law(MORE), model=model, domain=domain(), settings=VerifySettings(seconds=20))
    assert found.answer is LawAnswer.VIOLATED and found.violation is not None
    (drawn,) = found.violation.case.draws
    change = drawn - found.violation.case.inputs["x1"][0]
    assert 1 <= change <= 3 and "falls" in found.violation.words
