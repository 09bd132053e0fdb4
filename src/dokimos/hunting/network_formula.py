"""A small network as formulas: one line for each output, or for each node where that is shorter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dokimos.hunting.file_graph import FileGraph, FileNode, Values, names_in

#: Networks with more numbers than this are not printed as formulas.
MOST_NUMBERS = 12
_LONGEST = 400
_AFFINE = names_in(
    """
    Gemm MatMul Conv ConvTranspose AveragePool GlobalAveragePool Add Sub Mul Div Neg Flatten Reshape
    Transpose ReduceSum ReduceMean BatchNormalization Identity Pad Slice Gather Concat Squeeze
    Unsqueeze Resize
    """
)
_ENTRYWISE = names_in(
    """
    Relu LeakyRelu Sigmoid Tanh Abs Exp Sin Cos Floor Ceil Sign Clip Elu Softplus Sqrt Log Erf
    """
)


def formula(graph: FileGraph) -> str:
    """The network in lines of text; empty if it stores too many numbers."""
    if sum(values.size for _, values in graph.floats()) > MOST_NUMBERS:
        return ""
    known: dict[str, NDArray[np.object_]] = {graph.input: _named("X", graph.input_size)}
    lines = []
    for number, node in enumerate(graph.nodes):
        found = _entries(graph, node, known)
        if node.output == graph.output or found is None or max(map(len, found)) > _LONGEST:
            name = "Y" if node.output == graph.output else f"t{number}"
            size = int(np.prod(graph.shapes[node.output]))
            if found is None:
                lines.append(f"{name} = {_call(graph, node, known)}")
            else:
                lines += [f"{name}_{k} = {entry}" for k, entry in enumerate(found)]
            found = _named(name, size)
        known[node.output] = found
    return "\n".join(lines) + "\n"


def _named(name: str, size: int) -> NDArray[np.object_]:
    return np.array([f"{name}_{k}" for k in range(size)], dtype=object)


def _entries(
    graph: FileGraph, node: FileNode, known: Mapping[str, NDArray[np.object_]]
) -> NDArray[np.object_] | None:
    """What each number that a node writes is; None if that cannot be said by itself."""
    dynamic = [name for name in node.inputs if name in known]
    if node.op in _ENTRYWISE and len(dynamic) == 1:
        name, extra = node.op.lower(), _parameters(graph, node)
        entries = [f"{name}({inner}{extra})" for inner in known[dynamic[0]]]
        return np.array(entries, dtype=object)
    if node.op not in _AFFINE:
        return None
    weights, shifts = _map(graph, node, dynamic)
    if weights is None:
        return None
    inner = np.concatenate([known[name] for name in dynamic])
    found = [_sum(row, inner, shift) for row, shift in zip(weights, shifts, strict=True)]
    return np.array(found, dtype=object)


def _parameters(graph: FileGraph, node: FileNode) -> str:
    given = [f"{key}={value:.6g}" for key, value in sorted(node.attributes.items())]
    given += [f"{graph.constants[n].reshape(-1)[0]:.6g}" for n in node.inputs if n in graph.constants]
    return "".join(f"; {each}" for each in given)


def _map(graph: FileGraph, node: FileNode, dynamic: Sequence[str]) -> tuple[Values | None, Values]:
    """The matrix and the constant of an affine node, by its values at 0 and at unit vectors."""
    names = [name for name in dict.fromkeys(node.inputs) if name]
    given = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(_value(graph, n).dtype), graph.shapes[n]
        )
        for n in names
    ]
    end = helper.make_tensor_value_info(node.output, 1, None)
    made = helper.make_node(node.op, list(node.inputs), [node.output], **node.attributes)
    model = helper.make_model(
        helper.make_graph([made], "one", given, [end]),
        opset_imports=[helper.make_opsetid("", graph.opset)],
    )
    runs = ReferenceEvaluator(model)
    fixed: dict[str, Values] = {name: _value(graph, name) for name in names}

    def at(tensor: str | None, place: int) -> Values:
        values: dict[str, Values] = {**fixed}
        if tensor is not None:
            point = np.zeros(graph.shapes[tensor], dtype=np.float32)
            point.reshape(-1)[place] = 1
            values[tensor] = point
        (found,) = runs.run(None, values)
        return np.asarray(found, dtype=np.float64).reshape(-1)

    shift = at(None, 0)
    columns = [at(n, k) - shift for n in dynamic for k in range(int(np.prod(graph.shapes[n])))]
    if node.op in ("Mul", "Div", "MatMul") and len(dynamic) > 1:
        return None, shift
    return np.array(columns).T, shift


def _value(graph: FileGraph, name: str) -> Values:
    found = graph.constants.get(name)
    return np.zeros(graph.shapes[name], dtype=np.float32) if found is None else found


def _sum(row: Values, inner: NDArray[np.object_], shift: float) -> str:
    terms = [_term(float(w), x) for w, x in zip(row, inner, strict=True) if w]
    if shift or not terms:
        terms.append(number(float(shift)))
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms).replace('+ -', '- ')})"


def _term(factor: float, x: str) -> str:
    return x if factor == 1 else f"-{x}" if factor == -1 else f"{number(factor)}*{x}"


def number(value: float) -> str:
    """A number as short as it is: powers of two beyond a thousandth as such."""
    found = Fraction(value)
    for exact in (found.numerator, found.denominator):
        if abs(exact) > 1000 and abs(exact) & (abs(exact) - 1) == 0 and 1 in map(abs, _ends(found)):
            sign = "-" if value < 0 else ""
            power = abs(found.numerator).bit_length() - found.denominator.bit_length()
            return f"{sign}2^{power}"
    return repr(int(value)) if value == int(value) and abs(value) < 1e6 else f"{value:.9g}"


def _ends(value: Fraction) -> tuple[int, int]:
    return value.numerator, value.denominator


def _call(graph: FileGraph, node: FileNode, known: Mapping[str, NDArray[np.object_]]) -> str:
    """A node as a call on what it reads."""
    read = []
    for name in node.inputs:
        if name in known:
            entries = ", ".join(known[name])
            read.append(f"[{entries}] as {list(graph.shapes[name])}")
        elif name in graph.constants:
            read.append(str(graph.constants[name].tolist()))
    attributes = [f"{key}={value}" for key, value in sorted(node.attributes.items())]
    return f"{node.op}({', '.join([*read, *attributes])})"
