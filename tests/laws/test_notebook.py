"""Laws as objects: nothing needs a file, and what is found shows itself in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import dokimos
from dokimos import Domain, Law
from dokimos.laws.language.syntax import LawError
from dokimos.laws.pytest_plugin import LawViolated, check_law

MORE = """
input x1;
var x2 := x1[income := x1.income + randReal(0, 10)];
output d1;
output d2;
{ d1 = predict(x1)
  d2 = predict(x2) }
ensures d1 <= d2;
"""


def _fitted(constraint: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.uniform(0, 50, 300), "age": rng.uniform(18, 80, 300)})
    target = np.sin(frame.income / 5) + frame.income / 20
    model = HistGradientBoostingRegressor(max_iter=15, monotonic_cst=[constraint, 0])
    return frame.assign(target=target), model.fit(frame, target)


def test_a_law_a_domain_and_a_model_are_enough() -> None:
    frame, model = _fitted(0)
    law, domain = Law(MORE), Domain.from_frame(frame, target="target")
    result = law.test(model, domain=domain)
    assert result.is_violated and len(result.to_frame()) == len(result.violations)
    shown = result._repr_html_()
    assert shown.count("<li>") == 3 and "violated" in shown
    verified = law.verify(model, domain=domain)
    assert verified.decision.answer.value == "violated" and "violated" in verified._repr_html_()
    _, kept = _fitted(1)
    assert law.verify(kept, domain=domain).decision.answer.value == "proven"
    assert not law.test(kept, domain=frame.drop(columns="target")).is_violated


def test_what_is_no_law_says_where() -> None:
    with pytest.raises(LawError, match="law:4:15"):
        Law("input x1;\noutput d1;\n{ d1 = predict(x1 }\nensures d1 == ;")
    with pytest.raises(TypeError):
        Law()
    assert dokimos.Law(MORE, name="more").name == "more"


def test_the_plug_in_for_pytest_takes_the_same_objects() -> None:
    frame, model = _fitted(0)
    domain = Domain.from_frame(frame, target="target")
    with pytest.raises(LawViolated, match="VIOLATED"):
        check_law(Law(MORE), model=model, domain=domain)
    assert check_law(Law(MORE), model=_fitted(1)[1], domain=domain, budget=50).tested == 50
