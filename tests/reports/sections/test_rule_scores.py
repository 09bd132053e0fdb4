from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from dokimos.judging.rules import Mark, Standing
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.page import render_page
from dokimos.reports.sections.published import (
    Rules,
    ScoringRows,
    disagreement_lines,
    score_table,
    scoring_rows,
)
from dokimos.suites.instance import Label
from tests.reports.sample import CONTEXT, judgement, sample_judgements

RIGHT, WRONG = (Standing.CORRECT, 10), (Standing.INCORRECT, -150)


def marked(
    name: str, *standings: tuple[Standing, int], suite: str = "quick", verifier: str = "v"
) -> Judgement:
    plain = judgement(name, verdict=Verdict.WRONG_UNSAT, label=Label.SAT, verifier=verifier)
    names = ("exact", "vnncomp2026")
    marks = (Mark(n, *standing, f"because <{n}>") for n, standing in zip(names, standings, strict=True))
    return replace(plain, record=replace(plain.record, suite=suite), marks=tuple(marks))


RUNS = [
    marked("alone", WRONG, RIGHT),
    marked("same", RIGHT, RIGHT),
    marked("other", RIGHT, RIGHT, suite="twins"),
    marked("same", RIGHT, RIGHT, verifier="w"),
]


#: The same, and both verifiers are run on the same instances.
SAME_SET = [
    *RUNS,
    marked("alone", RIGHT, RIGHT, verifier="w"),
    marked("other", RIGHT, RIGHT, suite="twins", verifier="w"),
]


def rows(judgements: list[Judgement]) -> ScoringRows:
    found = scoring_rows(judgements, Naming.of([j.record for j in judgements]))
    assert found is not None
    return found


def printed(judgements: list[Judgement]) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=140, no_color=True)
    console.print(score_table(rows(judgements)))
    for line in disagreement_lines(rows(judgements)):
        console.print(line)
    return stream.getvalue()


def test_scores_stand_side_by_side() -> None:
    found = rows(RUNS)
    assert found.rules == ("exact", "vnncomp2026")
    assert found.about[0].startswith("by the proven labels")
    assert [(r.suite, r.verifier, r.points, r.worths) for r in found.scores] == [
        ("quick", "v", (-140, 20), (0.0, 100.0)),
        ("quick", "w", (10, 10), (100.0, 50.0)),
        ("twins", "v", (10, 10), (100.0, 100.0)),
    ]
    assert [(r.verifier, r.points, r.worths) for r in found.totals] == [
        ("w", (10, 10), (100.0, 50.0)),
        ("v", (-130, 30), (100.0, 200.0)),
    ]


def test_the_runs_on_which_they_disagree_are_listed_with_the_reasons() -> None:
    (one,) = rows(RUNS).disagreements
    assert (one.instance, one.verifier, one.label) == ("quick/alone", "v", Label.SAT)
    assert [(m.rules, m.points, m.reason) for m in one.marks] == [
        ("exact", -150, "because <exact>"),
        ("vnncomp2026", 10, "because <vnncomp2026>"),
    ]


def test_scores_are_compared_on_what_all_were_run_on_and_disagreements_are_of_all() -> None:
    found = Rules().rows(Findings(RUNS))
    assert found is not None
    assert [(r.suite, r.verifier, r.points) for r in found.scores] == [
        ("quick", "v", (10, 10)),
        ("quick", "w", (10, 10)),
    ]
    assert [one.instance for one in found.disagreements] == ["quick/alone"]


def test_without_rule_sets_there_is_nothing_to_show() -> None:
    assert Rules().rows(Findings(sample_judgements())) is None
    assert 'id="rules"' not in render_page(Findings(sample_judgements()), CONTEXT)


def test_the_terminal_shows_scores_and_disagreements() -> None:
    text = printed(RUNS)
    assert "-140 (0.0)" in text
    assert "all benchmarks" in text
    assert "The rule sets disagree on 1 run:" in text
    assert "exact: incorrect (-150): because <exact>" in text
    alike = printed(RUNS[1:2])
    assert "The rule sets agree on every run." in alike
    assert "all benchmarks" not in alike


def test_the_page_has_a_section_and_escapes_it() -> None:
    page = render_page(Findings(SAME_SET), CONTEXT)
    section = page[page.index('<section id="rules"') : page.index('<section id="instances"')]
    assert "-140 <small>(0.0)</small>" in section
    assert "All benchmarks" in section
    assert "because &lt;exact&gt;" in section
    assert '<a href="#rules">' in page
    alike = render_page(Findings(RUNS[1:2]), CONTEXT)
    assert "Nowhere: all rule sets treat every run the same" in alike
    assert "All benchmarks" not in alike


def test_answers_that_nothing_confirms_are_counted_not_listed() -> None:
    nothing = (Standing.NONE, 0)
    alone = marked("alone", WRONG, RIGHT)
    unchecked = [
        replace(marked(f"u{k}", nothing, RIGHT), verdict=Verdict.UNLABELLED, label=None) for k in range(3)
    ]
    refuted = replace(marked("u9", nothing, WRONG), verdict=Verdict.UNLABELLED, label=None)
    found = rows([alone, *unchecked, refuted])
    assert ([row.instance for row in found.disagreements], found.unconfirmed) == (["alone", "u9"], 3)
    page = Rules().html(found)
    assert "3 answers are unchecked: no points under exact" in page
    assert "3 answers are unchecked" in printed([alone, *unchecked, refuted])
    only = Rules().html(rows(unchecked))
    assert "Nowhere" not in only and "3 answers are unchecked" in only
