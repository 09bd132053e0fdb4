"""The family disjuncts: none can happen, or exactly the one that was asked for."""

from __future__ import annotations

import pytest

from dokimos.checker import prove
from dokimos.constructions.base import by_slopes
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.instance import Instance, Label, LabelledInstance
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import write_vnnlib1
from tests.constructions.siblings import differing_weights, draw, truth_of


def asked(labelled: LabelledInstance) -> Property:
    return read_vnnlib(labelled.instance.property_file, file="p")


def outputs(question: Property) -> list[int]:
    """Which output each disjunct speaks of, in the order of the file."""
    return [way[0].outputs[0][0] for case in question.cases for way in case.any_of]


def is_proven(labelled: LabelledInstance, left_out: int) -> bool:
    """Whether nothing but the disjunct on output `left_out` can happen in a twin."""
    question = asked(labelled)
    kept = tuple(
        (case.box, tuple(way for way in case.any_of if way[0].outputs[0][0] != left_out))
        for case in question.cases
    )
    cases = tuple(type(question.cases[0])(box, ways) for box, ways in kept if ways)
    rest = Property(question.networks, cases)
    text = write_vnnlib1(rest).encode()
    network = labelled.instance.network_file
    instance = Instance("rest", network, text)
    certificate = by_slopes(rest, [1] * (2 * question.output_size))
    return prove(instance, certificate, Label.UNSAT, None).floats is not None


@pytest.mark.parametrize("boxes", [0, 1])
@pytest.mark.parametrize(("count", "position"), [(2, 0), (2, 1), (5, 0), (5, 4), (9, 8)])
def test_exactly_one_disjunct_can_happen_in_the_twin(count: int, position: int, boxes: int) -> None:
    robust, twin = draw("disjuncts", disjuncts=count, position=position, boxes=boxes)
    assert sorted(outputs(asked(twin))) == list(range(count))
    assert is_proven(twin, position)
    witness = truth_of(twin).witness
    assert witness is not None
    found = evaluate(read_onnx(twin.instance.network_file), witness).lower
    happens = {
        way[0].outputs[0][0]
        for case in asked(twin).cases
        for way in case.any_of
        if witness in case.box and all(c.holds(witness, found) for c in way)
    }
    assert happens == {position}
    assert differing_weights((robust, twin)) == 1


def test_rotation_changes_the_order_and_nothing_else() -> None:
    plain, turned = draw("disjuncts"), draw("disjuncts", rotation=3)
    for ours, theirs in zip(plain, turned, strict=True):
        assert ours.instance.network_file == theirs.instance.network_file
        assert outputs(asked(ours)) == [0, 1, 2, 3, 4]
        assert outputs(asked(theirs)) == [3, 4, 0, 1, 2]
        assert set(asked(ours).cases[0].any_of) == set(asked(theirs).cases[0].any_of)


def test_every_disjunct_may_have_a_box_of_its_own() -> None:
    robust, _ = draw("disjuncts", boxes=1, disjuncts=9)
    boxes = [case.box for case in asked(robust).cases]
    assert len(set(boxes)) == 9
    whole = asked(draw("disjuncts", disjuncts=9)[0]).cases[0].box
    for box in boxes:
        assert box.lower in whole
        assert box.upper in whole


def test_a_position_beyond_the_disjuncts_is_refused() -> None:
    with pytest.raises(ConstructionFailed, match="position = 4 is not one of the 3 disjuncts"):
        draw("disjuncts", disjuncts=3, position=4)
