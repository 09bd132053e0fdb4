"""`judge`, `explain`, `report` and `audit`: the results of campaigns, ours and published ones."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.api.arguments import as_paths
from dokimos.campaigns.plan import CampaignSuite
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.core.parallel import default_jobs, each
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief, printable
from dokimos.difficulty.explain.explanation import explain_campaigns
from dokimos.difficulty.explain.rows import Explanation
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.audit.lint import SETTLING_RULES, lint_benchmark, lint_published
from dokimos.judging.audit.lint import sarif as as_sarif
from dokimos.judging.judge_instances import audited_label
from dokimos.judging.judged_campaign import JudgedCampaigns, judge_campaigns
from dokimos.judging.label_checks import LabelCheck
from dokimos.judging.label_tasks import LabelTask, label_instance
from dokimos.judging.published_results import ImportedResults, find_results, import_results
from dokimos.judging.rules import rule_sets
from dokimos.judging.verdicts import failed_label_in_words
from dokimos.judging.written_points import write_counterexamples
from dokimos.reports.campaign_report import CampaignReport, report_campaigns
from dokimos.reports.page import write_file_page, write_page
from dokimos.suites.folder import LintFinding, LintSeverity, benchmark_folders, benchmark_name, read_suite

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


def warn_of_labels(judged: JudgedCampaigns) -> None:
    """Log a remark for each incomplete campaign, and for each label that no answer is judged by."""
    for (suite, instance), problem in judged.failed_labels.items():
        _log.warning("%s", printable(failed_label_in_words(suite, instance, problem)))
    for (suite, instance), problem in judged.unchecked_labels.items():
        _log.warning(
            "%s/%s: its label could not be checked, so no answer is judged by it: %s",
            suite,
            instance,
            problem,
        )
    for (suite, instance), why in judged.not_compared.items():
        _log.warning("%s/%s: its label is proven, but not cross-checked: %s", suite, instance, why)
    if left_out := len(judged.not_compared):
        checked = {(j.record.suite, j.record.instance) for j in judged.judgements if j.label_check}
        done = len(checked) - left_out
        _log.warning("%d of the %d checked labels are also cross-checked", done, len(checked))
    for one in judged.campaigns:
        if one.missing:
            _log.warning(
                "%s: %d of %d planned runs are missing; `dokimos run` continues with them",
                one.campaign.folder,
                one.missing,
                one.campaign.planned,
            )
    set_aside = Counter(one.plugin_proof for one in judged.judgements if one.plugin_proof)
    for proof, count in set_aside.items():
        runs = "1 run is" if count == 1 else f"{count} runs are"
        _log.warning(
            "%s unlabelled: the label is proven only by %s, which is never used against a verifier",
            runs,
            proof,
        )


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


# `audit`: what is wrong with a benchmark, and with the answers published on it


#: How long to look for the proof of what a rule has just settled, in seconds of the processor.
_PROOF_SECONDS = 10.0


@dataclass(frozen=True, repr=False)
class Audit(Brief):
    """What an audit found in the files, and its judgement of the published answers.

    `judged` is None if no results were given; `strangers` are the rows of the results that match no
    benchmark.
    """

    findings: tuple[LintFinding, ...]
    benchmarks: tuple[str, ...] = ()
    judged: JudgedCampaigns | None = None
    strangers: tuple[str, ...] = ()

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether a file or a published answer is wrong; the command then exits with 1."""
        errors = any(finding.severity is LintSeverity.ERROR for finding in self.findings)
        return errors or (self.judged is not None and self.judged.is_wrong_somewhere)

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
            write_whole(Path(sarif), as_sarif(self.findings), what="the findings")


def audit(
    folders: str | Path | Sequence[str | Path],
    *,
    results: str | Path | None = None,
    out: str | Path = "audit",
    not_scored: Sequence[str] = (),
    rules: Sequence[str] | None = None,
    label_seconds: float | None = None,
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
    and writes it to the benchmark's `truth/`. `jobs` is the number of processes. If interrupted, the same
    call continues reading the results where it stopped.

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
    given = as_paths(folders, none="There is nothing to audit; give the folder of a benchmark.")
    rule_sets(rules or ())  # an unknown one is refused before hours of work
    if results is None and (not_scored or label_seconds is not None):
        raise InputError("`not_scored` and `label_seconds` need published results; give them as `results`.")
    places = [place for folder in given for place in benchmark_folders(folder)]
    processes = default_jobs() if jobs is None else jobs
    suites = [] if results is None else suites_with_results(places, Path(results))
    names = tuple(benchmark_name(place) for place in places)
    found = Audit(tuple(one for place in places for one in _linted(place, processes, progress)), names)
    if results is not None:
        imported = _imported(Path(results), suites, Path(out), not_scored, progress)
        judged = _audits_judged(Path(out), rules, processes, progress)
        if _label(_settled_by_rules(judged, suites, found.findings, Path(out)), processes, progress):
            judged = _audits_judged(Path(out), rules, processes, progress)
        if label_seconds is not None:
            _label(list(_unchecked(judged, suites, label_seconds)), processes, progress)
            judged = _audits_judged(Path(out), rules, processes, progress)
        findings = (*found.findings, *lint_published(imported.campaign))
        found = Audit(findings, names, judged, imported.strangers)
    return found


def _unchecked(
    judged: JudgedCampaigns, suites: Sequence[CampaignSuite], seconds: float
) -> Iterator[LabelTask]:
    """Every instance with an answer that nothing confirms or refutes."""
    wanted = {(j.record.suite, j.record.instance) for j in judged.judgements if j.verdict.is_unchecked}
    for suite in suites:
        for entry in read_suite(suite.folder).entries:
            if (suite.name, entry.name) in wanted:
                yield LabelTask(suite.folder, entry, seconds)


def _settled_by_rules(
    judged: JudgedCampaigns, suites: Sequence[CampaignSuite], findings: Sequence[LintFinding], out: Path
) -> list[LabelTask]:
    """Those of them that a rule settles on its way; their labels go to the campaign, not the benchmark."""
    proven = {(one.file, one.network) for one in findings if one.rule in SETTLING_RULES}
    names = {suite.folder: suite.name for suite in suites}
    found = []
    for task in _unchecked(judged, suites, _PROOF_SECONDS):
        entry = task.entry
        if {(str(entry.property_path), network) for network in ("", str(entry.network_path))} & proven:
            place = audited_label(out, names[task.folder], entry.name)
            found.append(LabelTask(place.parent, replace(entry, truth_path=place), _PROOF_SECONDS))
    return found


def _label(tasks: Sequence[LabelTask], jobs: int, progress: ProgressCallback[None]) -> bool:
    """Look for the labels of these instances; whether one was found."""
    found = False
    for done, (index, outcome) in enumerate(each(label_instance, tasks, jobs=jobs), start=1):
        found |= bool(outcome.label)
        note = f"{tasks[index].entry.name}: {outcome.label or 'open'}"
        progress(ProgressUpdate("labelling", done, len(tasks), note, None))
    return found


def _write_page(found: Audit, path: Path) -> None:
    if found.judged is None:
        write_file_page(found.findings, list(dict.fromkeys(found.benchmarks)), path)
        return
    report = report_campaigns(found.judged, files=found.findings)
    write_page(report.findings, report.context, path)


def _linted(place: Path, jobs: int, progress: ProgressCallback[None]) -> tuple[LintFinding, ...]:
    def linted(done: int, total: int, name: str) -> None:
        progress(ProgressUpdate(f"reading {benchmark_name(place)}", done, total, name, None))

    return lint_benchmark(place, jobs=jobs, linted=linted)


def _imported(
    results: Path,
    suites: Sequence[CampaignSuite],
    out: Path,
    not_scored: Sequence[str],
    progress: ProgressCallback[None],
) -> ImportedResults:
    def table_read(done: int, total: int, what: str) -> None:
        progress(ProgressUpdate("reading results", done, total, what, None))

    found = import_results(results, suites, out, not_scored=not_scored, imported=table_read)
    if found.strangers:
        _log.warning(
            "%d rows of the results name files that the benchmarks do not list; the first is %s",
            *(len(found.strangers), found.strangers[0]),
        )
    return found


def _audits_judged(
    out: Path, rules: Sequence[str] | None, jobs: int, progress: ProgressCallback[None]
) -> JudgedCampaigns:
    def judged_one(done: int, total: int, name: str) -> None:
        progress(ProgressUpdate("judging", done, total, name, None))

    judged = judge_campaigns([out], rules=rules, jobs=jobs, judged=judged_one)
    warn_of_labels(judged)
    for one in judged.campaigns:
        write_counterexamples(one.campaign.folder, one.judgements)
    return judged


def suites_with_results(places: Sequence[Path], results: Path) -> list[CampaignSuite]:
    """The benchmarks that have results; of two with the same name, the first, which is in VNN-LIB 1.0."""
    wanted = {table.category for table in find_results(results)}
    by_name: dict[str, Path] = {}
    for place in places:
        by_name.setdefault(benchmark_name(place), place)
    named = {name: place for name, place in by_name.items() if name in wanted}
    if not named:
        raise InputError(
            f"{results}: has results on {', '.join(sorted(wanted))}, but none on "
            f"{', '.join(sorted(by_name))}; audit the benchmarks that the results are on."
        )
    return [CampaignSuite(place, read_suite(place).entries, name) for name, place in named.items()]
