"""Tools that consist of a checked-out repository and a Python interpreter with their dependencies."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.placed import PlacedVerifier
from dokimos.verifiers.refusals import refusal
from dokimos.verifiers.working_tree import environment_names, tree_digest

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
