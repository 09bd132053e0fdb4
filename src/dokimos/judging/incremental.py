"""Judging a campaign while it grows: only new runs are judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dokimos.campaigns.glance import Glance, State, glance
from dokimos.campaigns.manifest import read_manifest, require_what_was_run
from dokimos.campaigns.records import RunRecord
from dokimos.core.brief import Brief
from dokimos.core.errors import DokimosError, InputError
from dokimos.judging.judge_instances import JudgedInstance, judge_all
from dokimos.judging.label_checks import LabelCheck, LabelChecker, LabelStanding, nobody_checks
from dokimos.judging.settling import settled
from dokimos.judging.suite_places import locate
from dokimos.judging.verdicts import Judgement, checked_labels, failed_label_in_words
from dokimos.suites.folder import read_suite


class IncrementalJudge:
    """A judge that remembers its judgements. An instance is judged again when its runs have changed, since
    a new witness may settle earlier answers.

    `folder` is the campaign's: a certificate that a verifier left there may also settle an instance.
    """

    def __init__(
        self,
        suites: Mapping[str, Sequence[JudgedInstance]],
        *,
        check_label: Callable[[JudgedInstance], LabelCheck] = nobody_checks,
        folder: Path | None = None,
    ) -> None:
        self._check_label = check_label
        self._folders = () if folder is None else (folder,)
        self._suites = {suite: {i.name: i for i in instances} for suite, instances in suites.items()}
        self._seen: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._judged: dict[tuple[str, str], tuple[Judgement, ...]] = {}
        self.problems: dict[tuple[str, str], str] = {}

    def judge(self, records: Sequence[RunRecord], *, at_most_seconds: float | None = None) -> bool:
        """Judge the records so far; returns whether all of them are judged, or the time ran out before.

        What cannot be judged, and labels that fail, are in `problems`, by suite and instance.
        """
        began = time.monotonic()
        groups: dict[tuple[str, str], list[RunRecord]] = {}
        for record in records:
            groups.setdefault((record.suite, record.instance), []).append(record)
        for key in self._seen.keys() - groups.keys():  # all its runs were set aside
            del self._seen[key]
            self._judged.pop(key, None)
            self.problems.pop(key, None)
        for key, group in groups.items():
            seen = [(record.job, record.started_at) for record in group]
            if self._seen.get(key) == seen:
                continue
            if at_most_seconds is not None and time.monotonic() - began > at_most_seconds:
                return False
            self._seen[key] = seen
            self._judge(key, group)
        return True

    def _judge(self, key: tuple[str, str], group: Sequence[RunRecord]) -> None:
        suite, name = key
        known = self._suites.get(suite, {}).get(name)
        try:
            instances = [] if known is None else [settled(known, group, self._folders, self._check_label)]
            self._judged[key] = judge_all(
                group,
                {suite: instances},
                reproduce=lambda _: "",
                check_label=self._check_label,
            )
            self.problems.pop(key, None)
            if failed := checked_labels(self._judged[key], LabelStanding.FAILED):
                self.problems[key] = failed_label_in_words(*key, failed[key])
        except DokimosError as error:
            self._judged.pop(key, None)
            self.problems[key] = str(error)

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """All judgements so far."""
        return tuple(judgement for group in self._judged.values() for judgement in group)


@dataclass(frozen=True, repr=False)
class WatchedCampaign(Brief):
    """A campaign at one moment: its progress, the verdicts so far, and remarks on what is not judged.

    `is_all_judged` says whether no recorded run is left to be judged at the next look.
    """

    glance: Glance
    judgements: tuple[Judgement, ...]
    remarks: tuple[str, ...]
    is_all_judged: bool = True

    @property
    def is_over(self) -> bool:
        """Whether the campaign is complete."""
        return self.glance.state is not State.RUNNING and self.is_all_judged


class CampaignWatcher:
    """Watches the campaign in a folder; it only reads.

    If its suites are not found (and `suites` does not say where they are), answers are not judged, and a
    remark says so.
    """

    def __init__(self, folder: Path, *, suites: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._problem = ""
        manifest = read_manifest(folder / "manifest.json")
        try:
            where = locate(manifest, suites)
            entries = {name: read_suite(place).entries for name, place in where.items()}
            require_what_was_run(manifest.instances, entries)
            self._judge = IncrementalJudge(entries, check_label=LabelChecker(), folder=folder)
        except InputError as error:
            if suites:
                raise
            self._problem = f"answers are not judged: {error}"
            self._judge = IncrementalJudge({})

    def look(self, *, at_most_seconds: float | None = None) -> WatchedCampaign:
        """The campaign now; judging what is new takes about `at_most_seconds` at most."""
        seen = glance(self._folder, datetime.now(UTC))
        if self._problem:
            return WatchedCampaign(seen, (), (self._problem,))
        is_all_judged = self._judge.judge(seen.records, at_most_seconds=at_most_seconds)
        judgements, remarks = self._judge.judgements, [*self._judge.problems.values()]
        if not is_all_judged:
            remarks.append(f"{len(judgements)} of {len(seen.records)} answers judged so far")
        return WatchedCampaign(seen, judgements, tuple(remarks), is_all_judged)
