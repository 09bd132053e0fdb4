from __future__ import annotations

import pytest

from dokimos.judging.verdicts import Verdict
from dokimos.reports.findings import RunOutcome


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_one_column(verdict: Verdict) -> None:
    expected = {"correct": RunOutcome.CORRECT, "undecided": RunOutcome.UNDECIDED}
    expected |= dict.fromkeys(("wrong-sat", "wrong-unsat", "bad-witness"), RunOutcome.WRONG)
    expected |= {"unlabelled": RunOutcome.UNCHECKED}
    assert RunOutcome.of(verdict) is expected.get(verdict.value, RunOutcome.OTHER)
