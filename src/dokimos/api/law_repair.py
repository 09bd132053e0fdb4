"""`repair_law`: a network changed so that it keeps laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.laws.domain.tables import with_table
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.repair.repairing import Repair, RepairedModel, RepairSettings


def repair_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: str | None = None,
    settings: RepairSettings | None = None,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    out: str | Path | None = None,
    progress: ProgressCallback[RepairedModel] = ignore,
) -> tuple[RepairedModel, ...]:
    """Train a network to keep laws while keeping its answers, once for each seed: `dokimos law repair`.

    The laws must have the same domain and be about increasing or decreasing numbers in a record. The
    network with the most proven laws and, among those, the most unchanged answers is written to the file
    `out`, NAME.onnx.

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
    if not seeds:
        raise InputError("A repair needs at least one seed.")
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
    repair = Repair(
        [law for _, law in parsed], found, as_domain_model(loaded, found), settings=chosen.verify
    )
    made: list[RepairedModel] = []
    for seed in seeds:
        made.append(repair.run(replace(chosen, seed=seed)))
        progress(ProgressUpdate("repairing", len(made), len(seeds), f"seed {seed}", made[-1]))
    if path is not None:
        best = max(made, key=lambda each: (each.after.proven, each.after.agreement))
        write_whole(path, best.content, make_folder=False)
    return tuple(made)
