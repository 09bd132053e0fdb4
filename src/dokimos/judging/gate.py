"""Whether a verifier passes the gate: what is not allowed, what got worse, and what has changed.

A gate passes only if something was really answered. It fails on

- a wrong answer, unless the baseline expects it,
- a `sat` without a witness, unless the baseline expects it: the answer is right, but shows nothing,
- runs that are missing,
- a verifier of which no answer on a suite can be judged: nothing was tested there,
- an answer that was right in the baseline and is not right now; if time may be the reason, a second try
  must fail too,
- a baseline that has none of a verifier's runs on a suite: nothing was compared,
- a label that fails its check, whether an answer agrees with it or not, and an answer that contradicts a
  label whose check did not end.

The files of every failure are kept in the campaign's folder, with the commands that show it again.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta

from dokimos import __version__
from dokimos.campaigns.journal import Seconds
from dokimos.core import strict_json
from dokimos.core.documents import require_known_keys
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import cannot_write, only_one, write_whole
from dokimos.core.inputs import contained
from dokimos.core.readable import Brief, exact_number, markdown_text, printable
from dokimos.judging.judged_campaign import InstanceKey, JudgedCampaigns, reproduction
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.written_points import counterexample_text, seen_from_here, write_witness
from dokimos.suites.entry import SuiteEntry, exists, read_content, read_text
from dokimos.suites.instance import Answer
from dokimos.suites.suite_files import InstanceFiles, store_files, write_rows

SCHEMA: Literal[1] = 1
#: What is solved in more than this share of its limit is near it: the next machine may be slower.
NEAR_SHARE = 0.5
#: The folder of what is kept of the failures, in that of a campaign.
FAILURES = "failures"
_MOST_BYTES = 64 << 20
_WHAT = "a baseline of `dokimos gate`"
_log = logging.getLogger("dokimos")

RunKey = tuple[str, str, str]
"""A run by the names of its verifier, its suite and its instance."""


@dataclass(frozen=True)
class BaselineRun:
    """One run as it was when the baseline was taken; `seconds` of `limit_seconds` were used."""

    verifier: str
    suite: str
    instance: str
    verdict: Verdict
    seconds: Seconds
    limit_seconds: Seconds

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.verifier, self.suite, self.instance

    @property
    def is_near(self) -> bool:
        """Whether it used more than half of its time."""
        return self.seconds > NEAR_SHARE * self.limit_seconds


@dataclass(frozen=True)
class ExpectedFailure:
    """A wrong or unwitnessed answer that is expected, and why it is tolerated for now."""

    verifier: str
    suite: str
    instance: str
    reason: Annotated[str, Meta(min_length=1)]

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.verifier, self.suite, self.instance


@dataclass(frozen=True)
class Baseline:
    """What a gate compares answers with."""

    runs: tuple[BaselineRun, ...] = ()
    expected_failures: tuple[ExpectedFailure, ...] = ()

    @property
    def expected(self) -> dict[RunKey, str]:
        """The reasons of the expected failures."""
        return {failure.key: failure.reason for failure in self.expected_failures}


@dataclass(frozen=True)
class _Form(Baseline):
    """The file: a baseline and the number of its format."""

    schema: Literal[1] = SCHEMA


class GateFindingKind(Enum):
    """The kinds of findings of a gate."""

    WRONG = "wrong"
    UNWITNESSED = "sat without a witness"
    MISSING = "missing"
    SILENT = "answers nothing"
    LOST = "no longer right"
    UNCOMPARED = "not compared"
    LABEL = "label fails"
    CONTRADICTED = "contradicts an unchecked label"
    EXPECTED = "expected failure"
    NEAR = "near its limit"
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
    point kept of a failure, if it has one.
    """

    findings: tuple[GateFinding, ...]
    runs: tuple[BaselineRun, ...]
    judged: JudgedCampaigns = field(repr=False)
    failed_labels: Mapping[InstanceKey, str] = field(default_factory=lambda: MappingProxyType({}))
    replays: Mapping[RunKey, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

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
) -> GateOutcome:
    """The gate's findings on judged campaigns, compared with a baseline and with the previous time.

    `is_updated`: the baseline will be rewritten, and need not have these runs yet. If there was no previous
    time, changes are those since the baseline. `left_out` has a sentence for each suite about what was not
    run. `labels` has the results of checking labels that right answers rest on.
    """
    held = baseline or Baseline()
    runs = tuple(_run(judgement) for judgement in judged.judgements)
    worst = _worst(runs)
    failed = dict(judged.failed_labels)
    failed |= {key: one.problem for key, one in labels.items() if one.standing is LabelStanding.FAILED}
    findings = [
        *_bad_answers(judged.judgements, held.expected),
        *_missing(judged),
        *_labels(judged, labels, failed),
        *_silent(judged.judgements),
        *_lost(held, worst),
        *([] if is_updated or baseline is None else _uncompared(held, worst)),
        *_near(runs),
        *_not_asked(held, worst),
        *(GateFinding(GateFindingKind.LEFT_OUT, text) for text in left_out),
        *(_changes(worst, held, "in the baseline") if last is None else _changes(worst, last, "last time")),
    ]
    return GateOutcome(tuple(findings), runs, judged, MappingProxyType(failed))


def second_tries(outcome: GateOutcome, baseline: Baseline) -> frozenset[RunKey]:
    """The runs that are no longer right, perhaps for lack of time, and get a second try.

    They timed out, wherever they were in their limit before, or were near their limit then or are now: some
    tools say `unknown` when their time is up.
    """
    short = {run.key for run in (*baseline.runs, *outcome.runs) if run.is_near}
    short |= {_key(j) for j in outcome.judged.judgements if j.record.answer is Answer.TIMEOUT}
    lost = {finding.run for finding in outcome.of_kind(GateFindingKind.LOST) if finding.run}
    return frozenset(lost & short)


def _run(judgement: Judgement) -> BaselineRun:
    record = judgement.record
    limit = record.limits.wall_seconds if record.limits else 0.0
    return BaselineRun(
        record.verifier, record.suite, record.instance, judgement.verdict, record.wall_seconds, limit
    )


def _worst(runs: Sequence[BaselineRun]) -> dict[RunKey, BaselineRun]:
    """One run of each: of several, one that is wrong, or else one that is not right."""
    found: dict[RunKey, BaselineRun] = {}
    for run in runs:
        before = found.get(run.key)
        if before is None or _badness(run) > _badness(before):
            found[run.key] = run
    return found


def _badness(run: BaselineRun) -> int:
    return 2 if run.verdict.is_wrong else int(not run.verdict.is_right)


def _named(key: RunKey) -> str:
    verifier, suite, instance = key
    return f"{verifier} on {suite}/{instance}"


def _key(judgement: Judgement) -> RunKey:
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
        key = _key(judgement)
        said = f"{_named(key)}: {judgement.verdict.value}"
        if key in expected:
            text = f"{said}, as the baseline expects: {expected[key]}"
            found.append(GateFinding(GateFindingKind.EXPECTED, text, key))
        else:
            kind = GateFindingKind.WRONG if judgement.verdict.is_wrong else GateFindingKind.UNWITNESSED
            found.append(GateFinding(kind, f"{said}: {judgement.reason}{_shown(judgement)}", key))
    ran = {_key(j) for j in judgements}
    not_right = {_key(j) for j in judgements if j.verdict is not Verdict.CORRECT}
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
            said = f"{_named(_key(judgement))} answers {judgement.record.answer.value}, against its label"
            text = f"{said}, which could not be checked: {checked.problem}"
            found.append(GateFinding(GateFindingKind.CONTRADICTED, text, _key(judgement)))
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


def _changes(now: Mapping[RunKey, BaselineRun], then: Baseline, when: str) -> list[GateFinding]:
    """What has become wrong, or is no longer, since then; only of runs that there were then.

    What was wrong is mended by a right answer, and by nothing else.
    """
    found = []
    before = _worst(then.runs)
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


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises UnreadableFile if it is not a baseline."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise UnreadableFile(
            path, "there is no baseline here; make one with `dokimos gate … --update-baseline`."
        ) from error
    except OSError as error:
        raise UnreadableFile(path, f"it cannot be read: {error.strerror}.") from error
    if len(content) > _MOST_BYTES:
        raise UnreadableFile(path, "it is too large for a baseline.")
    document = strict_json.parse(content, file=path)
    found = strict_json.convert(document, _Form, file=path, what=_WHAT)
    require_known_keys(document, _Form, file=path, what=_WHAT)
    return found


def write_baseline(
    path: Path,
    outcome: GateOutcome,
    *,
    before: Baseline | None,
    instances: Mapping[str, Container[str]] | None = None,
) -> None:
    """Write a baseline of these runs, and keep the earlier runs that were not part of this gate.

    Expected failures stay unless they were run again and are right. `instances` has the names of all
    instances of some suites: runs on instances that no longer exist are dropped.
    """
    held, seen = before or Baseline(), _worst(outcome.runs)
    known = instances or {}

    def stays(run: BaselineRun | ExpectedFailure) -> bool:
        return run.key not in seen and (run.suite not in known or run.instance in known[run.suite])

    not_right = {key for key, run in seen.items() if run.verdict is not Verdict.CORRECT}
    kept = tuple(one for one in held.expected_failures if one.key in not_right or stays(one))
    runs = [*seen.values(), *(run for run in held.runs if stays(run))]
    in_order = tuple(sorted(runs, key=lambda run: run.key))
    write_whole(path, strict_json.write(_Form(in_order, kept)), what="the baseline", durable=True)


def renew_baseline(
    path: Path, outcome: GateOutcome, *, instances: Mapping[str, Container[str]] | None = None
) -> None:
    """Write a baseline like `write_baseline`, over what it holds now.

    Another gate may have updated it since this one has read it, and none does while this one writes.
    """
    place = Path(os.path.realpath(path))
    lock = place.with_name(f".{place.name[:40]}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with only_one(lock, doing=f"updates {path}", waiting=lambda said: _log.info("%s", said)):
            before = read_baseline(path) if path.exists() else None
            write_baseline(path, outcome, before=before, instances=instances)
    except OSError as error:
        raise cannot_write(path, error, what="the baseline") from error


@dataclass(frozen=True)
class _Failure:
    """A run that failed; `point` is the place of its point below the folder of failures, if it has one."""

    judgement: Judgement
    text: str
    point: Path | None

    def replay(self, below: str = "") -> str:
        """The command that evaluates the point, for someone to whom the folder of failures is `below`."""
        record = self.judgement.record
        files = (Path("onnx", f"{record.instance}.onnx"), Path("vnnlib", f"{record.instance}.vnnlib"))
        paths = (*(Path(record.suite, file) for file in files), self.point or "")
        return shlex.join(["dokimos", "replay", *(str(Path(below, path)) for path in paths)])


def keep_failures(
    folder: Path, outcome: GateOutcome, entries: Mapping[InstanceKey, SuiteEntry]
) -> GateOutcome:
    """Keep the files of every failure in the folder of a campaign; returns the outcome with commands.

    Each suite with a failure becomes a smaller suite there, with network, property, proof and points, so
    that nothing else is needed to see a failure again: neither the suite nor the verifier. A point is the
    verifier's own witness, if it gave one; otherwise one that violates, if one is known. README.md has all
    commands, relative to its own folder. Files that cannot be written only lead to a remark.
    """
    kept = folder / FAILURES
    told = {
        finding.run: finding.text
        for finding in outcome.findings
        if finding.run and (finding.kind.fails or finding.kind is GateFindingKind.EXPECTED)
    }
    failing = [j for j in outcome.judged.judgements if _key(j) in told]
    keys = dict.fromkeys([(j.record.suite, j.record.instance) for j in failing])
    keys |= dict.fromkeys(outcome.failed_labels)
    if not keys:
        return outcome
    try:
        _store(kept, {key: entries[key] for key in keys if key in entries})
        failures = [_Failure(j, told[_key(j)], _keep_point(kept, j, entries)) for j in failing]
        guide = _guide(outcome, failures, {suite for suite, _ in keys})
        write_whole(kept / "README.md", guide, what="the commands")
    except (InputError, OSError) as error:
        _log.warning("The files of the failures are not kept: %s", error)
        return outcome
    here = seen_from_here(kept)
    by_job = {one.judgement.record.job: one for one in failures}

    def pointed(judgement: Judgement) -> Judgement:
        record, shown = judgement.record, judgement.counterexample
        failure = by_job.get(record.job)
        if failure is None:
            return judgement
        if shown is not None and failure.point is not None:
            shown = replace(shown, command=failure.replay(here))
        again = reproduction(record, manifests[record.job], {record.suite: kept / record.suite})
        return replace(judgement, counterexample=shown, reproduce=again)

    manifests = {
        judgement.record.job: one.campaign.manifest
        for one in outcome.judged.campaigns
        for judgement in one.judgements
    }
    campaigns = tuple(
        replace(one, judgements=tuple(map(pointed, one.judgements))) for one in outcome.judged.campaigns
    )
    replays = {_key(one.judgement): one.replay(here) for one in failures if one.point is not None}
    return replace(outcome, judged=JudgedCampaigns(campaigns), replays=MappingProxyType(replays))


def _store(kept: Path, entries: Mapping[InstanceKey, SuiteEntry]) -> None:
    """Write the suites of what failed."""
    suites: dict[str, list[SuiteEntry]] = {}
    for (suite, _), entry in entries.items():
        suites.setdefault(suite, []).append(entry)
    for suite, own in suites.items():
        place = contained(kept, suite)
        for entry in own:
            truth = read_text(entry.truth_path) if exists(entry.truth_path) else None
            contents = read_content(entry.network_path), read_content(entry.property_path)
            store_files(place, InstanceFiles(entry.name, "", *contents, truth))
        rows = [(f"onnx/{e.name}.onnx", f"vnnlib/{e.name}.vnnlib", e.timeout_seconds) for e in own]
        families = {entry.name: entry.family for entry in own}
        write_rows(place, rows, families, recipe={}, version=__version__)


def _keep_point(kept: Path, judgement: Judgement, entries: Mapping[InstanceKey, SuiteEntry]) -> Path | None:
    """Write the point of a failure; returns its place, None if there is no point to be written."""
    record = judgement.record
    entry = entries.get((record.suite, record.instance))
    truth = None if entry is None or not exists(entry.truth_path) else entry.read_truth()
    name = f"{record.instance}.counterexample"
    try:
        if judgement.counterexample is not None:
            text = counterexample_text(judgement.counterexample)
        elif record.answer is Answer.SAT and record.witness is not None:
            text, name = write_witness(record.witness, ()), f"{record.job}.witness"
        elif truth is not None and truth.witness is not None:
            text = write_witness(truth.witness, ())
        else:
            return None
    except InputError:  # a coordinate without a finite decimal expansion
        return None
    place = Path(record.suite, "points", name)
    write_whole(contained(kept, place), text, what="the point")
    return place


def _code(command: str) -> str:
    """A command as code on one line; a name with line breaks cannot be copied from there."""
    return f"      {printable(' '.join(command.split()))}"


def _guide(outcome: GateOutcome, failures: Sequence[_Failure], suites: Iterable[str]) -> str:
    """What to do with the folder of failures: commands that need nothing outside of it but Dokimos."""

    def command(*words: str) -> str:
        return _code(shlex.join(["dokimos", *words]))

    def blocks() -> Iterator[str]:
        yield "# What failed"
        yield "Networks, properties, proofs and points of every failure. Run these commands in this folder."
        for suite in sorted(suites):
            own = markdown_text(suite)
            yield f"- prove the labels of {own} again, and run a verifier on the same questions:"
            again = command("gate", suite, "--verifier", "NAME=PLACE", "--out", f"again-{suite}")
            yield f"{command('check', suite)}\n{again}"
        labels = [finding.text for finding in outcome.of_kind(GateFindingKind.LABEL)]
        for text, failure in (*((text, None) for text in labels), *((one.text, one) for one in failures)):
            yield f"- {markdown_text(text)}"
            if failure is not None and failure.point is not None:
                yield _code(failure.replay())

    return "\n\n".join(blocks()) + "\n"
