"""An instance without a label, settled by a certificate in a campaign's folder.

Either a verifier gave it for its `unsat`, or an audit found it while it looked at the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dokimos.campaigns.job import proof_path
from dokimos.campaigns.records import RunRecord
from dokimos.core.containment import contained
from dokimos.core.errors import InputError
from dokimos.judging.judge_instances import JudgedInstance
from dokimos.judging.label_checks import LabelCheck
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, exists


def settled(
    instance: JudgedInstance,
    runs: Sequence[RunRecord],
    folders: Sequence[Path],
    check_label: Callable[[JudgedInstance], LabelCheck],
) -> JudgedInstance:
    """The instance with the first certificate for it or its `runs` that is proven as its truth.

    The instance is returned unchanged if it has a truth file, or if no certificate is proven. `folders` are
    the campaigns'. Every certificate is checked as labels are; one that fails settles nothing.
    """
    if exists(instance.truth_path):
        return instance
    for place in certificates(runs, folders):
        with_proof = SuiteEntry(
            name=instance.name,
            network_path=instance.network_path,
            property_path=instance.property_path,
            timeout_seconds=instance.timeout_seconds,
            family=instance.family,
            truth_path=place,
        )
        try:
            if check_label(with_proof).is_proven:
                return with_proof
        except InputError:
            continue
    return instance


def audited_label(folder: Path, suite: str, instance: str) -> Path:
    """Where an audit keeps the label that it finds for an instance: in the folder of its campaign."""
    return contained(folder, f"labels/{suite}/{instance}.json")


def certificates(runs: Sequence[RunRecord], folders: Sequence[Path]) -> Iterator[Path]:
    """The certificates for these runs, all on one instance: an audit's, then those given for `unsat`."""
    for run in runs[:1]:
        for folder in folders:
            if exists(place := audited_label(folder, run.suite, run.instance)):
                yield place
    for run in runs:
        if run.answer is not Answer.UNSAT:
            continue
        for folder in folders:
            try:
                place = proof_path(folder, run.job.partition("@")[0])
            except InputError:
                continue
            if exists(place):
                yield place
