"""Laws as properties of several networks: unsafe are just the cases that violate the law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dokimos.engine.linear import LinearSearch
from dokimos.engine.outcome import SearchEffort, accepted_truth
from dokimos.laws.proving.copies import product_instance
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import exactly_violated
from dokimos.laws.proving.question import ExactCase, LawQuestion, PredictedRecord
from dokimos.laws.proving.relational import relational_property, without_strict
from dokimos.laws.proving.row_zones import Tolerance, row_numbers
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import enclosures
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate, Instance, Label, Semantics
from dokimos.suites.lower import lower
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import write_vnnlib1, write_vnnlib2
from tests.laws.proving.small import BY, LATER, LAWS, MORE, SET, plan
from tests.laws.proving.test_networks import network, stated
from tests.laws.proving.test_trees import _all_cases


def _outputs(content: bytes, point: list[Fraction]) -> list[Fraction]:
    for found in enclosures(read_onnx(content, name="n"), point):
        if found.is_exact:
            return list(found.lower)
    raise AssertionError("no exact value")


@pytest.mark.parametrize("text", [*LAWS[:4], "input x1; requires x1.points != 3; var x2 := x1[paid := 0];"])
@pytest.mark.parametrize(
    ("constraint", "boxes"),
    [("points >= 0", 64), ('paid == 0 ==> kind == "none"', 0), ("paid == 0 || points < 4", 64)],
)
def test_records_are_unsafe_iff_they_violate_the_law(
    text: str, constraint: str, boxes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every case, by the exact scores; ties are broken as the network breaks them."""
    monkeypatch.setattr("dokimos.laws.proving.relational._MOST_BOXES", boxes)
    content = network(3)
    found, closer = stated(plan(text, constraint), content)
    question = found.question
    asked = relational_property(question, question.zone, closer.reach.network)
    assert asked is not None and len(asked.networks) == 2
    assert (len(asked.cases) > 1) is (boxes > 0)
    closed = without_strict(asked)
    scores: dict[tuple[Fraction, ...], list[Fraction]] = {}
    seen = set()
    for case in _all_cases(question)[::3]:
        records = [
            tuple(map(Fraction, question.exact_columns(record, case))) for record in question.records
        ]
        for record in records:
            if record not in scores:
                scores[record] = _outputs(content, list(record))
        x = [value for record in records for value in record]
        y = [value for record in records for value in scores[record]]
        violates = exactly_violated(question, closer.reach, case) is True
        assert asked.unsafe(x, y) is violates
        assert closed.unsafe(x, y) or not violates
        seen.add(violates)
    assert seen == {True, False} if text == MORE else False in seen


@pytest.mark.no_cover
@pytest.mark.parametrize(("text", "boxes"), [(MORE, 64), (BY, 64), (LATER, 0), (SET, 64), (MORE, 0)])
def test_the_product_is_the_copies_side_by_side(
    text: str, boxes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every case is unsafe of the product iff it is of the copies; a difference is an input of its own."""
    monkeypatch.setattr("dokimos.laws.proving.relational._MOST_BOXES", boxes)
    content = network(5)
    found, closer = stated(plan(text), content)
    question = found.question
    asked = relational_property(question, question.zone, closer.reach.network)
    assert asked is not None
    asked = without_strict(asked)
    lowered = lower(asked, {each.name: content for each in asked.networks})
    made = product_instance(closer.reach.network, lowered)
    assert {node.op for node in read_onnx(made.network, name="p").nodes} == {"Gemm", "Relu"}
    assert (max(map(len, made.inputs)) == 2) is (text in (MORE, BY))
    seen = set()
    cases = _all_cases(question)
    for case in [*cases[::11], *[each for each in cases if not question.admits(each)][::11]]:
        x = [Fraction(c) for record in question.records for c in question.exact_columns(record, case)]
        y = [v for record in question.records for v in _outputs(content, _columns(question, record, case))]
        z = list(made.point(x))
        assert [sum((z[k] for k in parts), Fraction(0)) for parts in made.inputs] == x
        is_unsafe = made.property.unsafe(z, _outputs(made.network, z))
        assert is_unsafe is asked.unsafe(x, y)
        seen.add(is_unsafe)
    assert False in seen


def _columns(question: LawQuestion, record: PredictedRecord, case: ExactCase) -> list[Fraction]:
    return list(map(Fraction, question.exact_columns(record, case)))


@pytest.mark.no_cover
def test_a_difference_that_is_bounded_proves_what_copies_alone_do_not() -> None:
    """More points never lower the class of a rising network: one piece is enough."""
    content = network(2, rising=1.0)
    found, closer = stated(plan(MORE), content)
    asked = relational_property(found.question, found.question.zone, closer.reach.network)
    assert asked is not None
    lowered = lower(without_strict(asked), {each.name: content for each in asked.networks})
    made = product_instance(closer.reach.network, lowered)
    product = read_onnx(made.network, name="p")
    data = LinearSearch(product, made.property, SearchEffort(20)).run().data
    assert data is not None
    text = write_vnnlib1(made.property).encode()
    truth = accepted_truth(Instance("p", made.network, text), Certificate("linear", data), Label.UNSAT)
    assert truth.claim(Semantics.REAL).proven


def test_what_is_written_is_read_again() -> None:
    content = network(1)
    found, closer = stated(plan(MORE), content)
    row = row_numbers(found.question.layout, [2.0, 1.0, 0.0, 1.0, 0.0])
    zone = Tolerance(Fraction(1, 5)).over(found.question, row)
    assert zone is not None
    asked = relational_property(found.question, zone, closer.reach.network)
    assert asked is not None
    assert read_vnnlib(write_vnnlib2(asked).encode(), file="two").networks == asked.networks
    lowered = lower(without_strict(asked), {each.name: content for each in asked.networks})
    again = read_vnnlib(write_vnnlib1(lowered.property).encode(), file="one")
    assert again.cases == lowered.property.cases


def test_what_no_record_shows_is_refused_and_what_cannot_be_is_none() -> None:
    content = network(1)
    text = "input x1; var v := randInt(0, 5); requires v * 2 > x1.points; var x2 := x1[paid := 1];"
    found, closer = stated(plan(text), content)
    with pytest.raises(Refusal, match="no record shows"):
        relational_property(found.question, found.question.zone, closer.reach.network)
    found, closer = stated(plan("input x1; requires x1.points > 5; var x2 := x1[paid := 1];"), content)
    assert relational_property(found.question, found.question.zone, closer.reach.network) is None


def test_numbers_that_are_not_of_float32_have_no_plain_layers() -> None:
    content = network(5)
    found, closer = stated(plan(SET), content)
    asked = relational_property(found.question, found.question.zone, closer.reach.network)
    assert asked is not None
    lowered = lower(without_strict(asked), {each.name: content for each in asked.networks})
    bent = ModelBuilder([5]).affine(np.eye(5), np.zeros(5)).power(2).affine(np.ones((2, 5)), np.zeros(2))
    made = product_instance(read_onnx(bent.build(2), name="b"), lowered)
    assert made.network == lowered.network and made.property == lowered.property
    assert made.inputs == tuple((k,) for k in lowered.links)


def test_columns_that_are_one_input_have_weights_that_add_up_exactly() -> None:
    """1 + 2^-60 is 1 in float64: a float32 number, but another network."""
    weights = np.zeros((3, 5))
    weights[:, 0], weights[:, 1] = 1.0, 2.0**-60
    content = ModelBuilder([5]).affine(weights, np.zeros(3)).build(3)
    text = "input x1; requires x1.points == x1.paid; var x2 := x1[paid := 0];"
    found, closer = stated(plan(text), content)
    asked = relational_property(found.question, found.question.zone, closer.reach.network)
    assert asked is not None
    lowered = lower(without_strict(asked), {each.name: content for each in asked.networks})
    made = product_instance(closer.reach.network, lowered)
    assert made.network == lowered.network
