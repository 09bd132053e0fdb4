"""Files of decision trees."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.lookup import load_model
from dokimos.laws.models.trees import DecisionTree, Ensemble, read_trees, write_trees
from tests.json_mutants import mutants
from tests.laws.models.test_trees import TREE


def test_files_are_models(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    path.write_bytes(write_trees(Ensemble([TREE], inputs=2, base=[0, 0], classes=["no", "yes"])))
    model = load_model(path, None, allow_code=False)
    assert model.predict(np.array([[1, 0], [1, 1]])).tolist() == ["no", "yes"]
    assert model.sha256 is not None and len(model.sha256) == 64
    own = load_model(path, Domain("d", decide=lambda scores: scores[:, 1] * 4))
    assert own.predict(np.array([[1, 0], [3, 1]])).tolist() == [0, 3]
    regression = DecisionTree(TREE.feature, TREE.threshold, TREE.left, TREE.right, TREE.value[:, 1:])
    path.write_bytes(write_trees(Ensemble([regression], inputs=2, base=[1])))
    assert load_model(path, None).predict(np.array([[3.0, 1.0]])).tolist() == [1.75]


def _changed(**changes: Any) -> bytes:
    content = json.loads(write_trees(Ensemble([TREE], inputs=2, base=[0, 0])))
    for key, value in changes.items():
        if key in content or key == "float32_sums":
            content[key] = value
        else:
            content["trees"][0][key] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "is not a file of decision trees"),
        (_changed(version=7), "has version 7"),
        (_changed(trees=[]), "there is no tree"),
        (_changed(trees=[{}]), r"trees\[0\]: .* missing required field `feature`"),
        (_changed(trees=3), "trees: expected `array`, got `int`; this is not a file of decision trees"),
        (_changed(feature=[0.5, -1, -1, -1, -1]), r"trees\[0\].feature\[0\]: expected `int`, got `float`"),
        (_changed(threshold=["a"] * 5), r"trees\[0\].threshold\[0\]: expected `float`, got `str`"),
        (_changed(threshold=[1]), "different lengths"),
        (_changed(missing_left=[True]), "different lengths"),
        (_changed(value=[[1]] * 5), "a number of values other than 2"),
        (_changed(value=[[1], [1, 2]]), "damaged"),
        (_changed(feature=[2, -1, 0, -1, -1]), "a column that is not among the 2 inputs"),
        (_changed(left=[0, 1, 3, 3, 4]), "does not come after its parent"),
        (_changed(right=[9, 1, 4, 3, 4]), "is none of its nodes"),
        (_changed(value=[[1e999, 0]] * 5), "is not a JSON number"),
        (_changed(classes=["a"]), "one class"),
        (_changed(divide=0), "or divide is 0"),
        (_changed(divide=1e-46, float32_sums=True), "a finite number in float32, or divide is 0"),
        (_changed(divide=1e39, float32_sums=True), "a finite number in float32"),
        (_changed(divide=1e-320), "a finite number in float64"),
        (_changed(base=[1e308, 1e308]), "a finite number in float64"),
        (_changed(scale=1e308, value=[[16, 0]] * 5), "a finite number in float64"),
        (_changed(thresholds=[0] * 5), "unknown field `thresholds`"),
    ],
)
def test_files_that_are_damaged_get_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "tree.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        load_model(path, None)


def test_whatever_a_file_says_it_is_read_or_refused_in_one_sentence() -> None:
    tree = replace(TREE, missing_left=np.zeros(5, dtype=np.bool_))
    document = json.loads(write_trees(Ensemble([tree], inputs=2, base=[0, 0], classes=["a", 2])))
    read = 0
    for mutant in mutants(document):
        with suppress(UnreadableFile):
            ensemble = read_trees(json.dumps(mutant).encode(), name="trees.json")
            ensemble.decide(ensemble(np.array([[1.0, float("nan")]])[:, : ensemble.inputs]))
            read += 1
    assert read > 20
