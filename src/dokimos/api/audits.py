"""`audit`: what is wrong with a benchmark, and with the answers that were published on it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.api.verdicts import report, warn_of_labels
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.published_results import find_results, import_results
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable
from dokimos.core.parallel import default_jobs
from dokimos.judging.counterexamples import write_counterexamples
from dokimos.judging.judged_campaign import JudgedCampaigns, judge_campaigns
from dokimos.judging.rules import RULE_SETS
from dokimos.suites.folder import benchmark_folders, benchmark_name, read_suite

_log = logging.getLogger("dokimos")


@dataclass(frozen=True)
class Audit:
    """What an audit found: the published answers, judged, and the rows of them that no benchmark has."""

    judged: JudgedCampaigns
    strangers: tuple[str, ...]

    @property
    def is_wrong_somewhere(self) -> bool:
        """Whether anything is wrong: exit code 1."""
        return self.judged.is_wrong_somewhere


def audit(
    folders: str | Path | Sequence[str | Path],
    *,
    results: str | Path,
    out: str | Path = "audit",
    not_scored: Sequence[str] = (),
    rules: Sequence[str] | None = None,
    html: str | Path | None = None,
    jobs: int | None = None,
    progress: ProgressCallback[None] = ignore,
) -> Audit:
    """Judge what was published of several tools on benchmarks: `dokimos audit`.

    `folders` are benchmarks, or folders of benchmarks. `results` has the answers and counterexamples, as
    VNN-COMP publishes them; they become a campaign in `out` like any other, for `judge`, `explain` and
    `report`. `not_scored` names tools that took part out of competition; `rules` are the rule sets to score
    by, the shipped ones unless given; `html` is a page to write. `jobs` is how many processes judge.
    Interrupted, the same call goes on where it stopped.

    >>> entry = dokimos.read_suite("tiny").entries[1]
    >>> table = Path("results/mine/2025_tiny/results.csv")
    >>> table.parent.mkdir(parents=True)
    >>> row = f"tiny,{entry.network_path},{entry.property_path},0.1,unsat,2.5"
    >>> _ = table.write_text(row)
    >>> audited = dokimos.audit("tiny", results="results", out="audited", jobs=1)
    >>> [(j.record.verifier, j.verdict.value) for j in audited.judged.judgements]
    [('mine', 'wrong-unsat')]
    """
    given = [folders] if isinstance(folders, str | Path) else folders
    if not given:
        raise InputError("There is nothing to audit; name the folder of a benchmark.")
    if html is not None:
        expect_writable(Path(html), what="report", example="audit.html")
    places = [place for folder in given for place in benchmark_folders(Path(folder))]

    def imported(done: int, total: int, what: str) -> None:
        progress(ProgressUpdate("reading results", done, total, what, None))

    def judged_one(done: int, total: int, name: str) -> None:
        progress(ProgressUpdate("judging", done, total, name, None))

    found = import_results(
        Path(results),
        _suites_of(places, Path(results)),
        Path(out),
        not_scored=not_scored,
        imported=imported,
    )
    judged = judge_campaigns(
        [Path(out)],
        rules=tuple(RULE_SETS.shipped) if rules is None else rules,
        jobs=default_jobs() if jobs is None else jobs,
        judged=judged_one,
    )
    warn_of_labels(judged)
    for one in judged.campaigns:
        write_counterexamples(one.campaign.folder, one.judgements)
    if found.strangers:
        _log.warning(
            "%d rows of the results name files that the benchmarks do not list, the first at %s",
            *(len(found.strangers), found.strangers[0]),
        )
    if html is not None:
        report(judged, html=html)
    return Audit(judged, found.strangers)


def _suites_of(places: Sequence[Path], results: Path) -> list[CampaignSuite]:
    """The benchmarks that there are results on; of two with one name, the first: that in VNN-LIB 1.0."""
    wanted = {table.category for table in find_results(results)}
    by_name: dict[str, Path] = {}
    for place in places:
        by_name.setdefault(benchmark_name(place), place)
    named = {name: place for name, place in by_name.items() if name in wanted}
    if not named:
        raise InputError(
            f"{results}: it has results on {', '.join(sorted(wanted))}, and none on "
            f"{', '.join(sorted(by_name))}."
        )
    return [CampaignSuite(place, read_suite(place).entries, name) for name, place in named.items()]
