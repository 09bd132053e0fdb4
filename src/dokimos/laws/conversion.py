"""Trees of scikit-learn as a file of plain numbers, compared with the pickle that they come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain, load_domain
from dokimos.laws.domain.features import Feature, Layout
from dokimos.laws.engine.pools import data_of
from dokimos.laws.models.model_files import read_pickle, tree_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.same_decisions import (
    CASES,
    expect_faithful_trees,
    expect_same_decisions,
    random_cases,
    thresholds_of,
)
from dokimos.laws.models.scikit import read_scikit
from dokimos.laws.models.trees import Ensemble, NotRead, write_trees


@dataclass(frozen=True)
class ConvertedModel:
    """The file of trees that was written, what it holds, and on how many records it was compared."""

    path: Path
    trees: int
    nodes: int
    rows: int
    random: int


def convert_trees(model: Path, path: Path, domain: str | Path | None) -> ConvertedModel:
    """Write the trees of a pickle to a file: see `dokimos.convert_model`. Raises InputError."""
    if path.suffix != ".json":
        raise InputError(f"{path}: trees are written to a file that ends in .json.")
    estimator, content = read_pickle(model)
    kind = type(estimator).__name__
    try:
        ensemble = read_scikit(estimator)
    except NotRead as reason:
        raise InputError(
            f"{model}: holds a {kind}, which is no fitted tree, forest or boosting of scikit-learn that is "
            f"read as trees: {reason}."
        ) from None
    if getattr(estimator, "_preprocessor", None) is not None:
        raise InputError(f"{model}: splits by sets of categories, which a file of trees cannot.")
    if ensemble.link:
        raise InputError(
            f"{model}: predicts {ensemble.link} of a sum of trees, which a file of trees cannot."
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
