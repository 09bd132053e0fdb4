"""Runs every planned job that is not finished yet, and records each one as it finishes.

A campaign's folder: ``manifest.json``, ``journal.jsonl``, ``logs/<job>.log``, ``lock``; and ``work/`` while
jobs run.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dokimos.campaigns.cluster import ClusterRunner
from dokimos.campaigns.job import log_path, now, perform, planned_content, remove_folder, task_of
from dokimos.campaigns.journal import Journal, RunRecord, read_journal
from dokimos.campaigns.manifest import Manifest, describe, merge, read_manifest, write_manifest
from dokimos.campaigns.plan import Agenda, CampaignSuite, Job, Tool, plan
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, UnreadableFile, VerifierUnavailable
from dokimos.core.files import contained, only_one, sync_folder
from dokimos.core.readable import Brief
from dokimos.core.records import Table, record_of
from dokimos.verifiers.base import Verifier
from dokimos.verifiers.execution.usage import end_strays
from dokimos.verifiers.execution.warm_worker import WarmWorkers

if TYPE_CHECKING:
    import dokimos


@dataclass(frozen=True)
class Progress:
    """The progress of a campaign: `record` is the run that has just finished."""

    done: int
    total: int
    record: RunRecord


@dataclass(frozen=True, repr=False)
class Campaign(Brief, Table):
    """A campaign as stored on disk: its manifest and all finished runs.

    `judge` is the public function of that name, which says what the options are.
    """

    folder: Path
    manifest: Manifest
    records: tuple[RunRecord, ...]

    @property
    def planned(self) -> int:
        """How many runs it has when it is finished; published results count as finished."""
        if self.manifest.published is not None:
            return len(self.records)
        return sum(map(self.manifest.planned, self.manifest.verifiers))

    def judge(self, **options: Any) -> dokimos.JudgedCampaigns:
        """Judge every answer: `dokimos.judge`."""
        import dokimos

        return dokimos.judge(self.folder, **options)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each finished run."""
        return [
            record_of(
                run,
                *("verifier", "verifier_version", "suite", "instance", "family", "repeat", "answer"),
                *("wall_seconds", "cpu_seconds", "peak_memory_bytes", "detail"),
            )
            for run in self.records
        ]


def read_campaign(folder: Path) -> Campaign:
    """Read the campaign in `folder`, finished or not."""
    manifest = read_manifest(folder / "manifest.json")
    journal = folder / "journal.jsonl"
    records = read_journal(journal)
    suites = {suite.name for suite in manifest.suites}
    if stranger := next((record for record in records if record.suite not in suites), None):
        raise UnreadableFile(
            journal,
            f"it has a run on the suite {stranger.suite!r}, which the manifest does not list",
        )
    if manifest.published is None:
        _expect_each_once(records, journal)
    return Campaign(folder, manifest, records)


def _expect_each_once(records: Sequence[RunRecord], journal: Path) -> None:
    """Raise UnreadableFile if two records are of one run: no campaign writes that, and both would count."""
    seen = set()
    for each in records:
        key = each.suite, each.instance, each.verifier, each.verifier_version, each.repeat
        if key in seen:
            raise UnreadableFile(
                journal,
                f"it has two runs of {each.verifier!r} on {each.instance!r} that are one in its plan",
            )
        seen.add(key)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of the campaign in `folder`, which is created if it is missing."""
    with _folder_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            yield


def set_runs_aside(folder: Path, is_meant: Callable[[RunRecord], bool], *, reason: str) -> int:
    """Discard the runs of a campaign that `is_meant` selects, so that they are run again; return how many.

    Their records stay in the journal, followed by an event that says why they no longer count.
    """
    with _folder_errors(folder), _alone(folder):
        return _set_aside(folder, is_meant, reason=reason)


def _set_aside(folder: Path, is_meant: Callable[[RunRecord], bool], *, reason: str) -> int:
    """Like `set_runs_aside`, for a caller that holds the folder's lock."""
    path = folder / "journal.jsonl"
    meant = [record.job for record in read_journal(path) if is_meant(record)]
    if meant:
        with Journal(path) as journal:
            for job in meant:
                journal.set_aside(job, reason=reason, at=now())
    return len(meant)


def run_campaign(
    suites: Sequence[CampaignSuite],
    verifiers: Sequence[Verifier],
    *,
    out: Path,
    settings: RunSettings,
    again: bool = False,
    following: Mapping[str, Verifier] = MappingProxyType({}),
    budget_seconds: float | None = None,
    resumed: Callable[[int, int], None] = lambda _done, _total: None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Campaign:
    """Run all verifiers on all instances of `suites`; resume if `out` holds some of the runs.

    With `again`, recorded runs of these verifiers are set aside first, whatever their version. `following`
    has verifiers, by the name of another one, that are asked what that one answers `sat`. With a budget,
    each verifier and the one that follows it take the first instances, in the order given, for as long as
    what the runs use leaves room for another one (see `agenda`).

    If some runs were recorded before, `resumed` is called once before the first run, with their number and
    the total. `progress` is called in the calling thread after each run is safely recorded. However this
    ends (an error, Ctrl-C, kill -9), the runs recorded so far are kept, no process of a verifier survives,
    and the same call does the rest. At the end, what was planned, run and recorded is compared: raises
    InputError if they differ.
    """
    if not any(suite.instances for suite in suites) or not verifiers:
        raise InputError("A campaign needs at least one instance and one verifier.")
    everyone = (*verifiers, *following.values())
    if settings.dask is None:
        settings.require_variables()
        _require_guards(everyone, settings)
    elif staying := [verifier.name for verifier in everyone if verifier.is_warm]:
        raise InputError(f"{staying[0]} can only stay warm on this machine; leave out :warm on a cluster.")
    by_tool = {tool_of(verifier): verifier for verifier in everyone}
    tools, followers = list(by_tool), {verifier.name for verifier in following.values()}
    planned = plan(suites, tools, settings, in_given_order=budget_seconds is not None)
    with _folder_errors(out):
        is_new = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        if is_new:
            sync_folder(out.absolute().parent)
        contained(out, "logs").mkdir(exist_ok=True)
        with _alone(out):
            names = {tool.name for tool in tools}
            manifest = describe(suites, tools, settings)
            if (out / "manifest.json").exists():
                before = read_manifest(out / "manifest.json")
                if again:
                    before = replace(
                        before, verifiers=tuple(tool for tool in before.verifiers if tool.name not in names)
                    )
                manifest = merge(before, manifest, out)
                if again:
                    _set_aside(out, lambda record: record.verifier in names, reason="run again")
            others = {name: count for name, count in manifest.runs.items() if name not in names}
            write_manifest(replace(manifest, runs=others), out / "manifest.json")
            with work_folder(out.absolute()), Journal(out / "journal.jsonl") as journal:
                agenda = Agenda(
                    [job for job in planned if job.tool.name not in followers],
                    follower=_followers(planned, following),
                    records={record.job: record for record in read_journal(out / "journal.jsonl")},
                    room_seconds=None if budget_seconds is None else budget_seconds * settings.jobs,
                )
                if done := agenda.recorded:
                    resumed(done, agenda.total)
                place = _Runner if settings.dask is None else ClusterRunner
                runner = place(by_tool, out.absolute(), journal, settings)
                executed = set()
                with contextlib.closing(runner.run_all(agenda)) as finished:
                    for record in finished:
                        done += 1
                        executed.add(record.job)
                        progress(Progress(done, agenda.total, record))
            campaign = read_campaign(out)
            _compare(agenda, executed, campaign)
            return _counted(campaign, followers if budget_seconds is None else names)


def _counted(campaign: Campaign, names: Collection[str]) -> Campaign:
    """The finished campaign, whose manifest says how many runs these verifiers have."""
    if not names:
        return campaign
    counts = Counter(record.verifier for record in campaign.records)
    manifest = campaign.manifest
    manifest = replace(manifest, runs={**manifest.runs, **{name: counts[name] for name in names}})
    write_manifest(manifest, campaign.folder / "manifest.json")
    return replace(campaign, manifest=manifest)


def _followers(jobs: Sequence[Job], following: Mapping[str, Verifier]) -> dict[str, Job]:
    """The job that follows each job, by its id: the same question to the verifier that follows."""
    by_question = {(job.tool.name, job.suite, job.instance.name, job.repeat): job for job in jobs}
    return {
        job.id: by_question[following[job.tool.name].name, job.suite, job.instance.name, job.repeat]
        for job in jobs
        if job.tool.name in following
    }


def _compare(agenda: Agenda, executed: set[str], campaign: Campaign) -> None:
    """Raise InputError unless exactly what was left to do was run, and all that was planned is recorded."""
    lost = len(agenda.due - {record.job for record in campaign.records})
    if lost or executed != agenda.given:
        raise InputError(
            f"{len(agenda.due)} runs were planned, {len(executed)} of the {len(agenda.given)} left were "
            f"run, and {lost} are not in {campaign.folder / 'journal.jsonl'}; run the same command again."
        )


def _require_guards(verifiers: Sequence[Verifier], settings: RunSettings) -> None:
    """Raise VerifierUnavailable before the first run if a verifier's scripts would be refused later."""
    for verifier in verifiers:
        verifier.installed_version()
        guard = None if settings.trust else verifier.guard()
        if guard is not None and not guard.is_ok:
            raise VerifierUnavailable(guard.what)


def _alone(out: Path) -> contextlib.AbstractContextManager[int]:
    """The lock that keeps other processes from running a campaign in the folder."""
    return only_one(contained(out, "lock"), doing=f"runs a campaign in {out}", keep=True)


def tool_of(verifier: Verifier) -> Tool:
    """A verifier as plans and records have it. Raises VerifierUnavailable if it is not installed."""
    called = verifier.called_as
    own = "" if called == verifier.name else called
    return Tool(verifier.name, verifier.installed_version(), own)


@dataclass(frozen=True)
class _Runner:
    """Runs jobs on this machine and records them."""

    verifiers: Mapping[Tool, Verifier]
    out: Path
    journal: Journal
    settings: RunSettings

    def run_all(self, agenda: Agenda) -> Generator[RunRecord, None, None]:
        """Run all jobs, in order, several at a time; yields records as they finish."""
        cancel, jobs = threading.Event(), self.settings.jobs
        workers = WarmWorkers(self.out / "work", most=jobs)
        pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="dokimos-run")
        running: set[Future[RunRecord]] = set()
        try:
            while True:
                while len(running) < jobs and (job := agenda.next()) is not None:
                    running.add(pool.submit(self.run, job, cancel, workers))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    agenda.ended(future.result())
                    yield future.result()
        finally:
            cancel.set()
            pool.shutdown(wait=True, cancel_futures=True)
            workers.end()

    def run(self, job: Job, cancel: threading.Event, workers: WarmWorkers) -> RunRecord:
        """Run one job and record it."""
        self.journal.started(job.id, now())
        record = perform(
            task_of(job, self.settings),
            self.verifiers[job.tool],
            network=planned_content(job.instance.network_path, job.instance.network_sha256),
            property_=planned_content(job.instance.property_path, job.instance.property_sha256),
            work=self.out / "work",
            log=log_path(self.out, job.id),
            cancel=cancel,
            workers=workers,
        )
        self.journal.finish(record)
        return record


@contextlib.contextmanager
def work_folder(out: Path) -> Iterator[None]:
    """The folder that jobs work in: created empty, and removed at the end.

    If it exists already, an earlier process was killed before it could remove it.
    """
    folder = out / "work"
    if folder.exists():
        end_strays(folder)
        remove_folder(folder)
    folder.mkdir(exist_ok=True)
    try:
        yield
    finally:
        remove_folder(folder)


@contextlib.contextmanager
def _folder_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the progress has gone; the folder is fine
    except OSError as error:
        raise InputError(
            f"The campaign's folder {out} cannot be used: {error.strerror}; nothing recorded is lost; "
            "make room or choose another folder, and run the same command again."
        ) from error
