"""Checks a label: `python -m dokimos.judging.label_process RESULT NAME NETWORK PROPERTY TRUTH`.

Writes a `ProofFinding` to RESULT, in JSON. It can also check one after another (see `warm_queries.py`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.files import write_whole
from dokimos.core.strict_json import write
from dokimos.engine.runtimes.cross_check import cross_check
from dokimos.judging.checked_entry import check_entry
from dokimos.suites.entry import SuiteEntry
from dokimos.verifiers.runners.warm_queries import serve


@dataclass(frozen=True)
class ProofFinding:
    """What is wrong with a label: `problem` is empty if it is proven and no runtime contradicts the
    network's exact values. `not_compared` says why no runtime could be compared."""

    problem: str
    not_compared: str = ""


def main(result: str, name: str, network: str, property_: str, truth: str) -> None:
    """Prove the label again by the shipped kinds of proof, cross-check it, and write the result."""
    entry = SuiteEntry(
        name=name,
        network_path=Path(network),
        property_path=Path(property_),
        timeout_seconds=1.0,
        family="",
        truth_path=Path(truth),
    )
    problem = check_entry(entry).problem
    known = None if problem else entry.read_truth()
    finding = ProofFinding(problem)
    if known is not None:
        compared = cross_check(entry.read_instance(), known)
        finding = ProofFinding(compared.contradiction, "" if compared.is_done else compared.remark)
    write_whole(Path(result), write(finding))


if __name__ == "__main__":
    serve(lambda: main(*sys.argv[1:]))
