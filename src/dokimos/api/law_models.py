"""`convert_model` and `fuzz_domain`: trees as plain numbers; pools of records for testing laws."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.features import Feature, Layout
from dokimos.laws.domain.lookup import load_domain
from dokimos.laws.domain.tables import with_table
from dokimos.laws.engine.fuzzing import fuzz
from dokimos.laws.engine.pools import data_of, pool_file
from dokimos.laws.models.files import read_pickle, tree_model
from dokimos.laws.models.lookup import as_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.same_decisions import CASES, expect_faithful_trees
from dokimos.laws.models.sklearn_trees import read_sklearn
from dokimos.laws.models.tree_files import write_trees


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
    model: str | Path, out: str | Path, *, domain: str | Path | None = None
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
    >>> dokimos.convert_model("tree.pkl", "tree.json").nodes
    3
    """
    path = Path(out)
    if path.suffix != ".json":
        raise InputError(f"{path}: trees are written to a file that ends in .json.")
    estimator, content = read_pickle(Path(model))
    ensemble = read_sklearn(estimator)
    if ensemble is None:
        raise InputError(f"{model}: holds no fitted scikit-learn tree or ensemble of trees.")
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
    expect_faithful_trees(replace(made, original=original.original), found.layout, data)
    write_whole(path, written, make_folder=False)
    nodes = sum(len(tree.feature) for tree in ensemble.trees)
    return ConvertedModel(path, len(ensemble.trees), nodes, 0 if data is None else len(data), CASES)


def fuzz_domain(
    domain: str | Path,
    out: str | Path,
    *,
    model: str | Path | None = None,
    size: int = 1000,
    seed: int = 0,
    progress: ProgressCallback[None] = ignore,
) -> FuzzedPool:
    """Find records for testing laws, by walking on from earlier records: `dokimos law fuzz`.

    The domain needs FEATURES, start() and walk(). `out` ends in .npy or .json; `test_law` takes it as the
    source pool:FILE. `model` plays (default: the domain's own model). If interrupted (Ctrl-C), the pool has
    what was found up to then.

    >>> dokimos.fuzz_domain("people.py", "pool.json", size=10).records
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
