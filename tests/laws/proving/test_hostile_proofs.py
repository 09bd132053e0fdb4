"""Proofs that somebody made up: what the checker accepts is true of all cases, gone through one by one."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dokimos.checker.lemmas.zones import Cover, Cut, Grid, Options, Span, Zone, exact
from dokimos.core.errors import InvalidProof
from dokimos.laws import real
from dokimos.laws.domain.features import Layout
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.question import LawQuestion, ZoneCloser
from dokimos.laws.proving.stated_laws import state_law
from dokimos.laws.proving.tree_questions import sum_of_trees
from tests.laws.proving.small import LAWS, MORE, SET, check_cover, forest, plan
from tests.laws.proving.test_networks import model_of, network, searched, stated
from tests.laws.proving.test_trees import _all_cases, _stated, _violations


def _accepts(question: LawQuestion, cover: Cover, closer: ZoneCloser) -> bool:
    try:
        check_cover(question, cover, closer)
    except InvalidProof:
        return False
    return True


def _made_up(zone: Zone, rng: random.Random, most: int) -> Cover:
    """A tree of cuts drawn at random, now and then with a cut that is no cut, or a step too many."""
    steps: list[Cut | None] = []
    pending = 1
    while pending:
        pending -= 1
        if len(steps) + pending > most or rng.random() < 0.35:
            steps.append(None)
            continue
        variable = rng.randrange(len(zone.values))
        values = zone.values[variable]
        steps.append(Cut(variable, rng.randint(int(values.low) - 1, int(values.high) + 1)))
        pending += 2
    if rng.random() < 0.1:
        steps.insert(rng.randrange(len(steps) + 1), None)
    return Cover(tuple(steps))


def _fine(zone: Zone) -> Cover:
    """Every variable cut into single values, one after the other: the finest proof that there is."""

    def below(inner: Zone, variable: int) -> list[Cut | None]:
        if variable == len(inner.values):
            return [None]
        values = inner.values[variable]
        if values.is_single or values.is_empty:
            return below(inner, variable + 1)
        at = min(values.left) if isinstance(values, Options) else values.middle()
        first, second = inner.cut(variable, at)
        return [Cut(variable, at), *below(first, variable), *below(second, variable)]

    return Cover(tuple(below(zone, 0)))


@pytest.mark.parametrize("text", LAWS)
def test_no_made_up_proof_of_a_violated_law_on_a_network_is_accepted(text: str) -> None:
    rng, judged, accepted = random.Random(1), 0, 0
    for seed in range(4):
        content = network(seed, rising=0.5 if seed % 2 else 0.0)
        found, closer = stated(plan(text), content)
        question = found.question
        is_violated = any(exactly_violated(question, closer.reach, case) for case in _all_cases(question))
        covers = [_made_up(question.zone, rng, 80) for _ in range(6)]
        if len(_all_cases(question)) < 400:
            covers.append(_fine(question.zone))
        for cover in covers:
            for each in (closer, found.stricter):
                assert each is not None
                is_accepted = _accepts(question, cover, each)
                assert not (is_accepted and is_violated)
                judged, accepted = judged + is_violated, accepted + is_accepted
    assert judged > 0


def test_float32_proofs_hold_of_what_the_runtime_decides() -> None:
    """Where the strict closer accepts, no case violates the law as onnxruntime scores its records."""
    accepted = 0
    for seed in range(10):
        content = network(seed, rising=0.5)
        found, _ = stated(plan(SET), content)
        assert found.stricter is not None
        if not _accepts(found.question, _fine(found.question.zone), found.stricter):
            continue
        accepted += 1
        question, model = found.question, model_of(content)
        for case in _all_cases(question):
            rows = np.stack([question.columns(record, case) for record in question.records])
            assert not question.is_violated(case, model.scores(rows).argmax(axis=1).tolist())
    assert accepted > 2


@pytest.mark.parametrize("text", LAWS)
def test_no_made_up_proof_of_a_violated_law_on_trees_is_accepted(text: str) -> None:
    rng, violated, accepted = random.Random(2), 0, 0
    for seed in range(6):
        ensemble = forest(seed, trees=1 + seed % 2, depth=1 + seed % 3)
        asked = _stated(plan(text), ensemble)
        question = asked.question
        is_violated = _violations(question, ensemble) > 0
        violated += is_violated
        for cover in [*(_made_up(question.zone, rng, 60) for _ in range(8)), Cover((None,))]:
            (is_accepted,) = asked.proven([(question.zone, cover)])
            assert not (is_accepted and is_violated)
            accepted += is_accepted
        assert asked.proven([(question.zone, _fine(question.zone))]) == [not is_violated]
    assert violated > 0


def test_every_cut_of_a_proof_may_be_moved_only_where_it_stays_a_proof() -> None:
    content = next(
        made
        for made in (network(seed, rising=0.5) for seed in range(20))
        if searched(*stated(plan(SET), made), made).cover is not None
    )
    found, closer = stated(plan(SET), content)
    cover = searched(found, closer, content).cover
    assert cover is not None
    refused = 0
    for number, step in enumerate(cover.steps):
        if step is None:
            continue
        for changed in (replace(step, at=step.at + 1), replace(step, variable=step.variable + 50), None):
            steps = (*cover.steps[:number], changed, *cover.steps[number + 1 :])
            refused += not _accepts(found.question, Cover(steps), closer)
    assert refused >= sum(step is not None for step in cover.steps)


@pytest.mark.parametrize("at", [10**399, -(10**399), 2**1024, -(2**1024)])
def test_cuts_beyond_all_doubles_lose_no_case(at: int) -> None:
    for grid in Grid:
        whole = Span(-3, 5, grid)
        first, second = whole.cut(at)
        kept, empty = (first, second) if at > 0 else (second, first)
        assert kept == whole and empty.is_empty


def test_a_feature_of_doubles_is_cut_between_neighbours() -> None:
    layout = Layout([real("height", 0.0, 1.0)])
    tree = forest(0).trees[0]
    one = replace(
        tree,
        feature=np.array([0, -1, -1]),
        threshold=np.array([0.1, 0.0, 0.0]),
        left=np.array([1, 1, 2]),
        right=np.array([2, 1, 2]),
        value=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    )
    last = exact(float(sum_of_trees(Ensemble([one], inputs=1, base=[0.0, 0.0]), layout).last[0]))
    below, above = Span(0, 1, Grid.DOUBLE).cut(last)
    assert below.high == last and float(above.low) == np.nextafter(0.1, 1)


def test_another_law_is_not_proven_by_the_same_cuts() -> None:
    """A cover is not a proof by itself: with the question turned round it must not be accepted."""
    content = next(
        made
        for made in (network(seed, rising=0.5) for seed in range(20))
        if searched(*stated(plan(MORE), made), made).cover is not None and _is_violated(*_turned(made))
    )
    found, closer = stated(plan(MORE), content)
    cover = searched(found, closer, content).cover
    assert cover is not None and _accepts(found.question, cover, closer)
    question, turned = _turned(content)
    assert not _accepts(question, cover, turned)


def _turned(content: bytes) -> tuple[LawQuestion, NetworkCloser]:
    """The law that more points never raise the class."""
    made = state_law(plan(MORE + "ENSURES d1 >= d2"), model_of(content))
    assert isinstance(made.closer, NetworkCloser)
    return made.question, made.closer


def _is_violated(question: LawQuestion, closer: NetworkCloser) -> bool:
    return any(exactly_violated(question, closer.reach, case) for case in _all_cases(question))
