"""Labels are checked before they count against a verifier.

A truth file is a claim. Before it makes an answer wrong, the checker proves the label again, from the
files, and the cross-check compares with the runtimes, in a separate process with 60 seconds of CPU time.
That process stays for the next label: to load what it needs takes longer than most proofs. The result is
kept in Dokimos' home, never beside the suite, under the hashes of the truth file, the network and the
property, and a hash of the code of Dokimos.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dokimos.campaigns.plan import CampaignInstance
from dokimos.core.errors import InputError
from dokimos.core.files import code_key, home, write_whole
from dokimos.core.readable import printable
from dokimos.core.strict_json import read, write
from dokimos.judging import label_process
from dokimos.judging.checked_entry import FAULT
from dokimos.judging.label_process import ProofFinding
from dokimos.suites.entry import read_content
from dokimos.suites.instance import sha256
from dokimos.verifiers.environments import ask_module
from dokimos.verifiers.execution.limits import Limits, Termination

if TYPE_CHECKING:
    from dokimos.judging.judged_campaign import JudgedCampaigns

_log = logging.getLogger("dokimos")
CPU_SECONDS = 60.0
#: On a busy machine, CPU time takes more wall-clock time.
_WALL_SECONDS = 900.0


class LabelStanding(Enum):
    """The result of checking a label."""

    PROVEN = "proven"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class LabelCheck:
    """The result of checking a label, and why it is not proven; `problem` is empty if it is.

    `not_compared` says why no runtime could be compared with the exact values, if none could.
    """

    standing: LabelStanding
    problem: str = ""
    not_compared: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether the label may count against a verifier."""
        return self.standing is LabelStanding.PROVEN

    @property
    def is_fault(self) -> bool:
        """Whether a bug of Dokimos is why nothing is known of the label."""
        return self.problem.startswith(FAULT)


def nobody_checks(*_instance: object) -> LabelCheck:
    """The label check to use when labels are not checked: they count against no verifier."""
    return LabelCheck(LabelStanding.NOT_CHECKED, "label checks are off")


class LabelledFiles(CampaignInstance, Protocol):
    """The files that the label of an instance is about."""

    @property
    def truth_path(self) -> Path:
        """Its truth file."""


@dataclass(frozen=True)
class _Finding:
    """A stored check: `cpu_seconds` is its limit."""

    standing: LabelStanding
    problem: str
    cpu_seconds: float
    not_compared: str = ""


class LabelChecker:
    """Checks labels, each once for the same files and code.

    `checked` is called after each check that was actually run, with the name of the instance.
    """

    def __init__(
        self,
        *,
        checked: Callable[[str, LabelCheck], None] | None = None,
        cpu_seconds: float = CPU_SECONDS,
    ) -> None:
        self._checked = checked
        self._cpu_seconds = cpu_seconds

    def __call__(self, instance: LabelledFiles) -> LabelCheck:
        """Whether the label of `instance` is proven; raises UnreadableFile if a file is not there."""
        place = _place(instance)
        kept = _kept(place)
        if kept is not None and (
            kept.standing is not LabelStanding.NOT_CHECKED or kept.cpu_seconds >= self._cpu_seconds
        ):
            return LabelCheck(kept.standing, kept.problem, kept.not_compared)
        found, is_lasting = _check(instance, self._cpu_seconds)
        if is_lasting:
            kept = _Finding(found.standing, found.problem, self._cpu_seconds, found.not_compared)
            _keep(place, kept)
        if self._checked is not None:
            self._checked(instance.name, found)
        return found


def _place(instance: LabelledFiles) -> Path:
    truth = sha256(read_content(instance.truth_path))
    parts = (code_key(), truth, instance.network_sha256, instance.property_sha256)
    return home() / "labels" / f"{sha256('|'.join(parts).encode())}.json"


def _kept(place: Path) -> _Finding | None:
    try:
        return read(place.read_bytes(), _Finding, file=place, what="a checked label")
    except (OSError, InputError):
        return None


def _keep(place: Path, finding: _Finding) -> None:
    try:
        write_whole(place, write(finding), what="the checked label")
    except InputError:
        return  # a home that cannot be written to costs time, and nothing else


def _check(instance: LabelledFiles, cpu_seconds: float) -> tuple[LabelCheck, bool]:
    """The checker's result in a separate process, and whether it would be the same again."""
    files = (instance.network_path, instance.property_path, instance.truth_path)
    with tempfile.TemporaryDirectory(prefix="dokimos-label-") as folder:
        result = Path(folder, "query", "result.json")
        outcome = ask_module(
            label_process.__name__,
            *(str(result), instance.name, *(str(path.absolute()) for path in files)),
            limits=Limits(wall_seconds=_WALL_SECONDS, cpu_seconds=cpu_seconds),
            folder=result.parent,
        )
        if outcome.termination is Termination.EXITED and outcome.exit_code == 0:
            finding = read(result.read_bytes(), ProofFinding, file=result, what="a finding")
            standing = LabelStanding.FAILED if finding.problem else LabelStanding.PROVEN
            return LabelCheck(standing, finding.problem, finding.not_compared), True
    if outcome.termination is Termination.CPU_LIMIT:
        problem = f"its proof takes more than {cpu_seconds:g} s of CPU time"
        return LabelCheck(LabelStanding.NOT_CHECKED, problem), True
    why = {
        Termination.WALL_LIMIT: "checking it took too long",
        Termination.MEMORY_LIMIT: "checking it took too much memory",
    }
    problem = why.get(outcome.termination, "the process that checked it ended early")
    return LabelCheck(LabelStanding.NOT_CHECKED, problem), False


def failed_label_in_words(suite: str, instance: str, problem: str) -> str:
    """A conspicuous sentence about a label that fails, or of which a bug leaves nothing known."""
    if problem.startswith(FAULT):
        return f"NO ANSWER ON {suite}/{instance} IS JUDGED: {problem.rstrip('.')}. Please report it."
    return (
        f"THE LABEL OF {suite}/{instance} FAILS: {problem.rstrip('.')}. It is not used to judge any "
        "answer; make the suite again, or run `dokimos check` on it."
    )


def warn_of_labels(judged: JudgedCampaigns) -> None:
    """Log a remark for each incomplete campaign, and for each label that no answer is judged by."""
    for (suite, instance), problem in judged.failed_labels.items():
        _log.warning("%s", printable(failed_label_in_words(suite, instance, problem)))
    for (suite, instance), problem in judged.unchecked_labels.items():
        _log.warning(
            "%s/%s: its label could not be checked, so no answer is judged by it: %s",
            suite,
            instance,
            problem,
        )
    for (suite, instance), why in judged.not_compared.items():
        _log.warning("%s/%s: its label is proven, but not cross-checked: %s", suite, instance, why)
    if left_out := len(judged.not_compared):
        checked = {(j.record.suite, j.record.instance) for j in judged.judgements if j.label_check}
        done = len(checked) - left_out
        _log.warning("%d of the %d checked labels are also cross-checked", done, len(checked))
    for one in judged.campaigns:
        if one.missing:
            _log.warning(
                "%s: %d of %d planned runs are missing; `dokimos run` continues with them",
                one.campaign.folder,
                one.missing,
                one.campaign.planned,
            )
    set_aside = Counter(one.plugin_proof for one in judged.judgements if one.plugin_proof)
    for proof, count in set_aside.items():
        runs = "1 run is" if count == 1 else f"{count} runs are"
        _log.warning(
            "%s unlabelled: the label is proven only by %s, which is never used against a verifier",
            runs,
            proof,
        )
