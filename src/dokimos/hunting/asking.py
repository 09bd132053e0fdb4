"""One tool that is asked one question after another, each answer judged and kept."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from dokimos.campaigns.campaign import alone_in, tool_of, work_folder
from dokimos.campaigns.job import JobTask, bounds_path, log_path, perform
from dokimos.campaigns.journal import Journal, RunRecord, read_journal
from dokimos.campaigns.plan import job_id
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import DokimosError
from dokimos.core.files import contained, write_whole
from dokimos.judging.judge import judge
from dokimos.judging.node_bounds import Ends, ExcludedValue, first_excluded, read_bounds
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays, replay_witness
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Instance, LabelledInstance
from dokimos.suites.suite_files import files_of
from dokimos.verifiers.base import Verifier
from dokimos.verifiers.execution.warm_worker import WarmWorkers

_NUMBERS = re.compile(r"0x[0-9a-f]+|[-+]?\d[\d.e+-]*|/[^\s'\":,]+")
_KEY_CHARACTERS = 120
#: Tools that compute in floats miss by less than this without being wrong; competitions tolerate it.
ROUNDING = Fraction(1, 10_000)


class Asker:
    """Asks one verifier, and keeps each answer in the journal of a folder: nothing is asked twice.

    Only one process at a time may use the folder. Use it in a `with` statement.
    """

    def __init__(self, verifier: Verifier, settings: RunSettings, folder: Path) -> None:
        self.verifier, self.settings = verifier, settings
        self._tool, self._folder = tool_of(verifier), folder
        self._limits = settings.limits(60.0)
        self.asked = 0
        self.cpu_seconds = 0.0
        self._cancel = threading.Event()
        self._known: dict[str, RunRecord] = {}

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """While the folder is this one's; its processes end with it."""
        with alone_in(self._folder), work_folder(self._folder.absolute()):
            for name in ("logs", "truth"):
                contained(self._folder, name).mkdir(exist_ok=True)
            path = self._folder / "journal.jsonl"
            self._known = {record.job: record for record in read_journal(path)}
            self._workers = WarmWorkers(self._folder.absolute() / "work", most=self.settings.jobs)
            with Journal(path) as self._journal:
                try:
                    yield
                except BaseException:
                    self._cancel.set()
                    raise
                finally:
                    self._workers.end()

    def ask(self, labelled: LabelledInstance) -> RunRecord:
        """What the tool answers, now or at an earlier time; verifiers of ours find the truth beside it."""
        instance = labelled.instance
        job = job_id(_Asked(instance), self._tool, limits=self._limits, repeat=0)
        if (known := self._known.get(job)) is not None:
            return known
        task = JobTask(
            job=job,
            suite="reduced",
            instance=instance.name,
            family=instance.family,
            tool=self._tool,
            repeat=0,
            limits=self._limits,
            network_name=f"{instance.name}.onnx",
            property_name=f"{instance.name}.vnnlib",
            origin=self._folder.absolute() / "vnnlib" / f"{instance.name}.vnnlib",
            settings=self.settings,
        )
        truth = self._folder / "truth" / f"{instance.name}.json"
        if (text := files_of(labelled).truth) is not None:
            write_whole(truth, text, what="the truth file")
        log = log_path(self._folder, job)
        record = perform(
            task,
            self.verifier,
            network=instance.network_file,
            property_=instance.property_file,
            work=self._folder.absolute() / "work",
            log=log,
            cancel=self._cancel,
            workers=self._workers,
        )
        truth.unlink(missing_ok=True)
        self.asked += 1
        self.cpu_seconds += record.cpu_seconds
        if record.answer.decides:
            log.unlink(missing_ok=True)
        self._journal.finish(record)
        self._known[job] = record
        return record

    def limit_cpu(self, seconds: float) -> None:
        """From now on, an answer may take no more CPU time than this."""
        known = self._limits.cpu_seconds
        self._limits = replace(self._limits, cpu_seconds=seconds if known is None else min(known, seconds))

    def excluded(self, labelled: LabelledInstance, record: RunRecord) -> ExcludedValue | None:
        """The first number at the witness that the tool's own bounds exclude, if it wrote them."""
        witness = None if labelled.truth is None else labelled.truth.witness
        if record.answer is not Answer.UNSAT or witness is None:
            return None
        try:
            bounds = self.bounds_of(labelled, record)
            return first_excluded(labelled.instance.network_file, witness, bounds) if bounds else None
        except DokimosError:
            return None

    def bounds_of(self, labelled: LabelledInstance, record: RunRecord) -> Mapping[str, Ends]:
        """What the tool wrote about tensors with this answer; nothing if it writes no bounds."""
        path = bounds_path(self._folder, record.job)
        return read_bounds(path) if path.exists() else {}


@dataclass(frozen=True)
class _Asked:
    """An instance in memory, as far as the id of a run depends on it."""

    instance: Instance

    @property
    def name(self) -> str:
        return self.instance.name

    @property
    def family(self) -> str:
        return self.instance.family

    @property
    def network_path(self) -> Path:
        return Path()

    @property
    def property_path(self) -> Path:
        return Path()

    @property
    def network_sha256(self) -> str:
        return self.instance.network_sha256

    @property
    def property_sha256(self) -> str:
        return self.instance.property_sha256

    @property
    def timeout_seconds(self) -> float:
        return self.instance.timeout_seconds


def replays_of(record: RunRecord, labelled: LabelledInstance) -> WitnessReplays | None:
    """What becomes of the witness that was given, if one was."""
    if record.answer is not Answer.SAT or record.witness is None:
        return None
    instance = labelled.instance
    return replay_witness(
        Question(instance.network_file, instance.property_file, instance.name), record.witness
    )


def judged(record: RunRecord, labelled: LabelledInstance) -> Judgement:
    """The verdict on an answer, by a label that has just been proven."""
    return judge(record, truth=labelled.truth, replays=replays_of(record, labelled), reproduce="")


@dataclass(frozen=True)
class Wrong:
    """What a reduction keeps: the verdict, or what the tool says when it crashes.

    `misses_by` is how far a bad witness is from a good one: a reduction keeps half of that, or `ROUNDING`.
    """

    verdict: Verdict
    crash: str = ""
    misses_by: Fraction = field(default=Fraction(0), compare=False)

    def holds(self, record: RunRecord, labelled: LabelledInstance) -> bool:
        """Whether the answer is wrong in the same way; what decides nothing is only the same crash."""
        if self.crash:
            return crash_key(record) == self.crash
        if not record.answer.decides or judged(record, labelled).verdict is not self.verdict:
            return False
        replays = replays_of(record, labelled) if self.verdict is Verdict.BAD_WITNESS else None
        return replays is None or replays.misses_by >= min(ROUNDING, self.misses_by / 2)

    @property
    def is_rounding(self) -> bool:
        """Whether it is a witness that misses by so little that rounding explains it."""
        return self.verdict is Verdict.BAD_WITNESS and not self.crash and self.misses_by < ROUNDING

    @property
    def in_words(self) -> str:
        """What it is."""
        return f"crash: {self.crash}" if self.crash else self.verdict.value


def crash_key(record: RunRecord) -> str:
    """What a tool says when it ends in an error, without numbers and paths; empty if it does not."""
    if record.answer is not Answer.ERROR:
        return ""
    lines = [line.strip() for line in record.detail.splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception|abort)", line)), "")
    return _NUMBERS.sub("#", said or (lines or ["no word"])[0])[:_KEY_CHARACTERS]
