"""A verifier with a planted bug, as a process: ``python -m dokimos.verifiers.runners.planted``.

… --bug NAME [--truth FILE] [--timeout SECONDS] NETWORK PROPERTY RESULT

RESULT is written as `dokimos.verifiers.result_file` reads it. Without FILE, the truth is unknown.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dokimos.core.files import write_whole
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.vnnlib.writer import exact_decimal
from dokimos.verifiers.planted.base import answer_to
from dokimos.verifiers.planted.catalogue import PLANTED
from dokimos.verifiers.result_file import SCHEMA
from dokimos.verifiers.runners.warm_queries import serve


def main() -> None:
    """Answer the query on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bug", required=True)
    parser.add_argument("--truth", type=Path, default=Path())
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("files", nargs=3, type=Path)
    options = parser.parse_args()
    network, asked, result = options.files
    entry = SuiteEntry("instance", network, asked, options.timeout, "", options.truth)
    given = answer_to(PLANTED[options.bug], entry)
    witness = None if given.witness is None else [exact_decimal(x) for x in given.witness]
    fields = {"schema": SCHEMA, "answer": given.answer.value, "witness": witness, "detail": given.detail}
    write_whole(result, json.dumps(fields))


if __name__ == "__main__":
    serve(main)
