"""The card of a suite: one page, in Markdown, that says what it is and how its labels are proven."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from dokimos.core.errors import InputError
from dokimos.core.readable import markdown_code, markdown_text
from dokimos.suites.entry import SuiteEntry, SuiteForm
from dokimos.suites.folder import (
    Suite,
    benchmark_name,
    read_suite_file,
)
from dokimos.suites.instance import Semantics, Truth

CARD = "README.md"
"""The card's file name in a suite's folder."""


@dataclass(frozen=True)
class Publication:
    """What is not in the files: who publishes a suite, under which licence and name."""

    title: str = ""
    licence: str = ""
    authors: tuple[str, ...] = ()
    version: str = ""
    date: str = ""
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings:
    """What a release says of itself: see `dokimos.release`.

    `licence` must be given for a suite that Dokimos did not make, and `authors` for one that it does not
    ship. `published` is the date (default: today).
    """

    title: str | None = None
    licence: str | None = None
    authors: tuple[str, ...] = ()
    version: str = "1.0"
    published: str | None = None
    url: str = ""

    def __post_init__(self) -> None:
        named: object = self.authors
        object.__setattr__(self, "authors", (named,) if isinstance(named, str) else tuple(self.authors))


@dataclass(frozen=True)
class _Row:
    entry: SuiteEntry
    truth: Truth | None


def suite_card(
    suite: Suite, title: str, published: Publication | None = None, *, has_results: bool = False
) -> str:
    """The card of a suite, from its files alone.

    If it is `published`, the card also has a licence and a citation, and lists the files of a release,
    `results/` among them if there are any.
    """
    made = read_suite_file(suite.folder)
    rows = [_Row(entry, entry.read_truth()) for entry in suite.entries]
    labels = Counter("no label" if row.truth is None else row.truth.label.value for row in rows)
    about = markdown_text(str(made.recipe.get("about", ""))) if made is not None else ""
    lines = [
        f"# {markdown_text(title)}",
        "",
        *([f"{about[0].upper()}{about[1:]}.", ""] if about else []),
        f"{_count(len(rows), 'instance')} of neural-network verification in the layout of VNN-COMP: "
        + ", ".join(f"{count} {label}" for label, count in sorted(labels.items()))
        + ". An instance asks",
        "whether some input of a set has an unsafe output; `sat` means yes.",
        "",
        *_table(rows),
        "",
        "## Files",
        "",
        "- `instances.csv`: a network, a property and a time limit in seconds for each instance",
        "- `onnx/`, `vnnlib/`: the networks and the properties, for any tool that reads them",
        "- `truth/`: for each instance its label, the proof, and the hashes of both files; leave it out",
        "  for a blind evaluation",
        *(["- `suite.json`: how the suite was made"] if made is not None else []),
        *(_added_files(has_results=has_results) if published else []),
        "",
        "## How the labels are proven",
        "",
        *_proofs(rows, made),
    ]
    return "\n".join([*lines, *(_published(title, published) if published else []), ""])


def _added_files(*, has_results: bool) -> list[str]:
    results = "- `results/`: what verifiers answered: the page `report.html`, and its tables as CSV"
    return [
        "- `labels.csv`: one row for each instance: files, label, kind of proof, hashes",
        "- `croissant.json`: metadata in Croissant 1.0, with its fields for responsible AI",
        "- `CITATION.cff`: how to cite it",
        *([results] if has_results else []),
        "- `SHA256SUMS`: checksums of all other files, for `sha256sum -c SHA256SUMS`",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _table(rows: Sequence[_Row]) -> list[str]:
    groups: dict[tuple[str, str, str], list[Truth]] = {}
    unlabelled: Counter[str] = Counter()
    for row in rows:
        if row.truth is None:
            unlabelled[row.entry.family] += 1
        else:
            key = (row.entry.family, row.truth.label.value, row.truth.certificate.kind)
            groups.setdefault(key, []).append(row.truth)
    lines = [
        "| family | label | proof | instances | over the reals | in float32 |",
        "|---|---|---|---:|---:|---:|",
    ]
    for (family, label, kind), truths in sorted(groups.items()):
        shown = (Semantics.REAL, Semantics.FLOAT32)
        proven = [sum(truth.holds_in(semantics) for truth in truths) for semantics in shown]
        counts = f"{len(truths)} | {proven[0]} | {proven[1]}"
        lines.append(f"| {markdown_text(family)} | {label} | {markdown_code(kind)} | {counts} |")
    lines += [
        f"| {markdown_text(family)} | – | – | {count} | – | – |"
        for family, count in sorted(unlabelled.items())
    ]
    return lines


def _proofs(rows: Sequence[_Row], made: SuiteForm | None) -> list[str]:
    if all(row.truth is None for row in rows):
        return ["No instance has a label."]
    return [
        "Each label carries a certificate, which a small checker proves on the same files that a verifier",
        "reads, in exact rationals, rigorous balls or outward-rounded floats. With Dokimos installed:",
        "",
        "```",
        "dokimos check .",
        "```",
        "",
        "*Over the reals* means the network over the real numbers, *in float32* every float32 input,",
        "each node evaluated as written, sums in any order.",
        *(["", f"Made by Dokimos {markdown_text(made.dokimos)}."] if made is not None else []),
    ]


def _published(title: str, published: Publication) -> list[str]:
    who = markdown_text(", ".join(published.authors))
    what = ", ".join(part for part in (title, f"version {published.version}", published.date) if part)
    return [
        "",
        "## Licence and citation",
        "",
        f"Licence: {markdown_text(published.licence)}.",
        "",
        f"> {who}. {markdown_text(what)}.{f' {published.url}' if published.url else ''}",
    ]


# What a release says of itself


#: The default licence of suites that Dokimos made, which is its own.
OWN_LICENCE = "Apache-2.0"


#: The authors of a shipped suite, as CITATION.cff names them.
OWN_AUTHORS = "The Dokimos maintainers"


def publication(suite: Suite, settings: ReleaseSettings) -> Publication:
    """What a release says of itself, with what its suite adds; raises InputError if that is too little."""
    made = read_suite_file(suite.folder)
    title, licence, version, url = settings.title, settings.licence, settings.version, settings.url
    authors = settings.authors
    if licence is None and made is None:
        raise InputError(f"{suite.folder} was not made by Dokimos: give its `licence`, such as CC-BY-4.0.")
    if not authors and made is not None and made.suite:
        authors = (OWN_AUTHORS,)
    if not authors:
        raise InputError("A release names its authors; give them as `authors`.")
    day = settings.published or datetime.now(UTC).date().isoformat()
    try:
        date.fromisoformat(day)
    except ValueError:
        raise InputError(f"{day!r} is not a date; write it as 2026-01-31.") from None
    given = [text for text in (title, licence, version, *authors) if text is not None]
    if not all(text.strip() and text.isprintable() for text in given) or not url.isprintable():
        raise InputError("The title, licence, version, url and authors must be single lines of text.")
    if url and not re.match(r"https?://", url):
        raise InputError(f"`url` {url!r} is not an address; it must begin with https://.")
    name = title or (made and made.suite) or benchmark_name(suite.folder)
    return Publication(name, licence or OWN_LICENCE, tuple(authors), version, day, url)
