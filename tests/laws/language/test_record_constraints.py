"""Constraints of a domain: read, checked with their place, and ready for what draws, tests and proves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import load_domain
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.record_constraints import RECORD, constraints_of, domain_of
from dokimos.laws.language.syntax import LawError
from tests.laws.toy import domain


def test_features_and_values_by_name() -> None:
    (found,) = constraints_of(replace(domain(), constraints=('recid == 0 ==> sex == "Male"',)))
    record = laws.Name(RECORD)
    recid = laws.Binary("==", laws.FeatureOf(record, "recid"), laws.Literal(0))
    male = laws.Binary("==", laws.FeatureOf(record, "sex"), laws.Literal(1))
    assert found.condition == laws.Binary("==>", recid, male)
    assert found.features == {"recid", "sex"}
    assert constraints_of(domain()) == constraints_of(replace(domain(FEATURES=None))) == ()


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("agee > 1", 1, "there is no feature agee (did you mean age?)"),
        ("age + 1", 5, "a constraint must be a truth value"),
        ('sex == "Mael"', 8, "did you mean Male"),
        ('sex < "Male"', 5, "only with == and !="),
        ("older(age) > 1", 1, "a constraint can call only abs, min, max, strConcat"),
        ("randInt(1, 2) > age", 1, "not randInt"),
        ("age.sex == 1", 5, "write its features by their names"),
        ("record == 1", 1, "there is no feature record"),
        ("forall age in 0..1: age == 1", 1, "give the variable of `forall` another name"),
        ("age > ", 5, "where an expression should start"),
        ("age > 3;", 8, "unexpected character"),
    ],
)
def test_wrong_ones_with_their_place(text: str, column: int, message: str) -> None:
    with pytest.raises(LawError) as caught:
        constraints_of(replace(domain(), constraints=(text,)))
    assert message in str(caught.value) and caught.value.at.column == column
    assert str(caught.value).startswith("CONSTRAINTS of the domain toy:1:") and "^" in str(caught.value)


def test_they_are_read_with_the_domain(tmp_path: Path) -> None:
    law = parse_law("import people; input x1; output d; { d = predict(x1) } ensures d == 1;")
    file = tmp_path / "people.py"
    file.write_text("FEATURES = ['age']\nCONSTRAINTS = ['agee > 0']\n")
    with pytest.raises(LawError, match="CONSTRAINTS of the domain people:1:1: there is no feature agee"):
        domain_of(law, folder=tmp_path)
    for wrong, message in (("'age > 0'", "a list of conditions"), ("[3]", "a list of conditions")):
        file.write_text(f"FEATURES = ['age']\nCONSTRAINTS = {wrong}\n")
        with pytest.raises(InputError, match=message):
            domain_of(law, folder=tmp_path)
    file.write_text("CONSTRAINTS = ['age > 0']\n")
    with pytest.raises(InputError, match="there are no FEATURES"):
        domain_of(law, folder=tmp_path)


def test_those_of_a_shipped_domain() -> None:
    assert [each.features for each in constraints_of(load_domain("compas"))] == [
        {"is_recid", "r_charge_degree"},
        {"is_violent_recid", "vr_charge_degree"},
        {"is_violent_recid", "is_recid"},
    ]
