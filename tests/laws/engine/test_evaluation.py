"""Values for many cases at once are those of one case at a time."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import InputError
from dokimos.laws import real
from dokimos.laws import text as text_feature
from dokimos.laws.engine.calls import AllFailed, Failures
from dokimos.laws.engine.case_frame import Frame, Records, Value, column, stack
from dokimos.laws.engine.confirmation import change_sizes
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import format_expression
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import LawError
from dokimos.laws.language.validation import check_law
from tests.laws.language.test_parser import condition
from tests.laws.toy import domain, inputs, law

ROWS = 12
A, B = np.arange(-4, 8), np.array([0.5, -1.0] * 6)
PYTHON = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


def frame(**values: Value) -> Frame:
    records = Records(inputs(ROWS), np.arange(ROWS))
    every: dict[str, Value] = {"x1": records, "a": A, "b": B, **values}
    return Frame(np.arange(ROWS), np.arange(ROWS), every)


def evaluate(text: str, failures: Failures | None = None, labels: Any = None, **values: Value) -> Value:
    plan = make_plan(law("input x1; var x2 := x1;"), domain(same=lambda x: x))
    return Evaluator(plan, frame(**values), failures or Failures(), labels).value(condition(text))


_NUMBERS = st.one_of(
    st.sampled_from([laws.Name("a"), laws.Name("b")]),
    st.integers(0, 5).map(laws.Literal),
    st.sampled_from([0.5, 2.0]).map(laws.Literal),
)
_ARITHMETIC = st.recursive(
    _NUMBERS,
    lambda inner: st.one_of(
        st.builds(laws.Binary, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner),
        st.builds(laws.Unary, st.just("-"), inner),
        st.builds(laws.Call, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(laws.Call, st.just("abs"), st.tuples(inner)),
    ),
    max_leaves=5,
)
_COMPARED = st.builds(
    laws.Binary, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), _ARITHMETIC, _ARITHMETIC
)
CONDITIONS = st.recursive(
    _COMPARED,
    lambda inner: st.one_of(
        st.builds(laws.Binary, st.sampled_from(["&&", "||", "==>"]), inner, inner),
        st.builds(laws.Unary, st.just("!"), inner),
        st.builds(laws.ForAll, st.just("i"), st.just(laws.Literal(0)), st.just(laws.Literal(2)), inner),
    ),
    max_leaves=4,
)


def one(expression: laws.Expression, row: int) -> Any:
    """The value in one case, as Python computes it."""
    match expression:
        case laws.Literal(value=value):
            return value
        case laws.Name(name=name):
            return (A if name == "a" else B)[row].item()
        case laws.Unary(operator="!", operand=operand):
            return not one(operand, row)
        case laws.Unary(operand=operand):
            return 0 - one(operand, row)
        case laws.Call(function=function, arguments=arguments):
            return {"min": min, "max": max, "abs": abs}[function](*(one(each, row) for each in arguments))  # type: ignore[operator]
        case laws.ForAll(body=body):
            return all(one(body, row) for _ in range(3))
        case laws.Binary(operator="&&", left=left, right=right):
            return one(left, row) and one(right, row)
        case laws.Binary(operator="||", left=left, right=right):
            return one(left, row) or one(right, row)
        case laws.Binary(operator="==>", left=left, right=right):
            return not one(left, row) or one(right, row)
        case laws.Binary(operator=sign, left=left, right=right):
            return PYTHON[sign](one(left, row), one(right, row))
    raise AssertionError(expression)


@pytest.mark.no_cover
@given(expression=CONDITIONS)
@settings(deadline=None, max_examples=60)
def test_batches_agree_with_python_case_by_case(expression: laws.Expression) -> None:
    """Also which cases fail: those in which Python divides by zero, and no others."""
    failures = Failures()
    found = evaluate(format_expression(expression), failures)
    assert isinstance(found, np.ndarray)
    values = np.broadcast_to(found, (ROWS,))
    for row in range(ROWS):
        try:
            assert values[row] == one(expression, row) or row in failures.by_case
            assert row not in failures.by_case
        except ZeroDivisionError:
            assert "division by zero" in failures.by_case[row]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x1.age", inputs(ROWS)[:, 0]),
        ("x1.f1", inputs(ROWS)[:, 1]),
        ("getFeat(x1, income)", inputs(ROWS)[:, 2]),
        ("getFeat(x1, 'recid')", inputs(ROWS)[:, 3]),
        ("x1.sex", inputs(ROWS)[:, 5]),
        ("getFeat(x1, 1 + 2)", inputs(ROWS)[:, 3]),
        ("setFeat(x1, 0, 3).age", np.full(ROWS, 3)),
        ("x1[sex := 1].sex_Male", np.ones(ROWS)),
        ("x1[sex := 0].f4", np.ones(ROWS)),
        ("x1[age := 1, felonies := x1.age][age := 2].felonies", inputs(ROWS)[:, 0]),
        ("x1[age := null].age == null", np.ones(ROWS)),
        ("x1.age == null", np.zeros(ROWS)),
        ("x1 == x1[age := x1.age]", np.ones(ROWS)),
        ("x1[age := null] == x1[age := null]", np.ones(ROWS)),
        ("x1 != x1[age := -1]", np.ones(ROWS)),
        ("x1 == null", np.zeros(ROWS)),
        ("strConcat('a', strConcat('b', \"c\")) == 'abc'", np.ones(ROWS)),
        ("s == 'x'", np.array([True, False] * 6)),
        ("s < 'xx'", np.array([True, False] * 6)),
        ("null == null", np.ones(ROWS)),
        ("s == null", np.zeros(ROWS)),
        ("forall i in 0..5: getFeat(x1, i) >= 0", np.ones(ROWS)),
        ("getFeat(x1, n)", inputs(ROWS)[np.arange(ROWS), np.arange(ROWS) % 6]),
        ("setFeat(x1, n, 7) == x1", np.zeros(ROWS)),
        ("same(x1) == x1", np.ones(ROWS)),
        ("same(3) + same(a)", A + 3),
        ("same('t') == 't'", np.ones(ROWS)),
        ("s == 'x'", np.arange(ROWS) % 2 == 0),
        ("mixed == 'x'", np.arange(ROWS) % 2 == 0),
        ("s == null", np.zeros(ROWS)),
        ("-a", -A),
        ("label(x1)", np.arange(ROWS) % 3),
        ("t && !t || t", np.ones(ROWS)),
        ("t + 1", np.full(ROWS, 2)),
    ],
)
def test_values(text: str, wanted: Any) -> None:
    s, n = np.array(["x", "y"] * 6, dtype=object), np.arange(ROWS) % 6
    failures = Failures()
    more = {"mixed": np.array(["x", 3] * 6, dtype=object), "t": np.ones(ROWS, dtype=bool)}
    found = evaluate(text, failures, lambda: np.arange(ROWS) % 3, s=s, n=n, **more)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(np.broadcast_to(found, (ROWS,)), wanted)
    assert failures.by_case == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x1 < 3", "plain value is needed"),
        ("a.age == 1", "a record is needed"),
        ("a && true", "truth value is needed"),
        ("s < 3", "cannot be ordered"),
        ("s == 3", "never equal to a string; of decisions, 0 is low, 1 is medium, 2 is high"),
        ("a != s", "never equal to a string"),
        ("s + 3", "a number is needed"),
        ("x1 == 3", "compared with something that is not a record"),
        ("strConcat(a, 's') == 's'", "joins strings only"),
        ("x1[age := s] == x1", "only a number fits"),
        ("getFeat(image, 0) == 1", "no named features"),
        ("label(unknown) == 1", "do not come from a data set"),
        ("x1.aeg == 1", "did you mean age"),
    ],
)
def test_values_of_the_wrong_kind_at_their_place(text: str, message: str) -> None:
    s = np.array(["x"] * ROWS, dtype=object)
    others = {"image": Records(np.zeros((ROWS, 2, 2))), "unknown": Records(np.zeros((ROWS, 6)))}
    with pytest.raises(LawError, match=message):
        evaluate(text, s=s, **others)


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        ("1 / a == 1", [4], "division by zero"),
        ("1 % a == 1", [4], "division by zero"),
        ("a != 0 && 1 / a > 0", [], ""),
        ("a == 0 || 1 / a > 0", [], ""),
        ("a != 0 ==> 1 / a > 0", [], ""),
        ("a == 0 && 1 / a > 0", [4], "division by zero"),
        ("a * 9000000000000000000 > 0", [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11], "too large"),
        ("getFeat(x1, a) > 0", [0, 1, 2, 3, 10, 11], "no feature with that index"),
        ("setFeat(x1, a, 1) == x1", [0, 1, 2, 3, 10, 11], "no feature with that index"),
        ("x1[sex := a] == x1", [0, 1, 2, 3, 6, 7, 8, 9, 10, 11], "sex has no such value"),
        ("forall i in 0..2: a == i || 1 / (a - i) < 9", [], ""),
    ],
)
def test_cases_that_fail(text: str, rows: list[int], message: str) -> None:
    failures = Failures()
    evaluate(text, failures)
    assert sorted(failures.by_case) == rows
    assert all(message in reason and "column" in reason for reason in failures.by_case.values())


def test_records_without_a_layout() -> None:
    plan = make_plan(law("input x1; var x2 := x1;"), None)
    cases = Frame(np.arange(2), np.arange(2), {"x1": Records(np.array([[1, 2], [3, 4]]))})
    evaluator = Evaluator(plan, cases, Failures(), lambda: np.zeros(0))
    assert np.array_equal(evaluator.column(condition("x1.f1 + getFeat(x1, -1)")), [4, 8])
    changed = evaluator.value(condition("x1[f0 := 0.5]"))
    assert isinstance(changed, Records) and np.array_equal(changed.data, [[0.5, 2], [0.5, 4]])
    for wrong in ("x1.f2", "x1.income"):
        with pytest.raises(LawError, match="there is no feature"):
            evaluator.value(condition(f"{wrong} == 1"))


def test_one_hot_columns_that_are_all_zero_have_no_value() -> None:
    data = inputs(ROWS)
    data[:, 4:] = 0
    assert np.array_equal(evaluate("y.sex", y=Records(data)), np.full(ROWS, -1))


def test_functions_that_raise_are_told_with_their_case() -> None:
    def picky(x: Any) -> Any:
        if x[0] > 50:
            raise ValueError("too old")
        return x

    def never(x: Any) -> Any:
        raise RuntimeError("no")

    def broken_batch(xs: Any) -> Any:
        raise RuntimeError("no batch")

    plan = make_plan(
        law("input x1; var x2 := x1;"), domain(picky=picky, never=never, picky_batch=broken_batch)
    )
    failures = Failures()
    evaluator = Evaluator(plan, frame(), failures, lambda: np.zeros(0))
    evaluator.value(condition("picky(x1)"))
    assert sorted(failures.by_case) == np.flatnonzero(inputs(ROWS)[:, 0] > 50).tolist()
    assert all("picky raised ValueError: too old at" in each for each in failures.by_case.values())
    with pytest.raises(AllFailed):
        evaluator.value(condition("never(x1)"))


def test_functions_in_batches_and_with_randomness() -> None:
    def doubled_batch(xs: Any) -> Any:
        return xs * 2

    def lone_batch(xs: Any) -> Any:
        return [str(x) for x in xs]

    def noisy(x: Any, rng: np.random.Generator) -> Any:
        return x + rng.integers(0, 1000)

    def noisier_batch(xs: Any, rng: np.random.Generator) -> Any:
        return xs + rng.integers(0, 1000)

    def short_batch(xs: Any) -> Any:
        return xs[:1]

    functions = {
        each.__name__: each for each in (doubled_batch, lone_batch, noisy, noisier_batch, short_batch)
    }
    plan = make_plan(law("input x1; var x2 := x1;"), domain(**functions))
    assert not make_plan(law("input x1; var x2 := noisy(x1);"), domain(**functions)).is_finite
    evaluator = Evaluator(plan, frame(), Failures(), lambda: np.zeros(0))
    assert np.array_equal(evaluator.column(condition("doubled(a)")), A * 2)
    assert evaluator.column(condition("lone(a)"))[0] == "-4"
    for name in ("noisy", "noisier"):
        first, again = (evaluator.column(condition(f"{name}(a)")) for _ in range(2))
        assert np.array_equal(first, again) and len(set(first - A)) > 3
    assert np.array_equal(evaluator.column(condition("short(a)")), A)


def test_columns_keep_numbers_as_they_are() -> None:
    assert column([True, False]).dtype == np.bool_
    assert column([True, 2]).dtype == np.int64
    assert column([np.int32(1), 2.5]).dtype == np.float64
    assert column([2**70, 1]).dtype == object
    assert column([2**60, 0.5]).dtype == object
    assert column([np.float32(0.5), np.array(3)]).tolist() == [0.5, 3.0]
    assert column(["a", None]).tolist() == ["a", None]


def test_stacking_records() -> None:
    assert stack([[1, 2], [3, 4]]).shape == (2, 2)
    assert stack([["a", 2], ["b", 4]]).dtype == object
    assert stack([[1], [2, 3]]).shape == (2,)
    assert stack([object(), object()]).shape == (2,)


def test_a_law_with_errors_does_not_run() -> None:
    wrong = law("input x1; var x2 := y; var z := w;")
    assert len(check_law(wrong)) > 1
    with pytest.raises(LawError, match=r"y is not declared.*and 1 more"):
        make_plan(wrong, None)
    with pytest.raises(InputError, match="allow_code=False"):
        make_plan(parse_law("input x1; output d; { d = len(x1) } ensures d == 1;"), None, allow_code=False)


def test_what_is_not_a_number_beside_texts() -> None:
    """Records with a text are kept as objects; a nan in them is what it is elsewhere."""
    data = np.array([["a", 1.0], ["b", float("nan")], ["c", None]], dtype=object)
    of = domain(FEATURES=[text_feature("note"), real("income")], inputs=lambda: data)
    plan = make_plan(law("input x1; var x2 := x1;"), of)
    cases = Frame(np.arange(3), np.arange(3), {"x1": Records(data), "x2": Records(data.copy())})
    evaluator = Evaluator(plan, cases, Failures(), lambda: np.zeros(0))
    assert evaluator.condition(condition("x1 == x2")).tolist() == [True, True, True]
    assert evaluator.condition(condition("x1.income == null")).tolist() == [False, True, True]
    assert evaluator.condition(condition("x1 != x2[note := 'z']")).tolist() == [True, True, True]
    assert [size for size, _ in change_sizes(cases, ["x1"])] == [0.0, 0.0, 0.0]


def test_what_is_not_a_number_has_no_order_and_brings_no_warning() -> None:
    data = np.array([["a", 1.0], ["b", float("nan")]], dtype=object)
    of = domain(FEATURES=[text_feature("note"), real("income")], inputs=lambda: data)
    cases = Frame(np.arange(2), np.arange(2), {"x1": Records(data), "x2": Records(data)})
    plan = make_plan(law("input x1; var x2 := x1;"), of)
    evaluator = Evaluator(plan, cases, Failures(), lambda: np.zeros(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluator.condition(condition("x1.income >= 0")).tolist() == [True, False]


def test_features_that_are_named_by_what_was_computed() -> None:
    names = np.array(["age", "felonies", "sex"] * 4, dtype=object)
    failures = Failures()
    data = inputs(ROWS)
    wanted = np.choose(np.arange(ROWS) % 3, [data[:, 0], data[:, 1], data[:, 5]])
    assert np.array_equal(evaluate("getFeat(x1, names)", failures, names=names), wanted)
    changed = evaluate("setFeat(x1, names, 1)", failures, names=names)
    assert isinstance(changed, Records) and failures.by_case == {}
    assert changed.data[:3, :2].tolist() == [[1, data[0, 1]], [data[1, 0], 1], data[2, :2].tolist()]
    assert changed.data[2, 4:].tolist() == [0, 1]
    assert np.array_equal(evaluate("getFeat(x1, strConcat('f', 'elonies'))"), data[:, 1])


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        ("getFeat(x1, names) == 1", [1, 3, 5, 7, 9, 11], "there is no feature agee"),
        ("setFeat(x1, names, 1) == x1", [1, 3, 5, 7, 9, 11], "did you mean age"),
        ("getFeat(x1, half) == 1", [0, 2, 4, 6, 8, 10], "not a fraction"),
        ("setFeat(x1, half, 1) == x1", [0, 2, 4, 6, 8, 10], "not a fraction"),
        ("getFeat(x1, 3 / 2) == 1", list(range(ROWS)), "not a fraction"),
        ("getFeat(x1, nothing) == 1", [1, 3, 5, 7, 9, 11], "no feature with that index"),
    ],
)
def test_no_such_computed_feature_fails_in_its_cases(text: str, rows: list[int], message: str) -> None:
    failures = Failures()
    names = np.array(["age", "agee"] * 6, dtype=object)
    half, nothing = np.array([0.5, 1.0] * 6), np.array([1.0, np.nan] * 6)
    evaluate(text, failures, names=names, half=half, nothing=nothing)
    assert sorted(failures.by_case) == rows
    assert all(message in reason for reason in failures.by_case.values())
