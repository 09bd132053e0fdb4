"""Whether a verifier passes the gate: what is not allowed, what got worse, and what has changed.

A gate passes only if something was really answered. It fails on

- a wrong answer, unless the baseline expects it,
- a `sat` without a witness, unless the baseline expects it: the answer is right, but shows nothing,
- runs that are missing,
- a verifier that decides nothing at all,
- an answer that was right in the baseline and is not right now; if the baseline had it only shortly before
  its limit, a second try must fail too,
- a baseline that has none of a verifier's runs on a suite: nothing was compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from dokimos.campaigns.records import Seconds
from dokimos.core import strict_json
from dokimos.core.brief import Brief
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import write_whole
from dokimos.core.known_keys import require_known_keys
from dokimos.core.readable import exact_number
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.verdicts import Judgement, Verdict

SCHEMA: Literal[1] = 1
#: What is solved in more than this share of its limit is near it: the next machine may be slower.
NEAR_SHARE = 0.5
_MOST_BYTES = 64 << 20
_WHAT = "a baseline of `dokimos gate`"

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
    EXPECTED = "expected failure"
    NEAR = "near its limit"
    NOT_ASKED = "not asked"
    LEFT_OUT = "left out"
    NEW_WRONG = "new wrong"
    MENDED = "mended"

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
    """The result of a gate; `runs` is what a baseline would keep."""

    findings: tuple[GateFinding, ...]
    runs: tuple[BaselineRun, ...]
    judged: JudgedCampaigns = field(repr=False)

    @property
    def is_open(self) -> bool:
        """Whether the verifiers pass."""
        return not any(finding.kind.fails for finding in self.findings)

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
) -> GateOutcome:
    """The gate's findings on judged campaigns, compared with a baseline and with the previous time.

    `is_updated`: the baseline will be rewritten, and need not have these runs yet. If there was no previous
    time, changes are those since the baseline. `left_out` has a sentence for each suite about what was not
    run.
    """
    held = baseline or Baseline()
    runs = tuple(_run(judgement) for judgement in judged.judgements)
    worst = _worst(runs)
    findings = [
        *_bad_answers(judged.judgements, held.expected),
        *_missing(judged),
        *_labels(judged),
        *_silent(judged.judgements),
        *_lost(held, worst),
        *([] if is_updated else _uncompared(held, worst)),
        *_near(runs),
        *_not_asked(held, worst),
        *(GateFinding(GateFindingKind.LEFT_OUT, text) for text in left_out),
        *(_changes(worst, held, "in the baseline") if last is None else _changes(worst, last, "last time")),
    ]
    return GateOutcome(tuple(findings), runs, judged)


def second_tries(outcome: GateOutcome, baseline: Baseline) -> frozenset[RunKey]:
    """The runs that are no longer right but were near their limit in the baseline, and get a second try."""
    near = {run.key for run in baseline.runs if run.is_near}
    return frozenset(
        finding.run
        for finding in outcome.of_kind(GateFindingKind.LOST)
        if finding.run in near and finding.run
    )


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
    bad = {_key(j) for j in judgements if _is_bad(j.verdict)}
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
    for key in sorted(expected.keys() & ran - bad):
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


def _labels(judged: JudgedCampaigns) -> list[GateFinding]:
    return [
        GateFinding(GateFindingKind.LABEL, f"the label of {suite}/{instance} fails: {problem}")
        for (suite, instance), problem in judged.failed_labels.items()
    ]


def _silent(judgements: Sequence[Judgement]) -> list[GateFinding]:
    counts: dict[str, list[bool]] = {}
    for judgement in judgements:
        counts.setdefault(judgement.record.verifier, []).append(judgement.record.answer.decides)
    return [
        GateFinding(
            GateFindingKind.SILENT,
            f"{verifier} decides none of its {len(decided)} runs: nothing was tested",
        )
        for verifier, decided in counts.items()
        if not any(decided)
    ]


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
    """The verifiers and suites of which the baseline has no run, though it has others."""
    if not baseline.runs:
        return []
    compared = {key[:2] for key in now.keys() & {run.key for run in baseline.runs}}
    has = ", ".join(sorted({f"{run.verifier} on {run.suite}" for run in baseline.runs}))
    return [
        GateFinding(
            GateFindingKind.UNCOMPARED,
            f"the baseline has no such run of {verifier} on {suite}, only {has}; add these runs with "
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
    """What has become wrong, or right, since then; only of runs that there were then."""
    found = []
    before = _worst(then.runs)
    for key in sorted(now.keys() & before.keys() - then.expected.keys()):
        is_wrong, was_wrong = now[key].verdict.is_wrong, before[key].verdict.is_wrong
        if is_wrong and not was_wrong:
            found.append(GateFinding(GateFindingKind.NEW_WRONG, f"{_named(key)} was not wrong {when}", key))
        elif was_wrong and not is_wrong:
            text = f"{_named(key)} was wrong {when}, and is {now[key].verdict.value} now"
            found.append(GateFinding(GateFindingKind.MENDED, text, key))
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

    Expected failures stay unless they were run again and no longer fail. `instances` has the names of all
    instances of some suites: runs on instances that no longer exist are dropped.
    """
    held, seen = before or Baseline(), _worst(outcome.runs)
    known = instances or {}

    def stays(run: BaselineRun | ExpectedFailure) -> bool:
        return run.key not in seen and (run.suite not in known or run.instance in known[run.suite])

    bad = {key for key, run in seen.items() if _is_bad(run.verdict)}
    kept = tuple(one for one in held.expected_failures if one.key in bad or stays(one))
    runs = [*seen.values(), *(run for run in held.runs if stays(run))]
    in_order = tuple(sorted(runs, key=lambda run: run.key))
    write_whole(path, strict_json.write(_Form(in_order, kept)), what="the baseline")
