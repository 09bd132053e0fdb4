"""The matrix of operators and verifiers: from judgements to words, on the page and in the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from dokimos.constructions.operators import VARIANTS
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.page import render_page
from dokimos.reports.sections.support import (
    OperatorSupport,
    Support,
    SupportCell,
    SupportRows,
    support_table,
)
from dokimos.suites.facts import Facts
from dokimos.suites.instance import Answer, Label
from tests.reports.sample import CONTEXT, judgement, sample_judgements

Known = dict[tuple[str, str], Facts]
Run = tuple[Verdict, Answer]
RIGHT = {Label.SAT: (Verdict.CORRECT, Answer.SAT), Label.UNSAT: (Verdict.CORRECT, Answer.UNSAT)}
LATE = (Verdict.UNDECIDED, Answer.TIMEOUT)
REFUSED = (Verdict.UNDECIDED, Answer.UNSUPPORTED)
BROKEN = (Verdict.UNDECIDED, Answer.ERROR)
WRONG = (Verdict.WRONG_UNSAT, Answer.UNSAT)
UNSEEN = (Verdict.UNWITNESSED, Answer.SAT)


def runs(variant: str, sat: Run | None, unsat: Run | None, verifier: str = "marabou") -> list[Judgement]:
    made = []
    for label, run in ((Label.SAT, sat), (Label.UNSAT, unsat)):
        if run is not None:
            name = f"{variant}.{label.value}"
            verdict, answer = run
            made.append(
                judgement(
                    name, verdict=verdict, verifier=verifier, family="ops", label=label, answer=answer
                )
            )
    return made


def known(judgements: list[Judgement]) -> Known:
    """The facts that a suite holds of the instances above, whose names begin with their variant."""
    return {
        (j.record.suite, j.record.instance): Facts(
            network_sha256="",
            property_sha256="",
            position=0,
            made_by={"variant": j.record.instance.partition(".")[0], "margin": 0.125},
            profile=None,
        )
        for j in judgements
    }


def matrix(judgements: list[Judgement]) -> SupportRows:
    found = OperatorSupport().rows(Findings(judgements, known=known(judgements)))
    assert found is not None
    return found


def cell(sat: Run | None, unsat: Run | None) -> SupportCell:
    ((found,),) = (row.cells for row in matrix(runs("conv-pads", sat, unsat)).rows)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sat", "unsat", "support", "text"),
    [
        (RIGHT[Label.SAT], RIGHT[Label.UNSAT], Support.BOTH, "both"),
        (RIGHT[Label.SAT], LATE, Support.ONE, "sat only"),
        (LATE, RIGHT[Label.UNSAT], Support.ONE, "unsat only"),
        (RIGHT[Label.SAT], None, Support.ONE, "sat only"),
        (RIGHT[Label.SAT], REFUSED, Support.ONE, "sat only"),
        (WRONG, RIGHT[Label.UNSAT], Support.WRONG, "wrong"),
        (REFUSED, BROKEN, Support.UNSUPPORTED, "unsupported"),
        (BROKEN, LATE, Support.ERROR, "error"),
        (LATE, LATE, Support.UNDECIDED, "undecided"),
        (UNSEEN, LATE, Support.UNDECIDED, "undecided"),
    ],
)
def test_a_word_for_each_pair_of_answers(
    sat: Run | None, unsat: Run | None, support: Support, text: str
) -> None:
    found = cell(sat, unsat)
    assert (found.support, found.text) == (support, text)


def test_what_was_answered_is_told() -> None:
    assert cell(WRONG, LATE).detail == "sat: unsat (wrong-unsat); unsat: timeout"
    assert cell(RIGHT[Label.SAT], REFUSED).detail == "sat: sat; unsat: unsupported"


def test_a_label_counts_as_solved_only_if_every_repeat_solves_it() -> None:
    first = runs("conv-pads", RIGHT[Label.SAT], RIGHT[Label.UNSAT])
    again = [
        replace(j, record=replace(j.record, repeat=1, job=f"{j.record.job}-1"))
        for j in runs("conv-pads", LATE, RIGHT[Label.UNSAT])
    ]
    ((found,),) = (row.cells for row in matrix(first + again).rows)
    assert found is not None
    assert found.text == "unsat only"


def three() -> list[Judgement]:
    right = (RIGHT[Label.SAT], RIGHT[Label.UNSAT])
    return [
        *runs("relu", *right),
        *runs("relu", *right, verifier="scripted"),
        *runs("conv-pads", WRONG, LATE),
        *runs("conv-pads", REFUSED, REFUSED, verifier="scripted"),
        *runs("add-broadcast", *right),
    ]


def test_rows_are_ordered_by_operator_and_columns_counted() -> None:
    found = matrix(three())
    assert found.verifiers == ("marabou", "scripted")
    assert [(row.op, row.variant) for row in found.rows] == [
        ("Add", "add-broadcast"),
        ("Conv", "conv-pads"),
        ("Relu", "relu"),
    ]
    assert found.rows[0].cells[1] is None
    assert found.rows[1].misread == "; ".join(VARIANTS["conv-pads"].misreadings)
    assert found.counts == (
        {Support.BOTH: 2, Support.WRONG: 1},
        {Support.UNSUPPORTED: 1, Support.BOTH: 1},
    )
    assert matrix(three()[::-1]) == found


def test_other_families_and_unknown_instances_have_no_matrix() -> None:
    others = sample_judgements()
    section = OperatorSupport()
    assert section.rows(Findings(others, known=known(others))) is None
    assert section.rows(Findings(three())) is None
    (row,) = matrix(runs("of another version", *RIGHT.values())).rows
    assert (row.op, row.variant) == ("", "of another version")


def test_the_page_and_the_terminal_show_it() -> None:
    page = render_page(Findings(three(), known=known(three())), CONTEXT)
    assert 'id="support"' in page
    assert "sat: unsat (wrong-unsat); unsat: timeout" in page
    assert "pads of each axis in turn" in page
    assert 'id="support"' not in render_page(Findings(sample_judgements()), CONTEXT)
    stream = StringIO()
    Console(file=stream, width=100).print(support_table(matrix(three())))
    shown = stream.getvalue()
    assert "conv-pads" in shown
    assert "1 wrong, 2 both" in shown.replace("\n", " ")


def test_what_comes_from_a_suite_is_escaped() -> None:
    page = render_page(Findings(odd := runs("<b>&", *RIGHT.values()), known=known(odd)), CONTEXT)
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
