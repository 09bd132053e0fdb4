"""`judge`, `explain` and `report`: the results of campaigns, which are judged once."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.brief import Brief
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable
from dokimos.core.readable import printable
from dokimos.difficulty.explain.bootstrap import Resampling
from dokimos.difficulty.explain.explanation import explain_campaigns
from dokimos.difficulty.explain.rows import Explanation
from dokimos.judging.counterexamples import write_counterexamples
from dokimos.judging.judged_campaign import JudgedCampaigns, judge_campaigns
from dokimos.judging.label_checks import LabelCheck
from dokimos.judging.verdicts import failed_label_in_words
from dokimos.reports.campaign_report import CampaignReport, report_campaigns

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
        raise InputError("Say what to write: a page with --html, tables with --csv, pictures with --png.")
    if png is not None:
        from dokimos.reports.pictures import require_renderer

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
        from dokimos.reports.export import write_tables

        tables = write_tables(findings, Path(csv))
    if png is not None:
        from dokimos.reports.export import report_figures
        from dokimos.reports.pictures import write_pictures

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
