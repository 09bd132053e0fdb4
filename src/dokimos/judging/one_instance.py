"""The answers of verifiers on one instance in any campaigns, with the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dokimos.campaigns.campaign import read_campaign
from dokimos.judging.judge_instances import JudgedInstance, judge_instance
from dokimos.judging.label_checks import LabelCheck
from dokimos.judging.settling import settled
from dokimos.judging.verdicts import Judgement
from dokimos.suites.entry import SuiteEntry


def judge_entry(
    entry: SuiteEntry, folders: Sequence[Path], check_label: Callable[[JudgedInstance], LabelCheck]
) -> tuple[Judgement, ...]:
    """The verdicts on every run on the files of `entry` in the campaigns in `folders`, in their order.

    Files are identified by their content, whatever the names of suite and instance in the campaign.
    """
    files = (entry.network_sha256, entry.property_sha256)
    runs = []
    for folder in dict.fromkeys(folders):
        campaign = read_campaign(folder)
        same = {
            (i.suite, i.name)
            for i in campaign.manifest.instances
            if (i.network_sha256, i.property_sha256) == files
        }
        runs += [run for run in campaign.records if (run.suite, run.instance) in same]
    if not runs:
        return ()
    instance = settled(entry, runs, folders, check_label)
    verdicts = judge_instance(
        instance,
        instance.read_truth(),
        runs,
        lambda _: "",
        check_label=partial(check_label, instance),
    )
    return tuple(verdicts)
