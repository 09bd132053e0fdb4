"""Models of every kind give one decision for each record."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.lookup import as_model, load_model
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.models.tested_model import ClassScores, Model, decision_of
from dokimos.networks.writing.builder import ModelBuilder
from tests.fuzz.named_inputs import networks

ROWS = np.array([[1.0, 2.0], [3.0, 1.0], [5.0, 5.0]])


def network(outputs: int = 2) -> bytes:
    return ModelBuilder([2]).affine(np.eye(outputs, 2), np.zeros(outputs)).build(outputs)


class Estimator:
    def predict(self, records: Any) -> Any:
        return np.array(["a" if record[0] < 2 else "b" for record in records])


def test_onnx(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(network())
    model = load_model(path, None)
    assert model.predict(ROWS).tolist() == [1, 0, 0]
    assert model.sha256 is not None and len(model.sha256) == 64
    assert model.predict(np.zeros((0, 2))).tolist() == []
    assert load_model(str(path), None, allow_code=False).predict(ROWS).tolist() == [1, 0, 0]
    many = np.random.default_rng(0).normal(size=(100_000, 2))
    assert np.array_equal(model.predict(many), many.astype(np.float32).argmax(axis=1))


@pytest.mark.parametrize("title", ["ConstantOfShape", "Expand of the input", "a wide window", "a device"])
def test_networks_that_ask_for_much_are_refused_as_models(tmp_path: Path, title: str) -> None:
    content, path = networks()[title], tmp_path / "net.onnx"
    if isinstance(content, Path):
        path.symlink_to(content)
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"net\.onnx: .*(too large|more than|not a regular file)"):
        load_model(path, None)


def test_one_output_is_the_decision() -> None:
    assert onnx_model(network(1), None, name="net").predict(ROWS).tolist() == [1.0, 3.0, 5.0]


def test_a_domain_may_decide() -> None:
    domain = Domain("d", decide=lambda scores: (scores[:, 0] > 2).astype(int))
    assert onnx_model(network(), domain, name="net").predict(ROWS).tolist() == [0, 1, 1]


def test_estimators_policies_and_callables() -> None:
    class Policy:
        def predict(self, records: Any) -> Any:
            return records[:, 0].astype(int), None

    def batched(records: Any) -> Any:
        return records

    batched.batched = True  # type: ignore[attr-defined]
    made = as_model(Estimator(), None, name="e").predict(ROWS)
    assert made.tolist() == ["a", "b", "b"] and made.dtype == object
    assert as_model(Policy(), None, name="p").predict(ROWS).tolist() == [1, 3, 5]
    assert as_model(lambda record: record[1], None, name="f").predict(ROWS).tolist() == [2, 1, 5]
    assert as_model(batched, None, name="b").predict(ROWS).tolist() == [1, 0, 0]
    model = as_model(batched, None, name="b")
    assert as_model(model, None, name="again") is model


def test_torch_modules() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.9))
    with torch.no_grad():
        module[0].weight.copy_(torch.eye(2))
        module[0].bias.zero_()
    assert as_model(module, None, name="t").predict(ROWS).tolist() == [1, 0, 0]
    assert module.training


def test_objects_in_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def first(record):\n    return record[0]\nnothing = 3\n")
    assert load_model(f"{path}:first", None).predict(ROWS).tolist() == [1, 3, 5]
    assert as_model(f"{path}:first", None, name="x").predict(ROWS).tolist() == [1, 3, 5]
    assert load_model("operator:itemgetter", None).name == "operator:itemgetter"
    (tmp_path / "e.pkl").write_bytes(pickle.dumps(Estimator()))
    assert load_model(tmp_path / "e.pkl", None).predict(ROWS).tolist() == ["a", "b", "b"]
    for name, message in ((f"{path}:nothing", "is not a model"), (f"{path}:none", "has no none")):
        with pytest.raises(InputError, match=message):
            load_model(name, None)
    for name in (f"{path}:first", str(tmp_path / "e.pkl")):
        with pytest.raises(InputError, match="allow_code=False"):
            load_model(name, None, allow_code=False)
    (tmp_path / "bad.pkl").write_bytes(b"no pickle")
    for name, message in (
        ("no_such_module:x", "cannot be imported"),
        ("no_such_folder/models.py", "name the model in it, as no_such_folder/models.py:NAME"),
        (str(tmp_path / "none.pkl"), "cannot be read"),
        (str(tmp_path / "bad.pkl"), "is not a pickle"),
        (str(tmp_path / "none.onnx"), "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            load_model(name, None)


def test_what_a_model_must_not_do() -> None:
    with pytest.raises(InputError, match="one decision for each of 3"):
        Model("m", lambda records: records, lambda scores: scores).predict(ROWS)
    with pytest.raises(ValueError, match="nan"):
        as_model(lambda record: [float("nan"), 1.0], None, name="m").predict(ROWS)
    with pytest.raises(InputError, match="takes numbers"):
        onnx_model(network(), None, name="net").predict(np.array([["a", "b"]], dtype=object))


def test_a_domain_may_name_its_models() -> None:
    domain = Domain("d", models={"first": lambda: lambda record: 1, "tree": lambda: "none.json"})
    assert load_model("first", domain).predict(np.zeros((2, 1))).tolist() == [1, 1]
    assert as_model("first", domain, name="x").name == "first"
    with pytest.raises(InputError, match=r"models are first, tree \(did you mean tree\?\)"):
        load_model("tre", domain)
    with pytest.raises(InputError, match="cannot be read"):
        load_model("tree", domain)
    with pytest.raises(InputError, match="cannot be read"):
        load_model("none.onnx", domain)


def test_a_probability_is_not_a_decision() -> None:
    of = Domain("loans", classes=("declined", "granted"))
    rows = np.array([[0.25, 0.5], [1.0, 0.5]])
    single = onnx_model(network(1), of, name="net")
    with pytest.raises(
        InputError, match=r"such as 0\.25: a probability, not one of its 2 CLASSES.*decide = above"
    ):
        single.predict(rows)
    with pytest.raises(InputError, match=r"such as 7\.5: a score"):
        single.predict(np.array([[7.5, 0.0]]))
    assert single.predict(np.array([[0.0, 0.5], [1.0, 0.5]])).tolist() == [0, 1]
    deciding = replace(of, decide=lambda scores: scores.reshape(-1) > 0.5)
    assert onnx_model(network(1), deciding, name="net").predict(rows).tolist() == [False, True]
    assert onnx_model(network(1), Domain("loans"), name="net").predict(rows).tolist() == [0.25, 1]
    assert onnx_model(network(2), of, name="net").predict(rows).tolist() == [1, 0]


def test_an_address_is_no_file_and_a_file_finds_the_module_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(InputError, match="is an address; fetch the file"):
        load_model("https://example.org/model.onnx", None)
    (tmp_path / "beside_it.py").write_text("LIMIT = 3\n")
    (tmp_path / "own.py").write_text(
        "def model(record):\n    from beside_it import LIMIT\n    return int(record[0] > LIMIT)\n"
    )
    assert load_model(f"{tmp_path}/own.py:model", None).predict(np.array([[2.0], [4.0]])).tolist() == [0, 1]
    assert sys.path[-1] == str(tmp_path)  # behind everything that is installed


def test_a_model_that_answers_with_names_of_classes_decides_their_places() -> None:
    of = Domain("d", classes=("no", "maybe", "yes"))
    decide = decision_of(of)
    assert decide(np.array(["yes", "no"])).tolist() == [2, 0]
    assert decide(np.array(["yes", "maybe"], dtype=object)).tolist() == [2, 1]
    with pytest.raises(InputError, match=r"answers 'yess', which is not one of its CLASSES.*mean yes"):
        decide(np.array(["no", "yess"]))
    own = replace(of, decide=lambda scores: scores)
    assert decision_of(own)(np.array(["other"])).tolist() == ["other"]
    found = ClassScores(lambda rows: np.tile([0.1, 0.2, 0.7], (len(rows), 1)), None, ("maybe", "no", "yes"))
    by_place = found.of(np.zeros((3, 1)), np.array([0, 1, 2], dtype=object), of.classes, kind="score")
    assert by_place.tolist() == [0.2, 0.1, 0.7]
