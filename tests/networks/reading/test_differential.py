"""What is read means what runtimes compute, for random nodes of every operator and every opset.

Compared with onnxruntime as far as it reads them, beyond that with ONNX's reference evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
import pytest

from dokimos.core.errors import InputError
from dokimos.crosscheck.cross_check import cross_check
from dokimos.networks.reading import folding, onnx_file
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.testing.files import instance_of, question, stated
from tests.networks.reading.random_nodes import DRAWS, Sketch, drawn

#: In the default run: about 10 seconds of CPU time for all operators.
FEW = range(20)
MANY = range(20, 1000)


def compared(op: str, seeds: Iterable[int]) -> int:
    """How many of the models drawn are read and run; what is not read must be refused in one line."""
    count = 0
    for seed in seeds:
        model, bounds = drawn(op, np.random.default_rng([seed, *op.encode()]))
        content = model.SerializeToString()
        try:
            read_onnx(content)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        instance = instance_of(content, question(bounds, 1, "(<= Y_0 0.0)"))
        found = cross_check(instance, stated(instance, "enclosure", real=None))
        assert not found.contradiction, f"{seed}: {onnx.printer.to_text(model)}"
        count += found.is_done
    return count


@pytest.mark.parametrize("op", DRAWS)
def test_random_nodes_mean_what_runtimes_compute(op: str) -> None:
    assert compared(op, FEW) > len(FEW) // 5


@pytest.mark.slow
@pytest.mark.parametrize("op", DRAWS)
def test_many_random_nodes_mean_what_runtimes_compute(op: str) -> None:
    assert compared(op, MANY) > len(MANY) // 5


def test_every_operator_that_is_read_is_drawn() -> None:
    assert {*onnx_file._RULES, *folding._RULES} <= set(DRAWS)
    moved = {"Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split"}
    moved |= {"Squeeze", "Transpose", "Unsqueeze"}
    assert {op.removesuffix(" of integers") for op in DRAWS} >= folding._ON_INTEGERS
    assert {f"{op} of integers" for op in folding._ON_INTEGERS - moved} <= set(DRAWS)


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
