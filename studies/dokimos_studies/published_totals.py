"""Write studies/results/published-totals.md: scores of past competitions, added up again.

    dokimos-studies published-totals RESULTS... [--audit CAMPAIGN]...

RESULTS are repositories of results as VNN-COMP publishes them, in folders called after their year. For
each rule set of a year, the points of every tool in every category and the totals are compared with those
in the organisers' own tables. Answers and times are read from `results.csv`. What the organisers' program
said of each witness is read from its log, where one is published (there is none in 2021, when witnesses
did not count); where it is not, the number of a tool's penalties in a category is read from their tables:
so everything but the replay of witnesses is done again. Where the benchmarks are at hand, `dokimos audit`
replays the witnesses too; --audit takes the campaigns that it made.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import dokimos
from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.parallel import default_jobs
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.judging.marks import ClassifiedWitness, Score, WitnessClass, competition_marks, scores
from dokimos.judging.published_results import (
    ResultsTable,
    find_results,
    published_rows,
    results_year,
    shortest_runs,
)
from dokimos.judging.rules import RULE_SETS, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.exports import markdown_table
from dokimos.suites.answers import Answer
from dokimos.verifiers.execution.limits import Termination
from dokimos.verifiers.result_file import VERDICTS

PAGE = Path(__file__).parents[1] / "results" / "published-totals.md"
INTRODUCTION = """\
# Scores of past competitions, added up again

Made by

    {command}

from the repositories in which each year published its results. A *score* is what one tool got in one
category; the [rule sets](../../docs/verdicts.md#rule-sets) are those of each year. Answers and times are
always those of the results. *By the log* means that each witness is what the organisers' log says of it.
The logs of 2024 and 2025 are not at hand: *by penalties* means that as many answers of a tool in a category
are wrong as the organisers' table says, and all its others right. *By replay* means that Dokimos replayed
the witnesses on the benchmark's own files, for categories all of whose instances are at hand; its totals
take the other categories by penalties.

Totals are those of the track whose tables the organisers call scored: the extended one in the files of
2024, the regular one in those of 2025; of the other tracks, scores are compared. Of 2021, only the table
with one overhead for each tool is compared. 2026 has published no results. The results of 2024 must be
those that were scored, in July 2024 (commit 5d74e5a of that repository): two tools' were replaced in
October.
"""
#: What the program of a year drops by itself, without a setting.
_DROPPED = {"2022": ("cifar2020", "convBigRELU")}
Scores = Mapping[tuple[str, str], int]
"""Points by category and tool, both spelled in letters and digits only."""


@dataclass(frozen=True)
class Scoring:
    """How the organisers scored: what they left out, and what their tables and their log say.

    `unscored` categories are not in the totals, `skipped` are tools with a category in which they do not
    count, and `dropped` is a category with a part of the name of a network whose answers do not count.
    `left_out` are tools in no table. `classes` are what the log says of witnesses; None if there is none.
    """

    rules: str
    unscored: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, str] = ("", "")
    left_out: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    scores: Scores = field(default_factory=dict)
    penalties: Scores = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[tuple[str, int], Mapping[str, WitnessClass]] | None = None


def main() -> None:
    """Compare, and write the page."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("results", nargs="+", type=Path)
    words.add_argument("--audit", action="append", default=[], type=Path)
    given = words.parse_args()
    audited = _audited(given.audit)
    rows, differing = [], []
    for folder in given.results:
        for scoring in scorings(folder):
            for how, found, totals in again(folder, scoring, audited):
                row, other = compared(scoring, how, found, totals)
                rows.append(row)
                differing += other
    shown = shlex.join(["dokimos-studies", "published-totals", *sys.argv[1:]])
    columns = ["rule set", "how", "categories", "scores", "equal", "totals", "equal"]
    lines = [INTRODUCTION.format(command=shown), *markdown_table(columns, rows), ""]
    lines += ["What differs:\n", *differing] if differing else ["Nothing differs."]
    write_whole(PAGE, "\n".join(lines).rstrip() + "\n")


def compared(
    scoring: Scoring, how: str, found: Scores, totals: Mapping[str, float]
) -> tuple[list[str], list[str]]:
    """A row of the table, and a line for each score or total that is not the published one."""
    own = {key: points for key, points in scoring.scores.items() if key[0] in {c for c, _ in found}}
    other = [
        f"- {scoring.rules}, {how}, {key[1]} on {key[0]}: {found.get(key)}, published {points}."
        for key, points in sorted(own.items())
        if found.get(key) != points
    ]
    same = sum(round(totals.get(tool, 0.0), 1) == total for tool, total in scoring.totals.items())
    wrong = [
        f"- {scoring.rules}, {how}, the total of {tool}: {totals.get(tool, 0.0):.1f}, published {total}."
        for tool, total in sorted(scoring.totals.items())
        if totals and round(totals.get(tool, 0.0), 1) != total
    ]
    categories = len({category for category, _ in own})
    counts = [categories, len(own), len(own) - len(other)]
    ends = [str(len(scoring.totals)), str(same)] if totals else ["", ""]
    return [scoring.rules, how, *map(str, counts), *ends], [*other, *wrong]


def again(
    folder: Path, scoring: Scoring, audited: Mapping[int, Sequence[Judgement]]
) -> Iterator[tuple[str, Scores, Mapping[str, float]]]:
    """The scores and totals from what the organisers said of witnesses, and those by replay."""
    added = added_up(folder, scoring)
    how = "by penalties" if scoring.classes is None else "by the log" if scoring.classes else ""
    yield how or "by answers and times", _by_name(scoring, added), _totals(scoring, added)
    year = RULE_SETS[scoring.rules].year
    if year is not None and year in audited:
        whole = _whole(folder, audited[year])
        known = {category for category, _ in scoring.scores}
        own = [
            replace(one, suite=named)
            for one in scores(audited[year])
            if one.rules == scoring.rules and one.suite in whole
            for named in (f"{year}_{one.suite}", one.suite)
            if plain(named) in known
        ]
        replayed = {plain(one.suite) for one in own}
        rest = [one for one in added if plain(one.suite) not in replayed]
        yield "by replay", _by_name(scoring, own), _totals(scoring, [*own, *rest])


def _totals(scoring: Scoring, found: Iterable[Score]) -> dict[str, float]:
    """The sums of what the scored categories are worth to each tool."""
    sums: dict[str, float] = {}
    for one in found:
        if plain(one.suite) not in map(plain, scoring.unscored):
            tool = _tool(scoring, one.verifier)
            sums[tool] = sums.get(tool, 0.0) + one.worth
    return sums


def _whole(folder: Path, judgements: Sequence[Judgement]) -> set[str]:
    """The categories of which every published row was judged."""
    judged = Counter((one.record.verifier, one.record.suite) for one in judgements)
    parts = {
        table.category
        for table in find_results(folder)
        if len(list(published_rows(table, []))) != judged[table.tool, table.category]
    }
    return {suite for _, suite in judged} - parts


def _by_name(scoring: Scoring, found: Iterable[Score]) -> dict[tuple[str, str], int]:
    return {(plain(one.suite), _tool(scoring, one.verifier)): one.points for one in found}


def _audited(folders: Iterable[Path]) -> dict[int, tuple[Judgement, ...]]:
    """What audits of published results judged, by year; what they have kept is not judged again."""
    found: dict[int, tuple[Judgement, ...]] = {}
    for folder in folders:
        source = dokimos.read_campaign(folder).manifest.published
        if source is None or source.year is None:
            raise InputError(f"{folder}: it is no campaign that `dokimos audit --results` made.")
        judged = judge_campaigns(
            [folder], rules=None, jobs=default_jobs(), judged=lambda _done, _total, _what: None
        )
        found[source.year] = (*found.get(source.year, ()), *judged.judgements)
    return found


# What the organisers published


def scorings(folder: Path) -> Iterator[Scoring]:
    """The organisers' scorings in a repository of results."""
    tables = find_results(folder)
    year = results_year(folder, tables)
    if year == 2021:
        said = _Tables.of(folder / "output_singleoverhead.txt")
        # As `process_results.py` of that year has it: the second is left out of the totals.
        skipped = (("RPM", "mnistfc"),)
        yield Scoring(
            f"vnncomp{year}", ("cifar2020",), skipped, scores=said.points, totals=said.totals, classes={}
        )
        return
    for place, rules in scoring_folders(folder):
        settings = settings_of(place)
        log = place / "results.txt"
        scored, other, total = (
            _Tables.of(place / "latex" / f"{name}.tex") for name in ("scored", "unscored", "total")
        )
        yield Scoring(
            rules,
            other.categories,
            tuple(settings.get("SKIP_BENCHMARK_TUPLES", ())),
            _DROPPED.get(str(year), ("", "")),
            tuple(settings.get("SKIP_TOOLS", ())),
            dict(settings.get("TOOL_NAME_SUBS_LATEX", ())),
            scored.points | other.points,
            scored.penalties | other.penalties,
            total.totals,
            _classes(log.read_text()) if log.is_file() and log.stat().st_size else None,
        )


def scoring_folders(folder: Path) -> Iterator[tuple[Path, str]]:
    """The folders in which the organisers scored, each with the name of its rule set."""
    year = results_year(folder, find_results(folder))
    for place in sorted(folder.glob("SCORING*")):
        # `small` and `zero` of SCORING-SMALL-TOL and -ZERO-TOL tell two scorings of one year apart.
        word = [*place.name.lower().split("-"), ""][1]
        yield place, next(n for n in RULE_SETS if RULE_SETS[n].year == year and word in n)


def settings_of(place: Path) -> dict[str, Any]:
    """The constants in the organisers' settings in one of these folders, which are read and never run."""
    path = place / "settings.py"
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            try:
                found[name] = found[value.id] if isinstance(value, ast.Name) else ast.literal_eval(value)
            except (ValueError, KeyError):
                continue
    return found


@dataclass
class _Tables:
    """LaTeX tables: the names of the categories, points and penalties by category and tool, and totals."""

    names: list[str] = field(default_factory=list)
    points: dict[tuple[str, str], int] = field(default_factory=dict)
    penalties: dict[tuple[str, str], int] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(self.names)

    @classmethod
    def of(cls, path: Path) -> _Tables:
        found, category, columns = cls(), "", []
        for line in path.read_text().splitlines():
            cells = [cell.strip() for cell in line.removesuffix("\\\\").split(" & ")]
            if named := re.match(r"% Category (\S+)", line):
                category = named[1]
                found.names.append(category)
            elif line.startswith("\\caption") and "Benchmark" not in line:
                category = "all" if "Overall Score" in line else ""
            elif line.startswith("\\textbf{\\#"):
                columns = re.findall(r"\\textbf\{([^}]*)\}", line)
            elif category == "all" and len(cells) == 3 and cells[0].isdigit():
                found.totals[plain(cells[1])] = float(cells[2])
            elif category and len(cells) > 5 and cells[0].isdigit():
                row, key = dict(zip(columns, cells, strict=True)), (plain(category), plain(cells[1]))
                found.points[key] = int(row.get("Points") or row["Score"])
                found.penalties[key] = int(row.get("Penalty", 0))
        return found


def _classes(log: str) -> dict[tuple[str, int], dict[str, WitnessClass]]:
    """What the organisers' program says of the witnesses on each row of a category."""
    found: dict[tuple[str, int], dict[str, WitnessClass]] = {}
    category, seen = "", {}
    for line in log.splitlines():
        if named := re.fullmatch(r"Category (\S+):", line):
            category = named[1]
        elif line.startswith("were violated counterexamples valid?: "):
            said = ast.literal_eval(line.partition("?: ")[2])
            seen = {tool: WitnessClass(word) for tool, word in said.items()}
        elif seen and (row := re.match(r"(\d+): \S+ score:", line)):
            found[category, int(row[1])], seen = seen, {}
    return found


def plain(name: str) -> str:
    """A name in letters and digits only, with the Greek letters of one tool as their first ones."""
    for greek in ("alpha", "beta"):
        name = name.replace(greek, greek[0])
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _tool(scoring: Scoring, name: str) -> str:
    return plain(scoring.names.get(name, name))


# The same from answers, times and classes


def added_up(folder: Path, scoring: Scoring) -> list[Score]:
    """The score of every tool on every category, from the rows of the results and the log."""
    rules = RULE_SETS[scoring.rules]
    tables = {
        table: _category(table, scoring)
        for table in find_results(folder)
        if table.tool not in scoring.left_out
    }
    judgements: list[Judgement] = []
    for is_scored in (True, False):
        # From 2022 on, the two groups of categories were scored apart, and so were their shortest runs.
        own = {
            table: category
            for table, category in tables.items()
            if (category not in scoring.unscored or rules.year == 2021) == is_scored
            and (table.tool, table.category) not in scoring.skipped
        }
        overheads = shortest_runs(list(own))
        rows: dict[tuple[str, int], list[RunRecord]] = {}
        for table, category in own.items():
            for index, record in enumerate(_records(table, category, scoring.dropped)):
                rows.setdefault((category, index), []).append(record)
        for key, records in rows.items():
            if key[0] == "test":
                continue
            marks = competition_marks(rules, records, partial(_said, scoring, key), overheads)
            judgements += [
                Judgement(record, None, None, Verdict.UNLABELLED, "", None, "", marks=(mark,))
                for record, mark in zip(records, marks, strict=True)
            ]
    return list(scores(list(_penalised(scoring, judgements))))


def _said(scoring: Scoring, key: tuple[str, int], run: RunRecord) -> ClassifiedWitness | None:
    """What the log says of a witness; without a log all are accepted, and refute nothing."""
    if run.answer is not Answer.SAT:
        return None
    if scoring.classes is None:
        return ClassifiedWitness(WitnessClass.TOLERATED, "there is no log")
    kind = scoring.classes.get(key, {}).get(run.verifier)
    return None if kind is None else ClassifiedWitness(kind, "by the log")


def _penalised(scoring: Scoring, judgements: Iterable[Judgement]) -> Iterator[Judgement]:
    """Without a log: as many right answers made wrong as the tables count penalties, no matter which."""
    left = Counter({} if scoring.classes is not None else scoring.penalties)
    for one in judgements:
        key = plain(one.record.suite), _tool(scoring, one.record.verifier)
        if left[key] and one.marks[0].standing is Standing.CORRECT:
            left[key] -= 1
            wrong = RULE_SETS[scoring.rules].mark(Standing.INCORRECT, "by the number of penalties")
            one = replace(one, marks=(wrong,))
        yield one


def _category(table: ResultsTable, scoring: Scoring) -> str:
    """The name of a category in the organisers' tables, which has its year in some."""
    full = f"{table.year}_{table.category}".lstrip("_")
    return full if plain(full) in {category for category, _ in scoring.scores} else table.category


def _records(table: ResultsTable, category: str, dropped: tuple[str, str]) -> Iterator[RunRecord]:
    for row in published_rows(table, []):
        is_dropped = category == dropped[0] and dropped[1] in row.network
        yield RunRecord(
            job="",
            suite=category,
            instance="",
            family="",
            verifier=table.tool,
            verifier_version="",
            repeat=0,
            answer=Answer.UNKNOWN if is_dropped else VERDICTS.get(row.word, Answer.UNKNOWN),
            witness=None,
            detail="",
            termination=Termination.EXITED,
            exit_code=None,
            wall_seconds=row.seconds,
            cpu_seconds=0.0,
            peak_memory_bytes=0,
            log="",
            started_at="",
        )
