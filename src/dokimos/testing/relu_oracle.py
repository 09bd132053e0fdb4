"""An independent oracle for tiny ReLU networks: it shares nothing with the checker but onnx itself.

It has its own readers for the two files, and answers exactly, over the reals, whether an input in the box
is unsafe: once by enumerating all activation patterns, each a linear program in rationals, and once with
z3. Use both, as `ReluOracle` does.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dokimos.suites.instance import Instance, Label, Semantics, Truth
from dokimos.testing.sweeps import Oracle

Vector = list[Fraction]
#: Coefficients of the inputs, and a constant at the end.
Affine = list[Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class OracleLayer:
    """weight·v + bias, rectified where `rectified`."""

    weight: list[Vector]
    bias: Vector
    rectified: bool


@dataclass(frozen=True)
class Half:
    """Σ terms <= bound, or < where strict."""

    terms: dict[str, Fraction]
    bound: Fraction
    strict: bool = False


@dataclass(frozen=True)
class OracleQuestion:
    """A box, and what is unsafe on it: all of the halves of one clause."""

    box: list[tuple[Fraction, Fraction]]
    unsafe: list[list[Half]]


# Reading the network ------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def layers_of(network: bytes) -> list[OracleLayer]:
    """The chain of layers in an ONNX file. Raises ValueError if it is not such a chain."""
    model = onnx.load_from_string(network)
    arrays = {t.name: numpy_helper.to_array(t).astype(float) for t in model.graph.initializer}
    value_info = model.graph.input[0]
    shape = [d.dim_value for d in value_info.type.tensor_type.shape.dim]
    last, layers = value_info.name, list[OracleLayer]()
    for node in model.graph.node:
        if node.input[0] != last:
            raise ValueError("not a chain")
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        constants = [arrays[name] for name in node.input[1:]]
        last = node.output[0]
        if node.op_type == "Relu":
            layers.append(OracleLayer([], [], True))
        elif node.op_type == "Flatten":
            shape = [1, int(np.prod(shape))]
        elif node.op_type == "Gemm":
            if set(given) - {"transB"}:
                raise ValueError("factors")
            matrix = constants[0] if given.get("transB") else constants[0].T
            bias = constants[1].reshape(-1) if len(constants) > 1 else np.zeros(len(matrix))
            layers.append(_layer(matrix, np.broadcast_to(bias, (len(matrix),))))
            shape = [1, len(matrix)]
        elif node.op_type == "Conv":
            matrix, bias, shape = _unrolled(shape, constants, given)
            layers.append(_layer(matrix, bias))
        else:
            raise ValueError(node.op_type)
    if last != model.graph.output[0].name:
        raise ValueError("not a chain")
    return layers


def _layer(matrix: Any, bias: Any) -> OracleLayer:
    exact = [[Fraction(float(w)) for w in row] for row in matrix]
    return OracleLayer(exact, [Fraction(float(b)) for b in bias], False)


def _unrolled(shape: list[int], constants: list[Any], given: dict[str, Any]) -> tuple[Any, Any, list[int]]:
    """A convolution in two dimensions, written out as a matrix."""
    weight = constants[0]
    outputs, inputs, kernel_height, kernel_width = weight.shape
    _, channels, height, width = shape
    if channels != inputs or set(given) - {"kernel_shape", "strides", "pads"}:
        raise ValueError("a form of convolution that the oracle does not support")
    down, across = given.get("strides", [1, 1])
    top, left, bottom, right = given.get("pads", [0, 0, 0, 0])
    rows = (height + top + bottom - kernel_height) // down + 1
    columns = (width + left + right - kernel_width) // across + 1
    matrix = np.zeros((outputs * rows * columns, channels * height * width))
    for o, r, c in product(range(outputs), range(rows), range(columns)):
        for i, y, x in product(range(inputs), range(kernel_height), range(kernel_width)):
            at_y, at_x = r * down + y - top, c * across + x - left
            if 0 <= at_y < height and 0 <= at_x < width:
                matrix[(o * rows + r) * columns + c, (i * height + at_y) * width + at_x] += weight[
                    o, i, y, x
                ]
    bias = constants[1] if len(constants) > 1 else np.zeros(outputs)
    return matrix, np.repeat(bias, rows * columns), [1, outputs, rows, columns]


# Reading the property -----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def question_of(text: bytes) -> OracleQuestion:
    """The box and the unsafe outputs of a VNN-LIB 1.0 file."""
    tokens = re.findall(r"[()]|[<>]=?|[^\s()<>=]+", re.sub(r";.*", "", text.decode()))
    forms = list(_forms(iter(tokens)))
    inputs = sum(f[0] == "declare-const" and f[1].startswith("X_") for f in forms)
    lower: dict[int, Fraction] = {}
    upper: dict[int, Fraction] = {}
    unsafe: list[list[Half]] = [[]]
    for form in forms:
        if form[0] != "assert":
            continue
        clauses = _clauses(form[1])
        half = clauses[0][0]
        alone = len(clauses) == len(clauses[0]) == len(half.terms) == 1
        name, factor = next(iter(half.terms.items()), ("", ZERO))
        if alone and name.startswith("X_"):
            index, bound = int(name[2:]), half.bound / factor
            if half.strict:
                unsafe = [[*clause, half] for clause in unsafe]
            if factor > 0:
                upper[index] = min(bound, upper.get(index, bound))
            else:
                lower[index] = max(bound, lower.get(index, bound))
        else:
            unsafe = [a + b for a in unsafe for b in clauses]
    return OracleQuestion([(lower[i], upper[i]) for i in range(inputs)], unsafe)


def _forms(tokens: Iterator[str]) -> Iterator[Any]:
    for token in tokens:
        if token == ")":
            return
        yield list(_forms(tokens)) if token == "(" else token


def _clauses(form: Any) -> list[list[Half]]:
    head, *rest = form
    if head == "or":
        return [clause for part in rest for clause in _clauses(part)]
    if head == "and":
        clauses: list[list[Half]] = [[]]
        for part in rest:
            clauses = [a + b for a in clauses for b in _clauses(part)]
        return clauses
    left, right = (_sum(part) for part in rest)
    if head in (">=", ">"):
        left, right = right, left
    terms = dict(left)
    for name, factor in right.items():
        terms[name] = terms.get(name, ZERO) - factor
    bound = -terms.pop("", ZERO)
    return [[Half({n: f for n, f in terms.items() if f}, bound, strict=head in ("<", ">"))]]


def _sum(form: Any) -> dict[str, Fraction]:
    if isinstance(form, str):
        return {form: ONE} if form[0] in "XY" else {"": Fraction(form)}
    head, *rest = form
    total: dict[str, Fraction] = {}
    for place, part in enumerate(_sum(part) for part in rest):
        sign = -1 if head == "-" and (place or len(rest) == 1) else 1
        for name, factor in part.items():
            total[name] = total.get(name, ZERO) + sign * factor
    if head not in ("+", "-"):
        raise ValueError(head)
    return total


# Evaluating ---------------------------------------------------------------------------------------


def outputs_at(layers: Sequence[OracleLayer], point: Sequence[Fraction]) -> Vector:
    """The outputs of the layers at a point."""
    value = list(point)
    for layer in layers:
        if layer.rectified:
            value = [max(ZERO, v) for v in value]
        else:
            value = [
                b + sum((w * v for w, v in zip(row, value, strict=True)), ZERO)
                for row, b in zip(layer.weight, layer.bias, strict=True)
            ]
    return value


def slack_at(half: Half, point: Sequence[Fraction], outputs: Sequence[Fraction]) -> Fraction:
    """By how much a half holds at a point; negative if it does not."""
    values = {"X": point, "Y": outputs}
    left = (f * values[name[0]][int(name[2:])] for name, f in half.terms.items())
    return half.bound - sum(left, ZERO)


def unsafe_by(network: bytes, property_: bytes, point: Sequence[Fraction]) -> Fraction | None:
    """The largest slack with which `point` is unsafe; None if it is safe or lies outside the box."""
    question = question_of(property_)
    if len(point) != len(question.box):
        return None
    if any(not a <= x <= b for x, (a, b) in zip(point, question.box, strict=True)):
        return None
    outputs = outputs_at(layers_of(network), point)
    found: list[Fraction] = []
    for clause in question.unsafe:
        slacks = [(slack_at(half, point, outputs), half.strict) for half in clause]
        if all(s > 0 if strict else s >= 0 for s, strict in slacks):
            found.append(min((s for s, _ in slacks), default=ZERO))
    return max(found, default=None)


# First opinion: every activation pattern -----------------------------------------------------------


def sat_by_patterns(network: bytes, property_: bytes, *, margin: Fraction = ZERO) -> bool:
    """Whether some input of the box is unsafe; with a margin m > 0, whether one misses that by less than m.

    Each answer `True` is backed by a point, which is evaluated again.
    """
    question = question_of(property_)
    if any(a > b for a, b in question.box):
        return False
    clauses = [[_loosened(half, margin) for half in clause] for clause in question.unsafe]
    layers = layers_of(network)
    for rows, outputs in _patterns(question.box, layers):
        for clause in clauses:
            last = [_row(half, outputs, len(question.box)) for half in clause]
            point = feasible(question.box, [*rows, *last])
            if point is not None:
                values = outputs_at(layers, point)
                slacks = [(slack_at(half, point, values), half.strict) for half in clause]
                assert all(s > 0 if strict else s >= 0 for s, strict in slacks)
                return True
    return False


def _loosened(half: Half, margin: Fraction) -> Half:
    return Half(half.terms, half.bound + margin, strict=True) if margin > 0 else half


def _row(half: Half, outputs: Sequence[Affine], inputs: int) -> tuple[Vector, Fraction, bool]:
    total = [ZERO] * (inputs + 1)
    for name, factor in half.terms.items():
        index = int(name[2:])
        part = outputs[index] if name[0] == "Y" else [ONE * (i == index) for i in range(inputs + 1)]
        total = [t + factor * p for t, p in zip(total, part, strict=True)]
    return total[:-1], half.bound - total[-1], half.strict


Row = tuple[Vector, Fraction, bool]


def _patterns(
    box: Sequence[tuple[Fraction, Fraction]], layers: Sequence[OracleLayer]
) -> Iterator[tuple[list[Row], list[Affine]]]:
    """Every pattern that some input has: the rows that describe it, and the outputs under it."""
    inputs = len(box)
    start: list[Affine] = [[ONE * (i == j) for j in range(inputs + 1)] for i in range(inputs)]
    pending: list[tuple[list[Row], list[Affine], int, int]] = [([], start, 0, 0)]
    while pending:
        rows, values, depth, neuron = pending.pop()
        if depth == len(layers):
            yield rows, values
        elif not layers[depth].rectified:
            layer = layers[depth]
            mixed = []
            for weights, bias in zip(layer.weight, layer.bias, strict=True):
                total = [ZERO] * inputs + [bias]
                for w, value in zip(weights, values, strict=True):
                    if w:
                        total = [t + w * v for t, v in zip(total, value, strict=True)]
                mixed.append(total)
            pending.append((rows, mixed, depth + 1, 0))
        elif neuron == len(values):
            pending.append((rows, values, depth + 1, 0))
        else:
            value = values[neuron]
            low = value[-1] + sum(
                (c * (a if c > 0 else b) for c, (a, b) in zip(value, box, strict=False)), ZERO
            )
            high = value[-1] + sum(
                (c * (b if c > 0 else a) for c, (a, b) in zip(value, box, strict=False)), ZERO
            )
            off = [*values[:neuron], [ZERO] * (inputs + 1), *values[neuron + 1 :]]
            if high <= 0:
                pending.append((rows, off, depth, neuron + 1))
            elif low >= 0:
                pending.append((rows, values, depth, neuron + 1))
            else:
                active: Row = ([-c for c in value[:-1]], value[-1], False)
                passive: Row = (value[:-1], -value[-1], False)
                for row, after in ((active, values), (passive, off)):
                    if feasible(box, [*rows, row]) is not None:
                        pending.append(([*rows, row], after, depth, neuron + 1))


def feasible(box: Sequence[tuple[Fraction, Fraction]], rows: Sequence[Row]) -> Vector | None:
    """A point of the box with row·x <= bound (< where strict) for every row, or None.

    The simplex method for bounds, with Bland's rule; numbers are pairs a + b·δ with an infinitesimal δ.
    """
    inputs = len(box)
    low: list[Any] = [(a, ZERO) for a, _ in box] + [None] * len(rows)
    high = [(b, ZERO) for _, b in box] + [(bound, -ONE * strict) for _, bound, strict in rows]
    value = [(a, ZERO) for a, _ in box]
    basic: dict[int, dict[int, Fraction]] = {}
    for k, (weights, _, _) in enumerate(rows):
        basic[inputs + k] = {j: w for j, w in enumerate(weights) if w}
        value.append((sum((w * a for w, (a, _) in zip(weights, box, strict=True)), ZERO), ZERO))
    while True:
        wrong = [v for v in basic if value[v] > high[v] or (low[v] is not None and value[v] < low[v])]
        if not wrong:
            return _without_infinitesimals(box, rows, value[:inputs])
        leaving = min(wrong)
        row = basic.pop(leaving)
        rising = value[leaving] < high[leaving]
        target = low[leaving] if rising else high[leaving]
        for entering in sorted(row):
            up = (row[entering] > 0) == rising
            if (
                value[entering] < high[entering]
                if up
                else low[entering] is None or value[entering] > low[entering]
            ):
                break
        else:
            return None
        pivot = row.pop(entering)
        step = tuple((t - v) / pivot for t, v in zip(target, value[leaving], strict=True))
        solved = {j: -c / pivot for j, c in row.items()} | {leaving: 1 / pivot}
        value[leaving] = target
        value[entering] = (value[entering][0] + step[0], value[entering][1] + step[1])
        for other, its in basic.items():
            factor = its.pop(entering, ZERO)
            if factor:
                value[other] = (value[other][0] + factor * step[0], value[other][1] + factor * step[1])
                for j, c in solved.items():
                    its[j] = its.get(j, ZERO) + factor * c
                    if not its[j]:
                        del its[j]
        basic[entering] = solved


def _without_infinitesimals(
    box: Sequence[tuple[Fraction, Fraction]], rows: Sequence[Row], value: Sequence[Any]
) -> Vector:
    delta = ONE
    while True:
        point = [a + delta * b for a, b in value]
        inside = all(a <= x <= b for x, (a, b) in zip(point, box, strict=True))
        slacks = [
            (bound - sum((w * x for w, x in zip(weights, point, strict=True)), ZERO), strict)
            for weights, bound, strict in rows
        ]
        if inside and all(s > 0 if strict else s >= 0 for s, strict in slacks):
            return point
        delta /= 16


# Second opinion: z3 ---------------------------------------------------------------------------------


def _z3() -> Any:
    try:
        import z3
    except ImportError:
        raise ImportError(
            "The oracle of ReLU networks needs z3; install it with `pip install z3-solver`."
        ) from None
    return z3


def sat_by_z3(network: bytes, property_: bytes, *, margin: Fraction = ZERO) -> bool:
    """The same question, answered by z3."""
    z3 = _z3()
    solver = z3.SolverFor("QF_LRA")
    solver.from_string("\n".join(_statements(layers_of(network), question_of(property_), margin)))
    answer = solver.check()
    assert answer in (z3.sat, z3.unsat)
    return bool(answer == z3.sat)


def _statements(layers: Sequence[OracleLayer], question: OracleQuestion, margin: Fraction) -> Iterator[str]:
    """The question in SMT-LIB, which z3 reads much faster than it builds terms in Python."""
    inputs = [f"x{i}" for i in range(len(question.box))]
    for x, (a, b) in zip(inputs, question.box, strict=True):
        yield f"(declare-const {x} Real)(assert (<= {_smt_number(a)} {x} {_smt_number(b)}))"
    values = inputs
    for depth, layer in enumerate(layers):
        given = values
        if layer.rectified:
            values = [f"r{depth}_{k}" for k in range(len(given))]
            for r, v in zip(values, given, strict=True):
                yield f"(declare-const {r} Real)(assert (= {r} (ite (> {v} 0.0) {v} 0.0)))"
        else:
            values = [f"a{depth}_{k}" for k in range(len(layer.bias))]
            for name, row, b in zip(values, layer.weight, layer.bias, strict=True):
                terms = [(w, v) for w, v in zip(row, given, strict=True) if w]
                yield f"(define-fun {name} () Real {_smt_sum(terms, b)})"
    named = {"X": inputs, "Y": values}
    clauses = []
    for clause in question.unsafe:
        parts = []
        for half in (_loosened(h, margin) for h in clause):
            left = _smt_sum([(f, named[n[0]][int(n[2:])]) for n, f in half.terms.items()], ZERO)
            parts.append(f"({'<' if half.strict else '<='} {left} {_smt_number(half.bound)})")
        clauses.append(f"(and true {' '.join(parts)})")
    yield f"(assert (or false {' '.join(clauses)}))"


def _smt_number(value: Fraction) -> str:
    size = f"(/ {abs(value.numerator)}.0 {value.denominator}.0)"
    return f"(- {size})" if value < 0 else size


def _smt_sum(terms: Sequence[tuple[Fraction, str]], constant: Fraction) -> str:
    return (
        f"(+ {_smt_number(constant)} 0.0 {' '.join(f'(* {_smt_number(f)} {name})' for f, name in terms)})"
    )


#: Beyond these limits, only z3 is used: the patterns would take seconds.
MOST_RELUS, MOST_RELUS_TIMES_INPUTS = 6, 36
#: Of the other questions, one in this many goes to both.
BOTH_EVERY = 4


def relus_of(layers: Sequence[OracleLayer]) -> int:
    """How many ReLUs follow an affine layer."""
    return sum(len(a.bias) for a, b in pairwise(layers) if b.rectified and not a.rectified)


@lru_cache(maxsize=4096)
def is_sat(network: bytes, property_: bytes, *, margin: Fraction = ZERO) -> bool:
    """z3's opinion and, for a part of the small networks, that of the patterns: they must agree."""
    answer = sat_by_z3(network, property_, margin=margin)
    relus, inputs = relus_of(layers_of(network)), len(question_of(property_).box)
    small = relus <= MOST_RELUS and relus * inputs <= MOST_RELUS_TIMES_INPUTS
    if small and zlib.crc32(network + property_) % BOTH_EVERY == 0:
        assert answer == sat_by_patterns(network, property_, margin=margin), "the two oracles disagree"
    return answer


class ReluOracle(Oracle):
    """Knows every answer, exactly, for small networks of affine layers and ReLUs in a row."""

    def is_true(self, instance: Instance, truth: Truth, *, margin: bool) -> bool:
        """Whether label and witness are right and, if asked, the margin over the reals."""
        claimed = truth.claims[Semantics.REAL].margin or ZERO
        if truth.label is Label.SAT:
            found = unsafe_by(instance.network_file, instance.property_file, truth.witness or ())
            return found is not None and (not margin or found >= claimed)
        wanted = claimed if margin else ZERO
        return not is_sat(instance.network_file, instance.property_file, margin=wanted)
