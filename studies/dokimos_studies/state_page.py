"""The state of the verifiers: judged campaigns, one per suite, as one page of Markdown.

Everything on the page comes from the campaigns: the same campaigns give the same page, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.manifest import Manifest
from dokimos.core.readable import printable
from dokimos.judging.judged_campaign import JudgedCampaign
from dokimos.judging.marks import scores
from dokimos.judging.power import power_of
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.reports.exports import markdown_table
from dokimos.reports.findings import Findings
from dokimos.reports.sections.support import support_rows
from dokimos.reports.sections.wrong_answers import WrongAnswers
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
        return Findings(self.judgements, known=self.judged.facts, repeats=self.manifest.repeat)

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
        _wrong_answers(states),
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
        plain = {v for v in Verdict if v.is_wrong} | {Verdict.CORRECT, Verdict.UNDECIDED}
        apart = [v for v in Verdict if v not in plain and verdicts[v]]
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
        *([""] if (power := power_of(state.judgements)) else []),
        *(f"- {each.in_words}" for each in power),
        *(["", *lines] if (lines := list(_operators(state.findings))) else []),
    ]


def _wrong_answers(states: Sequence[_SuiteState]) -> list[str]:
    """All wrong answers, suite by suite."""
    lines = [line for state in states for line in _wrong_on(state.findings, state.name)]
    return [f"## {WrongAnswers.title}", "", *(lines or ["None."])]


def _wrong_on(findings: Findings, suite: str) -> Iterator[str]:
    ordered = sorted(
        WrongAnswers().rows(findings), key=lambda row: (row.verifier, row.verdict.value, row.own_name)
    )
    for verifier, group in groupby(ordered, key=lambda row: row.verifier):
        wrong = list(group)
        yield from (f"### {verifier} on {suite}: {len(wrong)}", "")
        for row in wrong:
            label = "no label"
            if row.truth is not None:
                label = f"proven `{row.truth.value}` ({row.certificate})"
            yield (f"- `{row.own_name}`, {label}: **{row.verdict.value}**. {_sentence(row.reason)}")
            yield from ("", f"      {row.reproduce}", "") if row.reproduce else ("",)


def _sentence(text: str) -> str:
    said = " ".join(text.split())
    return said[:1].upper() + said[1:] + ("" if said.endswith(".") else ".")


def _operators(findings: Findings) -> Iterator[str]:
    """Which forms of operators are read, on the suite `ops`; on others, what cannot be read."""
    whole = _whole_pairs(findings)
    rows = support_rows(whole, Naming.of([j.record for j in whole]), findings.known)
    if rows is None:
        yield from _unreadable(findings)
        return
    yield (
        "Each form of an operator has an instance that is `sat` and one that is `unsat`. *both*: both "
        "are solved; *wrong*: one of the answers is wrong; otherwise the answer; empty: not both ran."
    )
    yield ""
    cells = [
        [row.op, row.variant, *("" if cell is None else cell.text for cell in row.cells)]
        for row in rows.rows
    ]
    yield from markdown_table(["operator", "form", *rows.verifiers], cells, numbers=False)


def _whole_pairs(findings: Findings) -> list[Judgement]:
    """The runs of every verifier on forms of which it was run on all instances.

    Half a pair would look like a verifier that solves only one of the two.
    """
    forms = {key: str(facts.made_by.get("variant")) for key, facts in findings.known.items()}
    planned = Counter(forms.values())

    def form(judgement: Judgement) -> str | None:
        return forms.get((judgement.record.suite, judgement.record.instance))

    done = Counter((j.record.verifier, form(j)) for j in findings.judgements)
    return [
        j
        for j in findings.judgements
        if (own := form(j)) is not None and done[j.record.verifier, own] == planned[own] * findings.repeats
    ]


def _unreadable(findings: Findings) -> Iterator[str]:
    """What the verifiers say they cannot read."""
    for verifier, group in findings.by_verifier().items():
        said = Counter(
            _brief(j.record.detail)
            for j in group
            if j.verdict is Verdict.UNDECIDED and j.record.answer is Answer.UNSUPPORTED
        )
        if said:
            listed = "; ".join(f"{what} ({count})" for what, count in sorted(said.items()))
            yield f"- {verifier} cannot read: {listed}."


def _brief(text: str, *, characters: int = 90) -> str:
    line = " ".join(printable(text).replace("|", "/").replace("`", "'").split())
    return line if len(line) <= characters else f"{line[:characters]}…"


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
