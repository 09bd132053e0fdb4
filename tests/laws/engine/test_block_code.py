"""Blocks that are more than predictions run as code, side by side where their order cannot be seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.engine import block_code
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.language.parser import parse_law
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import domain, risk, run


def test_code_runs_case_by_case() -> None:
    text = """import toy; input x1; output o1; output o2; {
    o1, o2 = 0, 0
    for _ in range(3):
        more = randInt(1, 5)
        y = setFeat(x1, "felonies", getFeat(x1, "felonies") + more)
        o1 += toy.predict(x1)
        o2 += predict(y)
        assert strConcat("a", "b") == "ab" and MAX_INT > 0 and 0 <= randReal(0, 1) <= 1 and label(x1) == 1
    } ensures o1 <= o2;"""
    labelled = domain(labels=lambda: np.ones(40, dtype=int))
    found = run(text, of=labelled, budget=200)
    assert (found.tested, found.failed) == (200, 0) and found.is_violated
    assert "o1 is" in found.violations[0].words
    again = run(text, of=labelled, budget=200)
    assert again.violated == found.violated
    with pytest.raises(InputError, match="allow_code=False"):
        run(text, allow_code=False)
    with pytest.raises(InputError, match="the block does more than predict"):
        run(text, of=labelled, exhaustive=True)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("d1 = 1\nif x1[0] > 1000: d2 = 1", "ended without a value for d2"),
        ("d1 = d2 = {}[x1[0] > 50]", "the block raised KeyError: "),
        ("d1 = d2 = x1[0] and 1 / 0", "the block raised ZeroDivisionError: division by zero at law:2"),
        ("d1 = d2 = nearly(x1)", "the block raised ValueError: no"),
        ("d1 = d2 = setFeat(x1, 'sex', 7)", "the block raised ValueError: sex has no such value"),
    ],
)
def test_exceptions_in_the_block_are_shown_with_the_case(block: str, reason: str) -> None:
    def nearly(x: Any) -> Any:
        raise ValueError("no")

    found = run(
        f"input x1; output d1; output d2; {{\n{block}\n}} ensures d1 == d2;",
        of=domain(nearly=nearly),
        budget=50,
    )
    assert (found.tested, found.failed, found.is_given_up) == (0, 20, True)
    assert reason in found.errors[0][0]
    assert "row" in summary(found) and "its code failed" in summary(found)


def test_functions_in_the_block() -> None:
    def doubled_batch(xs: Any) -> Any:
        return xs * 2

    def noise(rng: np.random.Generator) -> Any:
        return int(rng.integers(0, 2**40))

    text = """input x1; output d; output e; {
        d = doubled(3) + (doubled(x1) == 2 * x1).all()
        e = noise() == noise()
    } ensures d == 7 && !e;"""
    found = run(text, of=domain(doubled_batch=doubled_batch, noise=noise), budget=50)
    assert (found.tested, found.violated, found.failed) == (50, 0, 0)
    with pytest.raises(InputError, match=r"law:1:31: there is no feature sexx"):
        run("input x1; output d; output e; { d = e = getFeat(x1, 'sexx') } ensures d == e;")


def test_a_warning_of_the_block_is_shown_once() -> None:
    text = (
        "input x1; output d1; { import warnings; warnings.warn('odd'); d1 = predict(x1) } ensures d1 >= 0;"
    )
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        run(text, budget=50)
    assert len(shown) == 1


_BOTH_WAYS = [
    "d1 = predict(x1)\nd2 = max(d1, predict(setFeat(x1, 'felonies', randInt(0, 20))))",
    "d1 = d2 = 0\nfor k in range(5):\n    if predict(setFeat(x1, 'felonies', k)) > d1: d1 += 1; break",
    "d1 = sum(predict(setFeat(x1, 'felonies', k)) for k in range(9) if k % 2)\nd2 = len([k for k in 'ab'])",
    "x = range(3)\nd1, d2 = sum([predict(x1) + x + sum([predict(x1) * y * x for y in x2]) for x in x]), 0",
    "d1 = any(predict(setFeat(x1, 'felonies', k)) == randInt(0, 1) for k in range(9))\nd2 = randInt(0, 9)",
    "d1 = all([predict(x1) == i for i in range(2)]) or all(predict(x1) == i for i in x2)\nd2 = False",
    "try: d1 = predict(x1)\nexcept ValueError as problem: d1 = len(str(problem))\nd2 = 0",
    "d1 = predict(x1) / predict(setFeat(x1, 'felonies', 2))\nd2 = 0",
    "def more(k): return predict(setFeat(x1, 'felonies', k)) + d1\nd1 = predict(x1)\nd2 = more(15)",
    "class Both:\n    first = predict(x1)\nd1 = predict(x1) + Both.first\nd2 = (lambda k: predict(k))(x1)",
    "import math\nd1 = math.floor(score(x1, 0)) + other.predict(x1)\nd2 = [predict][0](x1)",
    "d1 = predict(x1)\nif d1: d2 = 1",
    "d1 = predict(x1)\nd2 = twice(x1) + shaken(d1) + x1[0] / (x1[1] - 3)",
]


@pytest.mark.parametrize("block", _BOTH_WAYS)
@pytest.mark.parametrize("is_fragile", [False, True])
def test_cases_side_by_side_are_what_they_are_one_by_one(
    block: str, is_fragile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `is_fragile`, the model raises for some records: that is the error of their cases only."""
    sizes: list[int] = []

    def model(rows: Any) -> Any:
        sizes.append(len(rows))
        if is_fragile and (rows[:, 1] == 7).any():
            raise ValueError("it cannot say")
        return risk(rows)

    model.batched = True  # type: ignore[attr-defined]

    def twice(x: Any, predict: Any) -> Any:
        return 2 * predict(x[None])[0]

    def shaken(x: Any, rng: np.random.Generator) -> Any:
        return x + rng.random()

    text = (
        f"import other; input x1; var x2 := few(); output d1; output d2; {{\n{block}\n}} ensures d1 <= d2;"
    )
    of = domain(twice=twice, shaken=shaken, few=lambda: 3)
    text = text.replace(" in x2", " in range(x2)")

    def found() -> Any:
        got = run(text, of=of, model=model, budget=150, shrink=False)
        errors = [(reason, case.seed) for reason, case in got.errors]
        return (
            got.tested,
            got.violated,
            got.failed,
            got.draws,
            errors,
            [each.words for each in got.violations],
        )

    together, most = found(), max(sizes)
    monkeypatch.setattr(block_code, "_asking_code", lambda plan: None)
    sizes.clear()
    assert together == found() and max(sizes) == 1 < most


@pytest.mark.parametrize(
    "block",
    [
        "d1 = predict(x1); print(d1)",
        "import random; d1 = predict(x1) + random.random()",
        "d1 = predict(x1) + noise()",
        "d1 = predict(x1) + counted()",
        "import numpy as np\nwith np.errstate(all='ignore'): d1 = predict(x1)",
        "d1: float = predict(x1)",
        "predict = len; d1 = predict(x1)",
        "d1 = x1[0]",
    ],
)
def test_what_shows_the_order_of_the_cases_runs_in_order(block: str) -> None:
    parsed = parse_law(f"input x1; output d1; {{ {block} }} ensures d1 >= 0;")
    assert block_code._asking_code(make_plan(parsed, domain(noise=noise, counted=counted))) is None


def noise() -> float:
    return _helper()


def _helper() -> float:
    return float(np.random.random())


def counted() -> int:
    global _calls
    _calls += 1
    return _calls


_calls = 0


def test_many_cases_share_a_call_of_the_model() -> None:
    """The second call shows what one for a single case takes."""
    sizes: list[int] = []

    def model(rows: Any) -> Any:
        sizes.append(len(rows))
        return risk(rows)

    model.batched = True  # type: ignore[attr-defined]
    text = "input x1; output d1; { d1 = sum(predict(x1) for _ in range(21)) } ensures d1 >= 0;"
    assert run(text, model=model, budget=64).tested == 64
    assert sizes[-22:] == [64, 1, 63, *[64] * 19]


def test_interrupted_in_a_block() -> None:
    left = [300]

    def model(rows: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return risk(rows)

    model.batched = True  # type: ignore[attr-defined]
    text = "input x1; output d1; { d1 = sum(predict(x1) for _ in range(21)) } ensures d1 >= 0;"
    found = run(text, model=model, budget=10**6)
    assert found.is_interrupted and 64 <= found.tested < 10**6 and not found.failed
