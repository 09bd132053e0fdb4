"""An instance without a label, settled by a certificate that a verifier gave for its `unsat`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from dokimos.campaigns.job import proof_path
from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import InputError
from dokimos.judging.label_checks import LabelCheck
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, exists


def settled_entry(
    entry: SuiteEntry,
    runs: Sequence[RunRecord],
    folders: Sequence[Path],
    check_label: Callable[[SuiteEntry], LabelCheck],
) -> SuiteEntry | None:
    """The entry with the first certificate of its `runs` that is proven as its truth; None without one.

    `folders` are those of the campaigns. A certificate is checked as labels are, whoever gave it; one that
    fails settles nothing.
    """
    for run in runs:
        if run.answer is not Answer.UNSAT:
            continue
        for folder in folders:
            try:
                place = proof_path(folder, run.job.partition("@")[0])
                settled = replace(entry, truth_path=place)
                if exists(place) and check_label(settled).is_proven:
                    return settled
            except InputError:
                continue
    return None
