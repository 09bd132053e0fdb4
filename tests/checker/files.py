"""Small ONNX and VNN-LIB files, and truths bound to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth


def model(
    nodes: Sequence[tuple[Any, ...]],
    weights: Mapping[str, Any],
    input_shape: Sequence[int],
    output_shape: Sequence[int],
    *,
    dtype: Any = np.float32,
) -> bytes:
    """The ONNX file with these nodes (op, inputs, output, attributes) from X to Y."""
    kind = TensorProto.FLOAT if dtype is np.float32 else TensorProto.DOUBLE
    made = [
        helper.make_node(op, list(inputs), [output], **(rest[0] if rest else {}))
        for op, inputs, output, *rest in nodes
    ]
    arrays = {n: np.asarray(a) for n, a in weights.items()}
    tensors = [
        numpy_helper.from_array(a if a.dtype == np.int64 and n.startswith("i_") else a.astype(dtype), n)
        for n, a in arrays.items()
    ]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("X", kind, list(input_shape))],
        [helper.make_tensor_value_info("Y", kind, list(output_shape))],
        tensors,
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(built)
    return bytes(built.SerializeToString(deterministic=True))


def question(bounds: Sequence[tuple[Any, Any]], outputs: int, *unsafe: str) -> bytes:
    """The VNN-LIB 1.0 file of a box and of assertions on the outputs, all of which must hold."""
    lines = [f"(declare-const X_{i} Real)" for i in range(len(bounds))]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i, (low, high) in enumerate(bounds):
        lines += [f"(assert (>= X_{i} {low}))", f"(assert (<= X_{i} {high}))"]
    return "\n".join([*lines, *(f"(assert {u})" for u in unsafe), ""]).encode()


def instance_of(network: bytes, property_: bytes) -> Instance:
    return Instance(name="small", network_file=network, property_file=property_)


def repaired(truth: Truth, instance: Instance) -> Truth:
    """The same statement, bound by its hashes to the files of `instance`."""
    return replace(truth, network_sha256=instance.network_sha256, property_sha256=instance.property_sha256)


def stated(
    instance: Instance,
    kind: str,
    data: Mapping[str, Any] | None = None,
    *,
    label: Label = Label.UNSAT,
    witness: tuple[Fraction, ...] | None = None,
    real: Fraction | None = Fraction(0),
    float32: Fraction | None = None,
) -> Truth:
    """A truth about `instance`, whether it is true or not."""
    margins = {Semantics.REAL: real, Semantics.FLOAT32: float32}
    return Truth(
        label=label,
        claims={s: Claim(proven=m is not None, margin=m) for s, m in margins.items()},
        certificate=Certificate(kind, data or {}),
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
        witness=witness,
    )
