"""What a repair has finished, in a file beside the network that it writes: what is there is not done again.

The file has one entry for each training, rewritten as a whole after each step, under a key of everything
that the training depends on. Entries with other keys are left as they are, and not used.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_whole, write_whole
from dokimos.core.formats import Count, expect_format
from dokimos.laws.repair.repairing import RepairSteps

FORMAT = "dokimos-unfinished-repair"
_VERSION = 1
_log = logging.getLogger("dokimos")


class _EntryForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of one training; `sha256` is that of everything else in the entry."""

    key: str
    seed: Count
    steps: RepairSteps
    sha256: str


class _EntriesForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = _VERSION
    dokimos: str = __version__
    trainings: list[_EntryForm]


class KeptRepairs:
    """The finished steps of each training, by seed; `key` stands for everything else they depend on."""

    def __init__(self, path: Path, key: str) -> None:
        """Read the file if it exists. Raises UnreadableFile if it is not one that a repair has left."""
        self._path, self._key = path, key
        self._entries: dict[tuple[str, int], _EntryForm] = {}
        if not path.exists():
            return
        for each in _read(path):
            if _sum(each.key, each.seed, each.steps) == each.sha256:
                self._entries[each.key, each.seed] = each
            else:
                _log.warning("%s: seed %d was changed or damaged; it is repaired again.", path, each.seed)

    def steps(self, seed: int) -> RepairSteps:
        """What is finished of the training with a seed."""
        found = self._entries.get((self._key, seed))
        return RepairSteps() if found is None else found.steps

    def keep(self, seed: int, steps: RepairSteps) -> None:
        """Keep what is finished of the training with a seed. Raises InputError if it cannot be written."""
        made = _sum(self._key, seed, steps)
        self._entries[self._key, seed] = _EntryForm(key=self._key, seed=seed, steps=steps, sha256=made)
        form = _EntriesForm(trainings=list(self._entries.values()))
        write_whole(self._path, strict_json.write(form), what="what is finished", make_folder=False)

    def remove(self) -> None:
        """Remove the file: the repair is finished."""
        self._path.unlink(missing_ok=True)


def _read(path: Path) -> list[_EntryForm]:
    try:
        document = strict_json.parse(read_whole(path, most_bytes=strict_json.MOST_BYTES), file=path)
        expect_format(document, FORMAT, _VERSION, file=path, otherwise="is not what a repair has left")
        form = strict_json.convert(document, _EntriesForm, file=path, what="what a repair has left")
    except UnreadableFile as problem:
        said = problem.reason.rstrip(".")
        raise UnreadableFile(
            problem.place, f"{said}; remove the file to repair from the beginning."
        ) from None
    return form.trainings


def _sum(key: str, seed: int, steps: RepairSteps) -> str:
    return hashlib.sha256(strict_json.write([key, seed, steps], indent=None).encode()).hexdigest()
