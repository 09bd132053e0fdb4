"""The file format of decision trees. A file is JSON, documented in docs/laws.md:

{"format": "dokimos-trees", "version": 1, "inputs": 2, "base": [0, 0], "scale": 1,
 "trees": [{"feature": [1, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 1, 2], "right": [2, 1, 2],
            "value": [[0, 0], [1, 0], [0, 1]]}]}
"""

from __future__ import annotations

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.formats import Count, expect_format
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble

FORMAT = "dokimos-trees"
_VERSION = 1


class _TreeForm(Struct, frozen=True, forbid_unknown_fields=True):
    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[list[float]]
    missing_left: list[bool] | UnsetType = UNSET


class _TreesForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = _VERSION
    inputs: Count
    base: list[float]
    scale: float = 1.0
    divide: float = 1.0
    float32: bool = False
    classes: list[bool | int | float | str] = []
    names: list[str] | UnsetType = UNSET
    takes_missing: bool | UnsetType = UNSET
    trees: list[_TreeForm]


def write_trees(ensemble: Ensemble) -> bytes:
    """The content of a file of trees."""
    form = _TreesForm(
        inputs=ensemble.inputs,
        base=ensemble.base.tolist(),
        scale=ensemble.scale,
        divide=ensemble.divide,
        float32=ensemble.single,
        classes=list(ensemble.classes),
        names=list(ensemble.names) or UNSET,
        takes_missing=UNSET if ensemble.takes_missing else False,
        trees=[
            _TreeForm(
                tree.feature.tolist(),
                tree.threshold.tolist(),
                tree.left.tolist(),
                tree.right.tolist(),
                tree.value.tolist(),
                UNSET if tree.missing_left is None else tree.missing_left.tolist(),
            )
            for tree in ensemble.trees
        ],
    )
    return strict_json.write(form, indent=None).encode()


def read_trees(content: bytes, *, name: str) -> Ensemble:
    """The trees in the content of a file. Raises UnreadableFile."""
    document = strict_json.parse(content, file=name)
    expect_format(document, FORMAT, _VERSION, file=name, otherwise="is not a file of decision trees")
    form = strict_json.convert(document, _TreesForm, file=name, what="a file of decision trees")
    try:
        return _ensemble(form)
    except (ValueError, OverflowError) as problem:
        raise UnreadableFile(name, f"is damaged: {problem}.") from None


def _ensemble(form: _TreesForm) -> Ensemble:
    """The trees in a parsed file. Raises ValueError if they are inconsistent."""
    scores = len(form.base)
    if not form.trees or not scores:
        raise ValueError("there is no tree, or no score")
    names = () if form.names is UNSET else tuple(form.names)
    if names and (len(names) != form.inputs or len(set(names)) != len(names)):
        raise ValueError(
            f"there must be one name, different from the others, for each of {form.inputs} inputs"
        )
    if form.classes and len(form.classes) != scores:
        raise ValueError(f"there must be one class, a name or a number, for each of {scores} scores")
    if not (np.isfinite([*form.base, form.scale, form.divide]).all() and form.divide != 0):
        raise ValueError("base, scale and divide must be finite, and divide not 0")
    return Ensemble(
        [_tree(each, form.inputs, scores) for each in form.trees],
        inputs=form.inputs,
        base=form.base,
        scale=form.scale,
        divide=form.divide,
        single=form.float32,
        classes=form.classes,
        takes_missing=form.takes_missing is not False,
        names=names,
    )


def _tree(form: _TreeForm, inputs: int, scores: int) -> DecisionTree:
    """A tree in which every walk ends. Raises ValueError."""
    nodes = len(form.feature)
    missing = None if form.missing_left is UNSET else np.array(form.missing_left, dtype=np.bool_)
    sizes = {len(each) for each in (form.threshold, form.left, form.right, form.value)}
    if nodes == 0 or sizes != {nodes} or (missing is not None and len(missing) != nodes):
        raise ValueError("the arrays of a tree have different lengths")
    if any(len(each) != scores for each in form.value):
        raise ValueError(f"a node of a tree has a number of values other than {scores}")
    tree = DecisionTree(
        np.array(form.feature, dtype=np.int64),
        np.array(form.threshold, dtype=np.float64),
        np.array(form.left, dtype=np.int64),
        np.array(form.right, dtype=np.int64),
        np.array(form.value, dtype=np.float64),
        missing,
    )
    inner = np.flatnonzero(tree.feature != LEAF)
    if ((tree.feature < LEAF) | (tree.feature >= inputs)).any():
        raise ValueError(f"a tree tests a column that is not among the {inputs} inputs")
    for children in (tree.left[inner], tree.right[inner]):
        if ((children <= inner) | (children >= nodes)).any():
            raise ValueError("a child in a tree does not come after its parent")
    if np.isnan(tree.threshold[inner]).any() or not np.isfinite(tree.value).all():
        raise ValueError("a threshold or a value in a tree is not a number")
    return tree
