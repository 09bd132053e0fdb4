"""Results for the laws of the shipped domains, run by run, and the JSON file that stores them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.documents import Count, expect_format
from dokimos.core.files import read_whole, write_whole
from dokimos.core.typed_values import convert

FORMAT = "dokimos-law-study"
_VERSION = 1


@dataclass(frozen=True)
class Run:
    """One law tested on one model with one seed; seed None means that all draws were tested.

    `training` is the seed that the model was trained with.
    """

    domain: str
    model: str
    model_sha256: str | None
    law: str
    law_sha256: str
    seed: Count | None
    budget: Count
    tested: Count
    passed: Count
    precondition_failed: Count
    violated: Count
    unique: Count
    inputs: Count
    failed: Count
    is_violated: bool
    is_starved: bool
    seconds: float
    training: Count = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of a run."""
        tested = self.domain, self.model, self.model_sha256, self.law, self.law_sha256
        return *tested, self.seed, self.budget, self.training


@dataclass(frozen=True)
class Quality:
    """A model's accuracy on the test set, and the share of the most frequent label."""

    domain: str
    model: str
    model_sha256: str | None
    right: float
    usual: float

    @property
    def key(self) -> tuple[str, str]:
        """The key of the model that it belongs to."""
        return self.domain, self.model


@dataclass(frozen=True)
class Skipped:
    """A domain whose data or model cannot be fetched here, and why."""

    domain: str
    reason: str


class StudyRecords:
    """The runs in a JSON file, which is rewritten as a whole whenever one is added."""

    def __init__(self, path: Path) -> None:
        """Read the file if it exists. Raises UnreadableFile."""
        self._path = path
        self.runs: dict[tuple[Any, ...], Run] = {}
        self.qualities: dict[tuple[str, str], Quality] = {}
        if path.exists():
            form = _read(path)
            self.runs = {run.key: run for run in form.runs}
            self.qualities = {each.key: each for each in form.models}

    def add_quality(self, quality: Quality) -> None:
        """Store how good a model is."""
        self.qualities[quality.key] = quality
        self._write()

    def add(self, run: Run) -> None:
        """Add a run; it replaces those of the same law with another text or model."""
        stale = [
            key
            for key, old in self.runs.items()
            if (old.domain, old.model, old.law, old.training)
            == (run.domain, run.model, run.law, run.training)
            and (old.model_sha256, old.law_sha256) != (run.model_sha256, run.law_sha256)
        ]
        for key in stale:
            del self.runs[key]
        self.runs[run.key] = run
        self._write()

    def _write(self) -> None:
        form = _RunsForm(models=list(self.qualities.values()), runs=list(self.runs.values()))
        write_whole(self._path, strict_json.write(form), what="the runs")


class _RunsForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = _VERSION
    dokimos: str = __version__
    models: list[Quality]
    runs: list[Run]


def _read(path: Path) -> _RunsForm:
    document = strict_json.parse(read_whole(path, most_bytes=strict_json.MOST_BYTES), file=path)
    wanted = "is not a file that `dokimos-studies law-study` wrote; choose another --out"
    expect_format(document, FORMAT, _VERSION, file=path, otherwise=wanted)
    return convert(document, _RunsForm, file=path, what="a file of runs")
