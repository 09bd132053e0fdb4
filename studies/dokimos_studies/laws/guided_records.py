"""Results of guided and normal training, phase by phase, and the JSON file that stores them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.documents import Count, expect_format
from dokimos.core.errors import InputError
from dokimos.core.files import read_whole, write_whole
from dokimos.core.typed_values import convert

FORMAT = "dokimos-guided-training"
_VERSION = 1


class Arm(Enum):
    """How training games begin: as the game draws them, or also in buggy states."""

    NORMAL = "normal"
    GUIDED = "guided"


@dataclass(frozen=True)
class PhaseRecord:
    """A policy after some phases of training.

    `bugs` counts the states, of those drawn for this test, in which the policy violates the law; `held_out`
    counts those among the states that are never trained on. `won` is the share of games won in these,
    unchanged. `reward` is the mean over games of gymnasium, `landed` the share of them that landed. `pool`
    is the number of buggy states available at that time, and `probability` how often games of the next
    phase begin in one.
    """

    seed: Count
    arm: Arm
    phase: Count
    steps: Count
    bugs: Count
    held_out: Count
    won: float
    reward: float
    landed: float
    pool: Count
    probability: float
    cpu_seconds: float

    @property
    def key(self) -> tuple[int, Arm, int]:
        """Which policy it is about."""
        return self.seed, self.arm, self.phase


class GuidedRecords:
    """The records in a JSON file, which is rewritten as a whole whenever one is added."""

    def __init__(self, path: Path, recipe: str) -> None:
        """Read the file if it exists. Raises UnreadableFile, and InputError for another recipe."""
        self._path, self._recipe = path, recipe
        self._records: dict[tuple[int, Arm, int], PhaseRecord] = {}
        if not path.exists():
            return
        document = strict_json.parse(read_whole(path, most_bytes=strict_json.MOST_BYTES), file=path)
        wanted = "is not a file that `dokimos-studies law-guide` wrote; choose another --out"
        expect_format(document, FORMAT, _VERSION, file=path, otherwise=wanted)
        form = convert(document, _RecordsForm, file=path, what="a file of trainings")
        if form.recipe != recipe:
            raise InputError(
                f"{path}: the file has trainings with other settings ({form.recipe}); choose another --out."
            )
        self._records = {record.key: record for record in form.phases}

    def add(self, record: PhaseRecord) -> None:
        """Add a record; it replaces an earlier one of the same policy."""
        self._records[record.key] = record
        form = _RecordsForm(recipe=self._recipe, phases=list(self._records.values()))
        write_whole(self._path, strict_json.write(form), what="the phases")

    def run(self, seed: int, arm: Arm) -> tuple[PhaseRecord, ...]:
        """The records of a run, in order, up to the first phase that is missing."""
        found: list[PhaseRecord] = []
        while (key := (seed, arm, len(found) + 1)) in self._records:
            found.append(self._records[key])
        return tuple(found)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs that have begun."""
        return tuple(sorted({record.seed for record in self._records.values()}))


class _RecordsForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = _VERSION
    dokimos: str = __version__
    recipe: str
    phases: list[PhaseRecord]
