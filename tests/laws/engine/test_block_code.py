"""Blocks that are more than predictions run case by case."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import domain, run


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
