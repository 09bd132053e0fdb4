"""`repair_law`: a network changed so that it keeps laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.core.locks import only_one
from dokimos.laws.domain.tables import with_table
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.repair.kept_repairs import KeptRepairs
from dokimos.laws.repair.repairing import Repair, RepairedModel, RepairSettings
from dokimos.laws.reporting.repair_table import repair_table


def repair_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: str | Path | None = None,
    settings: RepairSettings | None = None,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    out: str | Path | None = None,
    table: str | Path | None = None,
    progress: ProgressCallback[RepairedModel] = ignore,
) -> tuple[RepairedModel, ...]:
    """Train a network to keep laws while keeping its answers, once for each seed: `dokimos law repair`.

    The laws must have the same domain and be about increasing or decreasing numbers in a record. The
    network with the most proven laws and, among those, the most unchanged answers is written to the file
    `out`, NAME.onnx, and a table of all seeds, in Markdown, to the file `table`. If interrupted (Ctrl-C),
    the same call continues where it stopped: until both are written, what is finished is kept beside
    `out`, in NAME.onnx-unfinished.json.

    >>> dokimos.repair_law("older.law", model="older.json", out="repaired.onnx")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: older.json: not a network; only networks can be repaired.
    """
    chosen = RepairSettings() if settings is None else settings
    path = None if out is None else Path(out)
    if path is not None:
        if path.suffix != ".onnx":
            raise InputError(f"{path}: a network is written to a file that ends in .onnx.")
        expect_writable(path, what="network", example="repaired.onnx")
    page = None if table is None else Path(table)
    if page is not None:
        expect_writable(page, what="table", example="repair.md")
    if not seeds:
        raise InputError("A repair needs at least one seed.")
    repair = _repair(laws, model, domain, chosen)
    if path is None:
        made = _run(repair, chosen, seeds, None, progress)
        _write(made, chosen, path, page)
        return made
    beside = path.resolve()
    with only_one(beside.with_name(f".{beside.name}.lock"), doing=f"repairs {path}"):
        kept = KeptRepairs(beside.with_name(f"{beside.name}-unfinished.json"), repair.key(chosen))
        made = _run(repair, chosen, seeds, kept, progress)
        _write(made, chosen, path, page)
        kept.remove()
    return made


def _repair(laws: LawSource, model: Any, domain: str | Path | None, settings: RepairSettings) -> Repair:
    files = law_files(laws)
    parsed = [(file, read_law(file)) for file in files]
    domains = [law_domain(law, file, domain, allow_code=True) for file, law in parsed]
    first = domains[0]
    if first is None or any(each is None or each.name != first.name for each in domains):
        raise InputError(
            "The laws of a repair must have one domain; give --domain, or repair for one law at a time."
        )
    found = with_table(first)
    loaded = load_model(model, found) if isinstance(model, str | Path) else model
    own = as_domain_model(loaded, found)
    return Repair([law for _, law in parsed], found, own, settings=settings.verify)


def _run(
    repair: Repair,
    settings: RepairSettings,
    seeds: Sequence[int],
    kept: KeptRepairs | None,
    progress: ProgressCallback[RepairedModel],
) -> tuple[RepairedModel, ...]:
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


def _write(
    made: Sequence[RepairedModel], settings: RepairSettings, path: Path | None, page: Path | None
) -> None:
    if page is not None:
        write_whole(page, repair_table(made, settings.way.value))
    if path is not None:
        best = max(made, key=lambda each: (each.after.proven, each.after.agreement))
        write_whole(path, best.content, make_folder=False)
