"""Findings as SARIF 2.1.0, which code hosts and editors show next to the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dokimos import __version__
from dokimos.auditing.registry import LINT_RULES
from dokimos.core import strict_json
from dokimos.suites.file_findings import LintFinding


def sarif(findings: Sequence[LintFinding]) -> str:
    """The text of a SARIF log with one run."""
    rules = [
        {
            "id": rule.name,
            "shortDescription": {"text": rule.about},
            "help": {"text": rule.remedy},
            "defaultConfiguration": {"level": rule.severity.value},
        }
        for rule in LINT_RULES
    ]
    return strict_json.write(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "dokimos", "version": __version__, "rules": rules}},
                    "results": [_result(one) for one in findings],
                }
            ],
        }
    )


def _result(finding: LintFinding) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(Path(finding.file).as_posix())}}
    if finding.line is not None:
        physical["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.rule,
        "level": finding.severity.value,
        "message": {"text": f"{finding.reason}; {finding.remedy}."},
        "locations": [{"physicalLocation": physical}],
    }
