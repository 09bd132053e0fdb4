"""Results for other programs: JUnit and a summary for CI, tables, and figures as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from dokimos.core.errors import InputError, packages_missing
from dokimos.core.files import write_whole
from dokimos.core.readable import markdown_code, markdown_text, printable
from dokimos.core.tables import TableRows
from dokimos.judging.baselines import RunKey
from dokimos.judging.gate import GateFinding, GateFindingKind, GateOutcome
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.figures.frame import Figure
from dokimos.reports.findings import Findings
from dokimos.reports.render import drawing_style
from dokimos.reports.sections.base import filled_sections

# The result of a gate for CI: JUnit XML, and a Markdown summary


#: The order in which findings are listed.
_ORDER = tuple(GateFindingKind)
_HEADINGS = {
    GateFindingKind.WRONG: "Wrong answers",
    GateFindingKind.UNWITNESSED: "`sat` without a witness",
    GateFindingKind.MISSING: "Missing runs",
    GateFindingKind.SILENT: "Verifiers without any answer",
    GateFindingKind.LOST: "Correct in the baseline, not now",
    GateFindingKind.UNCOMPARED: "Not in the baseline",
    GateFindingKind.TOO_SLOW: "Slower than allowed",
    GateFindingKind.LABEL: "Labels that fail",
    GateFindingKind.CONTRADICTED: "Answers against a label that could not be checked",
    GateFindingKind.EXPECTED: "Expected failures",
    GateFindingKind.NEAR: "Near the limit",
    GateFindingKind.SLOWER: "Slower than in the baseline",
    GateFindingKind.NOT_ASKED: "In the baseline, not asked",
    GateFindingKind.LEFT_OUT: "Skipped for lack of time",
    GateFindingKind.UNPROVEN: "Labels that were not checked",
    GateFindingKind.NEW_WRONG: "New wrong answers",
    GateFindingKind.MENDED: "Mended",
    GateFindingKind.NOT_MENDED: "Wrong before, not right now",
}


def headline(outcome: GateOutcome) -> str:
    """One sentence: whether the gate is open, and the counts behind it."""
    judgements = outcome.judged.judgements
    right = sum(j.verdict is Verdict.CORRECT for j in judgements)
    wrong = sum(j.verdict.is_wrong for j in judgements)
    unwitnessed = sum(j.verdict is Verdict.UNWITNESSED for j in judgements)
    parts = [f"{right} of {len(judgements)} answers are right", f"{wrong} wrong"]
    parts += [f"{unwitnessed} sat without a witness"] * bool(unwitnessed)
    new, mended = (
        len(outcome.of_kind(kind)) for kind in (GateFindingKind.NEW_WRONG, GateFindingKind.MENDED)
    )
    parts += [f"{new} new wrong"] * bool(new) + [f"{mended} mended"] * bool(mended)
    return f"The gate is {'open' if outcome.is_open else 'closed'}: {', '.join(parts)}."


def in_order(findings: Iterable[GateFinding]) -> list[GateFinding]:
    """The findings, those that close the gate first."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.kind))


def as_junit(outcome: GateOutcome) -> bytes:
    """One test suite per verifier and suite, one test case per run; findings that concern no single run are
    in a suite called `gate`. Undecided runs are skipped tests: a timeout is not a failure. Whatever closes
    the gate is one.
    """
    failing = {finding.run: finding for finding in outcome.findings if finding.kind.fails}
    root = ElementTree.Element("testsuites", name="dokimos gate")
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for judgement in outcome.judged.judgements:
        groups.setdefault((judgement.record.verifier, judgement.record.suite), []).append(judgement)
    for (verifier, suite), judgements in groups.items():
        cases = [_case(judgement, failing, outcome) for judgement in judgements]
        _add_suite(root, f"{verifier}.{suite}", cases)
    general = [
        _general(finding) for finding in outcome.findings if finding.kind.fails and finding.run is None
    ]
    _add_suite(
        root, "gate", general or [ElementTree.Element("testcase", classname="gate", name="complete")]
    )
    ElementTree.indent(root)
    body: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"


def _add_suite(root: ElementTree.Element, name: str, cases: list[ElementTree.Element]) -> None:
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
        "errors": 0,
    }
    attributes = {key: str(value) for key, value in counts.items()}
    suite = ElementTree.SubElement(root, "testsuite", {"name": printable(name), **attributes})
    suite.extend(cases)


def _case(
    judgement: Judgement, failing: dict[RunKey | None, GateFinding], outcome: GateOutcome
) -> ElementTree.Element:
    record = judgement.record
    case = ElementTree.Element(
        "testcase",
        classname=printable(f"{record.verifier}.{record.suite}"),
        name=printable(record.instance),
        time=f"{record.wall_seconds:.3f}",
    )
    finding = failing.get((record.verifier, record.suite, record.instance))
    if finding is not None:
        words = printable(finding.text)
        failure = ElementTree.SubElement(case, "failure", message=words, type=judgement.verdict.value)
        commands = [f"{what}: {command}" for what, command in _commands(judgement, outcome).items()]
        failure.text = printable("\n".join([words, *commands]))
    elif judgement.verdict is Verdict.UNDECIDED:
        ElementTree.SubElement(case, "skipped", message=f"{record.answer.value}")
    return case


def _general(finding: GateFinding) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="gate", name=finding.kind.value)
    ElementTree.SubElement(case, "failure", message=printable(finding.text), type=finding.kind.value)
    return case


def as_markdown(outcome: GateOutcome) -> str:
    """The headline, a table of verifiers, their power, and the findings, what closes the gate first."""
    sign = "✅" if outcome.is_open else "❌"
    lines = [f"## {sign} dokimos gate", "", headline(outcome), ""]
    lines += ["| verifier | right | wrong | undecided | other | runs |", "|---|---|---|---|---|---|"]
    counts: dict[str, Counter[str]] = {}
    for judgement in outcome.judged.judgements:
        counts.setdefault(judgement.record.verifier, Counter())[_column(judgement)] += 1
    for verifier, found in counts.items():
        cells = [str(found[column]) for column in ("right", "wrong", "undecided", "other")]
        lines.append(f"| {markdown_text(verifier)} | {' | '.join(cells)} | {found.total()} |")
    lines += ["", *(f"- {markdown_text(each.in_words)}" for each in outcome.power)]
    commands = {
        (j.record.verifier, j.record.suite, j.record.instance): _commands(j, outcome)
        for j in outcome.judged.judgements
    }
    for kind in _ORDER:
        findings = outcome.of_kind(kind)
        if findings:
            lines += ["", f"### {_HEADINGS[kind]}", ""]
        for finding in findings:
            lines.append(f"- {markdown_text(finding.text)}")
            if kind.fails and finding.run is not None:
                said = commands[finding.run].items()
                lines += [f"  - {what}: {markdown_code(text)}" for what, text in said]
    return "\n".join(lines) + "\n"


def _commands(judgement: Judgement, outcome: GateOutcome) -> dict[str, str]:
    """The commands that reproduce a bad answer: the point alone, if one is kept, and the verifier."""
    record = judgement.record
    replay = outcome.replays.get((record.verifier, record.suite, record.instance))
    return {**({"replay": replay} if replay else {}), "reproduce": judgement.reproduce}


def _column(judgement: Judgement) -> str:
    if judgement.verdict.is_wrong:
        return "wrong"
    return {Verdict.CORRECT: "right", Verdict.UNDECIDED: "undecided"}.get(judgement.verdict, "other")


# The tables and figures of all sections, and the tables as files


def report_tables(findings: Findings) -> Iterator[TableRows]:
    """Every table; tables without rows are included, with their headings."""
    for section, rows in filled_sections(findings):
        yield from section.tables(rows)


def report_figures(findings: Findings) -> Iterator[Figure]:
    """Every figure once, in its widest form; figures with nothing to show are left out."""
    for section, rows in filled_sections(findings):
        yield from section.figures(rows)


def write_tables(findings: Findings, folder: Path) -> tuple[str, ...]:
    """Write every table to `folder`, which is made if missing; returns the names of the files."""
    names = []
    for one in report_tables(findings):
        path = folder / f"{one.name}.csv"
        write_whole(path, one.csv().encode("utf-8", errors="replace"), what="the table")
        names.append(path.name)
    return tuple(names)


# The figures as files for a paper: SVG, and PNG rendered by resvg


ZOOM = 3
"""Pixels of a picture per unit of the drawing: about 300 dpi at the width of a page."""

#: Fonts for the generic names, the first one installed; resvg itself knows only Arial.
FONTS = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Roboto", "Arial", "Helvetica", "FreeSans")

_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    '<text x="2" y="16" font-family="sans-serif">M</text></svg>'
)
_BLANK = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"></svg>'


def require_renderer() -> None:
    """Check that pictures can be made. Raises InputError, which says what is missing."""
    if find_spec("resvg_py") is None:
        raise packages_missing("Pictures (`png`) need resvg-py", "png")
    if _render(_PROBE, font=_font()) == _render(_BLANK):
        raise InputError(
            "Pictures (`png`) need labels, and there is no font for them; install fonts-dejavu."
        )


def write_pictures(figures: Iterable[Figure], folder: Path) -> tuple[str, ...]:
    """Write each figure to `folder` as SVG and as PNG; returns their names."""
    style, font = drawing_style(), _font()
    names = []
    for figure in figures:
        drawing = figure.standalone(style)
        picture = _render(drawing, font=font)
        write_whole(folder / f"{figure.name}.svg", drawing.encode("utf-8"), what="the drawing")
        write_whole(folder / f"{figure.name}.png", picture, what="the picture")
        names.append(figure.name)
    return tuple(names)


@cache
def _font() -> str:
    """A sans-serif font of this machine; an arbitrary name if it has none that we know."""
    blank = _render(_BLANK)
    return next((font for font in FONTS if _render(_PROBE, font=font) != blank), FONTS[0])


def _render(drawing: str, *, font: str | None = None) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=ZOOM, sans_serif_family=font))


# Tables in Markdown


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True
) -> list[str]:
    """The lines of a table; with `numbers`, all columns but the first are right-aligned."""
    ruler = ["---", *("---:" if numbers else "---" for _ in heads[1:])]
    return [f"| {' | '.join(map(markdown_text, cells))} |" for cells in (heads, ruler, *rows)]
