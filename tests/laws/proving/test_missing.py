"""Values that may be missing: the answer is that of a run of all cases, with and without them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.laws import choice, flag, integer, real
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.engine.law_results import LawResult, LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.models.tested_model import Model
from dokimos.laws.models.trees import DecisionTree, Ensemble
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.saved_proofs import known_rows, save_rows
from dokimos.laws.proving.stated_laws import planned, state_law
from dokimos.laws.proving.verifying import verify_law, verify_rows
from dokimos.laws.reporting.terminal import decision_words
from tests.laws.proving.small import BY, LATER, MORE, OTHER, SAME, SET, forest
from tests.laws.proving.test_networks import model_of, network
from tests.laws.toy import law

#: Laws about what is missing, and laws whose draws end in a record only where nothing is.
NULL = "input x1; var x2 := x1[points := null];"
KNOWN = "input x1; requires x1.points == null; var x2 := x1[points := 3];"
TWICE = "input x1; var r := randInt(1, 2); requires r > 1; var x2 := x1[points := x1.points + r];"
FAR = "input x1; var x2 := x1[points := x1.points + randInt(9, 9), paid := 1];"
APART = (
    "input x1; var r := randInt(1, 9); requires r > 7; var x2 := x1[points := x1.points + r, paid := 1];"
)
EQUAL = "input x1; input other; var x2 := x1[paid := other.paid]; requires !(x1 == x2); ENSURES d1 == d2"
LAWS = (MORE, BY, LATER, SET, OTHER + SAME, NULL, KNOWN, TWICE, FAR, APART, EQUAL)


def _records() -> NDArray[np.float64]:
    """Every record of the domain, one-hot, with and without values."""
    rows = []
    for points, paid, kind in product([*range(6), np.nan], [0, 1, np.nan], range(-1, 3)):
        rows.append([points, paid, *(float(kind == each) for each in range(3))])
    return np.array(rows, dtype=np.float64)


def _domain(*constraints: str, missing: bool = True) -> Domain:
    features = [
        integer("points", 0, 5, missing=missing),
        flag("paid", missing=missing),
        choice("kind", "a", "b", "c", none=True),
    ]
    parts = {"FEATURES": features, "CLASSES": ["low", "medium", "high"], "CONSTRAINTS": list(constraints)}
    return read_domain(SimpleNamespace(inputs=_records, **parts), name="gaps")


def _trees(seed: int, trees: int = 1) -> Ensemble:
    rng = np.random.default_rng(seed)
    plain = forest(seed, trees=trees, depth=3)
    made = [replace(each, missing_left=rng.random(len(each.feature)) < 0.5) for each in plain.trees]
    return Ensemble(made, inputs=5, base=plain.base)


def _model(trees: Ensemble) -> Model:
    return Model("trees", trees, trees.decide, made_of=trees)


def _tested(text: str, model: Any, of: Domain) -> LawResult:
    settings = LawSettings(budget=100_000, exhaustive=True, in_range=True, shrink=False)
    found = run_law(law(text), model=model, domain=of, settings=settings)
    assert found.is_exhaustive
    return found


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_that_of_a_run_of_all_cases(text: str, seed: int) -> None:
    model = _model(_trees(seed, 1 + seed % 2))
    of = _domain()
    if seed == 3:
        rows = _records()[_records()[:, 0] >= 1]
        of = replace(_domain("points >= 1"), inputs=lambda: rows)
    tested = _tested(text, model, of)
    found = verify_law(law(text), model=model, domain=of, settings=VerifySettings(seconds=30))
    assert found.answer is (LawAnswer.VIOLATED if tested.violated else LawAnswer.PROVEN)
    if found.cover is not None:
        plan = planned(law(text), of, constrained=True, allow_code=True)
        stated = state_law(plan, model)
        stated.check(found.cover)
        assert stated.question.over.endswith(", points, paid missing or not")


def test_both_answers_are_among_these() -> None:
    for text in (FAR, APART, NULL, EQUAL):
        answers = {
            verify_law(law(text), model=_model(_trees(seed)), domain=_domain()).answer for seed in range(8)
        }
        assert answers == {LawAnswer.PROVEN, LawAnswer.VIOLATED}


def _only_missing() -> Ensemble:
    """Where points are missing the class is high, else low: a law that raises points holds only there."""
    value = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0]], dtype=np.float64)
    tree = DecisionTree(
        np.array([0, -1, -1]),
        np.array([-1.0, 0, 0]),
        np.array([1, 1, 2]),
        np.array([2, 1, 2]),
        value,
        np.array([True, False, False]),
    )
    return Ensemble([tree], inputs=5, base=np.zeros(3))


def test_a_violation_with_a_missing_value_is_found_and_said() -> None:
    text = "input x1; var x2 := x1[points := 2]; ENSURES d1 <= d2"
    found = verify_law(law(text), model=_model(_only_missing()), domain=_domain())
    assert found.answer is LawAnswer.VIOLATED and found.violation is not None
    assert np.isnan(found.violation.case.inputs["x1"][0])
    plain = verify_law(law(text), model=_model(_only_missing()), domain=_domain(missing=False))
    assert plain.answer is LawAnswer.PROVEN
    said = decision_words(plain)
    assert "12 of 84 rows of the data have no points" in said and "missing=True" in said


def test_in_range_leaves_out_what_verify_leaves_out() -> None:
    text = "input x1; var x2 := x1[points := 2]; ENSURES d1 <= d2"
    model = _model(_only_missing())
    declared, not_declared = (_tested(text, model, _domain(missing=each)) for each in (True, False))
    assert declared.violated == 12 and declared.refused == 0
    assert not_declared.violated == 0 and not_declared.refused == 36  # no points, or not known whether paid
    settings = LawSettings(budget=500, source="range")
    drawn = run_law(law(text), model=model, domain=_domain(), settings=settings)
    assert drawn.violated > 0 and drawn.outside == 0


def test_what_decides_nothing_where_a_value_is_missing_is_refused() -> None:
    trees = forest(0)
    found = verify_law(
        law(MORE),
        model=_model(Ensemble(trees.trees, inputs=5, base=trees.base, takes_missing=False)),
        domain=_domain(),
    )
    assert found.answer is LawAnswer.REFUSED and "points may be missing" in found.reason
    found = verify_law(law(MORE), model=model_of(network(0)), domain=_domain())
    assert found.answer is LawAnswer.REFUSED and "points may be missing" in found.reason


def test_rows_with_missing_values(tmp_path: Path) -> None:
    model, settings, tolerance = _model(_trees(1)), VerifySettings(seconds=5), Tolerance(Fraction(1, 100))
    rows = [*_records().tolist(), [np.inf, 1, 0, 0, 0]]
    found = verify_rows(law(BY), rows, tolerance, model=model, domain=_domain(), settings=settings)
    assert found.outside == 1 and len(found.rows) == 84
    assert found.count(LawAnswer.OPEN) == 0
    of = replace(_domain(), inputs=lambda: np.array(rows))
    path = tmp_path / "rows.json"
    save_rows(found, path)
    plan = planned(law(BY), of, constrained=True, allow_code=True)
    assert len(known_rows(path, plan, model, tolerance, np.array(rows))) == 84
    plain = verify_rows(
        law(BY), rows, tolerance, model=model, domain=_domain(missing=False), settings=settings
    )
    assert plain.outside == 37


def test_reals_that_may_be_missing_are_decided_as_well() -> None:
    """A draw that a real determines is solved for, whether or not that real is missing."""
    features = [real("points", 0, 5, missing=True), *_features_of(_domain())[1:]]
    of = read_domain(SimpleNamespace(FEATURES=features, CLASSES=["low", "medium", "high"]), name="gaps")
    text = "input x1; var x2 := x1[points := x1.points + randReal(0, 1)]; ENSURES d1 <= d2"
    assert verify_law(law(text), model=_model(_only_missing()), domain=of).answer is LawAnswer.PROVEN
    answers = {verify_law(law(text), model=_model(_trees(k)), domain=of).answer for k in range(6)}
    assert LawAnswer.OPEN not in answers and LawAnswer.VIOLATED in answers


def _features_of(of: Domain) -> list[Any]:
    assert of.layout is not None
    return list(of.layout.features)
