"""No input is left in any case, or the proof is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dokimos.checker import check, prove
from dokimos.checker.base import Problem
from dokimos.checker.proofs.no_inputs import NoInputs
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Instance, Label
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from tests.checker.files import instance_of, model, question, stated

SAME = model([("Identity", ("X",), "Y")], {}, (1, 2), (1, 2))
EMPTY, POINT, FULL = [(0, 1), ("0.5", "0.25")], [(0, 1), ("0.5", "0.5")], [(0, 1), (0, 1)]
PROOF = Certificate("no-inputs", {})


def asked(box: list[tuple[object, object]], unsafe: str = "(>= Y_0 -9.0)") -> Instance:
    return instance_of(SAME, question(box, 2, unsafe))


def test_the_margin_is_the_gap_between_the_bounds() -> None:
    proven = prove(asked(EMPTY), PROOF, Label.UNSAT, None)
    assert (proven.real, proven.floats) == (Fraction(1, 4), Fraction(1, 4))
    check(asked(EMPTY), stated(asked(EMPTY), "no-inputs", {}, real=Fraction(1, 4), float32=Fraction(1, 4)))


def test_it_claims_no_more_than_the_gap() -> None:
    with pytest.raises(InvalidProof, match="larger than what is proven"):
        check(asked(EMPTY), stated(asked(EMPTY), "no-inputs", {}, real=Fraction(1, 3)))


@pytest.mark.parametrize("box", [POINT, FULL])
def test_a_box_with_a_point_is_refused(box: list[tuple[object, object]]) -> None:
    for unsafe in ("(>= Y_0 -9.0)", "(>= Y_0 9.0)"):
        with pytest.raises(InvalidProof, match="is not empty"):
            prove(asked(box, unsafe), PROOF, Label.UNSAT, None)


def test_one_case_with_a_point_is_enough_to_refuse() -> None:
    empty, full = "(and (<= X_0 -1.0) (>= Y_0 9.0))", "(and (<= X_0 0.5) (>= Y_0 9.0))"
    assert prove(asked(FULL, f"(or {empty} {empty})"), PROOF, Label.UNSAT, None).real == 1
    with pytest.raises(InvalidProof, match="is not empty"):
        prove(asked(FULL, f"(or {empty} {full})"), PROOF, Label.UNSAT, None)


def test_a_constraint_that_empties_the_box_is_for_other_kinds() -> None:
    with pytest.raises(InvalidProof, match="is not empty"):
        prove(asked(FULL, "(and (>= (+ X_0 X_1) 3.0) (>= Y_0 -9.0))"), PROOF, Label.UNSAT, None)


def test_a_property_without_cases_is_refused() -> None:
    nothing = Property((Signature("f", "X", (2,), "Y", (2,)),), ())
    with pytest.raises(InvalidProof, match="no case"):
        NoInputs().prove(Problem(read_onnx(SAME), nothing), {})


def test_a_case_that_calls_nothing_unsafe_counts_as_well() -> None:
    """A full box without unsafe outputs is true of every network, but not for want of inputs."""
    full = Box((Fraction(0),) * 2, (Fraction(1),) * 2)
    empty = Box((Fraction(2),) * 2, (Fraction(1),) * 2)
    unsafe = ((Linear((), ((0, Fraction(1)),), Fraction(9)),),)
    signature = (Signature("f", "X", (2,), "Y", (2,)),)
    with pytest.raises(InvalidProof, match="is not empty"):
        NoInputs().prove(Problem(read_onnx(SAME), Property(signature, (Case(full, ()),))), {})
    both = Property(signature, (Case(empty, unsafe), Case(empty, ())))
    assert NoInputs().prove(Problem(read_onnx(SAME), both), {}).real == 1


def test_it_proves_no_sat_and_takes_no_data() -> None:
    with pytest.raises(InvalidProof, match="cannot prove"):
        prove(asked(EMPTY), PROOF, Label.SAT, (Fraction(0), Fraction(1, 2)))
    with pytest.raises(UnreadableFile):
        prove(asked(EMPTY), Certificate("no-inputs", {"case": 0}), Label.UNSAT, None)
