"""Every instance, in a table that can be searched and sorted, with its details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from dokimos.core.tables import TableRows, table
from dokimos.difficulty.components import describe, symbol
from dokimos.judging.verdicts import Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.run_outcome import RunOutcome
from dokimos.reports.sections.base import Section
from dokimos.reports.sections.instances.payload import details, payload
from dokimos.reports.sections.instances.rows import CampaignRows, InstanceRow, RunRow, campaign_rows
from dokimos.suites.answers import Answer
from dokimos.suites.profile_file import COMPONENTS

_SIGNS = (
    ("correct", "✓", "correct"),
    ("wrong", "✗", "wrong"),
    ("other", "~", "decided, listed apart: unwitnessed, rounding, clipped or unlabelled"),
    ("undecided", "T", "timeout"),
    ("undecided", "M", "out of memory"),
    ("undecided", "?", "unknown"),
    ("undecided", "E", "error"),
    ("undecided", "–", "unsupported"),
)


class Instances(Section[CampaignRows]):
    """Each instance with all its runs."""

    name = "instances"
    title = "Every instance"
    link = "Every instance"

    def rows(self, findings: Findings) -> CampaignRows:
        return campaign_rows(findings)

    def view(self, rows: CampaignRows) -> Mapping[str, Any]:
        answers = {run.answer for run in rows.runs}
        verdicts = {run.verdict for run in rows.runs}
        profiled = any(instance.components for instance in rows.instances)
        return {
            "families": sorted({run.family for run in rows.runs}),
            "answers": [a.value for a in Answer if a in answers],
            "outcomes": _outcomes(rows),
            "verdicts": [v.value for v in Verdict if v in verdicts],
            "components": [(symbol(name), describe(name)) for name in COMPONENTS] if profiled else [],
            "signs": _SIGNS,
            "data": Markup(payload(rows)),
            "details": Markup(details(rows)),
        }

    def tables(self, rows: CampaignRows) -> Iterator[TableRows]:
        yield table("runs", [RunRow], [(run,) for run in rows.runs])
        yield table("instances", [InstanceRow], [(instance,) for instance in rows.instances])


def _outcomes(rows: CampaignRows) -> list[str]:
    """The outcomes of runs that are not also the names of verdicts."""
    found = {run.outcome for run in rows.runs}
    verdicts = {verdict.value for verdict in Verdict}
    return [o.value for o in RunOutcome if o in found and o.value not in verdicts]
