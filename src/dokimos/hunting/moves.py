"""What may make a question smaller. Each move is tried, proven and asked by itself; none need be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import floor, log2, prod
from typing import TypeVar

import numpy as np
from onnx import load_from_string

from dokimos.core.errors import DokimosError
from dokimos.engine.runtimes.sessions import intermediate_values
from dokimos.hunting.file_graph import FileGraph, FileNode, NoChange, Values
from dokimos.hunting.slicing import Removal, Slicer, refitted
from dokimos.hunting.specimen import Specimen, digits_of
from dokimos.networks.graph import Shape
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point, Property
from dokimos.suites.vnnlib.violation import violation_at

#: Makes a smaller specimen. Raises NoChange where that does not work.
Move = Callable[[], Specimen]
Moves = Iterator[Move]
T = TypeVar("T")


def chunks(count: int) -> Iterator[range]:
    """Ranges of indices: halves first, then quarters, and so on to single ones."""
    size = max(1, count // 2)
    while True:
        for start in range(0, count, size):
            yield range(start, min(start + size, count))
        if size == 1:
            return
        size //= 2


# The property


def plain_text(specimen: Specimen) -> Moves:
    """The property as we write it, and the network without clutter."""
    if specimen.text is not None:
        yield lambda: replace(specimen, text=None, graph=specimen.graph.tidied())
        yield lambda: replace(specimen, text=None)
    yield lambda: replace(specimen, graph=specimen.graph.tidied())


def fewer_conditions(specimen: Specimen) -> Moves:
    """Cases, disjuncts, constraints and terms that go."""
    if specimen.text is not None:
        return
    asked = specimen.asked
    if specimen.witness is not None and (len(asked.cases) > 1 or len(asked.cases[0].any_of) > 1):
        yield partial(_alone, specimen)
    for cases in _one_less(asked.cases):
        yield partial(_with_cases, specimen, cases)
    for number, case in enumerate(asked.cases):
        for any_of in _one_less(case.any_of):
            yield partial(_with_case, specimen, number, replace(case, any_of=any_of))
        for k, conjunction in enumerate(case.any_of):
            for shorter in _one_less(conjunction):
                yield partial(_with_conjunction, specimen, number, k, shorter)
            for at, one in enumerate(conjunction):
                for term in one.outputs if len(one.outputs) > 1 else ():
                    yield partial(_without_term, specimen, number, k, at, term)


def _without_term(specimen: Specimen, number: int, k: int, at: int, term: tuple[int, Fraction]) -> Specimen:
    """A constraint on one output less: what that is at the witness, about, counts towards the bound."""
    conjunction = specimen.asked.cases[number].any_of[k]
    one, (output, factor) = conjunction[at], term
    value = float(values_at(specimen, specimen.graph.output).reshape(-1)[output])
    left = tuple(each for each in one.outputs if each != term)
    fixed = replace(one, outputs=left, bound=one.bound - factor * Fraction(round(64 * value), 64))
    return _with_conjunction(specimen, number, k, (*conjunction[:at], fixed, *conjunction[at + 1 :]))


def _with_conjunction(specimen: Specimen, number: int, k: int, conjunction: Conjunction) -> Specimen:
    case = specimen.asked.cases[number]
    any_of = (*case.any_of[:k], conjunction, *case.any_of[k + 1 :])
    return _with_case(specimen, number, replace(case, any_of=any_of))


def _one_less(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Without one of the items, unless it is the only one."""
    for k in range(len(items)) if len(items) > 1 else ():
        yield (*items[:k], *items[k + 1 :])


def _alone(specimen: Specimen) -> Specimen:
    """The conjunction that the witness meets by most."""
    assert specimen.witness is not None
    y = exact_outputs(specimen)
    met = [
        (min(one.slack(specimen.witness, y) for one in conjunction), number, k)
        for number, case in enumerate(specimen.asked.cases)
        for k, conjunction in enumerate(case.any_of)
        if specimen.witness in case.box and conjunction
    ]
    if not met:
        raise NoChange("no conjunction holds")
    _, number, k = max(met, key=lambda each: each[0])
    case = specimen.asked.cases[number]
    return _with_cases(specimen, (replace(case, any_of=(case.any_of[k],)),))


def exact_outputs(specimen: Specimen) -> tuple[Fraction, ...]:
    """The outputs at the witness."""
    assert specimen.witness is not None
    try:
        return violation_at(read_onnx(specimen.network), specimen.asked, specimen.witness).outputs.upper
    except DokimosError as error:
        raise NoChange(str(error)) from error


def with_first_constraint(specimen: Specimen) -> Specimen:
    """With the first constraint alone."""
    case = specimen.asked.cases[0]
    return _with_cases(specimen, (replace(case, any_of=(case.any_of[0][:1],)),))


def _with_cases(specimen: Specimen, cases: tuple[Case, ...]) -> Specimen:
    return replace(specimen, asked=replace(specimen.asked, cases=cases))


def _with_case(specimen: Specimen, number: int, case: Case) -> Specimen:
    cases = specimen.asked.cases
    return _with_cases(specimen, (*cases[:number], case, *cases[number + 1 :]))


# The graph: nodes that go, inputs that are fixed, units that are dropped


def fewer_nodes(specimen: Specimen) -> Moves:
    """Nodes that hand on what they read, are constant, or are one with the next."""
    graph = specimen.graph
    for node in reversed(graph.nodes):
        for name in node.inputs:
            if name and name not in graph.constants:
                yield partial(bypassed, specimen, node, name)
        yield partial(_frozen, specimen, node)
        yield partial(_merged, specimen, node)
        yield partial(_without_bias, specimen, node)
    for node in graph.nodes:
        yield partial(_simpler, specimen, node)
        for name in node.attributes:
            yield partial(plain_attribute, specimen, node, name)


def bypassed(specimen: Specimen, node: FileNode, name: str) -> Specimen:
    """Without a node: what read it reads what the node read."""
    graph = specimen.graph
    if graph.output == node.output and name == graph.input:
        raise NoChange("no node would be left")
    after = graph.redirected(node.output, name)
    if graph.shapes[name] != graph.shapes[node.output]:
        after = after if graph.output == node.output else refitted(graph, after).folded()
    return _with_outputs_of(replace(specimen, graph=after))


def _with_outputs_of(specimen: Specimen) -> Specimen:
    """The property about as many outputs as the network has now, if all that it names are among them."""
    size, asked = prod(specimen.graph.shapes[specimen.graph.output]), specimen.asked
    if size == asked.output_size:
        return specimen
    named = {j for case in asked.cases for part in case.any_of for one in part for j, _ in one.outputs}
    if specimen.text is not None or max(named, default=0) >= size:
        raise NoChange("a constraint is about an output that would be gone")
    return replace(specimen, asked=_sized(asked, asked.cases, outputs=size))


def _frozen(specimen: Specimen, node: FileNode) -> Specimen:
    """What a node writes is what it is at the witness, or in the middle of the box."""
    if node.output == specimen.graph.output:
        raise NoChange("the output would be constant")
    value = values_at(specimen, node.output)
    graph = specimen.graph
    nodes = tuple(each for each in graph.nodes if each is not node)
    after = replace(graph, nodes=nodes).with_constants({node.output: value})
    return replace(specimen, graph=after.folded())


def values_at(specimen: Specimen, tensor: str) -> Values:
    """A tensor at the witness, or in the middle of the box."""
    point = specimen.witness or specimen.asked.cases[0].box.centre
    try:
        network = read_onnx(specimen.network)
        model = load_from_string(specimen.network)
        _, found = intermediate_values(model, network, [tensor], point)
    except DokimosError as error:
        raise NoChange(str(error)) from error
    if tensor not in found:
        raise NoChange("its value is not known")
    return np.asarray(found[tensor], dtype=np.float32).reshape(specimen.graph.shapes[tensor])


def _matrix(graph: FileGraph, node: FileNode) -> tuple[Values, Values]:
    """The weight, inputs by outputs, and the bias of an affine layer of rows."""
    if node.op not in ("Gemm", "MatMul", "Add", "Sub", "Mul") or node.inputs[0] in graph.constants:
        raise NoChange("no affine layer")
    width = graph.shapes[node.output][-1]
    if len(graph.shapes[node.output]) != 2 or graph.shapes[node.output][0] != 1:
        raise NoChange("no row")
    second = graph.constants.get(node.inputs[1])
    if second is None:
        raise NoChange("no affine layer")
    second = second.astype(np.float64)
    if node.op in ("Add", "Sub", "Mul"):
        row = np.broadcast_to(second.reshape(-1), (width,)) if second.ndim < 3 else None
        if row is None or graph.shapes[node.inputs[0]] != graph.shapes[node.output]:
            raise NoChange("no affine layer")
        sign = {"Add": 1.0, "Sub": -1.0, "Mul": 0.0}[node.op]
        return (np.eye(width), sign * row) if sign else (np.diag(row), np.zeros(width))
    if second.ndim != 2 or node.number("transA", 0):
        raise NoChange("no affine layer")
    alpha, beta = (float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    weight = alpha * (second.T if node.number("transB", 0) else second)
    bias = graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1)
    if bias is None:
        raise NoChange("no affine layer")
    return weight, beta * np.broadcast_to(bias.astype(np.float64).reshape(-1), (width,))


def _merged(specimen: Specimen, node: FileNode) -> Specimen:
    """An affine layer and the one before it as one, if nothing else reads that."""
    graph = specimen.graph
    before = graph.writer(node.inputs[0])
    if before is None or len(graph.readers(before.output)) != 1:
        raise NoChange("there is no layer before it")
    (first, shift), (second, last) = _matrix(graph, before), _matrix(graph, node)
    names = f"{node.output}_w", f"{node.output}_b"
    gemm = FileNode("Gemm", (before.inputs[0], *names), node.output, {})
    nodes = tuple(gemm if each is node else each for each in graph.nodes if each is not before)
    weights = ((first @ second).astype(np.float32), (shift @ second + last).astype(np.float32))
    after = replace(graph, nodes=nodes).with_constants(dict(zip(names, weights, strict=True)))
    return replace(specimen, graph=after.pruned())


def _without_bias(specimen: Specimen, node: FileNode) -> Specimen:
    if node.op not in ("Gemm", "Conv", "ConvTranspose") or len(node.inputs) < 3:
        raise NoChange("it has no bias")
    after = specimen.graph.with_node(node, replace(node, inputs=node.inputs[:2]))
    return replace(specimen, graph=after.pruned())


#: Operators and what may take their place.
_SIMPLER = {"LeakyRelu": "Relu", "PRelu": "Relu", "Elu": "Relu", "Selu": "Relu", "Gemm": "MatMul"}


def _simpler(specimen: Specimen, node: FileNode) -> Specimen:
    """A simpler operator that reads the same."""
    if node.op not in _SIMPLER or (node.op == "Gemm" and len(node.inputs) > 2):
        raise NoChange("there is no simpler operator")
    graph, kept = specimen.graph, node.inputs[: 2 if node.op == "Gemm" else 1]
    if node.op == "Gemm":
        weight, _ = _matrix(graph, node)
        graph = graph.with_constants({node.inputs[1]: weight.astype(np.float32)})
    after = graph.with_node(node, FileNode(_SIMPLER[node.op], kept, node.output, {}))
    return replace(specimen, graph=after.pruned())


def plain_attribute(specimen: Specimen, node: FileNode, name: str) -> Specimen:
    """A node without an attribute, or with the transposed weight that it stands for."""
    graph = specimen.graph
    attributes = {key: value for key, value in node.attributes.items() if key != name}
    changed: Mapping[str, Values] = {}
    if name == "transB" and node.inputs[1] in graph.constants:
        weight = graph.constants[node.inputs[1]]
        changed = {node.inputs[1]: np.ascontiguousarray(weight.T) if node.attributes[name] else weight}
    after = graph.with_constants(changed).with_node(node, replace(node, attributes=attributes))
    return _with_outputs_of(replace(specimen, graph=refitted(graph, after)))


def fewer_inputs(specimen: Specimen) -> Moves:
    """Inputs that are fixed at the witness, or images that are smaller."""
    if specimen.text is not None:
        return
    shape = specimen.graph.shape
    for axis in range(1, len(shape)):
        if shape[axis] == 1:
            continue
        if axis == 1 or len(shape) < 3:
            for chunk in chunks(shape[axis]):
                yield partial(_fixed, specimen, axis, tuple(chunk))
        else:
            for size in sorted({1, shape[axis] // 2, shape[axis] - 1} - {0}):
                yield partial(_cropped, specimen, axis, size)


def _fixed(specimen: Specimen, axis: int, entries: tuple[int, ...]) -> Specimen:
    graph, point = specimen.graph, specimen.witness or specimen.asked.cases[0].box.centre
    fixed = {entry: float(point[entry]) for entry in entries} if len(point) == graph.shape[axis] else {}
    slicer = Slicer(graph)
    after = slicer.without_inputs(Removal(axis, entries), fixed)
    kept = np.delete(np.arange(graph.input_size).reshape(graph.shape), entries, axis)
    return _with_inputs(specimen, after, kept, slicer.outputs)


def smaller_kernels(specimen: Specimen) -> Moves:
    """Convolutions with smaller kernels, on images that are smaller by as much, or padded by less."""
    graph = specimen.graph
    for node in graph.nodes if specimen.text is None else ():
        weight = graph.constants.get(node.inputs[1]) if node.op == "Conv" else None
        for axis in range(2, 0 if weight is None else weight.ndim):
            for start in (0, 1):
                for less_input in (True, False):
                    yield partial(_smaller_kernel, specimen, node, axis, start, less_input)


def _smaller_kernel(
    specimen: Specimen, node: FileNode, axis: int, start: int, less_input: bool
) -> Specimen:
    graph, weight = specimen.graph, specimen.graph.constants[node.inputs[1]]
    size = weight.shape[axis]
    if size < 2:
        raise NoChange("the kernel is one wide")
    kept = weight.take(range(start, start + size - 1), axis=axis)
    attributes = {key: value for key, value in node.attributes.items() if key != "kernel_shape"}
    changed = graph.with_constants({node.inputs[1]: kept})
    changed = changed.with_node(node, replace(node, attributes=attributes))
    if not less_input:
        return replace(specimen, graph=refitted(graph, changed).pruned())
    if node.inputs[0] != graph.input or graph.shape[axis] < 2:
        raise NoChange("it does not read the input")
    shape = tuple(n - (k == axis) for k, n in enumerate(graph.shape))
    every = np.arange(graph.input_size).reshape(graph.shape)
    places = every.take(range(start, start + shape[axis]), axis=axis)
    return _with_inputs(specimen, replace(changed, shape=shape).pruned(), places, ())


def _cropped(specimen: Specimen, axis: int, size: int) -> Specimen:
    graph = specimen.graph
    shape: Shape = tuple(size if k == axis else n for k, n in enumerate(graph.shape))
    after = refitted(graph, replace(graph, shape=shape))
    kept = np.arange(graph.input_size).reshape(graph.shape)[tuple(slice(n) for n in shape)]
    return _with_inputs(specimen, after, kept, ())


def _with_inputs(specimen: Specimen, graph: FileGraph, kept: Values, outputs: tuple[int, ...]) -> Specimen:
    """The specimen with some of the inputs, renumbered."""
    numbers = [int(k) for k in kept.reshape(-1)]
    place = {old: new for new, old in enumerate(numbers)}

    def chosen(point: Point) -> Point:
        return tuple(point[k] for k in numbers)

    def constraint(one: Linear) -> Linear:
        if any(index not in place for index, _ in one.inputs):
            raise NoChange("a constraint is about this input")
        return replace(one, inputs=tuple((place[index], factor) for index, factor in one.inputs))

    cases = tuple(
        Case(
            Box(chosen(case.box.lower), chosen(case.box.upper)),
            tuple(tuple(map(constraint, conjunction)) for conjunction in case.any_of),
        )
        for case in specimen.asked.cases
    )
    witness = None if specimen.witness is None else chosen(specimen.witness)
    found = replace(
        specimen, graph=graph, asked=_sized(specimen.asked, cases, inputs=len(numbers)), witness=witness
    )
    return _without_outputs(found, outputs)


def _sized(
    asked: Property, cases: tuple[Case, ...], *, inputs: int | None = None, outputs: int | None = None
) -> Property:
    (network,) = asked.networks
    if inputs is not None:
        network = replace(network, input_shape=(inputs,))
    if outputs is not None:
        network = replace(network, output_shape=(outputs,))
    return replace(asked, networks=(network,), cases=cases)


def _without_outputs(specimen: Specimen, gone: tuple[int, ...]) -> Specimen:
    """The property without outputs that are no longer there."""
    if not gone:
        return specimen
    if specimen.text is not None:
        raise NoChange("the text names all outputs")
    left = [j for j in range(specimen.asked.output_size) if j not in gone]
    place = {old: new for new, old in enumerate(left)}

    def constraint(one: Linear) -> Linear:
        if any(index not in place for index, _ in one.outputs):
            raise NoChange("a constraint is about this output")
        return replace(one, outputs=tuple((place[index], factor) for index, factor in one.outputs))

    cases = tuple(
        replace(case, any_of=tuple(tuple(map(constraint, each)) for each in case.any_of))
        for case in specimen.asked.cases
    )
    return replace(specimen, asked=_sized(specimen.asked, cases, outputs=len(left)))


def fewer_units(specimen: Specimen) -> Moves:
    """Units and channels that are dropped, layer by layer."""
    for node in specimen.graph.nodes:
        if node.op in ("Gemm", "MatMul", "Conv", "ConvTranspose"):
            width = specimen.graph.shapes[node.output][-1 if node.op in ("Gemm", "MatMul") else 1]
            for chunk in chunks(width) if width > 1 else ():
                yield partial(_dropped, specimen, node, tuple(chunk))


def _dropped(specimen: Specimen, node: FileNode, entries: tuple[int, ...]) -> Specimen:
    slicer = Slicer(specimen.graph)
    (own,) = [each for each in slicer.graph.nodes if each.output == node.output]
    return _without_outputs(replace(specimen, graph=slicer.without_units(own, entries)), slicer.outputs)


# Numbers: to zero, then to short ones


def more_zeros(specimen: Specimen) -> Moves:
    """Weights that become zero."""
    for name, values in specimen.graph.floats():
        places = np.flatnonzero(values)
        for chunk in chunks(len(places)) if len(places) else ():
            yield partial(_set, specimen, name, places[list(chunk)], 0.0)


def _set(specimen: Specimen, name: str, places: Values, value: float) -> Specimen:
    values = specimen.graph.constants[name].copy()
    values.reshape(-1)[places] = value
    return replace(specimen, graph=specimen.graph.with_constants({name: values}))


def shorter_weights(specimen: Specimen) -> Moves:
    """Weights that are rounded: whole tensors, then one by one."""
    for name, values in specimen.graph.floats():
        for rounding in (_power_of_two, _one_digit, _two_bits):
            yield partial(_rounded, specimen, name, rounding)
        for place, value in enumerate(values.reshape(-1)):
            for short in _shorter(float(value)):
                at = np.array([place])
                yield partial(_set, specimen, name, at, short)


def _rounded(specimen: Specimen, name: str, rounding: Callable[[float], float]) -> Specimen:
    values = specimen.graph.constants[name]
    found = np.array([rounding(float(x)) for x in values.reshape(-1)], dtype=values.dtype)
    after = specimen.graph.with_constants({name: found.reshape(values.shape)})
    return replace(specimen, graph=after)


def _power_of_two(value: float) -> float:
    return float(np.copysign(2.0 ** floor(log2(abs(value)) + 0.5), value)) if value else 0.0


def _one_digit(value: float) -> float:
    return float(f"{value:.0e}")


def _two_bits(value: float) -> float:
    if not value:
        return 0.0
    unit = 2.0 ** (floor(log2(abs(value))) - 1)
    return round(value / unit) * unit


def _shorter(value: float) -> list[float]:
    """Shorter numbers near one, the shortest first."""
    if not value:
        return []
    near = {1.0, -1.0, float(round(value)), _power_of_two(value), _one_digit(value), _two_bits(value)}
    near |= {_power_of_two(value * 8), _power_of_two(value / 8)} if abs(value) > 1 else set()
    near |= {_power_of_two(value * 2)} if abs(value) < 1 else set()
    known = {x for x in near if x and np.isfinite(x)}
    return sorted((x for x in known if digits_of(x) < digits_of(value)), key=lambda x: (digits_of(x), -x))


def shorter_box(specimen: Specimen) -> Moves:
    """The witness and the ends of the boxes as shorter numbers."""
    if specimen.text is not None:
        return
    if specimen.witness is not None:
        for k, x in enumerate(specimen.witness):
            for near in _near(x):
                yield partial(_with_witness, specimen, k, near)
    for number, case in enumerate(specimen.asked.cases):
        for side, k in product(("lower", "upper"), range(case.box.size)):
            for end in _near(getattr(case.box, side)[k]):
                yield partial(_with_end, specimen, number, side, k, end)


def _near(x: Fraction) -> list[Fraction]:
    """Shorter numbers near one, in both directions."""
    found = {Fraction(0), Fraction(1), Fraction(-1)}
    for step in (Fraction(1), Fraction(1, 2), Fraction(1, 8), Fraction(1, 64)):
        found |= {floor(x / step) * step, -floor(-x / step) * step}
    return sorted(
        (each for each in found if digits_of(float(each)) < digits_of(float(x))),
        key=lambda each: (digits_of(float(each)), each),
    )


def _with_witness(specimen: Specimen, k: int, x: Fraction) -> Specimen:
    assert specimen.witness is not None
    return replace(specimen, witness=_changed(specimen.witness, k, x))


def _with_end(specimen: Specimen, number: int, side: str, k: int, end: Fraction) -> Specimen:
    case = specimen.asked.cases[number]
    box = replace(case.box, **{side: _changed(getattr(case.box, side), k, end)})
    return _with_case(specimen, number, replace(case, box=box))


def _changed(point: Point, k: int, x: Fraction) -> Point:
    return (*point[:k], x, *point[k + 1 :])


#: All moves, in the order in which they are tried: what takes much away first, numbers last.
PASSES: tuple[Callable[[Specimen], Moves], ...] = (
    plain_text,
    fewer_conditions,
    fewer_nodes,
    fewer_inputs,
    smaller_kernels,
    fewer_units,
    more_zeros,
    shorter_weights,
    shorter_box,
)
