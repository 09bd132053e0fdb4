"""The results of testing laws as one self-contained HTML page; its template and style are in assets/."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

from markupsafe import Markup, escape

from dokimos.core.files import write_whole
from dokimos.laws.engine.descriptions import which_case
from dokimos.laws.engine.law_results import LawResult, LawSettings, LawVerdict, headline, verdict_of
from dokimos.laws.engine.means import Rate, percent
from dokimos.laws.engine.tallies import NamedRates
from dokimos.laws.reporting.case_view import CaseView, view_case
from dokimos.laws.reporting.terminal import (
    outside_remark,
    over_all_remarks,
    unconfirmed_remarks,
)
from dokimos.reports.figures.frame import linear
from dokimos.reports.render import PageHead, Tile, Tone, render

#: How many violations of each law are shown with their records; the others are in the JSON files.
_SHOWN = 12
_OPEN = 3
_ORDER = list(LawVerdict)
_KINDS = {
    LawVerdict.VIOLATED: "wrong",
    LawVerdict.FAILED: "undecided",
    LawVerdict.UNTESTED: "undecided",
    LawVerdict.UNDECIDED: "undecided",
    LawVerdict.UNREPEATABLE: "undecided",
    LawVerdict.TOLERATED: "other",
    LawVerdict.ROUNDING: "other",
    LawVerdict.HOLDS: "correct",
    LawVerdict.PASSED: "correct",
}
_TONES = {"wrong": Tone.BAD, "correct": Tone.GOOD}
_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*|//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<keyword>\b(?:import|input|var|requires|output|ensures|forall|in|true|false|null|predict)\b)",
    re.DOTALL,
)


@dataclass(frozen=True)
class PageContext:
    """The context shown on the page; passed in, so that the same results give the same page."""

    title: str
    generated_at: str
    dokimos_version: str


@dataclass(frozen=True)
class RateView:
    """A rate in a table: its name, its value, and its interval as places on a common scale, in percent."""

    name: str
    rate: Rate
    share: str
    between: str
    start: float
    width: float
    point: float


@dataclass(frozen=True)
class RateTable:
    """Rates on a common axis, whose `ticks` are positions in percent with their labels."""

    title: str
    rates: tuple[RateView, ...]
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class ViolationView:
    """A violation: in words, and its records."""

    words: str
    shown: CaseView


@dataclass(frozen=True)
class LawView:
    """Everything that the page shows of one law."""

    anchor: str
    name: str
    file: str
    verdict: LawVerdict
    kind: str
    result: LawResult
    share: str
    counts: Markup
    text: Markup
    tables: tuple[RateTable, ...]
    first: tuple[ViolationView, ...]
    more: tuple[ViolationView, ...]
    left_off: int
    errors: tuple[tuple[str, str], ...]
    command: str
    remarks: tuple[str, ...]


def write_page(
    results: Sequence[LawResult], commands: Sequence[str], context: PageContext, path: Path
) -> None:
    """Write the page of `results` to `path`, all of it or nothing; `commands` reproduce each result.

    Raises InputError if it cannot be written.
    """
    page = render_page(results, commands, context)
    write_whole(path, page.encode("utf-8", errors="replace"), what="the page", make_folder=False)


def render_page(results: Sequence[LawResult], commands: Sequence[str], context: PageContext) -> str:
    """The page as text. Everything that comes from outside is escaped by the template engine."""
    names = _names([result.law.name for result in results])
    views = [
        _law_view(index, result, name, command)
        for index, (result, name, command) in enumerate(zip(results, names, commands, strict=True), start=1)
    ]
    ordered = sorted(views, key=lambda view: _ORDER.index(view.verdict))
    counts = [(kind, sum(view.verdict is kind for view in views)) for kind in LawVerdict]
    interrupted = any(result.is_interrupted for result in results)
    head = PageHead(
        title=context.title,
        headline=headline(results, names),
        tone=_TONES.get(ordered[0].kind, Tone.OPEN),
        tiles=tuple(Tile(_KINDS[kind], f"{count} {kind.value}") for kind, count in counts if count),
        facts=tuple(_facts(results)),
        links=_links(ordered),
        notices=("The test was interrupted: these are the results so far.",) if interrupted else (),
        generated_at=context.generated_at,
        dokimos_version=context.dokimos_version,
    )
    return render(_asset("laws.html.jinja"), head, styles=[_asset("laws.css")], laws=ordered)


def _links(views: Sequence[LawView]) -> tuple[tuple[str, str], ...]:
    """The links of the navigation: the overview, and each law that is not folded away."""
    if len(views) < 2:
        return ()
    bad = [view for view in views if view.kind != "correct"]
    fine = (("fine", "Laws without a violation"),) if len(bad) < len(views) else ()
    return (("overview", "All laws"), *((view.anchor, view.name) for view in bad), *fine)


def _asset(name: str) -> str:
    return resources.files("dokimos.laws.reporting").joinpath("assets", name).read_text(encoding="utf-8")


def _names(files: Sequence[str]) -> list[str]:
    """The stem of each file, with its folder if names would clash."""
    stems = [Path(file).stem for file in files]
    return [
        stem if stems.count(stem) == 1 else f"{Path(file).parent.name}/{stem}"
        for file, stem in zip(files, stems, strict=True)
    ]


def _facts(results: Sequence[LawResult]) -> list[tuple[str, str]]:
    def several(values: Sequence[str]) -> str:
        return ", ".join(dict.fromkeys(values))

    settings = results[0].settings
    facts = [
        ("Model", several([result.model.name for result in results])),
        ("Domain", several([result.domain.name for result in results])),
        ("Inputs from", several([result.source for result in results])),
        ("Tests of each law", f"{settings.how_many}, seed {settings.seed}"),
    ]
    hashes = dict.fromkeys(result.model.sha256 for result in results if result.model.sha256)
    if hashes:
        facts.append(("SHA-256 of the model", ", ".join(f"{each[:16]}…" for each in hashes)))
    return facts


def _law_view(index: int, result: LawResult, name: str, command: str) -> LawView:
    verdict = verdict_of(result)
    kept = [
        ViolationView(each.words, view_case(each.case, result.law, result.domain))
        for each in result.violations[:_SHOWN]
    ]
    exact = not result.is_sample
    tables = [_rate_table("First decision", result.classes, exact)]
    tables += [_rate_table(group.feature, group.rates, exact) for group in result.groups]
    return LawView(
        anchor=f"law-{index}",
        name=name,
        file=result.law.name,
        verdict=verdict,
        kind=_KINDS[verdict],
        result=result,
        share=_share(result.rate) if exact else str(result.rate),
        counts=_counts(result),
        text=_highlighted(result.law.text),
        tables=tuple(table for table in tables if table.rates and result.violated),
        first=tuple(kept[:_OPEN]),
        more=tuple(kept[_OPEN:]),
        left_off=len(result.violations) - len(kept),
        errors=tuple((reason, which_case(case)) for reason, case in result.errors),
        command=command,
        remarks=_remarks(result),
    )


def _remarks(result: LawResult) -> tuple[str, ...]:
    remarks = [*over_all_remarks(result), *unconfirmed_remarks(result)]
    if result.outside:
        remarks.append(outside_remark(result))
    if result.not_deterministic:
        remarks.append(f"not deterministic, so draws were sampled: {result.not_deterministic}")
    return tuple(remarks)


def _counts(result: LawResult) -> Markup:
    """The counts, in sentences."""
    parts = [f"{result.passed:,} passed"]
    if result.violated:
        bad = Markup('<span class="bad">{:,} violated</span>').format(result.violated)
        inputs = "1 input" if result.inputs == 1 else f"{result.inputs:,} inputs"
        parts.append(bad + f" ({result.unique:,} unique, {inputs})")
    if result.failed:
        parts.append(f"{result.failed:,} failed")
    all_ = "All " if result.is_exhaustive else ""
    tests = "1 test" if result.tested == 1 else f"{all_}{result.tested:,} tests"
    sentences = [Markup("{}: {}.").format(tests, Markup(", ").join(parts))]
    if result.tested:
        share = f"{result.rate}"
        if result.is_in_order:
            which = "all draws" if result.is_exhaustive else "the draws tested before the interruption"
            share = f"{_share(result.rate)} of {which}"
        sentences.append(Markup("The law is violated in {}.").format(share.replace(" %", "\u00a0%")))
    if result.rejected:
        rejected = Markup("The precondition failed in {:,} of {:,} draws.")
        sentences.append(rejected.format(result.rejected, result.draws))
    return Markup(" ").join(sentences)


def _share(rate: Rate) -> str:
    return f"{percent(rate.value)} %"


def _rate_table(title: str, rates: NamedRates, exact: bool) -> RateTable:
    """Rates on an axis from 0 to beyond the largest; if all draws were tested, there are no intervals."""
    ends = [(rate.value, rate.value) if exact else rate.interval for _, rate in rates]
    axis = linear([0.0, 100 * (max([high for _, high in ends], default=1.0) or 1.0)], 0.0, 100.0, steps=3)
    scale = axis.high / 100
    views = []
    for (name, rate), (low, high) in zip(rates, ends, strict=True):
        between = "" if exact else f"{percent(low)} to {percent(high)}"
        places = [round(100 * each / scale, 2) for each in (low, high - low, rate.value)]
        views.append(RateView(name, rate, _share(rate), between, *places))
    ticks = tuple((round(tick.at, 2), f"{tick.label} %") for tick in axis.ticks)
    return RateTable(title.replace("_", " "), tuple(views), ticks)


def _highlighted(text: str) -> Markup:
    """The law with its comments, strings and keywords marked; everything escaped."""
    parts, end = [], 0
    for match in _TOKEN.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(Markup('<span class="{}">{}</span>').format(match.lastgroup, match.group()))
        end = match.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


def again_command(path: Path, settings: LawSettings, *, model: Any, domain: str | Path | None) -> str:
    """The command that tests a law once more in the same way."""
    given = {
        "--model": model,
        "--domain": domain,
        "--budget": settings.how_many.replace(",", ""),
        "--seed": settings.seed,
    }
    parts = [f"dokimos law test {quote(str(path))}"]
    parts += [f"{option} {quote(str(value))}" for option, value in given.items() if value is not None]
    if settings.source != "test":
        parts.append(f"--source {quote(settings.source)}")
    if settings.max_rate:
        parts.append(f"--max-rate {settings.max_rate:g}")
    if settings.in_range:
        parts.append("--in-range")
    if settings.exhaustive is not None:
        parts.append("--exhaustive" if settings.exhaustive else "--no-exhaustive")
    return " ".join(parts)
