"""Editions of a competition: set one up, run it, score it, publish it; and labels that outlive it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.api.campaigns import chosen_verifiers, run_suites
from dokimos.api.suites import SuiteSource, read_suite
from dokimos.campaigns.campaign import Campaign
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import expect_new_or_empty, write_whole
from dokimos.core.parallel import default_jobs
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief, did_you_mean, markdown_text, printable
from dokimos.core.records import Table
from dokimos.core.tables import TableRows
from dokimos.judging.checked_entry import check_entry
from dokimos.judging.edition import (
    EDITION,
    OVERRIDES,
    RESULTS,
    Category,
    Edition,
    EditionTool,
    edition_text,
    handed_in,
    overridden,
    write_results,
)
from dokimos.judging.edition import read_edition as _read_edition
from dokimos.judging.judge_instances import audited_label
from dokimos.judging.judged_campaign import JudgedCampaign, JudgedCampaigns, judge_campaigns
from dokimos.reports.edition_page import (
    EditionFindings,
    edition_figures,
    edition_tables,
    table_texts,
    write_site,
)
from dokimos.reports.render import drawing_style
from dokimos.suites.database import Database, KeptLabel, Said, Seen, key_of, record_of, truth_for
from dokimos.suites.entry import SuiteEntry, exists, read_content
from dokimos.suites.folder import Suite, benchmark_folders, benchmark_name
from dokimos.suites.folder import read_suite as _read_leniently
from dokimos.suites.suite_files import write_rows
from dokimos.verifiers.base import Verifier


def init_edition(
    folder: str | Path,
    categories: Sequence[str | Path],
    tools: Sequence[str],
    *,
    name: str = "",
    year: int | None = None,
    seed: int | None = None,
    pick: int | None = None,
) -> Edition:
    """Write the file of an edition, which says everything about it: `dokimos edition init`.

    `categories` are benchmarks, or folders of benchmarks, that are on this disk, or shipped suites; `tools`
    are verifiers, `NAME=VERIFIER` or `NAME=FOLDER` with the scripts of VNN-COMP. The seed is drawn unless
    given; with `pick`, so many instances of each category are drawn by it. An existing file is never
    overwritten.

    >>> made = dokimos.init_edition("cup", ["tiny"], ["reference"], year=2026, seed=1)
    >>> [category.name for category in made.categories], made.settings.prepare_seconds
    (['tiny'], 600.0)
    """
    place = Path(folder)
    if (place / EDITION).exists():
        raise InputError(f"{place / EDITION}: already exists; edit it, or choose another folder.")
    by_name: dict[str, Path] = {}
    for given in categories:
        if Path(given).exists():
            for each in benchmark_folders(Path(given)):
                by_name.setdefault(benchmark_name(each), each)
        else:
            by_name.setdefault(str(given), read_suite(given).folder)
    listed = [Category(called, _seen_from(place, path), pick=pick) for called, path in by_name.items()]
    when = datetime.now(UTC).year if year is None else year
    drawn = secrets.randbelow(2**31) if seed is None else seed
    text = edition_text(name or place.name, when, drawn, listed, [_tool(place, given) for given in tools])
    write_whole(place / EDITION, text, what="the edition")
    return _read_edition(place)


def _seen_from(folder: Path, path: Path) -> str:
    """A path as the edition's file names it: relative to its folder."""
    found = os.path.relpath(path.absolute(), folder.absolute())
    return found if found.startswith("..") else f"./{found}"


def _tool(folder: Path, given: str) -> EditionTool:
    name, _, verifier = given.partition("=")
    kind, equals, place = (verifier or name).partition("=")
    if not equals and Path(kind, "run_instance.sh").is_file():
        kind, equals, place = "vnncomp", "=", kind
    if equals and Path(place).exists():
        place = _seen_from(folder, Path(place))
    return EditionTool(name, f"{kind}{equals}{place}")


def read_edition(folder: str | Path) -> Edition:
    """Read the edition in a folder, with its overrides.

    >>> [tool.verifier for tool in dokimos.read_edition("cup").tools]
    ['reference']
    """
    return _read_edition(Path(folder))


def run_edition(
    folder: str | Path,
    *,
    dask: str | None = None,
    trust: bool = False,
    progress: ProgressCallback[object] = ignore,
) -> tuple[Campaign, ...]:
    """Run every tool on every category: `dokimos edition run`. The same call again continues.

    Each category is a campaign of its own, in `runs/`. A tool is told the name of the category, may prepare
    itself under a limit of its own, and is ended when the grace after the limit is over; it gets copies of
    the two files of an instance and nothing of what is known of it. `results/` has what is recorded, in
    the competition's layout. With `dask`, runs are spread over a cluster.

    >>> (campaign,) = dokimos.run_edition("cup")
    >>> len(campaign.records), campaign.planned
    (2, 2)
    """
    edition = _read_edition(Path(folder))
    settings = replace(edition.settings, dask=dask, trust=trust)
    done = []
    for category in edition.categories:
        campaign = run_suites(
            [edition.suite(category)],
            [_verifier(tool, category) for tool in edition.tools],
            edition.runs(category),
            settings=settings,
            again=False,
            progress=lambda update, name=category.name: progress(  # type: ignore[misc]
                replace(update, stage=f"running {name}")
            ),
        )
        write_results(edition, category, campaign)
        done.append(campaign)
    return tuple(done)


def _verifier(tool: EditionTool, category: Category) -> Verifier:
    (found,) = chosen_verifiers(tool.verifier)
    told = found.for_category(category.name)
    return told if told.name == tool.name else told.named(tool.name)


@dataclass(frozen=True, repr=False)
class ScoredEdition(Brief, Table):
    """An edition with the verdict on every run, its tables, and what the checker says of certificates."""

    findings: EditionFindings

    @property
    def judged(self) -> JudgedCampaigns:
        """The judged runs; marks that the organisers set by hand are in place."""
        return self.findings.judged

    @property
    def tables(self) -> tuple[TableRows, ...]:
        """All tables: ranking, scores, counts, penalties, fastest, proofs, overrides."""
        return edition_tables(self.findings)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each place in the ranking."""
        ranking = self.tables[0]
        return [dict(zip(ranking.columns, row, strict=True)) for row in ranking.rows]


def score_edition(
    folder: str | Path, *, jobs: int | None = None, progress: ProgressCallback[None] = ignore
) -> ScoredEdition:
    """Judge every answer of an edition and score it: `dokimos edition score`.

    The first rule set of the edition ranks. What an edition has recorded so far is scored; certificates
    that tools handed in with `unsat` are checked.

    >>> dokimos.score_edition("cup", jobs=1).tables[0].rows[0]
    ('regular', 'vnncomp2026', 1, 'reference', '100.0', 20)
    """
    edition = _read_edition(Path(folder))
    processes = default_jobs() if jobs is None else jobs
    judged: list[JudgedCampaign] = []
    for category in edition.categories:
        if not (edition.runs(category) / "manifest.json").exists():
            continue

        def told(done: int, total: int, what: str, name: str = category.name) -> None:
            progress(ProgressUpdate(f"judging {name}", done, total, what, None))

        one = judge_campaigns(
            [edition.runs(category)],
            suites=[],
            rules=edition.rules,
            jobs=processes,
            judged=told,
        )
        judged += one.campaigns
    if not judged:
        raise InputError(f"{folder}: nothing has been run yet; start with `dokimos edition run`.")
    certificates = tuple(found for one in judged for found in handed_in(one))
    marked = overridden(JudgedCampaigns(tuple(judged)), edition.overrides)
    return ScoredEdition(EditionFindings(edition, marked, certificates))


def publish_edition(
    folder: str | Path,
    *,
    out: str | Path,
    jobs: int | None = None,
    progress: ProgressCallback[None] = ignore,
) -> ScoredEdition:
    """Write everything that an edition publishes into a new folder `out`: `dokimos edition publish`.

    `index.html` and a page for each category and tool, which need no server; `results/` in the
    competition's layout; `tables/` as CSV, Markdown and LaTeX; `figures/` as SVG; `cards/` of the tools;
    and the edition's file with its overrides.

    >>> _ = dokimos.publish_edition("cup", out="site", jobs=1)
    >>> sorted(path.name for path in Path("site").iterdir())[:3]
    ['cards', 'category-tiny.html', 'edition.toml']
    """
    place, source = Path(out), Path(folder)
    if place.exists() and any(place.iterdir()):
        raise InputError(f"{place}: is not empty; choose a new folder for `out`.")
    scored = score_edition(source, jobs=jobs, progress=progress)
    found = scored.findings
    cards = {tool.name: tool_card(tool, chosen_verifiers(tool.verifier)[0]) for tool in found.edition.tools}
    write_site(found, cards, place)
    for name, text in cards.items():
        write_whole(place / "cards" / f"{name}.md", text, what="the card")
    for name, text in table_texts(scored.tables):
        write_whole(place / "tables" / name, text, what="the table")
    for figure in edition_figures(found):
        drawing = figure.standalone(drawing_style())
        write_whole(place / "figures" / f"{figure.name}.svg", drawing, what="the drawing")
    for name in (EDITION, OVERRIDES):
        if (source / name).is_file():
            shutil.copyfile(source / name, place / name)
    shutil.copytree(source / RESULTS, place / RESULTS)
    return scored


# The card of a tool


def tool_card(tool: EditionTool, verifier: Verifier) -> str:
    """A card in Markdown: what the tool is, how it is called, and what it claims."""
    facts = {
        "version": verifier.version() or "not installed here",
        "licence": tool.licence or "not stated",
        "how it is called": f"--verifier {tool.verifier}",
        "semantics that it claims": tool.semantics or "not stated",
        "kinds of evidence": ", ".join(style.value for style in verifier.styles),
        "operators that it does not read": verifier.unread_operators or "not known",
        "VNN-LIB 2.0": "read" if verifier.reads_vnnlib2 else "converted to 1.0 for it",
        "limitations": verifier.limitations or "none stated",
        "address": tool.address or "not stated",
    }
    lines = [f"- **{name}**: {markdown_text(said)}" for name, said in facts.items()]
    lines = [f"# {markdown_text(tool.name)}", "", *lines, ""]
    return "\n".join(lines)


# The database of labels: fill it, ask it, and make suites of what it knows about your own files


_YEARS = re.compile(r"(\d{4})?(-?)(\d{4})?")


@dataclass(frozen=True, repr=False)
class FoundLabels(Brief, Table):
    """Records of the database, in the order of their keys."""

    labels: tuple[KeptLabel, ...]

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each label, with the first place where its instance occurs."""
        return [
            {
                "key": one.key[:12],
                "label": printable(one.label),
                "proof": printable(one.kind),
                "margin": one.margin,
                "inputs": one.inputs,
                "operators": printable(" ".join(one.operators)),
                "benchmark": printable(one.seen[0].benchmark) if one.seen else "",
                "instance": printable(one.seen[0].instance) if one.seen else "",
                "answers": len(one.answers),
            }
            for one in self.labels
        ]


def add_labels(
    suites: SuiteSource | Sequence[SuiteSource],
    *,
    database: str | Path | None = None,
    year: int = 0,
    progress: ProgressCallback[object] = ignore,
) -> FoundLabels:
    """Keep the labels of suites in the database: `dokimos db add`.

    `database` is its folder (default: in Dokimos' home), or one file to pass on, NAME.jsonl.gz; such a file
    may also stand among the suites: then its records are taken over. Instances without a label that is
    proven now are left out; copies of an instance under other names are one record.

    >>> len(dokimos.add_labels("tiny", database="db").labels)
    2
    """
    store = Database.at(None if database is None else Path(database))
    found: dict[str, KeptLabel] = {}
    now = datetime.now(UTC).date().isoformat()
    for each in [suites] if isinstance(suites, str | Path | Suite) else suites:
        records = []
        if not isinstance(each, Suite) and Path(each).is_file() and Database.at(Path(each)).is_packed:
            records = list(Database(Path(each)))
        else:
            suite = read_suite(each)
            for done, entry in enumerate(suite, start=1):
                seen = Seen(benchmark_name(suite.folder), entry.name, year)
                if exists(entry.truth_path) and check_entry(entry).is_proven:
                    records.append(record_of(entry, seen, found=now))
                progress(ProgressUpdate("keeping labels", done, len(suite), entry.name, None))
        found |= {kept.key: kept for kept in store.keep(records)}
    return FoundLabels(tuple(found.values()))


def keep_audited(judged: JudgedCampaigns, *, database: Path | None = None) -> int:
    """Keep the labels of audited instances with what each tool answered; returns how many.

    They are those of the benchmarks, and those that the audit keeps beside its campaign.
    """
    store, now, count = Database.at(database), datetime.now(UTC).date().isoformat(), 0
    for one in judged.campaigns:
        source = one.campaign.manifest.published
        year = 0 if source is None or source.year is None else source.year
        for name, folder in one.folders.items():
            for entry in _read_leniently(folder, leniently=True):
                beside = audited_label(one.campaign.folder, name, entry.name)
                labelled = entry if exists(entry.truth_path) else replace(entry, truth_path=beside)
                if not exists(labelled.truth_path) or not check_entry(labelled).is_proven:
                    continue
                answers = [
                    Said(run.verifier, year, run.answer.value, run.wall_seconds)
                    for run in one.campaign.records
                    if (run.suite, run.instance) == (name, entry.name)
                ]
                store.add(labelled, Seen(name, entry.name, year), answers, found=now)
                count += 1
    return count


def find_labels(
    *,
    database: str | Path | None = None,
    label: str = "",
    operators: Sequence[str] = (),
    years: str = "",
    benchmark: str = "",
) -> FoundLabels:
    """Ask the database of labels: `dokimos db find`.

    `label` is sat or unsat; `operators` must all occur in the network; `years` is such as 2025, 2023- or
    2021-2024; `benchmark` is the name of one in which the instance occurs.

    >>> [found.label for found in dokimos.find_labels(database="db", label="sat").labels]
    ['sat']
    """
    if label not in ("", "sat", "unsat"):
        raise InputError(f"`label` must be sat or unsat, not {label!r}.")
    from onnx.defs import get_all_schemas  # which only this needs

    first, last = _span(years)
    store = Database.at(None if database is None else Path(database))
    if database is not None and not exists(store.place):
        raise InputError(f"{store.place}: there is no such database; `dokimos db add` makes one.")
    every = list(store)
    known = {schema.name for schema in get_all_schemas()}.union(*(one.operators for one in every))
    for name in operators:
        if name not in known:
            near = did_you_mean(name, known)
            raise InputError(f"`operators` {name!r}: neither ONNX nor a kept network has one{near}.")
    return FoundLabels(
        tuple(
            one
            for one in every
            if (not label or one.label == label)
            and set(operators) <= set(one.operators)
            and (not years or any(first <= year <= last for year in one.years))
            and (not benchmark or benchmark in {seen.benchmark for seen in one.seen})
        )
    )


def _span(years: str) -> tuple[int, int]:
    found = _YEARS.fullmatch(years)
    if found is None or (years and not (found[1] or found[3])):
        raise InputError(
            f"`years` {years!r} is not a span of years; write it like 2025, 2023- or 2021-2024."
        )
    first = int(found[1] or 0)
    last = int(found[3]) if found[3] else 9999 if found[2] or not years else first
    return first, last


@dataclass(frozen=True, repr=False)
class ExportedLabels(Brief):
    """A suite of labelled instances, and what was left out of it, each with the reason."""

    suite: Suite | None
    left_out: tuple[tuple[str, str], ...]


def export_labels(
    labels: FoundLabels,
    suites: SuiteSource | Sequence[SuiteSource],
    *,
    out: str | Path,
    progress: ProgressCallback[object] = ignore,
) -> ExportedLabels:
    """Make a suite of the instances of your own files that these labels are about: `dokimos db export`.

    `suites` are benchmarks on this disk. Every label is proven again on your files; one whose proof does
    not hold for them, because they were exported otherwise, is left out.

    >>> found = dokimos.find_labels(database="db", label="unsat")
    >>> made = dokimos.export_labels(found, "tiny", out="mine")
    >>> len(made.suite), dokimos.check("mine").is_proven
    (1, True)
    """
    folder = Path(out)
    expect_new_or_empty(folder)
    wanted = {one.key: one for one in labels.labels}
    rows: list[tuple[str, str, float]] = []
    families: dict[str, str] = {}
    left_out: list[tuple[str, str]] = []
    given = [suites] if isinstance(suites, str | Path | Suite) else suites
    for suite in map(read_suite, given):
        for done, entry in enumerate(suite, start=1):
            try:
                kept = wanted.pop(key_of(entry), None)
            except InputError as error:
                left_out.append((entry.name, str(error)))
                continue
            if kept is not None and (problem := _write(entry, kept, folder)):
                left_out.append((entry.name, problem))
            elif kept is not None:
                rows.append(
                    (f"onnx/{entry.name}.onnx", f"vnnlib/{entry.name}.vnnlib", entry.timeout_seconds)
                )
                families[entry.name] = entry.family
            progress(ProgressUpdate("joining labels", done, len(suite), entry.name, None))
    if not rows:
        return ExportedLabels(None, tuple(left_out))
    write_rows(folder, rows, families, recipe={"about": "labels of the database"}, version=__version__)
    return ExportedLabels(read_suite(folder), tuple(left_out))


def _write(entry: SuiteEntry, kept: KeptLabel, folder: Path) -> str:
    """Write the files and the truth of an instance, if the proof holds for them; otherwise why not."""
    places = folder / "onnx" / f"{entry.name}.onnx", folder / "vnnlib" / f"{entry.name}.vnnlib"
    truth = folder / "truth" / f"{entry.name}.json"
    for place, path in zip(places, (entry.network_path, entry.property_path), strict=True):
        write_whole(place, read_content(path))
    write_whole(truth, strict_json.write(truth_for(kept, entry.read_instance())))
    copied = replace(entry, network_path=places[0], property_path=places[1], truth_path=truth)
    checked = check_entry(copied)
    if not checked.is_proven:
        for path in (*places, truth):
            path.unlink()
    return checked.problem
