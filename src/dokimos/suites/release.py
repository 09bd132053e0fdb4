"""Puts the contents of a suite's release into a folder."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import contained, expect_room, write_whole
from dokimos.core.readable import printable_json
from dokimos.core.tables import TableRows
from dokimos.suites.card import CARD, Publication, suite_card
from dokimos.suites.entry import exists
from dokimos.suites.folder import (
    Suite,
    instances_table,
    read_suite,
    read_suite_file,
)
from dokimos.suites.instance import Semantics, sha256

# Checksums of a folder, and one archive of it whose bytes depend on its contents alone


CHECKSUMS = "SHA256SUMS"


def files_in(folder: Path) -> Iterator[Path]:
    """All files below a folder, in the order of their paths."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def write_checksums(folder: Path) -> None:
    """Write a file that `sha256sum -c` reads, with every other file of the folder."""
    lines = (
        f"{sha256(path.read_bytes())}  {path.relative_to(folder).as_posix()}\n"
        for path in files_in(folder)
        if path.name != CHECKSUMS
    )
    write_whole(folder / CHECKSUMS, "".join(lines), what="the list of checksums")


def write_archive(folder: Path, name: str, to: Path) -> None:
    """Pack a folder under a name, without times or owners, and with default permissions."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in files_in(folder):
            content = path.read_bytes()
            member = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    write_whole(to, packed.getvalue(), what="the archive")


# CITATION.cff: how to cite a release, in the format that code hosts display


CITATION = "CITATION.cff"


def citation(published: Publication) -> str:
    """The file, in Citation File Format 1.2.0. Texts are quoted as in JSON, which YAML also reads."""
    lines = [
        "cff-version: 1.2.0",
        "message: If you use these instances, please cite them as below.",
        "type: dataset",
        f"title: {_quoted(published.title)}",
        "authors:",
        *(f"  - name: {_quoted(name)}" for name in published.authors),
        f"version: {_quoted(published.version)}",
        f"date-released: {published.date}",
        f"license: {_quoted(published.licence)}",
        *([f"url: {_quoted(published.url)}"] if published.url else []),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return printable_json(json.dumps(text, ensure_ascii=False))


# One table of all instances of a suite, for people and for programs that read metadata


TABLE = "labels.csv"
COLUMNS = {
    "instance": "the name of the instance",
    "family": "the family it belongs to",
    "network": "the file of the network",
    "property": "the file of the property",
    "timeout_seconds": "the time limit",
    "label": "sat, unsat, or empty if the label is not known",
    "proof": "the kind of proof of the label",
    "proven_real": "whether the label is proven over the reals",
    "proven_float32": "whether the label is proven in float32",
    "network_sha256": "the hash of the network",
    "property_sha256": "the hash of the property",
}
"""What each column contains."""


def labels_table(suite: Suite) -> TableRows:
    """The table; paths are relative to the suite's folder."""
    rows = []
    for entry in suite.entries:
        truth = entry.read_truth()
        known = (
            ("", "", "", "")
            if truth is None
            else (
                truth.label.value,
                truth.certificate.kind,
                *(str(truth.holds_in(each)).lower() for each in (Semantics.REAL, Semantics.FLOAT32)),
            )
        )
        files = (
            path.relative_to(suite.folder).as_posix() for path in (entry.network_path, entry.property_path)
        )
        rows.append(
            (
                entry.name,
                entry.family,
                *files,
                f"{entry.timeout_seconds:g}",
                *known,
                entry.network_sha256,
                entry.property_sha256,
            )
        )
    return TableRows("labels", tuple(COLUMNS), tuple(rows))


# Metadata in Croissant 1.0 (JSON-LD), which search engines and data set loaders read


METADATA = "croissant.json"
#: The vocabulary of the format, word for word as it asks for it.
_CONTEXT: dict[str, Any] = json.loads(
    (resources.files("dokimos.suites") / "croissant_context.json").read_bytes()
)


def croissant(suite: Suite, *, about: str, published: Publication, table: bytes) -> str:
    """The metadata of a release of a suite, whose table of instances has these bytes."""
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": published.title,
        "description": about,
        "license": published.licence,
        "version": published.version,
        "datePublished": published.date,
        "creator": [{"@type": "sc:Person", "name": name} for name in published.authors],
        **({"url": published.url} if published.url else {}),
        "citeAs": f"{', '.join(published.authors)}. {published.title}, version {published.version}.",
        **{f"rai:{name}": said for name, said in _responsible(suite).items()},
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": TABLE,
                "name": TABLE,
                "contentUrl": TABLE,
                "contentSize": f"{len(table)} B",
                "encodingFormat": "text/csv",
                "sha256": sha256(table),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "instances",
                "name": "instances",
                "description": "one record for each instance",
                "field": [_field(name, about_it) for name, about_it in COLUMNS.items()],
            }
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _responsible(suite: Suite) -> dict[str, str | list[str]]:
    """What Croissant's vocabulary for responsible AI asks, answered from the files alone."""
    made = read_suite_file(suite.folder)
    is_law = any("law" in entry.family for entry in suite.entries)  # which may be about models of people
    is_drawn = made is not None and bool(made.recipe.get("draw")) and not is_law
    labels = Counter(
        "without a label" if (truth := entry.read_truth()) is None else truth.label.value
        for entry in suite.entries
    )
    families = Counter(entry.family for entry in suite.entries)
    counted = ", ".join(f"{count} {label}" for label, count in sorted(labels.items()))
    from_families = ", ".join(f"{count} of {name}" for name, count in families.most_common(10))
    drawn = "Networks and properties were drawn by the program Dokimos from the recipe in suite.json."
    taken = "Networks and properties are those that the authors of the benchmark made or collected."
    nobody = "None: nothing was taken from people."
    unknown = "Not examined: properties may be about records of the data that the authors used."
    return {
        "dataCollection": drawn if is_drawn else taken,
        "dataCollectionType": ["Synthetic" if is_drawn else "Others"],
        "dataAnnotationProtocol": [
            "A label is written only with a proof that an exact checker accepts from the files alone, and "
            "is compared with what onnxruntime computes; without a proof, an instance has no label."
        ],
        "dataBiases": [f"By label: {counted}. By family: {from_families}."],
        "dataLimitations": [
            "A label holds under the semantics for which labels.csv calls it proven: over the reals, in "
            "float32, or both."
        ],
        "dataUseCases": ["Testing the soundness, the completeness and the speed of verifiers."],
        "personalSensitiveInformation": [nobody if is_drawn else unknown],
        "dataReleaseMaintenancePlan": "A version never changes (SHA256SUMS); corrections get a new one.",
    }


def _field(name: str, about: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"instances/{name}",
        "name": name,
        "description": about,
        "dataType": "sc:Float" if name == "timeout_seconds" else "sc:Text",
        "source": {"fileObject": {"@id": TABLE}, "extract": {"column": name}},
    }


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
            suite,
            about=about or f"{len(suite.entries)} instances of neural-network verification",
            published=published,
            table=table,
        ),
        CITATION: citation(published),
    }
    for name, content in contents.items():
        write_whole(suite.folder / name, content)
    write_checksums(suite.folder)


# Takes the folders of a machine out of a text that is published


#: Where people keep files and programs, and where temporary ones go. Folders of the system itself, such as
#: /usr and /dev, say nothing about a machine, and scripts need them.
_PLACES = (
    "Users|Volumes|app|builds?|cluster|content|data|github|home|media|mnt|nfs|opt|private|project|projects|"
    "root|scratch|srv|storage|tmp|var|work|workspaces?"
)
#: An absolute path in such a place; the last name is kept. Nothing that stands within a longer path or an
#: address matches; after a line break that is spelled out, as in JSON, one begins.
_PATH = re.compile(
    rf"(?:(?<![\w./\\~+%-])|(?<=\\[nrt]))/(?:{_PLACES})/(?:[^\s\"'<>|:;,()\\/&]+/)*(?=[^\s\"'<>|:;,()\\/&])"
)


def without_folders(text: str) -> str:
    """The text with absolute paths shortened to their last name.

    >>> without_folders('File "/home/me/runs/a.vnnlib", line 1; see https://example.org/home/b')
    'File "a.vnnlib", line 1; see https://example.org/home/b'
    """
    return _PATH.sub("", text)


def expect_release_room(suite: Suite, folder: Path, archive: Path) -> None:
    """Raise InputError unless the folder and the archive can be made without losing anything."""
    expect_room(folder)
    if archive.exists():
        raise InputError(f"{archive} is already there; choose another `out`, or remove it first.")
    if folder.resolve().is_relative_to(suite.folder.resolve()):
        raise InputError(f"{folder} lies in the suite that is released; choose an `out` beside it.")
