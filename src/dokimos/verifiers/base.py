"""What every verifier's adapter promises."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self, final

from dokimos.core.errors import InputError, UnreadableFile, VerifierUnavailable
from dokimos.core.files import contained, write_whole
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.execution.limits import Outcome, Termination

# The kinds of evidence that verifiers build: certificate styles


class CertificateStyle(Enum):
    """What a verifier builds as evidence (Appendix C of the paper).

    It may combine several. Tools that the paper classifies have its classes; the others are classified by
    their own description.
    """

    DUAL = "dual relaxation"
    PARTITION = "partition"
    SAT = "SAT"
    REACHABILITY = "reachability"
    OTHER = "other"


#: The suffix of a verifier's name if its own attack is switched off.
NO_ATTACK = ":no-attack"
#: The suffix of a verifier's name if its process stays from one query to the next.
WARM = ":warm"
#: How much of the log an `error` includes.
TAIL_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query to a verifier: the two files, and where the answer goes.

    `folder` is empty, private to this run and removed after it; `result` is a path in it. `name` is the
    instance's name and `origin` is where the property comes from; real verifiers use neither, since the two
    files are copies. `property_file` may be VNN-LIB 1.0 or 2.0. `trust`: the user wants the tool to run
    as it is, its own scripts unguarded. `is_prepared`: what `preparation` gives has been run before.
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
    trust: bool = False
    is_prepared: bool = False

    @property
    def result(self) -> Path:
        """Where the verifier must write its answer."""
        return self.folder / "result"

    @property
    def certificate(self) -> Path:
        """Where the verifier may write a truth file that proves its `unsat`; it is checked before use."""
        return self.folder / "certificate.json"

    @property
    def bounds(self) -> Path:
        """Where the verifier may write its bounds of tensors, which explain a wrong `unsat`: see
        docs/formats.md."""
        return self.folder / "bounds.npz"


@dataclass(frozen=True)
class Invocation:
    """A command line, and the variables that it needs beyond the allowed ones.

    `files` are written into the query's folder, by name, before the process starts. `guard` says, for the
    record, what protects the user's processes from scripts that it runs. Where the system allows it, the
    process is isolated (`execution/isolation.py`): `writes` are the folders that it must write in beside
    the query's; what a command that `is_first` starts cannot end it. The first `start_words` words of the
    command start the process, and the rest are about this query: a warm worker is started with the former
    and sent the latter. 0 means that it cannot be warm.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    guard: str = ""
    start_words: int = 0
    writes: tuple[Path, ...] = ()
    is_first: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", MappingProxyType(dict(self.environment)))
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    def write_files(self, folder: Path) -> None:
        """Put `files` into the query's folder."""
        for name, content in self.files.items():
            write_whole(folder / name, content)


@dataclass(frozen=True)
class Finding:
    """One check of a diagnosis; `remedy` says what to do if it is not ok."""

    what: str
    is_ok: bool
    remedy: str = ""


_PROGRAM = '''"""Asks the tool about the two files beside this one, by its own command line."""

import subprocess
import sys

subprocess.run([sys.executable, {words}])
print(open("{result}").read())
'''


class Verifier(ABC):
    """One verifier: where it is, its version, its command line and its answer. One small file each.

    An adapter knows one tool and nothing else: not the limits (execution enforces them), not the label
    (only the judge knows it), not the journal. Its only state is where the tool is. Everything specific to
    the tool is in its adapter; no other code depends on the adapter's class.

    **How the tool gets here** is decided by the base class: a `PinnedVerifier` is installed from PyPI into
    its own environment, a `PlacedVerifier` is at a place that the user names, and a direct subclass of this
    class ships with its adapter.

    **What an adapter writes**

    `name`
        The tool's name on the command line and in records: lower case, no blanks.
    `styles`
        The kinds of evidence it builds, for explanations by certificate style.
    `version()`
        The version that would run now, or None if the tool is not installed. It is part of every job's
        identity, so it must change whenever answers may change; it must be fast (no import of the tool) and
        must not raise.
    `has_certain_version`
        Whether `version()` really changes with all that answers depend on, so that a gate may use earlier
        answers of the same version. It is false for a hash of the files at a place: what these import from
        elsewhere is not in it.
    `how_to_get()`
        One sentence for users who do not have the tool.
    `install(say)`
        Installs the tool into its own pinned environment, and tries it; does nothing if that has been done.
        Tools that we cannot install leave this out.
    `attack_off`
        The arguments that stop it from attacking the network to find counterexamples; `command` inserts
        `switches` where they belong. Tools without such a switch leave this out.
    `can_stay_warm`
        Whether its process can stay for the next query, if the user asks for that (NAME:warm). Then
        `command` says how many of its words start the process, and what it starts takes
        ``--queries QUERIES REPLIES`` instead of the others, as `runners/warm_queries.py` does. An answer
        must not depend on earlier queries.
    `variables`
        Names of variables of the user's environment that the tool needs beyond the usual ones, such as
        where its licence is. It gets no others (`permissions.py`), so that no token of the user's
        reaches it.
    `reads_vnnlib2`
        Whether it reads VNN-LIB 2.0. One that does not gets the same property in 1.0, and if 1.0 cannot
        express it, the answer is `unsupported` without running the tool.
    `limitations`
        What the tool does not support, in a few words.
    `unread_operators`
        The ONNX operators that the tool refuses in every form that the suite `ops` has of them, separated
        by blanks; `dokimos audit` names networks that have one, if the tool is installed.
    `diagnose()`
        Checks of the tool on this machine, in order, each with its remedy.
    `guard()`
        What protects the user's processes from scripts that come with the tool, if it runs such scripts;
        not ok if nothing does, so that they are refused unless the user trusts them.
    `is_tried_out`
        Whether the doctor runs two tiny queries after `diagnose` has found no problem. False if `diagnose`
        does so itself, or if correct answers would mean nothing.
    `command(query)`
        The process to run, as a list (no shell). It is started in `query.folder`; paths in `query` are
        absolute. It must make the tool write to `query.result` whatever the adapter reads. To make it
        writes nothing: what the process is to find in the folder goes into `Invocation.files`. The process
        has no network, unless `needs_network`, and can write in `query.folder`, a /tmp of its own, and the
        folders that its `Invocation` names.
    `preparation(query)`
        The process that prepares the tool for a query, if it has one and preparing does not count towards
        the limit of the query, as in competitions. Tools without one leave this out.
    `for_category(name)`
        The same tool told the name of the benchmark that it is run on, if it takes one.
    `read_answer(outcome, query)`
        The tool's answer, read from its result file or from the exact line that it documents; **never** by
        searching for a word in its output, since even a crash may print "safe". It is only called for a
        process tree that ended on its own, in time, with an exit code that `accepts` allows. ValueError or
        OSError mean that there is no readable answer.
    `explained(given, log)`
        Why nothing was decided, if a line of the log states it in a known form: `unsupported` instead of
        `unknown` or `error`. Only called for a process tree that ended on its own, if `given` decides
        nothing; it must not decide anything itself.
    `program(folder, seconds)`
        The text of a Python program of at most 20 lines that asks the tool about `network.onnx` and
        `property.vnnlib`, which are in `folder` and which it finds beside it, and prints the answer: for
        those who make the tool, who have no Dokimos. The first word of `command` runs it. None if there is
        none. By default it starts `command`; a tool whose command is a runner of ours writes its own.

    **What the base class does** (`answer`, final): a process tree that was killed at its wall or CPU
    limit is `timeout`, at its memory limit `memout`, whatever it may have written before; one that was
    killed by a signal, was not started, or ended with an exit code that is not allowed is `error`, and so
    is an unreadable answer. An `error` includes the tail of the log.
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
    needs_network: ClassVar[bool] = False
    #: Whether its own attack is on; false only if `without_attack` made this verifier.
    attacks: bool = True
    #: Whether its process stays from one query to the next; true only if `warm` made this verifier.
    is_warm: bool = False
    #: The value of --verifier, if that is not its name: ``mine=/opt/tool`` is called `mine`.
    _called_as: str | None = None

    @property
    def called_as(self) -> str:
        """The value of --verifier that runs it again."""
        return self._called_as or self.name

    @final
    def named(self, name: str) -> Self:
        """The same verifier under a name of the user's choice."""
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
        """The same verifier with its own attack switched off, called NAME:no-attack; None if it cannot.

        Most `sat` answers come from an attack that runs before anything is proven. Without it, hidden bugs
        show: a tool whose proofs are unsound answers `unsat` although `sat` is correct.
        """
        if not (self.attacks and self.can_switch_attack_off):
            return None
        quiet = copy.copy(self)
        quiet.name, quiet.attacks = f"{self.name}{NO_ATTACK}", False
        quiet._called_as = f"{self.called_as}{NO_ATTACK}"
        return quiet

    @final
    def warm(self) -> Self | None:
        """The same verifier with a process that stays between queries, called NAME:warm; None if it cannot.

        Starting may take longer than a small query. Limits apply to each query, which no longer includes
        the start: do not compare times of warm and cold runs.
        """
        if self.is_warm or not self.can_stay_warm:
            return None
        staying = copy.copy(self)
        staying.name, staying.is_warm = f"{self.name}{WARM}", True
        staying._called_as = f"{self.called_as}{WARM}"
        return staying

    @abstractmethod
    def version(self) -> str | None:
        """The version that would run now; None if it is not installed."""

    @property
    def has_certain_version(self) -> bool:
        """Whether the version stands for everything that answers depend on."""
        return True

    @abstractmethod
    def how_to_get(self) -> str:
        """How to get this verifier, in one sentence."""

    def installed_version(self, *, where: str = "") -> str:
        """The version that would run now.

        Raises VerifierUnavailable, with the remedy, if there is none. `where` names the machine if it is
        not the user's own.
        """
        version = self.version()
        if version is None:
            on = f" on {where}" if where else ""
            raise VerifierUnavailable(
                f"The verifier {self.name} is not installed{on}; to get it: {self.how_to_get()}."
            )
        return version

    def at(self, place: str) -> Self:
        """The same verifier at a place that the user names. Raises InputError if it takes no place."""
        raise InputError(f"The verifier {self.name} takes no place; write only {self.name}.")

    def install(self, say: Callable[[str], None]) -> None:
        """Install it if it is not installed; `say` gets a line for each step."""
        if self.version() is None:
            raise InputError(f"The verifier {self.name} cannot be installed from here: {self.how_to_get()}")

    def preparation(self, query: Query) -> Invocation | None:
        """What prepares it for this query, apart from its run; None if nothing does."""
        return None

    def for_category(self, name: str) -> Self:
        """The same verifier, told the name of the benchmark."""
        return self

    def diagnose(self) -> tuple[Finding, ...]:
        """The checks, in order; they stop at the first one that is not ok."""
        version = self.version()
        if version is None:
            return (Finding("it is not installed", False, f"to get it: {self.how_to_get()}"),)
        return (Finding(f"version {version} is installed", True),)

    def guard(self) -> Finding | None:
        """What protects the user's processes from its own scripts on this machine, if it has scripts."""
        return None

    @abstractmethod
    def command(self, query: Query) -> Invocation:
        """The process that answers `query`."""

    @abstractmethod
    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The answer of a process that ended on its own. Raises ValueError if there is none to read."""

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """An answer that decides nothing, with the reason that the log gives."""
        return given

    def program(self, folder: Path, seconds: float) -> str | None:
        """A program that asks it without Dokimos: see the class. Here, one that starts its command."""
        query = Query(
            name="network",
            network_file=folder / "network.onnx",
            property_file=folder / "property.vnnlib",
            folder=folder,
            wall_seconds=seconds,
            memory_bytes=1 << 32,
        )
        invocation = self.command(query)
        if invocation.files:
            return None
        words = ", ".join(repr(word.replace(f"{folder}{os.sep}", "")) for word in invocation.command[1:])
        return _PROGRAM.format(words=words, result=query.result.name)

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
                Answer.MEMOUT, detail=f"stopped at more than {query.memory_bytes} bytes of memory"
            )
        if outcome.termination is Termination.CPU_LIMIT:
            return VerifierAnswer(
                Answer.TIMEOUT, detail=f"stopped after {query.cpu_seconds or 0:g} s of CPU time"
            )
        if outcome.termination is Termination.NOT_STARTED:
            return VerifierAnswer(Answer.ERROR, detail=f"not started: {outcome.detail}")
        if outcome.termination is Termination.SIGNALLED or outcome.exit_code is None:
            return _error(f"ended abnormally ({outcome.detail})", log)
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
    """Why the result must not be opened, whatever it contains; None if it is a regular file of the run."""
    if query.result.exists() and not query.result.is_file():
        return "is not a file"
    try:
        contained(query.folder, query.result.name)
    except UnreadableFile:
        return "is not a file of its folder"
    return "is not a file of its folder" if query.folder.is_symlink() else None


def log_tail(log: Path, *, characters: int = TAIL_CHARACTERS) -> str:
    """The end of a log, as readable text; empty if there is no log any more."""
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
