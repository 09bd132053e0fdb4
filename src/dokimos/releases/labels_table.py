"""One table of all instances of a suite, for people and for programs that read metadata."""

from __future__ import annotations

from dokimos.core.tables import TableRows
from dokimos.suites.folder import Suite
from dokimos.suites.instance import Semantics

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
                *(str(truth.claim(semantics).proven).lower() for semantics in Semantics),
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
