"""Ways to misread a network, and a property."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.networks.graph import Attribute, Network, Node, output_shape
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point, Property
from dokimos.verifiers.planted.base import Misreader

# Ways to misread a network


#: New constants by their names.
Arrays = Mapping[str, NDArray[Any]]
#: What a node is replaced by (the last one writes its output), and new constants; None if it stays.
Change = Callable[[Network, Node], tuple[tuple[Node, ...], Arrays] | None]

NO_ARRAYS: Arrays = MappingProxyType({})


def misread(network: Network, change: Change) -> Network:
    """The network with `change` applied to every node; the same object if it changes none."""
    for node in network.nodes:
        found = change(network, node)
        if found is not None:
            network = _with(network, node, *found) or network
    return network


def _with(network: Network, old: Node, new: tuple[Node, ...], arrays: Arrays) -> Network | None:
    """The network with `new` for `old`; None if shapes no longer fit, which every tool would notice."""
    place = network.nodes.index(old)
    nodes = (*network.nodes[:place], *new, *network.nodes[place + 1 :])
    constants = {**network.constants, **arrays}
    shapes = {**network.shapes, **{name: array.shape for name, array in arrays.items()}}
    try:
        for node in nodes[place:]:
            shapes[node.output] = output_shape(node, [shapes[name] if name else () for name in node.inputs])
    except (ValueError, IndexError):
        return None
    if shapes[network.output] != network.output_shape:
        return None
    return replace(network, nodes=nodes, constants=constants, shapes=shapes)


def in_each(change: Change) -> Callable[[Network], Network]:
    """The network with every node changed that `change` gives others for."""
    return lambda network: misread(network, change)


def _one(place: int, change: Change) -> Callable[[Network], Network]:
    """Only the first (0) or the last (-1) of the nodes that would change."""

    def rule(network: Network) -> Network:
        changed = [node for node in network.nodes if change(network, node) is not None]
        if not changed:
            return network
        return misread(network, lambda n, node: change(n, node) if node is changed[place] else None)

    return rule


def _attributes(ops: tuple[str, ...], **changed: Attribute) -> Change:
    """Attributes read as these."""

    def change(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
        if node.op not in ops or all(node.attributes[name] == value for name, value in changed.items()):
            return None
        return (replace(node, attributes={**node.attributes, **changed}),), NO_ARRAYS

    return change


def _copy(network: Network, source: str, node: Node) -> tuple[tuple[Node, ...], Arrays]:
    """The output of `node` is just the tensor `source`."""
    shape = network.shapes[node.output]
    return (Node("Reshape", (source,), node.output, {"shape": shape}),), NO_ARRAYS


def _copied(op: str) -> Change:
    """An operator that only hands its input on."""
    return lambda network, node: _copy(network, node.inputs[0], node) if node.op == op else None


def _without_bias(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op in ("Conv", "Gemm") and len(node.inputs) > 2 and node.inputs[2]:
        return (replace(node, inputs=node.inputs[:2]),), NO_ARRAYS
    if node.op == "Add" and node.inputs[1] in network.constants:
        return _copy(network, node.inputs[0], node)
    return None


def _left_constant(network: Network, node: Node) -> NDArray[Any] | None:
    """C, where the node is C·X."""
    if node.op != "MatMul" or node.inputs[1] in network.constants:
        return None
    return network.constants.get(node.inputs[0])


def _transposed_product(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    constant = _left_constant(network, node)
    if constant is None or constant.ndim < 2:
        return None
    name = f"{node.inputs[0]} transposed"
    turned = np.ascontiguousarray(np.swapaxes(constant, -1, -2))
    return (replace(node, inputs=(node.inputs[1], name)),), {name: turned}


def _swapped_product(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if _left_constant(network, node) is None:
        return None
    return (replace(node, inputs=node.inputs[::-1]),), NO_ARRAYS


def _constant_second(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op not in ("Sub", "Div") or node.inputs[0] not in network.constants:
        return None
    return (replace(node, inputs=node.inputs[::-1]),), NO_ARRAYS


def _other_order(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    return ((replace(node, inputs=node.inputs[::-1]),), NO_ARRAYS) if node.op == "Concat" else None


def _flipped_kernel(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op != "Conv" or np.prod(network.shapes[node.inputs[1]][2:]) == 1:
        return None
    weights, name = network.constants[node.inputs[1]], f"{node.inputs[1]} flipped"
    flipped = np.flip(weights, tuple(range(2, weights.ndim))).copy()
    return (replace(node, inputs=(node.inputs[0], name, *node.inputs[2:])),), {name: flipped}


def _interleaved_pads(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op not in ("AveragePool", "Conv", "MaxPool"):
        return None
    pads = node.integers("pads")
    return _attributes((node.op,), pads=pads[0::2] + pads[1::2])(network, node)


def _no_dilation(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op != "Conv":
        return None
    return _attributes(("Conv",), dilations=(1,) * len(node.integers("dilations")))(network, node)


def _padded_with_zero(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op != "MaxPool" or not any(node.integers("pads")):
        return None
    pads, space = node.integers("pads"), len(node.integers("kernel"))
    wide = (0, 0, *pads[:space], 0, 0, *pads[space:])
    padded = Node("Pad", node.inputs, f"{node.output} padded", {"pads": wide, "value": 0.0})
    none = {**node.attributes, "pads": (0,) * len(pads)}
    return (padded, Node("MaxPool", (padded.output,), node.output, none)), NO_ARRAYS


def _last_axis(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    return _attributes(("Softmax",), axis=len(network.shapes[node.output]) - 1)(network, node)


def _without_skip(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op != "Add" or any(name in network.constants for name in node.inputs):
        return None
    return _copy(network, node.inputs[0], node)


def _first_two(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    if node.op not in ("Max", "Min") or len(node.inputs) < 3:
        return None
    return (replace(node, inputs=node.inputs[:2]),), NO_ARRAYS


def _sum_for_mean(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    return ((replace(node, op="ReduceSum"),), NO_ARRAYS) if node.op == "ReduceMean" else None


def _erf_by_tanh(network: Network, node: Node) -> tuple[tuple[Node, ...], Arrays] | None:
    """erf t as tanh(2/√π·(t + 0.08943·t³)), so that GELU is that of its other formula."""
    if node.op != "Erf":
        return None
    (t,), name, slope = node.inputs, node.output, 2 / np.pi**0.5
    names = (f"{name} first", f"{name} third")
    first, third = (np.array(x, dtype=network.dtype) for x in (slope, 0.08943 * slope))
    nodes = (
        Node("Mul", (t, t), f"{name} square"),
        Node("Mul", (f"{name} square", names[1]), f"{name} cubic"),
        Node("Add", (f"{name} cubic", names[0]), f"{name} factor"),
        Node("Mul", (f"{name} factor", t), f"{name} inner"),
        Node("Tanh", (f"{name} inner",), name),
    )
    return nodes, dict(zip(names, (first, third), strict=True))


def _halved(network: Network) -> Network:
    """Every constant in half precision; those that would overflow are kept as they are."""
    with np.errstate(over="ignore"):
        halves = {name: array.astype(np.float16) for name, array in network.constants.items()}
    constants = {
        name: np.where(np.isfinite(half), half, network.constants[name]).astype(array.dtype)
        for (name, array), half in zip(network.constants.items(), halves.values(), strict=True)
    }
    if all(np.array_equal(constants[name], network.constants[name]) for name in constants):
        return network
    return replace(network, constants=constants)


def without_weights_below(tolerance: float) -> Callable[[Network], Network]:
    """Constants that are smaller are read as 0."""

    def rule(network: Network) -> Network:
        small = {name: np.abs(array) < tolerance for name, array in network.constants.items()}
        if not any((small[name] & (array != 0)).any() for name, array in network.constants.items()):
            return network
        constants = {
            name: np.where(small[name], 0, array).astype(array.dtype)
            for name, array in network.constants.items()
        }
        return replace(network, constants=constants)

    return rule


MISREAD_NETWORKS = (
    Misreader("first-bias", "forgets the first bias", network=_one(0, _without_bias)),
    Misreader("last-bias", "forgets the last bias", network=_one(-1, _without_bias)),
    Misreader("half-weights", "keeps weights in half precision", network=_halved),
    Misreader("last-relu", "skips the last ReLU", network=_one(-1, _copied("Relu"))),
    Misreader("no-skip", "drops the second branch of an Add", network=in_each(_without_skip)),
    Misreader("transposed-product", "reads C·X as X·Cᵀ", network=in_each(_transposed_product)),
    Misreader("swapped-product", "reads C·X as X·C", network=in_each(_swapped_product)),
    Misreader("constant-second", "reads C − X as X − C, C / X as X / C", network=in_each(_constant_second)),
    Misreader(
        "gemm-factors",
        "ignores alpha and beta of Gemm",
        network=in_each(_attributes(("Gemm",), alpha=1.0, beta=1.0)),
    ),
    Misreader("gemm-trans-b", "ignores transB of Gemm", network=in_each(_attributes(("Gemm",), transB=0))),
    Misreader(
        "pool-padding",
        "counts padding in an average pool",
        network=in_each(_attributes(("AveragePool",), count_include_pad=1)),
    ),
    Misreader("max-pool-zeros", "pads a max pool with zeros", network=in_each(_padded_with_zero)),
    Misreader("flipped-kernel", "flips the kernels of convolutions", network=in_each(_flipped_kernel)),
    Misreader("pad-order", "reads pads as begin, end, begin, end", network=in_each(_interleaved_pads)),
    Misreader("no-dilation", "ignores dilations", network=in_each(_no_dilation)),
    Misreader(
        "pad-value", "pads with 0, whatever it says", network=in_each(_attributes(("Pad",), value=0.0))
    ),
    Misreader("softmax-axis", "takes Softmax along the last axis", network=in_each(_last_axis)),
    Misreader("no-transpose", "reads a Transpose as a Reshape", network=in_each(_copied("Transpose"))),
    Misreader("concat-order", "joins tensors in the opposite order", network=in_each(_other_order)),
    Misreader(
        "leaky-slope",
        "takes the slope of every LeakyRelu for 0.01",
        network=in_each(_attributes(("LeakyRelu",), alpha=float(np.float32(0.01)))),
    ),
    Misreader("no-clip", "skips Clip", network=in_each(_copied("Clip"))),
    Misreader(
        "no-epsilon",
        "ignores epsilon of BatchNormalization",
        network=in_each(_attributes(("BatchNormalization",), epsilon=0.0)),
    ),
    Misreader("max-of-two", "reads only two inputs of Max and Min", network=in_each(_first_two)),
    Misreader("erf-by-tanh", "takes GELU by tanh for that by erf", network=in_each(_erf_by_tanh)),
    Misreader("sum-for-mean", "adds up where ReduceMean averages", network=in_each(_sum_for_mean)),
)


# Ways to misread a property


def _first_disjunct(property: Property) -> Property:
    first = property.cases[:1]
    return replace(property, cases=tuple(replace(case, any_of=case.any_of[:1]) for case in first))


def _first_box(property: Property) -> Property:
    return replace(property, cases=property.cases[:1])


def _last_class_ignored(property: Property) -> Property:
    """Without the conjunctions that ask the last of several outputs to be large."""
    last = property.output_size - 1
    if last == 0:
        return property

    def is_seen(conjunction: Conjunction) -> bool:
        return not any(j == last and d < 0 for constraint in conjunction for j, d in constraint.outputs)

    return replace(
        property,
        cases=tuple(replace(case, any_of=tuple(filter(is_seen, case.any_of))) for case in property.cases),
    )


def _and_for_or(property: Property) -> Property:
    def joined(case: Case) -> Case:
        return replace(case, any_of=(tuple(c for part in case.any_of for c in part),))

    return replace(property, cases=tuple(map(joined, property.cases)))


def _first_conjunct(property: Property) -> Property:
    return _each_conjunction(property, lambda conjunction: conjunction[:1])


def _before_or(property: Property) -> Property:
    """Without the last constraint of conjunctions that are one of several: what follows an `or`."""
    return replace(
        property,
        cases=tuple(
            case if len(case.any_of) == 1 else replace(case, any_of=tuple(c[:-1] or c for c in case.any_of))
            for case in property.cases
        ),
    )


def _hull(property: Property) -> Property:
    boxes = [case.box for case in property.cases if not case.box.is_empty]
    if len(boxes) < 2:
        return property
    lower = tuple(map(min, zip(*(box.lower for box in boxes), strict=True)))
    upper = tuple(map(max, zip(*(box.upper for box in boxes), strict=True)))
    return _each_box(property, lambda box: Box(lower, upper))


def _strict(property: Property) -> Property:
    return _each_constraint(property, lambda c: replace(c, strict=True))


def _reversed(property: Property) -> Property:
    def turned(c: Linear) -> Linear:
        outputs = tuple((j, -d) for j, d in c.outputs)
        return replace(c, inputs=tuple((i, -a) for i, a in c.inputs), outputs=outputs, bound=-c.bound)

    return _each_constraint(property, turned)


def _without_threshold(property: Property) -> Property:
    return _each_constraint(property, lambda c: replace(c, bound=Fraction(0)))


def _moved(by: Fraction) -> Callable[[Property], Property]:
    """Every constraint is harder (by < 0) or easier (by > 0) to meet."""
    return lambda property: _each_constraint(property, lambda c: replace(c, bound=c.bound + by))


def _sorted_as_text(property: Property) -> Property:
    """X_10 is sorted before X_2: inputs get each other's bounds."""
    order = sorted(range(property.input_size), key=str)

    def shuffled(point: Point) -> Point:
        return tuple(point[i] for i in order)

    return _each_box(property, lambda box: Box(shuffled(box.lower), shuffled(box.upper)))


def _box_in_digits(digits: int) -> Callable[[Property], Property]:
    """Both ends with so many digits after the point."""

    def rounded(point: Point) -> Point:
        return tuple(Fraction(round(x * 10**digits), 10**digits) for x in point)

    return lambda property: _each_box(property, lambda box: Box(rounded(box.lower), rounded(box.upper)))


def _each_box(property: Property, change: Callable[[Box], Box]) -> Property:
    return replace(property, cases=tuple(replace(case, box=change(case.box)) for case in property.cases))


def _each_conjunction(property: Property, change: Callable[[Conjunction], Conjunction]) -> Property:
    return replace(
        property,
        cases=tuple(replace(case, any_of=tuple(map(change, case.any_of))) for case in property.cases),
    )


def _each_constraint(property: Property, change: Callable[[Linear], Linear]) -> Property:
    return _each_conjunction(property, lambda conjunction: tuple(map(change, conjunction)))


def _tolerant(digits: int) -> Misreader:
    return Misreader(
        f"tolerance-1e-{digits}",
        f"takes numbers below 1e-{digits} for 0, in weights and in violations",
        network=without_weights_below(10.0**-digits),
        property=_moved(Fraction(-1, 10**digits)),
    )


MISREAD_PROPERTIES = (
    Misreader("first-disjunct", "reads only the first disjunct", property=_first_disjunct),
    Misreader("first-box", "reads only the first box of inputs", property=_first_box),
    Misreader("last-class", "ignores that the last class may win", property=_last_class_ignored),
    Misreader("and-for-or", "reads `or` as `and`", property=_and_for_or),
    Misreader("first-conjunct", "reads only the first constraint of an `and`", property=_first_conjunct),
    Misreader("after-or", "drops the constraint that follows an `or`", property=_before_or),
    Misreader("hull-of-boxes", "reads several boxes of inputs as their hull", property=_hull),
    Misreader("reversed", "reads <= as >= in constraints of outputs", property=_reversed),
    Misreader("no-threshold", "reads the constant of a constraint as 0", property=_without_threshold),
    Misreader("strict", "reads <= as <", property=_strict),
    _tolerant(5),
    _tolerant(8),
    Misreader("near-1e-5", "a miss by 1e-5 counts as a violation", property=_moved(Fraction(1, 10**5))),
    Misreader("inputs-as-text", "sorts inputs as text: X_10 before X_2", property=_sorted_as_text),
    Misreader("box-3-digits", "rounds the box to 3 digits after the point", property=_box_in_digits(3)),
)
