"""Whether a verifier passes the gate: what is not allowed, what got worse, and what has changed.

A gate passes only if something was really answered. It fails on

- a wrong answer, unless the baseline expects it,
- a `sat` without a witness, unless the baseline expects it: the answer is right, but shows nothing,
- runs that are missing,
- a verifier of which no answer on a suite can be judged: nothing was tested there,
- an answer that was right in the baseline and is not right now; if time may be the reason, a second try
  must fail too,
- a baseline that has none of a verifier's runs on a suite: nothing was compared,
- answers that have become slower than allowed, if a factor is given,
- a label that fails its check, whether an answer agrees with it or not, and an answer that contradicts a
  label whose check did not end.

Where a tool can switch its attack off, it is asked again without it where it answered `sat`. These runs
test its proofs: wrong answers count, and nothing else does.

The files of every failure are kept in the campaign's folder, with the commands that show it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import cast

from dokimos.campaigns.campaign import Campaign
from dokimos.campaigns.manifest import read_manifest
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.core.files import home
from dokimos.core.readable import Brief, exact_number
from dokimos.judging.baselines import Baseline, BaselineRun, RunKey, worst_of
from dokimos.judging.judged_campaign import InstanceKey, JudgedCampaigns
from dokimos.judging.label_checks import LabelCheck, LabelChecker, LabelStanding
from dokimos.judging.pace import Slowdown, slowdown
from dokimos.judging.power import Power, power_of
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, exists
from dokimos.suites.facts import in_order
from dokimos.verifiers.base import Verifier

#: An answer that takes more than this many times as long as in the baseline is slower.
SLOWER = 2.0
#: How many of the slower answers a finding names.
_MOST_NAMED = 10


class GateFindingKind(Enum):
    """The kinds of findings of a gate."""

    WRONG = "wrong"
    UNWITNESSED = "sat without a witness"
    MISSING = "missing"
    SILENT = "answers nothing"
    LOST = "no longer right"
    UNCOMPARED = "not compared"
    TOO_SLOW = "too slow"
    LABEL = "label fails"
    CONTRADICTED = "contradicts an unchecked label"
    EXPECTED = "expected failure"
    NEAR = "near its limit"
    SLOWER = "slower"
    NOT_ASKED = "not asked"
    LEFT_OUT = "left out"
    UNPROVEN = "label not checked"
    NEW_WRONG = "new wrong"
    MENDED = "mended"
    NOT_MENDED = "not mended"

    @property
    def fails(self) -> bool:
        """Whether a finding of this kind makes the gate fail."""
        return self in _FAILING


_FAILING = frozenset(
    {
        GateFindingKind.WRONG,
        GateFindingKind.UNWITNESSED,
        GateFindingKind.MISSING,
        GateFindingKind.SILENT,
        GateFindingKind.LOST,
        GateFindingKind.UNCOMPARED,
        GateFindingKind.TOO_SLOW,
        GateFindingKind.LABEL,
        GateFindingKind.CONTRADICTED,
    }
)


@dataclass(frozen=True)
class GateFinding:
    """One finding of the gate, in a sentence; `run` is the run that it is about, if there is just one."""

    kind: GateFindingKind
    text: str
    run: RunKey | None = None


@dataclass(frozen=True, repr=False)
class GateOutcome(Brief):
    """The result of a gate; `runs` is what a baseline would keep.

    `failed_labels` has what is wrong with labels that fail, and `replays` the commands that evaluate the
    point kept of a failure, if it has one. `power` says of each verifier how many instances tested its
    proofs; `following` are the verifiers without their attack.
    """

    findings: tuple[GateFinding, ...]
    runs: tuple[BaselineRun, ...]
    judged: JudgedCampaigns = field(repr=False)
    failed_labels: Mapping[InstanceKey, str] = field(default_factory=lambda: MappingProxyType({}))
    replays: Mapping[RunKey, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    following: Collection[str] = ()

    @property
    def power(self) -> tuple[Power, ...]:
        """How many instances could have shown that proofs are wrong, for each verifier."""
        return power_of(self.judged.judgements, following=self.following)

    @property
    def is_open(self) -> bool:
        """Whether the verifiers pass."""
        return not any(finding.kind.fails for finding in self.findings)

    def write(self, **files: str | Path | None) -> None:
        """Write the files that `dokimos.write_gate` takes: `junit`, `markdown`, `html`."""
        import dokimos

        dokimos.write_gate(self, **files)

    def of_kind(self, kind: GateFindingKind) -> tuple[GateFinding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind is kind)


def pass_gate(
    judged: JudgedCampaigns,
    *,
    baseline: Baseline | None = None,
    is_updated: bool = False,
    last: Baseline | None = None,
    left_out: Sequence[str] = (),
    labels: Mapping[InstanceKey, LabelCheck] = MappingProxyType({}),
    following: Collection[str] = (),
    fail_slower: float | None = None,
) -> GateOutcome:
    """The gate's findings on judged campaigns, compared with a baseline and with the previous time.

    `is_updated`: the baseline will be rewritten, and need not have these runs yet. If there was no previous
    time, changes are those since the baseline. `left_out` has a sentence for each suite about what was not
    run. `labels` has the results of checking labels that right answers rest on. `following` are the
    verifiers without their attack, which are asked only where those with it answered `sat`. `fail_slower`
    is how many times as slow as in the baseline answers may be.
    """
    held = baseline or Baseline()
    runs = tuple(_run(judgement) for judgement in judged.judgements)
    worst = worst_of(runs)
    asked = {key: run for key, run in worst.items() if run.verifier not in following}
    failed = dict(judged.failed_labels)
    failed |= {key: one.problem for key, one in labels.items() if one.standing is LabelStanding.FAILED}
    findings = [
        *_bad_answers(judged.judgements, held.expected),
        *_missing(judged),
        *_labels(judged, labels, failed),
        *_silent([one for one in judged.judgements if one.record.verifier not in following]),
        *_lost(held, asked),
        *([] if is_updated or baseline is None else _uncompared(held, asked)),
        *_slower(held, worst, fail_slower),
        *_near([run for run in runs if run.verifier not in following]),
        *_not_asked(held, asked),
        *(GateFinding(GateFindingKind.LEFT_OUT, text) for text in left_out),
        *(_changes(worst, held, "in the baseline") if last is None else _changes(worst, last, "last time")),
    ]
    return GateOutcome(
        tuple(findings), runs, judged, MappingProxyType(failed), following=frozenset(following)
    )


def second_tries(outcome: GateOutcome, baseline: Baseline) -> frozenset[RunKey]:
    """The runs that are no longer right, perhaps for lack of time, and get a second try.

    They timed out, wherever they were in their limit before, or were near their limit then or are now: some
    tools say `unknown` when their time is up.
    """
    short = {run.key for run in (*baseline.runs, *outcome.runs) if run.is_near}
    short |= {run_key(j) for j in outcome.judged.judgements if j.record.answer is Answer.TIMEOUT}
    lost = {finding.run for finding in outcome.of_kind(GateFindingKind.LOST) if finding.run}
    return frozenset(lost & short)


def _run(judgement: Judgement) -> BaselineRun:
    record = judgement.record
    limit = record.limits.wall_seconds if record.limits else 0.0
    return BaselineRun(
        record.verifier, record.suite, record.instance, judgement.verdict, record.wall_seconds, limit
    )


def _named(key: RunKey) -> str:
    verifier, suite, instance = key
    return f"{verifier} on {suite}/{instance}"


def run_key(judgement: Judgement) -> RunKey:
    """Which run a judgement is about."""
    record = judgement.record
    return record.verifier, record.suite, record.instance


def _is_bad(verdict: Verdict) -> bool:
    """Whether an answer alone makes the gate fail."""
    return verdict.is_wrong or verdict is Verdict.UNWITNESSED


def _bad_answers(judgements: Sequence[Judgement], expected: Mapping[RunKey, str]) -> list[GateFinding]:
    found = []
    for judgement in judgements:
        if not _is_bad(judgement.verdict):
            continue
        key = run_key(judgement)
        said = f"{_named(key)}: {judgement.verdict.value}"
        if key in expected:
            text = f"{said}, as the baseline expects: {expected[key]}"
            found.append(GateFinding(GateFindingKind.EXPECTED, text, key))
        else:
            kind = GateFindingKind.WRONG if judgement.verdict.is_wrong else GateFindingKind.UNWITNESSED
            found.append(GateFinding(kind, f"{said}: {judgement.reason}{_shown(judgement)}", key))
    ran = {run_key(j) for j in judgements}
    not_right = {run_key(j) for j in judgements if j.verdict is not Verdict.CORRECT}
    for key in sorted(expected.keys() & ran - not_right):
        text = f"{_named(key)} no longer fails; remove it from the baseline"
        found.append(GateFinding(GateFindingKind.MENDED, text, key))
    return found


def _shown(judgement: Judgement) -> str:
    """Where the point is that shows an `unsat` to be wrong, and by how much it violates."""
    found = judgement.counterexample
    if found is None:
        return ""
    margin = found.replay.violation
    least = "at least " if found.replay.output_error else ""
    by = "" if margin is None else f" by {least}{exact_number(margin).short}"
    return f"; the point in {found.file} violates{by}"


def _missing(judged: JudgedCampaigns) -> list[GateFinding]:
    return [
        GateFinding(
            GateFindingKind.MISSING,
            f"{one.missing} of {one.campaign.planned} planned runs are missing in {one.campaign.folder}",
        )
        for one in judged.campaigns
        if one.missing
    ]


def _labels(
    judged: JudgedCampaigns, labels: Mapping[InstanceKey, LabelCheck], failed: Mapping[InstanceKey, str]
) -> list[GateFinding]:
    found = [
        GateFinding(GateFindingKind.LABEL, f"the label of {suite}/{instance} fails: {problem}")
        for (suite, instance), problem in failed.items()
    ]
    for judgement in judged.judgements:
        checked = judgement.label_check
        if checked is None or checked.standing is not LabelStanding.NOT_CHECKED:
            continue
        if judgement.verdict is Verdict.UNLABELLED:  # by its label it would be wrong
            said = (
                f"{_named(run_key(judgement))} answers {judgement.record.answer.value}, against its label"
            )
            text = f"{said}, which could not be checked: {checked.problem}"
            found.append(GateFinding(GateFindingKind.CONTRADICTED, text, run_key(judgement)))
    if open_ := {key: one for key, one in labels.items() if one.standing is LabelStanding.NOT_CHECKED}:
        (suite, instance), first = next(iter(open_.items()))
        text = f"{len(open_)} of the labels of right answers, such as {suite}/{instance}: {first.problem}"
        found.append(GateFinding(GateFindingKind.UNPROVEN, text))
    return found


def _silent(judgements: Sequence[Judgement]) -> list[GateFinding]:
    """The verifiers of which no answer on some suite is judged by a label."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for judgement in judgements:
        groups.setdefault((judgement.record.verifier, judgement.record.suite), []).append(judgement)
    found = []
    for (verifier, suite), own in groups.items():
        if any(j.verdict not in (Verdict.UNDECIDED, Verdict.UNLABELLED) for j in own):
            continue
        text = f"{verifier} decides none of its {len(own)} runs on {suite}"
        if unjudged := [j for j in own if j.verdict is Verdict.UNLABELLED]:
            named = f"{unjudged[0].record.instance}: {unjudged[0].reason}"
            text = f"none of the {len(unjudged)} answers of {verifier} on {suite} can be judged ({named})"
        found.append(GateFinding(GateFindingKind.SILENT, f"{text}: nothing was tested"))
    return found


def _lost(baseline: Baseline, now: Mapping[RunKey, BaselineRun]) -> list[GateFinding]:
    found = []
    for run in baseline.runs:
        current = now.get(run.key)
        if not run.verdict.is_right or current is None or _is_bad(current.verdict):
            continue
        if not current.verdict.is_right:
            text = f"{_named(run.key)} was right in the baseline, but is {current.verdict.value} now"
            found.append(GateFinding(GateFindingKind.LOST, text, run.key))
    return found


def _uncompared(baseline: Baseline, now: Mapping[RunKey, BaselineRun]) -> list[GateFinding]:
    """The verifiers and suites of which the baseline has no run.

    One that lists expected failures only, written by hand, compares what it is meant to.
    """
    if not baseline.runs and baseline.expected_failures:
        return []
    compared = {key[:2] for key in now.keys() & {run.key for run in baseline.runs}}
    listed = ", ".join(sorted({f"{run.verifier} on {run.suite}" for run in baseline.runs}))
    has = f"only {listed}" if listed else "nor any other"
    return [
        GateFinding(
            GateFindingKind.UNCOMPARED,
            f"the baseline has no such run of {verifier} on {suite}, {has}; add these runs with "
            "--update-baseline",
        )
        for verifier, suite in dict.fromkeys(key[:2] for key in now)
        if (verifier, suite) not in compared
    ]


def _not_asked(baseline: Baseline, now: Mapping[RunKey, BaselineRun]) -> list[GateFinding]:
    """Runs of these verifiers and suites that are right in the baseline but were left out now."""
    ran = {(verifier, suite) for verifier, suite, _ in now}
    left: Counter[tuple[str, str]] = Counter(
        (run.verifier, run.suite)
        for run in baseline.runs
        if run.verdict.is_right and run.key not in now and (run.verifier, run.suite) in ran
    )
    return [
        GateFinding(
            GateFindingKind.NOT_ASKED,
            f"right in the baseline but not run now: {count} of {verifier} on {suite}",
        )
        for (verifier, suite), count in left.items()
    ]


def _near(runs: Sequence[BaselineRun]) -> list[GateFinding]:
    return [
        GateFinding(
            GateFindingKind.NEAR,
            f"{_named(run.key)} took {run.seconds:.1f} s of {run.limit_seconds:g} s",
            run.key,
        )
        for run in runs
        if run.verdict.is_right and run.is_near
    ]


def _slower(
    baseline: Baseline, now: Mapping[RunKey, BaselineRun], allowed: float | None
) -> list[GateFinding]:
    """The verifiers and suites with answers that have become slower, by a test over the pairs of times."""
    groups: dict[tuple[str, str], list[BaselineRun]] = {}
    for run in baseline.runs:
        current = now.get(run.key)
        if run.verdict.is_right and current is not None and current.verdict.is_right:
            groups.setdefault((run.verifier, run.suite), []).append(run)
    found = []
    for (verifier, suite), runs in groups.items():
        before = {run.key: run.seconds for run in runs}
        times = {key: now[key].seconds for key in before}
        kinds = {} if allowed is None else {GateFindingKind.TOO_SLOW: allowed}
        for kind, factor in (kinds | {GateFindingKind.SLOWER: SLOWER}).items():
            if (slow := slowdown(before, times, factor=factor)).is_real:
                found.append(GateFinding(kind, f"{verifier} on {suite}: {_in_words(slow, before, times)}"))
                break
    return found


def _in_words(slow: Slowdown[RunKey], before: Mapping[RunKey, float], now: Mapping[RunKey, float]) -> str:
    named = [f"{key[2]} {before[key]:.1f} s, now {now[key]:.1f} s" for key in slow.slower[:_MOST_NAMED]]
    more = len(slow.slower) - len(named)
    rest = f"; and {more} more" if more else ""
    return (
        f"{len(slow.slower)} of {slow.pairs} right answers took more than {slow.factor:g} times as long as "
        f"in the baseline, and {slow.faster} were faster by as much ({'; '.join(named)}{rest})"
    )


def _changes(now: Mapping[RunKey, BaselineRun], then: Baseline, when: str) -> list[GateFinding]:
    """What has become wrong, or is no longer, since then; only of runs that there were then.

    What was wrong is mended by a right answer, and by nothing else.
    """
    found = []
    before = worst_of(then.runs)
    for key in sorted(now.keys() & before.keys() - then.expected.keys()):
        is_wrong, was_wrong = now[key].verdict.is_wrong, before[key].verdict.is_wrong
        if is_wrong and not was_wrong:
            found.append(GateFinding(GateFindingKind.NEW_WRONG, f"{_named(key)} was not wrong {when}", key))
        elif was_wrong and not is_wrong:
            is_right = now[key].verdict.is_right
            kind = GateFindingKind.MENDED if is_right else GateFindingKind.NOT_MENDED
            text = f"{_named(key)} was wrong {when}, and is {now[key].verdict.value} now"
            found.append(GateFinding(kind, text, key))
    return found


# What a gate asks: which instances, which runs again, and which labels


def in_budget_order(
    suites: Sequence[CampaignSuite], seconds: float, settings: RunSettings, *, most_runs: int
) -> list[CampaignSuite]:
    """The suites with their instances in the order in which a budget takes them.

    An instance may take `most_runs` runs of one verifier. Raises InputError if the budget has no room for
    the first instance of each suite: nothing of that suite would be tested.
    """
    ordered = [
        replace(each, instances=in_order(cast("tuple[SuiteEntry, ...]", each.instances), name=each.name))
        for each in suites
        if each.instances
    ]
    least = most_runs * sum(
        settings.limits(suite.instances[0].timeout_seconds).wall_seconds for suite in ordered
    )
    if least > seconds * settings.jobs:
        names = ", ".join(suite.name for suite in suites)
        raise InputError(
            f"A budget of {budget_in_words(seconds, settings)} is too small for the first instance of each "
            f"suite ({names}); these may take {least:g} s together; give a larger `budget_seconds`, a "
            "smaller `timeout_seconds` or fewer suites."
        )
    return ordered


def budget_in_words(seconds: float, settings: RunSettings) -> str:
    """How much time there is, and for how many runs at once."""
    return f"{seconds:g} s with {settings.jobs} {'job' if settings.jobs == 1 else 'jobs'} at a time"


def left_out_of(
    suites: Sequence[CampaignSuite], campaign: Campaign, verifiers: Sequence[Verifier], has: str
) -> tuple[str, ...]:
    """What of each suite the budget `has` had no room for."""
    ran = {(run.verifier, run.suite, run.instance) for run in campaign.records}
    found = []
    for suite in suites:
        for verifier in verifiers:
            left = sum((verifier.name, suite.name, each.name) not in ran for each in suite.instances)
            of = f" for {verifier.name}" if len(verifiers) > 1 else ""
            if left:
                found.append(
                    f"{left} of {len(suite.instances)} instances of {suite.name}{of}: the budget is {has}"
                )
    return tuple(found)


def may_differ(folder: Path, verifiers: Sequence[Verifier]) -> bool:
    """Whether one of these verifiers may answer otherwise than in the campaign in `folder`.

    It may if its version is not certain, or is another, or if it is called by other words.
    """
    if not (folder / "manifest.json").exists():
        return False
    before = {tool.name: tool for tool in read_manifest(folder / "manifest.json").verifiers}
    return any(
        not each.has_certain_version
        or (tool.version, tool.given) != (each.installed_version(), each.called_as)
        for each in verifiers
        if (tool := before.get(each.name)) is not None
    )


def labels_behind(
    judged: JudgedCampaigns, entries: Mapping[InstanceKey, SuiteEntry]
) -> dict[InstanceKey, LabelCheck]:
    """The results of checking the labels by which answers are right, which the judge takes on trust.

    Shipped suites are left out: this code has made them, and proven every label, when they were cached.
    """
    check, found = LabelChecker(), {}
    for judgement in judged.judgements:
        key = (judgement.record.suite, judgement.record.instance)
        entry = entries.get(key)
        if judgement.verdict is not Verdict.CORRECT or judgement.label_check or entry is None:
            continue
        is_shipped = (home() / "suites") in entry.truth_path.parents
        if key not in found and not is_shipped and exists(entry.truth_path):
            found[key] = check(entry)
    return found
