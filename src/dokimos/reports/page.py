"""One self-contained HTML page: its templates (one for each section), style and script are in assets/."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dokimos.errors import InputError
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.context import ReportContext
from dokimos.reports.figures import cactus_figure
from dokimos.reports.numbers import megabytes, seconds
from dokimos.reports.rows import Outcome, ReportRows, report_rows


def write_report(
    judgements: Sequence[Judgement],
    context: ReportContext,
    path: Path,
    *,
    log_tails: Mapping[str, str] | None = None,
) -> None:
    """Write the report of `judgements` to `path`: all of it, or nothing.

    `log_tails` gives the end of a run's log by its job id. The folder of `path` is made if missing.
    """
    page = render_page(report_rows(judgements, log_tails=log_tails), context)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, page.encode("utf-8", errors="replace"))
    except OSError as error:
        raise InputError(
            f"{path}: the report cannot be written ({error.strerror}); choose another place for it."
        ) from error


def render_page(rows: ReportRows, context: ReportContext) -> str:
    """The page as text. The same rows and context give the same page, byte for byte.

    Everything that comes from outside is escaped by the template engine; only our own style sheet and
    script are not.
    """
    environment = Environment(
        loader=PackageLoader("dokimos.reports", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["seconds"] = seconds
    environment.filters["megabytes"] = megabytes
    template = environment.get_template("page.html.jinja")
    return template.render(
        rows=rows,
        context=context,
        figure=cactus_figure(rows.cactus, limit_wall_seconds=context.limits.wall_seconds),
        outcomes=list(Outcome),
        verdicts=[v for v in Verdict if any(run.verdict is v for run in rows.runs)],
        families=sorted({run.family for run in rows.runs}),
        verifiers=[total.verifier for total in rows.totals],
        counts={o: sum(run.outcome is o for run in rows.runs) for o in Outcome},
        repeated=any(run.repeat for run in rows.runs),
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
    )


def _asset(name: str) -> str:
    return resources.files("dokimos.reports").joinpath("assets", name).read_text(encoding="utf-8")


def _replace(path: Path, content: bytes) -> None:
    """Write beside `path` first, so that a reader never sees half a page."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
