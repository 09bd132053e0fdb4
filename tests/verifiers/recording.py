"""Runs installed verifiers on tiny queries and keeps what they write: python -m tests.verifiers.recording X

Each recording is a folder recorded/<verifier>/<kind>/ with the log, the result file where there is one, and
outcome.json: how the process ended. Paths of the machine are replaced. ``X/kind`` records one kind only.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from dokimos.verifiers.base import Query, Verifier
from dokimos.verifiers.catalogue import installed
from dokimos.verifiers.execution.limits import Limits, Outcome, Termination
from dokimos.verifiers.execution.process import run_limited
from dokimos.verifiers.placed import RepositoryTool
from dokimos.verifiers.script_guard import allowed_environment

RECORDED = Path(__file__).with_name("recorded")
LOG_CHARACTERS = 3000


@dataclass(frozen=True)
class Question:
    network: bytes
    asked: bytes
    wall_seconds: float = 120
    #: What the verifier is told; the tree is stopped at `wall_seconds` only.
    told_seconds: float = 60


def dense(sizes: list[int], *, seed: int, scale: float = 1.0) -> bytes:
    """Gemm layers with bias and ReLUs between them."""
    rng = np.random.default_rng(seed)
    nodes, constants, last = [], [], "x"
    for k, (before, after) in enumerate(pairwise(sizes)):
        weights = np.round(rng.normal(size=(after, before)) * 16 * scale) / 16
        bias = np.round(rng.normal(size=after) * 16) / 16
        constants += [numpy_helper.from_array(weights.astype(np.float32), f"w{k}")]
        constants += [numpy_helper.from_array(bias.astype(np.float32), f"b{k}")]
        is_last = k == len(sizes) - 2
        out = "y" if is_last else f"h{k}"
        nodes.append(helper.make_node("Gemm", [last, f"w{k}", f"b{k}"], [out], transB=1))
        if not is_last:
            nodes.append(helper.make_node("Relu", [out], [f"r{k}"]))
        last = f"r{k}"
    return _model(nodes, constants, sizes[0], sizes[-1])


def odd() -> bytes:
    """An operator that no verifier knows."""
    return _model([helper.make_node("Hardmax", ["x"], ["y"])], [], 30, 30)


def swapped() -> bytes:
    """The inputs in the other order, by an index from the end, which NeuralSAT converts wrongly."""
    order = numpy_helper.from_array(np.array([-1, 0]), "order")
    return _model([helper.make_node("Gather", ["x", "order"], ["y"], axis=1)], [order], 2, 2)


def _model(nodes: list, constants: list, inputs: int, outputs: int) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, outputs])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def at_least(bound: str, *, inputs: int, outputs: int = 1) -> bytes:
    text = "".join(f"(declare-const X_{i} Real)\n" for i in range(inputs))
    text += "".join(f"(declare-const Y_{j} Real)\n" for j in range(outputs))
    text += "".join(f"(assert (>= X_{i} -1.0))\n(assert (<= X_{i} 1.0))\n" for i in range(inputs))
    return (text + f"(assert (>= Y_0 {bound}))\n").encode()


SMALL = dense([2, 3, 1], seed=3)
QUESTIONS: Mapping[str, Question] = {
    "sat": Question(SMALL, at_least("8.0", inputs=2)),
    "unsat": Question(SMALL, at_least("50.0", inputs=2)),
    "out-of-time": Question(
        dense([12, 40, 40, 1], seed=1), at_least("75.0", inputs=12), wall_seconds=150, told_seconds=8
    ),
    "stopped": Question(
        dense([12, 40, 40, 1], seed=1), at_least("75.0", inputs=12), wall_seconds=2, told_seconds=60
    ),
    "unknown-operator": Question(odd(), at_least("4.0", inputs=30, outputs=30)),
    "index-from-the-end": Question(swapped(), at_least("4.0", inputs=2, outputs=2)),
    "unreadable-property": Question(SMALL, b"unsat(\n"),
}


def ask(verifier: Verifier, question: Question, folder: Path) -> tuple[Query, Outcome, Path]:
    """Run the verifier in `folder`; the query, what happened, and the log."""
    (folder / "n.onnx").write_bytes(question.network)
    (folder / "p.vnnlib").write_bytes(question.asked)
    work = folder / "work"
    work.mkdir()
    query = Query(
        name="n",
        network_file=folder / "n.onnx",
        property_file=folder / "p.vnnlib",
        folder=work,
        wall_seconds=question.told_seconds,
        memory_bytes=4 << 30,
    )
    invocation = verifier.command(query)
    invocation.write_files(query.folder)
    outcome = run_limited(
        invocation.command,
        limits=Limits(wall_seconds=question.wall_seconds),
        log=folder / "log",
        cwd=work,
        environment={**allowed_environment(), "TMPDIR": str(work), **invocation.environment},
    )
    return query, outcome, folder / "log"


def record(name: str, kind: str) -> None:
    verifier = installed(name)
    target = recording(name, kind)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        query, outcome, log = ask(verifier, QUESTIONS[kind], Path(folder).resolve())
        given = verifier.answer(outcome, query, log)
        words = {str(Path(folder).resolve()): "/run", str(Path.home()): "/home"}
        if environment := getattr(verifier, "environment", None):
            words = {str(environment.folder): "/environment", **words}
        if isinstance(verifier, RepositoryTool):
            environment_folder = Path(verifier.python).parent.parent
            words = {str(environment_folder): "/environment", str(verifier.repository): "/tool", **words}
        root = str(Path(__file__).resolve().parents[2])
        for source in (log, query.result):
            if source.is_file():
                text = source.read_text(errors="replace")[-LOG_CHARACTERS:]
                for word, by in {**words, root: "/dokimos"}.items():
                    text = text.replace(word, by)
                (target / source.name).write_text(text)
    fields = {
        "termination": outcome.termination.value,
        "exit_code": outcome.exit_code,
        "wall_seconds": round(outcome.wall_seconds, 2),
        "detail": outcome.detail,
    }
    (target / "outcome.json").write_text(json.dumps(fields, indent=1) + "\n")
    print(name, kind, given.answer.value, given.witness, given.detail[:200], flush=True)


def recording(name: str, kind: str) -> Path:
    """The folder of a recording; a verifier's name may hold what a file's should not."""
    return RECORDED / name.replace(":", "-") / kind


def recorded_outcome(folder: Path) -> Outcome:
    """How a recorded process ended."""
    data = json.loads((folder / "outcome.json").read_text())
    return Outcome(
        Termination(data["termination"]), data["exit_code"], data["wall_seconds"], 0.0, 0, data["detail"]
    )


if __name__ == "__main__":
    for spelling in sys.argv[1:]:
        chosen, _, only = spelling.partition("/")
        for question_kind in [only] if only else QUESTIONS:
            record(chosen, question_kind)
