"""The database of labels: fill it, ask it, and make suites of what it knows about your own files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onnx.defs import get_all_schemas

from dokimos import __version__
from dokimos.api.suites import SuiteSource, read_suite
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import expect_new_or_empty, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.records import Table
from dokimos.core.registry import did_you_mean
from dokimos.judging.checked_entry import check_entry
from dokimos.judging.judge_instances import audited_label
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.suites.database import Database, KeptLabel, Said, Seen, key_of, record_of, truth_for
from dokimos.suites.entry import SuiteEntry, exists, read_content
from dokimos.suites.folder import Suite, benchmark_name
from dokimos.suites.folder import read_suite as _read_leniently
from dokimos.suites.suite_files import write_rows

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
                "label": one.label,
                "proof": one.kind,
                "margin": one.margin,
                "inputs": one.inputs,
                "operators": " ".join(one.operators),
                "benchmark": one.seen[0].benchmark if one.seen else "",
                "instance": one.seen[0].instance if one.seen else "",
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
    first, last = _span(years)
    every = list(Database.at(None if database is None else Path(database)))
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
