"""Our own verifier, as a process: ``python -m dokimos.verifiers.runners.reference``.

… --timeout SECONDS [--certificate FILE] NETWORK PROPERTY RESULT

RESULT is written as `dokimos.verifiers.results` reads it. With --certificate, the proof of an `unsat` is
kept there as JSON, of the kind and data that a truth file has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.core.errors import DokimosError, UnsupportedOp
from dokimos.networks.reading.path import read_onnx_file
from dokimos.networks.semantics.replay import Replayer
from dokimos.properties.decimal_text import exact_decimal
from dokimos.properties.path import read_vnnlib_file
from dokimos.properties.violation import require_fit
from dokimos.provers.reference import Decision, decide
from dokimos.suites.answers import Answer
from dokimos.verifiers.results import SCHEMA


def answer(network_file: Path, property_file: Path, *, seconds: float) -> Decision:
    """The decision, or why there is none."""
    try:
        network = read_onnx_file(network_file)
        asked = read_vnnlib_file(property_file)
        require_fit(network, asked)
        return decide(network, asked, seconds=seconds)
    except UnsupportedOp as error:
        return Decision(Answer.UNSUPPORTED, detail=f"operator {error.op}: {error.reason}")
    except DokimosError as error:
        return Decision(Answer.ERROR, detail=str(error))


def fields_of(decision: Decision, network_file: Path) -> dict[str, Any]:
    """The result file's object; its outputs are those that onnxruntime gives at the witness."""
    fields = {"schema": SCHEMA, "answer": decision.answer.value, "detail": decision.detail}
    if decision.witness is None:
        return fields
    network = Replayer(network_file.read_bytes(), name=str(network_file))
    point = np.array([[float(x) for x in decision.witness]], dtype=network.dtype)
    outputs = network(point)[0].tolist()
    return {
        **fields,
        "witness": [exact_decimal(x) for x in decision.witness],
        "outputs": [repr(y) for y in outputs],
    }


def main() -> None:
    """Answer the question on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("files", nargs=3, type=Path)
    options = parser.parse_args()
    network, asked, result = options.files
    decision = answer(network, asked, seconds=options.timeout)
    if options.certificate is not None and decision.certificate is not None:
        proof = {"kind": decision.certificate.kind, "data": dict(decision.certificate.data)}
        options.certificate.write_text(json.dumps(proof))
    draft = result.with_name(result.name + ".part")
    draft.write_text(json.dumps(fields_of(decision, network)))
    draft.replace(result)


if __name__ == "__main__":
    main()
