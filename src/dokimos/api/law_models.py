"""`convert_model` and `fuzz_domain`: trees as plain numbers; pools of records for testing laws."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dokimos.api.laws import LawSource, law_domain, law_files
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, only_one, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.laws.domain.data_frames import read_csv_table, with_table
from dokimos.laws.domain.definition import Domain, call_domain, load_domain
from dokimos.laws.domain.features import Feature, Layout
from dokimos.laws.engine.pools import data_of, fuzz, pool_file
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.templates import first_laws
from dokimos.laws.models.estimators import read_sklearn
from dokimos.laws.models.lookup import as_domain_model, as_model, load_model
from dokimos.laws.models.model_files import read_pickle, tree_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.same_decisions import (
    CASES,
    expect_faithful_trees,
    expect_same_decisions,
    random_cases,
    thresholds_of,
)
from dokimos.laws.models.trees import Ensemble, write_trees
from dokimos.laws.repair.repair import KeptRepairs, Repair, RepairedModel, RepairSettings
from dokimos.laws.reporting.terminal import repair_table


@dataclass(frozen=True)
class ConvertedModel:
    """The file of trees that was written, what it holds, and on how many records it was compared."""

    path: Path
    trees: int
    nodes: int
    rows: int
    random: int


@dataclass(frozen=True)
class FuzzedPool:
    """The file of records that was written, and how many it holds."""

    path: Path
    records: int


def convert_model(
    model: str | Path, *, out: str | Path, domain: str | Path | None = None
) -> ConvertedModel:
    """Convert scikit-learn's trees to a file of plain numbers, without code: `dokimos law convert`.

    `model` is a pickle that you trust (reading it runs its code); `out` ends in .json. The names of its
    columns go with it. Before the file is written, it is compared with the pickle on every row of the data
    of the `domain`, if one is given, and on random records; where they decide differently, InputError names
    the record.

    >>> import pickle
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[18], [40]], [0, 1])
    >>> _ = Path("tree.pkl").write_bytes(pickle.dumps(tree))
    >>> dokimos.convert_model("tree.pkl", out="tree.json").nodes
    3
    """
    path = Path(out)
    if path.suffix != ".json":
        raise InputError(f"{path}: trees are written to a file that ends in .json.")
    estimator, content = read_pickle(Path(model))
    ensemble = read_sklearn(estimator)
    if ensemble is None:
        kind = type(estimator).__name__
        raise InputError(
            f"{model}: holds a {kind}, which is no fitted tree, forest or gradient boosting of "
            "scikit-learn that can be read as trees."
        )
    if domain is not None:
        found = with_table(load_domain(domain))
    else:
        found = Domain("", Layout([Feature(each) for each in ensemble.names]) if ensemble.names else None)
    data = data_of(found)
    original = object_model(estimator, found, name=str(model), sha256=hashlib.sha256(content).hexdigest())
    if original.original is None:
        raise InputError(f"{model}: takes a column that is not a number, which a file of trees cannot.")
    written = write_trees(ensemble)
    made = tree_model(written, found, name=str(path))
    if not expect_faithful_trees(replace(made, original=original.original), found.layout, data):
        width = None if found.layout is None else found.layout.width
        if width is None and data is not None:
            width = data.shape[-1]
        raise InputError(
            f"{model}: has {ensemble.inputs} inputs, but records of the domain {found.name} have {width} "
            "columns; fit it on a DataFrame, so that its columns have names, or give its own domain."
        )
    # The domain may encode the records for a file of trees, but not for a pickle, or decide by itself.
    placed = made.made_of
    assert isinstance(placed, Ensemble)
    cases = random_cases(data, found.layout, placed.inputs, thresholds_of(placed))
    what = f"{path}: as a model of the domain {found.name}, it"
    expect_same_decisions(original.predict, made.predict, data, cases, what=what, layout=found.layout)
    write_whole(path, written, make_folder=False)
    nodes = sum(len(tree.feature) for tree in ensemble.trees)
    return ConvertedModel(path, len(ensemble.trees), nodes, 0 if data is None else len(data), CASES)


def fuzz_domain(
    domain: str | Path,
    *,
    out: str | Path,
    model: str | Path | None = None,
    size: int = 1000,
    seed: int = 0,
    progress: ProgressCallback[None] = ignore,
) -> FuzzedPool:
    """Find records for testing laws, by walking on from earlier records: `dokimos law fuzz`.

    The domain needs FEATURES, start() and walk(). `out` ends in .npy or .json; `test_law` takes it as the
    source pool:FILE. `model` plays (default: the domain's own model). If interrupted (Ctrl-C), the pool has
    what was found up to then.

    >>> dokimos.fuzz_domain("people.py", out="pool.json", size=10).records
    10
    """
    path = Path(out)
    found = load_domain(domain)
    if found.start is None or found.walk is None or found.layout is None:
        raise InputError(
            f"The domain {found.name} cannot be fuzzed: it needs FEATURES, start() and walk()."
        )
    _expect_pool(path)
    if model is None and found.model is None:
        raise InputError(f"Give a model: the domain {found.name} has none of its own.")
    given = model if model is not None or found.model is None else call_domain(found.model, found, "model")
    predict = as_model(given, found, name=str(given)).predict

    def step(count: int) -> None:
        progress(ProgressUpdate("fuzzing", count, size, f"found {count:,} of {size:,}", None))

    records = fuzz(
        found.start,
        found.walk,
        predict,
        found.layout,
        size=size,
        seed=seed,
        progress=step,
        until_interrupted=True,
    )
    write_whole(path, pool_file(records, path.suffix), make_folder=False)
    return FuzzedPool(path, len(records))


def _expect_pool(path: Path) -> None:
    """Raise InputError before the work starts if the pool cannot be written."""
    if path.suffix not in (".npy", ".json"):
        raise InputError(f"{path}: a pool is written to a file that ends in .npy or .json.")
    expect_writable(path, what="pool", example="pool.npy")


# `repair_law`: a network changed so that it keeps laws


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
            "The laws of a repair must have one domain; give a `domain`, or repair for one law at a time."
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


# `init_laws`: a domain and first laws for your own data


@dataclass(frozen=True)
class StartedLaws:
    """The domain's file, its numbers of records and features, and each law's file with the law in words."""

    domain: Path
    records: int
    features: int
    laws: tuple[tuple[Path, str], ...]


def init_laws(data: str | Path, *, target: str, out: str | Path = "laws") -> StartedLaws:
    """Write a domain and three first laws from a CSV file: `dokimos law init`.

    `target` is the column that a model predicts. Writes a Python file with the kinds and ranges of all
    other columns, and three laws, to the folder `out`; existing files are never overwritten.

    >>> _ = Path("loans.csv").write_text("age,sex,granted\\n18,f,0\\n60,m,1\\n40,f,1\\n")
    >>> started = dokimos.init_laws("loans.csv", target="granted", out="loans")
    >>> [law.name for law, _ in started.laws]
    ['fair_sex.law', 'monotone_age.law', 'robust_age.law']
    """
    source, folder = Path(data), Path(out)
    table = read_csv_table(source)
    made = first_laws(table, target, data=_from(source, folder))
    domain = folder / f"{made.domain}.py"
    laws = {folder / f"{name}.law": text for name, text in made.laws.items()}
    for path in (domain, *laws):
        if path.exists():
            raise InputError(f"{path}: already exists; choose another folder for `out`.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{folder}: this folder cannot be created: {problem.strerror}.") from None
    write_whole(domain, made.text, what="the domain")
    for path, text in laws.items():
        write_whole(path, text, what="the law")
    said = tuple((path, text.partition("\n")[0].removeprefix("# ")) for path, text in laws.items())
    return StartedLaws(domain, table.size, len(table.columns) - 1, said)


def _from(source: Path, folder: Path) -> str:
    """The path of the data relative to a folder; unchanged if the two have no common parent."""
    try:
        return Path(os.path.relpath(source.absolute(), folder.absolute())).as_posix()
    except ValueError:
        return str(source.absolute())
