"""The searches for a case that violates a law, against all cases of small domains."""

from __future__ import annotations

from typing import Any

import pytest

from dokimos.laws.proving import case_tables
from dokimos.laws.proving.case_tables import CaseTables, falsifying
from dokimos.laws.proving.network_closing import exactly_violated
from dokimos.laws.proving.question import Deadline, first_end
from tests.laws.proving.small import LAWS, plan
from tests.laws.proving.test_networks import model_of, network, stated
from tests.laws.proving.test_trees import _all_cases


@pytest.mark.parametrize("draws", [True, False])
@pytest.mark.parametrize("text", LAWS)
def test_what_violates_is_found_among_many_cases_and_nothing_else(
    text: str, draws: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_tables, "_MOST_CASES", 0.5)  # so that not all of them are tried
    for seed in range(3):
        content = network(seed, rising=0.5 if seed == 2 else 0.0)
        found, closer = stated(plan(text), content)
        question, reach = found.question, closer.reach
        violated = any(exactly_violated(question, reach, case) for case in _all_cases(question))

        def confirms(case: Any, question: Any = question, reach: Any = reach) -> bool:
            return exactly_violated(question, reach, case) is True

        tables = CaseTables(question, model_of(content).scores)
        deadline = Deadline.after(20.0 if violated else 0.1)
        steps = falsifying(tables, confirms, seed=0, draws=draws, guided=not draws)
        case = first_end(steps, deadline)
        assert (case is not None) is violated
        assert case is None or confirms(case.case)
