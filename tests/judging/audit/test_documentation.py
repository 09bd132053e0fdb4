"""The page on publishing lists the rules as they are."""

from __future__ import annotations

from pathlib import Path

from dokimos.judging.audit.lint import LINT_RULES
from dokimos.reports.exports import markdown_table


def test_the_page_has_the_table_of_rules() -> None:
    rows = [[rule.name, rule.severity.value, rule.about, rule.remedy] for rule in LINT_RULES]
    table = "\n".join(markdown_table(["rule", "severity", "finds", "remedy"], rows, numbers=False))
    page = Path(__file__).parents[3] / "docs" / "publish.md"
    assert table in page.read_text(encoding="utf-8"), f"it should be:\n{table}"
