from __future__ import annotations

import io

from rich.console import Console

from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.rows import report_rows
from dokimos.reports.terminal import summary_table
from tests.reports.sample import judgement, sample_judgements


def _printed(judgements: list[Judgement]) -> list[list[str]]:
    stream = io.StringIO()
    Console(file=stream, width=140, no_color=True).print(summary_table(report_rows(judgements)))
    lines = [line for line in stream.getvalue().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_the_table_has_a_line_per_family_and_verifier_and_the_sums() -> None:
    lines = _printed(sample_judgements())
    assert lines[0] == ["convex-corners", "marabou", "9", "0", "4", "0", "13", "3.51", "45.7"]
    assert lines[1][:4] == ["", "scripted", "11", "1"]
    assert lines[-2] == ["all families", "marabou", "27", "1", "10", "1", "39", "3.46", "135"]
    assert len(lines) == 8


def test_one_family_needs_no_sums_and_markup_in_names_is_only_text() -> None:
    lines = _printed([judgement("i", verdict=Verdict.CORRECT, verifier="[red]x[/red]", family="[/]")])
    assert [line[:2] for line in lines] == [["[/]", "[red]x[/red]"]]


def test_the_headline_stands_above() -> None:
    stream = io.StringIO()
    rows = report_rows([judgement("i", verdict=Verdict.WRONG_SAT)])
    Console(file=stream, width=120).print(summary_table(rows))
    assert stream.getvalue().splitlines()[0].strip() == "Marabou gave 1 wrong answer: 1 wrong-sat."
