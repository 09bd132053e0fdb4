"""Which planted bugs a suite catches, in this process: much faster than a campaign, but without limits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dokimos.campaigns.journal import RunRecord
from dokimos.judging.judge import judge
from dokimos.judging.verdicts import Verdict
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Answer, VerifierAnswer
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.verifiers.execution.limits import Termination
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import PlantedVerifier, answer_to, attacked


@dataclass(frozen=True)
class Attempt:
    """One planted verifier on one instance: its answer, the verdict on it, and the seconds it took."""

    bug: str
    instance: str
    answer: Answer
    verdict: Verdict
    seconds: float

    @property
    def is_caught(self) -> bool:
        """Whether the answer gives the bug away: it is wrong, or a `sat` that shows nothing."""
        return self.verdict.is_wrong or self.verdict is Verdict.UNWITNESSED


def attempts(bug: PlantedVerifier, entries: Iterable[SuiteEntry]) -> Iterator[Attempt]:
    """One bug on every instance, in order; labels are trusted."""
    for entry in entries:
        started = time.perf_counter()
        given = answer_to(bug, entry)
        seconds = time.perf_counter() - started
        yield Attempt(bug.name, entry.name, given.answer, verdict_on(given, bug, entry), seconds)


@dataclass(frozen=True)
class Hunt:
    """One bug on one suite, up to the first instance that catches it (None if there is none).

    `seconds` is the time the answers took until then. `others` counts the answers that differ from those of
    the verifier's sound version.
    """

    bug: str
    caught_by: Attempt | None
    tried: int
    seconds: float
    others: int


@dataclass(frozen=True)
class AttackedEntry:
    """An instance, what the attack of all attackers finds there, and the CPU seconds that takes."""

    entry: SuiteEntry
    found: bool
    seconds: float


def attack_all(entries: Iterable[SuiteEntry]) -> Iterator[AttackedEntry]:
    """Whether the attack finds a counterexample, on every instance: the same for all attackers."""
    for entry in entries:
        started = time.process_time()
        instance = entry.read_instance()
        network = read_onnx(instance.network_file, name=entry.name)
        found = attacked(network, read_vnnlib(instance.property_file, file=entry.name))
        yield AttackedEntry(entry, found is not None, time.process_time() - started)


def hunt_behind(bug: Attacker, entries: Iterable[AttackedEntry], *, attacks: bool) -> Hunt:
    """The first instance that catches a bug behind a correct attack, which is on or off.

    Where it is on and finds a counterexample, the answer is right, and nothing else is asked.
    """
    quiet, tried, seconds = replace(bug, attacks=False), 0, 0.0
    for each in entries:
        tried, seconds = tried + 1, seconds + (each.seconds if attacks else 0.0)
        if attacks and each.found:
            continue
        started = time.process_time()
        given = answer_to(quiet, each.entry)
        spent = time.process_time() - started
        seconds += spent
        verdict = verdict_on(given, quiet, each.entry)
        attempt = Attempt(bug.name, each.entry.name, given.answer, verdict, spent)
        if attempt.is_caught:
            return Hunt(bug.name, attempt, tried, seconds, 0)
    return Hunt(bug.name, None, tried, seconds, 0)


def hunt(bug: PlantedVerifier, entries: Iterable[SuiteEntry], sound: Mapping[str, Answer]) -> Hunt:
    """Run a bug on the instances of a suite, in order; `sound` has the answers of the sound version."""
    seen: list[Attempt] = []
    for attempt in attempts(bug, entries):
        seen.append(attempt)
        if attempt.is_caught:
            break
    return Hunt(
        bug=bug.name,
        caught_by=seen[-1] if seen and seen[-1].is_caught else None,
        tried=len(seen),
        seconds=sum(attempt.seconds for attempt in seen),
        others=sum(sound.get(attempt.instance) is not attempt.answer for attempt in seen),
    )


def verdict_on(given: VerifierAnswer, bug: PlantedVerifier, entry: SuiteEntry) -> Verdict:
    """The judge's verdict on an answer of a planted verifier."""
    replays = None
    if given.answer is Answer.SAT and given.witness is not None:
        instance = entry.read_instance()
        replays = replay_witness(
            Question(instance.network_file, instance.property_file, entry.name), given.witness
        )
    record = RunRecord(
        job=entry.name,
        suite="",
        instance=entry.name,
        family=entry.family,
        verifier=f"planted={bug.name}",
        verifier_version="",
        repeat=0,
        answer=given.answer,
        witness=given.witness,
        detail=given.detail,
        termination=Termination.EXITED,
        exit_code=0,
        wall_seconds=0.0,
        cpu_seconds=0.0,
        peak_memory_bytes=0,
        log="",
        started_at="",
    )
    return judge(record, truth=entry.read_truth(), replays=replays, reproduce="").verdict
