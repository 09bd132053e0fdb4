"""What is read means what runtimes compute, for random nodes of every operator and every opset.

Compared with onnxruntime as far as it reads them, beyond that with ONNX's reference evaluator.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dokimos.core.errors import InputError
from dokimos.engine.runtimes.cross_check import cross_check
from dokimos.engine.runtimes.sessions import ONNXRUNTIME, REFERENCE_AGREES, load_session, run_session
from dokimos.networks.reading import fold, onnx_file
from dokimos.networks.reading.lowering import OnnxCall
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics import propagation
from dokimos.testing.statements import instance_of, question, stated
from tests.networks.building import Builder
from tests.networks.reading.random_nodes import DRAWS, OPSETS, Sketch, damage, doubled, drawn

#: In the default run: about 5 seconds of CPU time for all operators.
FEW = range(10)
MANY = range(10, 1000)


def compared(op: str, seeds: Iterable[int], *, damages: int = 0) -> int:
    """How many of the models drawn are read and run; what is not read must be refused in one line.

    Every third model is in float64. With `damages`, up to so many things in each are changed.
    """
    count = 0
    for seed in seeds:
        model, bounds = drawn(op, np.random.default_rng([seed, *op.encode()]))
        model = model if seed % 3 else doubled(model)
        rng = random.Random(f"{seed} {op}")
        for _ in range(rng.randint(1, damages) if damages else 0):
            damage(model, rng)
        content = model.SerializeToString()
        try:
            network = read_onnx(content)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        bounds = (bounds + [(0.5, 1.0)] * network.input_size)[: network.input_size]
        instance = instance_of(content, question(bounds, 1, "(<= Y_0 0.0)"))
        found = cross_check(instance, stated(instance, "linear", real=None))
        assert not found.contradiction, f"{op}, seed {seed}"
        if found.runtime == ONNXRUNTIME:
            lowest = np.array([low for low, _ in bounds], network.dtype).reshape(network.input_shape)
            shape = run_session(load_session(content, "network"), lowest, "network").shape
            assert shape == network.output_shape, f"{op}, seed {seed}"
        count += found.is_done
    return count


@pytest.mark.parametrize("op", DRAWS)
def test_random_nodes_mean_what_runtimes_compute(op: str) -> None:
    assert compared(op, FEW) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("op", DRAWS)
def test_many_random_nodes_mean_what_runtimes_compute(op: str) -> None:
    assert compared(op, MANY) > len(MANY) // 5


@pytest.mark.parametrize("op", DRAWS)
def test_damaged_nodes_are_refused_or_mean_what_runtimes_compute(op: str) -> None:
    compared(op, range(8), damages=3)


@pytest.mark.slow
@pytest.mark.parametrize("op", DRAWS)
def test_many_damaged_nodes_are_refused_or_mean_what_runtimes_compute(op: str) -> None:
    assert compared(op, range(8, 1200), damages=3) > 10


def test_every_operator_that_is_read_is_drawn() -> None:
    assert {*onnx_file._RULES, *onnx_file._BESIDE, *fold._RULES} <= set(DRAWS)
    assert {f"{op} of integers" for op in (*fold._ELEMENTWISE, *fold._REDUCED, "Range")} <= set(DRAWS)
    moved = {"Identity", "Flatten", "Split", "Squeeze", "Unsqueeze", "Concat", *propagation.REARRANGE}
    assert {f"{op} of integers" for op in moved} <= set(DRAWS)


#: Never drawn: what is refused whatever its value, or is no tensor of numbers.
NOT_DRAWN = {
    "Cast": {"round_mode"},
    "Constant": {"sparse_value", "value_int", "value_ints", "value_string", "value_strings"},
}


@pytest.mark.parametrize("op", [op for op in DRAWS if " " not in op])
def test_every_attribute_is_given_and_left_to_its_default(op: str) -> None:
    given: dict[str, set[bool]] = {}
    rng = np.random.default_rng(0)
    for draw in range(400):
        sketch = Sketch(rng, 7 + draw % (onnx.defs.onnx_opset_version() - 6))
        DRAWS[op](sketch)
        try:
            schema = onnx.defs.get_schema(op, sketch.opset, "")
        except onnx.defs.SchemaError:
            continue  # not yet
        for node in (node for node in sketch.nodes if node.op_type == op):
            names = {attribute.name for attribute in node.attribute}
            for name, attribute in schema.attributes.items():
                given.setdefault(name, set()).add(name in names)
                if attribute.required:
                    given[name].add(False)
    wanted = set(given) - NOT_DRAWN.get(op, set())
    assert {name for name in wanted if given[name] != {False, True}} == set()


READABLE = sorted(
    {*onnx_file._RULES, *onnx_file._BESIDE, *fold._RULES, *fold._ELEMENTWISE, *fold._REDUCED, "Range"}
)


#: How many models of each operator and opset are drawn to see whether the reference evaluator is right.
DRAWN = 200
#: Versions on which it was seen to differ, but on none of these.
SELDOM_WRONG = {"AveragePool": {19}}
#: So many must be read, be run by both, and give the same.
ENOUGH = 10


def agreements(op: str, count: int) -> dict[int, int]:
    """On how many models ONNX's reference evaluator agrees with onnxruntime, for each version of `op`.

    A version is named by the opset that it came with. -1 if they ever differ on a model that is read here.
    """
    found: dict[int, int] = {}
    names = [name for name in (op, f"{op} of integers") if name in DRAWS]
    for name, opset, seed in product(names, OPSETS, range(count)):
        rng = np.random.default_rng([seed, opset, *name.encode()])
        sketch = Sketch(rng, opset)
        model = sketch.model(DRAWS[name](sketch))
        if (schema := schema_of(op, sketch.opset)) is None or found.get(schema.since_version) == -1:
            continue
        content = (model if seed % 3 else doubled(model)).SerializeToString()
        try:
            dtype = read_onnx(content).dtype
            theirs = load_session(content, "network"), ReferenceEvaluator(content)
            x = rng.uniform(0.25 if sketch.positive else -2, 2, sketch.shape).astype(dtype)
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                a, b = (np.asarray(session.run(None, {"x": x})[0]) for session in theirs)
        except Exception:  # one of them cannot run it, for whatever reason
            continue
        near = 1e-4 if dtype == np.float32 else 1e-12
        same = a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=near, atol=near)
        found[schema.since_version] = found.get(schema.since_version, 0) + 1 if same else -1
    return found


@pytest.mark.parametrize("op", READABLE)
def test_the_reference_evaluator_agrees_where_it_is_asked(op: str) -> None:
    differs = {version for version, count in agreements(op, 2).items() if count < 0}
    assert not differs & REFERENCE_AGREES.get(op, frozenset())


@pytest.mark.slow
@pytest.mark.parametrize("op", READABLE)
def test_the_reference_evaluator_is_asked_where_it_agrees(op: str) -> None:
    found = {version for version, count in agreements(op, DRAWN).items() if count >= ENOUGH}
    trusted = REFERENCE_AGREES.get(op, frozenset())
    assert trusted == found - SELDOM_WRONG.get(op, set()), f"{op}: {sorted(found)}"


def schema_of(op: str, opset: int) -> onnx.defs.OpSchema | None:
    """What ONNX says of an operator in an opset, None if that has none which takes what is read here."""
    try:
        schema = onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return None
    takes = schema.inputs[0].types if schema.inputs else {"tensor(float)"}
    is_read = (
        "tensor(int64)" in takes
        or "tensor(bool)" in takes
        or op in {*onnx_file._RULES, *onnx_file._BESIDE, *fold._RULES}
    )
    return None if schema.deprecated or not is_read else schema


def asked_in(op: str, opset: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[Any]] | None:
    """Each attribute that is read of `op`, with the defaults for it; None if no model with it was read.

    Models are drawn until everything that has a default was read, or for a while.
    """
    schema = schema_of(op, opset)
    assert schema is not None
    wanted = {name for name, given in schema.attributes.items() if given.default_value.name}
    wanted -= onnx_file._WITHOUT_EFFECT.get(op, frozenset())
    asked: dict[str, set[Any]] = {}
    original = OnnxCall.attribute

    def attribute(call: OnnxCall, name: str, default: Any = None) -> Any:
        if call.op == op:
            asked.setdefault(name, set()).add(default)
        return original(call, name, default)

    monkeypatch.setattr(OnnxCall, "attribute", attribute)
    is_read, rng = False, np.random.default_rng(opset)
    for _ in range(60):
        sketch = Sketch(rng, opset)
        name = f"{op} of integers" if f"{op} of integers" in DRAWS and rng.random() < 0.5 else op
        model = sketch.model(DRAWS.get(name, DRAWS.get(f"{op} of integers"))(sketch))  # type: ignore[misc]
        if sketch.opset != opset:
            continue
        try:
            read_onnx(model.SerializeToString())
        except InputError:
            continue
        is_read = True
        if wanted <= set(asked):
            break
    return asked if is_read else None


@pytest.mark.parametrize("op", [op for op in READABLE if op != "Clip"])
def test_every_default_is_that_of_the_schema(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for opset in OPSETS:
        if (schema := schema_of(op, opset)) is None:
            continue
        with monkeypatch.context() as patched:
            asked = asked_in(op, opset, patched)
        assert asked is not None, f"no {op} of opset {opset} was read, so nothing is known of its defaults"
        for name, given in schema.attributes.items():
            if given.required or name in onnx_file._WITHOUT_EFFECT.get(op, ()):
                continue
            default = given.default_value
            wanted = onnx.helper.get_attribute_value(default) if default.name else None
            wanted = wanted.decode() if isinstance(wanted, bytes) else wanted
            assert default.name == "" or name in asked, f"{op} of opset {opset}: {name} is never read"
            # What has no default in the schema is None here, and drawn both ways by the test above.
            assert asked.get(name, {wanted}) == {wanted}, f"{op} of opset {opset}: {name}"


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_clip_without_bounds_ends_where_onnx_says(opset: int, dtype: type) -> None:
    """ONNX 6 has attributes, which are float32; since opset 11 the ends are those of the type."""
    b = Builder((1, 2), opset=opset, dtype=dtype)
    (node,) = read_onnx(b.model(b.add("Clip", "x")).SerializeToString()).nodes
    schema = onnx.defs.get_schema("Clip", opset, "")
    attributes = schema.attributes
    if attributes:
        wanted = tuple(attributes[name].default_value.f for name in ("min", "max"))
    else:
        assert "numeric_limits::lowest()" in schema.inputs[1].description + schema.doc
        wanted = (float(np.finfo(dtype).min), float(np.finfo(dtype).max))
    assert (node.real("min"), node.real("max")) == wanted
    assert opset >= 11 or wanted[1] == float(np.finfo(np.float32).max)
