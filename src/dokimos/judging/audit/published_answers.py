"""Published answers in an audit: an ordinary campaign, with labels for what nothing else settles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from dokimos.campaigns.plan import CampaignSuite
from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.core.parallel import each
from dokimos.core.progress import ProgressCallback, ProgressUpdate
from dokimos.judging.audit.file_rules import AnyRule
from dokimos.judging.audit.lint import NOT_JUDGED, SETTLING_RULES, UNREAD_RESULTS
from dokimos.judging.judge_instances import audited_label
from dokimos.judging.judged_campaign import JudgedCampaigns, judge_campaigns
from dokimos.judging.label_checks import warn_of_labels
from dokimos.judging.label_tasks import LabelTask, label_instance
from dokimos.judging.published_results import ImportedResults, find_results, import_results
from dokimos.judging.written_points import write_counterexamples
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.database import Database, key_of, truth_for
from dokimos.suites.entry import SuiteEntry, exists, read_content
from dokimos.suites.folder import LintFinding, benchmark_name, read_suite, row_files

#: How long to look for the proof of what a rule has just settled, in seconds of the processor.
_PROOF_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class PublishedAnswers:
    """Answers that several tools gave on suites, as a campaign in `out`.

    `rules` are the rule sets to score by, and `jobs` is the number of processes.
    """

    suites: Sequence[CampaignSuite]
    out: Path
    rules: Sequence[str] | None
    jobs: int
    progress: ProgressCallback[None]

    def read(self, results: Path, *, not_scored: Sequence[str]) -> tuple[LintFinding, ...]:
        """Make the results in a folder a campaign; `not_scored` took part without being scored.

        What could not be read of them, and what cannot be judged, is returned.
        """
        found = import_results(
            results, self.suites, self.out, not_scored=not_scored, imported=self._told("reading results")
        )
        unread = [
            _finding(UNREAD_RESULTS, error.place.file, error.reason, error.place.line)
            for error in found.unread
        ]
        return (*unread, *self._not_judged(found))

    def _not_judged(self, found: ImportedResults) -> Iterator[LintFinding]:
        if found.strangers:
            reason = (
                f"{len(found.strangers)} rows of results, from here on, name files that no benchmark lists"
            )
            yield _finding(NOT_JUDGED, found.strangers[0], reason)
        for suite in self.suites:
            if count := found.not_judged.get(suite.name):
                answers = "1 published answer is" if count == 1 else f"{count} published answers are"
                reason = f"{answers} about instances whose files are missing or unreadable"
                yield _finding(NOT_JUDGED, str(suite.folder), reason)

    def judged(self, findings: Sequence[LintFinding], label_seconds: float | None) -> JudgedCampaigns:
        """The judgement, after a proof was looked for of all that the findings of rules settle.

        Labels of the user's database, whose proofs are checked like those of the benchmark, count too.
        With `label_seconds`, a proof is also looked for of any other answer that nothing confirms or
        refutes.
        """
        judged = self._judged()
        if self._join(judged) | self._label(self._settled_by_rules(judged, findings)):
            judged = self._judged()
        if label_seconds is not None:
            self._label(list(self._unchecked(judged, label_seconds)))
            judged = self._judged()
        return judged

    def _judged(self) -> JudgedCampaigns:
        judged = judge_campaigns([self.out], rules=self.rules, jobs=self.jobs, judged=self._told("judging"))
        warn_of_labels(judged)
        for one in judged.campaigns:
            write_counterexamples(one.campaign.folder, one.judgements)
        return judged

    def _told(self, stage: str) -> Callable[[int, int, str], None]:
        return lambda done, total, what: self.progress(ProgressUpdate(stage, done, total, what, None))

    def _unchecked(self, judged: JudgedCampaigns, seconds: float) -> Iterator[LabelTask]:
        """Every instance with an answer that nothing confirms or refutes."""
        wanted = {(j.record.suite, j.record.instance) for j in judged.judgements if j.verdict.is_unchecked}
        for suite in self.suites:
            for entry in suite.instances:
                if (suite.name, entry.name) in wanted:
                    yield LabelTask(suite.folder, cast("SuiteEntry", entry), seconds)

    def _settled_by_rules(
        self, judged: JudgedCampaigns, findings: Sequence[LintFinding]
    ) -> list[LabelTask]:
        """Those that a rule settles on its way; their labels go to the campaign, not the benchmark."""
        proven = {(one.file, one.network) for one in findings if one.rule in SETTLING_RULES}
        names = {suite.folder: suite.name for suite in self.suites}
        found = []
        for task in self._unchecked(judged, _PROOF_SECONDS):
            entry = task.entry
            _, asked = row_files(task.folder, entry.name)
            networks = ("", str(entry.network_path))
            if {(str(asked), network) for network in networks} & proven:
                place = audited_label(self.out, names[task.folder], entry.name)
                found.append(LabelTask(place.parent, replace(entry, truth_path=place), _PROOF_SECONDS))
        return found

    def _join(self, judged: JudgedCampaigns) -> bool:
        """Put what the database knows of unchecked instances beside the campaign; whether it knows any."""
        store, found = Database.at(None), False
        sizes = {one.inputs for one in store}
        if not sizes:
            return False
        size = cache(lambda path: read_onnx(read_content(path), name=str(path)).input_size)
        names = {suite.folder: suite.name for suite in self.suites}
        for task in self._unchecked(judged, 0):
            place = audited_label(self.out, names[task.folder], task.entry.name)
            with suppress(InputError):
                # Most are told apart by their numbers of inputs, without the cost of a key.
                if exists(place) or size(task.entry.network_path) not in sizes:
                    continue
                if (kept := store.get(key_of(task.entry))) is not None:
                    text = strict_json.write(truth_for(kept, task.entry.read_instance()))
                    write_whole(place, text, what="the label")
                    found = True
        return found

    def _label(self, tasks: Sequence[LabelTask]) -> bool:
        """Look for the labels of these instances; whether one was found."""
        found, tell = False, self._told("labelling")
        for done, (index, outcome) in enumerate(each(label_instance, tasks, jobs=self.jobs), start=1):
            found |= bool(outcome.label)
            tell(done, len(tasks), f"{tasks[index].entry.name}: {outcome.label or 'open'}")
        return found


def _finding(rule: AnyRule, file: str, reason: str, line: int | None = None) -> LintFinding:
    return LintFinding(rule.name, rule.severity, file, line, reason.rstrip("."), rule.remedy)


def suites_with_results(places: Sequence[Path], results: Path) -> list[CampaignSuite]:
    """The benchmarks that have results; of two with the same name, the first, which is in VNN-LIB 1.0.

    Instances whose files are missing or unreadable are left out.
    """
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
    suites = []
    for name, place in named.items():
        with suppress(UnreadableFile):  # which is a finding
            suites.append(CampaignSuite(place, read_suite(place, leniently=True).entries, name))
    return suites
