"""What every verifier's adapter promises."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self, final

from dokimos.core.containment import contained
from dokimos.core.errors import InputError, UnreadableFile, VerifierUnavailable
from dokimos.execution.outcomes import Outcome, Termination
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.styles import CertificateStyle

#: What the name of a verifier ends in whose own attack is switched off.
NO_ATTACK = ":no-attack"
#: What the name of a verifier ends in whose process stays from one query to the next.
WARM = ":warm"
#: How much of a log an `error` carries with it.
TAIL_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True)
class Query:
    """One question to a verifier: the two files, and where the answer shall go.

    `folder` is empty, private to this run and removed after it; `result` is a path in it. `name` is the
    instance's name and `origin` where the property comes from, which a real verifier has no use for: the
    two files are copies of its own. `property_file` may be VNN-LIB 1.0 or 2.0. `trust_scripts`: the user
    wants scripts of the tool's own to run unguarded.
    """

    name: str
    network_file: Path
    property_file: Path
    folder: Path
    wall_seconds: float
    memory_bytes: int
    threads: int = 1
    cpu_seconds: float | None = None
    origin: Path | None = None
    trust_scripts: bool = False

    @property
    def result(self) -> Path:
        """Where the verifier is to write its answer."""
        return self.folder / "result"

    @property
    def certificate(self) -> Path:
        """Where the verifier may write a truth file that proves its `unsat`; it is checked first."""
        return self.folder / "certificate.json"


@dataclass(frozen=True)
class Invocation:
    """A command as the system takes it, and what it needs in its environment beyond what is allowed.

    `guard` says, for the record, what keeps scripts that it runs away from the user's processes. The first
    `start_words` of the command start its process, and the others are about this query: a warm worker is
    started by the former and sent the latter. 0: it cannot be warm.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    guard: str = ""
    start_words: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", MappingProxyType(dict(self.environment)))


@dataclass(frozen=True)
class Finding:
    """One thing that a diagnosis looked at; `remedy` says what to do where it is not ok."""

    what: str
    is_ok: bool
    remedy: str = ""


class Verifier(ABC):
    """One verifier: where it is, its version, its command, its answer. One small file each.

    An adapter knows one tool and nothing else: not the limits (execution enforces them), not the label
    (the judge knows it), not the journal. It has no state besides where the tool is. Everything that is
    said about the tool is said here; nobody else asks which class it is.

    **How the tool gets here** is the choice of the base class: a `PinnedVerifier` is installed from PyPI
    into an environment of its own, a `PlacedVerifier` is at a place that the user names, and what derives
    from this class itself comes with its adapter.

    **What an adapter writes**

    `name`
        How the tool is called on the command line and in records: lower case, no blanks.
    `styles`
        What it builds as evidence, for explanations by certificate style.
    `version()`
        The version that would run now, or None where the tool is not installed. It is part of every
        job's identity, so it must change whenever answers may change; it must be quick (no import of
        the tool) and must not raise.
    `how_to_get()`
        One sentence for a person who does not have the tool.
    `install(say)`
        Puts the tool into an environment of its own, pinned, and tries it; does nothing where that has
        been done. Tools that cannot be installed by us leave this out.
    `attack_off`
        What its command is given so that it does not look for counterexamples by attacking the network;
        `command` adds `switches` where these belong. Tools that have no such switch leave this out.
    `can_stay_warm`
        Whether its process can stay for the next query, where the user asks for that (NAME:warm). Then
        `command` says how many of its words start the process, and what it starts takes
        ``--queries QUERIES REPLIES`` instead of the others, as `runners/warm_queries.py` does. An answer
        may not depend on what was asked before.
    `variables`
        Names of variables of the user's environment that the tool needs beyond the usual ones, such as
        where its licence is. It gets no others (`permissions.py`), so that no token of the user's
        reaches it.
    `reads_vnnlib2`
        Whether it reads VNN-LIB 2.0. One that does not gets the same property in 1.0, and where 1.0 has no
        words for it, its answer is `unsupported` without its being asked.
    `limitations`
        What the tool cannot read, in a few words.
    `unread_operators`
        The ONNX operators that the tool refuses in every form that the suite `ops` has of them, separated
        by blanks; `dokimos audit` names networks that have one, where the tool is installed.
    `diagnose()`
        What may be wrong with the tool on this machine, thing by thing, each with its remedy.
    `guard()`
        What keeps scripts that come with the tool from the user's processes, where it runs such scripts;
        not ok where nothing does, so that they are refused unless the user trusts them.
    `is_tried_out`
        Whether the doctor asks it two tiny queries once `diagnose` has found nothing. Not where `diagnose`
        does so itself, or where right answers would mean nothing.
    `command(query)`
        The process to run, as a list (no shell). It is started in `query.folder`; paths in `query` are
        absolute. It must make the tool write to `query.result` whatever the adapter reads.
    `read_answer(outcome, query)`
        What the tool said, read from its result file or the exact line that it documents; **never** by
        looking for a word in its output, where a crash may well say "safe". It is only called for a
        tree that ended by itself, in time, with an exit code that `accepts` admits. ValueError or
        OSError mean that there is no readable answer.
    `explained(given, log)`
        Why nothing was decided, where a line of the log says it in a form of its own: `unsupported` instead
        of `unknown` or `error`. Only asked of a tree that ended by itself where `given` decides nothing; it
        may not decide anything itself.

    **What the base class sees to** (`answer`, final): a tree ended at its wall or CPU limit is `timeout`,
    at its memory limit `memout`, whatever it may have written before; one that was killed by a signal, was
    not started, or left with an exit code that is not admitted is `error`, and so is an answer that cannot
    be read. An `error` carries the tail of the log.
    """

    name: str
    styles: ClassVar[tuple[CertificateStyle, ...]] = (CertificateStyle.OTHER,)
    limitations: ClassVar[str] = ""
    unread_operators: ClassVar[str] = ""
    reads_vnnlib2: ClassVar[bool] = True
    variables: ClassVar[tuple[str, ...]] = ()
    attack_off: ClassVar[tuple[str, ...]] = ()
    is_tried_out: ClassVar[bool] = True
    can_stay_warm: ClassVar[bool] = False
    #: Whether its own attack is on, as it is unless `without_attack` made this verifier.
    attacks: bool = True
    #: Whether its process stays from one query to the next, as only `warm` has it.
    is_warm: bool = False
    #: What --verifier was given, where that is not its name: ``mine=/opt/tool`` is called `mine`.
    _called_as: str | None = None

    @property
    def called_as(self) -> str:
        """What --verifier is to be given to run it again."""
        return self._called_as or self.name

    @final
    def named(self, name: str) -> Self:
        """The same under a name of the user's choice."""
        renamed = copy.copy(self)
        renamed.name, renamed._called_as = name, f"{name}={self.called_as}"
        return renamed

    @property
    def switches(self) -> tuple[str, ...]:
        """What `command` adds for its own attack: nothing, or what switches it off."""
        return () if self.attacks else self.attack_off

    @property
    def can_switch_attack_off(self) -> bool:
        """Whether it has a switch for its own attack."""
        return bool(self.attack_off)

    @final
    def without_attack(self) -> Self | None:
        """The same, called NAME:no-attack, with its own attack switched off; None where it has no switch.

        Most `sat` answers come from an attack that runs before anything is proven. Without it, what would
        have been hidden shows: a tool whose proofs are unsound answers `unsat` where `sat` is right.
        """
        if not (self.attacks and self.can_switch_attack_off):
            return None
        quiet = copy.copy(self)
        quiet.name, quiet.attacks = f"{self.name}{NO_ATTACK}", False
        quiet._called_as = f"{self.called_as}{NO_ATTACK}"
        return quiet

    @final
    def warm(self) -> Self | None:
        """The same, called NAME:warm, whose process stays from one query to the next; None where it cannot.

        Starting may take longer than a small query. Limits are those of each query, which does not have to
        wait for the start any more: times of warm and of cold runs are not to be compared.
        """
        if self.is_warm or not self.can_stay_warm:
            return None
        staying = copy.copy(self)
        staying.name, staying.is_warm = f"{self.name}{WARM}", True
        staying._called_as = f"{self.called_as}{WARM}"
        return staying

    @abstractmethod
    def version(self) -> str | None:
        """The version that would run now; None where it is not installed."""

    @abstractmethod
    def how_to_get(self) -> str:
        """What a person does to have this verifier, in one sentence."""

    def installed_version(self, *, where: str = "") -> str:
        """The version that would run now. Raises VerifierUnavailable, with the remedy, where there is none.

        `where` names the machine, where that is not the user's own.
        """
        version = self.version()
        if version is None:
            on = f" on {where}" if where else ""
            raise VerifierUnavailable(
                f"The verifier {self.name} is not installed{on}; to get it: {self.how_to_get()}."
            )
        return version

    def at(self, place: str) -> Self:
        """The same at a place that the user names. Raises InputError if it has no use for one."""
        raise InputError(f"The verifier {self.name} takes no place; write --verifier {self.name}.")

    def install(self, say: Callable[[str], None]) -> None:
        """Install it where it is not; `say` gets a line for each step."""
        if self.version() is None:
            raise InputError(f"The verifier {self.name} cannot be installed from here: {self.how_to_get()}")

    def diagnose(self) -> tuple[Finding, ...]:
        """What was looked at, in order; the first thing that is not ok is the last."""
        version = self.version()
        if version is None:
            return (Finding("it is not there", False, f"to get it: {self.how_to_get()}"),)
        return (Finding(f"version {version} is there", True),)

    def guard(self) -> Finding | None:
        """What keeps scripts of its own from the user's processes on this machine, where it has scripts."""
        return None

    @abstractmethod
    def command(self, query: Query) -> Invocation:
        """The process that answers `query`."""

    @abstractmethod
    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The answer of a process that ended by itself; ValueError where there is none to read."""

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """An answer that decides nothing, with the reason that the log gives for it."""
        return given

    def accepts(self, exit_code: int) -> bool:
        """Whether an answer may be read after this exit code."""
        return exit_code == 0

    @final
    def answer(self, outcome: Outcome, query: Query, log: Path) -> VerifierAnswer:
        """The verifier's answer, whatever happened."""
        given = self._answer(outcome, query, log)
        if given.answer.decides or outcome.termination is not Termination.EXITED:
            return given
        explained = self.explained(given, log)
        return given if explained.answer.decides else explained

    def _answer(self, outcome: Outcome, query: Query, log: Path) -> VerifierAnswer:
        if outcome.termination is Termination.WALL_LIMIT:
            return VerifierAnswer(Answer.TIMEOUT, detail=f"stopped after {query.wall_seconds:g} s")
        if outcome.termination is Termination.MEMORY_LIMIT:
            return VerifierAnswer(
                Answer.MEMOUT, detail=f"stopped above {query.memory_bytes} bytes of memory"
            )
        if outcome.termination is Termination.CPU_LIMIT:
            return VerifierAnswer(
                Answer.TIMEOUT, detail=f"stopped after {query.cpu_seconds or 0:g} s of CPU time"
            )
        if outcome.termination is Termination.NOT_STARTED:
            return VerifierAnswer(Answer.ERROR, detail=f"not started: {outcome.detail}")
        if outcome.termination is Termination.SIGNALLED or outcome.exit_code is None:
            return _error(f"killed by {outcome.detail}", log)
        if not self.accepts(outcome.exit_code):
            return _error(f"exit code {outcome.exit_code}", log)
        if trouble := _trouble_with(query):
            return _error(f"no readable answer (what it wrote as its result {trouble})", log)
        try:
            return self.read_answer(outcome, query)
        except FileNotFoundError:
            return _error("no readable answer (it wrote no result file)", log)
        except (ValueError, OSError) as error:
            return _error(f"no readable answer ({_one_line(str(error))})", log)


def _trouble_with(query: Query) -> str | None:
    """Why the result is not to be opened, whatever it may say; None where it is a file of the run's own."""
    if query.result.exists() and not query.result.is_file():
        return "is not a file"
    try:
        contained(query.folder, query.result.name)
    except UnreadableFile:
        return "is not a file of its folder"
    return "is not a file of its folder" if query.folder.is_symlink() else None


def log_tail(log: Path, *, characters: int = TAIL_CHARACTERS) -> str:
    """The end of a log, as readable text; empty where there is no log any more."""
    try:
        if not log.is_file():
            return ""
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4 * characters))
            text = file.read(4 * characters).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text).strip()[-characters:]


def _error(what: str, log: Path) -> VerifierAnswer:
    tail = log_tail(log)
    return VerifierAnswer(Answer.ERROR, detail=f"{what}: {tail}" if tail else what)


def _one_line(text: str, *, characters: int = 200) -> str:
    return " ".join(text.split())[:characters]


def as_command(parts: Sequence[str | Path]) -> tuple[str, ...]:
    """A command from strings and paths."""
    return tuple(str(part) for part in parts)
