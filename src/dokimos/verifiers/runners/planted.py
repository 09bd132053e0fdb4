"""A verifier with a planted bug, as a process: ``python -m dokimos.verifiers.runners.planted``.

… --bug NAME [--truth FILE] [--timeout SECONDS] [--no-attack] NETWORK PROPERTY RESULT

RESULT is written as `dokimos.verifiers.result_file` reads it. Without FILE, the truth is unknown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from dokimos.core.files import write_whole
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.vnnlib.writer import exact_decimal
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import Bounds, task_for
from dokimos.verifiers.planted.catalogue import PLANTED
from dokimos.verifiers.result_file import SCHEMA
from dokimos.verifiers.runners.warm_queries import serve


def main() -> None:
    """Answer the query on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bug", required=True)
    parser.add_argument("--truth", type=Path, default=Path())
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--no-attack", action="store_true")
    parser.add_argument("files", nargs=3, type=Path)
    options = parser.parse_args()
    network, asked, result = options.files
    entry = SuiteEntry("instance", network, asked, options.timeout, "", options.truth)
    bug = PLANTED[options.bug]
    if options.no_attack and isinstance(bug, Attacker):
        bug = replace(bug, attacks=False)
    task = task_for(entry)
    given = VerifierAnswer(Answer.ERROR, detail=task) if isinstance(task, str) else bug.answer(task)
    if given.answer is Answer.UNSAT and not isinstance(task, str):
        write_bounds(result.with_name("bounds.npz"), bug.tensor_bounds(task))
    witness = None if given.witness is None else [exact_decimal(x) for x in given.witness]
    fields = {"schema": SCHEMA, "answer": given.answer.value, "witness": witness, "detail": given.detail}
    write_whole(result, json.dumps(fields))


def write_bounds(path: Path, bounds: Mapping[str, Bounds]) -> None:
    """Write what is known of tensors, in the form that explains a wrong `unsat`."""
    if bounds:
        sides = {f"{name}/lower": ends[0] for name, ends in bounds.items()}
        sides |= {f"{name}/upper": ends[1] for name, ends in bounds.items()}
        np.savez(path, allow_pickle=False, **sides)


if __name__ == "__main__":
    serve(main)
