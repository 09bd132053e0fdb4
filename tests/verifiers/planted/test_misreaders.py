"""Misreaders of properties and answers: wrong by their bug alone, and ideal in everything else."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.core.errors import VerifierUnavailable
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Case, Linear, Point, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.base import Query
from dokimos.verifiers.catalogue import find
from dokimos.verifiers.planted.base import Misreader, Sort, Task, answer_to
from dokimos.verifiers.planted.catalogue import PLANTED
from tests.scripting import at_least, instance, relu_network

ONES = (Fraction(1), Fraction(1))


def at_most(bound: str | int, *outputs: tuple[int, int], strict: bool = False) -> Linear:
    return Linear((), tuple((j, Fraction(d)) for j, d in outputs), Fraction(bound), strict)


def asked(*any_of: tuple[Linear, ...], inputs: int = 2, outputs: int = 3) -> Property:
    box = Box((Fraction(-1),) * inputs, (Fraction(1),) * inputs)
    return Property((Signature("f", "X", (inputs,), "Y", (outputs,)),), (Case(box, any_of),))


def misread(name: str, property: Property) -> Property:
    bug = PLANTED[name]
    assert isinstance(bug, Misreader)
    return bug.property(property)


def task(bound: str = "1.5", *, label: Label | None = Label.SAT, witness: Point | None = ONES) -> Task:
    """Whether relu(x0) + relu(x1) reaches the bound on [-1, 1]²."""
    network, property = read_onnx(relu_network()), read_vnnlib(at_least(bound), file="p")
    return Task(network, property, label, witness if label is Label.SAT else None, 10.0)


FIRST, SECOND, LAST = ((at_most(0, (0, 1), (k, -1)),) for k in (1, 2, 2))


def test_names_and_words_of_the_catalogue() -> None:
    bugs = [PLANTED[name] for name in PLANTED]
    assert [bug.name for bug in bugs] == list(PLANTED)
    assert all(bug.about and "\n" not in bug.about for bug in bugs)
    assert len([bug for bug in bugs if bug.sort is Sort.MISREADER and not bug.is_sound]) >= 25


def test_disjuncts_and_classes_that_are_lost() -> None:
    both = asked(FIRST, LAST)
    assert misread("first-disjunct", both) == asked(FIRST)
    assert misread("last-class", both) == asked(FIRST)
    assert misread("and-for-or", both) == asked((*FIRST, *LAST))
    assert misread("first-conjunct", asked((*FIRST, *LAST))) == asked(FIRST)
    one_output = asked((at_most(0, (0, -1)),), outputs=1)
    assert misread("last-class", one_output) == one_output
    two_boxes = replace(both, cases=(both.cases[0], both.cases[0]))
    assert misread("first-box", two_boxes) == both
    assert misread("first-disjunct", two_boxes) == asked(FIRST)


def test_constraints_that_are_read_otherwise() -> None:
    given = asked((at_most(3, (0, 1), (1, -2)),))
    assert misread("strict", given) == asked((at_most(3, (0, 1), (1, -2), strict=True),))
    assert misread("reversed", given) == asked((at_most(-3, (0, -1), (1, 2)),))
    assert misread("no-threshold", given) == asked((at_most(0, (0, 1), (1, -2)),))
    for name, bound in (("tolerance-1e-5", "2.99999"), ("tolerance-1e-8", "2.99999999")):
        assert misread(name, given) == asked((at_most(bound, (0, 1), (1, -2)),))
    assert misread("near-1e-5", given) == asked((at_most("3.00001", (0, 1), (1, -2)),))


def test_boxes_that_are_read_otherwise() -> None:
    few, many = asked(FIRST), asked(FIRST, inputs=11)
    assert misread("inputs-as-text", few) == few
    lower = tuple(Fraction(i) for i in range(11))
    (case,) = many.cases
    many = replace(many, cases=(replace(case, box=Box(lower, lower)),))
    shuffled = misread("inputs-as-text", many).cases[0].box.lower
    assert shuffled == (0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9)
    thin = replace(case, box=Box((Fraction("0.1234"),) * 11, (Fraction("0.1236"),) * 11))
    rounded = misread("box-3-digits", replace(many, cases=(thin,))).cases[0].box
    assert (rounded.lower[0], rounded.upper[0]) == (Fraction("0.123"), Fraction("0.124"))


@pytest.mark.parametrize("label", Label)
def test_what_is_read_rightly_is_answered_with_the_label(label: Label) -> None:
    given = PLANTED["ideal"].answer(task(label=label))
    assert given == VerifierAnswer(Answer(label.value), ONES if label is Label.SAT else None)
    assert PLANTED["first-disjunct"].answer(task(label=label)) == given
    assert PLANTED["no-transpose"].answer(task(label=label)) == given


def test_without_truth_nothing_is_known() -> None:
    assert PLANTED["ideal"].answer(task(label=None)).answer is Answer.UNKNOWN


def test_the_known_witness_then_an_attack_then_unsat() -> None:
    near = PLANTED["tolerance-1e-5"]
    assert near.answer(task("1.5")) == VerifierAnswer(Answer.SAT, ONES)
    found = near.answer(task("1.9", witness=(Fraction(1), Fraction("0.90000001"))))
    assert found.answer is Answer.SAT and found.witness is not None and sum(found.witness) > Fraction("1.9")
    assert near.answer(task("2.0")).answer is Answer.UNSAT
    assert PLANTED["tolerance-1e-8"].answer(task("2.0")).answer is Answer.UNSAT
    assert PLANTED["strict"].answer(task("2.0")).answer is Answer.UNSAT
    assert PLANTED["near-1e-5"].answer(task("2.000001", label=Label.UNSAT)).answer is Answer.SAT


def test_an_attack_is_taken_for_a_proof() -> None:
    assert PLANTED["attack-is-proof"].answer(task("1.9")).answer is Answer.SAT
    assert PLANTED["attack-is-proof"].answer(task("2.5", label=Label.UNSAT)).answer is Answer.UNSAT


def test_what_is_decided_rightly_and_written_wrongly() -> None:
    witness = (Fraction("0.98765"), Fraction(1, 3))
    given = task("1.25", witness=witness)
    assert PLANTED["witness-3-digits"].answer(given).witness == (Fraction("0.988"), Fraction("0.333"))
    assert PLANTED["no-witness"].answer(given) == VerifierAnswer(Answer.SAT)
    assert PLANTED["witness-backwards"].answer(given).witness == witness[::-1]
    assert PLANTED["always-unsat"].answer(given).answer is Answer.UNSAT
    assert PLANTED["swapped-words"].answer(given).answer is Answer.UNSAT
    assert PLANTED["swapped-words"].answer(task(label=Label.UNSAT)).answer is Answer.SAT
    for name in ("witness-3-digits", "no-witness", "witness-backwards", "always-unsat"):
        assert PLANTED[name].answer(task(label=Label.UNSAT)) == VerifierAnswer(Answer.UNSAT)


def test_a_property_of_another_network_is_an_error() -> None:
    wrong = replace(task(), property=asked(FIRST, LAST))
    given = PLANTED["first-disjunct"].answer(wrong)
    assert given.answer is Answer.ERROR and "3 outputs" in given.detail


def test_a_file_that_is_none_is_an_error_and_a_truth_about_others_is_none(tmp_path: Path) -> None:
    stub = instance(tmp_path, "one")
    entry = SuiteEntry("one", stub.network_path, stub.property_path, 10.0, "", stub.truth_path)
    assert answer_to(PLANTED["ideal"], entry).answer is Answer.UNKNOWN
    stub.property_path.write_text("(declare-const")
    given = answer_to(PLANTED["ideal"], entry)
    assert given.answer is Answer.ERROR and "one.vnnlib" in given.detail


def test_a_bug_is_the_place_of_the_verifier(tmp_path: Path) -> None:
    verifier = find("planted=first-disjunct")
    assert verifier.name == "planted=first-disjunct"
    assert verifier.version() not in (None, find("planted=last-class").version())
    query = Query(
        name="one",
        network_file=tmp_path / "n.onnx",
        property_file=tmp_path / "p.vnnlib",
        folder=tmp_path,
        wall_seconds=5.0,
        memory_bytes=1,
        origin=tmp_path / "suite" / "vnnlib" / "one.vnnlib",
    )
    words = verifier.command(query).command
    assert words[words.index("--bug") + 1] == "first-disjunct"
    assert words[words.index("--truth") + 1] == str(tmp_path / "suite" / "truth" / "one.json")
    with pytest.raises(VerifierUnavailable, match="did you mean 'first-disjunct'"):
        find("planted=first-disjunkt").installed_version()
    assert find("planted").version() is None
