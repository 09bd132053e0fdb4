"""Instances that are drawn and proven, from families, random networks and those of the user.

A draw that cannot be made or proven is no draw: nothing leaves here without a label that the checker has
accepted on its files. Random networks are small: random operators, weights and scales, as chains, side by
side, residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import Knob, knobs_of
from dokimos.core.errors import DokimosError
from dokimos.engine.runtimes.sessions import replay
from dokimos.hunting.file_graph import FileGraph, FileNode, NoChange, Values, read_graph
from dokimos.hunting.specimen import LabelProver, Specimen
from dokimos.networks.graph import Shape
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Instance, LabelledInstance
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib

Rng = np.random.Generator
#: Opset of the files.
_OPSET = 13
_ACTIVATIONS = ("Relu", "Relu", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Sign", "Sin")


class Drawing:
    """A graph in the making: nodes are added to a tensor, `last`, of a known shape."""

    def __init__(self, shape: Shape, rng: Rng) -> None:
        self.rng = rng
        self.shape, self.first = shape, shape
        self.last = "X"
        self.nodes: list[FileNode] = []
        self.constants: dict[str, Values] = {}
        #: The power of two that the weights are about.
        self.exponent = 0

    def add(self, op: str, *others: str, **attributes: object) -> str:
        """A node that reads the last tensor first."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(FileNode(op, (self.last, *others), name, attributes))
        self.last = name
        return name

    def weight(self, *shape: int, zeros: float = 0.2) -> str:
        """Random multiples of 1/8 times a power of two, some of them zero."""
        values = self.rng.integers(-12, 13, size=shape) / 8.0 * 2.0**self.exponent
        values = np.where(self.rng.random(shape) < zeros, 0.0, values)
        return self.constant(values.astype(np.float32))

    def constant(self, values: Values) -> str:
        """A constant."""
        name = f"w{len(self.constants)}"
        self.constants[name] = np.asarray(values)
        return name

    def dense(self, width: int) -> None:
        """A layer of rows, in one of the ways to write it."""
        size = self.shape[-1]
        way = int(self.rng.integers(4))
        if way == 0:
            self.add("MatMul", self.weight(size, width))
            self.add(str(self.rng.choice(["Add", "Sub"])), self.weight(width))
        elif way == 1:
            self.add("Gemm", self.weight(width, size), self.weight(width), transB=1)
        elif way == 2:
            self.add("Gemm", self.weight(size, width))
        else:
            self.add("Gemm", self.weight(size, width), self.weight(width), alpha=0.5, beta=2.0)
        self.shape = (1, width)

    def activation(self, op: str | None = None) -> None:
        """An entrywise operator."""
        op = op or str(self.rng.choice(_ACTIVATIONS))
        if op == "Clip":
            ends = [self.constant(np.array(end, dtype=np.float32)) for end in (-1.0, 0.5)]
            self.add(op, *ends)
        else:
            self.add(op, **({"alpha": 0.25} if op == "LeakyRelu" else {}))

    def image(self, op: str) -> None:
        """A convolution or a pool with random attributes, on an image."""
        rng, (_, channels, *space) = self.rng, self.shape
        kernel = [int(rng.integers(1, min(3, n) + 1)) for n in space]
        strides = [int(rng.integers(1, 3)) for _ in space]
        fits = [n >= 2 * (k - 1) + 1 for n, k in zip(space, kernel, strict=True)]
        dilations = [int(rng.integers(1, 3)) if fit else 1 for fit in fits]
        pads = [int(rng.integers(0, k)) for k in kernel] + [int(rng.integers(0, k)) for k in kernel]
        attributes: dict[str, object] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        if op != "AveragePool":
            attributes["dilations"] = dilations
        else:
            attributes["count_include_pad"] = int(rng.integers(2))
            dilations = [1] * len(space)
        for name in ("strides", "pads", "dilations"):
            if name in attributes and rng.random() < 0.4:
                del attributes[name]
        pads = list(attributes.get("pads", [0] * 2 * len(space)))  # type: ignore[call-overload]
        strides = list(attributes.get("strides", [1] * len(space)))  # type: ignore[call-overload]
        dilations = list(attributes.get("dilations", [1] * len(space)))  # type: ignore[call-overload]
        out = []
        for k, n in enumerate(space):
            span = (kernel[k] - 1) * dilations[k] + 1
            out.append((n + pads[k] + pads[k + len(space)] - span) // strides[k] + 1)
        if op == "Conv":
            width = int(rng.integers(1, 4))
            bias = () if rng.random() < 0.3 else (self.weight(width),)
            self.add(op, self.weight(width, channels, *kernel), *bias, **attributes)
            channels = width
        else:
            self.add(op, **attributes)
        self.shape = (1, channels, *out)

    def flat(self) -> None:
        """The tensor as one row."""
        size = int(np.prod(self.shape))
        if self.rng.random() < 0.5:
            self.add("Flatten", axis=1)
        else:
            self.add("Reshape", self.constant(np.array([1, size], dtype=np.int64)))
        self.shape = (1, size)

    def residual(self) -> None:
        """x + f(x), x − f(x), or both side by side."""
        before, shape = self.last, self.shape
        self.dense(shape[-1])
        self.activation()
        way = int(self.rng.integers(4))
        if way == 3:
            self.add("Concat", before, axis=1)
            self.shape = (1, 2 * shape[-1])
        else:
            self.add(("Add", "Sub", "Max")[way], before)

    def graph(self) -> FileGraph:
        """The graph, whose output is the last tensor."""
        nodes = [replace(node, output="Y") if node.output == self.last else node for node in self.nodes]
        return FileGraph("X", self.first, "Y", tuple(nodes), self.constants, _OPSET)


def _dense(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 5))), rng)
    for _ in range(int(rng.integers(1, 4))):
        drawing.dense(int(rng.integers(1, 7)))
        drawing.activation("Relu" if rng.random() < 0.7 else None)
    drawing.dense(int(rng.integers(1, 4)))
    return drawing


def _scaled(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 4))), rng)
    for _ in range(int(rng.integers(1, 4))):
        drawing.exponent = int(rng.integers(-24, 13))
        drawing.dense(int(rng.integers(1, 5)))
        drawing.activation("Relu")
    drawing.exponent = int(rng.integers(-6, 7))
    drawing.dense(1)
    return drawing


def _convolved(rng: Rng) -> Drawing:
    space = (int(rng.integers(2, 6)),) * 2 if rng.random() < 0.7 else (2, int(rng.integers(3, 7)))
    drawing = Drawing((1, int(rng.integers(1, 3)), *space), rng)
    drawing.image("Conv")
    drawing.activation("Relu")
    drawing.flat()
    drawing.dense(int(rng.integers(1, 3)))
    return drawing


def _pooled(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 3)), *(int(rng.integers(2, 6)),) * 2), rng)
    if rng.random() < 0.5:
        drawing.image("Conv")
    drawing.image(str(rng.choice(["MaxPool", "MaxPool", "AveragePool"])))
    if rng.random() < 0.5:
        drawing.activation("Relu")
    drawing.flat()
    drawing.dense(int(rng.integers(1, 3)))
    return drawing


def _residual(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 5))), rng)
    for _ in range(int(rng.integers(1, 3))):
        drawing.residual()
    drawing.dense(int(rng.integers(1, 3)))
    return drawing


def _curved(rng: Rng) -> Drawing:
    drawing = Drawing((1, int(rng.integers(1, 4))), rng)
    for _ in range(int(rng.integers(1, 3))):
        drawing.dense(int(rng.integers(1, 5)))
        drawing.activation(str(rng.choice(["Sigmoid", "Tanh", "LeakyRelu", "Sign", "Clip"])))
    drawing.dense(1)
    return drawing


def _bare(rng: Rng) -> Drawing:
    """Operators in places where exporters do not put them: first, last, twice."""
    drawing = Drawing((1, int(rng.integers(1, 5))), rng)
    for _ in range(int(rng.integers(1, 5))):
        way = rng.random()
        if way < 0.4:
            drawing.activation("Relu")
        elif way < 0.6:
            drawing.add(str(rng.choice(["Add", "Sub", "Mul"])), drawing.weight(drawing.shape[-1]))
        elif way < 0.8:
            drawing.residual()
        else:
            drawing.dense(int(rng.integers(1, 4)))
    if not drawing.nodes:
        drawing.activation("Relu")
    return drawing


#: Shapes of random networks by name.
RANDOM: Mapping[str, Callable[[Rng], Drawing]] = MappingProxyType(
    {
        "dense": _dense,
        "scaled": _scaled,
        "convolved": _convolved,
        "pooled": _pooled,
        "residual": _residual,
        "curved": _curved,
        "bare": _bare,
    }
)


# Two networks as one


def joined(way: str, first: FileGraph, second: FileGraph, rng: Rng) -> FileGraph:
    """`into`: the second reads what the first writes; `beside`: each reads its own part of the input, and
    both outputs come out; `around`: the second reads the sum of what the first reads and writes.

    Where sizes differ, a random layer stands in between. Raises NoChange for networks of different opsets.
    """
    if first.opset != second.opset:
        raise NoChange("their operators have other versions")
    sizes = first.input_size, second.input_size
    drawing = Drawing((1, sum(sizes) if way == "beside" else sizes[0]), rng)
    if way == "beside":
        ends = []
        for graph, start in ((first, 0), (second, sizes[0])):
            drawing.last, drawing.shape = "X", drawing.first
            places = [drawing.constant(np.array([n])) for n in (start, start + graph.input_size, 1)]
            drawing.add("Slice", *places)
            _put(drawing, graph)
            ends.append(drawing.last)
        drawing.last = ends[0]
        drawing.add("Concat", ends[1], axis=1)
        return replace(drawing.graph(), opset=first.opset)
    _put(drawing, first)
    if way == "around":
        _sized(drawing, sizes[0])
        drawing.add(str(rng.choice(["Add", "Sub"])), "X")
    _sized(drawing, sizes[1])
    _put(drawing, second)
    return replace(drawing.graph(), opset=first.opset)


def _sized(drawing: Drawing, size: int) -> None:
    if drawing.shape[-1] != size:
        drawing.dense(size)


def _put(drawing: Drawing, graph: FileGraph) -> None:
    """The nodes of a graph, which read the last tensor as their input, and write a row."""
    mark = f"g{len(drawing.nodes)}_"
    drawing.constants |= {mark + name: values for name, values in graph.constants.items()}
    if graph.shape != (1, graph.input_size):
        drawing.add("Reshape", drawing.constant(np.array(graph.shape)))
    names = {graph.input: drawing.last, "": ""}
    for node in graph.nodes:
        inputs = tuple(names.get(name, mark + name) for name in node.inputs)
        names[node.output] = drawing.last = mark + node.output
        drawing.nodes.append(replace(node, inputs=inputs, output=drawing.last))
    drawing.last = names[graph.output]
    size = prod(graph.shapes[graph.output])
    if graph.shapes[graph.output] != (1, size):
        drawing.add("Reshape", drawing.constant(np.array([1, size])))
    drawing.shape = (1, size)


#: Prefixes of kinds of draws that are no families, and how two networks become one.
RANDOM_NETWORK, MUTATION, COMPOSED = "random", "mutated", "composed"
_WAYS = ("into", "beside", "around")
#: A network of a family that is a part of another one has at most so many bytes.
_PART_BYTES = 8192
#: Families that draw too slowly for a hunt.
_SLOW = frozenset(("transformer", "contractive-cnn", "residual", "parity-lock"))
#: Margins are at least this, and about that share of the range of an output.
_LEAST, _SHARE = Fraction(1, 64), 0.1
_SAMPLES = 256
_CHOICES_OF_DISGUISE: tuple[tuple[str, ...], ...] = ((), (), (), ("permute",), ("scale",), ("duplicate",))
ERRORS = (DokimosError, NoChange, Undecided, ValueError, OverflowError, IndexError, ArithmeticError)


@dataclass(frozen=True, order=True)
class DrawKind:
    """What may be drawn: a family in a shape, a random network, two networks as one, or a mutation of the
    user's."""

    family: str
    shape: str = ""

    @property
    def name(self) -> str:
        """The kind in one word."""
        return f"{self.family}/{self.shape}" if self.shape else self.family


def kinds(given: Sequence[SuiteEntry] = ()) -> tuple[DrawKind, ...]:
    """All kinds of draws."""
    found = [DrawKind(RANDOM_NETWORK, name) for name in RANDOM]
    found += [DrawKind(COMPOSED, way) for way in _WAYS]
    for family in sorted(CONSTRUCTIONS):
        if family in _SLOW:
            continue
        named = [knob for knob in knobs_of(CONSTRUCTIONS[family].knobs_class) if knob.options]
        found += [DrawKind(family, option) for option in named[0].options] if named else [DrawKind(family)]
    found += [DrawKind(MUTATION, entry.name) for entry in given]
    return tuple(found)


def draw(kind: DrawKind, rng: np.random.Generator, given: Sequence[SuiteEntry]) -> list[LabelledInstance]:
    """Proven instances of this kind; none if this draw comes to nothing."""
    try:
        if kind.family == RANDOM_NETWORK:
            graph = RANDOM[kind.shape](rng).graph().folded().tidied()
            return list(_asked_about(graph, _random_box(graph, rng), rng, kind.name))
        if kind.family == COMPOSED:
            graph = joined(kind.shape, _part(rng), _part(rng), rng).folded().tidied()
            return list(_asked_about(graph, _random_box(graph, rng), rng, kind.name))
        if kind.family == MUTATION:
            return list(_mutated(next(one for one in given if one.name == kind.shape), rng))
        return _of_family(kind, rng)
    except ERRORS:
        return []


def _part(rng: np.random.Generator) -> FileGraph:
    """A network to be composed with another one: a random one, or a small one of a family."""
    if rng.random() < 0.5:
        families = [kind for kind in kinds() if kind.family in CONSTRUCTIONS]
        made = _of_family(families[int(rng.integers(len(families)))], rng)
        if made and len(made[-1].instance.network_file) <= _PART_BYTES:
            return read_graph(made[-1].instance.network_file).folded().tidied()
    shape = str(rng.choice(list(RANDOM)))
    return RANDOM[shape](rng).graph().folded().tidied()


# Families with random knobs


def _of_family(kind: DrawKind, rng: np.random.Generator) -> list[LabelledInstance]:
    construction = CONSTRUCTIONS[kind.family]
    knobs: dict[str, Any] = {}
    for knob in knobs_of(construction.knobs_class):
        if (
            knob.options
            and kind.shape in knob.options
            and not any(k in knobs for k in ("variant", "shape"))
        ):
            knobs[knob.name] = kind.shape
        elif rng.random() < 0.5:
            knobs[knob.name] = _value(knob, rng)
    disguise = _CHOICES_OF_DISGUISE[int(rng.integers(len(_CHOICES_OF_DISGUISE)))]
    for ways in dict.fromkeys((disguise, ())):
        try:
            made = construction.draw(
                seed=int(rng.integers(2**31)),
                timeout_seconds=60.0,
                disguise=ways,
                with_twin=True,
                knobs=knobs,
            )
        except ERRORS:
            continue
        return list(made.instances)
    return []


def _value(knob: Knob, rng: np.random.Generator) -> Any:
    """A value of a knob, not far from its default: larger ones cost more than they tell."""
    if knob.options:
        return knob.options[int(rng.integers(len(knob.options)))]
    low, high = max(knob.least, knob.default / 4), min(knob.most, max(knob.default * 1.5, knob.least))
    drawn = rng.uniform(min(low, high), max(low, high))
    return round(drawn) if knob.is_integer else float(f"{drawn:.3g}")


# Questions about any network, labelled by a witness or by a proof


def _random_box(graph: FileGraph, rng: np.random.Generator) -> Box:
    centre = rng.integers(-8, 9, size=graph.input_size)
    radius = rng.integers(1, 9, size=graph.input_size) * 2.0 ** -int(rng.integers(0, 5))
    steps = [(Fraction(int(c), 8), Fraction(float(r)) / 8) for c, r in zip(centre, radius, strict=True)]
    return Box(tuple(c - r for c, r in steps), tuple(c + r for c, r in steps))


def _asked_about(
    graph: FileGraph, box: Box, rng: np.random.Generator, name: str
) -> Iterator[LabelledInstance]:
    """One question that a sample answers `sat`, and one that is proven `unsat`, about the same network."""
    network = graph.write()
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    points = np.vstack([rng.uniform(lower, upper, size=(_SAMPLES, box.size)), _corners(lower, upper, rng)])
    points = np.clip((np.round(points * 64) / 64), lower, upper).astype(np.float32)
    outputs = replay(network, points).astype(np.float64)
    if not np.isfinite(outputs).all():
        return
    for is_sat in (True, False):
        conjunction, best = _conjunction(outputs, rng, is_sat=is_sat)
        signature = Signature("f", "X", (box.size,), "Y", (outputs.shape[1],))
        asked = Property((signature,), (Case(box, (conjunction,)),))
        witness = tuple(Fraction(float(x)) for x in points[best]) if is_sat else None
        specimen = Specimen(graph, asked, witness)
        prover = LabelProver(_LEAST / 2, is_float32=False)
        labelled = prover.proven(specimen)
        if labelled is not None:
            yield _named(labelled, name)


def _corners(lower: Values, upper: Values, rng: np.random.Generator) -> Values:
    return np.where(rng.random((64, len(lower))) < 0.5, lower, upper)


def _conjunction(outputs: Values, rng: np.random.Generator, *, is_sat: bool) -> tuple[Conjunction, int]:
    """Constraints that the samples meet at one point, or that none of them comes near."""
    count = outputs.shape[1]
    first = int(rng.integers(count))
    row = np.zeros(count)
    row[first] = float(rng.choice([-1.0, 1.0]))
    if count > 1 and rng.random() < 0.3:
        row[(first + 1) % count] = -row[first]
    values = outputs @ row
    span = float(values.max() - values.min())
    away = max(float(_LEAST), _SHARE * span * float(rng.choice([0.5, 1.0, 3.0])))
    best = int(np.argmin(values))
    bound = float(values[best]) + (away if is_sat else -away)
    terms = tuple((j, Fraction(float(c))) for j, c in enumerate(row) if c)
    constraints = [Linear((), terms, Fraction(round(bound * 1024), 1024))]
    if is_sat and count > 1 and rng.random() < 0.3:
        other = (first + 1) % count
        limit = Fraction(round((float(outputs[best, other]) + away) * 1024), 1024)
        constraints.append(Linear((), ((other, Fraction(1)),), limit))
    return tuple(constraints), best


def _named(labelled: LabelledInstance, family: str) -> LabelledInstance:
    instance: Instance = labelled.instance
    name = f"{family.replace('/', '-')}-{instance.name.rpartition('-')[2]}"
    return replace(labelled, instance=replace(instance, name=name, family=family.partition("/")[0]))


# Networks that the user gives, changed


def _mutated(entry: SuiteEntry, rng: np.random.Generator) -> Iterator[LabelledInstance]:
    """The network with one change, and questions about it on the given box, or on one near it."""
    instance = entry.read_instance()
    graph = read_graph(instance.network_file).folded().tidied()
    box = read_vnnlib(instance.property_file, file=entry.name).cases[0].box
    way = int(rng.integers(4))
    if way < 3:
        graph = (_rounded, _rescaled, _doubled)[way](graph, rng)
    if rng.random() < 0.5:
        box = _moved(box, rng)
    yield from _asked_about(graph, box, rng, f"{MUTATION}/{entry.name}")


def _rounded(graph: FileGraph, rng: np.random.Generator) -> FileGraph:
    """Weights with fewer bits."""
    unit = 2.0 ** -int(rng.integers(2, 9))
    return graph.with_constants(
        {name: (np.round(values / unit) * unit).astype(values.dtype) for name, values in graph.floats()}
    )


def _rescaled(graph: FileGraph, rng: np.random.Generator) -> FileGraph:
    """Every tensor of weights times a power of two of its own."""
    return graph.with_constants(
        {n: (v * 2.0 ** int(rng.integers(-8, 5))).astype(v.dtype) for n, v in graph.floats()}
    )


def _doubled(graph: FileGraph, rng: np.random.Generator) -> FileGraph:
    """The output added to itself: every path is doubled."""
    last = graph.nodes[-1]
    node = replace(last, op="Add", inputs=("once", "once"), attributes={})
    return replace(graph, nodes=(*graph.nodes[:-1], replace(last, output="once"), node))


def _moved(box: Box, rng: np.random.Generator) -> Box:
    """A box of another size around another point."""
    found = []
    for a, b in zip(box.lower, box.upper, strict=True):
        width = max(b - a, Fraction(1, 16)) * Fraction(int(rng.integers(1, 5)), 4)
        start = a + (b - a) * Fraction(int(rng.integers(-4, 5)), 8)
        grid = Fraction(round(start * 256), 256)
        found.append((grid, grid + Fraction(max(1, round(width * 256)), 256)))
    return Box(tuple(a for a, _ in found), tuple(b for _, b in found))


# What to draw next: kinds that cost little, that the tool answers, and that have shown new causes


#: What a new cause counts, and what share of draws is spread evenly.
_NEW, _EVEN = 12.0, 0.25
#: A draw costs at least this much, so that cheap ones do not crowd out all others.
_LEAST_SECONDS = 0.1


@dataclass
class Harvest:
    """What came of the draws of one kind: `told` are instances that tested the tool's proofs."""

    draws: int = 0
    instances: int = 0
    told: int = 0
    wrong: int = 0
    new: int = 0
    cpu_seconds: float = 0.0

    def add(self, other: Harvest) -> None:
        """Count another tally too."""
        for name in ("draws", "instances", "told", "wrong", "new", "cpu_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def weight(self) -> float:
        """How much more of this kind is worth: optimistic while it is new, less with every repeat."""
        useful = (self.told + 1) / (2 * self.draws + 2)
        found = 1 + _NEW * self.new / (1 + self.wrong)
        cost = max(_LEAST_SECONDS, self.cpu_seconds / max(1, self.draws))
        return float(useful * found / (cost * (1 + 0.02 * self.draws)) ** 0.5)


@dataclass
class Bandit:
    """Chooses among kinds, first the family and then its shape, by what came of them so far."""

    kinds: Sequence[DrawKind]
    tallies: dict[str, Harvest] = field(default_factory=dict)

    def choose(self, rng: np.random.Generator) -> DrawKind:
        """The next kind to draw."""
        families = sorted({kind.family for kind in self.kinds})
        weights = [self._best(family) for family in families]
        family = families[self._pick(weights, rng)]
        own = [kind for kind in self.kinds if kind.family == family]
        return own[self._pick([self.tally(kind.name).weight for kind in own], rng)]

    def tally(self, name: str) -> Harvest:
        """The tally of a kind."""
        return self.tallies.setdefault(name, Harvest())

    def _best(self, family: str) -> float:
        """The weight of a family: the mean of its shapes, and more for those that have several."""
        own = [self.tally(kind.name).weight for kind in self.kinds if kind.family == family]
        return float(np.mean(own) * len(own) ** 0.5)

    @staticmethod
    def _pick(weights: Sequence[float], rng: np.random.Generator) -> int:
        shares = np.array(weights) / sum(weights)
        shares = (1 - _EVEN) * shares + _EVEN / len(shares)
        return int(rng.choice(len(shares), p=shares))
