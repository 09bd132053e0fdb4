"""The state of the verifiers: judged campaigns, one per suite, as one page of Markdown.

Everything on the page comes from the campaigns: the same campaigns give the same page, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.manifest import Manifest
from dokimos.judging.judged_campaign import JudgedCampaign
from dokimos.judging.marks import scores
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.exports import markdown_table
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import sections
from dokimos.suites.instance import Answer
from dokimos.verifiers.execution.limits import Termination

_UNDECIDED = (Answer.UNKNOWN, Answer.UNSUPPORTED, Answer.TIMEOUT, Answer.MEMOUT, Answer.ERROR)
#: A run that hit its wall-clock limit with less than this share of a processor might have ended in time.
STARVED = 0.5


@dataclass(frozen=True)
class _SuiteState:
    """One campaign on one suite, as the page shows it."""

    judged: JudgedCampaign

    @property
    def manifest(self) -> Manifest:
        return self.judged.campaign.manifest

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        return self.judged.judgements

    @property
    def name(self) -> str:
        """The suite's name."""
        return self.manifest.suites[0].name

    @property
    def verifiers(self) -> tuple[str, ...]:
        """The planned verifiers, in the order in which they were given."""
        return tuple(tool.name for tool in self.manifest.verifiers)

    @property
    def planned_each(self) -> int:
        """How many runs were planned for each verifier."""
        return len(self.manifest.instances) * self.manifest.repeat

    @property
    def findings(self) -> Findings:
        """The findings for the sections."""
        return Findings.of(self.judgements, known=self.judged.facts, repeats=self.manifest.repeat)

    def of(self, verifier: str) -> list[Judgement]:
        """The verdicts on the runs of one verifier."""
        return [j for j in self.judgements if j.record.verifier == verifier]


def state_page(
    campaigns: Sequence[JudgedCampaign],
    *,
    command: str,
    title: str = "The state of the verifiers",
    absent: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """The page about campaigns on one suite each. `command` is the command that made it; `absent` names
    suites that belong on it but were not run. `notes` say what the records cannot: which runs were
    repeated, and why.
    """
    states = [_SuiteState(judged) for judged in campaigns]
    parts = [
        _head(states, command, title),
        [*_circumstances(states), *(f"- {note}" for note in notes)],
        *(_suite(state) for state in states),
        *_chapters(states),
        _incomplete(states, absent),
    ]
    return "\n\n".join("\n".join(part).rstrip() for part in parts if part) + "\n"


def _head(states: Sequence[_SuiteState], command: str, title: str) -> list[str]:
    records = _records(states)
    begun = sorted(record.started_at for record in records)
    wrong = Counter(j.record.verifier for state in states for j in state.judgements if j.verdict.is_wrong)
    total = f"{wrong.total()} of them are wrong" if wrong.total() != 1 else "1 of them is wrong"
    blamed = ", ".join(f"{verifier} {count}" for verifier, count in wrong.most_common())
    decided = sum(record.answer.decides for record in records)
    return [
        f"# {title}",
        "",
        f"Written by `{command}` from {len(records)} recorded runs, the first begun on {_minute(begun[0])} "
        f"and the last on {_minute(begun[-1])}; all numbers below come from these runs. "
        f"{decided} runs ended with an answer; {total}{f' ({blamed})' if blamed else ''}. Each label is "
        "proven, each witness was replayed in exact arithmetic and in onnxruntime; what `correct`, `wrong` "
        "and the rule sets mean is explained in [verdicts](../../docs/verdicts.md), and how each verifier "
        "is called in [verifiers](../../docs/verifiers.md).",
    ]


def _circumstances(states: Sequence[_SuiteState]) -> list[str]:
    manifests = [state.manifest for state in states]
    machines = dict.fromkeys(
        f"{m.processor}, {m.cores} cores, {m.memory_bytes / 2**30:.0f} GiB, {m.system}"
        for m in (manifest.machine for manifest in manifests)
    )
    tools = dict.fromkeys(tool for manifest in manifests for tool in manifest.verifiers)
    memory = dict.fromkeys(f"{manifest.limits.memory_bytes / 1e9:g} GB" for manifest in manifests)
    versions = dict.fromkeys(manifest.dokimos_version for manifest in manifests)
    times = ", ".join(f"{s.name} {s.manifest.limits.wall_seconds:g} s" for s in states)
    cpu = ", ".join(
        f"{s.name} {s.manifest.limits.cpu_seconds:g} s" for s in states if s.manifest.limits.cpu_seconds
    )
    kept = dict.fromkeys(record.enforced_by for record in _records(states) if record.enforced_by)
    return [
        "## Circumstances",
        "",
        f"- Verifiers: {', '.join(f'{tool.name} {tool.version}' for tool in tools)}.",
        f"- Dokimos {', '.join(versions)}, on {'; '.join(machines)}.",
        f"- Limits of each run: wall clock {times}; {f'CPU time {cpu}; ' if cpu else ''}"
        f"{', '.join(memory)} of memory; one thread.",
        *(f"- How limits were kept: {means}." for means in kept),
        f"- {_business(_records(states))}",
    ]


def _business(records: Sequence[RunRecord]) -> str:
    """How much of a processor the timed-out runs had: the effect of a busy machine."""
    stopped = [r for r in records if r.termination is Termination.WALL_LIMIT]
    if not stopped:
        return "No run hit its wall-clock limit."
    share = sum(r.cpu_seconds for r in stopped) / sum(r.wall_seconds for r in stopped)
    starved = sum(map(is_starved, stopped))
    said = (
        f"{len(stopped)} runs hit their wall-clock limit; together they got {share:.0%} of a CPU, and "
        f"{starved} of them less than {STARVED:.0%}"
    )
    if not starved:
        return f"{said}."
    return (
        f"{said}: the machine was shared with other work, and a timeout marked *starved* below says little "
        "about the verifier. This does not affect answers."
    )


def is_starved(record: RunRecord) -> bool:
    """Whether a run hit its wall-clock limit because other work kept it from computing."""
    return (
        record.termination is Termination.WALL_LIMIT and record.cpu_seconds < STARVED * record.wall_seconds
    )


def _suite(state: _SuiteState) -> list[str]:
    manifest = state.manifest
    found = scores(state.judgements)
    rules = tuple(dict.fromkeys(score.rules for score in found))
    points = {(score.verifier, score.rules): score.points for score in found}
    heads = ["verifier", "solved", "wrong", "listed apart", *(a.value for a in _UNDECIDED), "starved"]
    rows = []
    for verifier in state.verifiers:
        judged = state.of(verifier)
        verdicts = Counter(j.verdict for j in judged)
        apart = [v for v in Verdict if v.is_listed_apart and verdicts[v]]
        answers = Counter(j.record.answer for j in judged if j.verdict is Verdict.UNDECIDED)
        rows.append(
            [
                verifier,
                f"{verdicts[Verdict.CORRECT]}/{state.planned_each}",
                str(sum(count for verdict, count in verdicts.items() if verdict.is_wrong)),
                ", ".join(f"{verdicts[v]} {v.value}" for v in apart) or "0",
                *(str(answers[answer]) for answer in _UNDECIDED),
                str(sum(is_starved(j.record) for j in judged)),
                *(str(points.get((verifier, name), 0)) for name in rules),
            ]
        )
    version = f" (version {manifest.suites[0].version})" if manifest.suites[0].version else ""
    begun = sorted(j.record.started_at for j in state.judgements)
    when = f", run from {_minute(begun[0])} to {_minute(begun[-1])}" if begun else ""
    limits = manifest.limits
    each = f"{limits.cpu_seconds:g} s of CPU time" if limits.cpu_seconds else f"{limits.wall_seconds:g} s"
    return [
        f"## {state.name}",
        "",
        f"{len(manifest.instances)} instances{version}, {each} each{when}. "
        "The last columns are points: 10 for a correct answer, −150 for an incorrect one.",
        "",
        *markdown_table([*heads, *rules], rows),
        *(
            line
            for section in sections()
            if not section.gathered and (lines := list(section.markdown(state.findings, state.name)))
            for line in ("", *lines)
        ),
    ]


def _chapters(states: Sequence[_SuiteState]) -> list[list[str]]:
    """What sections collect from all suites, one chapter per section."""
    chapters = []
    for section in sections():
        if section.gathered:
            lines = [line for state in states for line in section.markdown(state.findings, state.name)]
            chapters.append([f"## {section.title}", "", *(lines or ["None."])])
    return chapters


def _incomplete(states: Sequence[_SuiteState], absent: Sequence[str]) -> list[str]:
    """What should have been run but was not."""
    lines = [f"- Nothing was run on the suite `{name}`." for name in absent]
    for state in states:
        for verifier in state.verifiers:
            if missing := state.planned_each - len(state.of(verifier)):
                lines.append(
                    f"- {state.name}: {missing} of {state.planned_each} runs of {verifier} are missing."
                )
    return ["## What is missing", "", *lines] if lines else []


def _records(states: Sequence[_SuiteState]) -> list[RunRecord]:
    return [j.record for state in states for j in state.judgements]


def _minute(time: str) -> str:
    """A record's time, in readable form."""
    return f"{time[:10]} at {time[11:16]} UTC"
