"""Our own verifier, as a process: ``python -m dokimos.verifiers.runners.reference_runner``.

… --timeout SECONDS [--certificate FILE] NETWORK PROPERTY RESULT

RESULT is written as `dokimos.verifiers.result_file` reads it. With --certificate, the label and the proof
of an `unsat` are written there, as in a truth file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from dokimos.core.errors import DokimosError, UnsupportedOp
from dokimos.engine.outcome import claims_of
from dokimos.engine.reference import Decision, computed_at, decide
from dokimos.suites.answers import Answer
from dokimos.suites.entry import read_content, read_onnx_file, read_vnnlib_file
from dokimos.suites.instance import Label, Truth, sha256
from dokimos.suites.suite_files import dump_truth
from dokimos.suites.vnnlib.model import require_fit
from dokimos.suites.vnnlib.writer import exact_decimal
from dokimos.verifiers.result_file import SCHEMA
from dokimos.verifiers.runners.warm_queries import serve


def answer(network_file: Path, property_file: Path, *, seconds: float) -> Decision:
    """The decision, or why there is none."""
    try:
        network = read_onnx_file(network_file)
        asked = read_vnnlib_file(property_file)
        require_fit(network, asked)
        return decide(network, asked, seconds=seconds, clock=time.monotonic)
    except UnsupportedOp as error:
        return Decision(Answer.UNSUPPORTED, detail=f"operator {error.op}: {error.reason}")
    except DokimosError as error:
        return Decision(Answer.ERROR, detail=str(error))


def fields_of(decision: Decision, network_file: Path) -> dict[str, Any]:
    """The content of the result file; its outputs are those of onnxruntime at the witness."""
    fields = {"schema": SCHEMA, "answer": decision.answer.value, "detail": decision.detail}
    if decision.witness is None:
        return fields
    outputs = computed_at(decision.witness, network_file)
    return {
        **fields,
        "witness": [exact_decimal(x) for x in decision.witness],
        "outputs": [repr(y) for y in outputs],
    }


def truth_text(decision: Decision, network_file: Path, property_file: Path) -> str:
    """The truth file of an `unsat` on these files."""
    assert decision.certificate is not None and decision.proven is not None
    truth = Truth(
        label=Label.UNSAT,
        claims=claims_of(decision.proven),
        certificate=decision.certificate,
        network_sha256=sha256(read_content(network_file)),
        property_sha256=sha256(read_content(property_file)),
    )
    return dump_truth(truth, origin={"labelled_by": "reference"})


def main() -> None:
    """Answer the query on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("files", nargs=3, type=Path)
    options = parser.parse_args()
    network, asked, result = options.files
    decision = answer(network, asked, seconds=options.timeout)
    if options.certificate is not None and decision.certificate is not None:
        options.certificate.write_text(truth_text(decision, network, asked))
    draft = result.with_name(result.name + ".part")
    draft.write_text(json.dumps(fields_of(decision, network)))
    draft.replace(result)


if __name__ == "__main__":
    serve(main)
