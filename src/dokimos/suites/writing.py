"""Writing a suite: the files of its instances, and the index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos.core import strict_json
from dokimos.core.files import write_whole
from dokimos.properties.decimal_text import exact_decimal
from dokimos.suites.forms import FORMAT, SuiteForm
from dokimos.suites.instance import Claim, LabelledInstance, Truth


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
        "certificate": {"kind": truth.certificate.kind, "data": dict(truth.certificate.data)},
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
    return out
