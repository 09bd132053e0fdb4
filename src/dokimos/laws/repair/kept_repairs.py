"""A repair for each of several seeds: what is finished stays in a file, and is not done again."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.documents import Count, expect_format
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_whole, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate
from dokimos.core.typed_values import convert
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.law_sources import DomainSource, LawSource, law_domain, laws_in
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.repair.repair import Repair, RepairedModel, RepairSettings, RepairSteps
from dokimos.laws.repair.tree_repair import TreeRepair

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
        form = convert(document, _EntriesForm, file=path, what="what a repair has left")
    except UnreadableFile as problem:
        said = problem.reason.rstrip(".")
        raise UnreadableFile(
            problem.place, f"{said}; remove the file to repair from the beginning."
        ) from None
    return form.trainings


def _sum(key: str, seed: int, steps: RepairSteps) -> str:
    return hashlib.sha256(strict_json.write([key, seed, steps], indent=None).encode()).hexdigest()


def repair_of(laws: LawSource, model: Any, domain: DomainSource | None, settings: RepairSettings) -> Repair:
    """The repair that laws ask for. Raises InputError if they have not one domain."""
    parsed = laws_in(laws)
    domains = [law_domain(law, file, domain, allow_code=True) for file, law in parsed]
    first = domains[0]
    if first is None or any(each is None or each.name != first.name for each in domains):
        raise InputError(
            "The laws of a repair must have one domain; give a `domain`, or repair for one law at a time."
        )
    found = with_table(first)
    own = as_domain_model(model, found)
    made = TreeRepair if isinstance(own.made_of, Ensemble) else Repair
    return made([law for _, law in parsed], found, own, settings=settings.verify)


def run_seeds(
    repair: Repair,
    settings: RepairSettings,
    seeds: Sequence[int],
    kept: KeptRepairs | None,
    progress: ProgressCallback[RepairedModel],
) -> tuple[RepairedModel, ...]:
    """One repaired network for each seed; what is finished is kept in `kept`, if there is one."""
    made: list[RepairedModel] = []
    for seed in seeds:
        own = replace(settings, seed=seed)
        if kept is None:
            made.append(repair.run(own))
            note = f"seed {seed}"
        else:
            known = kept.steps(seed)
            made.append(repair.run(own, known, partial(kept.keep, seed)))
            note = f"seed {seed}" + " (kept from before)" * (known.after is not None)
        progress(ProgressUpdate("repairing", len(made), len(seeds), note, made[-1]))
    return tuple(made)
