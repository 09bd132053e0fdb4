"""One self-contained HTML page: its templates (one for each section), styles and scripts are in assets/."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dokimos.core.files import write_whole
from dokimos.core.readable import megabytes, seconds
from dokimos.difficulty.explain.rows import Account, Explanation, Status
from dokimos.difficulty.explain.sentences import (
    SYMBOLS,
    alone_in_words,
    tally,
    which_interact,
    which_separates,
)
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.assembling import script, style
from dokimos.reports.components import describe
from dokimos.reports.context import ReportContext
from dokimos.reports.figures.frame import STATUS_SHAPES
from dokimos.reports.figures.gallery import Gallery, gallery
from dokimos.reports.figures.svg import Figure, Sheet
from dokimos.reports.instances import Known
from dokimos.reports.payload import payload
from dokimos.reports.rows import ReportRows, RunOutcome, report_rows
from dokimos.suites.answers import Answer

_GLYPHS = {"correct": "✓", "wrong": "✗", "undecided": "?", "other": "~"}
_SIGNS = (
    ("correct", "✓", "correct"),
    ("wrong", "✗", "wrong"),
    ("other", "~", "decided, not confirmed: unwitnessed, rounding or unlabelled"),
    ("undecided", "T", "timeout"),
    ("undecided", "M", "out of memory"),
    ("undecided", "?", "unknown"),
    ("undecided", "E", "error"),
    ("undecided", "–", "unsupported"),
)


def write_report(
    judgements: Sequence[Judgement],
    context: ReportContext,
    path: Path,
    *,
    log_tails: Mapping[str, str] | None = None,
    known: Known | None = None,
    explanation: Explanation | None = None,
) -> None:
    """Write the report of `judgements` to `path`: all of it, or nothing.

    `log_tails` gives the end of a run's log by its job id, `known` what suites know of their
    instances, `explanation` why verifiers slow down. The folder of `path` is made if missing.
    """
    rows = report_rows(judgements, log_tails=log_tails, known=known, explanation=explanation)
    write_page(rows, context, path)


def write_page(rows: ReportRows, context: ReportContext, path: Path) -> None:
    """Write the page of `rows` to `path`: all of it, or nothing."""
    write_whole(path, render_page(rows, context).encode("utf-8", errors="replace"), what="the report")


def render_page(rows: ReportRows, context: ReportContext) -> str:
    """The page as text. The same rows and context give the same page, byte for byte.

    Everything that comes from outside is escaped by the template engine or by what draws the figures and
    writes the data; only our own styles and scripts are not.
    """
    answers = {run.answer for run in rows.runs}
    verdicts = {run.verdict for run in rows.runs}
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            rows=rows,
            context=context,
            gallery=figures_of(rows, context),
            outcomes=list(RunOutcome),
            counts={o: sum(run.outcome is o for run in rows.runs) for o in RunOutcome},
            glyphs=_GLYPHS,
            signs=_SIGNS,
            families=sorted({run.family for run in rows.runs}),
            verifiers=[total.verifier for total in rows.totals],
            cells={(cell.family, cell.verifier): cell for cell in rows.matrix},
            answers=[a for a in Answer if a in answers],
            verdicts=[v for v in Verdict if v in verdicts],
            symbols=SYMBOLS,
            profiled=any(instance.components for instance in rows.instances),
            statuses=list(Status),
            accounts=_in_words(rows.explanation.verifiers if rows.explanation else ()),
            missing_profiles=_missing(rows.explanation),
            style=Markup(style()),
            script=Markup(script()),
            data=Markup(payload(rows)),
        )
    )


def figures_of(rows: ReportRows, context: ReportContext) -> Gallery:
    """All figures of the page."""
    return gallery(rows, limit_wall_seconds=context.wall_seconds)


def _in_words(accounts: Sequence[Account]) -> list[tuple[str, list[str]]]:
    """What there is to say of each verifier."""
    return [
        (
            account.subject,
            [
                tally(account),
                which_separates(account.separations),
                which_interact(account.interactions),
                *alone_in_words(account.alone),
            ],
        )
        for account in accounts
    ]


def _missing(found: Explanation | None) -> list[tuple[str, str]]:
    """Which profiles are missing, in words, and the command that makes them."""
    return [
        (
            f"{row.suite}: {len(row.instances)} "
            f"{'instance has' if len(row.instances) == 1 else 'instances have'} no usable profile "
            f"({row.reason}) and so no part in what follows, as far as it needs one.",
            row.remedy,
        )
        for row in (found.missing if found else ())
    ]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dokimos.reports", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "seconds": seconds,
        "megabytes": megabytes,
        "describe": describe,
        "fragment": lambda name: quote(name, safe=""),
        "coded": _coded,
        "drawn": _drawn,
        "sign": _sign,
    }
    environment.filters.update(filters)
    return environment


def _coded(text: str) -> Markup:
    """A sentence in which `commands` are set as such."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _drawn(figure: Figure, kind: str = "") -> Markup:
    return Markup(figure.inline(kind))


def _sign(status: Status) -> Markup:
    sheet = Sheet()
    sheet.mark(0, 0, STATUS_SHAPES[status], f"status {status.value}")
    return Markup(sheet.body)
