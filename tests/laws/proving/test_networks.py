"""Laws on networks: decided as going through all cases decides them, with proofs that are checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dokimos.checker.lemmas.zones import Cover, Cut
from dokimos.core.errors import InvalidProof
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.case_tables import CaseTables
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.law_search import NetworkSearch
from dokimos.laws.proving.network_closing import (
    NetworkCloser,
    NetworkReach,
    columns_over,
    exactly_violated,
    least_difference,
    products,
)
from dokimos.laws.proving.question import Deadline, SearchEnd, first_end
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.stated_laws import BOTH, REAL, StatedLaw, state_law
from dokimos.laws.proving.verifying import verify_law
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.writing.builder import ModelBuilder
from tests.laws.proving.small import LAWS, MORE, SET, check_cover, domain, plan, records
from tests.laws.proving.test_trees import _all_cases
from tests.laws.toy import law


def network(seed: int, *, rising: float = 0.0, hidden: int = 4, classes: int = 3) -> bytes:
    """A network of two layers of ReLUs; the more `rising`, the more points mean a higher class."""
    rng = np.random.default_rng(seed)
    sizes = (5, hidden, hidden, classes)
    builder = ModelBuilder([5])
    for index in range(3):
        weight = rng.normal(size=(sizes[index + 1], sizes[index])).astype(np.float32).astype(np.float64)
        if rising:
            weight = rising * np.abs(weight) if index < 2 else weight
            if index == 2:
                weight = np.sort(weight, axis=0)
        bias = rng.normal(size=sizes[index + 1]).astype(np.float32).astype(np.float64)
        builder = (builder.relu() if index else builder).affine(weight, bias)
    return builder.build(classes)


def model_of(content: bytes) -> Model:
    return onnx_model(content, domain(), name="network")


def stated(made: LawPlan, content: bytes) -> tuple[StatedLaw, NetworkCloser]:
    found = state_law(made, model_of(content))
    assert isinstance(found.closer, NetworkCloser)
    return found, found.closer


def searched(found: StatedLaw, closer: NetworkCloser, content: bytes, *, blind: bool = False) -> SearchEnd:
    """How the search ends; `blind` believes no case, so that only a proof could end it."""
    tables = CaseTables(found.question, model_of(content).scores)

    def confirms(case: tuple[object, ...]) -> bool:
        return not blind and exactly_violated(found.question, closer.reach, case) is True  # type: ignore[arg-type]

    search = NetworkSearch(closer, tables, confirms)
    return first_end(search.run(), Deadline.after(60)) or search.ends[0]


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_that_of_all_cases(text: str, seed: int) -> None:
    content = network(seed, rising=0.5 if seed == 2 else 0.0)
    found, closer = stated(plan(text, 'paid == 0 ==> kind == "none"' if seed else "points >= 0"), content)
    reach = closer.reach
    violated = [
        case for case in _all_cases(found.question) if exactly_violated(found.question, reach, case) is True
    ]
    end = searched(found, closer, content, blind=bool(violated))
    assert (end.cover is None) is bool(violated)
    if end.cover is not None:
        check_cover(found.question, end.cover, closer)
    elif len(violated) > 20:
        end = searched(found, closer, content)
        assert end.case is not None and end.case in violated


def test_slopes_and_leads_hold_what_the_network_does() -> None:
    reach = NetworkReach(network(7), domain().layout, name="n")  # type: ignore[arg-type]
    rows, rng = records(), np.random.default_rng(1)
    scores = model_of(network(7)).scores(rows).astype(np.float64)
    for _ in range(50):
        chosen = rng.choice(len(rows), 6)
        box = Interval(rows[chosen].min(axis=0)[None], rows[chosen].max(axis=0)[None])
        leads, slopes = reach.leads(box)[0], reach.slopes(box)
        for number, (a, b) in enumerate(reach.pairs):
            gap = scores[chosen, a] - scores[chosen, b]
            assert (gap >= leads[number] - 1e-4).all()
            change = rows[chosen[1:]] - rows[chosen[0]]
            lower = products(
                Interval(slopes.lower[0, number], slopes.upper[0, number]), Interval(change, change)
            )
            assert (gap[1:] - gap[0] >= lower - 1e-4).all()


def _proven() -> tuple[StatedLaw, NetworkCloser, Cover, bytes]:
    for seed in range(20):
        content = network(seed, rising=0.5)
        found, closer = stated(plan(SET), content)
        end = searched(found, closer, content)
        if end.cover is not None and len(end.cover.steps) > 3:
            return found, closer, end.cover, content
    raise AssertionError("none of these networks needs a cut")


def test_false_proofs_are_refused() -> None:
    found, closer, cover, _ = _proven()
    check_cover(found.question, cover, closer)
    steps = cover.steps
    for each in [steps[:-1], (*steps, None), (None,), (), (Cut(99, 1), None, None)]:
        with pytest.raises(InvalidProof):
            check_cover(found.question, Cover(each), closer)


@pytest.mark.no_cover
def test_a_proof_of_another_network_is_refused() -> None:
    """The proof of a network is none of those that violate the law, however little they differ in shape."""
    _, _, cover, _ = _proven()
    refused = 0
    for seed in range(12):
        other, other_closer = stated(plan(SET), network(seed))
        cases = _all_cases(other.question)
        if any(exactly_violated(other.question, other_closer.reach, case) for case in cases):
            with pytest.raises(InvalidProof):
                check_cover(other.question, cover, other_closer)
            refused += 1
    assert refused > 3


@pytest.mark.no_cover
def test_float32_is_claimed_only_beyond_rounding() -> None:
    """A network that gives the same scores for all records keeps its law, but rounding may break ties."""
    steep = ModelBuilder([5]).affine(np.array([[0.0] * 5, [1, 0, 0, 0, 0]]), np.array([2.5, 0.0])).build(2)
    flat = ModelBuilder([5]).affine(np.zeros((2, 5)), np.zeros(2)).build(2)
    for content, semantics in ((steep, BOTH), (flat, REAL)):
        found = verify_law(law(MORE), model=model_of(content), domain=domain())
        assert found.answer is LawAnswer.PROVEN and found.semantics == semantics


def test_the_decision_is_the_first_largest_score() -> None:
    reach = NetworkReach(
        ModelBuilder([5]).affine(np.zeros((3, 5)), np.array([1.0, 2.0, 2.0])).build(3),
        domain().layout,  # type: ignore[arg-type]
        name="n",
    )
    assert reach.decided([0] * 5) == 1


def test_a_violation_is_exact_and_run_again() -> None:
    falling = ModelBuilder([5]).affine(np.array([[0.0] * 5, [-1, 0, 0, 0, 0]]), np.array([-2.5, 0.0]))
    found = verify_law(
        law(MORE), model=model_of(falling.build(2)), domain=domain(), settings=VerifySettings(seconds=20)
    )
    assert found.answer is LawAnswer.VIOLATED and found.violation is not None
    assert "falls" in found.violation.words


def test_what_is_no_such_network_is_refused(tmp_path: Path) -> None:
    layout = domain().layout
    assert layout is not None
    with pytest.raises(Refusal, match="takes 3 inputs, and records have"):
        NetworkReach(ModelBuilder([3]).affine(np.zeros((2, 3)), np.zeros(2)).build(2), layout, name="n")
    wide = replace(layout.features[0], high=2**24 + 2)
    beyond = type(layout)([wide, *layout.features[1:]])
    assert NetworkReach(network(0), beyond, name="n").rounding is None


def test_the_columns_of_a_zone() -> None:
    found, _ = stated(plan(MORE), network(0))
    zone, _ = found.question.zone.cut(2, 1)
    first, second = columns_over(found.question, [found.question.zone, zone])
    assert first.lower.tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert first.upper.tolist() == [[5, 1, 1, 1, 1], [5, 1, 0, 1, 0]]
    assert second.upper.tolist() == first.upper.tolist()


def test_differences_are_rounded_down_where_they_are_rounded() -> None:
    found = least_difference(np.array([1.0, 0.1, 1.0]), np.array([3.0, 0.3, 1e-20]))
    assert found[0] == -2.0 and found[2] < 1.0
    assert found[1] <= 0.1 - 0.3
