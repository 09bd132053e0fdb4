"""Files of trees, and proofs of laws: what a proof that was changed shows of a model must be true of it."""

from __future__ import annotations

import contextlib
import importlib
import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dokimos
from dokimos.api.suites import check_proofs
from dokimos.laws.domain.definition import load_domain
from dokimos.laws.engine.pools import data_of
from dokimos.laws.models.lookup import load_model
from dokimos.laws.repair.kept_repairs import KeptRepairs
from dokimos.laws.repair.repair import RepairSteps

DOMAIN = """\
from dokimos.laws import integer, real

FEATURES = [integer("age", 18, 90), real("income", 0, 10, missing=True)]
CLASSES = ["no", "yes"]
ORDERED = True

def inputs():
    return [[20, 1.5], [30, 2.5], [35, 3.5], [25, float("nan")]]
"""
LAW = """import people;
input x1;
var v := x1.age + randInt(1, 72);
requires v <= 90;
var x2 := x1[age := v];
output d1;
output d2;
{
    d1 = predict(x1)
    d2 = predict(x2)
}
ensures d1 <= d2;
"""


def tree(young: int, old: int) -> bytes:
    """Decides by age, at 40.5, and by income, at 5, for the old."""
    values = [[0, 0], [1 - young, young], [0, 0], [1 - old, old], [0, 1]]
    nodes: dict[str, Sequence[Any]] = {
        "feature": [0, -1, 1, -1, -1],
        "threshold": [40.5, 0, 5, 0, 0],
        "left": [1, 1, 3, 3, 4],
        "right": [2, 1, 4, 3, 4],
        "missing_left": [False, False, True, False, False],
        "value": values,
    }
    head = {"format": "dokimos-trees", "version": 1, "inputs": 2, "base": [0, 0], "scale": 1, "divide": 1}
    rest = {"float32": False, "classes": [], "names": ["age", "income"], "trees": [nodes]}
    return json.dumps({**head, **rest}).encode()


#: The first keeps the law; the second breaks it for every row of the data, which are young.
KEEPS, BREAKS = tree(0, 1), tree(1, 0)


@cache
def saved() -> tuple[bytes, ...]:
    """Proofs of the law, for the whole domain and around the rows of its data."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = write_all(Path(name))
        for rows in (None, 4):
            out = folder / f"proofs{rows}"
            settings: dict[str, Any] = {} if rows is None else {"rows": rows}
            verify = dokimos.verify_law if rows is None else dokimos.verify_law_rows
            verify(folder / "older.law", model=str(folder / "keeps.json"), out=out, **settings)
            found += [path.read_bytes() for path in sorted(out.rglob("*.json"))]
    return tuple(found)


def write_all(folder: Path) -> Path:
    (folder / "people.py").write_text(DOMAIN)
    (folder / "older.law").write_text(LAW)
    (folder / "keeps.json").write_bytes(KEEPS)
    (folder / "breaks.json").write_bytes(BREAKS)
    return folder


@cache
def boosted(library: str) -> tuple[bytes, ...]:
    """A small model in each kind of file that a library writes."""
    records = np.random.default_rng(0).normal(size=(60, 2))
    labels, found = (records.sum(axis=1) > 0).astype(int), []
    with tempfile.TemporaryDirectory() as name:
        package, stem = importlib.import_module(library), f"{name}/model"
        if library == "xgboost":
            options = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
            made = package.train(options, package.DMatrix(records, labels), num_boost_round=2)
            made.save_model(f"{stem}.ubj")
        elif library == "lightgbm":
            options = {"objective": "binary", "num_leaves": 4, "verbose": -1, "num_threads": 1}
            made = package.train(options, package.Dataset(records, labels), num_boost_round=2)
            made.save_model(f"{stem}.txt")
        else:
            options = {"iterations": 2, "depth": 2, "verbose": 0, "thread_count": 1}
            made = package.CatBoostClassifier(**options, allow_writing_files=False).fit(records, labels)
            made.save_model(f"{stem}.cbm")
        found = [path.read_bytes() for path in sorted(Path(name).iterdir())]
    return tuple(found)


def read_any_boosted(path: Path, number: int) -> None:
    """As `monotone` does; what the library raises for records counts as a failure of the model."""
    model = load_model(path, None)
    with contextlib.suppress(Exception):
        model.predict(np.zeros((4, 2)))


def read_any_trees(path: Path, number: int) -> None:
    """As `law test --model` does, on every row of the data."""
    domain = load_domain(str(write_all(path.parent) / "people.py"))
    try:
        load_model(path, domain).predict(data_of(domain))
    except ValueError as error:  # which tests of laws count as a failure of the model
        if "decision" not in str(error):
            raise


def read_any_repair(path: Path, number: int) -> None:
    """What a repair has left, which goes on with it."""
    KeptRepairs(path, "key").steps(1)


def repairs() -> list[bytes]:
    """What a repair leaves after the steps of two trainings."""
    with tempfile.TemporaryDirectory() as name:
        kept = KeptRepairs(Path(name, "left.json"), "key")
        for seed in (1, 2):
            kept.keep(seed, RepairSteps(content=b"a network"))
        return [Path(name, "left.json").read_bytes()]


def read_any_proof(path: Path, number: int) -> None:
    """A proof is accepted of the model that keeps the law, or not; of the one that breaks it, never."""
    folder = write_all(path.parent)
    check_proofs(path, model=folder / "keeps.json", domain=folder / "people.py")
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
        form["model_sha256"] = load_model(folder / "breaks.json", None).sha256
    except (ValueError, TypeError):
        return
    path.write_text(json.dumps(form))
    for checked in check_proofs(path, model=folder / "breaks.json", domain=folder / "people.py"):
        assert checked.problem is not None, "a law is proven of a model that breaks it"
