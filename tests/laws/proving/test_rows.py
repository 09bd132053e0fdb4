"""Laws decided around rows: which cases that are, and that every answer is that of all of them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dokimos.checker.lemmas.zones import Options, Span, Zone
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import exactly_violated
from dokimos.laws.proving.results import LawAnswer, RowDecision, RowsDecision, VerifySettings
from dokimos.laws.proving.row_zones import Tolerance, row_numbers
from dokimos.laws.proving.saved_proofs import known_rows, read_rows, recheck_rows, save_rows
from dokimos.laws.proving.translation import translate
from dokimos.laws.proving.verifying import verify_rows
from dokimos.laws.reporting.terminal import rows_words
from tests.laws.proving.small import MORE, OTHER, SAME, domain, forest, plan, records
from tests.laws.proving.test_networks import model_of, network, stated
from tests.laws.toy import law

ROW = [2.0, 1.0, 0.0, 1.0, 0.0]


def _cases(zone: Zone) -> list[tuple[int, ...]]:
    axes = [
        sorted(each.left) if isinstance(each, Options) else range(int(each.low), int(each.high) + 1)
        for each in zone.values
    ]
    return list(product(*axes))


def test_the_cases_around_a_row() -> None:
    question = translate(plan(MORE), range(3))
    row = row_numbers(question.layout, ROW)
    near = Tolerance(Fraction(1, 100)).over(question, row)
    assert near is not None
    assert near.values[:3] == (Span(1, 3), Span(1, 1), Options(frozenset({1})))
    assert near.values[3] == question.zone.values[3]  # what the law sets goes where the law says
    here = Tolerance(Fraction(0)).over(question, row)
    assert here is not None and here.values[0] == Span(2, 2)
    far = Tolerance(Fraction(1, 2), ("kind", "paid")).over(question, row)
    assert far is not None
    assert far.values[:3] == (Span(0, 4), Span(0, 1), question.zone.values[2])


def test_rows_that_are_no_records_and_laws_of_several_inputs() -> None:
    question = translate(plan(MORE), range(3))
    for wrong in ([9, 0, 0, 0, 0], [1, 0, 1, 1, 0], [1, 2, 0, 0, 0], [1.5, 0, 0, 0, 0]):
        assert Tolerance(Fraction(0)).over(question, row_numbers(question.layout, wrong)) is None
    with pytest.raises(InputError, match="no feature knd"):
        Tolerance(Fraction(0), ("knd",)).over(question, row_numbers(question.layout, ROW))
    with pytest.raises(InputError, match="between 0 and 100"):
        Tolerance(Fraction(3, 2))
    with pytest.raises(Refusal, match="columns"):
        row_numbers(question.layout, [1.0])
    with pytest.raises(Refusal, match="several inputs"):
        Tolerance(Fraction(0)).over(translate(plan(OTHER + SAME), range(3)), ROW)  # type: ignore[arg-type]


def _decided(content: bytes, tolerance: Tolerance) -> RowsDecision:
    settings = VerifySettings(seconds=20)
    return verify_rows(
        law(MORE),
        records().tolist(),
        tolerance,
        model=model_of(content),
        domain=domain(),
        settings=settings,
    )


@pytest.fixture(scope="module")
def found() -> RowsDecision:
    return _decided(network(1), Tolerance(Fraction(1, 5)))


@pytest.mark.no_cover
def test_every_row_has_the_answer_of_all_cases_around_it(found: RowsDecision) -> None:
    made, closer = stated(plan(MORE), network(1))
    answers = set()
    for each in found.rows:
        zone = found.tolerance.over(made.question, each.columns)
        assert zone is not None
        violated = [c for c in _cases(zone) if exactly_violated(made.question, closer.reach, c)]
        assert each.answer is (LawAnswer.VIOLATED if violated else LawAnswer.PROVEN)
        assert each.case is None or each.case in violated
        assert each.is_empty is False or not any(map(made.question.admits, _cases(zone)))
        answers.add(each.answer)
    assert len(answers) == 2 and len(found.rows) == len(records())
    assert f"{found.count(LawAnswer.VIOLATED)} violated, 0 open of 48 rows" in rows_words(found)


def test_trees_are_decided_around_rows_too() -> None:
    ensemble = forest(2, depth=3)
    model = Model("trees", ensemble, ensemble.decide, made_of=ensemble)
    rows = [*records().tolist(), [77.0, 0, 0, 0, 0]]
    found = verify_rows(law(MORE), rows, Tolerance(Fraction(1, 5)), model=model, domain=domain())
    assert found.outside == 1 and {each.answer for each in found.rows} <= set(LawAnswer)
    assert found.count(LawAnswer.VIOLATED) > 0 and found.count(LawAnswer.OPEN) == 0
    assert "1 outside the domain" in rows_words(found) and not found.is_proven


def test_a_law_that_cannot_be_decided_says_why() -> None:
    text = "input x1; var x2 := x1[points := x1.points * x1.paid];"
    found = verify_rows(
        law(text), [ROW], Tolerance(Fraction(0)), model=model_of(network(0)), domain=domain()
    )
    assert "not linear" in found.reason and "refused: " in rows_words(found)


def test_the_file_is_checked_again_and_mutants_are_refused(found: RowsDecision, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    save_rows(found, path)
    held = json.loads(path.read_text())
    model = model_of(network(1))

    def checked(**changes: object) -> None:
        path.write_text(json.dumps(held | changes))
        recheck_rows(plan(MORE), model, read_rows(path))

    checked()
    rows = held["rows"]
    bad = next(k for k, row in enumerate(rows) if row["case"])
    good = next(k for k, row in enumerate(rows) if row["cover"] and len(row["cover"]) > 1)
    proven_wrongly = rows[bad] | {"case": None, "cover": [None]}
    other_case = rows[bad] | {"case": [*rows[bad]["case"][:-1], rows[bad]["case"][0]]}
    elsewhere = rows[bad] | {"columns": [*rows[bad]["columns"][:-1], "7"]}
    uncut = rows[good] | {"cover": [None]}
    in_float32 = [row | {"in_float32": True} for row in rows if row["cover"] and not row["in_float32"]]
    mutants = [
        proven_wrongly,
        other_case,
        elsewhere,
        uncut,
        rows[good] | {"cover": rows[good]["cover"][1:]},
    ]
    mutants += [rows[bad] | {"case": ["1"]}, rows[bad] | {"columns": ["1"]}, *in_float32[:1]]
    for mutant in mutants:
        with pytest.raises(InvalidProof):
            checked(rows=[mutant])
    with pytest.raises(InvalidProof):
        checked(tolerance="1")
    with pytest.raises(InvalidProof):
        recheck_rows(plan(MORE), model_of(network(5)), read_rows(_written(path, held)))
    for damaged in (
        {"tolerance": "x"},
        {"text": held["text"] + " "},
        {"rows": [rows[bad] | {"cover": [None]}]},
    ):
        with pytest.raises(UnreadableFile):
            checked(**damaged)


def test_rows_that_a_file_has_are_not_decided_again(found: RowsDecision, tmp_path: Path) -> None:
    """What it claims is checked first: with other data, another model or a false claim, it is nothing."""
    path, data, model = tmp_path / "rows.json", records(), model_of(network(1))
    save_rows(found, path)
    held = json.loads(path.read_text())

    def known(**given: Any) -> tuple[RowDecision, ...]:
        asked = {"plan": plan(MORE), "model": model, "tolerance": found.tolerance, "data": data} | given
        return known_rows(path, **asked)

    assert [(each.row, each.answer, each.is_empty) for each in known()] == [
        (each.row, each.answer, each.is_empty) for each in found.rows
    ]
    assert len(known(data=data[:7])) == 7
    assert known(data=data[::-1]) == known(model=model_of(network(5))) == ()
    assert known(tolerance=Tolerance(Fraction(1, 4))) == ()
    bad = next(k for k, row in enumerate(held["rows"]) if row["case"])
    lie = held["rows"][bad] | {"case": None, "cover": [None]}
    for rows in ([lie], [held["rows"][0]] * 2):
        _written(path, held | {"rows": rows})
        assert known() == ()
    _written(path, held | {"rows": [held["rows"][0], held["rows"][bad] | {"case": None}]})
    first = known()
    assert [each.row for each in first] == [0]  # the other one is open
    path.write_text("nothing")
    assert known() == ()
    counts: list[int] = []
    again = verify_rows(
        law(MORE),
        data.tolist(),
        found.tolerance,
        model=model,
        domain=domain(),
        known=found.rows[1:],
        done=lambda so_far: counts.append(len(so_far.rows)),
    )
    assert counts == [len(data)] and [each.row for each in again.rows] == list(range(len(data)))


def _written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path
