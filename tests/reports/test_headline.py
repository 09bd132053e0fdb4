from __future__ import annotations

import pytest

from dokimos.judging.verdicts import Verdict
from dokimos.reports.campaign_report import headline

OK, SAT, UNSAT, BAD = Verdict.CORRECT, Verdict.WRONG_SAT, Verdict.WRONG_UNSAT, Verdict.BAD_WITNESS


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ([], "There are no runs to judge."),
        ([("marabou", SAT)] * 3 + [("marabou", OK)], "marabou gave 3 wrong answers: 3 wrong-sat."),
        ([("marabou", SAT)], "marabou gave 1 wrong answer: 1 wrong-sat."),
        (
            [("a", SAT), ("a", UNSAT), ("a", BAD), ("a", SAT)],
            "a gave 4 wrong answers: 1 wrong-unsat, 2 wrong-sat, 1 bad-witness.",
        ),
        ([("a", SAT), ("b", OK)], "1 of 2 verifiers gave wrong answers: a 1 wrong-sat."),
        (
            [("a", SAT), ("b", UNSAT), ("b", BAD), ("c", OK)],
            "2 of 3 verifiers gave wrong answers: a 1 wrong-sat; b 1 wrong-unsat, 1 bad-witness.",
        ),
        ([("a", OK)], "No wrong answers: a answered the only run correctly."),
        ([("a", OK)] * 4, "No wrong answers: a answered all 4 runs correctly."),
        (
            [("a", OK), ("b", Verdict.UNDECIDED), ("b", Verdict.ROUNDING)],
            "No wrong answers: 2 verifiers, 1 of 3 runs correct, 1 rounding, 1 undecided.",
        ),
        (
            [("a", Verdict.UNDECIDED)] * 2,
            "No wrong answers, but no correct ones either: a left all 2 runs undecided.",
        ),
    ],
)
def test_the_headline(runs: list[tuple[str, Verdict]], sentence: str) -> None:
    assert headline(runs) == sentence
