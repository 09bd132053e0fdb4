"""A whole test of a law gives the counts that plain Python gives, case by case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings

from dokimos.laws import integer, real
from dokimos.laws.domain.definition import read_domain
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import format_expression
from dokimos.laws.language.parser import parse_law
from tests.laws.engine.test_evaluation import CONDITIONS, ROWS, A, B, one

DOMAIN = read_domain(
    SimpleNamespace(FEATURES=[integer("a"), real("b")], inputs=lambda: np.column_stack([A, B])), name="two"
)


@given(required=CONDITIONS, ensured=CONDITIONS)
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_python(required: laws.Expression, ensured: laws.Expression) -> None:
    texts = [format_expression(each) for each in (required, ensured)]
    assume(all(text.count("forall") <= 1 for text in texts))

    def never(records: Any) -> Any:
        return np.zeros(len(records), dtype=np.int64)

    never.batched = True  # type: ignore[attr-defined]
    law = parse_law(
        f"input x1; var a := x1.a; var b := x1.b; requires {texts[0]}; output d;"
        f"{{ d = predict(x1) }} ensures d == 1 || ({texts[1]});"
    )
    found = run_law(law, model=never, domain=DOMAIN)
    counts = {"rejected": 0, "passed": 0, "violated": 0, "failed": 0}
    for row in range(ROWS):
        try:
            outcome = (
                "rejected" if not one(required, row) else "passed" if one(ensured, row) else "violated"
            )
        except ZeroDivisionError:
            outcome = "failed"
        counts[outcome] += 1
    assert {name: getattr(found, name) for name in counts} == counts
    assert found.is_exhaustive and found.is_violated == (counts["violated"] > 0)
