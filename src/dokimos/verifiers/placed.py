"""Verifiers that the user has installed: ``NAME=PLACE`` or an environment variable says where."""

from __future__ import annotations

import copy
import hashlib
import os
import re
import shutil
import subprocess
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.core.readable import did_you_mean
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import NO_ATTACK, WARM, Finding, Verifier
from dokimos.verifiers.result_file import refusal

_VERSION = "version"


class PlacedVerifier(Verifier):
    """A verifier at a place. An adapter's `trouble` defines what a place is (a folder, a command).

    ``--verifier vnncomp=/opt/tool`` is the verifier `vnncomp` at the place /opt/tool, and is called that in
    records. Without a place, the environment variable DOKIMOS_<NAME> names one.

    Settings may follow a place, as ``,NAME=VALUE``: those in `settings`, and ``version=…`` for a tool whose
    files do not say which version it is.
    """

    #: The settings that may follow its place, and what each is for.
    settings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _given: str | None = None
    _kind: str | None = None

    @property
    def kind(self) -> str:
        """Its name in the catalogue, or the class that it was imported from."""
        return self._kind or self.name.removesuffix(WARM).removesuffix(NO_ATTACK).partition("=")[0]

    @property
    def variable(self) -> str:
        """The environment variable that may name its place."""
        return "DOKIMOS_" + type(self).name.upper().replace("-", "_")

    @property
    def place(self) -> str | None:
        """Where the user says it is."""
        return None if (said := self._said) is None else said[0]

    def setting(self, name: str) -> str | None:
        """The value of the setting `name` after its place; None if there is none."""
        return None if (said := self._said) is None else said[1].get(name)

    @property
    def _said(self) -> tuple[str, dict[str, str]] | None:
        given = self._given or os.environ.get(self.variable)
        if not given:
            return None
        known = "|".join(map(re.escape, (*self.settings, _VERSION)))
        place, *settings = re.split(rf",(?=(?:{known})=)", given)
        return place, dict(setting.split("=", 1) for setting in settings)

    def at(self, place: str) -> Self:
        """The same verifier at another place."""
        if not place.strip():
            raise InputError(f"{self.kind}= needs a place; to get it: {self.how_to_get()}.")
        there = copy.copy(self)
        there.name, there._given, there._kind = f"{self.kind}={place}", place, self.kind
        return there

    @abstractmethod
    def trouble(self, place: str) -> str | None:
        """Why there is no verifier at `place`; None if there is one."""

    @abstractmethod
    def parts(self, place: str) -> Iterable[bytes]:
        """What its answers depend on at `place`: the contents or digests of its files."""

    def unknown_setting(self) -> str | None:
        """The message about an unknown setting, if the rest of its place is correct; otherwise None."""
        place = self.place or ""
        found = re.match(r"(?P<place>.+?),(?P<name>[\w-]+)=", place)
        if found is None or self.trouble(place) is None or self.trouble(found["place"]) is not None:
            return None
        known, name = (*self.settings, _VERSION), found["name"]
        return f"{self.kind} has no setting {name!r}{did_you_mean(name, known)}, only {', '.join(known)}"

    def require(self) -> str:
        """Its place. Raises VerifierUnavailable if it is not there."""
        place = self.place
        if place is None:
            raise VerifierUnavailable(f"No path is given for {self.kind}: {self.how_to_get()}.")
        if trouble := self.unknown_setting() or self.trouble(place):
            raise VerifierUnavailable(f"The verifier {self.name} is not there: {trouble}.")
        return place

    def installed_version(self, *, where: str = "") -> str:
        """Its version. Raises VerifierUnavailable, which says what is missing at its place."""
        if self.place is not None:
            self.require()
        return super().installed_version(where=where)

    def version(self) -> str | None:
        """The version that the user gives, or a hash of its files and settings, which any change alters."""
        place = self.place
        if place is None or self.trouble(place):
            return None
        if named := self.setting(_VERSION):
            return named
        digest = hashlib.sha256()
        try:
            for part in self.parts(place):
                digest.update(part)
        except OSError:
            return None
        for name in self.settings:
            if (value := self.setting(name)) is not None:
                digest.update(f"\0{name}={value}".encode())
        return digest.hexdigest()[:12]

    @property
    def has_certain_version(self) -> bool:
        """Only if the user gives it: a hash of files misses what they import, load or call."""
        return self.setting(_VERSION) is not None

    def diagnose(self) -> tuple[Finding, ...]:
        """Whether its place is given and contains what it should."""
        place = self.place
        if place is None:
            return (Finding("no path given", False, self.how_to_get()),)
        if trouble := self.unknown_setting() or self.trouble(place):
            return (Finding(trouble, False, self.how_to_get()),)
        return (Finding(f"{place} is installed, version {self.version()}", True),)


def file_content(path: Path) -> bytes:
    """The content of a file for a version; empty if it is not a file."""
    return path.read_bytes() if path.is_file() else b""


# The current content of a tool in a folder: its files as they are now, edited or not


#: Larger files are identified by their size, their beginning and their end: data sets, weights.
_LARGE_BYTES = 4 << 20
_ENDS_BYTES = 1 << 16
_GIT_SECONDS = 20
#: What a tool leaves behind when it runs: not part of the tool.
_LEFT_BEHIND = frozenset({".git", "__pycache__", ".venv", "venv", "env", "node_modules"})
_LEFT_BEHIND_SUFFIXES = (".pyc", ".log")


def repository_of(folder: Path) -> Path:
    """The repository that `folder` or its parent is; `folder` if neither is one.

    Tools keep their VNN-COMP scripts in a folder of their repository.
    """
    whole = folder.absolute()
    return next((place for place in (whole, whole.parent) if (place / ".git").exists()), whole)


def tree_digest(folder: Path) -> bytes:
    """A digest of all files of the tool in `folder`, by path and content, and of the commit it is at.

    It changes with every edit of a file that git tracks or does not ignore, committed or not. Outside a
    repository it covers every file except caches, logs and environments.
    """
    root = repository_of(folder)
    digest = hashlib.sha256()
    for path in sorted((*_commit(root), *(_known_to_git(root) or _walk(root)))):
        digest.update(f"{path.relative_to(root)}\0".encode(errors="surrogateescape"))
        digest.update(_content(path))
    return digest.digest()


def environment_names(python: Path) -> Iterator[str]:
    """The packages and versions installed with a Python interpreter, as far as their folders show."""
    for packages in sorted(python.parent.parent.glob("lib/python3*/site-packages")):
        yield from sorted(path.name for path in packages.glob("*.dist-info"))


def _content(path: Path) -> bytes:
    try:
        if path.is_symlink():
            return os.fsencode(path.readlink())
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= _LARGE_BYTES:
                return hashlib.sha256(file.read()).digest()
            begin = file.read(_ENDS_BYTES)
            file.seek(size - _ENDS_BYTES)
            return hashlib.sha256(b"%d\0" % size + begin + file.read()).digest()
    except OSError:
        return b""


def _commit(root: Path) -> Iterable[Path]:
    git = root / ".git"
    head = git / "HEAD"
    if not head.is_file():
        return ()
    branch = git / head.read_text(errors="replace").strip().removeprefix("ref: ")
    return (head, branch if branch.is_file() else git / "packed-refs")


def _known_to_git(root: Path) -> list[Path] | None:
    """The files that git tracks or does not ignore; None if git is missing or this is not a repository."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return [root / os.fsdecode(name) for name in set(done.stdout.split(b"\0")) if name]


def _walk(root: Path) -> list[Path]:
    found = []
    for here, below, names in os.walk(root):
        below[:] = [name for name in below if name not in _LEFT_BEHIND]
        found += [Path(here, name) for name in names if not name.endswith(_LEFT_BEHIND_SUFFIXES)]
    return [path for path in found if path.is_symlink() or path.is_file()]


# Tools that consist of a checked-out repository and a Python interpreter with their dependencies


PYTHON_SETTING: Mapping[str, str] = MappingProxyType(
    {"python": "its interpreter (default: .venv/bin/python in its repository, else python3)"}
)


class RepositoryTool(PlacedVerifier):
    """Its place is its repository, or a folder in it. Its Python command is called, not its scripts.

    An adapter names `main`, the file by which the repository is recognised. The version is a hash of the
    repository's files as they are, and of the packages of the interpreter.
    """

    main: ClassVar[str]
    settings: ClassVar[Mapping[str, str]] = PYTHON_SETTING

    def how_to_get(self) -> str:
        """How to tell Dokimos where it is."""
        return (
            f"install it yourself (docs/verifiers.md says what it needs), then --verifier "
            f"{self.kind}=/path/to/its/repository,python=/path/to/its/python (or set {self.variable})"
        )

    def trouble(self, place: str) -> str | None:
        """The repository must hold its main file, and there must be an interpreter."""
        if not (_repository(place, self.main) / self.main).is_file():
            return f"there is no file {Path(place).expanduser() / self.main}"
        python = self._python(place)
        if shutil.which(python) is None:
            return f"there is no interpreter {python}"
        return None

    def parts(self, place: str) -> Iterable[bytes]:
        """Its files, and the names and versions of the packages that it runs with."""
        yield tree_digest(_repository(place, self.main))
        python = Path(shutil.which(self._python(place)) or "")
        yield "\0".join(environment_names(python)).encode()

    @property
    def repository(self) -> Path:
        """The folder of its repository. Raises VerifierUnavailable if it is not there."""
        return _repository(self.require(), self.main)

    @property
    def python(self) -> str:
        """Its interpreter, by its whole path."""
        return str(Path(shutil.which(self._python(self.require())) or "").absolute())

    def _python(self, place: str) -> str:
        own = _repository(place, self.main) / ".venv" / "bin" / "python"
        given = self.setting("python")
        return str(Path(given).expanduser()) if given else str(own) if own.is_file() else "python3"

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """`unsupported` if its log ends with its message about an operator that it cannot read."""
        return refusal(given, log)


def _repository(place: str, main: str) -> Path:
    """The folder at `place`, or its parent if that has `main`: some give the folder of the scripts."""
    folder = Path(place).expanduser().absolute()
    return folder.parent if not (folder / main).is_file() and (folder.parent / main).is_file() else folder
