"""Classes and disjuncts are mixed: soundly, and alike in both drafts."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.base import mixed
from dokimos.constructions.draft import Draft
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.instance import Certificate, LabelledInstance
from dokimos.suites.vnnlib.model import Case, Linear, Point, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib

#: Families with several classes, small.
SMALL = {
    "exclusive-pairs": {"pairs": 2, "gamma": 0.01, "inputs": 8},
    "paired-bias": {"size": 5, "depth": 0, "pairs": 2},
    "contractive-cnn": {"size": 6, "depth": 1, "channels": 2},
    "convex-corners": {"inputs": 16, "block": 4, "hinges": 4},
}


def violated(question: Property, outputs: tuple[Fraction, ...], point: Point) -> list[bool]:
    """Which disjuncts hold at a point."""
    (case,) = question.cases
    return [all(each.holds(point, outputs) for each in conjunction) for conjunction in case.any_of]


def winner(question: Property) -> int:
    """The class that all disjuncts compare with."""
    (case,) = question.cases
    (found,) = {j for conjunction in case.any_of for each in conjunction for j, d in each.outputs if d > 0}
    return found


def drafts_of(family: str, seed: int) -> tuple[Draft, Draft]:
    construction = CONSTRUCTIONS[family]
    knobs = construction.knobs_class(**SMALL[family])
    robust, twin = construction.construct(knobs, np.random.default_rng(seed))
    return robust, twin


@pytest.mark.parametrize("family", SMALL)
def test_only_the_order_changes_but_for_classes_that_would_win_too(family: str) -> None:
    before = drafts_of(family, 3)
    after = mixed(before, np.random.default_rng(8))
    witness = before[1].witness
    assert witness is not None
    assert after[1].witness == witness
    for old, new in zip(before, after, strict=True):
        scores = [evaluate(read_onnx(draft.network), witness).lower for draft in (old, new)]
        assert new.question.cases[0].box == old.question.cases[0].box
        own = [y[winner(draft.question)] for y, draft in zip(scores, (old, new), strict=True)]
        assert own[0] == own[1]
        assert max(scores[0]) == max(scores[1])
        assert all(a >= b for a, b in zip(sorted(scores[0]), sorted(scores[1]), strict=True))
    seen = [violated(d.question, evaluate(read_onnx(d.network), witness).lower, witness) for d in after]
    assert sum(seen[1]) == 1
    assert sum(seen[0]) == 0


def test_a_family_has_winners_and_violated_disjuncts_in_every_place() -> None:
    places: Counter[int] = Counter()
    winners: Counter[int] = Counter()
    for seed in range(12):
        twin: LabelledInstance = CONSTRUCTIONS["exclusive-pairs"](seed=seed, **SMALL["exclusive-pairs"])[1]
        question = read_vnnlib(twin.instance.property_file, file="twin")
        assert twin.truth is not None
        assert twin.truth.witness is not None
        outputs = evaluate(read_onnx(twin.instance.network_file), twin.truth.witness).lower
        places[violated(question, outputs, twin.truth.witness).index(True)] += 1
        winners[winner(question)] += 1
    assert set(places) == {0, 1}
    assert set(winners) == {0, 1, 2}


def test_what_else_is_drawn_does_not_depend_on_it() -> None:
    drawn = [
        CONSTRUCTIONS["exclusive-pairs"].draw(
            seed=4, timeout_seconds=1, disguise=(), with_twin=True, knobs=SMALL["exclusive-pairs"], mix=mix
        )
        for mix in (False, True)
    ]
    plain, other = (each.instances[1].truth for each in drawn)
    assert plain is not None
    assert other is not None
    assert plain.witness == other.witness
    assert winner(read_vnnlib(drawn[0].instances[0].instance.property_file, file="plain")) == 0


def test_proofs_with_a_tree_for_each_disjunct_follow_them() -> None:
    ways = tuple((Linear((), ((k, Fraction(1)),), Fraction(k)),) for k in range(3))
    draft = drafts_of("exclusive-pairs", 1)[0]
    question = Property((Signature("f", "X", (8,), "Y", (3,)),), (Case(draft.question.cases[0].box, ways),))
    given = Draft(draft.network, question, Certificate("linear", {"questions": ["0", "1", "2"]}))
    for seed in range(4):
        found = mixed([given, given], np.random.default_rng(seed))[0]
        bounds = [conjunction[0].bound for conjunction in found.question.cases[0].any_of]
        assert found.certificate.data["questions"] == [str(bound) for bound in bounds]


def test_properties_of_several_boxes_stay_as_they_are() -> None:
    robust, twin = drafts_of("exclusive-pairs", 2)
    question = Property(robust.question.networks, robust.question.cases * 2)
    given = [Draft(d.network, question, d.certificate, d.witness) for d in (robust, twin)]
    assert mixed(given, np.random.default_rng(1)) == tuple(given)
