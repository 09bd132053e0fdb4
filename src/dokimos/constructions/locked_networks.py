"""Puts a parity lock beside a network: dense layers side by side, or as a branch of any ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dokimos.checker.check import prove
from dokimos.constructions.draft import Draft
from dokimos.constructions.parity_gate import LockShape, Matrix, ParityLock, draw_lock
from dokimos.core.errors import ConstructionFailed, DokimosError
from dokimos.networks.chain import Chain, Layer
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.writing.builder import as_float32
from dokimos.suites.instance import Certificate, Instance, Label
from dokimos.suites.vnnlib.model import Box, Case, Linear, Point, Property
from dokimos.suites.vnnlib.writer import write_vnnlib1

Dense = tuple[Matrix, Matrix]
#: Files of older versions list constants as inputs, too.
_CONSTANTS_NEED_NO_INPUT = 4


@dataclass(frozen=True)
class LockedChain:
    """The network with the lock, and how many ReLUs of the base come before the lock's in each layer."""

    chain: Chain
    before: tuple[int, ...]


def lock_chain(base: Chain, lock: ParityLock, effect: Sequence[Fraction]) -> LockedChain:
    """The base with `effect`[i] times the gate added to output i.

    The layers lie side by side; the one that ends earlier is carried on by rectified copies, which change
    nothing, since rectified values are not negative. Raises ConstructionFailed if a hidden layer of the
    base is not rectified.
    """
    hidden = [(_wide(layer.weight), _wide(layer.bias)) for layer in base.layers[:-1]]
    if not hidden or any(not layer.rectified for layer in base.layers[:-1]) or base.layers[-1].rectified:
        raise ConstructionFailed(
            "A lock needs dense layers with a ReLU after each but the last; this network has others."
        )
    depth = max(len(hidden), len(lock.layers))
    left, right = _lengthened(hidden, depth), _lengthened(lock.layers, depth)
    layers = [_layer(np.vstack([left[0][0], right[0][0]]), left[0][1], right[0][1])]
    layers += [
        _layer(_block_diagonal(a[0], b[0]), a[1], b[1]) for a, b in zip(left[1:], right[1:], strict=True)
    ]
    last = base.layers[-1]
    column = as_float32(list(effect))[:, None]
    layers.append(Layer(np.hstack([last.weight, column]), last.bias, False))
    return LockedChain(Chain(base.input_shape, tuple(layers)), tuple(len(bias) for _, bias in left))


def lock_branch(network: bytes, lock: ParityLock, effect: Sequence[Fraction]) -> bytes:
    """Any network with `effect`[i] times the gate added to output i: the lock is a separate branch.

    The nodes of the network stay as they are, so that whatever is proven of it is true of what the sum is
    made of. Raises ConstructionFailed if its output is not of shape [1, outputs].
    """
    model = onnx.load_from_string(network)
    graph = model.graph
    names = {i.name for i in graph.initializer}
    (given,) = (i for i in graph.input if i.name not in names)
    (output,) = graph.output
    if len(output.type.tensor_type.shape.dim) != 2:
        raise ConstructionFailed(
            "A lock needs an output of shape [1, outputs]; this network's output has another shape."
        )
    prefix = "lock"
    used = {name for node in graph.node for name in (*node.input, *node.output)} | names
    while any(name.startswith(prefix) for name in used):
        prefix += "_"
    nodes: list[onnx.NodeProto] = []

    def constant(values: object, name: str) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(values), f"{prefix}_{name}"))
        return f"{prefix}_{name}"

    def node(op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"{prefix}_{name}"], **attributes))
        return f"{prefix}_{name}"

    rank = len(given.type.tensor_type.shape.dim)
    last = given.name
    if rank == 1:
        last = node("Reshape", [last, constant(np.array([1, -1]), "shape")], "flat")
    elif rank > 2:
        last = node("Flatten", [last], "flat", axis=1)
    for k, (weight, bias) in enumerate(lock.layers):
        row = [last, constant(as_float32(weight), f"w{k}"), constant(as_float32(bias), f"b{k}")]
        last = node("Relu", [node("Gemm", row, f"z{k}", transB=1)], f"v{k}")
    column = constant(as_float32(list(effect))[:, None], "effect")
    # Gemm could not do without a bias before version 11.
    version = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
    zero = [] if version >= 11 else [constant(np.zeros(len(effect), dtype=np.float32), "zero")]
    added = node("Gemm", [last, column, *zero], "added", transB=1)
    base = f"{prefix}_base"
    for one in graph.node:
        for side in (one.input, one.output):
            side[:] = [base if name == output.name else name for name in side]
    kept = list(graph.node)
    del graph.node[:]
    graph.node.extend([*kept, *nodes, helper.make_node("Add", [base, added], [output.name])])
    if model.ir_version < _CONSTANTS_NEED_NO_INPUT:
        graph.input.extend(
            helper.make_tensor_value_info(one.name, one.data_type, one.dims)
            for one in graph.initializer
            if one.name not in names
        )
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        reason = str(error).splitlines()[0]
        raise ConstructionFailed(f"A lock cannot be added to this ONNX file: {reason}") from None
    return bytes(model.SerializeToString(deterministic=True))


def _wide(values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Matrix:
    return values.astype(np.float64)


def _lengthened(layers: Sequence[Dense], depth: int) -> list[Dense]:
    size = len(layers[-1][1])
    copy = np.eye(size), np.zeros(size)
    return [*layers, *[copy] * (depth - len(layers))]


def _layer(weight: Matrix, *biases: Matrix) -> Layer:
    return Layer(as_float32(weight), as_float32(np.concatenate(biases)), True)


def _block_diagonal(a: Matrix, b: Matrix) -> Matrix:
    return np.block([[a, np.zeros((a.shape[0], b.shape[1]))], [np.zeros((b.shape[0], a.shape[1])), b]])


# A lock on any robust draft: the pair of instances that differ in one right-hand side


#: Fewer inputs give too few bits to hide anything in.
LEAST_INPUTS = 25
#: `unsat` is also proven on a box that is this much larger on every side.
ENLARGED = Fraction(1, 10_000)
#: The violation holds within this share of the box's width around the witness.
VIOLATING_SHARE = Fraction(1, 100)
#: Its margin is at least this, and this share of the largest output.
LEAST_MARGIN, MARGIN_SHARE = Fraction(1, 256), Fraction(1, 1000)
#: Effects are multiples of 2^-EFFECT_BITS of the power of two below them.
EFFECT_BITS = 6


@dataclass(frozen=True)
class LockedPair:
    """The base with a lock that no input opens, and with a lock that opens in one cell."""

    shut: Draft
    opened: Draft
    #: Whether the label `unsat` is proven on the enlarged box, too.
    is_proven_enlarged: bool


def lock_draft(
    robust: Draft, shape: LockShape, rng: np.random.Generator, *, timeout_seconds: float = 60.0
) -> LockedPair:
    """The pair that a lock makes of a robust draft.

    Raises ConstructionFailed if the network has too few inputs, or no output of its property can be
    changed.
    """
    network = read_onnx(robust.network)
    case = robust.question.cases[0]
    lock = draw_lock(shape, case.box, rng)
    grid = rng.integers(1, 16, size=case.box.size)
    elsewhere = [
        low + Fraction(int(k), 16) * (high - low)
        for k, low, high in zip(grid, case.box.lower, case.box.upper, strict=True)
    ]
    witness = lock.centre(elsewhere)
    effect = _effect(robust.network, case, witness, lock, network.output_size)
    shut = ParityLock(lock.shape, lock.inputs, lock.digits, lock.system.inconsistent())
    data = {
        **shut.certificate_data(),
        "kind": robust.certificate.kind,
        "data": dict(robust.certificate.data),
    }
    closed = Draft(
        lock_branch(robust.network, shut, effect), robust.question, Certificate("parity-lock", data)
    )
    opened = Draft(
        lock_branch(robust.network, lock, effect), robust.question, Certificate("witness"), witness
    )
    return LockedPair(closed, opened, is_proven_on_enlarged(robust))


def _effect(network: bytes, case: Case, witness: Point, lock: ParityLock, outputs: int) -> list[Fraction]:
    """What the gate adds to each output, so that a conjunction of the case holds around the witness."""
    for conjunction in case.any_of:
        if len(conjunction) == 1 and conjunction[0].outputs:
            return _effect_on(network, case.box, conjunction[0], witness, lock, outputs)
    raise ConstructionFailed(
        "A lock needs a property with a single output constraint that alone makes an output unsafe; this "
        "one has none."
    )


def _effect_on(
    network: bytes, box: Box, wanted: Linear, witness: Point, lock: ParityLock, outputs: int
) -> list[Fraction]:
    """For a·y <= b: the negative of a, times as much as a·y may exceed b around the witness and more."""
    near = _around(box, witness)
    values = enclose(read_onnx(network), near.lower, near.upper)[read_onnx(network).output]
    low, high = values.lower.reshape(-1), values.upper.reshape(-1)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ConstructionFailed("The outputs have no finite bounds around the witness of the lock.")
    most = sum((a * Fraction(float(high[j] if a > 0 else low[j])) for j, a in wanted.outputs), Fraction(0))
    most += sum((a * (near.upper[i] if a > 0 else near.lower[i]) for i, a in wanted.inputs), Fraction(0))
    largest = Fraction(float(max(np.abs(low).max(), np.abs(high).max())))
    margin = max(LEAST_MARGIN, MARGIN_SHARE * largest, (most - wanted.bound) / 4)
    square = sum((a * a for _, a in wanted.outputs), Fraction(0))
    factor = _rounded_up((most - wanted.bound + margin) / (lock.shape.opening * square))
    effect = [Fraction(0)] * outputs
    for j, a in wanted.outputs:
        effect[j] = -a * factor
    return effect


def _around(box: Box, centre: Point) -> Box:
    reach = [VIOLATING_SHARE * (high - low) for low, high in zip(box.lower, box.upper, strict=True)]
    return Box(
        tuple(max(x - r, low) for x, r, low in zip(centre, reach, box.lower, strict=True)),
        tuple(min(x + r, high) for x, r, high in zip(centre, reach, box.upper, strict=True)),
    )


def _rounded_up(value: Fraction) -> Fraction:
    """A number of few bits that is not below a positive one."""
    unit = Fraction(1)
    while value < unit:
        unit /= 2
    while value >= 2 * unit:
        unit *= 2
    step = unit / (1 << EFFECT_BITS)
    return ceil(value / step) * step


def enlarged_question(question: Property) -> Property:
    """The same question on boxes that are larger by ENLARGED on every side."""
    cases = tuple(Case(enlarged_box(case.box), case.any_of) for case in question.cases)
    return Property(question.networks, cases)


def enlarged_box(box: Box) -> Box:
    """The box, larger by ENLARGED on every side."""
    return Box(tuple(x - ENLARGED for x in box.lower), tuple(x + ENLARGED for x in box.upper))


def is_proven_on_enlarged(robust: Draft) -> bool:
    """Whether the draft's own certificate also proves `unsat` on the enlarged boxes."""
    text = write_vnnlib1(enlarged_question(robust.question)).encode("ascii")
    try:
        prove(Instance("enlarged", robust.network, text), robust.certificate, Label.UNSAT, None)
    except DokimosError:
        return False
    return True


def shape_of(bits: int, inputs: int, *, weight: int = 7) -> LockShape:
    """A lock of that many bits for that many inputs, with as few bits from each input as possible."""
    levels = max(1, -(-bits // inputs))
    if levels > 8:
        raise ConstructionFailed(f"{inputs} inputs give at most {8 * inputs} bits, not {bits}.")
    odd = min(weight, bits - 1 if bits % 2 == 0 else max(1, bits - 2))
    return LockShape(bits=bits, levels=levels, weight=max(1, odd), steepness=2 ** (levels + 2))
