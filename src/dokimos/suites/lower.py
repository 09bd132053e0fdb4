"""Several networks, or products of variables, as one network with linear constraints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from math import prod
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import INPUT, OUTPUT, Part, write_product
from dokimos.suites.entry import exists, read_content
from dokimos.suites.instance import sha256
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point, Property, Relation, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib

# From several networks, or products of variables, to one network with linear constraints on its outputs


@dataclass(frozen=True)
class Lowered:
    """One network F, as an ONNX file, with one property of it.

    `links` has, for every input of the original property, the number of the input of F that it is;
    `passed` the inputs of F that come after the outputs of the networks among its own outputs.
    """

    network: bytes
    property: Property
    links: tuple[int, ...]
    passed: tuple[int, ...] = ()

    def original(self, point: Sequence[Fraction]) -> Point:
        """The inputs of the original networks at an input of F."""
        return tuple(point[k] for k in self.links)


def is_plain(property: Property) -> bool:
    """Whether the property is about one network, with linear constraints only."""
    return len(property.networks) == 1 and not property.products


def lower(property: Property, contents: Mapping[str, bytes]) -> Lowered:
    """The property as one of a single network, built from networks with these file contents.

    **Theorem.** Let P be the property, f_1, ..., f_k its networks, and Q the property of F that this gives.
    Let x(z) = z[links]. An input z is unsafe for Q with F(z) iff x(z) is unsafe for P with the outputs of
    f_1, ..., f_k at x(z); and every x that is unsafe for P with its outputs is x(z) for one z. So P is
    `sat` iff Q is, and the witnesses of the one are those of the other.

    *Proof.* Two inputs are linked where every conjunction of P has both x_a <= x_b and x_b <= x_a: so an
    unsafe x is constant on each class of linked inputs, and is x(z) for the one z of these constants. x(z)
    is in a box iff z is in the intersections of its sides over each class. F(z) are the outputs at
    x(z), then some numbers of z, then the products of P (`write_product`). A constraint of Q is that of P
    with z[links] for x, its terms of the same variable added up, and with outputs of F for its inputs and
    products, which have the same values. Constraints on inputs alone that hold in all of their box are left
    out, which changes nothing for points of the box. ∎

    Raises InputError if a network is missing, is not declared, or differs from its declaration.
    """
    parts = _files(property, contents)
    links, size = linked_inputs(property)
    starts = accumulate((prod(n.input_shape) for n in property.networks), initial=0)
    reads = [links[at : at + prod(n.input_shape)] for n, at in zip(property.networks, starts, strict=False)]
    cases = [_linked(case, links, size) for case in property.cases]
    every = [constraint for case in cases for part in case.any_of for constraint in part]
    passed = sorted({i for constraint in every for i, _ in constraint.inputs})
    used = sorted({j for constraint in every for j, _ in constraint.outputs if j >= property.output_size})
    place = {i: property.output_size + k for k, i in enumerate(passed)}
    moved = {j: property.output_size + len(passed) + k for k, j in enumerate(used)}
    products = [property.products[j - property.output_size] for j in used]
    network = write_product(
        [Part(content, n.name, r) for content, n, r in zip(parts, property.networks, reads, strict=True)],
        size=size,
        passed=passed,
        products=[tuple(links[v] if v >= 0 else v for v in product) for product in products],
    )
    outputs = property.output_size + len(passed) + len(used)
    return Lowered(
        network,
        Property(
            (Signature("f", INPUT, (1, size), OUTPUT, (1, outputs)),),
            tuple(_on_outputs(case, place, moved) for case in cases),
        ),
        links,
        tuple(passed),
    )


def _files(property: Property, contents: Mapping[str, bytes]) -> list[bytes]:
    """The content of every network's file. Raises InputError if one is not what the property declares."""
    names = [network.name for network in property.networks]
    if strange := [name for name in contents if name not in names]:
        raise InputError(f"the property declares no network {strange[0]!r}, only {', '.join(names)}.")
    found: dict[str, bytes] = {}
    read: dict[str, Network] = {}
    for signature in property.networks:
        name, of = signature.name, signature.of
        same = found.get(of) if of is not None and signature.relation is Relation.EQUAL else None
        content = contents.get(name, same)
        if content is None:
            raise InputError(f"the property declares the network {name}, for which there is no file.")
        if same is not None and content != same:
            raise InputError(f"{name} is declared equal-to {of}, but their files differ.")
        found[name], read[name] = content, read_onnx(content, name=name)
        _require_shape(signature, read[name])
        if of is not None and _structure(read[name]) != _structure(read[of]):
            raise InputError(
                f"{name} is declared {signature.relation.value} {of}, but their layers differ."
            )
    return list(found.values())


def _require_shape(signature: Signature, network: Network) -> None:
    declared = prod(signature.input_shape), prod(signature.output_shape)
    if declared != (network.input_size, network.output_size):
        raise InputError(
            f"the property declares {signature.name} with {declared[0]} inputs and {declared[1]} outputs, "
            f"the network has {network.input_size} and {network.output_size}."
        )


def _structure(network: Network) -> list[object]:
    """The operators, in order, with their attributes and the shapes of what they read and write."""
    return [
        (node.op, dict(node.attributes), [network.shapes.get(name) for name in (*node.inputs, node.output)])
        for node in network.nodes
    ]


def linked_inputs(property: Property) -> tuple[tuple[int, ...], int]:
    """For every input the number of its class, and how many classes of linked inputs there are."""
    parts = [part for case in property.cases for part in case.any_of]
    equal = reduce(set.__and__, map(_equalities, parts)) if parts else set()
    first = list(range(property.input_size))
    for low, high in sorted(equal):
        a, b = first[low], first[high]
        if a != b:
            first = [min(a, b) if k in (a, b) else k for k in first]
    numbers = {k: number for number, k in enumerate(sorted(set(first)))}
    return tuple(numbers[k] for k in first), len(numbers)


def _equalities(part: Conjunction) -> set[tuple[int, int]]:
    """The pairs a < b of inputs with both x_a <= x_b and x_b <= x_a."""
    ordered = set()
    for c in part:
        if len(c.inputs) == 2 and not c.outputs and not c.strict and c.bound == 0:
            (a, left), (b, right) = c.inputs
            if left == -right:
                ordered.add((a, b) if left > 0 else (b, a))
    return {(a, b) for a, b in ordered if a < b and (b, a) in ordered}


def _linked(case: Case, links: Sequence[int], size: int) -> Case:
    """The case in terms of z: its box, and its constraints but for those that the box implies."""
    lower: list[Fraction | None] = [None] * size
    upper: list[Fraction | None] = [None] * size
    for k, low, high in zip(links, case.box.lower, case.box.upper, strict=True):
        known_low, known_high = lower[k], upper[k]
        lower[k] = low if known_low is None else max(low, known_low)
        upper[k] = high if known_high is None else min(high, known_high)
    box = Box(tuple(x for x in lower if x is not None), tuple(x for x in upper if x is not None))
    return Case(
        box,
        tuple(
            tuple(c for c in (_renamed(c, links) for c in part) if not _is_implied(c, box))
            for part in case.any_of
        ),
    )


def _renamed(constraint: Linear, links: Sequence[int]) -> Linear:
    terms: dict[int, Fraction] = {}
    for i, c in constraint.inputs:
        terms[links[i]] = terms.get(links[i], Fraction(0)) + c
    inputs = tuple((k, c) for k, c in sorted(terms.items()) if c)
    return Linear(inputs, constraint.outputs, constraint.bound, constraint.strict)


def _is_implied(constraint: Linear, box: Box) -> bool:
    """Whether it is on inputs alone and holds where its left side is largest in the box."""
    if constraint.outputs or box.is_empty:
        return False
    worst = list(box.lower)
    for k, c in constraint.inputs:
        if c > 0:
            worst[k] = box.upper[k]
    return constraint.holds(worst, ())


def _on_outputs(case: Case, place: Mapping[int, int], moved: Mapping[int, int]) -> Case:
    """The case with outputs of F in place of inputs and products."""

    def constraint(c: Linear) -> Linear:
        terms = [(place[i], a) for i, a in c.inputs] + [(moved.get(j, j), a) for j, a in c.outputs]
        return Linear((), tuple(sorted(terms)), c.bound, c.strict)

    return Case(case.box, tuple(tuple(map(constraint, part)) for part in case.any_of))


# Instances of several networks, or whose property multiplies variables, as two ordinary files


#: Changes whenever other files are written for the same property.
_FORM = 1


def lowered_files(networks: Mapping[str, Path], property_: Path, *, stem: str) -> tuple[Path, Path]:
    """The network and the property that the files are lowered to; networks are given by their names in the
    property.

    Raises InputError if they do not fit together, UnreadableFile if one cannot be read.
    """
    from dokimos.suites.vnnlib.writer import write_vnnlib2

    contents = {name: read_content(path) for name, path in networks.items()}
    text = read_content(property_)
    hashes = {name: sha256(content) for name, content in contents.items()}
    key = sha256(json.dumps([_FORM, hashes, sha256(text)], sort_keys=True).encode())
    folder = home() / "lowered" / key[:16]
    network = folder / f"{stem}.onnx"
    asked = folder / f"{property_.name.removesuffix('.gz').removesuffix('.vnnlib')}.vnnlib"
    if not (exists(network) and exists(asked)):
        lowered = lower(read_vnnlib(text, file=str(property_)), contents)
        files = ", ".join(f"{name} = {path.name.removesuffix('.gz')}" for name, path in networks.items())
        written = write_vnnlib2(lowered.property, comment=f"{property_.name} of {files}, lowered")
        write_whole(network, lowered.network, what="the lowered network")
        write_whole(asked, written, what="the lowered property")
    return network, asked
