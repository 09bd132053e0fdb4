"""Virtual environments for verifiers: one folder each, pinned, and tried out before they count."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from multiprocessing.util import Finalize
from pathlib import Path
from typing import ClassVar

import dokimos
from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile, VerifierUnavailable
from dokimos.core.files import home, only_one, write_whole
from dokimos.verifiers.base import TAIL_CHARACTERS, Finding, Invocation, Verifier
from dokimos.verifiers.execution.limits import Limits, Outcome, Room, Termination
from dokimos.verifiers.execution.process import WatchedTree
from dokimos.verifiers.execution.usage import usage
from dokimos.verifiers.execution.warm_worker import WarmStart, WarmWorkers
from dokimos.verifiers.script_guard import allowed_environment, installing_environment, why_not_isolated

_INSTALL_SECONDS = 1800
_SMOKE_SECONDS = 300
_LISTING_SECONDS = 60
#: pip and a smoke test may take the memory that there is.
_MOST_BYTES = 1 << 62
#: The hashes of everything that is installed, which `make lock` writes.
_HASHES = Path(__file__).with_name("hashes.txt")
_HASH = "--hash=sha256:"


@dataclass(frozen=True)
class PinnedEnvironment:
    """A virtual environment with exactly these packages, by their hashes, under `home()`.

    Virtual environments cannot be moved, so it is built in its final place; a file that is written last,
    after the smoke test, marks it as complete. A folder without that file is discarded and rebuilt. The
    folder's name includes a hash of the requirements, so other pins make another environment. `variables`
    are those that the verifier declares, for its smoke test.
    """

    verifier: str
    version: str
    requirements: tuple[str, ...]
    variables: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the environment is, or would be."""
        pins = "\n".join((f"python {sys.version_info[0]}.{sys.version_info[1]}", *self.requirements))
        digest = hashlib.sha256(pins.encode()).hexdigest()[:8]
        return home() / "verifiers" / f"{self.verifier}-{self.version}-{digest}"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def is_complete(self) -> bool:
        """Whether it has been built and tried, and still exists."""
        return (self.folder / "complete").is_file() and self.python.exists()

    def build(self, smoke_command: tuple[str, ...], say: Callable[[str], None]) -> None:
        """Build the environment if it is not complete.

        Raises VerifierUnavailable if that fails. `smoke_command` holds the arguments of the interpreter,
        which must exit with code 0.
        """
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with self._only_one_builder(say):
                if not self.is_complete:
                    self._build(smoke_command, say)
        except OSError as error:
            raise VerifierUnavailable(
                f"The verifier {self.verifier} cannot be installed into {self.folder}: {error.strerror}; "
                "set DOKIMOS_HOME to a writable folder with enough space."
            ) from error

    def diagnose(self, smoke_command: tuple[str, ...]) -> tuple[Finding, ...]:
        """The checks of the environment; they stop at the first one that fails."""
        again = f"dokimos verifiers install {self.verifier}"
        anew = f"remove {self.folder}, then: {again}"
        if not self.folder.is_dir():
            return (Finding(f"there is no environment {self.folder}", False, again),)
        found = [Finding(f"the environment {self.folder} is there", True)]
        if not (self.folder / "complete").is_file():
            trouble = "its installation was interrupted, or its smoke test failed"
            return (*found, Finding(trouble, False, f"{again} (it starts over)"))
        if not self.python.exists():
            trouble = "its interpreter is gone (was the Python it was created with removed?)"
            return (*found, Finding(trouble, False, anew))
        script = "from importlib.metadata import distributions as d; import json; "
        script += "print(json.dumps([f'{x.name}=={x.version}' for x in d()]))"
        for arguments, what, seconds in (
            (("-c", script), "the list of its packages", _LISTING_SECONDS),
            (smoke_command, "its smoke test", _SMOKE_SECONDS),
        ):
            code, output = self._try(arguments, seconds=seconds)
            if code != 0:
                how = "did not end in time" if code is None else f"failed with exit code {code}"
                tail = " ".join(output[-TAIL_CHARACTERS:].split())
                return (*found, Finding(f"{what} {how}: {tail}", False, anew))
            if what == "its smoke test":
                found.append(Finding(f"{what} passes", True))
                continue
            try:
                there = _listed(output)
            except UnreadableFile as error:
                return (*found, Finding(f"{what} cannot be read: {error.reason}", False, anew))
            if missing := sorted(_pins(self.requirements) - _pins(there)):
                return (*found, Finding(f"it is missing {', '.join(missing)}", False, anew))
            found.append(Finding(f"its {len(self.requirements)} packages are as pinned", True))
        return tuple(found)

    def _build(self, smoke_command: tuple[str, ...], say: Callable[[str], None]) -> None:
        say(f"Installing {self.verifier} {self.version} into {self.folder}")
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            venv.EnvBuilder(with_pip=True, symlinks=True).create(self.folder)
        except subprocess.CalledProcessError as error:
            raise VerifierUnavailable(
                f"No virtual environment with pip can be created by {sys.executable}; install "
                "what is missing (on Debian and Ubuntu: apt-get install python3-venv)."
            ) from error
        known = known_hashes(self.requirements)
        wheels = self.folder / "wheels"
        pip = ("-m", "pip", "--no-input", "--disable-pip-version-check")
        fetch = ("download", "--no-deps", "--only-binary", ":all:", "--dest", str(wheels), *known)
        say(f"Downloading {len(known)} packages; this may take a few minutes")
        self._run((*pip, *fetch), "pip download", seconds=_INSTALL_SECONDS, heard=self._counting(say))
        found = sorted(wheels.glob("*"))
        require_hashes(found, known)
        say("  unpacking them")
        install = ("install", "--no-deps", "--no-index", *map(str, found))
        self._run((*pip, *install), "pip install", seconds=_INSTALL_SECONDS)
        shutil.rmtree(wheels, ignore_errors=True)
        say(f"Trying {self.verifier} {self.version}")
        self._run(smoke_command, "smoke test", seconds=_SMOKE_SECONDS)
        write_whole(self.folder / "complete", "\n".join(self.requirements) + "\n")

    def _run(
        self,
        arguments: tuple[str, ...],
        what: str,
        *,
        seconds: float,
        heard: Callable[[str], None] | None = None,
    ) -> None:
        code, output = self._try(arguments, seconds=seconds, heard=heard)
        if code is None:
            raise VerifierUnavailable(
                f"The {what} of the verifier {self.verifier} did not end within {seconds:g} s; try again."
            )
        if code != 0:
            tail = " ".join(output[-TAIL_CHARACTERS:].split())
            raise VerifierUnavailable(
                f"The {what} of the verifier {self.verifier} failed with exit code {code} "
                f"(is PyPI reachable?): {tail}"
            )

    def _try(
        self,
        arguments: tuple[str, ...],
        *,
        seconds: float,
        heard: Callable[[str], None] | None = None,
    ) -> tuple[int | None, str]:
        """The exit code (None if it did not end in time) and all output of the interpreter.

        It ends if we do. `heard` gets each line as it is printed. pip has the network; all else is
        isolated, where that is possible.
        """
        is_pip = arguments[:2] == ("-m", "pip")
        limits, lines = Limits(wall_seconds=seconds, memory_bytes=_MOST_BYTES), _Lines(heard)
        room = None if is_pip or why_not_isolated() else Room()
        tree = WatchedTree(limits, lines, threading.Event(), None, usage(limits, None))
        with tempfile.TemporaryDirectory(prefix="dokimos-") as name:
            (folder := Path(name, "run")).mkdir()
            with tree.running(
                (str(self.python), *arguments),
                cwd=folder,
                environment=installing_environment() if is_pip else allowed_environment(self.variables),
                cpu_seconds=None,
                room=room,
            ):
                limit = tree.until_end_or_limit()
        outcome = tree.outcome(limit)
        said = "".join(lines.all)
        if outcome.termination is Termination.WALL_LIMIT:
            return None, said
        return (1 if outcome.exit_code is None else outcome.exit_code), said + outcome.detail

    def _counting(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """Reports which of the packages pip is working on."""
        met: set[str] = set()

        def heard(line: str) -> None:
            words = line.split()
            if words[:1] == ["Collecting"] and len(words) > 1 and words[1] not in met:
                met.add(words[1])
                say(f"  {len(met)} of {len(self.requirements)}: {words[1]}")

        return heard

    def _only_one_builder(self, say: Callable[[str], None]) -> AbstractContextManager[int]:
        """Hold the lock."""
        lock = self.folder.with_name(self.folder.name + ".lock")
        return only_one(lock, doing=f"installs {self.verifier}", waiting=say, keep=True)


class _Lines:
    """Takes output, and hands each line on as soon as it is whole."""

    def __init__(self, heard: Callable[[str], None] | None) -> None:
        self.all: list[str] = []
        self._heard = heard or (lambda line: None)
        self._rest = b""

    def write(self, chunk: bytes) -> None:
        """Add a piece of output."""
        self.all.append(chunk.decode("utf-8", errors="replace"))
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            self._heard(line.decode("utf-8", errors="replace"))


def known_hashes(requirements: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each requirement NAME==VERSION the hashes of its wheels. Raises VerifierUnavailable without one.

    Those of our own verifiers are in a list; an adapter may write others after it, as pip does:
    ``--hash=sha256:…``.
    """
    lines = _HASHES.read_text(encoding="utf-8").splitlines()
    listed = {_pin(line): line for line in lines}
    found = {}
    for given in requirements:
        text = given if _HASH in given else listed.get(_pin(given), "")
        found[given.partition(" ")[0]] = hashes = frozenset(re.findall(rf"{_HASH}([0-9a-f]{{64}})\b", text))
        if not hashes:
            raise VerifierUnavailable(
                f"{given} is not installed, since the hash of its wheel is not known; write it after it in "
                f"the adapter: {given} {_HASH}… (`pip hash` prints it)."
            )
    return found


def require_hashes(wheels: Sequence[Path], known: Mapping[str, frozenset[str]]) -> None:
    """Raise VerifierUnavailable unless each requirement has one wheel, and that a hash that is known."""
    if len(wheels) != len(known):
        raise VerifierUnavailable(f"{len(known)} wheels were asked for, and {len(wheels)} came.")
    for wheel in wheels:
        name, version = wheel.name.split("-")[:2]
        pin = _pin(f"{name}=={version}")
        expected = next((hashes for each, hashes in known.items() if _pin(each) == pin), frozenset())
        with wheel.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() not in expected:
                raise VerifierUnavailable(
                    f"{wheel.name} has another hash than the one that was tried, and is not installed; "
                    "find out what your package index serves."
                )


def _listed(output: str) -> list[str]:
    """The packages on the last line of the output; warnings may precede it. Raises UnreadableFile."""
    last = (output.strip().splitlines() or [""])[-1]
    return strict_json.read(last, list[str], file="packages", what="a list of packages")


def pins_of(verifier: str) -> tuple[str, ...]:
    """The packages that are pinned for a verifier of ours, in the file beside its adapter."""
    file = resources.files("dokimos.verifiers.adapters") / f"{verifier}.txt"
    return tuple(file.read_text(encoding="utf-8").split())


def _pins(requirements: Iterable[str]) -> set[str]:
    """Requirements in canonical form: normalised names, versions without build tags, no hashes."""
    return set(map(_pin, requirements))


def _pin(requirement: str) -> str:
    name, _, version = requirement.partition(" ")[0].partition("==")
    return re.sub(r"[-_.]+", "-", name.lower()) + "==" + version.partition("+")[0]


# Verifiers that we install ourselves: one pinned environment each, tried before it counts as installed


class PinnedVerifier(Verifier):
    """A verifier from PyPI. An adapter names its environment, its size and a command that tries it."""

    environment: ClassVar[PinnedEnvironment]
    #: What is installed, and how much disk space it takes.
    takes: ClassVar[str]
    is_tried_out = False  # its smoke test is part of its diagnosis

    @abstractmethod
    def smoke(self) -> tuple[str, ...]:
        """The interpreter's arguments for a tiny query; exit code 0 means success."""

    def version(self) -> str | None:
        """The pinned version, once its environment is complete."""
        return self.environment.version if self.environment.is_complete else None

    def how_to_get(self) -> str:
        """The command that installs it."""
        return f"dokimos verifiers install {self.name} ({self.takes})"

    def install(self, say: Callable[[str], None]) -> None:
        """Install it into an environment of its own and answer tiny queries."""
        self.environment.build(self.smoke(), say)

    def diagnose(self) -> tuple[Finding, ...]:
        """Whether the environment is complete and as pinned, and whether the tool answers."""
        return self.environment.diagnose(self.smoke())


# Runners that need Dokimos itself run in our own interpreter


def our_module(module: str, *arguments: str) -> Invocation:
    """`python -P -m module`, with the package that is running now, installed or not."""
    packages = str(Path(dokimos.__file__).parent.parent)
    start = (sys.executable, "-P", "-m", module)
    return Invocation((*start, *arguments), {"PYTHONPATH": packages}, start_words=len(start))


# Modules of Dokimos that work in processes of their own, which stay for the next query


def ask_module(module: str, *arguments: str, limits: Limits, folder: Path) -> Outcome:
    """Let `python -m module` work on one query, in a new folder `folder`; otherwise like `run_limited`.

    It must serve queries (`runners/warm_queries.py`). Its environment is that of the first query. What it
    prints is lost.
    """
    folder.mkdir()
    outcome, _ = _workers().ask(
        _start(module, limits),
        arguments,
        folder=folder,
        log=folder.with_suffix(".log"),
        cancel=threading.Event(),
        is_odd=_is_odd,
    )
    return outcome


def _is_odd(outcome: Outcome) -> bool:
    """Whether earlier queries may be the cause of the outcome: it crashed, or its memory is full."""
    ended = outcome.termination in (Termination.SIGNALLED, Termination.MEMORY_LIMIT)
    return ended or outcome.exit_code not in (None, 0)


@cache
def _start(module: str, limits: Limits) -> WarmStart:
    call = our_module(module)
    return WarmStart.of(call.command, {**os.environ, **call.environment}, limits)


@cache
def _workers() -> WarmWorkers:
    """The processes that work for this one. They end with it."""
    folder = tempfile.TemporaryDirectory(prefix="dokimos-warm-")
    workers = WarmWorkers(Path(folder.name), most=2)
    # Not by atexit, which is not called in the processes that `multiprocessing` starts.
    Finalize(None, folder.cleanup, exitpriority=1)
    Finalize(None, workers.end, exitpriority=2)
    return workers
