"""Puts the contents of a suite's release into a folder."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from dokimos.core.containment import contained
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.releases.archive import write_checksums
from dokimos.releases.citation import CITATION, citation
from dokimos.releases.croissant import METADATA, croissant
from dokimos.releases.labels_table import TABLE, labels_table
from dokimos.suites.card import CARD, Publication, suite_card
from dokimos.suites.entry import exists
from dokimos.suites.folder import Suite, instances_table, read_suite, read_suite_file
from dokimos.suites.instance import sha256

#: Where results go in a release.
RESULTS = "results"


def copy_suite(suite: Suite, folder: Path) -> Suite:
    """Copy the files that a suite lists, its proofs and the table `instances.csv` into a new folder."""
    paths = {path for entry in suite.entries for path in (entry.network_path, entry.property_path)}
    root = suite.folder.resolve()
    for path in sorted(paths):
        if not path.resolve().is_relative_to(root):
            raise InputError(
                f"{suite.folder} has several networks in one property, or multiplies variables; such a "
                "suite cannot be released yet."
            )
        _copy(path, folder / path.resolve().relative_to(root))
    for entry in suite.entries:
        if exists(entry.truth_path):
            _copy(entry.truth_path, folder / "truth" / entry.truth_path.name)
    _copy(instances_table(suite.folder), folder / "instances.csv")
    if exists(own := contained(suite.folder, "suite.json")):
        _copy(own, folder / "suite.json")
    # Without a suite.json the family is the folder's name, and this folder's name may be temporary.
    families = {entry.name: entry.family for entry in suite.entries}
    copied = read_suite(folder)
    return replace(copied, entries=tuple(replace(e, family=families[e.name]) for e in copied.entries))


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise UnreadableFile(source, "there is no such file") from None


def describe(suite: Suite, published: Publication) -> None:
    """Write card, table, metadata, citation and checksums into the folder of a suite."""
    made = read_suite_file(suite.folder)
    about = str(made.recipe.get("about", "")) if made is not None else ""
    table = labels_table(suite).csv().encode()
    contents: dict[str, str | bytes] = {
        CARD: suite_card(suite, published.title, published, has_results=(suite.folder / RESULTS).is_dir()),
        TABLE: table,
        METADATA: croissant(
            about=about or f"{len(suite.entries)} instances of neural-network verification",
            published=published,
            table=table,
            table_sha256=sha256(table),
        ),
        CITATION: citation(published),
    }
    for name, content in contents.items():
        write_whole(suite.folder / name, content)
    write_checksums(suite.folder)
