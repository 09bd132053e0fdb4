"""One instance of a suite on disk, and the reading of its files.

This is all that the checker needs of a suite. The code that finds an entry's paths (`folder`) need not be
trusted: a truth names its network and its property by their hashes, and `check` compares these with the
contents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dokimos.core.errors import UnreadableFile
from dokimos.core.gzipped import uncompressed
from dokimos.core.regular_files import read_regular
from dokimos.suites.instance import Instance, Truth, sha256
from dokimos.suites.truth_file import load_truth


@dataclass(frozen=True)
class SuiteEntry:
    """One row of `instances.csv`, and where its files are. Contents are read when first needed."""

    name: str
    network_path: Path
    property_path: Path
    timeout_seconds: float
    family: str
    truth_path: Path

    @cached_property
    def network_sha256(self) -> str:
        """The hash of the network's content."""
        return sha256(read_content(self.network_path))

    @cached_property
    def property_sha256(self) -> str:
        """The hash of the property's content."""
        return sha256(read_content(self.property_path))

    def read_instance(self) -> Instance:
        """The instance, with the bytes of both files."""
        return Instance(
            name=self.name,
            network_file=read_content(self.network_path),
            property_file=read_content(self.property_path),
            timeout_seconds=self.timeout_seconds,
            family=self.family,
        )

    def read_truth(self) -> Truth | None:
        """What is known of the instance; None if the suite has no truth file for it."""
        if not exists(self.truth_path):
            return None
        return load_truth(read_text(self.truth_path), file=str(self.truth_path))


def read_content(path: Path) -> bytes:
    """The content of a file, decompressed if it is compressed."""
    try:
        return uncompressed(read_regular(path), file=str(path))
    except (FileNotFoundError, ValueError):
        raise UnreadableFile(path, "there is no such file") from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror or "cannot be read") from None


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return read_content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableFile(path, "it is not UTF-8 text") from None


def exists(path: Path) -> bool:
    """Whether there is such a file; also False for a name that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
