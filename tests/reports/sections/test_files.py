"""What is wrong with files: errors first, and no page longer than anybody reads."""

from __future__ import annotations

from dataclasses import replace

from dokimos.reports.sections.published import Files, file_headline, file_rows
from dokimos.suites.folder import LintFinding, LintSeverity

NOTE = LintFinding("products", LintSeverity.NOTE, "p.vnnlib", None, "it multiplies", "say so")
ERROR = LintFinding("infix", LintSeverity.ERROR, "q.vnnlib", 3, "between <operands>", "move it")


def test_errors_come_first_each_rule_once() -> None:
    rows = file_rows([NOTE, ERROR, replace(NOTE, file="r.vnnlib")])
    assert [(row.rule, row.count) for row in rows] == [("infix", 1), ("products", 2)]
    assert [one.place for one in rows[1].places] == ["p.vnnlib", "r.vnnlib"]
    assert rows[0].places[0].place == "q.vnnlib:3"


def test_what_a_page_does_not_list_is_counted() -> None:
    (row,) = file_rows([NOTE] * 250)
    assert (row.count, len(row.places), row.left_off) == (250, 200, 50)
    assert "and 50 more" in Files().html((row,))


def test_the_headline_counts_by_severity() -> None:
    assert file_headline([]) == "No problems in the files."
    assert file_headline([ERROR]) == "1 error in the files."
    assert file_headline([NOTE, ERROR, NOTE]) == "1 error and 2 notes in the files."


def test_text_of_files_is_escaped() -> None:
    assert "between &lt;operands&gt;" in Files().html(file_rows([ERROR]))
