"""Turns the published results of a competition into an ordinary campaign.

The layout since 2022 has one folder for each tool and, in it, one for each category::

    RESULTS/<tool>/<year>_<category>/results.csv     category,network,property,prepare,answer,seconds
    RESULTS/<tool>/<year>_<category>/<network>_<property>.counterexample[.gz]

In 2022 the folders had no year, in 2023 it was that of the benchmark: the competition's is the last that a
folder names, or else the one in the name of RESULTS. 2021 had no counterexamples, and one table for each
tool: `RESULTS/results_csv/<tool>.csv`.

A row belongs to the instance whose files it names, whatever folders precede these names. If a benchmark
lists an instance twice, the second row is its second run; both have the same witness, since the second run
overwrote the first one's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import prod
from pathlib import Path, PurePosixPath

from dokimos.campaigns.campaign import Campaign, alone_in, read_campaign
from dokimos.campaigns.journal import Journal, RunRecord
from dokimos.campaigns.manifest import (
    Manifest,
    PublishedSource,
    describe,
    merge,
    read_manifest,
    write_manifest,
)
from dokimos.campaigns.plan import CampaignInstance, CampaignSuite, Job, Tool, plan
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.core.files import contained, reading_at_most
from dokimos.core.readable import printable
from dokimos.judging.rules import INPUT_TOLERANCE
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import exists, read_content
from dokimos.suites.folder import instance_names, listed_files, numbered_rows, row_files, together
from dokimos.suites.lower import is_plain, linked_inputs
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.execution.limits import Termination
from dokimos.verifiers.result_file import VERDICTS, sat_with, tensors_in

#: The warm-ups that the competition's scripts run around each category are not instances of it.
_WARM_UPS = ("test_nano", "test_tiny")
_WARM_UP_CATEGORY = "test"
#: What the names of the folders begin with in which the organisers score; they are no tools.
_ORGANISERS = "SCORING"
#: The seconds of an instance that was not run, as it could not be prepared.
_NOT_RUN = -1
#: Counterexamples larger than this are not read.
_MOST_WITNESS_BYTES = 1 << 28
_COLUMNS = "category,network,property,prepare seconds,answer,run seconds"


@dataclass(frozen=True)
class ResultsTable:
    """The results of a tool on a category: the year ("" if no folder says), and the table.

    `is_shared` says that the table has other categories too.
    """

    tool: str
    year: str
    category: str
    path: Path
    is_shared: bool = False


@dataclass(frozen=True)
class ImportedResults:
    """The campaign made from published results, and what did not become a part of it.

    `strangers` are the places of rows that match no instance that the suites list, `unread` what could not
    be read, and `not_judged` the numbers of rows, by suite, on listed instances whose files are missing or
    unreadable.
    """

    campaign: Campaign
    strangers: tuple[str, ...]
    unread: tuple[UnreadableFile, ...] = ()
    not_judged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedRow:
    """One row: its files as it names them, the answer, and the seconds that it took.

    Of several networks, `names` are their names in the property.
    """

    place: str
    network: str
    property: str
    word: str
    seconds: float
    prepare_seconds: float = 0.0
    names: tuple[str, ...] = ()


_Matched = Sequence[tuple[PublishedRow, CampaignInstance | None]]
"""The rows of a table with their instances; None for a row that matches no suite."""


def find_results(folder: Path, unread: list[UnreadableFile] | None = None) -> tuple[ResultsTable, ...]:
    """All tables of published results in `folder`. Raises UnreadableFile if there is none.

    What cannot be read is added to `unread`.
    """
    unread = [] if unread is None else unread
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such folder of results")
    found = []
    for path in sorted(folder.glob("*/*/results.csv")):
        if path.parent.parent.name.startswith(_ORGANISERS):
            continue
        year, _, category = path.parent.name.partition("_")
        if not (year.isdigit() and category):
            year, category = "", path.parent.name
        found.append(ResultsTable(path.parent.parent.name, year, category, path))
    for path in sorted(folder.glob("results_csv/*.csv")):
        for category in dict.fromkeys(cells[0] for _, cells in _cells(path, unread) if cells):
            found.append(ResultsTable(path.stem, "2021", category.strip(), path, is_shared=True))
    if not found:
        raise UnreadableFile(
            folder, "it holds no results: they must be in <tool>/<year>_<category>/results.csv."
        )
    return tuple(found)


def results_year(folder: Path, tables: Sequence[ResultsTable]) -> int | None:
    """The year of the competition whose results are in `folder`; None if nothing says."""
    named = [int(table.year) for table in tables if table.year]
    in_name = re.search(r"20\d\d", folder.absolute().name)
    return max(named, default=None if in_name is None else int(in_name[0]))


def import_results(
    results: Path,
    suites: Sequence[CampaignSuite],
    out: Path,
    *,
    not_scored: Sequence[str] = (),
    imported: Callable[[int, int, str], None] = lambda _done, _total, _what: None,
) -> ImportedResults:
    """Make a campaign in `out` from the results on `suites`, whose names are those of the categories.

    `not_scored` names tools that took part without being scored: rule sets leave them out. `imported` is
    called after each table. The same call again continues where it stopped.
    """
    names = {suite.name for suite in suites}
    unread: list[UnreadableFile] = []
    every = find_results(results, unread)
    tables = [table for table in every if table.category in names]
    if not tables:
        known = sorted({table.category for table in every})
        raise InputError(
            f"{results}: has results on {', '.join(known)}, but none on {', '.join(sorted(names))}."
        )
    if unknown := sorted(set(not_scored) - {table.tool for table in tables}):
        raise InputError(f"`not_scored` {unknown[0]}: {results} has no results of this tool.")
    matchers = {suite.name: RowMatcher(suite) for suite in suites}
    matched: dict[ResultsTable, _Matched] = {
        table: [(row, matchers[table.category].instance(row)) for row in published_rows(table, unread)]
        for table in tables
    }
    strangers, not_judged = [], Counter[str]()
    for table, own in matched.items():
        for row, instance in own:
            if instance is None and matchers[table.category].lists(row):
                not_judged[table.category] += 1
            elif instance is None:
                strangers.append(row.place)
    year = results_year(results, every)
    names = {table.tool for table in tables}
    tools = [Tool(name, str(year or "published")) for name in sorted(names)]
    repeat = max([1, *(count for own in matched.values() for count in _counts(own).values())])
    # The limit that memory had is not published; it takes part in the ids of these runs.
    settings = RunSettings(memory_bytes=4 << 30, repeat=repeat)
    planned = plan(suites, tools, settings)
    jobs = {(job.suite, job.instance.name, job.tool.name, job.repeat): job for job in planned}
    with alone_in(out):
        manifest = replace(
            describe(suites, tools, settings),
            published=PublishedSource(
                *(str(results.absolute()), tuple(not_scored)),
                year=year,
                overheads=shortest_runs(every),
            ),
        )
        manifest = _going_on(manifest, out)
        write_manifest(manifest, out / "manifest.json")
        with Journal(out / "journal.jsonl") as journal:
            for done, table in enumerate(tables, start=1):
                questions = matchers[table.category].question
                rows = _records(table, matched[table], jobs, journal.finished, questions, unread)
                journal.finish_all(rows)
                imported(done, len(tables), f"{table.tool} on {table.category}")
    return ImportedResults(read_campaign(out), tuple(strangers), tuple(unread), not_judged)


def _going_on(manifest: Manifest, out: Path) -> Manifest:
    """The manifest to write: the existing campaign's, extended by this one."""
    if not exists(out / "manifest.json"):
        return manifest
    before = read_manifest(out / "manifest.json")
    if before.published is None:
        raise InputError(f"{out}: holds a campaign that was run, not imported; choose another folder.")
    # Other benchmarks may have joined, and files that were missing the last time may be there now.
    named = {suite.name for suite in manifest.suites}
    others = [suite for suite in before.suites if suite.name not in named]
    known = {(one.suite, one.name) for one in before.instances}
    added = [one for one in manifest.instances if (one.suite, one.name) not in known]
    joined = replace(
        manifest,
        suites=(*others, *manifest.suites),
        instances=(*(i for i in before.instances if i.suite not in named), *manifest.instances),
        limits=before.limits,
    )
    before = replace(before, instances=(*before.instances, *added))
    return replace(merge(before, joined, out), published=manifest.published)


def _counts(matched: _Matched) -> Counter[str]:
    return Counter(instance.name for _, instance in matched if instance is not None)


def published_rows(
    table: ResultsTable, unread: list[UnreadableFile], *, warm_up: bool = False
) -> Iterator[PublishedRow]:
    """The rows of a table, with or without the warm-up; those that cannot be read are added to `unread`."""
    for number, cells in _cells(table.path, unread):
        place = Place(str(table.path), number)
        if len(cells) < 6:
            reason = f"a row must be {_COLUMNS}; this one has {len(cells)} columns"
            unread.append(UnreadableFile(place, reason))
            continue
        # What some tools wrote after the sixth cell, the organisers' programs never read.
        category, network, property_, prepare, word, time = (cell.strip() for cell in cells[:6])
        if table.is_shared and category != table.category:
            continue
        is_warm_up = (
            PurePosixPath(network).name.startswith(_WARM_UPS) and table.category != _WARM_UP_CATEGORY
        )
        if not is_warm_up or warm_up:
            try:
                took = _seconds(time, place), _seconds(prepare or "0", place)
                network, names = together(network)
                yield PublishedRow(str(place), network, property_, word.lower(), *took, names)
            except UnreadableFile as error:
                unread.append(error)


def _cells(path: Path, unread: list[UnreadableFile]) -> list[tuple[int, list[str]]]:
    """The rows of a table that are not empty, with their numbers; none if it cannot be read."""
    try:
        return numbered_rows(path)
    except UnreadableFile as error:
        unread.append(error)
        return []


def shortest_runs(tables: Sequence[ResultsTable]) -> dict[str, float]:
    """The seconds of the shortest decided run of each tool, warm-ups included.

    What cannot be read is left out: it need not be of a category that is asked for.
    """
    found: dict[str, float] = {}
    for table in tables:
        for row in published_rows(table, [], warm_up=True):
            answer = VERDICTS.get(row.word)
            if answer is not None and answer.decides:
                found[table.tool] = min(row.seconds, found.get(table.tool, row.seconds))
    return found


def _seconds(text: str, place: Place) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if found == _NOT_RUN:
        return 0.0
    if not 0 <= found < 1e12:
        raise UnreadableFile(place, f"{printable(text)!r} is not a number of seconds")
    return found


class RowMatcher:
    """Finds the instance of a suite that a row of results is about."""

    def __init__(self, suite: CampaignSuite) -> None:
        self._folder = suite.folder
        listed = [(_plain(network), _plain(asked)) for network, asked in listed_files(suite.folder)]
        self._listed = set(listed)
        named = {one.name: one for one in suite.instances}
        names = instance_names(listed_files(suite.folder))
        self._known = {pair: named[n] for pair, n in zip(listed, names, strict=True) if n in named}

    def question(self, instance: CampaignInstance) -> Property:
        """The property of an instance as its file has it, before anything is lowered."""
        _, path = row_files(self._folder, instance.name)
        return read_vnnlib(read_content(path), file=str(path))

    def instance(self, row: PublishedRow) -> CampaignInstance | None:
        """The instance whose two file names end the row's paths; None if there is none."""
        return next((self._known[pair] for pair in _pairs(row) if pair in self._known), None)

    def lists(self, row: PublishedRow) -> bool:
        """Whether the suite lists such files, even if they are missing."""
        return any(pair in self._listed for pair in _pairs(row))


def _pairs(row: PublishedRow) -> Iterator[tuple[str, str]]:
    """The names that the two files of a row may have in a suite."""
    properties = set(_tails(_plain(row.property)))
    return ((network, asked) for network in _tails(_plain(row.network)) for asked in properties)


def _plain(path: str) -> str:
    return str(PurePosixPath(path)).removesuffix(".gz")


def _tails(path: str) -> Iterator[str]:
    """The path, then without its first folder, then without its first two folders, and so on."""
    parts = PurePosixPath(path).parts
    for k in range(len(parts)):
        yield str(PurePosixPath(*parts[k:]))


def _records(
    table: ResultsTable,
    matched: _Matched,
    jobs: Mapping[tuple[str, str, str, int], Job],
    finished: frozenset[str],
    question: Callable[[CampaignInstance], Property],
    unread: list[UnreadableFile],
) -> Iterator[RunRecord]:
    seen: Counter[str] = Counter()
    for row, instance in matched:
        if instance is None:
            continue
        job = jobs[table.category, instance.name, table.tool, seen[instance.name]]
        seen[instance.name] += 1
        if job.id not in finished:
            yield _record(job, row, _answer(table, row, partial(question, instance), unread))


def _record(job: Job, row: PublishedRow, said: VerifierAnswer) -> RunRecord:
    return RunRecord(
        job=job.id,
        suite=job.suite,
        instance=job.instance.name,
        family=job.instance.family,
        verifier=job.tool.name,
        verifier_version=job.tool.version,
        repeat=job.repeat,
        answer=said.answer,
        witness=said.witness,
        detail=said.detail,
        termination=Termination.EXITED,
        exit_code=None,
        wall_seconds=row.seconds,
        cpu_seconds=0.0,
        peak_memory_bytes=0,
        log="",
        started_at="",
        outputs=said.outputs,
        limits=job.limits,
        prepare_seconds=row.prepare_seconds,
    )


def _answer(
    table: ResultsTable,
    row: PublishedRow,
    question: Callable[[], Property],
    unread: list[UnreadableFile],
) -> VerifierAnswer:
    """The answer in a row, with the witness next to the table."""
    answer = VERDICTS.get(row.word)
    if answer is None:
        late = "timeout" in row.word
        return VerifierAnswer(Answer.TIMEOUT if late else Answer.ERROR, detail=printable(row.word)[:400])
    if answer is not Answer.SAT:
        return VerifierAnswer(answer)
    try:
        with reading_at_most(_MOST_WITNESS_BYTES):
            return _with_witness(table, row, question)
    except UnreadableFile as error:
        unread.append(error)
        return VerifierAnswer(Answer.SAT, detail=f"its counterexample cannot be read: {error.reason}")


def _with_witness(
    table: ResultsTable, row: PublishedRow, question: Callable[[], Property]
) -> VerifierAnswer:
    path = next((p for p in _witness_paths(table, row) if exists(p)), None)
    if path is None:
        return VerifierAnswer(Answer.SAT, detail="no counterexample was published")
    text = read_content(path).decode("utf-8", errors="replace").strip().removeprefix("sat")
    is_flat = text.lstrip()[:1] in ("(", "")
    said = sat_with(text) if is_flat else _sat_in_tensors(tensors_in(text), question())
    return replace(said, detail="the counterexample is empty") if said.witness is None else said


def _sat_in_tensors(tensors: Mapping[str, Point | None], asked: Property) -> VerifierAnswer:
    """The answer `sat` with the inputs in these tensors, as an input of the network that is judged.

    Inputs that the property says are equal are one input there; they may differ by what every competition
    tolerates, and the first is taken.
    """
    parts = [(n, tensors.get(n.input_name)) for n in asked.networks]
    if any(part is None or len(part) != prod(n.input_shape) for n, part in parts):
        return VerifierAnswer(Answer.SAT, (), "the witness is not one value for each input")
    places, _ = linked_inputs(asked)
    point: dict[int, Fraction] = {}
    for k, value in zip(places, (x for _, part in parts for x in part or ()), strict=True):
        if abs(point.setdefault(k, value) - value) > INPUT_TOLERANCE:
            return VerifierAnswer(Answer.SAT, (), "two inputs that must be equal differ in the witness")
    outputs = tensors.get(asked.networks[0].output_name) if is_plain(asked) else None
    return VerifierAnswer(Answer.SAT, tuple(point[k] for k in sorted(point)), outputs=outputs)


def _witness_paths(table: ResultsTable, row: PublishedRow) -> Iterator[Path]:
    """Where the witness may be: its name begins with the folders below `onnx`, if there are any."""
    folders = PurePosixPath(_plain(row.network)).parts[:-1]
    below = folders[folders.index("onnx") + 1 :] if "onnx" in folders else ()
    stems = [PurePosixPath(_plain(name)).stem for name in (row.network, row.property)]
    for parts in ([*below, *stems], stems, [*row.names, stems[1]]):
        name = f"{'_'.join(parts)}.counterexample"
        for ending in (".gz", ""):
            yield contained(table.path.parent, name + ending)
