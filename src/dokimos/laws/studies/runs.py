"""What came of the laws of the shipped domains, run by run, and the JSON file that keeps it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from dokimos import __version__
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import write_whole

FORMAT = "dokimos-law-study"
_VERSION = 1

Item = TypeVar("Item", "Run", "Quality")


@dataclass(frozen=True)
class Run:
    """One law tested on one model with one seed; seed None: all draws were gone through."""

    domain: str
    model: str
    model_sha256: str | None
    law: str
    law_sha256: str
    seed: int | None
    budget: int
    tested: int
    passed: int
    precondition_failed: int
    violated: int
    unique: int
    inputs: int
    failed: int
    is_violated: bool
    is_starved: bool
    seconds: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What a run is the result of."""
        return self.domain, self.model, self.model_sha256, self.law, self.law_sha256, self.seed, self.budget


@dataclass(frozen=True)
class Quality:
    """On which share of the test set a model gives the label, and the share of the most frequent label."""

    domain: str
    model: str
    model_sha256: str | None
    right: float
    usual: float

    @property
    def key(self) -> tuple[str, str]:
        """What it is the quality of."""
        return self.domain, self.model


@dataclass(frozen=True)
class Skipped:
    """A domain whose data or model cannot be had here, and why."""

    domain: str
    reason: str


class StudyRecords:
    """The runs in a JSON file, written anew, whole, with each that is added."""

    def __init__(self, path: Path) -> None:
        """Read the file where it is there. Raises UnreadableFile."""
        self._path = path
        self.runs: dict[tuple[Any, ...], Run] = {}
        self.qualities: dict[tuple[str, str], Quality] = {}
        if path.exists():
            content = _read(path)
            self.runs = {run.key: run for run in _items(path, content, "runs", Run)}
            self.qualities = {each.key: each for each in _items(path, content, "models", Quality)}

    def add_quality(self, quality: Quality) -> None:
        """Keep how good a model is."""
        self.qualities[quality.key] = quality
        self._write()

    def add(self, run: Run) -> None:
        """Keep one more run, in place of those of the same law with another text or model."""
        stale = [
            key
            for key, old in self.runs.items()
            if (old.domain, old.model, old.law) == (run.domain, run.model, run.law)
            and (old.model_sha256, old.law_sha256) != (run.model_sha256, run.law_sha256)
        ]
        for key in stale:
            del self.runs[key]
        self.runs[run.key] = run
        self._write()

    def _write(self) -> None:
        content = {
            "format": FORMAT,
            "version": _VERSION,
            "dokimos": __version__,
            "models": [asdict(each) for each in self.qualities.values()],
            "runs": [asdict(each) for each in self.runs.values()],
        }
        write_whole(self._path, (json.dumps(content, indent=1) + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UnreadableFile(path, f"cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:
        raise UnreadableFile(path, f"is not JSON: {problem}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UnreadableFile(path, "is no file that `dokimos law study` wrote; choose another --out.")
    return content


def _items(path: Path, content: dict[str, Any], what: str, kind: type[Item]) -> list[Item]:
    names = [each.name for each in fields(kind)]
    try:
        return [kind(**{name: each[name] for name in names}) for each in content[what]]
    except (KeyError, TypeError) as problem:
        raise UnreadableFile(path, f"is damaged: {type(problem).__name__} {problem}.") from None
