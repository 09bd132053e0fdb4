"""Networks repaired: what laws ask of slopes, networks with a linear part, and what each way brings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import dokimos
from dokimos.core.errors import InputError
from dokimos.engine.runtimes.sessions import replay
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.layers import shaped_like
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.translation import translate
from dokimos.laws.proving.verifying import verify_law
from dokimos.laws.repair.repair import Repair, RepairedModel, RepairSettings
from dokimos.laws.repair.repair_task import (
    RepairWay,
    ScoredNetwork,
    SlopeRequirement,
    repaired,
    slope_requirements,
)
from dokimos.laws.reporting.terminal import repair_table
from tests.laws.proving.small import LATER, MORE, OTHER, SAME, SET, domain, forest, plan, records
from tests.laws.proving.test_networks import model_of, network
from tests.laws.toy import law

LESS = "input x1; var v := randInt(0, x1.points - 1); var x2 := x1[points := v]; ENSURES d2 <= d1"
EITHER = "input x1; var v := randInt(0, 5); var x2 := x1[points := v];"


def _asked(*texts: str) -> tuple[SlopeRequirement, ...]:
    return slope_requirements([translate(plan(text), range(3)) for text in texts])


def test_what_laws_ask_of_slopes() -> None:
    """To raise and to lower a feature is the same question, and so is what is asked."""
    more, less = _asked(MORE), _asked(LESS)
    assert {(each.above, each.below, each.column, each.sign) for each in more} == {
        (a, b, 0, 1) for a, b in ((1, 0), (2, 0), (2, 1))
    }
    assert {each.direction for each in (*more, *less)} == {1}
    assert {each.column for each in _asked(MORE, SET)} == {0, 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LATER, "kind, which is a choice"),
        (EITHER, "moves points either way"),
        (f"{MORE} {SAME}", "no difference at all"),
        (OTHER + SAME, "choice"),
        ("input x1; var x2 := x1; ENSURES d1 == 0", "whatever the other"),
    ],
)
def test_laws_that_are_not_about_slopes_are_refused(text: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        _asked(text)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_file_of_a_network_with_a_linear_part(layers: int) -> None:
    rng = np.random.default_rng(layers)
    sizes = [5, *[4] * (layers - 1), 3]
    made = tuple((rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in pairwise(sizes))
    linear = rng.normal(size=(3, 5)) * np.array([[1], [0], [1]])
    own, low, high = ScoredNetwork(made, linear), np.full(5, -6.0), np.full(5, 6.0)
    rows = rng.uniform(-6, 6, size=(50, 5))
    assert np.allclose(replay(own.onnx(low, high), rows.astype(np.float32)), own(rows), atol=1e-3)


def _with_rows(rows: int = 48) -> Domain:
    data = np.tile(records(), (3, 1))[:rows]
    labels = (data[:, 0] > 2).astype(np.int64)
    return replace(domain(), inputs=lambda: data, labels=lambda: labels)


def _repaired(way: RepairWay, epochs: int) -> RepairedModel:
    laws, verify = [law(MORE), law(SET)], VerifySettings(seconds=20)
    repair = Repair(laws, _with_rows(144), model_of(network(1)), settings=verify)
    return repair.run(RepairSettings(way=way, epochs=epochs, verify=verify))


@pytest.fixture(scope="module")
def certified() -> RepairedModel:
    return _repaired(RepairWay.CERTIFIED, 15)


def test_a_certified_repair_is_proven(certified: RepairedModel) -> None:
    assert LawAnswer.VIOLATED in certified.before.answers
    assert certified.after.answers == (LawAnswer.PROVEN, LawAnswer.PROVEN)
    assert certified.before.violations > 0 and certified.after.violations == 0
    assert certified.after.agreement > 0.5 and certified.after.effect > 0
    assert "| certified | 0 | 2 / 0 / 0 |" in repair_table([certified], "certified")


def test_a_network_that_is_monotone_by_its_weights_is_proven() -> None:
    found = _repaired(RepairWay.WEIGHTS, 10)
    assert found.after.answers == (LawAnswer.PROVEN, LawAnswer.PROVEN) and found.after.violations == 0


def test_a_repair_by_cases_leaves_fewer_violations() -> None:
    found = _repaired(RepairWay.CASES, 15)
    assert found.after.violations < found.before.violations


def test_what_cannot_be_repaired_says_why(tmp_path: Path) -> None:
    settings = VerifySettings(seconds=5)
    with pytest.raises(InputError, match="These laws cannot be repaired"):
        Repair([law(LATER)], _with_rows(), model_of(network(0)), settings=settings)
    with pytest.raises(InputError, match="only networks can be repaired"):
        trees = forest(0)
        own = replace(model_of(network(0)), made_of=trees)
        Repair([law(MORE)], _with_rows(), own, settings=settings)
    with pytest.raises(InputError, match="needs FEATURES and `inputs`"):
        Repair([law(MORE)], domain(), model_of(network(0)), settings=settings)
    with pytest.raises(InputError, match="cannot be repaired: "):
        text = "input x1; var x2 := x1[points := x1.points * x1.paid];"
        Repair([law(text)], _with_rows(), model_of(network(0)), settings=settings)
    with pytest.raises(InputError, match="Give at least one law"):
        Repair([], _with_rows(), model_of(network(0)), settings=settings)
    with pytest.raises(InputError, match="1 epoch or more"):
        RepairSettings(epochs=0)
    with pytest.raises(InputError, match=r"ends in \.onnx"):
        dokimos.repair_law(tmp_path, out=tmp_path / "x.txt")


def test_features_that_must_raise_and_lower_classes_have_no_such_weights() -> None:
    asked = (SlopeRequirement(1, 0, 0, 1), SlopeRequirement(2, 1, 0, -1))
    repair = Repair([law(MORE)], _with_rows(), model_of(network(0)), settings=VerifySettings())
    task = replace(repair.task(repair.rows), requirements=asked)
    with pytest.raises(Refusal, match="raise some classes"):
        repaired(task, RepairWay.WEIGHTS, epochs=1, seed=0, find=lambda _: None)


def test_the_repaired_file_is_the_one_that_was_measured(certified: RepairedModel) -> None:
    again = onnx_model(certified.content, domain(), name="again")
    found = verify_law(law(MORE), model=again, domain=domain())
    assert found.answer is LawAnswer.PROVEN


def _run(of: Domain) -> RepairedModel:
    verify = VerifySettings(seconds=5)
    repair = Repair([law(MORE)], of, model_of(network(1)), settings=verify)
    return repair.run(RepairSettings(way=RepairWay.WEIGHTS, epochs=1, verify=verify))


def test_accuracy_is_of_rows_that_neither_network_was_trained_on() -> None:
    """The labels are right where the old network is trained, and wrong elsewhere: it must not look good."""
    data = np.tile(records(), (3, 1))
    answers = model_of(network(1)).predict(data)
    labels = np.where(np.arange(len(data)) < 120, answers, (answers + 1) % 3)
    of = replace(_with_rows(), inputs=lambda: data, labels=lambda: labels)
    unknown = _run(of)
    assert unknown.before.accuracy is None and unknown.after.accuracy is None
    assert unknown.before.agreement == 1
    table = repair_table([unknown], "weights")
    assert "| unknown |" in table and "does not say by `unseen`" in table
    known = _run(replace(of, unseen=lambda: range(120, len(data))))
    assert known.before.accuracy == 0
    assert "unknown" not in repair_table([known], "weights")
    for wrong in (range(200), [-1], [], [0.5]):
        with pytest.raises(InputError, match=r"unseen\(\) must list rows"):
            _run(replace(of, unseen=lambda wrong=wrong: wrong))


def test_rows_with_missing_values_are_not_trained_on() -> None:
    data = records()
    data[3, 1] = np.nan
    with pytest.raises(InputError, match=r"row 3 \(0-based\) of `inputs` has no paid"):
        _run(replace(domain(), inputs=lambda: data))


def test_a_file_that_is_not_the_trained_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScoredNetwork, "__call__", lambda self, rows: -np.asarray(rows)[:, :3])
    with pytest.raises(InputError, match="The repaired network, as a file, decides"):
        _run(_with_rows())


def _given(content: bytes, *, softmax: bool) -> bytes:
    """The network as somebody may have exported it: other names, any batch, perhaps a softmax."""
    model = onnx.ModelProto.FromString(content)
    graph = model.graph
    renamed = {graph.input[0].name: "records", graph.output[0].name: "logits" if softmax else "scores"}
    for node in graph.node:
        node.input[:] = [renamed.get(each, each) for each in node.input]
        node.output[:] = [renamed.get(each, each) for each in node.output]
    graph.input[0].name, graph.output[0].name = "records", "scores"
    if softmax:
        graph.node.append(onnx.helper.make_node("Softmax", ["logits"], ["scores"], axis=1))
    for each in (graph.input[0], graph.output[0]):
        each.type.tensor_type.shape.dim[0].dim_param = "batch"
    given: bytes = model.SerializeToString()
    return given


@pytest.mark.parametrize("softmax", [False, True])
def test_a_repaired_network_is_called_and_shaped_as_the_one_that_was_given(softmax: bool) -> None:
    given, made = _given(network(1), softmax=softmax), network(2)
    changed = shaped_like(made, given)
    session = onnxruntime.InferenceSession(changed)
    rows = records().astype(np.float32)
    (found,) = session.run(["scores"], {"records": rows})
    scores = np.stack([replay(made, row.reshape(1, -1)).ravel() for row in rows[:5]])
    assert found.shape == (len(rows), 3) and np.allclose(found.sum(axis=1), 1) == softmax
    assert (found[:5].argmax(axis=1) == scores.argmax(axis=1)).all()
    other = onnx.ModelProto.FromString(given)
    other.graph.input.append(onnx.helper.make_tensor_value_info("more", 1, [1]))
    assert shaped_like(made, other.SerializeToString()) == made  # that has more inputs


def test_the_weights_of_a_repaired_network_load_in_torch() -> None:
    nothing: Any = None
    made = RepairedModel(network(2), nothing, nothing, 0)
    module = torch.nn.Sequential(
        *[torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4), torch.nn.ReLU()],
        torch.nn.Linear(4, 3),
    )
    module.load_state_dict(made.state_dict())
    rows = records().astype(np.float32)
    with torch.no_grad():
        found = module(torch.from_numpy(rows)).numpy()
    assert np.allclose(found, model_of(network(2)).scores(rows), atol=1e-5)
