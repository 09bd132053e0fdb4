"""Checks one label: `python -m dokimos.judging.label_process RESULT NAME NETWORK PROPERTY TRUTH`.

Writes what is the matter with the label to RESULT, as a string in JSON: empty where it is proven, and no
runtime contradicts the values that the network has as it is read here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dokimos.checker.entry import check_entry
from dokimos.core.files import write_whole
from dokimos.core.strict_json import write
from dokimos.crosscheck.cross_check import cross_check
from dokimos.suites.entry import SuiteEntry


def main(result: str, name: str, network: str, property_: str, truth: str) -> None:
    """Prove the label again by the shipped kinds of proof, cross-check it, and write what came of it."""
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
    if known is not None:
        problem = cross_check(entry.read_instance(), known).contradiction
    write_whole(Path(result), write(problem))


if __name__ == "__main__":
    main(*sys.argv[1:])
