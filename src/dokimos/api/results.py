"""`judge`, `explain`, `report`, `gate` and `audit`: the results of campaigns, ours and published ones."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dokimos.api.suites import SuiteSource
from dokimos.campaigns.settings import RunSettings
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import as_paths, expect_writable, reading_at_most, write_whole
from dokimos.core.inputs import MOST_BYTES
from dokimos.core.parallel import default_jobs
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.difficulty.explain.explanation import explain_campaigns
from dokimos.difficulty.explain.explanation import explanation_to_json as explanation_to_json
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.gate import GateFinding as GateFinding
from dokimos.judging.gate import GateFindingKind as GateFindingKind
from dokimos.judging.gate import (
    GateOutcome,
    budget_in_words,
    in_budget_order,
    labels_behind,
    left_out_of,
    may_differ,
    pass_gate,
    second_tries,
)
from dokimos.judging.judged_campaign import JudgedCampaigns, judge_campaigns
from dokimos.judging.label_checks import LabelCheck, warn_of_labels
from dokimos.judging.rules import rule_sets
from dokimos.judging.written_points import write_counterexamples
from dokimos.suites.folder import LintFinding as LintFinding
from dokimos.suites.folder import LintSeverity as LintSeverity
from dokimos.suites.folder import benchmark_folders, benchmark_name
from dokimos.verifiers.base import Verifier

if TYPE_CHECKING:
    from dokimos.difficulty.explain.rows import Explanation
    from dokimos.judging.audit.published_answers import PublishedAnswers
    from dokimos.reports.campaign_report import CampaignReport
    from dokimos.suites.entry import SuiteEntry

# `judge`, `explain` and `report`: the results of campaigns, which are judged once


_log = logging.getLogger("dokimos")

Campaigns = str | Path | Sequence[str | Path]
"""The folder of a campaign, or the folders of several that are judged together."""


def judge(
    campaigns: Campaigns,
    *,
    suites: Sequence[str | Path] = (),
    rules: Sequence[str] | None = (),
    families: str | None = None,
    progress: ProgressCallback[LabelCheck] = ignore,
) -> JudgedCampaigns:
    """Judge every answer of one campaign, or of several together: `dokimos judge`.

    `suites` are the folders of suites that have moved; `rules` names the rule sets to score by (None: those
    of the last two years or, for published results, of their own year and the newest). `families`
    is "network", or a regular expression that is searched for in the name of an instance: its first group
    replaces the recorded family. A witness that replays exactly settles an instance without a label for all
    campaigns.

    A label is checked before an answer is called wrong because of it; the outcome is kept in Dokimos' home.
    A label that fails its check is not used, and is listed in `failed_labels` of the result. `progress` is
    called after each check.

    If an `unsat` is wrong, the point that shows it is in the judgement (`counterexample`) and is written to
    the campaign's folder `counterexamples`, in VNN-COMP's format.

    >>> judged = dokimos.judge("campaign", rules=["exact"])
    >>> judged.is_wrong_somewhere
    False
    >>> [(j.record.verifier, j.verdict.value, j.marks[0].points) for j in judged.judgements][:1]
    [('reference', 'correct', 10)]
    """
    folders = [campaigns] if isinstance(campaigns, str | Path) else campaigns
    done = itertools.count(1)

    def label_checked(instance: str, found: LabelCheck) -> None:
        note = f"{instance}: {found.standing.value}{', not cross-checked' * bool(found.not_compared)}"
        progress(ProgressUpdate("checking labels", next(done), None, note, found))

    judged = judge_campaigns(
        [Path(folder) for folder in folders],
        suites=[Path(suite) for suite in suites],
        rules=rules,
        families=families,
        label_checked=label_checked,
    )
    warn_of_labels(judged)
    for one in judged.campaigns:
        write_counterexamples(one.campaign.folder, one.judgements)
    return judged


def explain(
    campaigns: Campaigns | JudgedCampaigns,
    *,
    suites: Sequence[str | Path] = (),
    families: str | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> Explanation:
    """Explain what makes each verifier and each certificate style time out, and where: `dokimos explain`.

    Takes campaigns, or the result of `judge`; `families` is as for `judge`. Profiles are read from the
    suites; make them with `profile`. `resamples` is how many times networks are resampled and outcomes
    permuted; `seed` is the seed of every random choice.

    >>> explanation = dokimos.explain("campaign", resamples=100)
    >>> [account] = explanation.verifiers
    >>> account.subject, {status.value: runs for status, runs in account.counts.items() if runs}
    ('reference', {'solved': 2})
    """
    if resamples < 100 or seed < 0:
        raise InputError("An explanation needs at least 100 resamples and a seed of at least 0.")
    return explain_campaigns(
        _judged(campaigns, suites, families=families), resampling=Resampling(resamples, seed)
    )


@dataclass(frozen=True, repr=False)
class WrittenReport(Brief):
    """A report, and what was written: the names of its tables and figures."""

    report: CampaignReport
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


def report(
    campaigns: Campaigns | JudgedCampaigns,
    *,
    html: str | Path | None = None,
    csv: str | Path | None = None,
    png: str | Path | None = None,
    suites: Sequence[str | Path] = (),
    rules: Sequence[str] | None = None,
    title: str | None = None,
    families: str | None = None,
    against: Campaigns = (),
    progress: ProgressCallback[LabelCheck] = ignore,
) -> WrittenReport:
    """Write a report on campaigns, wrong answers first: `dokimos report`.

    Takes campaigns, or the result of `judge` (with its rule sets). Writes one self-contained page to
    `html`, all tables to the folder `csv` and all figures to the folder `png`; at least one of the three
    must be given. `rules` names the rule sets to show side by side (default: as None in `judge`). `against`
    are earlier campaigns to compare with. `families` and `progress` are as for `judge`.

    >>> written = dokimos.report("campaign", html="report.html")
    >>> len(written.report.findings.judgements), Path("report.html").exists()
    (2, True)
    """
    if html is None and csv is None and png is None:
        raise InputError("Say what to write: a page (`html`), tables (`csv`) or pictures (`png`).")
    if png is not None:
        from dokimos.reports.exports import require_renderer

        require_renderer()
    if html is not None:
        expect_writable(Path(html), what="report", example="report.html")
    from dokimos.reports.campaign_report import report_campaigns

    judged = _judged(campaigns, suites, rules, families, progress)
    earlier = judge(against, suites=suites, families=families, progress=progress) if against else None
    found = report_campaigns(judged, title=title, earlier=earlier)
    findings, context = found.findings, found.context
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    if csv is not None:
        from dokimos.reports.exports import write_tables

        tables = write_tables(findings, Path(csv))
    if png is not None:
        from dokimos.reports.exports import report_figures, write_pictures

        figures = write_pictures(report_figures(findings), Path(png))
    if html is not None:
        from dokimos.reports.page import write_page

        write_page(findings, context, Path(html))
    return WrittenReport(found, tables, figures)


def _judged(
    campaigns: Campaigns | JudgedCampaigns,
    suites: Sequence[str | Path],
    rules: Sequence[str] | None = (),
    families: str | None = None,
    progress: ProgressCallback[LabelCheck] = ignore,
) -> JudgedCampaigns:
    if isinstance(campaigns, JudgedCampaigns):
        return campaigns
    return judge(campaigns, suites=suites, rules=rules, families=families, progress=progress)


# `gate`: run, judge and report, and decide whether a verifier may pass


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
    fail_slower: float | None = None,
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

    A verifier that can switch its own attack off is asked again without it where it answered `sat`: there,
    its attack has hidden whether its proofs are right. `power` of the result says how many instances tested
    them. With `budget_seconds`, the first instances in each suite's fixed order are run, for as long as the
    time that the runs use leaves room for another one; the findings say how many were left out.
    `fail_slower` closes the gate if answers take more than so many times as long as in the baseline, beyond
    noise. `write` of the outcome writes a page, a summary and a JUnit file.

    >>> outcome = dokimos.gate("tiny", "reference", out="gated")
    >>> outcome.write(junit="junit.xml", html="gate.html")
    >>> outcome.is_open, [finding.text for finding in outcome.findings]
    (True, [])
    """
    from dokimos.api.campaigns import campaign_suites, chosen_verifiers, run_suites, without_attacks
    from dokimos.campaigns.campaign import set_runs_aside
    from dokimos.campaigns.job import remove_folder
    from dokimos.judging.baselines import read_baseline, renew_baseline, write_baseline
    from dokimos.judging.failures import FAILURES, keep_failures

    if update_baseline and baseline is None:
        raise InputError("Give the file to update as `baseline`.")
    if fail_slower is not None and (baseline is None or not fail_slower >= 1):
        raise InputError("`fail_slower` is a factor of at least 1, and needs a `baseline` to compare with.")
    folder = Path(out)
    settings = settings or RunSettings()
    chosen = chosen_verifiers(verifiers)
    is_first = update_baseline and baseline is not None and not Path(baseline).exists()
    held = None if baseline is None or is_first else read_baseline(Path(baseline))
    last = read_baseline(folder / _LAST) if (folder / _LAST).is_file() else None
    wanted = campaign_suites(suites, only, progress)
    whole = {} if only else {suite.name: {entry.name for entry in suite.instances} for suite in wanted}
    following = without_attacks(chosen)
    quiet = {verifier.name for verifier in following.values()}
    names, has = {verifier.name for verifier in chosen} | quiet, ""
    if budget_seconds is not None:
        has = budget_in_words(budget_seconds, settings)
        wanted = in_budget_order(wanted, budget_seconds, settings, most_runs=2 if following else 1)

    entries = {
        (each.name, entry.name): cast("SuiteEntry", entry) for each in wanted for entry in each.instances
    }

    def ask(*, again: bool) -> GateOutcome:
        campaign = run_suites(
            wanted,
            chosen,
            folder,
            settings=settings,
            again=again,
            following=following,
            budget_seconds=budget_seconds,
            progress=progress,
        )
        judged = judge(folder, rules=None, progress=progress)
        own = JudgedCampaigns(tuple(one.of_verifiers(names) for one in judged.campaigns))
        return pass_gate(
            own,
            baseline=held,
            is_updated=update_baseline,
            last=last,
            left_out=left_out_of(wanted, campaign, chosen, has),
            labels=labels_behind(own, entries),
            following=quiet,
            fail_slower=fail_slower,
        )

    remove_folder(folder / FAILURES)
    outcome = ask(again=may_differ(folder, (*chosen, *following.values())))
    if held is not None and (keys := second_tries(outcome, held)):
        set_runs_aside(
            folder,
            lambda record: (record.verifier, record.suite, record.instance) in keys,
            reason="a second try, perhaps it lacked time",
        )
        outcome = ask(again=False)
    outcome = keep_failures(folder, outcome, entries)
    write_baseline(folder / _LAST, outcome.runs, before=last, instances=whole)
    if update_baseline and baseline is not None:
        renew_baseline(Path(baseline), outcome.runs, instances=whole)
    return outcome


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


# `audit`: what is wrong with a benchmark, and with the answers published on it


@dataclass(frozen=True, repr=False)
class Audit(Brief):
    """What an audit found in the files, and its judgement of the published answers.

    `judged` is None if no results were given.
    """

    findings: tuple[LintFinding, ...]
    benchmarks: tuple[str, ...] = ()
    judged: JudgedCampaigns | None = None

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether a file or a published answer is wrong; the command then exits with 1."""
        errors = any(finding.severity is LintSeverity.ERROR for finding in self.findings)
        return errors or (self.judged is not None and self.judged.is_wrong_somewhere)

    @property
    def has_fault(self) -> bool:
        """Whether a rule or a judgement broke off by a fault of Dokimos; the command then exits with 3."""
        from dokimos.judging.audit.lint import FAULT

        faults = any(finding.rule == FAULT.name for finding in self.findings)
        return faults or (self.judged is not None and self.judged.has_fault)

    def write(
        self,
        *,
        html: str | Path | None = None,
        json: str | Path | None = None,
        sarif: str | Path | None = None,
    ) -> None:
        """Write the findings to these files: a page, all fields, and the format of code scanners."""
        if html is not None:
            _write_page(self, Path(html))
        if json is not None:
            write_whole(Path(json), strict_json.write({"findings": self.findings}), what="the findings")
        if sarif is not None:
            from dokimos.judging.audit.lint import sarif as as_sarif

            write_whole(Path(sarif), as_sarif(self.findings), what="the findings")


def audit(
    folders: str | Path | Sequence[str | Path],
    *,
    results: str | Path | None = None,
    out: str | Path = "audit",
    not_scored: Sequence[str] = (),
    rules: Sequence[str] | None = None,
    label_seconds: float | None = None,
    most_bytes: int = MOST_BYTES,
    jobs: int | None = None,
    progress: ProgressCallback[None] = ignore,
) -> Audit:
    """Report what is wrong with benchmarks and with results published on them: `dokimos audit`.

    `folders` are benchmarks, or folders of benchmarks. Every file that they list is examined; `write` of
    the result writes a page. `results` is a folder with the answers and counterexamples of several
    tools, as VNN-COMP publishes them; they become an ordinary campaign in `out`, for `judge` and `report`.
    What the rules settle on their way, such as an easy `unsat`, is proven, kept in `out` and counts as a
    label. `not_scored` names tools that took part without being scored; `rules` are the rule sets to score
    by (default: `exact`, those of the results' year, and the newest). With `label_seconds`, `label` spends
    this long looking for the label of each instance with an answer that nothing else confirms or refutes,
    and writes it to the benchmark's `truth/`; all labels then go to the database (`find_labels`), with what
    each tool answered. What is missing, unreadable or cannot be judged is a
    finding, and the rest is examined; files larger than `most_bytes` are too large. `jobs` is the number
    of processes. If interrupted, the same call continues reading the results where it stopped.

    >>> dokimos.audit("tiny", jobs=1).is_wrong_somewhere
    False
    >>> entry = dokimos.read_suite("tiny").entries[1]
    >>> table = Path("results/mine/2025_tiny/results.csv")
    >>> table.parent.mkdir(parents=True)
    >>> row = f"tiny,{entry.network_path},{entry.property_path},0.1,unsat,2.5"
    >>> _ = table.write_text(row)
    >>> audited = dokimos.audit("tiny", results="results", out="audited", jobs=1)
    >>> [(j.record.verifier, j.verdict.value) for j in audited.judged.judgements]
    [('mine', 'wrong-unsat')]
    """
    from dokimos.judging.audit.published_answers import PublishedAnswers

    given = as_paths(folders, none="There is nothing to audit; give the folder of a benchmark.")
    rule_sets(rules or ())  # an unknown one is refused before hours of work
    if results is None and (not_scored or label_seconds is not None):
        raise InputError("`not_scored` and `label_seconds` need published results; give them as `results`.")
    places = [place for folder in given for place in benchmark_folders(folder)]
    processes = default_jobs() if jobs is None else jobs
    with reading_at_most(most_bytes):
        return _audited(
            places,
            None if results is None else Path(results),
            PublishedAnswers(suites=(), out=Path(out), rules=rules, jobs=processes, progress=progress),
            not_scored,
            label_seconds,
        )


def _audited(
    places: Sequence[Path],
    results: Path | None,
    answers: PublishedAnswers,
    not_scored: Sequence[str],
    label_seconds: float | None,
) -> Audit:
    from dokimos.api.editions import keep_audited
    from dokimos.judging.audit.lint import lint_published
    from dokimos.judging.audit.published_answers import suites_with_results

    suites = [] if results is None else suites_with_results(places, results)
    names = tuple(benchmark_name(place) for place in places)
    findings = tuple(one for place in places for one in _linted(place, answers.jobs, answers.progress))
    if results is None or not suites:
        return Audit(findings, names)
    answers = replace(answers, suites=suites)
    unread = answers.read(results, not_scored=not_scored)
    judged = answers.judged(findings, label_seconds)
    if label_seconds is not None:
        keep_audited(judged)
    return Audit((*findings, *unread, *lint_published(judged)), names, judged)


def _write_page(found: Audit, path: Path) -> None:
    from dokimos.reports.campaign_report import report_campaigns
    from dokimos.reports.page import write_file_page, write_page

    if found.judged is None:
        write_file_page(found.findings, list(dict.fromkeys(found.benchmarks)), path)
        return
    report = report_campaigns(found.judged, files=found.findings)
    write_page(report.findings, report.context, path)


def _linted(place: Path, jobs: int, progress: ProgressCallback[None]) -> tuple[LintFinding, ...]:
    from dokimos.judging.audit.lint import lint_benchmark

    def linted(done: int, total: int, name: str) -> None:
        progress(ProgressUpdate(f"reading {benchmark_name(place)}", done, total, name, None))

    return lint_benchmark(place, jobs=jobs, linted=linted)
