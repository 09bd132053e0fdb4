"""Checks one label: `python -m dokimos.judging.label_process RESULT NAME NETWORK PROPERTY TRUTH`.

Writes what is the matter with the label to RESULT, as a string in JSON: empty where it is proven.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dokimos.checker.entry import check_entry
from dokimos.core.files import write_whole
from dokimos.core.strict_json import write
from dokimos.suites.entry import SuiteEntry


def main(result: str, name: str, network: str, property_: str, truth: str) -> None:
    """Prove the label again by the shipped kinds of proof, and write what came of it."""
    entry = SuiteEntry(
        name=name,
        network_path=Path(network),
        property_path=Path(property_),
        timeout_seconds=1.0,
        family="",
        truth_path=Path(truth),
    )
    write_whole(Path(result), write(check_entry(entry).problem))


if __name__ == "__main__":
    main(*sys.argv[1:])
