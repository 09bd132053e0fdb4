"""Write studies/results/vnncomp2025.md: benchmarks and the answers that were published on them, audited.

    dokimos-studies published-answers BENCHMARK... --results RESULTS --not-scored TOOL --out CAMPAIGN

With --labels, the labels in a database in one file are used, and the points that refute published answers
are written beside the page. Where RESULTS has the organisers' tables of all instances, they are compared.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import dokimos
from dokimos.api.results import Audit
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.core import strict_json
from dokimos.core.files import write_whole
from dokimos.core.progress import ProgressUpdate
from dokimos.judging.audit.lint import LINT_RULES
from dokimos.judging.checked_entry import check_entry
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.published_results import RowMatcher, find_results, published_rows
from dokimos.judging.rules import RULE_SETS, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.exports import markdown_table
from dokimos.reports.findings import Findings
from dokimos.reports.sections.published import QUALITIES, PenaltyRows, distance, penalty_rows
from dokimos.suites.answers import Answer
from dokimos.suites.database import Database, key_of, truth_for
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos_studies.published_totals import plain, scoring_folders, settings_of

PAGE = Path(__file__).parents[1] / "results" / "vnncomp2025.md"
#: The table of refuted answers, beside the page.
REFUTED = "vnncomp2025-refuted.csv"
#: Where the organisers' table of all instances is in a folder of theirs.
LONG_TABLE = Path("latex", "longtable.tex")
INTRODUCTION = """\
# The answers of VNN-COMP 2025, audited

Made by

    {command}

What the words mean: [auditing](../../docs/publish.md#audit-it), [verdicts](../../docs/verdicts.md). An
answer is *wrong by proof* where a label or somebody's exact witness refutes it, or where its own witness
shows nothing.
"""


def main() -> None:
    """Audit, and write the page."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("benchmarks", nargs="+", type=Path)
    words.add_argument("--results", required=True, type=Path)
    words.add_argument("--not-scored", action="append", default=[])
    words.add_argument("--out", required=True, type=Path)
    words.add_argument("--label", type=float, help="seconds for each instance")
    words.add_argument("--labels", type=Path, help="labels to use, NAME.jsonl.gz")
    given = words.parse_args()
    if given.labels is not None:
        dokimos.add_labels(given.labels)
    found = dokimos.audit(
        given.benchmarks,
        results=given.results,
        not_scored=given.not_scored,
        out=given.out,
        label_seconds=given.label,
        progress=_say,
    )
    judged = found.judged
    assert judged is not None
    rows = penalty_rows(Findings.of_campaigns(judged))
    lines = [
        INTRODUCTION.format(command=shlex.join(["dokimos-studies", "published-answers", *sys.argv[1:]])),
        *files(found, judged),
        *witnesses(judged, rows),
        *penalties(judged, rows),
        *refuted(judged, Database.at(given.labels)),
        *published(given.results, judged),
        *unchecked(judged, given.label),
        *ranking(rows),
    ]
    write_whole(PAGE, "\n".join(lines).rstrip() + "\n")


def _say(update: ProgressUpdate[None]) -> None:
    print(f"{update.stage} {update.done}/{update.total}: {update.note}", file=sys.stderr)


def files(found: Audit, judged: JudgedCampaigns) -> Iterator[str]:
    """How often each rule found something in each benchmark, and the first of it."""
    suites = {s.folder: s.name for one in judged.campaigns for s in one.campaign.manifest.suites}
    names = sorted(suites.values())
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[str, str] = {}
    for finding in found.findings:
        for folder, name in suites.items():
            if Path(finding.file).absolute().is_relative_to(folder):
                counts[finding.rule, name] += 1
                first.setdefault(finding.rule, f"{name}, `{Path(finding.file).name}`: {finding.reason}")
    yield "## The files\n"
    yield f"How often each of {len(LINT_RULES)} rules found something:\n"
    rows = [[name, *(str(counts[name, suite]) for suite in names)] for name in _in_order(first)]
    yield from markdown_table(["rule", *names], rows)
    yield "\nThe first finding of each:\n"
    yield from (f"- {name}: {first[name]}." for name in _in_order(first))
    yield ""


def _in_order(found: dict[str, str]) -> list[str]:
    return [rule.name for rule in LINT_RULES if rule.name in found]


def witnesses(judged: JudgedCampaigns, rows: PenaltyRows) -> Iterator[str]:
    """What the witnesses of each tool show."""
    by_tool: dict[str, list[int]] = {}
    for row in rows.witnesses:
        own = by_tool.setdefault(row.verifier, [0] * len(QUALITIES))
        by_tool[row.verifier] = [a + b for a, b in zip(own, row.counts, strict=True)]
    yield "## The witnesses\n"
    count = sum(rows.all_witnesses)
    yield f"Of {len(judged.judgements)} published answers, {count} are `sat`. What their witnesses show:\n"
    table = [[tool, *map(str, own)] for tool, own in sorted(by_tool.items())]
    yield from markdown_table(["tool", *QUALITIES], [*table, ["all", *map(str, rows.all_witnesses)]])
    furthest = max((row.clipped_by for row in rows.witnesses), default=0.0)
    yield f"\nThose that are exact once clipped leave the box by at most {distance(furthest)}.\n"
    reasons = Counter(_kind(j) for j in judged.judgements if j.verdict is Verdict.BAD_WITNESS)
    said = [f"{times} {why}" for why, times in reasons.most_common()]
    yield f"Of the {reasons.total()} that show nothing: {', '.join(said)}.\n"


def _kind(judgement: Judgement) -> str:
    replay = judgement.replay
    if replay is None:
        return "have another number of coordinates than the network has inputs"
    if replay.in_box:
        return "do not violate"
    near = judgement.clipped is not None
    return (
        "leave the box and do not violate once clipped" if near else "lie outside the box by more than 1e-4"
    )


def penalties(judged: JudgedCampaigns, rows: PenaltyRows) -> Iterator[str]:
    """Who is wrong by proof, and what the rule sets make of it."""
    yield "## Wrong by proof\n"
    yield "How many answers are wrong, and how many of these each rule set penalises (+ others):\n"
    table = [
        [
            row.verifier,
            str(row.wrong_unsat),
            str(row.wrong_sat),
            str(row.bad_witness),
            *(
                "not scored" if not row.is_scored else f"{own}{f' + {more}' if more else ''}"
                for own, more in zip(row.penalised, row.others, strict=True)
            ),
        ]
        for row in rows.penalties
    ]
    yield from markdown_table(["tool", "wrong unsat", "wrong sat", "bad witness", *rows.rules], table)
    counts = Counter(
        (j.record.verifier, j.record.suite) for j in judged.judgements if j.verdict is Verdict.WRONG_UNSAT
    )
    listed = [f"{tool} {times} on {suite}" for (tool, suite), times in sorted(counts.items())]
    yield f"\nThe wrong `unsat` answers: {', '.join(listed)}.\n"


def refuted(judged: JudgedCampaigns, labels: Database) -> Iterator[str]:
    """Each answer `unsat` that a point refutes, in a table beside the page, with a point of our own."""
    wrong: dict[tuple[str, str], list[str]] = {}
    for one in judged.judgements:
        if one.verdict is Verdict.WRONG_UNSAT:
            wrong.setdefault((one.record.suite, one.record.instance), []).append(one.record.verifier)
    folders = {name: folder for own in judged.campaigns for name, folder in own.folders.items()}
    entries = {(name, e.name): e for name, folder in folders.items() for e in read_suite(folder)}
    points = {place: _point(entries[place], labels) for place in sorted(wrong)}
    rows = [[*place, " ".join(sorted(set(tools))), points[place]] for place, tools in sorted(wrong.items())]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["category", "instance", "tools", "point"], *rows])
    write_whole(PAGE.with_name(REFUTED), text.getvalue())
    own = sum(bool(point) for point in points.values())
    yield (
        f"[{REFUTED}]({REFUTED}) lists them all, by instance: {len(rows)} instances, {own} of them with a "
        "point that `dokimos label` found, in the order of the network's inputs, which lies in the box and "
        "violates in exact arithmetic.\n"
    )


def _point(entry: SuiteEntry, labels: Database) -> str:
    """The witness of the label for an instance, proven again; empty if there is none."""
    kept = labels.get(key_of(entry))
    if kept is None or kept.label != "sat":
        return ""
    document = truth_for(kept, entry.read_instance())
    with TemporaryDirectory() as folder:
        path = Path(folder, "truth.json")
        path.write_text(strict_json.write(document))
        proven = check_entry(replace(entry, truth_path=path)).is_proven
    return " ".join(document["witness"]) if proven else ""


def published(results: Path, judged: JudgedCampaigns) -> Iterator[str]:
    """Whether what the organisers' tables say of each answer comes out again."""
    tables = [(place, rules) for place, rules in scoring_folders(results) if (place / LONG_TABLE).is_file()]
    if not tables:
        return
    runs, year = _runs(results, judged), RULE_SETS[tables[0][1]].year
    counts: Counter[str] = Counter()
    differing, penalties = [], Counter[str]()
    for place, rules in tables:
        for category, index, tool, standing in _long_table(place):
            run = runs.get((category, index, tool))
            if run is None:
                counts["missing"] += 1
                continue
            (found,) = (mark.standing for mark in run.marks if mark.rules == rules)
            if found is standing:
                counts["same"] += 1
                penalties[rules] += standing is Standing.INCORRECT
            else:
                differing.append(f"{rules}, {tool} on {run.record.suite}/{run.record.instance}")
    counted = " and ".join(f"{times} by *{rules}*" for rules, times in penalties.items())
    missing = f" ({counts['missing']} more are about other instances)" * bool(counts["missing"])
    yield (
        f"The organisers' tables of all instances of {year} have {counts['same'] + len(differing)} "
        f"standings of these answers, one for each rule set{missing}. {counts['same']} of them come out "
        f"again, {counted} as penalties; {len(differing)} differ.\n"
    )
    yield from (f"- {one}" for one in differing)


def _key(run: RunRecord) -> tuple[str, str, int, str]:
    return (run.suite, run.instance, run.repeat, run.verifier)


def _runs(results: Path, judged: JudgedCampaigns) -> dict[tuple[str, int, str], Judgement]:
    """What is judged of each row of results, by category, number of the row, and tool."""
    known = {_key(j.record): j for j in judged.judgements}
    folders = {suite: folder for one in judged.campaigns for suite, folder in one.folders.items()}
    matchers = {
        name: RowMatcher(CampaignSuite(folder, read_suite(folder, leniently=True).entries, name))
        for name, folder in folders.items()
    }
    found: dict[tuple[str, int, str], Judgement] = {}
    for table in find_results(results):
        seen: Counter[str] = Counter()
        for k, row in enumerate(published_rows(table, []) if table.category in matchers else ()):
            if (instance := matchers[table.category].instance(row)) is not None:
                key = (table.category, instance.name, seen[instance.name], table.tool)
                seen[instance.name] += 1
                if key in known:
                    found[plain(f"{table.year}_{table.category}"), k, table.tool] = known[key]
    return found


def _long_table(place: Path) -> Iterator[tuple[str, int, str, Standing]]:
    """The category, the number of the row, the tool, and what the organisers' table says of its answer."""
    names = {plain(long): tool for tool, long in settings_of(place)["TOOL_NAME_SUBS_LONGTABLE"]}
    tools: list[str] = []
    for line in (place / LONG_TABLE).read_text().splitlines():
        cells = [cell.strip() for cell in line.removesuffix("\\\\").split(" & ")]
        if line.startswith("\\textbf{Category}"):
            tools = [plain(name) for name in re.findall(r"\\textbf\{([^}]*)\}", line)][3:]
        elif len(cells) == 3 + len(tools) and cells[1].isdigit():
            for tool, cell in zip(tools, cells[3:], strict=True):
                wrong = Standing.INCORRECT if "\\ding{55}" in cell else Standing.CORRECT
                said = Standing.NONE if cell == "-" else wrong
                yield plain(cells[0]), int(cells[1]), names.get(tool, tool), said


def unchecked(judged: JudgedCampaigns, seconds: float | None) -> Iterator[str]:
    """How many `unsat` answers something confirms or refutes."""
    unsat = [j for j in judged.judgements if j.record.answer is Answer.UNSAT]
    counts = Counter(j.verdict for j in unsat)
    yield "## The answers `unsat`\n"
    yield (
        f"Of {len(unsat)} answers `unsat`, {counts[Verdict.WRONG_UNSAT]} are refuted by an exact witness, "
        f"{counts[Verdict.CORRECT]} are confirmed by a label"
        + ("" if seconds is None else f" (`dokimos label`, {seconds:g} s for each instance)")
        + f", and {counts[Verdict.UNLABELLED]} are unchecked: no rule of the competition looks at them.\n"
    )


def ranking(rows: PenaltyRows) -> Iterator[str]:
    """The places under each rule set."""
    yield "## The ranking\n"
    yield (
        "The place of each tool on these categories by rule set, and the sum of what each category is "
        "worth to it (100 to the best). By `exact`, an `unsat` that nothing confirms is worth nothing, so "
        "that it ranks what is proven so far:\n"
    )
    table = [
        [
            row.verifier,
            *(f"{place} ({worth:.0f})" for place, worth in zip(row.places, row.worths, strict=True)),
        ]
        for row in rows.ranking
    ]
    yield from markdown_table(["tool", *rows.rules], table)
    yield from (f"\n{said}" for said in rows.of_other_years)
