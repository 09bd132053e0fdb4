"""Runs one query on nnenum. Run by nnenum's own interpreter, with its sources on the path.

nnenum_runner.py NETWORK PROPERTY RESULT SECONDS PROCESSES
nnenum_runner.py --queries QUERIES REPLIES

It imports nothing of Dokimos. nnenum's front end reads the files, chooses the settings and writes one word;
it prints a counterexample only if it is short, so this script intercepts it. RESULT has the format of
`dokimos.verifiers.result_file`.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

#: nnenum's words, mapped to ours.
WORDS = {"holds": "unsat", "violated": "sat", "timeout": "timeout", "error": "error"}


def load() -> None:
    """Import its front end."""
    importlib.import_module("nnenum.nnenum")


def main() -> None:
    """Run the query, and save the answer."""
    front_end: Any = importlib.import_module("nnenum.nnenum")
    network, asked, result, seconds, processes = sys.argv[1:]
    found: list[Any] = []
    enumerate_network = front_end.enumerate_network

    def keeping(*arguments: Any, **named: Any) -> Any:
        found[:] = [enumerate_network(*arguments, **named)]
        return found[0]

    front_end.enumerate_network = keeping
    word = f"{result}.word"
    sys.argv[1:] = [network, asked, seconds, word, processes]
    front_end.main()
    said = Path(word).read_text().strip()
    witness = numbers(getattr(found[0], "cinput", None)) if found else None
    write(result, WORDS.get(said, "error"), said, witness, found)


def numbers(values: Any) -> list[str] | None:
    """Each number as the shortest decimal that gives the same float."""
    return None if values is None else [repr(float(value)) for value in values]


def write(result: str, answer: str, said: str, witness: list[str] | None, found: list[Any]) -> None:
    """The result file, whole or not at all."""
    is_sat = answer == "sat"
    document = {
        "schema": 1,
        "answer": answer,
        "witness": witness if is_sat else None,
        "outputs": numbers(getattr(found[0], "coutput", None)) if is_sat and found else None,
        "detail": f"nnenum says {said[:200]}",
    }
    draft = Path(f"{result}.part")
    draft.write_text(json.dumps(document))
    draft.replace(result)


if __name__ == "__main__":
    from warm_queries import serve

    serve(main, load)
