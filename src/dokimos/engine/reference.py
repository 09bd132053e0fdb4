"""The reference engine: branch and bound that answers `unsat` and `sat` only with a checked proof."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dokimos.checker.base import Problem, Proven
from dokimos.checker.linear.proof import LinearProof
from dokimos.core.errors import InvalidProof
from dokimos.engine.linear import LinearSearch
from dokimos.engine.outcome import ReachedLimit, SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.instance import Answer, Certificate
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.violation import violation_at


@dataclass(frozen=True)
class Decision:
    """An answer with what proves it: a certificate with its margins for `unsat`, a witness for `sat`.

    For `timeout`, `end` is what ended the search.
    """

    answer: Answer
    certificate: Certificate | None = None
    witness: Point | None = None
    detail: str = ""
    proven: Proven | None = None
    end: ReachedLimit | None = None


def computed_at(witness: Point, network_file: Path) -> list[float]:
    """What a runtime computes at a witness, in the network's own type of floats."""
    from dokimos.engine.runtimes.sessions import Replayer

    network = Replayer(network_file.read_bytes(), name=str(network_file))
    outputs: list[float] = network(np.array([[float(x) for x in witness]], dtype=network.dtype))[0].tolist()
    return outputs


def decide(
    network: Network,
    asked: Property,
    *,
    seconds: float,
    clock: Callable[[], float] = time.process_time,
) -> Decision:
    """Decide a property within so many CPU seconds, or seconds of another clock.

    It answers `unsat` only if the checker has accepted the certificate, on the given network and property;
    `sat` only if the witness has been replayed exactly. Raises InputError if property and network do not
    fit together.
    """
    effort, found = SearchEffort(seconds, clock=clock), list[Point]()

    def settles(point: Point) -> bool:
        try:
            if violation_at(network, asked, point).violates is True:
                found.append(point)
        except Undecided:
            pass
        return bool(found)

    def decision(answer: Answer, detail: str = "", **fields: object) -> Decision:
        parts = f"{effort.steps} {'part was' if effort.steps == 1 else 'parts were'} examined"
        return Decision(answer, detail=f"{detail}; {parts}" if detail else parts, **fields)  # type: ignore[arg-type]

    questions = asked.questions()
    if not questions:
        return Decision(Answer.UNSAT, detail="every input set is empty")
    if any(settles(point) for box, _ in questions for point in (box.centre, box.lower, box.upper)):
        return decision(Answer.SAT, witness=found[0])
    try:
        search = LinearSearch(network, asked, effort, settles).run()
        if search.settled:
            return decision(Answer.SAT, witness=found[0])
        if search.data is None:
            is_over = effort.end is not None
            answer = Answer.TIMEOUT if is_over else Answer.UNKNOWN
            return decision(answer, search.reason, end=effort.end)
        proven = LinearProof().prove(Problem(network, asked), search.data)
    except InvalidProof as error:
        return decision(Answer.UNKNOWN, str(error).rstrip("."))
    return decision(Answer.UNSAT, certificate=Certificate(LinearProof.name, search.data), proven=proven)
