"""A planted verifier that is asked in this process, not in one that is started for each question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.hunting.asking import Asker
from dokimos.judging.node_bounds import Ends
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import LabelledInstance
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.catalogue import find
from dokimos.verifiers.execution.limits import Termination
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import Task
from dokimos.verifiers.planted.catalogue import PLANTED


class InProcess(Asker):
    """Asks a planted bug, its attack off if it can be; what it was asked is counted, and kept in memory."""

    def __init__(self, bug: str, *, jobs: int = 1) -> None:
        super().__init__(find(f"planted={bug}"), RunSettings(jobs=jobs), Path())
        self.bug = PLANTED[bug]
        if isinstance(self.bug, Attacker):
            self.bug = replace(self.bug, attacks=False)

    def ask(self, labelled: LabelledInstance) -> RunRecord:
        instance = labelled.instance
        key = instance.network_sha256 + instance.property_sha256
        if key not in self._known:
            self.asked += 1
            given = self.bug.answer(_task(labelled))
            self._known[key] = RunRecord(
                job=key[:24],
                suite="reduced",
                instance=instance.name,
                family=instance.family,
                verifier=self.verifier.name,
                verifier_version="1",
                repeat=0,
                answer=given.answer,
                witness=given.witness,
                detail=given.detail,
                termination=Termination.EXITED,
                exit_code=0,
                wall_seconds=0.0,
                cpu_seconds=0.0,
                peak_memory_bytes=0,
                log="",
                started_at="",
            )
        return self._known[key]

    def bounds_of(self, labelled: LabelledInstance, record: RunRecord) -> Mapping[str, Ends]:
        return self.bug.tensor_bounds(_task(labelled))


def _task(labelled: LabelledInstance) -> Task:
    instance, truth = labelled.instance, labelled.truth
    return Task(
        read_onnx(instance.network_file),
        read_vnnlib(instance.property_file, file=instance.name),
        truth.label if truth else None,
        truth.witness if truth else None,
        5.0,
    )
