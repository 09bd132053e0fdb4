"""The judged campaign, from which `judge`, `explain`, `report` and the state page all start.

Campaigns that are shown together are judged together, so that all of these agree on every run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dokimos.campaigns.campaign import Campaign, read_campaign
from dokimos.campaigns.job import log_name, log_path
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.manifest import Manifest, PublishedSource, require_what_was_run
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import home
from dokimos.core.readable import Brief, size_in_words
from dokimos.core.records import Table, record_of
from dokimos.judging.bulk import JudgingTask, judge_tasks, locate_all
from dokimos.judging.judge_instances import JudgedInstance, judge_instance, settled
from dokimos.judging.label_checks import LabelCheck, LabelChecker, LabelStanding
from dokimos.judging.rules import RuleSet, default_rules, rule_sets
from dokimos.judging.verdicts import Judgement, checked_labels
from dokimos.judging.written_points import located, seen_from_here
from dokimos.suites.entry import SuiteEntry, truth_of
from dokimos.suites.facts import Facts, read_facts, read_truth_form
from dokimos.suites.folder import Suite, read_suite, shipped_names
from dokimos.verifiers.base import log_tail

if TYPE_CHECKING:
    import dokimos

# Families for published instances: by network, or by a pattern


BY_NETWORK = "network"

FamilyRule = Callable[[Path, RunRecord], str]
"""The family of a run, from the file of its network and from its record."""


def family_rule(words: str) -> FamilyRule:
    """How to group instances into families: by `network`, or by a regular expression on their names.

    The family is what the first group of the expression matches, or the whole match if it has no group; an
    instance that does not match keeps its own family. Raises InputError if the expression is invalid.
    """
    if words == BY_NETWORK:
        return lambda network, _: network.name.removesuffix(".gz").removesuffix(".onnx")
    try:
        pattern = re.compile(words)
    except re.error as error:
        raise InputError(
            f"{words!r} does not define families: {error}; write {BY_NETWORK!r}, or a "
            "regular expression such as 'prop_([0-9]+)'."
        ) from None

    def by_pattern(_: Path, run: RunRecord) -> str:
        found = pattern.search(run.instance)
        if found is None:
            return run.family
        return found[1] or found[0] if pattern.groups else found[0]

    return by_pattern


InstanceKey = tuple[str, str]
"""An instance by the names of its suite and of itself."""


@dataclass(frozen=True, repr=False)
class JudgedCampaign(Brief):
    """A campaign with the verdicts on its runs, the places of its suites (by name), and the facts about its
    instances."""

    campaign: Campaign
    judgements: tuple[Judgement, ...]
    folders: Mapping[str, Path]
    facts: Mapping[InstanceKey, Facts]

    @property
    def missing(self) -> int:
        """How many planned runs are not recorded (yet)."""
        return self.campaign.planned - len(self.campaign.records)

    def log_of(self, job: str) -> Path:
        """Where a run's log is, or was."""
        return self.campaign.folder / log_name(job)

    def log_tail(self, job: str, *, characters: int) -> str:
        """The end of a run's log; empty if there is none in the campaign's own folder."""
        try:
            return log_tail(log_path(self.campaign.folder, job), characters=characters)
        except UnreadableFile:
            return ""

    def of_verifiers(self, names: Container[str]) -> JudgedCampaign:
        """The same campaign without the runs of other verifiers."""
        manifest, records = self.campaign.manifest, self.campaign.records
        tools = tuple(tool for tool in manifest.verifiers if tool.name in names)
        own = Campaign(
            self.campaign.folder,
            replace(manifest, verifiers=tools),
            tuple(record for record in records if record.verifier in names),
        )
        judgements = tuple(one for one in self.judgements if one.record.verifier in names)
        return replace(self, campaign=own, judgements=judgements)


@dataclass(frozen=True, repr=False)
class JudgedCampaigns(Brief, Table):
    """One campaign or several, judged together.

    `report` and `explain` are the public functions of these names, which say what the options are.
    """

    campaigns: tuple[JudgedCampaign, ...]

    @cached_property
    def judgements(self) -> tuple[Judgement, ...]:
        """The verdicts on all runs; no two have the same job."""
        return tuple(judgement for one in self.campaigns for judgement in one.judgements)

    @cached_property
    def facts(self) -> Mapping[InstanceKey, Facts]:
        """The facts about all instances; a profile is found if any of the suites has it."""
        known: dict[InstanceKey, Facts] = {}
        for one in self.campaigns:
            for key, facts in one.facts.items():
                if key not in known or known[key].profile is None:
                    known[key] = facts
        return known

    @cached_property
    def failed_labels(self) -> Mapping[InstanceKey, str]:
        """The labels that fail when they would count against a verifier, and why: exit code 2."""
        return checked_labels(self.judgements, LabelStanding.FAILED)

    @cached_property
    def unchecked_labels(self) -> Mapping[InstanceKey, str]:
        """The labels that could not be checked when they would count against a verifier, and why."""
        return checked_labels(self.judgements, LabelStanding.NOT_CHECKED)

    @cached_property
    def not_compared(self) -> Mapping[InstanceKey, str]:
        """The labels that count against a verifier and are proven, but could not be compared with any
        runtime, and why."""
        return {
            (j.record.suite, j.record.instance): j.label_check.not_compared
            for j in self.judgements
            if j.label_check is not None and j.label_check.not_compared
        }

    @property
    def is_published(self) -> bool:
        """Whether one of these campaigns consists of answers that others published."""
        return bool(_sources([one.campaign for one in self.campaigns]))

    @property
    def years(self) -> frozenset[int]:
        """The years of the competitions whose results these are; empty for runs of one's own."""
        return _years([one.campaign for one in self.campaigns])

    @property
    def has_fault(self) -> bool:
        """Whether a bug of Dokimos left an instance without a label: exit code 3."""
        return any(j.label_check is not None and j.label_check.is_fault for j in self.judgements)

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether any answer is wrong: exit code 1."""
        return any(judgement.verdict.is_wrong for judgement in self.judgements)

    def report(self, html: str | Path | None = None, **options: Any) -> dokimos.WrittenReport:
        """Write a report: `dokimos.report`."""
        import dokimos

        return dokimos.report(self, html=html, **options)

    def explain(self, **options: Any) -> dokimos.Explanation:
        """Explain what makes each verifier time out: `dokimos.explain`."""
        import dokimos

        return dokimos.explain(self, **options)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each answer, with its verdict."""
        return [
            record_of(one.record, "verifier", "suite", "instance", "family", "answer", "wall_seconds")
            | record_of(one, "label", "verdict", "reason")
            for one in self.judgements
        ]


def judge_campaigns(
    folders: Sequence[Path],
    *,
    suites: Sequence[Path] = (),
    rules: Sequence[str] | None = (),
    families: str | None = None,
    label_checked: Callable[[str, LabelCheck], None] | None = None,
    jobs: int = 1,
    judged: Callable[[int, int, str], None] | None = None,
) -> JudgedCampaigns:
    """Judge the campaigns in `folders` together: a witness that one of them found settles an instance for
    all of them.

    The suites are where they were when the campaigns were run, or where `suites` says they are. The same
    names of suite and instance must mean the same files. `rules` names the rule sets to score by; None
    means those of `default_rules` for the years of the results. A run that is recorded in two of the
    campaigns counts twice. `families` defines the families of instances, in place of the recorded ones
    (`family_rule`). Labels are checked before they count against a verifier; `label_checked` is called
    after each such check, with the name of the instance.

    With `judged`, which is called after each instance, a single campaign is judged in `jobs` processes, and
    the judgements on an instance are kept in Dokimos' home (see `parallel`).
    """
    if not folders:
        raise InputError("There is no campaign to judge; give the folder of one.")
    chosen = rule_sets(rules or ())
    campaigns = [_read(folder) for folder in dict.fromkeys(folders)]
    if rules is None:
        chosen = rule_sets(default_rules(_years(campaigns)))
    _require_same_files(campaigns)
    places = locate_all([campaign.manifest for campaign in campaigns], suites)
    used = dict.fromkeys(place for where in places for place in where.values())
    # Of published results, those on files that are there are judged.
    read = {place: _Opened.of(read_suite(place, leniently=bool(_sources(campaigns)))) for place in used}
    for campaign, where in zip(campaigns, places, strict=True):
        answered = {(record.suite, record.instance) for record in campaign.records}
        require_what_was_run(
            (i for i in campaign.manifest.instances if (i.suite, i.name) in answered),
            {name: read[place].suite.entries for name, place in where.items()},
        )
    family_of = None if families is None else family_rule(families)
    runs, commands = _own_runs(campaigns, places)
    if family_of is not None:
        runs = [
            [
                replace(run, family=family_of(read[where[run.suite]].entry(run.instance).network_path, run))
                for run in own
            ]
            for own, where in zip(runs, places, strict=True)
        ]
    before: dict[InstanceKey, Sequence[Judgement]] = {}
    if judged is not None and len(campaigns) == 1:
        suites_read = {name: read[place] for name, place in places[0].items()}
        tasks = _tasks(runs[0], suites_read, chosen, campaigns[0])
        for task, found in judge_tasks(tasks, folder=campaigns[0].folder, jobs=jobs, judged=judged):
            before[task.runs[0].suite, task.entry.name] = found
    by_job, facts = _judge_and_read(
        campaigns, places, read, runs, commands, chosen, LabelChecker(checked=label_checked), before
    )
    return JudgedCampaigns(
        tuple(
            JudgedCampaign(
                campaign,
                tuple(
                    located(by_job[run.job], campaign.folder, read[where[run.suite]].entry(run.instance))
                    for run in own
                ),
                where,
                known,
            )
            for campaign, where, own, known in zip(campaigns, places, runs, facts, strict=True)
        )
    )


@dataclass(frozen=True)
class _Opened:
    """A suite that has been read, and the position of each entry by its name."""

    suite: Suite
    positions: Mapping[str, int]

    @classmethod
    def of(cls, suite: Suite) -> _Opened:
        return cls(suite, {entry.name: k for k, entry in enumerate(suite.entries)})

    def entry(self, name: str) -> SuiteEntry:
        if name not in self.positions:
            raise UnreadableFile(self.suite.folder, f"it has no instance {name!r}, which was run")
        return self.suite.entries[self.positions[name]]


def _judge_and_read(
    campaigns: Sequence[Campaign],
    places: Sequence[Mapping[str, Path]],
    read: Mapping[Path, _Opened],
    runs: Sequence[Sequence[RunRecord]],
    commands: Mapping[str, str],
    rules: Sequence[RuleSet],
    check_label: LabelChecker,
    before: Mapping[InstanceKey, Sequence[Judgement]],
) -> tuple[dict[str, Judgement], list[dict[InstanceKey, Facts]]]:
    """The verdicts on all runs by job, and the facts about the instances of each campaign.

    Both need the truth file of an instance, which may be large: it is read once, and then released.
    """
    unjudged: dict[InstanceKey, list[RunRecord]] = {}
    for run in (run for own in runs for run in own):
        unjudged.setdefault((run.suite, run.instance), []).append(run)
    folders = [campaign.folder for campaign in campaigns]
    judged: dict[str, Judgement] = {}
    known: dict[tuple[Path, str], Facts] = {}
    facts: list[dict[InstanceKey, Facts]] = []
    for campaign, where in zip(campaigns, places, strict=True):
        facts.append({})
        for i in campaign.manifest.instances:
            place, opened = where[i.suite], read[where[i.suite]]
            if (place, i.name) not in known:
                entry = opened.entry(i.name)
                form = read_truth_form(entry)
                if group := unjudged.pop((i.suite, i.name), []):
                    verdicts = before.get((i.suite, i.name))
                    if verdicts is None:
                        instance = settled(entry, group, folders, check_label)
                        file = str(entry.truth_path)
                        truth = instance.read_truth() if form is None else truth_of(form, file=file)
                        verdicts = judge_instance(
                            instance,
                            truth,
                            group,
                            lambda run: "",
                            rules,
                            check_label=partial(check_label, instance),
                            not_scored=[name for one in _sources(campaigns) for name in one.not_scored],
                            overheads={
                                k: s for one in _sources(campaigns) for k, s in one.overheads.items()
                            },
                        )
                    judged |= {j.record.job: replace(j, reproduce=commands[j.record.job]) for j in verdicts}
                known[place, i.name] = read_facts(
                    opened.suite,
                    opened.positions[i.name],
                    form,
                    network_sha256=i.network_sha256,
                    property_sha256=i.property_sha256,
                )
            facts[-1][i.suite, i.name] = known[place, i.name]
    for suite, name in unjudged:
        raise InputError(f"The suite {suite} has no instance {name!r}, but the campaign has runs on it.")
    return judged, facts


def _sources(campaigns: Sequence[Campaign]) -> list[PublishedSource]:
    """Where the campaigns come from that others published."""
    return [source for campaign in campaigns if (source := campaign.manifest.published) is not None]


def _years(campaigns: Sequence[Campaign]) -> frozenset[int]:
    return frozenset(source.year for source in _sources(campaigns) if source.year is not None)


def _tasks(
    runs: Sequence[RunRecord],
    suites: Mapping[str, _Opened],
    rules: Sequence[RuleSet],
    campaign: Campaign,
) -> list[JudgingTask]:
    """What there is to judge of one campaign, instance by instance."""
    groups: dict[InstanceKey, list[RunRecord]] = {}
    for run in runs:
        groups.setdefault((run.suite, run.instance), []).append(run)
    return [
        JudgingTask(
            *(suites[suite].entry(name), tuple(own), tuple(rules), campaign.folder),
            campaign.manifest.published,
        )
        for (suite, name), own in groups.items()
    ]


def _own_runs(
    campaigns: Sequence[Campaign], places: Sequence[Mapping[str, Path]]
) -> tuple[list[list[RunRecord]], dict[str, str]]:
    """The runs of each campaign, no two of them with the same job, and how to reproduce each."""
    runs: list[list[RunRecord]] = []
    commands: dict[str, str] = {}
    for campaign, where in zip(campaigns, places, strict=True):
        runs.append([])
        called = {suite: _pasted(suite, place) for suite, place in where.items()}
        for record in campaign.records:
            own = replace(record, job=_unused(record.job, commands))
            ours = campaign.manifest.published is None
            commands[own.job] = reproduction(own, campaign.manifest, called) if ours else ""
            runs[-1].append(own)
    return runs, commands


def _read(folder: Path) -> Campaign:
    campaign = read_campaign(folder)
    if not campaign.records:
        raise InputError(f"{folder}: it has no recorded runs yet; run `dokimos run` first.")
    return campaign


def _require_same_files(campaigns: Sequence[Campaign]) -> None:
    seen: dict[InstanceKey, tuple[str, str]] = {}
    for campaign in campaigns:
        for i in campaign.manifest.instances:
            files = (i.network_sha256, i.property_sha256)
            if seen.setdefault((i.suite, i.name), files) != files:
                raise InputError(
                    f"{campaign.folder}: its instance {i.suite}/{i.name} differs from the instance of that "
                    "name in the campaigns before it; judge them separately."
                )


def _unused(job: str, used: Container[str]) -> str:
    return next(name for k in count() if (name := f"{job}@{k}" if k else job) not in used)


def reproduction(record: RunRecord, manifest: Manifest, called: Mapping[str, str]) -> str:
    """The command that runs a record's verifier on its instance again; `called` has its suite's name."""
    again = f"reproduced/{record.instance}"
    limits = record.limits or manifest.limits
    given = next(
        (tool.given for tool in manifest.verifiers if tool.name == record.verifier), record.verifier
    )
    words = ["dokimos", "run", called[record.suite], "--verifier", given]
    words += ["--timeout", f"{limits.wall_seconds:g}", "--memory", size_in_words(limits.memory_bytes)]
    words += [] if limits.cpu_seconds is None else ["--cpu", f"{limits.cpu_seconds:g}"]
    words += [word for name in record.pass_env for word in ("--pass-env", name)]
    words += ["--trust"] * record.trust_scripts
    words += ["--only", record.instance, "--out", again]
    return f"{shlex.join(words)} && dokimos judge {shlex.quote(again)}"


def _pasted(name: str, path: Path) -> str:
    """How a command names a suite: a shipped one by its name, wherever it is cached; any other by its path,
    relative to the working folder if that is shorter."""
    if path.parent == home() / "suites" and name in shipped_names():
        return name
    return seen_from_here(path)


# The answers of verifiers on one instance in any campaigns, with the verdicts


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
