"""Which planted bugs a suite catches, in this process: much faster than a campaign, but without limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import append_line
from dokimos.engine.float_bounds import LINEAR_RULES
from dokimos.judging.judge import judge
from dokimos.judging.verdicts import Verdict
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.networks.semantics.interval import INTERVAL_RULES
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Label
from dokimos.verifiers.execution.limits import Termination
from dokimos.verifiers.planted.attackers import Attacker, attacking
from dokimos.verifiers.planted.base import PlantedVerifier, Task, answer_to, attacked, task_for
from dokimos.verifiers.planted.bounder import PlainBounder
from dokimos.verifiers.planted.catalogue import PLANTED, FlawedBounder
from dokimos.verifiers.planted.flawed_bounds import FLAWED


@dataclass(frozen=True)
class Attempt:
    """One planted verifier on one instance: its answer, the verdict on it, and the CPU seconds it took.

    `files` is the beginning of the hashes of network and property.
    """

    bug: str
    instance: str
    files: str
    answer: Answer
    verdict: Verdict
    seconds: float

    @property
    def is_caught(self) -> bool:
        """Whether the answer gives the bug away: it is wrong, or a `sat` that shows nothing."""
        return self.verdict.is_wrong or self.verdict is Verdict.UNWITNESSED


@dataclass(frozen=True)
class Hunt:
    """One bug on one suite, up to the first instance that catches it (None if there is none).

    `tried` is the place of that instance, and `seconds` the CPU time of the answers until then. `others`
    counts the answers that differ from those of the verifier's sound version.
    """

    bug: str
    caught_by: Attempt | None
    tried: int
    seconds: float
    others: int


#: The attack that all attackers share, as a name in the records; and one without its attack.
ATTACK, QUIET = "attack", ":no-attack"
SOUND = PLANTED[attacking("bounds")]


class Outcomes:
    """What planted verifiers answer, each question asked once; with a file, once and for all.

    Labels are trusted. The attack of attackers is asked apart from their proofs, and a proof whose flaw has
    nothing to act on is that of the sound attacker: it is not made again.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[tuple[str, str, str], Attempt] = {}
        lines = file.read_bytes().split(b"\n")[:-1] if file is not None and file.exists() else []
        for line in lines:
            try:
                self._keep(strict_json.read(line, Attempt, file=str(file), what="an answer"))
            except UnreadableFile:  # torn by an interruption: it is asked again
                continue

    def attempt(self, bug: PlantedVerifier, entry: SuiteEntry) -> Attempt:
        """The answer of a bug to an instance."""
        if not isinstance(bug, Attacker):
            return self._asked(bug.name, entry, lambda: answer_to(bug, entry))
        if not bug.attacks:
            return self._proof(bug, entry)
        found = self._asked(ATTACK, entry, lambda: _attack(entry))
        if found.answer is Answer.SAT:
            return replace(found, bug=bug.name)
        proof = self._proof(replace(bug, attacks=False), entry)
        return replace(proof, bug=bug.name, seconds=found.seconds + proof.seconds)

    def _proof(self, quiet: Attacker, entry: SuiteEntry) -> Attempt:
        known = (quiet.name + QUIET, entry.name, _files(entry))
        if known not in self._known and quiet.name != SOUND.name:
            task = task_for(entry)
            if not isinstance(task, str) and is_idle(quiet, task):
                assert isinstance(SOUND, Attacker)
                return replace(self._proof(replace(SOUND, attacks=False), entry), bug=quiet.name)
        asked = self._asked(quiet.name + QUIET, entry, lambda: answer_to(quiet, entry))
        return replace(asked, bug=quiet.name)

    def _asked(self, name: str, entry: SuiteEntry, answer: Callable[[], VerifierAnswer]) -> Attempt:
        files = _files(entry)
        if (found := self._known.get((name, entry.name, files))) is not None:
            return found
        started = time.process_time()
        given = answer()
        seconds = round(time.process_time() - started, 3)
        made = Attempt(name, entry.name, files, given.answer, verdict_on(given, name, entry), seconds)
        self._keep(made)
        if self._file is not None:
            append_line(self._file, strict_json.write(made, indent=None).strip(), what="what bugs answered")
        return made

    def _keep(self, attempt: Attempt) -> None:
        self._known[attempt.bug, attempt.instance, attempt.files] = attempt


def _files(entry: SuiteEntry) -> str:
    instance = entry.read_instance()
    return f"{instance.network_sha256[:12]} {instance.property_sha256[:12]}"


def _attack(entry: SuiteEntry) -> VerifierAnswer:
    """What the attack of all attackers finds."""
    task = task_for(entry)
    found = None if isinstance(task, str) else attacked(task.network, task.property)
    return VerifierAnswer(Answer.UNKNOWN) if found is None else VerifierAnswer(Answer.SAT, found)


def is_idle(bug: Attacker, task: Task) -> bool:
    """Whether the proof of an attacker cannot differ from the sound one: nothing is misread, and no
    operator of the network is one that it bounds wrongly."""
    if bug.network(task.network) is not task.network or bug.property(task.property) != task.property:
        return False
    if type(bug.prover) is PlainBounder:
        return True
    if type(bug.prover) is not FlawedBounder:
        return False
    flawed = FLAWED[bug.prover.name]
    own = {name for name in vars(flawed) if name == "__init__" or not name.startswith("__")}
    if not own <= {"rules", "lined"}:
        return False
    changed = {op for op, rule in flawed.rules.items() if rule is not INTERVAL_RULES.get(op)}
    changed |= {op for op, rule in flawed.lined.items() if rule is not LINEAR_RULES.get(op)}
    return not changed & {node.op for node in task.network.nodes}


def can_catch(bug: PlantedVerifier, entry: SuiteEntry) -> bool:
    """Whether an answer to this instance can be wrong: an attacker replays every counterexample, so that it
    is wrong on `sat` instances only."""
    return not isinstance(bug, Attacker) or labelled_sat(entry)


def labelled_sat(entry: SuiteEntry) -> bool:
    """Whether the suite says that there is a counterexample."""
    truth = entry.read_truth()
    return truth is not None and truth.label is Label.SAT


def attempts(bug: PlantedVerifier, entries: Iterable[SuiteEntry], outcomes: Outcomes) -> Iterator[Attempt]:
    """One bug on every instance that can catch it, in order."""
    return (outcomes.attempt(bug, entry) for entry in entries if can_catch(bug, entry))


def hunt(
    bug: PlantedVerifier,
    entries: Iterable[SuiteEntry],
    outcomes: Outcomes,
    sound: PlantedVerifier | None = None,
) -> Hunt:
    """Run a bug on the instances of a suite, in order; `sound` is its form without a bug."""
    tried, seconds, others = 0, 0.0, 0
    for entry in entries:
        tried += 1
        if not can_catch(bug, entry):
            continue
        attempt = outcomes.attempt(bug, entry)
        seconds += attempt.seconds
        if sound is not None:
            others += outcomes.attempt(sound, entry).answer is not attempt.answer
        if attempt.is_caught:
            return Hunt(bug.name, attempt, tried, seconds, others)
    return Hunt(bug.name, None, tried, seconds, others)


def verdict_on(given: VerifierAnswer, name: str, entry: SuiteEntry) -> Verdict:
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
        verifier=f"planted={name}",
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
