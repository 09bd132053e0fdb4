"""An edition of a competition: its file, what it runs, overrides, and results in the competition's layout.

edition/
  edition.toml                 categories, tools, limits, rules and the seed; `edition init` writes it
  overrides.toml               marks that the organisers set by hand, each with a reason; it may be missing
  runs/<category>/             an ordinary campaign for each category
  results/<tool>/<year>_<category>/results.csv, <network>_<property>.counterexample.gz
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePosixPath

import numpy as np

from dokimos.campaigns.campaign import Campaign
from dokimos.campaigns.config_file import placed, quoted, run_settings
from dokimos.campaigns.job import proof_path
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core import documents
from dokimos.core.documents import CheckedTable
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.judging.judged_campaign import JudgedCampaign, JudgedCampaigns
from dokimos.judging.label_checks import LabelChecker
from dokimos.judging.rules import RULE_SETS, Mark, Standing, rule_sets
from dokimos.judging.verdicts import Judgement
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, exists, read_text
from dokimos.suites.folder import instance_names, listed_files, read_suite
from dokimos.suites.vnnlib.writer import exact_decimal

EDITION, OVERRIDES = "edition.toml", "overrides.toml"
#: Where its parts are in the folder of an edition.
RUNS, RESULTS = "runs", "results"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_DEFAULTS = {"prepare": "600s", "grace": "60s"}


@dataclass(frozen=True)
class Category:
    """A category: a benchmark's folder under the name that tools are told, and the track it counts for.

    With `pick`, so many of its instances are drawn by the seed of the edition.
    """

    name: str
    folder: str
    track: str = "regular"
    pick: int | None = None


@dataclass(frozen=True)
class EditionTool:
    """A tool: its name in all tables, the value for --verifier, and what its card says of it."""

    name: str
    verifier: str
    licence: str = ""
    address: str = ""
    semantics: str = ""


@dataclass(frozen=True)
class Override:
    """A mark that the organisers set by hand: of a tool, on a category or an instance of it, and why."""

    tool: str
    category: str
    standing: Standing
    reason: str
    instance: str = ""
    rules: str = ""

    def applies(self, judgement: Judgement, mark: Mark) -> bool:
        """Whether it sets this mark; a name that is empty stands for all."""
        record = judgement.record
        pairs = (
            (self.tool, record.verifier),
            (self.category, record.suite),
            (self.instance, record.instance),
            (self.rules, mark.rules),
        )
        return all(not wanted or wanted == found for wanted, found in pairs)


@dataclass(frozen=True)
class Edition:
    """An edition as its file says, and its overrides."""

    folder: Path
    name: str
    year: int
    seed: int
    rules: tuple[str, ...]
    settings: RunSettings
    categories: tuple[Category, ...]
    tools: tuple[EditionTool, ...]
    overrides: tuple[Override, ...] = ()

    @property
    def tracks(self) -> tuple[str, ...]:
        """The tracks, in the order of the file."""
        return tuple(dict.fromkeys(category.track for category in self.categories))

    def runs(self, category: Category) -> Path:
        """The folder of the campaign of a category."""
        return self.folder / RUNS / category.name

    def suite(self, category: Category) -> CampaignSuite:
        """The instances of a category that are run: all, or those that the seed draws, in their order."""
        suite = read_suite(Path(category.folder))
        chosen = suite.entries
        if category.pick is not None and category.pick < len(chosen):
            rng = np.random.default_rng([self.seed, zlib.crc32(category.name.encode())])
            drawn = set(rng.choice(len(chosen), category.pick, replace=False).tolist())
            chosen = tuple(entry for k, entry in enumerate(chosen) if k in drawn)
        return CampaignSuite(suite.folder, chosen, category.name)


# The file of an edition, and that of its overrides


def edition_text(
    name: str, year: int, seed: int, categories: Sequence[Category], tools: Sequence[EditionTool]
) -> str:
    """The text of a new edition's file, with comments that explain its keys."""
    lines = [
        "# An edition of a competition: `dokimos edition run`, `score` and `publish` read this file.",
        f"name = {quoted(name)}",
        f"year = {year}",
        f"seed = {seed}  # drawn once; instances are picked by it",
        f"rules = {['vnncomp2026', 'exact']!r}  # the first ranks".replace("'", '"'),
        "",
        "[limits]",
        *(f"{key} = {quoted(value)}" for key, value in _DEFAULTS.items()),
        'memory = "16GB"',
        "threads = 4  # of numerical libraries, in each run",
        "jobs = 1  # runs at a time: one tool alone on the machine",
        '# timeout = "300s"  # of each run (default: what each instance says)',
        '# cpu = "300s"  # of the processor; with a long timeout, load changes no answer',
        "",
    ]
    for category in categories:
        pick = f"pick = {category.pick}" if category.pick else "# pick = 10  # instances, drawn by the seed"
        lines += [
            "[[categories]]",
            f"name = {quoted(category.name)}",
            f"folder = {quoted(category.folder)}",
        ]
        lines += [f"track = {quoted(category.track)}", pick, ""]
    for tool in tools:
        lines += ["[[tools]]", f"name = {quoted(tool.name)}", f"verifier = {quoted(tool.verifier)}"]
        lines += ['# licence = ""  # for its card, as are `address` and `semantics`', ""]
    return "\n".join(lines)


def read_edition(folder: Path) -> Edition:
    """The edition in a folder. Raises UnreadableFile, with the line that is wrong."""
    path = folder / EDITION
    if not exists(path):
        raise UnreadableFile(folder, f"there is no {EDITION} here; write one with `dokimos edition init`")
    text = read_text(path)
    top = CheckedTable(documents.parse(text, file=str(path), what="the edition"), text, file=str(path))
    top.expect(("name", "year", "seed", "rules", "limits", "categories", "tools"))
    rules = top.texts("rules", "a list of rule sets") or ("vnncomp2026", "exact")
    rule_sets(rules)
    limits = top.table("limits")
    edition = Edition(
        folder,
        name=_text(top, "name"),
        year=_whole(top, "year"),
        seed=_whole(top, "seed"),
        rules=tuple(dict.fromkeys(rules)),
        settings=RunSettings(
            **{"prepare_seconds": 600.0, "grace_seconds": 60.0, **run_settings(limits, is_edition=True)}
        ),
        categories=tuple(_category(table, path) for table in top.tables("categories")),
        tools=tuple(_tool(table, path) for table in top.tables("tools")),
    )
    for what, names in (
        ("category", [one.name for one in edition.categories]),
        ("tool", [one.name for one in edition.tools]),
    ):
        if not names:
            raise UnreadableFile(path, f"it has no {what}")
        if len(set(names)) < len(names):
            raise UnreadableFile(path, f"two have the same name; give each {what} its own")
    return replace(edition, overrides=tuple(_overrides(edition)))


def _category(table: CheckedTable, path: Path) -> Category:
    table.expect(("name", "folder", "track", "pick"))
    pick = table.get("pick", (int,), "a whole number of instances")
    if pick is not None and pick < 1:
        raise table.problem("pick", "`pick` must be at least 1")
    track = _text(table, "track", "regular")
    return Category(_file_name(table), placed(_text(table, "folder"), path), track, pick)


def _tool(table: CheckedTable, path: Path) -> EditionTool:
    table.expect(("name", "verifier", "licence", "address", "semantics"))
    name, equals, place = _text(table, "verifier").partition("=")
    about = (_text(table, key, "") for key in ("licence", "address", "semantics"))
    return EditionTool(_file_name(table), name + equals + placed(place, path), *about)


def _overrides(edition: Edition) -> Iterator[Override]:
    path = edition.folder / OVERRIDES
    if not exists(path):
        return
    text = read_text(path)
    top = CheckedTable(documents.parse(text, file=str(path), what="the overrides"), text, file=str(path))
    top.expect(("overrides",))
    known = {
        "tool": [one.name for one in edition.tools],
        "category": [one.name for one in edition.categories],
        "rules": list(edition.rules),
    }
    for table in top.tables("overrides"):
        table.expect(("tool", "category", "instance", "rules", "standing", "reason"))
        for key, names in known.items():
            if (named := _text(table, key, "")) and named not in names:
                raise table.problem(key, f"there is no {key} {named!r} here, only {', '.join(names)}")
        standing = _text(table, "standing")
        if standing not in [one.value for one in Standing]:
            raise table.problem("standing", "`standing` must be correct, incorrect or nothing")
        yield Override(
            _text(table, "tool", ""),
            _text(table, "category", ""),
            Standing(standing),
            _text(table, "reason"),
            _text(table, "instance", ""),
            _text(table, "rules", ""),
        )


def _text(table: CheckedTable, key: str, default: str | None = None) -> str:
    found = table.get(key, (str,), "a text")
    if found is None:
        found = default
    if found is None or (default is None and not found.strip()):
        raise table.problem(None if found is None else key, f"`{key}` must be given, as a text")
    return str(found)


def _file_name(table: CheckedTable) -> str:
    """The name of a category or a tool, which names folders too."""
    name = _text(table, "name")
    if not _NAME.fullmatch(name):
        raise table.problem("name", "`name` must consist of letters, digits, _, - and .")
    return name


def _whole(table: CheckedTable, key: str) -> int:
    found = table.get(key, (int,), "a whole number")
    if found is None or not 0 <= found < 2**63:
        raise table.problem(key if found is not None else None, f"`{key}` must be given, as a whole number")
    return int(found)


# Marks that the organisers set by hand


def overridden(judged: JudgedCampaigns, overrides: Sequence[Override]) -> JudgedCampaigns:
    """The same judgements with these marks; verdicts, which are proven, stay. Later overrides win."""
    return JudgedCampaigns(
        tuple(
            replace(one, judgements=tuple(_overridden(j, overrides) for j in one.judgements))
            for one in judged.campaigns
        )
    )


def _overridden(judgement: Judgement, overrides: Sequence[Override]) -> Judgement:
    marks = []
    for mark in judgement.marks:
        for one in overrides:
            if one.applies(judgement, mark):
                mark = RULE_SETS[mark.rules].mark(one.standing, f"set by the organisers: {one.reason}")
        marks.append(mark)
    return replace(judgement, marks=tuple(marks))


# Certificates that tools handed in with their `unsat`


@dataclass(frozen=True)
class HandedIn:
    """A certificate, and why it does not prove the answer; empty if it does: the answer is confirmed."""

    record: RunRecord
    kind: str
    problem: str


def handed_in(judged: JudgedCampaign) -> Iterator[HandedIn]:
    """What the checker says of every certificate of a campaign."""
    check = LabelChecker()
    entries = {
        (name, entry.name): entry
        for name, place in judged.folders.items()
        for entry in read_suite(place).entries
    }
    for judgement in judged.judgements:
        record = judgement.record
        place = proof_path(judged.campaign.folder, record.job)
        if record.answer is not Answer.UNSAT or not exists(place):
            continue
        entry: SuiteEntry = replace(entries[record.suite, record.instance], truth_path=place)
        try:
            truth = entry.read_truth()
            kind = "" if truth is None else truth.certificate.kind
            found = check(entry)
            problem = "" if found.is_proven else found.problem or found.standing.value
            if truth is not None and truth.label.value != record.answer.value:
                problem = f"it proves {truth.label.value}"
        except InputError as error:
            kind, problem = "", str(error)
        yield HandedIn(record, kind, problem)


# Results in the competition's own layout, which `dokimos audit --results` and the organisers' programs read


_WORDS = {Answer.MEMOUT: "error_memout", Answer.UNSUPPORTED: "unknown"}


def write_results(edition: Edition, category: Category, campaign: Campaign) -> None:
    """Write the table of each tool on a category, and its counterexamples, from what is recorded so far."""
    folder = Path(category.folder)
    listed = listed_files(folder)
    files = dict(zip(instance_names(listed), listed, strict=True))
    order = {name: k for k, name in enumerate(files)}
    records = sorted(campaign.records, key=lambda record: (record.repeat, order[record.instance]))
    for tool in edition.tools:
        place = edition.folder / RESULTS / tool.name / f"{edition.year}_{category.name}"
        own = [record for record in records if record.verifier == tool.name]
        rows = [_row(category, files[record.instance], record) for record in own]
        for record in own:
            if record.answer is Answer.SAT and record.witness is not None:
                text = counterexample(record.witness, record.outputs)
                write_whole(
                    place / _witness_name(files[record.instance]), gzip.compress(text.encode(), mtime=0)
                )
        write_whole(place / "results.csv", "".join(f"{row}\n" for row in rows), what="the results")


def _row(category: Category, files: tuple[str, str], record: RunRecord) -> str:
    word = _WORDS.get(record.answer, record.answer.value)
    paths = (f"benchmarks/{category.name}/{name}" for name in files)
    seconds = (record.prepare_seconds, record.wall_seconds)
    return ",".join((category.name, *paths, f"{seconds[0]:.6f}", word, f"{seconds[1]:.6f}"))


def _witness_name(files: tuple[str, str]) -> str:
    network, asked = (PurePosixPath(name.removesuffix(".gz")) for name in files)
    folders = network.parts[:-1]
    below = folders[folders.index("onnx") + 1 :] if "onnx" in folders else ()
    return f"{'_'.join([*below, network.stem, asked.stem])}.counterexample.gz"


def counterexample(inputs: Iterable[Fraction], outputs: Iterable[Fraction] | None) -> str:
    """A point in the format of the competition, each number exactly where it has a decimal expansion."""
    values = [("X", k, value) for k, value in enumerate(inputs)]
    values += [("Y", k, value) for k, value in enumerate(outputs or ())]
    lines = [f"({name}_{k} {_number(value)})" for name, k, value in values]
    return "sat\n(" + "\n".join(lines) + ")\n"


def _number(value: Fraction) -> str:
    try:
        return exact_decimal(value)
    except InputError:
        return repr(float(value))
