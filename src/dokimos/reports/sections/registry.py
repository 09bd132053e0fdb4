"""All sections, in the order of the page; add one line here for a new one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dokimos.core.plugins import PluggableRegistry
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section

SECTIONS: PluggableRegistry[Section[Any]] = PluggableRegistry(
    "section",
    {
        "families": "dokimos.reports.sections.families:Families",
        "changes": "dokimos.reports.sections.changes:Changes",
        "penalties": "dokimos.reports.sections.penalties:Penalties",
        "wrong_answers": "dokimos.reports.sections.wrong_answers:WrongAnswers",
        "files": "dokimos.reports.sections.files:Files",
        "cactus": "dokimos.reports.sections.cactus:Cactus",
        "reasons": "dokimos.reports.sections.reasons:Reasons",
        "breaking": "dokimos.reports.sections.breaking:Breaking",
        "trajectories": "dokimos.reports.sections.trajectories:Trajectories",
        "support": "dokimos.reports.sections.support:OperatorSupport",
        "rules": "dokimos.reports.sections.rules:Rules",
        "instances": "dokimos.reports.sections.instances.section:Instances",
    },
    group="dokimos.sections",
    expects=Section,
)


def sections() -> tuple[Section[Any], ...]:
    """Every section, in the order of the page."""
    return tuple(section for _, section in SECTIONS.items())


def filled_sections(findings: Findings) -> Iterator[tuple[Section[Any], Any]]:
    """Every section that applies to `findings`, with its rows."""
    for section in sections():
        rows = section.rows(findings)
        if rows is not None:
            yield section, rows
