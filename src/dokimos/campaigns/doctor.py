"""Tries a verifier on two tiny queries, which are run as in a campaign."""

from __future__ import annotations

import shlex
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from dokimos.campaigns.job import JobTask, perform
from dokimos.campaigns.plan import Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.suites.answers import Answer
from dokimos.verifiers.base import Finding, Verifier
from dokimos.verifiers.runners.command_line_smoke import (
    QUERIES,
    TIMEOUT_SECONDS,
    write_network,
    write_property,
)

_FAILURES = (Answer.ERROR, Answer.UNSUPPORTED)


def try_out(verifier: Verifier, settings: RunSettings | None = None) -> tuple[Finding, ...]:
    """Its answers to one query that is `sat` and one that is `unsat`; stops at the first problem.

    Answering neither of them is a problem as well.
    """
    settings = replace(settings or RunSettings(), timeout_seconds=None)
    findings: list[Finding] = []
    any_answered = False
    run = f"dokimos run disjuncts --verifier {shlex.quote(verifier.called_as)} --out tried"
    again = f"{run} keeps complete logs in tried/logs"
    tool = Tool(verifier.name, verifier.version() or "")
    with tempfile.TemporaryDirectory(prefix="dokimos-") as name:
        folder = Path(name)
        network, asked, log = folder / "smoke.onnx", folder / "smoke.vnnlib", folder / "log"
        write_network(network)
        for bound, expected in QUERIES:
            write_property(asked, bound)
            record = perform(
                JobTask(
                    job=expected,
                    suite="smoke",
                    instance="smoke",
                    family="smoke",
                    tool=tool,
                    repeat=0,
                    limits=settings.limits(TIMEOUT_SECONDS),
                    network_name=network.name,
                    property_name=asked.name,
                    origin=asked,
                    settings=settings,
                ),
                verifier,
                network=network.read_bytes(),
                property_=asked.read_bytes(),
                work=folder,
                log=log,
                cancel=threading.Event(),
            )
            said = f"on a tiny query that is {expected}, it answers {record.answer.value}"
            is_wrong = record.answer.decides and record.answer.value != expected
            if is_wrong or record.answer in _FAILURES:
                detail = f": {' '.join(record.detail.split())}" if record.detail else ""
                return (*findings, Finding(f"{said}{detail}", False, f"read its message; {again}"))
            any_answered |= record.answer.decides
            findings.append(Finding(said, True))
    if not any_answered:
        remedy = "look in its log for why it decides nothing"
        return (*findings, Finding("it decided neither of the two queries", False, f"{remedy}; {again}"))
    return tuple(findings)
