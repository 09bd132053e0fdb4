"""Laws on a record and a linear function of it: every answer is that of all strengths that are tried."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, Cut
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile
from dokimos.laws import integer
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.engine.plan import LawPlan, make_plan
from dokimos.laws.models.files import onnx_model
from dokimos.laws.models.model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_files import RowsDecision
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.segments import SegmentReach
from dokimos.laws.proving.strength_deciding import exactly_violates, verify_strengths
from dokimos.laws.proving.strength_files import StrengthsFile, read_strengths, recheck_strengths
from dokimos.laws.proving.strengths import row_fractions, state_strengths
from dokimos.laws.reporting.terminal import rows_words
from tests.laws.proving.test_networks import network
from tests.laws.toy import law

TEXT = "input x1; var x2 := soft(x1); var v := label(x1);"
KEPT = "ENSURES d2 == v ==> d1 == v"
ROWS = np.random.default_rng(3).integers(0, 9, (24, 5))
LABELS = np.random.default_rng(4).integers(0, 3, 24).tolist()
STEP = Tolerance(Fraction(1, 8))


def soft(row: NDArray[Any]) -> NDArray[Any]:
    """Each number the mean of itself and its neighbours, rounded."""
    return np.array([round(float(each)) for each in mean(row)])


def mean(row: NDArray[Any]) -> list[Fraction]:
    wide = [Fraction(0), *map(Fraction, row.tolist()), Fraction(0)]
    return [(wide[k - 1] + 2 * wide[k] + wide[k + 1]) / 4 for k in range(1, len(wide) - 1)]


def domain(**more: Any) -> Domain:
    parts: dict[str, Any] = {"LINEAR": {"soft": mean}, "COLUMN": integer("x", 0, 8), "CLASSES": list("abc")}
    parts["labels"] = lambda: LABELS
    return read_domain(SimpleNamespace(**parts | {"soft": soft, "__name__": __name__} | more), name="rows")


def plan(text: str = TEXT + KEPT, **more: Any) -> LawPlan:
    return make_plan(law(text), domain(**more))


def model(seed: int) -> Model:
    return onnx_model(network(seed), domain(), name="network")


def decided(seed: int, tolerance: Tolerance | None) -> RowsDecision:
    return verify_strengths(plan(), model(seed), ROWS, LABELS, tolerance, settings=VerifySettings())


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_that_of_every_strength(seed: int) -> None:
    found, asked = decided(seed, None), state_strengths(plan(), model(seed))
    assert found.count(LawAnswer.OPEN) == 0
    for each, row, label in zip(found.rows, ROWS, LABELS, strict=True):
        exact = row_fractions(row)
        tried = any(exactly_violates(asked, exact, Fraction(k, 20), label) for k in range(21))
        assert not tried or each.answer is LawAnswer.VIOLATED
        if each.case is not None:
            assert exactly_violates(asked, exact, Fraction(each.case[0]), label)
        for cover in (Cover((None,)), Cover((Cut(0, Fraction(1, 2)), None, None))):
            assert not (tried and asked.check(exact, label, cover, None))
    assert "any strength of soft from 0 to 1: " in rows_words(found)


def test_both_answers_come_up() -> None:
    seen = {each.answer for seed in range(4) for each in decided(seed, None).rows}
    assert seen == {LawAnswer.PROVEN, LawAnswer.VIOLATED}


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(3))
def test_near_a_row_no_record_violates_what_is_proven(seed: int) -> None:
    found, asked = decided(seed, STEP), state_strengths(plan(), model(seed))
    reach = SegmentReach(asked.layers)
    proven = [each.row for each in found.rows if each.answer is LawAnswer.PROVEN]
    assert proven
    for number in proven[:6]:
        near = [(max(0, v - 1), min(8, v + 1)) for v in ROWS[number].tolist()]
        for corner in list(product(*near))[::3]:
            exact = row_fractions(np.array(corner))
            first = reach.decisions(exact, exact)[0].decision
            last = reach.decisions(asked.moved(exact), asked.moved(exact))[0].decision
            assert (first, last) not in asked.forbidden(LABELS[number])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("input x1; input x3; var x2 := soft(x3);", "one input"),
        ("input x1; requires label(x1) == 1; var x2 := soft(x1);", "no `requires`"),
        ("input x1; var x3 := soft(x1); var x2 := soft(x3);", "neither the label"),
        ("input x1; var x2 := other(x1);", "neither the label"),
        ("input x1; var x2 := noisy(x1);", "noisy draws noise at random itself"),
        (TEXT + "ENSURES score(x1, 0) > 0", "not its decisions"),
    ],
)
def test_what_is_not_such_a_law_is_refused(text: str, reason: str) -> None:
    def other(row: Any) -> Any:
        return row

    def noisy(row: Any, rng: Any) -> Any:
        return row + rng.normal()

    with pytest.raises(Refusal, match=reason):
        state_strengths(plan(text, other=other, noisy=noisy), model(0)).forbidden(0)


def test_functions_that_are_not_linear_prove_nothing_near_a_row() -> None:
    bent = {"soft": lambda row: [Fraction(int(v) ** 2) for v in row]}
    shifted = {"soft": lambda row: [Fraction(int(v) + 1) for v in row]}
    short = {"soft": lambda row: [Fraction(0)]}
    for function, reason in ((bent, "not linear"), (shifted, "not linear"), (short, "gives 1 numbers")):
        made = plan(LINEAR=function)
        found = verify_strengths(made, model(1), ROWS, LABELS, STEP, settings=VerifySettings())
        assert reason in found.reason and not found.is_proven
    with pytest.raises(InputError, match="COLUMN must be"):
        domain(COLUMN=integer("x"))
    with pytest.raises(InputError, match="LINEAR must map"):
        domain(LINEAR=[mean])


def _saved(path: Path, tolerance: Tolerance | None) -> dict[str, Any]:
    found = decided(1, tolerance)
    StrengthsFile(path, ROWS, LABELS, tolerance).save(found)
    return dict(json.loads(path.read_text()))


def _recheck(path: Path) -> None:
    recheck_strengths(plan(), model(1), read_strengths(path), ROWS, LABELS)


@pytest.mark.parametrize("tolerance", [None, STEP])
def test_files_are_checked_again_false_ones_refused(tmp_path: Path, tolerance: Tolerance | None) -> None:
    path = tmp_path / "rows.json"
    held = _saved(path, tolerance)
    _recheck(path)
    bad = next(k for k, each in enumerate(held["rows"]) if each["strength"] is not None)
    good = next(k for k, each in enumerate(held["rows"]) if each["cover"] is not None)

    def refused(number: int, **change: Any) -> str:
        rows = [each | change if k == number else each for k, each in enumerate(held["rows"])]
        path.write_text(json.dumps(held | {"rows": rows}))
        with pytest.raises((InvalidProof, UnreadableFile)) as error:
            _recheck(path)
        return str(error.value)

    halves = [[0, "1/2"], None, None]
    assert "not shown" in refused(bad, cover=[None], strength=None)
    assert "not shown" in refused(bad, cover=halves, strength=None)
    assert "both proven and violated" in refused(bad, cover=[None])
    assert "does not violate" in refused(good, cover=None, strength="1")
    assert "does not violate" in refused(bad, strength="2")
    assert "not that row" in refused(good, label=(held["rows"][good]["label"] + 1) % 3)
    assert "not that row" in refused(good, sha256="0" * 64)
    assert "twice" in refused(good, row=bad)
    assert "has 24 rows" in refused(good, row=24)
    assert "after its end" in refused(good, cover=[None, None])
    assert "ends before" in refused(good, cover=halves[:2])
    assert "does not have" in refused(good, cover=[[1, "1/2"], None, None])


def test_a_tolerance_is_not_any_strength(tmp_path: Path) -> None:
    """A violation between is none of full strength."""
    found = decided(1, None)
    inner = [each for each in found.rows if each.case is not None and each.case[0] not in (0, 1)]
    assert inner
    path = tmp_path / "rows.json"
    StrengthsFile(path, ROWS, LABELS, None).save(replace(found, rows=tuple(inner)))
    _recheck(path)
    document = json.loads(path.read_text()) | {"tolerance": "1/8"}
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidProof, match="does not violate"):
        _recheck(path)


@pytest.mark.parametrize("tolerance", [None, STEP])
def test_rows_that_are_decided_already_are_checked_not_decided_again(
    tmp_path: Path, tolerance: Tolerance | None
) -> None:
    """An interrupted call has left a file with some rows: the next one decides the others."""
    path = tmp_path / "rows.json"
    file, settings = StrengthsFile(path, ROWS, LABELS, tolerance), VerifySettings()
    assert file.known(plan(), model(1)) == ()
    found = decided(1, tolerance)
    some = found.rows[::2]
    file.save(replace(found, rows=some))
    known = file.known(plan(), model(1))
    assert list(known) == [each for each in some if each.answer is not LawAnswer.OPEN]
    assert {each.answer for each in known} == {LawAnswer.PROVEN, LawAnswer.VIOLATED}
    asked: list[RowsDecision] = []
    again = verify_strengths(
        plan(), model(1), ROWS, LABELS, tolerance, settings=settings, known=known, done=asked.append
    )
    assert again.rows == found.rows and len(asked) == 1
    other = STEP if tolerance is None else None
    assert StrengthsFile(path, ROWS, LABELS, other).known(plan(), model(1)) == ()
    assert StrengthsFile(path, ROWS + 1, LABELS, tolerance).known(plan(), model(1)) == ()
    false = json.loads(path.read_text())
    for each in false["rows"]:
        each |= {"cover": [None], "strength": None}
    path.write_text(json.dumps(false))
    assert file.known(plan(), model(1)) == ()
    path.write_text(path.read_text()[:-9])
    assert file.known(plan(), model(1)) == ()
