"""`gate`: run, judge and report, and decide whether a verifier may pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from dokimos.api.campaigns import campaign_suites, chosen_verifiers, run_suites
from dokimos.api.results import judge, report
from dokimos.api.suites import SuiteSource
from dokimos.campaigns.campaign import set_runs_aside
from dokimos.campaigns.job import remove_folder
from dokimos.campaigns.manifest import read_manifest
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole
from dokimos.core.progress import ProgressCallback, ignore
from dokimos.judging.gate import (
    FAILURES,
    GateOutcome,
    keep_failures,
    pass_gate,
    read_baseline,
    renew_baseline,
    second_tries,
    write_baseline,
)
from dokimos.judging.judged_campaign import InstanceKey, JudgedCampaigns
from dokimos.judging.label_checks import LabelCheck, LabelChecker
from dokimos.judging.verdicts import Verdict
from dokimos.suites.budgets import first_within, in_order
from dokimos.suites.entry import SuiteEntry, exists
from dokimos.verifiers.base import Verifier

# Which instances of suites fit into a time budget


def within_budget(
    suites: Sequence[CampaignSuite], seconds: float, settings: RunSettings
) -> tuple[list[CampaignSuite], tuple[str, ...]]:
    """The suites with only the instances that fit into a budget, and what was left out of each.

    Raises InputError if not even the first instance of each suite fits: nothing of that suite would be
    tested.
    """
    jobs = settings.jobs
    room = seconds * jobs / settings.repeat
    ordered = [in_order(cast("tuple[SuiteEntry, ...]", each.instances), name=each.name) for each in suites]
    limits = [
        [settings.limits(entry.timeout_seconds).wall_seconds for entry in entries] for entries in ordered
    ]
    counts = first_within(limits, seconds=room)
    has = f"{seconds:g} s with {jobs} {'job' if jobs == 1 else 'jobs'} at a time"
    if not all(counts):
        least = sum(suite[0] for suite in limits)
        names = ", ".join(suite.name for suite in suites)
        raise InputError(
            f"A budget of {has} is too small for the first instance of each suite ({names}); these may "
            f"take {least:g} s together; give a larger `budget_seconds`, a smaller `timeout_seconds` or "
            "fewer suites."
        )
    kept, left_out = [], []
    for suite, entries, count in zip(suites, ordered, counts, strict=True):
        kept.append(replace(suite, instances=entries[:count]))
        if count < len(entries):
            left_out.append(
                f"{len(entries) - count} of {len(entries)} instances of {suite.name}: the budget is {has}"
            )
    return kept, tuple(left_out)


#: The file in the campaign's folder that keeps what the gate saw last time.
_LAST = "gate.json"


def gate(
    suites: SuiteSource | Sequence[SuiteSource],
    verifiers: str | Verifier | Sequence[str | Verifier],
    *,
    out: str | Path,
    settings: RunSettings | None = None,
    baseline: str | Path | None = None,
    update_baseline: bool = False,
    budget_seconds: float | None = None,
    rules: Sequence[str] = (),
    only: Sequence[str] = (),
    progress: ProgressCallback[object] = ignore,
) -> GateOutcome:
    """Run verifiers on suites, judge every answer, and decide whether they may pass: `dokimos gate`.

    `out` is the folder of the campaign; earlier runs of other verifiers there do not count. The same call
    continues where it stopped, and repeats the runs of a verifier that is called differently or has another
    version. A verifier at a place is always run again unless its version is given (``,version=…``): its
    files do not show everything that its answers depend on. Labels are checked before an answer is right or
    wrong by them. The files of every failure are kept in the folder `failures` in `out`. `baseline` is a
    file that lists what was right before and which failures are expected; `update_baseline` writes it, and
    keeps its entries for what this call did not run. `settings` say what the runs may use.
    With `budget_seconds`, only the first instances in each suite's fixed order are run, as many as have
    time limits that add up to at most this budget for each of the `jobs`; the findings say how many were
    left out. `rules` are rule sets to score by; they do not affect the result. `write` of the outcome
    writes a page, a summary and a JUnit file.

    >>> outcome = dokimos.gate("tiny", "reference", out="gated")
    >>> outcome.write(junit="junit.xml", html="gate.html")
    >>> outcome.is_open, [finding.text for finding in outcome.findings]
    (True, [])
    """
    if update_baseline and baseline is None:
        raise InputError("Give the file to update as `baseline`.")
    folder = Path(out)
    settings = settings or RunSettings()
    chosen = chosen_verifiers(verifiers)
    is_first = update_baseline and baseline is not None and not Path(baseline).exists()
    held = None if baseline is None or is_first else read_baseline(Path(baseline))
    last = read_baseline(folder / _LAST) if (folder / _LAST).is_file() else None
    wanted = campaign_suites(suites, only, progress)
    whole = {} if only else {suite.name: {entry.name for entry in suite.instances} for suite in wanted}
    names = {verifier.name for verifier in chosen}
    left_out: tuple[str, ...] = ()
    if budget_seconds is not None:
        wanted, left_out = within_budget(wanted, budget_seconds, settings)

    entries = {(each.name, entry.name): entry for each in wanted for entry in _entries(each)}

    def ask(*, again: bool) -> GateOutcome:
        run_suites(wanted, chosen, folder, settings=settings, again=again, progress=progress)
        judged = judge(folder, rules=rules, progress=progress)
        own = JudgedCampaigns(tuple(one.of_verifiers(names) for one in judged.campaigns))
        return pass_gate(
            own,
            baseline=held,
            is_updated=update_baseline,
            last=last,
            left_out=left_out,
            labels=_checked_labels(own, entries),
        )

    remove_folder(folder / FAILURES)
    outcome = ask(again=_may_differ(folder, chosen))
    if held is not None and (keys := second_tries(outcome, held)):
        set_runs_aside(
            folder,
            lambda record: (record.verifier, record.suite, record.instance) in keys,
            reason="a second try, perhaps it lacked time",
        )
        outcome = ask(again=False)
    outcome = keep_failures(folder, outcome, entries)
    write_baseline(folder / _LAST, outcome, before=last, instances=whole)
    if update_baseline and baseline is not None:
        renew_baseline(Path(baseline), outcome, instances=whole)
    return outcome


def _may_differ(folder: Path, verifiers: Sequence[Verifier]) -> bool:
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


def _entries(suite: CampaignSuite) -> tuple[SuiteEntry, ...]:
    return cast("tuple[SuiteEntry, ...]", suite.instances)


def _checked_labels(
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


def write_gate(
    outcome: GateOutcome,
    *,
    junit: str | Path | None = None,
    markdown: str | Path | None = None,
    html: str | Path | None = None,
) -> None:
    """Write what a gate found: a JUnit file, a summary in Markdown, a page; `outcome.write` is the same.

    >>> dokimos.write_gate(outcome, markdown="gate.md")
    """
    from dokimos.reports.exports import as_junit, as_markdown

    if junit is not None:
        write_whole(Path(junit), as_junit(outcome), what="the JUnit file")
    if markdown is not None:
        write_whole(Path(markdown), as_markdown(outcome), what="the summary")
    if html is not None:
        report(outcome.judged, html=html)
