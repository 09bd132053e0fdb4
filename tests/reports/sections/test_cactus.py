from __future__ import annotations

from dokimos.judging.verdicts import Verdict
from dokimos.reports.figures.curves import CactusSeries
from dokimos.reports.findings import Findings
from dokimos.reports.sections.families import Cactus
from tests.reports.sample import judgement


def test_the_cactus_has_what_is_correct_fastest_first() -> None:
    rows = Cactus().rows(
        Findings(
            [
                judgement("i1", verdict=Verdict.CORRECT, wall_seconds=3.0),
                judgement("i2", verdict=Verdict.CORRECT, wall_seconds=1.0),
                judgement("i3", verdict=Verdict.WRONG_SAT, wall_seconds=0.5),
                judgement("i4", verdict=Verdict.UNWITNESSED, wall_seconds=0.5),
                judgement("i5", verdict=Verdict.UNLABELLED, wall_seconds=2.0),
                *(judgement(f"i{k}", verdict=Verdict.UNDECIDED, verifier="b") for k in range(1, 6)),
            ]
        )
    )
    assert rows.series == (CactusSeries("b", ()), CactusSeries("marabou", (1.0, 3.0)))


def test_verifiers_are_compared_on_what_all_of_them_were_run_on() -> None:
    rows = Cactus().rows(
        Findings(
            [
                judgement("i1", verdict=Verdict.CORRECT, wall_seconds=3.0),
                judgement("i2", verdict=Verdict.CORRECT, wall_seconds=1.0),
                judgement("i1", verdict=Verdict.CORRECT, verifier="b", wall_seconds=2.0),
            ]
        )
    )
    assert rows.series == (CactusSeries("b", (2.0,)), CactusSeries("marabou", (3.0,)))
