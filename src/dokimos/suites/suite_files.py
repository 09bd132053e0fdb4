"""Writing a suite: the files of its instances, and the index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import append_line, expect_new_or_empty, write_whole
from dokimos.core.strict_json import parse
from dokimos.suites.entry import FORMAT, SuiteForm
from dokimos.suites.instance import Certificate, Claim, LabelledInstance, Truth, sha256
from dokimos.suites.vnnlib.writer import exact_decimal


@dataclass(frozen=True)
class InstanceFiles:
    """An instance on disk: the contents of its three files, and its label by name."""

    name: str
    label: str
    network: bytes
    property: bytes
    truth: str | None


def files_of(labelled: LabelledInstance) -> InstanceFiles:
    """The files of an instance."""
    instance, truth = labelled.instance, labelled.truth
    origin = {
        "family": instance.family,
        "parameters": dict(instance.parameters),
        "seed": instance.seed,
    }
    return InstanceFiles(
        name=instance.name,
        label="" if truth is None else truth.label.value,
        network=instance.network_file,
        property=instance.property_file,
        truth=None if truth is None else dump_truth(truth, origin=origin),
    )


def store_files(folder: Path, files: InstanceFiles) -> None:
    """Write the files of one instance to their places in a suite's folder."""
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    write_whole(folder / "onnx" / f"{files.name}.onnx", files.network, what="the network")
    write_whole(folder / "vnnlib" / f"{files.name}.vnnlib", files.property, what="the property")
    if files.truth is not None:
        write_whole(folder / "truth" / f"{files.name}.json", files.truth, what="the truth file")


def write_index(
    folder: Path,
    listed: Sequence[tuple[str, str]],
    timeout_seconds: float,
    *,
    recipe: Mapping[str, Any],
    version: str,
    suite: str = "",
) -> None:
    """Write `instances.csv` and `suite.json` for instances (name, family) in this order.

    Shuffle them first, so that the order leaks nothing about the labels. `suite` is the name of a shipped
    suite.
    """
    rows = [(f"onnx/{name}.onnx", f"vnnlib/{name}.vnnlib", timeout_seconds) for name, _ in listed]
    write_rows(folder, rows, dict(listed), recipe=recipe, version=version, suite=suite)


def write_rows(
    folder: Path,
    rows: Sequence[tuple[str, str, float]],
    families: Mapping[str, str],
    *,
    recipe: Mapping[str, Any],
    version: str,
    suite: str = "",
) -> None:
    """Write `instances.csv` with these rows (network, property, seconds), and `suite.json`.

    `families` has the family of each instance by name; see `suites.folder.instance_name`.
    """
    lines = (f"{network},{property_},{seconds:g}\n" for network, property_, seconds in rows)
    write_whole(folder / "instances.csv", "".join(lines), what="the table of instances")
    form = SuiteForm(FORMAT, version, dict(recipe), dict(families), suite)
    write_whole(folder / "suite.json", strict_json.write(form), what="the suite's own file")


def dump_truth(truth: Truth, *, origin: Mapping[str, Any]) -> str:
    """The text of a truth file; `origin` says how the instance was made."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "label": truth.label.value,
        "semantics": {s.value: _dump_claim(c) for s, c in truth.claims.items()},
        "certificate": _dump_certificate(truth.certificate),
        "sha256": {"network": truth.network_sha256, "property": truth.property_sha256},
    }
    if truth.witness is not None:
        document["witness"] = [exact_decimal(x) for x in truth.witness]
    document["origin"] = dict(origin)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _dump_claim(claim: Claim) -> dict[str, Any]:
    out: dict[str, Any] = {"proven": claim.proven}
    if claim.margin is not None:
        out["margin"] = exact_decimal(claim.margin)
    if claim.ulps is not None:
        out["ulps"] = claim.ulps
    if claim.own is not None:
        out["label"] = claim.own.label.value
        out["certificate"] = _dump_certificate(claim.own.certificate)
        if claim.own.witness is not None:
            out["witness"] = [exact_decimal(x) for x in claim.own.witness]
    return out


def _dump_certificate(certificate: Certificate) -> dict[str, Any]:
    return {"kind": certificate.kind, "data": dict(certificate.data)}


# A suite in the making: kept beside its destination until complete, so that it can be continued


_JOURNAL = "done.jsonl"


class PartialSuite:
    """The folder `.NAME.KEY.part` beside `folder` with what is done so far; KEY identifies the recipe.

    Raises InputError if `folder` holds something else already.
    """

    def __init__(self, folder: Path, recipe: Mapping[str, Any], version: str) -> None:
        expect_new_or_empty(folder)
        self._folder, self._recipe, self._version = folder, recipe, version
        key = sha256(json.dumps([version, recipe]).encode())[:12]
        self._building = folder.parent / f".{folder.name}.{key}.part"
        if self._building.is_symlink():
            raise InputError(f"{self._building} is a link, which Dokimos does not make; remove it first.")
        try:
            self._building.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be created ({error.strerror}); choose another `out`."
            ) from None
        self.done: list[dict[str, Any]] = self._read()

    def _read(self) -> list[dict[str, Any]]:
        """The lines of the journal; a truncated last one is dropped."""
        journal = self._building / _JOURNAL
        if not journal.exists():
            return []
        text = journal.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        write_whole(journal, whole, what="the list of what is done")
        return [parse(line, file=journal) for line in whole.splitlines()]

    def write(self, place: str, content: bytes | str) -> None:
        """Write a file of the suite."""
        write_whole(self._building / place, content, what="a file of the suite")

    def add(self, line: Mapping[str, Any]) -> None:
        """Record what is done, once its files are written."""
        append_line(self._building / _JOURNAL, json.dumps(line), what="the list of what is done")
        self.done.append(dict(line))

    def finish(
        self, rows: Sequence[tuple[str, str, float]], families: Mapping[str, str], made: Mapping[str, Any]
    ) -> None:
        """Write the index and move the suite to its destination; `made` is added to suite.json's recipe."""
        write_rows(self._building, rows, families, recipe={**self._recipe, **made}, version=self._version)
        (self._building / _JOURNAL).unlink(missing_ok=True)
        if self._folder.exists():
            self._folder.rmdir()
        self._building.replace(self._folder)
